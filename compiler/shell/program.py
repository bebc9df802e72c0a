"""What the program of a session is, in a few lines: a session in a terminal begins with them.

train_step at llama.py:104: 887 ops, for 8 devices, data=2 model=4
  params   11 arrays, 6.38 MiB, the largest is params/embed f32[50257, 32]
  batch    i32[30, 9]
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...dialects.english import counted, of_bytes
from ..api.plan import Plan
from ..inputs.names import parts
from ..inputs.reader import Question, question

MOST = 8
"""The most arguments, or trees of them, that have a line."""


def described(plan: Plan) -> list[str]:
    """Its name, file and line, its ops, the mesh, and its arguments: those of one tree together, unless they are few."""
    found = plan.source.traced.function
    place = found.location() or found.location("fn")
    where = f" at {Path(place.file).name}:{place.line}" if place is not None else ""
    ops, devices = (counted(len(plan.source.program.nodes), "op"), counted(plan.mesh.size, "device"))
    return [f"{found.name}{where}: {ops}, for {devices}, {str(plan.mesh).replace(', ', ' ')}", *_arguments(plan)]


def _arguments(plan: Plan) -> Iterator[str]:
    values = plan.source.addresses.arguments
    trees: dict[str, list[str]] = {}
    for name in values:
        trees.setdefault(name if len(values) <= MOST else (parts(name) or [name])[0], []).append(name)
    room = max(map(len, trees), default=0)
    for tree, names in list(trees.items())[:MOST]:
        yield f"  {tree:{room}}   {_shown(plan, names)}"
    if (more := len(trees) - MOST) > 0:
        yield f"  and {more} more: {question(Question.ARGUMENTS)}"


def _shown(plan: Plan, names: Sequence[str]) -> str:
    """The shape of one array; of several, how large they are and which one is the largest."""
    values, types = plan.source.addresses.arguments, plan.source.program.types
    if len(names) == 1:
        return plan.layout_text(values[names[0]])
    largest = max(names, key=lambda name: types[values[name]].nbytes)
    total = of_bytes(sum(types[values[name]].nbytes for name in names))
    return f"{counted(len(names), 'array')}, {total}, the largest is {largest} {plan.layout_text(values[largest])}"
