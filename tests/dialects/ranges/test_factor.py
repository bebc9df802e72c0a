"""Factors of one dim as one: which are neighbours, and where the iterations of one begin."""

import pytest

from partita.dialects.mesh import Mesh
from partita.dialects.ranges.affine_read import AffineRead
from partita.dialects.ranges.algebra import Extent, Window
from partita.dialects.ranges.factor import Factor, joined

MESH = Mesh(a=4, b=2)


def factor(axis: str, stride: int) -> Factor:
    return Factor(MESH.place(axis), stride)


@pytest.mark.parametrize("strides", [(128, 64), (16, 8), (2, 1)])
def test_factors_are_one_if_the_stride_of_each_is_the_span_of_the_next(strides: tuple[int, int]) -> None:
    major, minor = strides
    for factors in ([factor("a", major), factor("b", minor)], [factor("b", minor), factor("a", major)]):
        one = joined(512, factors)
        assert one is not None
        assert (str(one), one.size, one.parts) == (f"a*b*{minor}", 8, [factor("a", major), factor("b", minor)])


@pytest.mark.parametrize("minor", [1, 16, 32, 96, 128])
def test_factors_with_a_gap_between_them_or_that_overlap_are_not_one(minor: int) -> None:
    assert joined(512, [factor("a", 128), factor("b", minor)]) is None


def test_a_place_of_one_iteration_keeps_its_halo_when_factors_are_joined() -> None:
    mesh = Mesh(a=4, b=1)
    minor = Factor(mesh.place("b"), 16, (1, 1))
    one = joined(64, [Factor(mesh.place("a"), 16), minor])
    assert one is not None
    assert (one.size, one.stride, one.halo) == (4, 16, (1, 1))


def test_windows_that_stay_are_found_exactly_where_floats_round() -> None:
    cut, whole = 2**53 + 1, 2**60
    read = AffineRead(Window(Extent(whole - cut), 1, 1, 1, -cut), whole)
    stays = read.staying(factor("a", whole // 4))
    assert stays is not None
    assert stays.halo == (cut, -cut)


def test_a_window_begins_before_its_block_and_ends_behind_it() -> None:
    window = Factor(MESH.place("a"), 16, (3, 2))
    assert [window.window(device, 64) for device in range(4)] == [range(18), range(13, 34), range(29, 50), range(45, 64)]
    assert [window.start(device) for device in range(4)] == [-3, 13, 29, 45]


def test_a_row_of_several_windows_is_the_own_row_of_the_last_that_begins_before_it() -> None:
    assert Factor(MESH.place("a"), 16, (3, 2)).own == 16
    assert Factor(MESH.place("a"), 16, (0, -2)).own == 14
