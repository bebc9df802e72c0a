"""Bundles: what changes in a redistribution over many axes, as a redistribution of its own.

Axes that both ends keep side by side move as one axis. Dims that are the same in both ends take no part, nor do their axes:

    [a*b*64, 8, c*4] to [256, a*b*2, c*4], on a=2, b=2, c=8   -->   [ab*64, 8] to [256, ab*2] of rows of 4, on ab=4

Nor do axes at the ends of a dim that stay there while others change between them:

    [s*a*t*4, 8] to [s*2*t*4, a*4]   -->   [a, 8] to [2, a*4] of rows of 4

A search over many axes is one over few bundles, and redistributions that differ only in names, or in what does not change,
are searched once. With few axes the search takes bundles apart all the same, because an axis can change places with another
one of its own size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from ...dialects.layouts import Layout, Pending
from ...dialects.ranges.algebra import Devices, Place, major_to_minor
from ...dialects.ranges.factor import Factor
from .collective_terms import Axes
from .steps import DimPart, Path, Step, devices, side_by_side


class _Spot(NamedTuple):
    """Where an axis is in a layout: on a dim, with its stride and span; pending, with its monoid; or nowhere."""

    at: int | str | None = None
    stride: int = 0
    span: int = 0

    def is_beside(self, minor: _Spot) -> bool:
        """Whether the other axis is the next one inward on the same dim, or both are pending or nowhere."""
        return self.at == minor.at and self.stride == minor.span


class Bundles:
    """A redistribution from one layout to another, rewritten as one from `source` to `target`, whose axes are the bundles."""

    def __init__(self, source: Layout, target: Layout, itemsize: int) -> None:
        self._whole = source
        local = source.local_shape

        def looks(part: DimPart) -> tuple[int, list[list[tuple[int, int]]]]:
            """A key that describes a part without the names of its axes."""
            return part.extent, [
                [(each.stride, each.size) for each in _factors_inside(layout, part)] for layout in (source, target)
            ]

        dims = [dim for dim in range(source.rank) if source.dims[dim] is not target.dims[dim] or 0 in local]
        self._parts = sorted((_part(source, target, dim) for dim in dims), key=looks)
        here, there = (_spots(layout, self._parts) for layout in (source, target))
        rows = prod(part.rows for part in self._parts)
        self.itemsize = itemsize * rows * prod(size for dim, size in enumerate(local) if dim not in dims)
        self._staying = [each for each in source.factors if each[1].axis not in here]
        moving = major_to_minor({*here, *there})
        spots = {axis: (here.get(axis, _Spot()), there.get(axis, _Spot())) for axis in moving}
        bundled = _bundled(spots)
        grid = Devices(tuple((f"bundle{at}", devices(each)) for at, each in enumerate(bundled)))
        self._axes: dict[Place, Axes] = dict(zip(grid.places, bundled, strict=True))
        self.source, self.target = self._joined(here), self._joined(there)
        self.are_fewer = len(self._axes) < len(moving) + len(self._staying) or len(self._parts) < source.rank
        """Whether several axes move as one, or some dims take no part."""
        self.are_alike = len({axis.size for axis in self._axes}) <= 1
        """Whether all bundles have the same size."""

    def _joined(self, spots: Mapping[Place, _Spot]) -> Layout:
        """One of the two layouts, reduced to the dims that change, on bundles instead of axes."""
        placed, pending = list[tuple[int, Factor]](), list[Pending]()
        for name, axes in self._axes.items():
            spot = spots.get(axes[-1], _Spot())
            if isinstance(spot.at, int):
                placed.append((spot.at, Factor(name, spot.stride)))
            elif spot.at is not None:
                pending.append(Pending(spot.at, name))
        return Layout.of([part.extent for part in self._parts], placed, pending)

    def apart(self, way: Path) -> Path:
        """Turns steps over bundles back into steps over the axes in them."""
        return Path.of(*map(self._apart, way.steps))

    def _apart(self, step: Step) -> Step:
        axes = tuple(axis for bundle in step.axes for axis in self._axes[bundle])
        return replace(step.renamed(axes, self._parts), before=self._layout(step.before), after=self._layout(step.after))

    def _layout(self, layout: Layout) -> Layout:
        shape, factors = [*self._whole.global_shape], [*self._staying]
        for part, extent in zip(self._parts, layout.global_shape, strict=True):
            shape[part.dim] += (extent - part.extent) * part.minor
        for at, factor in layout.factors:
            part = self._parts[at]
            factors += [(part.dim, each) for each in side_by_side(self._axes[factor.axis], factor.stride * part.minor)]
        return Layout.of(shape, factors)


def _part(source: Layout, target: Layout, dim: int) -> DimPart:
    """The part of a dim that changes: without the axes at either end that stay. The whole dim, if anything is padded.

    Those at the outer end stay out only if each device has one block there, so that the rest is a run of its elements.
    """
    extent = source.global_shape[dim]
    if not extent or source.is_padded or target.is_padded:
        return DimPart(dim, extent)
    here, there = source.at(dim), target.at(dim)
    staying, moving = [each for each in here if each in there], {*here} ^ {*there}
    inner = [each for each in staying if all(each.span <= other.stride for other in moving)]
    outer = [each for each in staying if all(each.stride >= other.span for other in moving)]
    top = min((each.stride for each in outer), default=extent)
    if extent // top != prod(each.size for each in outer):
        top = extent
    minor = max((each.span for each in inner), default=1)
    return DimPart(dim, top // minor, minor, minor // prod(each.size for each in inner))


def _factors_inside(layout: Layout, part: DimPart) -> list[Factor]:
    """The factors of a layout that lie within a part, with strides counted in the part."""
    factors = layout.at(part.dim)
    if part.extent == layout.global_shape[part.dim]:
        return factors
    top = part.extent * part.minor
    return [each.at(each.stride // part.minor) for each in factors if part.minor <= each.stride < top]


def _bundled(spots: Mapping[Place, tuple[_Spot, _Spot]]) -> list[Axes]:
    """Groups the axes that stay side by side at both ends into bundles, major to minor."""
    bundles: list[list[Place]] = []
    for axis in sorted(spots, key=lambda axis: [(str(spot.at), -spot.stride) for spot in spots[axis]]):
        last = spots[bundles[-1][-1]] if bundles else None
        if last is not None and all(map(_Spot.is_beside, last, spots[axis])):
            bundles[-1].append(axis)
        else:
            bundles.append([axis])
    return [*map(tuple, bundles)]


def _spots(layout: Layout, parts: Sequence[DimPart]) -> dict[Place, _Spot]:
    placed = {
        factor.axis: _Spot(at, factor.stride, factor.span)
        for at, part in enumerate(parts)
        for factor in _factors_inside(layout, part)
    }
    return placed | {each.axis: _Spot(each.monoid) for each in layout.pending}
