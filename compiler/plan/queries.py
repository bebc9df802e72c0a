"""Queries on a plan, read off its decisions and its table, never computed twice."""

from dataclasses import dataclass

from ...dialects.errors import Error
from ...rewrites.decide import table as placement
from ...rewrites.decide.op_layouts import boundary
from ..inputs.lines import Source
from ..inputs.names import Patterns
from .claims import Some, replicate
from .collectives import bytes_per_device, counts, line_of
from .state import State


@dataclass(frozen=True, slots=True)
class Resolution:
    """A resolution of a conflict: the tactic that applies it, and the bytes per call that a device then receives.

    It is a tactic itself: `plan.apply(conflict.resolutions[0])`.
    """

    value: str
    axis: str
    bytes: int

    @property
    def tactic(self) -> str:
        """The same tactic as a line of a trace."""
        return f"replicate({self.value!r}, {self.axis!r})"

    def __call__(self, plan: Some) -> Some:
        return replicate(plan, self.value, self.axis)

    def __repr__(self) -> str:
        return f"{self.tactic}: {self.bytes:,} bytes received by a device in a call"


@dataclass(frozen=True)
class Conflict:
    """Claims that contradict each other at one op."""

    plan: State
    op: str
    axis: str
    source: Source | None
    claims: tuple[str, ...]
    operands: tuple[str, ...]

    @property
    def resolutions(self) -> tuple[Resolution, ...]:
        """Replicate a claiming value along the axis, unless a tactic tiled it there; each with the plan's resulting cost."""
        found: list[Resolution] = []
        for name in self.operands:
            try:
                plan = replicate(self.plan, name, self.axis)
            except Error:
                continue
            found.append(Resolution(name, self.axis, bytes_per_device(plan)))
        return tuple(sorted(found, key=lambda each: each.bytes))

    def __repr__(self) -> str:
        where = f" at {self.source}" if self.source is not None else ""
        return f"conflict on `{self.axis}` in {self.op}{where}: " + "; ".join(self.claims)


MOST = 8
"""The most tactics that a plan's `repr` shows."""


def brief(plan: State) -> str:
    """The `repr` of a plan: its function, mesh and tactics; its counts, if they are already computed.

    Computes nothing: the `repr` of a plan must be cheap.
    """
    lines = [f"Plan of {plan.source.traced.name} on {plan.mesh}: {len(plan.actions) or 'no'} tactics"]
    lines += [f"  {action.text:.120}" for action in plan.actions[:MOST]]
    if (more := len(plan.actions) - MOST) > 0:
        lines.append(f"  ... and {more} more")
    if "decisions" in vars(plan):
        lines.append(counts(plan).text())
    return "\n".join(lines)


def layouts(plan: State, values: Patterns = "**") -> dict[str, str]:
    addresses, placements = plan.source.addresses, plan.decisions.placements
    result_values = set(addresses.results.values())
    found: dict[str, str] = {}
    for name, value in addresses.find(values).items():
        outer = name in addresses.arguments or (name in addresses.results and value in result_values)
        # At the boundary a padded dim is whole, since no array has parts of different sizes; the plan shows how it is placed.
        home = placements.home(value)
        layout = boundary(placements, value) if outer and home.padded_shape(plan.mesh) == home.global_shape(plan.mesh) else home
        found[name] = plan.layout_text(value, layout, () if outer else placements.sources.get(value, ()))
    return found


def conflicts(plan: State) -> list[Conflict]:
    found: list[Conflict] = []
    for each in plan.table.conflicts.values():
        table = plan.table.axes[each.axis]
        open_ = table.nodes[each.node] is None if each.node >= 0 else table.values[each.value] is None
        if open_:
            found.append(_conflict(plan, each))
    return found


def _conflict(plan: State, each: placement.Conflict) -> Conflict:
    program, names = plan.source.program, plan.source.addresses.names
    claims: list[str] = []
    operands: list[str] = []
    node = program.nodes[each.node] if each.node >= 0 else None
    for claim, position in each.claims:
        name = names[each.value if node is None else node.end(position)]
        if node is None:
            who = f"a use of dim {claim.at}"
        elif position >= 0:
            who = f"operand {position}"
            operands.append(name)
        else:
            who = f"result {-1 - position}"
        value = each.value if node is None else node.end(position)
        by = "from" if node is None or value in plan.actions[claim.tactic].values else "propagated from"
        claims.append(f"{who} `{name}` on dim {claim.at}, {by} {plan.actions[claim.tactic].text}")
    where = line_of(plan, each.value if node is None else node.results[0], node)
    op = f"argument `{names[each.value]}`" if node is None else f"`{node.kind}`"
    return Conflict(plan, op, each.axis, where, tuple(claims), tuple(dict.fromkeys(operands)))
