"""Windows against brute force: what they read, how they compose, and the halo of a shard."""

import itertools

import pytest

from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import (
    Extent,
    Window,
    compose,
    denote,
    halo,
    local,
    parse_range,
    product,
    reads,
    size,
    window,
)

WINDOWS = [Window(Extent(1), *spec) for spec in itertools.product((1, 2, 3, -1, -2), (1, 2, 3), (1, 2), (-1, 0, 1, 2))]


def read_one_by_one(w: Window, outputs: range) -> list[int]:
    """Every input that some output reads, tap by tap."""
    return sorted({o * w.stride - w.lo + tap * w.dilation for o in outputs for tap in range(w.kernel)})


@pytest.mark.parametrize("w", WINDOWS, ids=str)
def test_a_window_reads_from_the_first_to_the_last_tap(w: Window):
    for begin, end in itertools.combinations(range(5), 2):
        taps = read_one_by_one(w, range(begin, end))
        assert reads(w, begin, end) == (taps[0], taps[-1] + 1)
        over = Window(Extent(end), w.stride, w.kernel, w.dilation, w.lo)
        first, last = reads(over, 0, end)
        assert denote(over, {}) == [p if p >= 0 else None for p in range(first, last)]
        assert size(over) == local(over) == last - first


def test_two_windows_read_as_one():
    for first, second in itertools.product(WINDOWS, WINDOWS):
        both = compose(first, second)
        for begin, end in ((0, 1), (0, 3), (2, 4)):
            assert reads(both, begin, end) == reads(first, *reads(second, begin, end))
        assert both.width == first.width + (second.width - 1) * abs(first.stride)


def test_windows_compose_associatively():
    for w1, w2, w3 in itertools.product(WINDOWS[::5], repeat=3):
        assert compose(compose(w1, w2), w3) is compose(w1, compose(w2, w3))


def test_a_window_over_a_window_is_made_as_one():
    assert str(window(window(64, 2, 3, 1, 1), 1, 5, 1, 2)) == "win<2,7,1,3>(64)"
    assert window(parse_range("win<2,3,2,1>(64)"), 1, 1) is parse_range("win<2,3,2,1>(64)")
    for mesh in (Mesh(a=2), Mesh(a=3)):
        outputs = product(mesh.place("a"), 2)
        for first, second in itertools.product(WINDOWS[::3], WINDOWS[::7]):
            inner = Window(outputs, second.stride, second.kernel, second.dilation, second.lo)
            nest = Window(inner, first.stride, first.kernel, first.dilation, first.lo)
            one = window(inner, first.stride, first.kernel, first.dilation, first.lo)
            for at in ({}, *mesh.coordinates()):
                assert denote(one, at) == denote(nest, at)


@pytest.mark.parametrize("w", WINDOWS, ids=str)
def test_the_halo_is_what_a_shard_reads_beyond_its_own_block(w: Window):
    for shard, output_block, input_block in itertools.product(range(4), (1, 2, 4), (1, 2, 4, 8)):
        taps = read_one_by_one(w, range(shard * output_block, (shard + 1) * output_block))
        left = shard * input_block - taps[0]
        right = taps[-1] + 1 - (shard + 1) * input_block
        assert halo(w, shard, output_block, input_block) == (left, right)


def test_the_halo_is_the_same_everywhere_when_the_stride_divides_the_block():
    w = Window(Extent(1), 2, 5, 1, 2)
    assert {halo(w, shard, 8, 16) for shard in range(4)} == {(2, 1)}
    assert str(w) == "win<2,5,1,2>(1)"


def test_a_window_of_one_element_is_its_base_unless_iterations_hold_elements_that_are_apart():
    mesh = Mesh(a=2)
    for text in ("4", "a", "a*4"):
        r = parse_range(text, mesh)
        assert window(r, 1, 1) is r
    apart = parse_range("2*a", mesh)
    one = window(apart, 1, 1)
    assert one is Window(apart, 1, 1)
    assert [denote(one, at) for at in mesh.coordinates()] == [[0, 1, 2], [1, 2, 3]]
    assert [denote(apart, at) for at in mesh.coordinates()] == [[0, 2], [1, 3]]


def test_a_window_over_part_of_the_outputs_reads_where_that_part_lies():
    w = parse_range("win<2,3,1,1>(8[4 : 2 : 1])")
    assert denote(w, {}) == [7, 8, 9, 10, 11] and size(w) == 5
    mesh = Mesh(a=2)
    w = parse_range("win<1,3,1,1>(pad(a*2, 1, 1))", mesh)
    assert denote(w, {mesh.place("a"): 1}) == [0, 1, 2, 3, 4, 5] and size(w) == 8


def test_a_placed_window_overlaps_its_neighbours_by_the_halo():
    mesh = Mesh(a=4)
    w = parse_range("win<1,3,1,1>(a*4)", mesh)
    blocks = [denote(w, at) for at in mesh.coordinates()]
    assert blocks[0] == [None, 0, 1, 2, 3, 4] and blocks[1] == [3, 4, 5, 6, 7, 8]
    assert local(w) == 6 and size(w) == 18
