"""Layouts as sets of tiles, the short form in which the tests write them: an axis, its dim, and its stride there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from partita.dialects.layouts import Layout, Pending
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.factor import Factor, fit, is_padded
from partita.dialects.ranges.terms import Loop, Place
from partita.dialects.ranges.text import parse_range

Tile = tuple[str, int, int]
Tiles = tuple[Tile, ...]


def layout(shape: Sequence[int], tiles: Iterable[Tile], mesh: Mesh, pending: Iterable[Pending] = ()) -> Layout:
    return Layout.of(shape, factors_of(tiles, mesh), pending)


def factors_of(tiles: Iterable[Tile], mesh: Mesh) -> list[tuple[int, Factor]]:
    return [(dim, Factor(cast(Place, parse_range(axis, mesh)), stride)) for axis, dim, stride in tiles]


def tiles_of(layout: Layout) -> Tiles:
    return tuple((str(factor.place), dim, factor.stride) for dim, factor in layout.factors)


def fits(extent: int, factors: Iterable[tuple[int, int]]) -> bool:
    """Whether (stride, size) factors tile an extent together."""
    made = [Factor(Loop(f"t{n}", size), stride) for n, (stride, size) in enumerate(factors)]
    return not is_padded(extent, made) and fit(extent, made)
