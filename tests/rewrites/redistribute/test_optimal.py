"""A redistribution receives what a device lacks, and no more; with a fold, no more than any sequence of whole steps."""

from __future__ import annotations

from functools import cache
from math import prod
from random import Random

import numpy as np
import pytest
import shortest_ways
from hypothesis import given, settings, strategies as st
from lockstep import run_steps
from shortest_ways import Spot, State, Ways, all_layouts, best, elements, lack
from tiles import Tile, layout

from partita.dialects.layouts import Layout, Pending
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.factor import Factor
from partita.dialects.reference.lockstep import distribute
from partita.rewrites.redistribute import search, search_space
from partita.rewrites.redistribute.search import Path, path

ways = cache(Ways)


def check(source: Layout, target: Layout, mesh: Mesh) -> Path:
    """Every device gets what it is to hold, where that is not padding."""
    way, shape = path(source, target, 4), source.global_shape
    whole = np.arange(prod(shape), dtype=np.int32).reshape(shape)
    wanted, found = distribute(whole, target, mesh.size), run_steps(way.steps, distribute(whole, source, mesh.size), mesh)
    for device, (got, expected) in enumerate(zip(found, wanted, strict=True)):
        inside = tuple(slice(len(elements(dim, mesh, device))) for dim in target.dims)
        np.testing.assert_array_equal(got[inside], expected[inside])
    return way


@pytest.mark.parametrize(
    ("mesh", "shape"),
    [
        (Mesh(a=2, b=3), (12,)),
        (Mesh(a=2, b=3), (4, 6)),
        (Mesh(a=2, b=2, c=2), (4, 4)),
        (Mesh(a=2, b=2), (2, 2, 2)),
        (Mesh(a=4), (16, 8)),
        (Mesh(a=2, b=4), (8, 4)),
        (Mesh(a=2, b=4).refine(b=(2, 2)), (8, 4)),
    ],
)
def test_every_two_layouts_of_a_small_array(mesh: Mesh, shape: tuple[int, ...]) -> None:
    assert shortest_ways.compare(shape, mesh, most=60) > 30


@given(st.data())
def test_every_device_receives_what_it_lacks(data: st.DataObject) -> None:
    """On axes that may have to be split, too: of 4 devices, whole or as two sub-axes."""
    mesh, shape = data.draw(st.sampled_from(shortest_ways.MESHES)), data.draw(st.sampled_from(shortest_ways.SHAPES))
    ends = st.sampled_from(all_layouts(shape, mesh))
    source, target = data.draw(ends), data.draw(ends)
    assert best(source, target, mesh)
    check(source, target, mesh)


@st.composite
def questions(draw: st.DrawFn) -> tuple[State, State, tuple[int, ...], Mesh]:
    mesh, shape = draw(st.sampled_from(shortest_ways.WHOLE)), draw(st.sampled_from(shortest_ways.SHAPES))
    layouts = st.sampled_from(ways(shape, mesh).layouts())
    monoid: list[Spot] = [None, draw(st.sampled_from(["add", "max"]))]
    source = tuple(draw(st.sampled_from(monoid)) if spot is None else spot for spot in draw(layouts))
    return source, draw(layouts), shape, mesh


@settings(max_examples=150)
@given(questions())
def test_two_layouts_of_any_array(question: tuple[State, State, tuple[int, ...], Mesh]) -> None:
    source, target, shape, mesh = question
    grows, received = shortest_ways.found(*question)
    most = ways(shape, mesh).bytes(source, target)
    assert (grows, received) <= most


@pytest.mark.parametrize(
    ("mesh", "shape"),
    [
        (Mesh(a=2, b=3), (9,)),
        (Mesh(a=2, b=2), (3, 5)),
        (Mesh(a=2, b=3), (5, 7)),
        (Mesh(a=2, b=3), (17, 4)),
        (Mesh(a=2, b=2, c=2), (9,)),
        (Mesh(a=2, b=2, c=2), (30,)),
        (Mesh(a=4, b=2), (7, 6)),
        (Mesh(a=2, b=2), (3, 5, 3)),
        (Mesh(a=2, b=3), (3, 2, 5)),
    ],
)
def test_padded_layouts(mesh: Mesh, shape: tuple[int, ...]) -> None:
    """A way receives no more than pieces of whole blocks, and no more than whole steps do."""
    steps, random = shortest_ways.Padded(shape, mesh), Random(1)
    for source in random.sample(steps.layouts, min(6, len(steps.layouts))):
        least = steps.least(source)
        for number, target in enumerate(random.sample(steps.layouts, min(10, len(steps.layouts)))):
            received, most = path(source, target, 1).bytes, shortest_ways.busiest(source, target, mesh)
            assert lack(source, target, mesh) <= received <= min(most, least[target])
            if number == 0:
                check(source, target, mesh)


def test_a_way_may_lead_through_a_dim_that_neither_end_tiles() -> None:
    """Two of six devices hold only padding. Part of the 17 rows moves to them, which are padded to 18 for it."""
    mesh = Mesh(a=2, b=3)
    source = Layout.of((17, 4), [(1, Factor(mesh.place("b"), 2)), (1, Factor(mesh.place("a"), 1))])
    assert not shortest_ways.Padded((17, 4), mesh).elements(source).any(1).all()
    assert check(source, Layout.of((17, 4), [(1, Factor(mesh.place("a"), 2))]), mesh).bytes == 4 * 42


def test_a_sum_goes_to_the_only_device_that_has_rows() -> None:
    """One row in blocks of eight: the other devices have padding."""
    mesh = Mesh(a=8)
    source = Layout.of((1, 4), pending=[Pending("add", mesh.place("a"))])
    assert path(source, Layout.of((1, 4), [(0, Factor(mesh.place("a"), 8))]), 4).bytes == 28


def test_a_sum_goes_to_a_padded_dim_whose_other_axes_are_no_layout() -> None:
    """Without `a`, blocks of two rows on two devices do not cover nine."""
    mesh = Mesh(a=4, b=2)
    source = Layout.of((9, 8), [(0, Factor(mesh.place("b"), 5))], [Pending("add", mesh.place("a"))])
    target = Layout.of((9, 8), [(0, Factor(mesh.place("a"), 4)), (0, Factor(mesh.place("b"), 2))])
    assert path(source, target, 4).bytes <= 4 * 9 * 8


def test_rows_padded_to_other_lengths_are_not_gathered() -> None:
    """A vocabulary over 8 devices, and then over 4 others: little more than its new part, where gathering it takes 180 MB."""
    mesh, shape = Mesh(a=8, b=4), (50257, 1024)
    source, target = (Layout.of(shape, [(0, Factor(mesh.place(axis), n))]) for axis, n in (("a", 6283), ("b", 12565)))
    found = path(source, target, 4)
    assert found.bytes == 55487488 < 1.1 * 4 * prod(target.local_shape)


def test_padding_is_cut_before_the_next_step() -> None:
    """A device receives two rows of 3, which are 6, and then three rows of 3, which are 9: not four, because one is padding."""
    mesh = Mesh(a=2, b=2)
    source = Layout.of((3, 5), [(0, Factor(mesh.place("a"), 2)), (1, Factor(mesh.place("b"), 3))])
    found = path(source, Layout.of((3, 5), []), 1)
    assert (found.bytes, [step.kind for step in found.steps]) == (6 + 9, ["all_gather", "cut", "all_gather", "cut"])


def test_two_axes_of_a_cube_move_to_one_dim() -> None:
    """`f32[16, 16, 16]`, 2 KiB a device: `[y, -, x] -> [-, x*y, -]` in one all_to_all of seven eighths of it."""
    mesh = Mesh(x=4, y=2)
    source = layout((16, 16, 16), [("y", 0, 8), ("x", 2, 4)], mesh)
    found = path(source, layout((16, 16, 16), [("x", 1, 4), ("y", 1, 2)], mesh), 4)
    assert [step.kind for step in found.steps] == ["all_to_all"]
    assert found.bytes == 1792


def test_a_large_search_ends_with_a_good_way() -> None:
    mesh = Mesh(a=2, b=2, c=2, d=2)
    source = layout((64,) * 4, [("a", 2, 32), ("b", 2, 16), ("d", 3, 32)], mesh)
    target = layout((64,) * 4, [("b", 1, 32), ("c", 3, 32), ("a", 1, 16), ("d", 3, 16)], mesh)
    found = path(source, target, 4)
    assert found.bytes <= 1.75 * 4 * prod(target.local_shape)


def test_an_axis_of_one_device_makes_no_way_longer() -> None:
    found: list[object] = []
    for mesh in (Mesh(a=4, b=2), Mesh(a=4, one=1, b=2)):
        a, b = Factor(mesh.place("a"), 2), Factor(mesh.place("b"), 3)
        found.append(path(Layout.of((7, 6), [(0, a), (1, b)]), Layout.of((7, 6), [(1, a)]), 4).bytes)
    assert found[0] == found[1]


FIVE = Mesh(a0=2, a1=2, a2=2, a3=2, a4=2)


def of_five(*tiles: Tile, pending: str = "") -> Layout:
    return layout((32, 8, 8), tiles, FIVE, [Pending("add", FIVE.place(pending))] if pending else [])


def test_a_sum_over_one_of_five_axes_is_scattered_while_the_others_change_places() -> None:
    """`[a0*16, 8, a3*a2*2]{+a1} -> [a0*a2*8, 8, a4*a1*a3]`."""
    source = of_five(("a0", 0, 16), ("a3", 2, 4), ("a2", 2, 2), pending="a1")
    target = of_five(("a0", 0, 16), ("a2", 0, 8), ("a4", 2, 4), ("a1", 2, 2), ("a3", 2, 1))
    assert check(source, target, FIVE).bytes == 512


def test_a_sum_over_one_of_five_axes_is_scattered_after_a_slice_along_another() -> None:
    """`[a3*a1*a0*4, 8, 8]{+a2} -> [a4*a0*a2*4, a1*4, a3*4]`."""
    source = of_five(("a3", 0, 16), ("a1", 0, 8), ("a0", 0, 4), pending="a2")
    target = of_five(("a4", 0, 16), ("a0", 0, 8), ("a2", 0, 4), ("a1", 1, 4), ("a3", 2, 4))
    assert check(source, target, FIVE).bytes == 512


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ([("a0", 0, 16), ("a1", 0, 8), ("a2", 0, 4)], [("a0", 0, 16), ("a1", 1, 4), ("a2", 0, 4)]),
        ([("a0", 0, 16), ("a1", 0, 8), ("a2", 0, 4), ("a3", 1, 2)], [("a0", 0, 16), ("a1", 1, 4), ("a2", 0, 4), ("a3", 1, 2)]),
        ([("a0", 0, 8), ("a1", 0, 4), ("a2", 0, 2)], [("a0", 0, 8), ("a3", 0, 4), ("a1", 0, 1)]),
        ([("a0", 0, 16), ("a1", 0, 2), ("a2", 1, 4)], [("a0", 0, 16), ("a1", 0, 1), ("a2", 1, 4)]),
        ([("a0", 0, 16), ("a1", 0, 4), ("a2", 0, 1)], [("a0", 0, 16), ("a1", 0, 8), ("a2", 0, 1), ("a3", 2, 1)]),
    ],
)
def test_axes_change_between_others_that_stay_on_a_dim(source: list[Tile], target: list[Tile]) -> None:
    before, after = of_five(*source, ("a4", 2, 4)), of_five(*target, ("a4", 2, 4))
    assert check(before, after, FIVE).bytes == 4 * lack(before, after, FIVE)


def test_sums_along_several_axes_are_scattered_to_their_places_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = search._Search  # pyright: ignore[reportPrivateUsage]

    def searching(source: Layout, target: Layout, itemsize: int) -> object:
        assert source is target, "nothing is left to search"
        return whole(source, target, itemsize)

    monkeypatch.setattr(search, "_Search", searching)
    path.cache_clear()
    pending = [Pending("add", FIVE.place(axis)) for axis in ("a1", "a2", "a3")]
    source = layout((32, 8, 8), [("a0", 0, 16), ("a4", 2, 4)], FIVE, pending)
    target = of_five(("a0", 0, 16), ("a1", 0, 4), ("a2", 1, 4), ("a3", 1, 1), ("a4", 2, 4))
    assert check(source, target, FIVE).bytes == 4 * prod(source.local_shape) * 7 // 8
    path.cache_clear()


def test_axes_of_other_sizes_change_places_where_they_are_small_and_are_gathered_last() -> None:
    """`[a0*a1*a2*a3*a4*1] -> [a2*a0*2*a3*2]`: what a device receives in all is its target part, of which it has nothing."""
    source = of_five(("a0", 0, 16), ("a1", 0, 8), ("a2", 0, 4), ("a3", 0, 2), ("a4", 0, 1))
    target = of_five(("a2", 0, 16), ("a0", 0, 8), ("a3", 0, 2))
    found = check(source, target, FIVE)
    assert found.bytes == 4 * prod(target.local_shape) == 4 * lack(source, target, FIVE)
    assert [step.kind for step in found.steps] == ["permute", "all_gather", "all_gather"]


GAPS: dict[str, tuple[Mesh, tuple[int, ...], list[Tile], str, list[Tile], int]] = {
    "[2*a*4*b*3, 192] -> [e*2*c*d*4, 2*a*48]": (
        Mesh(a=2, b=4, c=4, d=2, e=3),
        (192, 192),
        [("a", 0, 48), ("b", 0, 3)],
        "",
        [("e", 0, 64), ("c", 0, 8), ("d", 0, 4), ("a", 1, 48)],
        4224,
    ),
    "[d*32, a*b*c*2] -> [64, 4*d*3]": (
        Mesh(a=2, b=2, c=3, d=2),
        (64, 24),
        [("d", 0, 32), ("a", 1, 12), ("b", 1, 6), ("c", 1, 2)],
        "",
        [("d", 1, 3)],
        3072,
    ),
    "[4*d*6, 64, a*18] -> [2*b*12, 64, c*9]": (
        Mesh(a=2, b=4, c=4, d=4),
        (96, 64, 36),
        [("d", 0, 6), ("a", 2, 18)],
        "",
        [("b", 0, 12), ("c", 2, 9)],
        62208,
    ),
    "[b*2*d*4, 64]{max a} -> [c*16, d*16]": (
        Mesh(a=4, b=2, c=4, d=4),
        (64, 64),
        [("b", 0, 32), ("d", 0, 4)],
        "a",
        [("c", 0, 16), ("d", 1, 16)],
        1792,
    ),
}
"""The mesh, the shape, the factors and the axis of a maximum, the factors in the end, and the bytes."""


@pytest.mark.parametrize("name", GAPS)
def test_axes_that_have_to_wait_lie_beside_others(name: str) -> None:
    """So few places are tried that these searches end."""
    mesh, shape, source, axis, target, most = GAPS[name]
    before = layout(shape, source, mesh, [Pending("max", mesh.place(axis))] if axis else [])
    assert check(before, layout(shape, target, mesh), mesh).bytes == most


def test_a_search_over_two_axes_on_each_dim_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """`[a*c*1024, b*d*1024] -> [4096, d*2048]`: where axes wait is the same all over a gap, so each gap is one place."""
    visited: list[State] = []
    moves = search_space.Space.moves

    def counted(space: search_space.Space, at: State) -> object:
        visited.append(at)
        return moves(space, at)

    monkeypatch.setattr(search_space.Space, "moves", counted)
    mesh = Mesh(a=2, b=2, c=2, d=2)
    source = layout((4096, 4096), [("a", 0, 2048), ("c", 0, 1024), ("b", 1, 2048), ("d", 1, 1024)], mesh)
    target = layout((4096, 4096), [("d", 1, 2048)], mesh)
    path.cache_clear()
    assert path(source, target, 4).bytes == 4 * prod(target.local_shape)
    assert len(visited) <= 14


def random_layout(random: Random, folds: bool) -> Layout:
    """A layout of `f32[32, 8, 8]` whose axes lie side by side on random dims, some nowhere, or pending if any folds."""
    left, tiles, pending = [32, 8, 8], list[Tile](), list[Pending]()
    for axis in random.sample([*FIVE], len(FIVE)):
        dim, chance = random.choice([dim for dim, n in enumerate(left) if n > 1]), random.random()
        if chance < 0.2 and folds:
            pending.append(Pending("add", FIVE.place(axis)))
        elif chance > 0.3:
            left[dim] //= 2
            tiles.append((axis, dim, left[dim]))
    return layout((32, 8, 8), tiles, FIVE, pending)


@pytest.mark.parametrize("seed", range(8))
def test_a_way_over_five_axes_receives_no_more_than_where_every_step_is_tried(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    source, target = random_layout(random, folds=True), random_layout(random, folds=False)
    found = path(source, target, 4).bytes
    path.cache_clear()
    monkeypatch.setattr(search_space, "FEW_AXES", 9)
    most = path(source, target, 4).bytes
    path.cache_clear()
    assert found <= most
