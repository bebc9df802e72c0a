"""The layouts of a plan, read off its decisions and its table."""

from collections.abc import Iterable, Sequence

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Loop
from ...dialects.ranges.factor import Factor, fit
from ...rewrites.decide.device_sets import coordinates
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
        layout = home = placements.homes[value]
        if outer:
            # There a padded dim is whole, since no array has parts of different sizes, and so is one that lies on a loop.
            # The plan shows how they are placed.
            at, shape = boundary(placements, value), home.global_shape
            inside = [
                (dim, factor)
                for dim, factor in home.factors
                if home.padded_shape[dim] != shape[dim] or isinstance(factor.place, Loop)
            ]
            layout = Layout.of(shape, _together(shape, at, inside), at.pending) if inside else at
        layout = layout.joined(plan.mesh.places)
        found[name] = plan.layout_text(value, layout, () if outer else placements.sources.get(value, ()))
    return TextTable(found, ("value", "layout"))


def layouts_on_sets(plan: State, values: Patterns = "**") -> TextTable:
    """The layouts, each with the device set on which the value is, if there are several."""
    found = layouts(plan, values)
    if (sets := plan.table.sets) is None:
        return found
    numbers = plan.source.addresses.find(values)
    on = {name: f"{text} on {coordinates(sets.of(numbers[name]))}" for name, text in found.items()}
    return TextTable(on, found.columns)


def _together(shape: Sequence[int], at: Layout, inside: Sequence[tuple[int, Factor]]) -> Iterable[tuple[int, Factor]]:
    """The factors at the boundary and those inside; of a dim where these are not parts of each other, the first alone."""
    found = dict.fromkeys(at.factors)
    for dim in range(len(shape)):
        more = [each for each in inside if each[0] == dim]
        if fit(shape[dim], [factor for _, factor in dict.fromkeys([*((dim, each) for each in at.at(dim)), *more])]):
            found |= dict.fromkeys(more)
    return found
