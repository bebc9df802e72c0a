"""A redistribution reaches its target through valid layouts, and never costs more than replicating the value."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from lockstep import distribute, run, summands
from tiles import Tile, Tiles, fits, layout, tiles_of

from partita.dialects.layouts import Pending
from partita.dialects.mesh import Mesh
from partita.rewrites.redistribute.kinds.local import Slice
from partita.rewrites.redistribute.kinds.pieces import Pieces
from partita.rewrites.redistribute.search import Path, path
from partita.rewrites.redistribute.steps import Bytes, devices, share

MESH = Mesh(a=4, b=2)
CUBE = Mesh(a=4, b=4, c=2)


@pytest.mark.parametrize(
    ("mesh", "source", "pending", "target", "steps", "received"),
    [
        (MESH, [("a", 0, 128)], [], [], "all_gather over (a) 0@128", 786432),
        (MESH, [], [], [("a", 0, 128), ("b", 0, 64)], "slice over (a, b) 0@64", 0),
        (MESH, [("a", 0, 128), ("b", 0, 64)], [], [], "all_gather over (a, b) 0@64", 917504),
        (MESH, [("a", 0, 128)], [], [("a", 1, 128)], "all_to_all over (a) 0@128 to 1@128", 196608),
        (MESH, [("b", 0, 256), ("a", 0, 64)], [], [("b", 1, 256), ("a", 1, 64)], "all_to_all over (b, a) 0@64 to 1@64", 114688),
        (MESH, [], ["a", "b"], [], "all_reduce add over (a, b)", 1835008),
        (MESH, [], ["a"], [("a", 0, 128)], "reduce_scatter add over (a) 0@128", 786432),
        (MESH, [], ["b"], [("a", 0, 128)], "slice over (a) 0@128; all_reduce add over (b)", 262144),
        (MESH, [("a", 0, 128)], ["b"], [("b", 1, 256)], "reduce_scatter add over (b) 1@256; all_gather over (a) 0@128", 524288),
        (MESH, [("a", 0, 128)], [], [("b", 0, 256), ("a", 0, 64)], "slice over (b) 0@64; permute over (a, b)", 131072),
        (CUBE, [("a", 0, 128)], [], [("b", 0, 128)], "permute over (a, b)", 262144),
        (CUBE, [("a", 0, 128)], [], [("b", 0, 128), ("a", 1, 128)], "slice over (b) 1@128; permute over (a, b)", 65536),
        (CUBE, [("a", 0, 128), ("b", 1, 128)], [], [("b", 0, 128), ("a", 1, 128)], "permute over (a, b)", 65536),
        (MESH, [("a", 0, 128)], [], [("a", 0, 1)], "all_to_all over (a) 0@128 to 0@1", 196608),
    ],
)  # fmt: skip
def test_a_512_by_512_array_is_redistributed(
    mesh: Mesh, source: list[Tile], pending: list[str], target: list[Tile], steps: str, received: int
) -> None:
    sums = tuple(Pending("add", mesh.place(axis)) for axis in pending)
    found = path(layout((512, 512), source, mesh, sums), layout((512, 512), target, mesh), 4)
    assert str(found) == steps
    assert found.bytes == received


def test_an_axis_of_one_device_does_nothing() -> None:
    mesh = Mesh(a=1, b=1)
    assert path(layout((8,), [("a", 0, 8)], mesh, [Pending("add", mesh.place("b"))]), layout((8,), [], mesh), 4).steps == ()


def test_only_sums_are_scattered() -> None:
    found = path(layout((8, 8), [], MESH, [Pending("max", MESH.place("a"))]), layout((8, 8), [("a", 0, 2)], MESH), 4)
    assert [step.kind for step in found.steps] == ["all_reduce", "slice"]


def test_coprime_axes_are_exchanged_without_a_full_gather() -> None:
    """arXiv 2112.01075: `[x*3] -> [y*2]` on 6 elements, mesh x=2, y=3."""
    mesh = Mesh(x=2, y=3)
    found = path(layout((6,), [("x", 0, 3)], mesh), layout((6,), [("y", 0, 2)], mesh), 4)
    assert [step.kind for step in found.steps] == ["slice", "permute", "all_gather"]


def test_two_dimensions_of_two_axes_each_are_exchanged_in_place() -> None:
    """arXiv 2112.01075: `[x1*x2*3, y1*y2*2] -> [y1*y2*2, x1*x2*3]` on 12 x 12: the local size is never above 6."""
    source = (("x1", 0, 6), ("x2", 0, 3), ("y1", 1, 4), ("y2", 1, 2))
    target = (("y1", 0, 4), ("y2", 0, 2), ("x1", 1, 6), ("x2", 1, 3))
    mesh = Mesh(x1=2, x2=2, y1=3, y2=2)
    found = path(layout((12, 12), source, mesh), layout((12, 12), target, mesh), 1)
    assert all(prod(step.after.local_shape) <= 6 for step in found.steps)
    check((12, 12), source, [], target, mesh)


def test_the_same_question_is_answered_from_memory() -> None:
    question = layout((64, 64), [("a", 0, 16)], MESH), layout((64, 64), [("a", 1, 16)], MESH), 4
    assert path(*question) is path(*question)


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], Tiles, list[tuple[str, str]], Tiles, Mesh]:
    sizes = draw(st.lists(st.sampled_from([2, 2, 3, 4]), min_size=1, max_size=3))
    mesh = Mesh(dict(zip("abc", sizes, strict=False)))
    shape = tuple(draw(st.lists(st.sampled_from([4, 6, 8, 12, 24]), min_size=1, max_size=2)))
    pending = draw(st.lists(st.sampled_from(sorted(mesh)), max_size=2, unique=True))
    monoid = draw(st.sampled_from(["add", "add", "max"]))
    source = draw(layouts(mesh, shape, without=pending))
    return shape, source, [(monoid, axis) for axis in pending], draw(layouts(mesh, shape)), mesh


@st.composite
def layouts(draw: st.DrawFn, mesh: Mesh, shape: tuple[int, ...], without: list[str] | None = None) -> Tiles:
    tiles: list[Tile] = []
    for axis in draw(st.permutations(sorted(set(mesh) - set(without or ())))):
        places = [
            (axis, dim, stride)
            for dim, extent in enumerate(shape)
            for stride in range(1, extent + 1)
            if fits(extent, [(s, mesh[a]) for a, d, s in [*tiles, (axis, dim, stride)] if d == dim])
        ]
        if places and draw(st.booleans()):
            tiles.append(draw(st.sampled_from(places)))
    return tuple(tiles)


@settings(max_examples=150)
@given(cases(), st.integers(0, 99))
def test_every_redistribution_gives_each_device_its_part(
    case: tuple[tuple[int, ...], Tiles, list[tuple[str, str]], Tiles, Mesh], seed: int
) -> None:
    check(*case, seed=seed)


@st.composite
def cases_of_many_axes(draw: st.DrawFn) -> tuple[tuple[int, ...], Tiles, list[tuple[str, str]], Tiles, Mesh]:
    """Axes of 2 devices, side by side on some dims, of which some stay as they are; some axes are nowhere, or pending."""
    mesh, shape = Mesh(dict.fromkeys("abcdef", 2)), (8, 4, 8, 2)
    pending = draw(st.lists(st.sampled_from("abcdef"), max_size=2, unique=True))
    source = draw(side_by_side(mesh, shape, pending))
    kept = tuple(tile for tile in source if tile[1] in draw(st.sets(st.sampled_from(range(len(shape))))))
    target = draw(side_by_side(mesh, shape, [axis for axis, *_ in kept], kept))
    return shape, source, [("add", axis) for axis in pending], target, mesh


@st.composite
def side_by_side(draw: st.DrawFn, mesh: Mesh, shape: tuple[int, ...], without: list[str], kept: Tiles = ()) -> Tiles:
    left, tiles = list(shape), [*kept]
    for _, dim, _ in kept:
        left[dim] = 1
    for axis in draw(st.permutations(sorted(set(mesh) - set(without)))):
        dims = [dim for dim, extent in enumerate(left) if extent > 1]
        if dims and draw(st.booleans()):
            dim = draw(st.sampled_from(dims))
            left[dim] //= 2
            tiles.append((axis, dim, left[dim]))
    return tuple(tiles)


@settings(max_examples=50)
@given(cases_of_many_axes(), st.integers(0, 99))
def test_every_redistribution_over_many_axes_gives_each_device_its_part(
    case: tuple[tuple[int, ...], Tiles, list[tuple[str, str]], Tiles, Mesh], seed: int
) -> None:
    check(*case, seed=seed)


def check(
    shape: tuple[int, ...],
    source: Tiles,
    pending: list[tuple[str, str]],
    target: Tiles,
    mesh: Mesh,
    seed: int = 0,
) -> None:
    """Runs the steps on all devices in lockstep, and checks the promises of the path."""
    sums = tuple(Pending(monoid, mesh.place(axis)) for monoid, axis in pending)
    found = path(layout(shape, source, mesh, sums), layout(shape, target, mesh), 8)
    whole = np.random.default_rng(seed).integers(0, 1000, shape)
    value = summands(whole, source, pending, mesh, seed)
    paid = 0
    for step in found.steps:
        before = prod(step.before.local_shape)
        value = run(step, value, mesh)
        after = prod(step.after.local_shape)
        assert next(iter(value.values())).size == after
        assert step.after.global_shape == shape
        received = step.received(8 * max(before, after), devices(step.axes))
        paid += sum(step.parts) if isinstance(step, Pieces) else received
    expected = distribute(whole, target, mesh)
    for device, part in value.items():
        np.testing.assert_array_equal(part, expected[device])
    assert found.bytes == pytest.approx(paid)
    assert found.bytes <= naive(shape, source, pending, target, mesh) + 1e-9
    assert slices_first(found, shape, mesh)
    limit = max(local(shape, source, mesh), local(shape, target, mesh))
    assert all(prod(step.after.local_shape) <= limit for step in found.steps)


def local(shape: tuple[int, ...], tiles: Tiles, mesh: Mesh) -> int:
    return prod(shape) // prod(mesh[axis] for axis, _, _ in tiles)


def valid(shape: tuple[int, ...], tiles: Tiles, dim: int, mesh: Mesh) -> bool:
    return fits(shape[dim], [(stride, mesh[axis]) for axis, on, stride in tiles if on == dim])


def naive(shape: tuple[int, ...], source: Tiles, pending: list[tuple[str, str]], target: Tiles, mesh: Mesh) -> Bytes:
    """The bytes of summing, replicating and slicing again, with one all_reduce over all axes."""
    start = 8 * local(shape, source, mesh)
    whole = start * prod(mesh[tile[0]] for tile in source if tile not in target)
    return share(start, prod(mesh[axis] for _, axis in pending), times=2) + whole - start


def slices_first(found: Path, shape: tuple[int, ...], mesh: Mesh) -> bool:
    """Whether a slice comes after a collective only if that uses its axis, or if its tile does not fit before."""
    for first, then in pairwise(found.steps):
        if isinstance(then, Slice) and first.communicates and not set(then.axes) & set(first.axes):
            cut = (tile for tile in tiles_of(then.after) if tile[0] in then.names)
            tiles = (*tiles_of(first.before), *cut)
            if valid(shape, tiles, then.dim, mesh):
                return False
    return True
