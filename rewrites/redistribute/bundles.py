"""Bundles: axes that both ends of a redistribution keep side by side, which move as one axis.

    [a*b*64, 8] to [256, a*b*2], on a=2, b=2   -->   [ab*64, 8] to [256, ab*2], on ab=4

A search over many axes is one over few bundles. With few axes it takes them apart all the same, because an axis can change
places with another one of its own size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from ...dialects.layouts import Layout, Pending
from ...dialects.mesh import Mesh
from ...dialects.ranges.factor import Factor, place_of
from .collective_terms import Axes
from .steps import Step, in_order


class _Spot(NamedTuple):
    """Where an axis is in a layout: on a dim, with its factor's stride and span; pending, with a monoid; or nowhere."""

    at: int | str | None = None
    stride: int = 0
    span: int = 0

    def is_beside(self, minor: _Spot) -> bool:
        """Whether another axis is the next one inward, or both are pending or nowhere."""
        return self.at == minor.at and self.stride == minor.span


class Bundles:
    """The bundles of two layouts: `mesh` has an axis for each."""

    def __init__(self, source: Layout, target: Layout, mesh: Mesh) -> None:
        self._mesh = mesh
        self.axes: dict[str, Axes] = {f"bundle{at}": axes for at, axes in enumerate(_bundled(source, target, mesh))}
        self.mesh = Mesh({name: prod(mesh[axis] for axis in axes) for name, axes in self.axes.items()})

    @property
    def joins(self) -> bool:
        """Whether any axes move as one."""
        return any(len(axes) > 1 for axes in self.axes.values())

    def joined(self, layout: Layout) -> Layout:
        """One of the two layouts, placed on bundles."""
        on = {(dim, factor.name): factor for dim, factor in layout.factors(self._mesh)}
        monoids = {each.axis: each.monoid for each in layout.pending}
        placed = [
            (dim, Factor.of(name, on[dim, axes[-1]].stride, self.mesh))
            for dim in range(layout.rank)
            for name, axes in self.axes.items()
            if (dim, axes[-1]) in on
        ]
        pending = [Pending(monoids[axes[0]], name) for name, axes in self.axes.items() if axes[0] in monoids]
        return Layout.of(layout.global_shape(self._mesh), placed, pending)

    def apart(self, steps: Iterable[Step]) -> tuple[Step, ...]:
        """Steps over bundles as steps over the axes in them."""
        return tuple(
            replace(step, axes=self._names(step.axes), before=self._layout(step.before), after=self._layout(step.after))
            for step in steps
        )

    def _names(self, bundles: Sequence[str]) -> Axes:
        return tuple(axis for bundle in bundles for axis in self.axes[bundle])

    def _layout(self, layout: Layout) -> Layout:
        factors: list[tuple[int, Factor]] = []
        for dim, factor in layout.factors(self.mesh):
            stride = factor.stride
            for axis in reversed(self.axes[factor.name]):
                factors.append((dim, Factor(place_of(axis), self._mesh[axis], stride)))
                stride *= self._mesh[axis]
        return Layout.of(layout.global_shape(self.mesh), factors)


def _bundled(source: Layout, target: Layout, mesh: Mesh) -> list[Axes]:
    """The axes that either layout names, those that stay side by side together, major to minor."""
    here, there = (_spots(layout, mesh) for layout in (source, target))
    spots = {axis: (here.get(axis, _Spot()), there.get(axis, _Spot())) for axis in in_order({*here, *there}, mesh)}
    bundles: list[list[str]] = []
    for axis in sorted(spots, key=lambda axis: [(str(spot.at), -spot.stride) for spot in spots[axis]]):
        last = spots[bundles[-1][-1]] if bundles else None
        if last is not None and all(map(_Spot.is_beside, last, spots[axis])):
            bundles[-1].append(axis)
        else:
            bundles.append([axis])
    return sorted(map(tuple, bundles), key=lambda axes: min(map([*mesh].index, axes)))


def _spots(layout: Layout, mesh: Mesh) -> dict[str, _Spot]:
    placed = {factor.name: _Spot(dim, factor.stride, factor.span) for dim, factor in layout.factors(mesh)}
    return placed | {each.axis: _Spot(each.monoid) for each in layout.pending}
