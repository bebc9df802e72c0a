"""The layouts of a plan's values, with what is needed to draw each: the placed factors of every dim.

f32[data*128, 256]{+model}   -->   dims [512 in blocks of 128 over data, 256 whole], sum pending over model
"""

from math import prod
from typing import NamedTuple

from ...dialects.ground.dtypes import itemsize
from ...dialects.ground.errors import Error
from ...dialects.layouts import Layout
from ..page.string_table import Json, Pool
from ..plan.state import State

MOST_WINDOWS = 64
"""The most windows of a dim that the page lists."""


class Kept(NamedTuple):
    """The layout of an array, with its dtype."""

    layout: Layout
    dtype: str


def layouts_pool() -> Pool[Kept]:
    return Pool(_layout)


def layout_numbers(plan: State, pool: Pool[Kept]) -> list[int]:
    """The number of each value's layout in the pool, pending sums included."""
    placements, program = plan.decisions.placements, plan.source.program
    layouts = [*placements.homes]
    for value in placements.sources:
        layouts[value] = placements.with_sums(value)
    # Thousands of values share a layout, which is looked up once.
    every = [*zip(layouts, [type.dtype for type in program.types], strict=True)]
    numbers = {each: pool.number(Kept(*each)) for each in dict.fromkeys(every)}
    return [numbers[each] for each in every]


def changed_layouts(before: list[int], after: list[int]) -> Json:
    """The values whose layouts change between two steps, with their new layouts."""
    found = [(value, new) for value, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    return {"values": [value for value, _ in found], "layouts": [new for _, new in found]}


def _layout(kept: Kept) -> Json:
    layout, dtype = kept
    local = layout.local_shape
    return {
        "text": layout.text(dtype),
        "local": list(local),
        "bytes": itemsize(dtype) * prod(local),
        "dims": [_dim(layout, dim, extent) for dim, extent in enumerate(layout.global_shape)],
        "pending": [{"text": str(each), "axis": str(each.axis)} for each in layout.pending],
    }


def _dim(layout: Layout, dim: int, extent: int) -> Json:
    try:
        factors, window = layout.at(dim), layout.windows(dim)
    except Error:
        return {"extent": extent, "text": str(layout.dims[dim]), "factors": []}
    found: Json = {
        "extent": extent,
        "text": str(layout.dims[dim]),
        "factors": [[str(each.place), each.size, abs(each.stride)] for each in factors],
    }
    if (padded := layout.padded_shape[dim]) != extent:
        found["padded"] = padded
    if window is not None and window.size <= MOST_WINDOWS:
        # What each device along the dim holds: from which element to which.
        held = (window.window(iteration, extent) for iteration in range(window.size))
        found["windows"] = [[each.start, each.stop] for each in held]
    return found
