"""The exchanges of rows and units as laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...dialects.ground.errors import Error
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Axis
from ...dialects.ranges.factor import Factor, windowed
from ..redistribute.kinds.halo import Halo
from .local_arrays import Local, as_functions
from .steps import element, held, made, same
from .symbols import Law, Nothing, Pick
from .values import Number

Rows = Callable[[Pick, str, Axis, Number], Factor | None]
"""Picks how a dim of an extent lies on an axis."""


def suppose(truth: object) -> None:
    if not truth:
        raise Nothing


def whole(pick: Pick, name: str, axis: Axis, extent: Number) -> None:
    return None


def blocks(pick: Pick, name: str, axis: Axis, extent: Number) -> Factor:
    """Equal blocks that reach to the end of the dim or beyond it."""
    block = pick(f"{name} block", 1)
    suppose(block * axis.size >= extent)
    return Factor(axis, block)


def windows(direction: int, stride: str = "") -> Rows:
    def windows(pick: Pick, name: str, axis: Axis, extent: Number) -> Factor:
        """Windows of any stride, and of any rows that one of them has at least."""
        apart = pick(stride or f"{name} stride", 1) * direction
        before, width = pick(f"{name} before", -8 if type(pick) is Pick else -(1 << 40)), pick(f"{name} width", 1)
        factor = windowed(extent, Factor(axis, apart), before, width - before - apart)
        return factor

    return windows


def halo(count: int, device: int, here: Rows, there: Rows) -> Law:
    """The law of a halo on so many devices, of what this one has in the end."""

    def law(pick: Pick) -> bool:
        with as_functions():
            axis, extent = Axis("a", count), pick("extent", 1)
            ends = here(pick, "before", axis, extent), there(pick, "after", axis, extent)
            if ends[0] is not None and ends[0].has_halo:
                suppose(ends[0].covers(extent))
            if ends[0] is not None:
                suppose(not (ends[0].stride == ends[1].stride and ends[0].before == ends[1].before and ends[0].after == ends[1].after))
            try:
                have, want = (Layout.of((extent,), [(0, each)] if each is not None else []) for each in ends)
            except Error:
                raise Nothing from None
            step = Halo(before=have, after=want, dim=0, unit=4, axes=(axis,))
            got, index = made(step, held(have)), (pick("row", 0, want.local_shape[0]),)
            return bool(got.shape == want.local_shape) and same(pick, got.at({axis: device}, index), element(want, {axis: device}, index))

    return law
