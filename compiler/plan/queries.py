"""The layouts of a plan, and its summary, read off its decisions and its table."""

from ...rewrites.decide.op_layouts import boundary
from ..inputs.names import Patterns
from .annotations import unapplied
from .collectives import counts
from .conflicts import warning
from .state import State

MOST = 8
"""The most tactics that a plan's `repr` shows."""


def brief(plan: State) -> str:
    """The `repr` of a plan: its function, mesh and tactics; its counts, if they are already computed.

    Computes nothing: the `repr` of a plan must be cheap.
    """
    lines = [f"Plan of {plan.source.traced.name} on {plan.mesh}: {len(plan.actions) or 'no'} tactics"]
    lines += [f"  {plan.cited(number):.120}" for number in range(len(plan.actions))[:MOST]]
    if (more := len(plan.actions) - MOST) > 0:
        lines.append(f"  ... and {more} more")
    lines += [line for line in (unapplied(plan), warning(plan)) if line is not None]
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
