"""Where an op is in the user's program, from the outside in, so that a page can fold it.

    transpose(jvp(layers_3/mlp)), in block at lm.py:119   -->   backward / layers_3 / mlp / block / lm.py:119
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ...rewrites.program.program import Control, Node, Program
from ..inputs.lines import Source
from ..plan.state import State
from ..trace.scopes import split
from .pool import Json, Pools, code_of, function_of

_TRANSFORMED = re.compile(r"\w+\((.*)\)")


class Part(NamedTuple):
    """One fold: its kind, its text and the number of its line.

    `kind` is `direction`, `region`, `scope`, `function` or `line`; of what is outside, `argument` or `result`, and `path` in it.
    """

    kind: str
    text: str
    line: int = -1


class Tree:
    """The folds of a program. Fold 0 is the program itself, and each other one knows the one around it."""

    def __init__(self) -> None:
        self.parts, self.parents = [Part("program", "")], [-1]
        self._numbers: dict[tuple[int, str, str], int] = {}

    def number(self, path: list[Part]) -> int:
        """The number of the innermost fold of a path."""
        at = 0
        for part in path:
            key = at, part.kind, part.text
            if key not in self._numbers:
                self._numbers[key] = len(self.parts)
                self.parts.append(part)
                self.parents.append(at)
            at = self._numbers[key]
        return at

    def json(self, pools: Pools) -> Json:
        return {
            "kind": [part.kind for part in self.parts],
            "text": [pools.text(part.text) for part in self.parts],
            "line": [part.line for part in self.parts],
            "parent": self.parents,
        }


class Scopes:
    """The paths of the ops of one program."""

    def __init__(self, plan: State, pools: Pools) -> None:
        self.sources, self.pools = plan.source.traced.sources, pools
        self.regions = _regions(plan.source.program)

    def path(self, node: Node) -> list[Part]:
        source = self.sources[node.op] if node.op in self.sources else None
        inside = [*self.regions[node.region], *(() if source is None else _scoped(source, self.pools))]
        return [Part("direction", source.direction), *inside] if source is not None and source.direction else inside


def _scoped(source: Source, pools: Pools) -> Iterator[Part]:
    yield from (Part("scope", name) for name in named_scopes(source.scope))
    if source.line:
        line = pools.line(source)
        yield Part("function", function_of(source), line)
        yield Part("line", f"{source.place}  {code_of(source)}", line)


def named_scopes(scope: str) -> list[str]:
    """The scopes that somebody named, without the transformations of JAX around them.

    A scope with an arrow is that of an `einsum`, which names it by its subscripts.
    """
    found: list[str] = []
    for part in split(scope):
        inner = _TRANSFORMED.fullmatch(part)
        found += named_scopes(inner[1]) if inner else [part]
    return [name for name in found if name not in ("checkpoint", "rematted_computation") and "->" not in name]


def _regions(program: Program) -> list[list[Part]]:
    """For each region the loops and branches around it: `scan#0 x 8`, `cond#1:0`."""
    found: list[list[Part]] = [[] for _ in program.regions]
    counts: Counter[str] = Counter()
    for outer, controls in enumerate(program.controls):
        for control in controls:
            kind = control.op.name.removeprefix("lax.")
            for position, region in enumerate(control.regions):
                found[region] = [*found[outer], _region(program, control, position, f"{kind}#{counts[kind]}")]
            counts[kind] += 1
    return found


def _region(program: Program, control: Control, position: int, name: str) -> Part:
    region = program.regions[control.regions[position]]
    if region.mark:
        several = len(control.regions) > 1 and ":" not in region.mark
        return Part("region", region.mark + (f" ({'condition' if position == 0 else 'body'})" if several else ""))
    return Part("region", f"{name} × {region.trips:,}")
