"""The layouts of a plan, read off its decisions and its table."""

from ...rewrites.decide.placements import boundary
from ..inputs.names import Patterns
from ..views.listing import TextTable
from .state import State


def layouts(plan: State, values: Patterns = "**") -> TextTable:
    addresses, placements = plan.source.addresses, plan.decisions.placements
    result_values = set(addresses.results.values())
    found: dict[str, str] = {}
    for name, value in addresses.find(values).items():
        outer = name in addresses.arguments or (name in addresses.results and value in result_values)
        # At the boundary a padded dim is whole, since no array has parts of different sizes; the plan shows how it is placed.
        home = placements.home(value)
        layout = boundary(placements, value) if outer and not home.is_padded else home
        layout = layout.joined(plan.mesh.places)
        found[name] = plan.layout_text(value, layout, () if outer else placements.sources.get(value, ()))
    return TextTable(found, ("value", "layout"))
