"""Conflicts: claims that cannot all hold at one op, and the ways out of them, each tried and with what it costs.

a + a.T, `a` tiled on 0   -->   tile('add#0', 0, 'data'), tile('add#0', 1, 'data'), replicate('transpose#0', 'data')
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import prod

from ...dialects.english import of_bytes, of_flops
from ...dialects.errors import Error
from ...dialects.ranges.algebra import MeshAxis
from ...rewrites.decide import table as placement
from ...rewrites.decide.table import WHOLE, Key
from ...rewrites.program.program import Node
from ..inputs.checks import refused, shown
from ..inputs.lines import Source
from ..inputs.reader import Question, cited, explained, question
from ..views.listing import Listing, Shape
from .claims import Some, replicate, tile
from .collectives import bytes_per_device, line_of
from .memory import peak_bytes
from .seconds import seconds
from .state import State
from .trials import Change, tried
from .work import flops_per_device

FARTHEST = 16
"""How many values before a conflict, and how many ops after it, are looked at for smaller values that could be gathered."""

MOST_VALUES = 8
"""The most values of an op, the smallest ones, that are tried alone and in pairs."""

MOST_WAYS = 5
"""The most ways out that a conflict shows."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """A resolution of a conflict: a tactic, and what one device then receives, computes and stores.

    It is a tactic itself: `plan.apply(conflict.resolutions[0])`.
    """

    value: str | tuple[str, ...]
    """The value, or the two values that are replicated."""
    axis: str
    dim: int | None
    """The dim that is tiled; None if values are replicated."""
    first: bool
    """Whether they are replicated before all other tactics, so that these find them whole."""
    bytes: int
    flops: int
    memory: int
    """The most bytes that a device stores at one time."""
    seconds: float
    """About how long a TPU v5e receives and computes in a call: what ways out are compared by."""

    @property
    def tactic(self) -> str:
        """The same tactic as a line of a trace."""
        if self.dim is None:
            return f"replicate({self.value if isinstance(self.value, str) else [*self.value]!r}, {self.axis!r})"
        return f"tile({self.value!r}, {self.dim}, {self.axis!r})"

    def __call__(self, plan: Some) -> Some:
        return _change(plan, self.value, self.dim, self.axis, self.first)(plan)

    def __repr__(self) -> str:
        when = ", as the first tactic" if self.first else ""
        cost = (
            f"a device then receives {of_bytes(self.bytes)}, computes {of_flops(self.flops)} and stores {of_bytes(self.memory)}"
        )
        return f"{cited(self.tactic)}{when}: {cost}"


@dataclass(frozen=True)
class Conflict:
    """Claims that contradict each other at one op. Without a resolution, each device runs the op in full."""

    plan: State
    op: str
    axis: str
    source: Source | None
    claims: tuple[str, ...]
    key: Key

    @property
    def resolutions(self) -> tuple[Resolution, ...]:
        """The ways out that can be applied, the fastest first; of those with the same cost, one.

        Each is tried, so each has the plan's resulting cost.
        """
        found: list[Resolution] = []
        names, each = self.plan.source.addresses.names, self.plan.table.conflicts[self.key]
        alone = [names[value] for value in _replicable(self.plan, each)]
        ways = [(some, None, first) for some in (*alone, *combinations(alone, 2)) for first in (False, True)]
        for value, dim, first in [*ways, *((names[value], dim, False) for value, dim in _tileable(self.plan, each))]:
            change = _change(self.plan, value, dim, self.axis, first)
            for _, plan in tried(self.plan, [change], lambda made: is_open(made, self.key)):
                cost = bytes_per_device(plan), flops_per_device(plan).known, peak_bytes(plan), seconds(plan)
                found.append(Resolution(value, self.axis, dim, first, *cost))
        found.sort(key=lambda each: (each.seconds, each.bytes, each.first))
        return tuple({(each.bytes, each.flops): each for each in reversed(found)}.values())[::-1][:MOST_WAYS]

    def __repr__(self) -> str:
        where = f" at {self.source}" if self.source is not None else ""
        return f"conflict on `{self.axis}` in {self.op}{where}: " + "; ".join(self.claims)


def resolve(plan: Some, conflict: Conflict, choice: int | str | Resolution = 0) -> Some:
    """The plan after one of the ways out of a conflict: itself, its number among `.resolutions`, or its tactic."""
    ways = its_own(plan, conflict).resolutions
    plain = isinstance(choice, int | str | Resolution) and not isinstance(choice, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    chosen = [way for number, way in enumerate(ways) if plain and choice in (number, way.tactic, way)]
    if not chosen:
        known = ", ".join(f"{number}: {way.tactic}" for number, way in enumerate(ways)) or "none: no tactic resolves it alone"
        raise Error(f"{shown(choice)} is not a way out of this conflict", helps=[f"the ways out are {known}"])
    return chosen[0](plan)


def conflict_given(conflict: object) -> Conflict:
    """Raises Error for what is not a conflict."""
    if not isinstance(conflict, Conflict):
        helps = ["take one of plan.conflicts: plan.resolve(plan.conflicts[0])", "to resolve all: plan.apply(pt.Resolve())"]
        raise refused("conflict", "a conflict", conflict, *helps)
    return conflict


def its_own(plan: State, conflict: Conflict) -> Conflict:
    """The conflict, if it is an open one of this plan. Raises Error otherwise."""
    if conflict.plan.source is not plan.source or not is_open(plan, conflict.key):
        helps = ["take one of plan.conflicts", "a tactic that came after it may have resolved it"]
        raise Error(f"this is not an open conflict of this plan: {conflict!r}", helps=helps)
    return conflict


def _change(plan: State, value: str | tuple[str, ...], dim: int | None, axis: str, first: bool) -> Change:
    values = value if isinstance(value, str) else [*value]
    if dim is not None:
        return Change(partial(tile, values=values, dim=dim, axis=axis))
    return Change(partial(replicate, values=values, axis=axis), plan.own if first else None, keeps=True)


def conflicts(plan: State) -> Listing[Conflict]:
    """The conflicts that are open: no tactic has placed the op, or the argument, on the axis since."""
    return Listing([conflict(plan, key) for key in open_keys(plan)], Shape("open conflicts", notes=_ways))


def _ways(found: Sequence[Conflict]) -> Sequence[str]:
    """The line below a list of conflicts: what shows the ways out of the first one."""
    first = found[0]
    return [f"{explained(open_keys(first.plan).index(first.key))} shows the ways out of the first one"]


def open_keys(plan: State) -> list[Key]:
    """By which the table of a plan has its open conflicts."""
    return [key for key in plan.table.conflicts if is_open(plan, key)]


def is_open(plan: State, key: Key) -> bool:
    each = plan.table.conflicts.get(key)
    if each is None or each.axis not in plan.table.axes:
        return False
    table = plan.table.axes[each.axis]
    return table.nodes[each.node] is None if each.node >= 0 else table.values[each.value] is None


def met_at(plan: State, node: int, value: int, axis: MeshAxis) -> str:
    """What to say of a conflict that is open at an op, or at an argument: its claims, and what shows its ways out."""
    key = node, value, axis
    if not is_open(plan, key):
        return ""
    claims = "; ".join(claims_of(plan, plan.table.conflicts[key]))
    return f"a conflict on `{axis}`: {claims}; {explained(open_keys(plan).index(key))} shows the ways out"


def warning(plan: State) -> str | None:
    """What to say before a plan with open conflicts runs; None if there is none."""
    found = open_keys(plan)
    if not found:
        return None
    op, source = _where(plan, plan.table.conflicts[found[0]])
    where = f" at {source}" if source is not None else ""
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return (
        f"a plan with open conflicts: {op}{where}{more}. Each device of `{found[0][2]}` runs it in full. "
        f"Apply {question(Question.RESOLVE)}, or one of {question(Question.WAYS)}"
    )


def conflict(plan: State, key: Key) -> Conflict:
    """A conflict, in the words of the user."""
    each = plan.table.conflicts[key]
    op, source = _where(plan, each)
    return Conflict(plan, op, str(each.axis), source, claims_of(plan, each), key)


def claims_of(plan: State, each: placement.Conflict) -> tuple[str, ...]:
    """The claims that meet, each with its value, and where it comes from."""
    return tuple(_claim(plan, each, claim, position) for claim, position in each.claims)


def _node(plan: State, each: placement.Conflict) -> Node | None:
    """The op at which the claims meet; None if it is an argument."""
    return plan.source.program.nodes[each.node] if each.node >= 0 else None


def _where(plan: State, each: placement.Conflict) -> tuple[str, Source | None]:
    """The op or argument at which the claims meet, and its source line."""
    node = _node(plan, each)
    if node is None:
        return f"argument `{plan.source.addresses.names[each.value]}`", line_of(plan, each.value, None)
    return f"`{node.kind}`", line_of(plan, node.results[0], node)


def _claim(plan: State, each: placement.Conflict, claim: placement.Claim, position: int) -> str:
    node = _node(plan, each)
    value = each.value if node is None else node.end(position)
    who = f"operand {position}" if position >= 0 else f"result {-1 - position}"
    who = f"a use of dim {claim.at}" if node is None else who
    by = "from" if node is None or value in plan.actions[claim.tactic].values else "propagated from"
    return f"{who} `{plan.source.addresses.names[value]}` on dim {claim.at}, {by} {plan.cited(claim.tactic)}"


def _tileable(plan: State, each: placement.Conflict) -> list[tuple[int, int]]:
    """The dims that the axis may have: those that an argument is asked for, or those of what the op makes."""
    node = _node(plan, each)
    if node is None:
        return list(dict.fromkeys((each.value, claim.at) for claim, _ in each.claims))
    return [(value, dim) for value in node.results for dim in range(len(plan.source.program.shape(value)))]


def _replicable(plan: State, each: placement.Conflict) -> list[int]:
    """The values that could be replicated along the axis: those that claim, and smaller ones from which their claims come."""
    node = _node(plan, each)
    if node is None:
        return [each.value]
    found: list[int] = []
    for value in (value for value in node.operands if _is_tiled(plan, value, each.axis)):
        found += [value, *_smallest(plan, value, _before(plan, value, each.axis))]
    for value in (node.end(position) for _, position in each.claims if position < 0):
        found += _smallest(plan, value, _behind(plan, value, each.axis))
    smallest = sorted(dict.fromkeys(found), key=lambda value: prod(plan.source.program.shape(value)))[:MOST_VALUES]
    return [value for value in dict.fromkeys(found) if value in smallest]


def _smallest(plan: State, value: int, others: Iterator[int]) -> list[int]:
    """The smallest of these values, if it is smaller than `value`: to gather keys is cheaper than to gather scores."""
    sizes = {each: prod(plan.source.program.shape(each)) for each in others}
    found = [each for each, size in sizes.items() if size < prod(plan.source.program.shape(value))]
    return [min(found, key=lambda each: sizes[each])] if found else []


def _before(plan: State, value: int, axis: MeshAxis) -> Iterator[int]:
    """The values with a claim on the axis from which one is computed."""
    program, ahead = plan.source.program, [value]
    for each in ahead:
        for operand in program.nodes[program.producer[each]].operands if program.producer[each] >= 0 else ():
            if operand not in ahead and len(ahead) < FARTHEST and _is_tiled(plan, operand, axis):
                ahead.append(operand)
                yield operand


def _behind(plan: State, value: int, axis: MeshAxis) -> Iterator[int]:
    """The other values with a claim on the axis that are read by the ops which read a value, or what becomes of it."""
    program, ahead, seen = plan.source.program, [value], set[int]()
    for each in ahead:
        for node in (program.nodes[number] for number, _ in program.uses[each]):
            if node.number not in seen and len(seen) < FARTHEST:
                seen.add(node.number)
                ahead += node.results
                yield from (operand for operand in node.operands if operand not in ahead and _is_tiled(plan, operand, axis))


def _is_tiled(plan: State, value: int, axis: MeshAxis) -> bool:
    claim = plan.table.claim(value, axis)
    return claim is not None and claim.at != WHOLE
