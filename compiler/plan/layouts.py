"""The layouts of a plan, read off its decisions and its table."""

from ...dialects.layouts import Layout
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
        layout = home = placements.home(value)
        if outer:
            # There a padded dim is whole, since no array has parts of different sizes; the plan shows how it is placed.
            at, shape = boundary(placements, value), home.global_shape
            padded = [(dim, factor) for dim, factor in home.factors if home.padded_shape[dim] != shape[dim]]
            layout = Layout.of(shape, [*at.factors, *padded], at.pending) if padded else at
        layout = layout.joined(plan.mesh.places)
        found[name] = plan.layout_text(value, layout, () if outer else placements.sources.get(value, ()))
    return TextTable(found, ("value", "layout"))
