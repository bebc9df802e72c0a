"""The laws of the range algebra on every small range: by meaning, and as the normal form of the constructors."""

import copy
import itertools
import pickle
from collections.abc import Callable, Iterator

import pytest

from partita.dialects.ground.errors import Error
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import (
    Axis,
    Devices,
    Extent,
    Loop,
    Pad,
    Place,
    Product,
    Range,
    Sub,
    SubAxis,
    Sum,
    Window,
    coordinate,
    denote,
    local,
    pad,
    parse_range,
    placed,
    product,
    size,
    space,
    sub,
    sum_,
    window,
)

MESH = Mesh(a=2, b=3, c=2)
WRITTEN = Mesh(data=4, a=2, pad=2, win=2), Mesh(data=4).refine(data=(2, 2))


def atoms(name: str) -> list[Range]:
    """Small ranges of every kind that use no mesh axis but `name`."""
    axis, loop = MESH.place(name), Loop(f"t{name}", 2)
    return [
        *map(Extent, range(4)),
        axis,
        loop,
        Product((axis, Extent(2))),
        Product((Extent(2), axis)),
        Sum((Extent(1), Extent(2))),
        Sum((axis, Extent(1))),
        Sub(Extent(4), 1, 2, 2),
        Sub(Product((axis, Extent(3))), 1, 3, 1),
        Pad(axis, 1, 2),
        Window(axis, 2, 3, 1, 1),
    ]


A, B, C = (atoms(name) for name in "abc")
PAIRS = list(itertools.product(A, B))
# Triples take only shapes of different kinds, so that all of them run within a second.
TRIPLES = list(itertools.product(A[1:3] + A[4:8] + A[9:13], B[1:3] + B[4:5] + B[9:11], C[1:3] + C[4:6] + C[9:12]))


def coordinates(*ranges: Range) -> Iterator[dict[Place, int]]:
    """Every iteration of the ranges' axes and loops."""
    factors = list(dict.fromkeys(factor for r in ranges for factor in placed(r)))
    for values in itertools.product(*(range(size(factor)) for factor in factors)):
        yield dict(zip(factors, values, strict=True))


def same_meaning(left: Range, right: Range) -> bool:
    """The same positions, in the same order, for every iteration, and as a whole, and in an extent of the same size."""
    everywhere = [{}, *coordinates(left, right)]
    same = all(denote(left, at) == denote(right, at) for at in everywhere)
    return same and space(left) == space(right)


def test_an_extent_counts_from_zero():
    assert [denote(Extent(n), {}) for n in range(4)] == [[], [0], [0, 1], [0, 1, 2]]


def test_an_index_pair_of_a_product_is_i_times_s_plus_j():
    for r, s in PAIRS:
        if space(s) == size(s):
            for at in coordinates(r, s):
                pairs = itertools.product(denote(r, at), denote(s, at))
                expected = [None if None in (i, j) else (i or 0) * size(s) + (j or 0) for i, j in pairs]
                assert denote(Product((r, s)), at) == expected


def test_a_sum_is_its_left_part_and_then_its_right_part_moved_by_it():
    for r, s in PAIRS:
        for at in coordinates(r, s):
            right = [None if j is None else j + space(r) for j in denote(s, at)]
            assert denote(Sum((r, s)), at) == denote(r, at) + right


@pytest.mark.parametrize("r", A, ids=str)
def test_a_sub_range_reads_every_step_th_index_from_an_offset_on(r: Range):
    whole = denote(r, {})
    for offset, length, step in itertools.product(range(4), range(4), (1, 2)):
        picked = whole[offset : offset + length * step : step]
        if len(picked) == length and not isinstance(r, Window):
            part = Sub(r, offset, length, step)
            assert denote(part, {}) == picked
            held = [denote(part, at) for at in coordinates(r)]
            assert {p for block in held for p in block} == set(picked)


def test_a_pad_is_undefined_around_its_base():
    for r in A:
        for at in coordinates(r):
            assert denote(Pad(r, 1, 2), at) == [None, *denote(r, at), None, None]


def test_positions_are_in_order_and_as_many_as_the_sizes_say():
    for r in [*A, *(Product(pair) for pair in PAIRS), *(Sum(pair) for pair in PAIRS)]:
        for at in coordinates(r):
            defined = [p for p in denote(r, at) if p is not None]
            assert defined == sorted(set(defined)) and all(0 <= p < space(r) for p in defined)
        assert len(denote(r, {})) == size(r)
        assert max(len(denote(r, at)) for at in coordinates(r)) == local(r), str(r)


def test_products_and_sums_are_associative():
    for r, s, t in TRIPLES:
        assert same_meaning(Product((Product((r, s)), t)), Product((r, Product((s, t)))))
        assert same_meaning(Sum((Sum((r, s)), t)), Sum((r, Sum((s, t)))))
        assert product(product(r, s), t) is product(r, product(s, t))
        assert sum_(sum_(r, s), t) is sum_(r, sum_(s, t))


@pytest.mark.parametrize("r", A, ids=str)
def test_one_is_the_unit_of_products_and_zero_of_sums(r: Range):
    assert same_meaning(Product((Extent(1), r)), r) and same_meaning(Product((r, Extent(1))), r)
    assert same_meaning(Sum((Extent(0), r)), r) and same_meaning(Sum((r, Extent(0))), r)
    assert same_meaning(Product((r, Extent(0))), Extent(0)) and same_meaning(Product((Extent(0), r)), Extent(0))
    assert product(1, r) is product(r, 1) is product(r)
    assert sum_(0, r) is sum_(r, 0) is sum_(r)
    assert product(0, r) is product(r, 0) is Extent(0)
    assert product() is Extent(1) and sum_() is Extent(0)


def test_extents_multiply():
    for p, q, n in itertools.product(range(5), range(5), range(17)):
        assert same_meaning(Product((Extent(p), Extent(q))), Extent(n)) == (p * q == n)
        assert (product(p, q) is Extent(n)) == (p * q == n)


def test_a_sum_distributes_out_of_the_major_position():
    for r1, s, r2 in TRIPLES:
        assert same_meaning(Product((Sum((r1, r2)), s)), Sum((Product((r1, s)), Product((r2, s)))))
        assert product(sum_(r1, r2), s) is sum_(product(r1, s), product(r2, s))


def test_a_sum_in_the_minor_position_is_only_a_permutation_away():
    s, r1, r2 = Extent(2), MESH.place("a"), Extent(1)
    left, right = product(s, sum_(r1, r2)), sum_(product(s, r1), product(s, r2))
    assert (str(left), str(right)) == ("2*(a + 1)", "2*a + 2")
    assert [denote(left, {r1: 0}), denote(right, {r1: 0})] == [[0, 2, 3, 5], [0, 2, 4, 5]]
    assert denote(left, {}) == denote(right, {}) == list(range(6))
    assert local(left) == local(right) == 4


def test_a_sub_range_of_a_sub_range_is_one_sub_range():
    for r in A:
        whole = size(r)
        for a, m, s, b, n, t in itertools.product(range(3), range(4), (1, 2), range(2), range(3), (1, 2)):
            if a + (m - 1) * s < whole and b + (n - 1) * t < m:
                assert same_meaning(Sub(Sub(r, a, m, s), b, n, t), Sub(r, a + b * s, n, s * t))
                assert same_meaning(sub(sub(r, a, m, s), b, n, t), Sub(r, a + b * s, n, s * t))
    assert sub(sub(512, 128, 256), 0, 128, 2) is Sub(Extent(512), 128, 128, 2)


@pytest.mark.parametrize("r", A, ids=str)
def test_the_full_sub_range_the_empty_pad_and_the_trivial_window_change_nothing(r: Range):
    assert same_meaning(Sub(r, 0, size(r), 1), r)
    assert same_meaning(Pad(r, 0, 0), r)
    assert pad(r, 0, 0) is r
    assert same_meaning(window(r, 1, 1), Window(r, 1, 1))
    assert sub(product(Loop("t", 2), 3), 0, 6) is product(Loop("t", 2), 3)


def test_pads_add_up():
    for r, (a, b, c, d) in itertools.product(A, itertools.product(range(2), repeat=4)):
        assert same_meaning(Pad(Pad(r, a, b), c, d), Pad(r, a + c, b + d))
        assert pad(pad(r, a, b), c, d) is pad(r, a + c, b + d)


def test_normal_form_keeps_the_meaning():
    for r, s in PAIRS:
        assert same_meaning(product(r, s), Product((r, s)))
        assert same_meaning(sum_(r, s), Sum((r, s)))


@pytest.mark.parametrize(("c", "p", "b"), [(c, p, b) for c in (1, 2, 6) for p in (1, 2, 3) for b in (1, 2, 3, 6) if not c % b])
def test_block_cyclic_and_block_cyclic_of_blocks_differ_by_a_permutation(c: int, p: int, b: int):
    axis, positions = Axis("a", p), range(p * c)
    owners: dict[Range, Callable[[int], int]] = {
        product(axis, c): lambda i: i // c,
        product(c, axis): lambda i: i % p,
        product(c // b, axis, b): lambda i: i // b % p,
    }
    for r, owner in owners.items():
        held = [denote(r, {axis: device}) for device in range(p)]
        assert held == [[i for i in positions if owner(i) == device] for device in range(p)]
        assert sorted(i for block in held for i in block if i is not None) == list(positions)
        assert local(r) == c


@pytest.mark.parametrize("parts", [(2, 4), (4, 2), (8, 1), (2, 2, 2)])
def test_an_axis_is_the_product_of_its_sub_axes(parts: tuple[int, ...]):
    mesh = Mesh(a=8, b=2)
    axis, refined = mesh.place("a"), mesh.refine(a=parts)
    assert isinstance(axis, Axis)
    subs = product(*(SubAxis(axis, parts, i) for i in range(len(parts))))
    assert refined.named("a") == placed(subs)
    for device in range(8):
        assert denote(subs, {axis: device}) == denote(axis, {axis: device}) == [device]
    for at in refined.coordinates():
        assert denote(subs, at) == denote(axis, at)
    assert size(subs) == size(axis) == 8


def test_sub_axes_lay_sixteen_out_as_four_by_four_on_eight_devices():
    mesh = Mesh(a=8)
    axis, refined = mesh.place("a"), mesh.refine(a=(4, 2))
    rows, columns = parse_range("a.0:4", refined), parse_range("a.1:2*2", refined)
    for device in range(8):
        at: dict[Place, int] = {axis: device}
        grid = [(i or 0) * 4 + (j or 0) for i in denote(rows, at) for j in denote(columns, at)]
        assert grid == denote(parse_range("a*2", mesh), at)


@pytest.mark.parametrize("parts", [(2, 4), (4, 2), (8, 1), (2, 2, 2)])
def test_a_place_says_the_coordinate_of_a_device_along_it(parts: tuple[int, ...]):
    for mesh in (Mesh(a=8), Mesh(b=3, a=8, c=2), Mesh(a=8, b=2).refine(b=(2, 1), a=parts), Mesh(b=2, a=8).refine(a=parts)):
        for device, at in enumerate(mesh.coordinates()):
            assert {place: coordinate(place, device) for place in mesh.places} == at


@pytest.mark.parametrize(
    ("split", "index"), [((3, 2), 0), ((2, 8), 1), ((2, 2), 0), ((2, 4), 2), ((2, 4), -1), ((), 0), ((0, 8), 0)]
)
def test_a_sub_axis_is_one_of_those_whose_product_is_the_axis(split: tuple[int, ...], index: int):
    with pytest.raises(Error, match=rf"sub-axis {index} of `a = .*` is none"):
        SubAxis(Axis("a", 8), split, index)


def test_a_sub_axis_is_of_a_mesh_that_is_refined_into_it():
    for mesh in (Mesh(a=8), Mesh(a=8).refine(a=(4, 2))):
        for text in ("a.2:2", "a.0:2"):
            with pytest.raises(Error, match=rf"`{text}` is not an axis of the mesh"):
                parse_range(text, mesh)


def test_parts_of_one_axis_that_overlap_are_not_used_together():
    axis = Axis("a", 8)
    overlapping = [((2, 4), 0, (4, 2), 0), ((2, 4), 1, (4, 2), 0), ((2, 4), 1, (2, 2, 2), 2), ((4, 2), 1, (2, 4), 1)]
    for split, index, other, place in overlapping:
        with pytest.raises(Error, match="used twice"):
            product(SubAxis(axis, split, index), SubAxis(axis, other, place))
    assert str(product(SubAxis(axis, (2, 4), 1), SubAxis(axis, (2, 2, 2), 0))) == "a.1:4*a.0:2"


def test_a_loop_is_placed_in_time_and_an_axis_in_space():
    loop, data = Loop("t", 8), Axis("data", 2)
    r = parse_range("t:8*data*2", Mesh(data=2))
    assert placed(r) == (loop, data)
    assert denote(r, {loop: 3, data: 1}) == [14, 15]
    assert local(r) == 2 and size(r) == 32


def test_an_extent_that_does_not_divide_is_part_of_a_padded_one():
    r, mesh = sub(product(Axis("data", 4), 129), 0, 515), Mesh(data=4)
    assert (str(r), size(r), local(r)) == ("data*129 pad 515", 515, 129)
    assert [len(denote(r, at)) for at in mesh.coordinates()] == [129, 129, 129, 128]
    assert [i for at in mesh.coordinates() for i in denote(r, at)] == list(range(515))


def test_what_one_device_holds_of_uneven_parts_is_counted_device_by_device():
    mesh = Mesh(a=2)
    r = parse_range("(a*4)[0 : 4 : 1] + (a*4)[4 : 4 : 1]", mesh)
    assert [denote(r, at) for at in mesh.coordinates()] == [[0, 1, 2, 3], [12, 13, 14, 15]]
    assert local(r) == 4


def test_equal_ranges_are_one_object():
    a = MESH.place("a")
    assert product(a, 4, 32) is product(a, 128) is product(product(a, 2), 64) is parse_range("a * (4*32)", MESH)
    r = parse_range("pad(win<2,3,1,1>((a*8 + t:2)[1 : 4 : 2]), 1, 2)", MESH)
    assert copy.deepcopy(r) is pickle.loads(pickle.dumps(r)) is r
    assert len({r, copy.copy(r), parse_range(str(r), MESH)}) == 1


def test_places_of_one_device_set_are_one_object_whatever_mesh_has_them():
    mesh = Mesh(b=3, a=8)
    whole, part = mesh.place("a"), mesh.refine(a=(2, 4)).place("a.1:4")
    devices = Devices((("b", 3), ("a", 8)))
    assert whole is Mesh(b=3, a=8).refine(b=(3, 1)).place("a") is Axis("a", 8, devices)
    assert part is mesh.refine(b=(3, 1), a=(2, 4)).place("a.1") is SubAxis(Axis("a", 8, devices), (2, 4), 1)
    others = [Axis("a", 8), mesh.on("left").place("a"), Mesh(a=8, b=3).place("a"), mesh.refine(a=(4, 2)).place("a.0:4")]
    assert len({whole, part, *others}) == 6
    for place in (whole, part, *others):
        assert copy.deepcopy(place) is pickle.loads(pickle.dumps(place)) is place


def test_axes_of_one_name_are_told_apart_by_their_device_sets():
    left, right = Mesh(data=4).on("left"), Mesh(data=8, model=2).on("right")
    for mesh, text in ((left, "data@left*2"), (right, "data@right*2")):
        r = parse_range(text, left, right)
        assert str(r) == text and placed(r) == (mesh.place("data"),) and local(r) == 2 and size(r) == 2 * mesh["data"]
    assert parse_range("model", left, right) is right.place("model")
    with pytest.raises(Error, match="`data` names several axes, with 4 and 8 devices"):
        parse_range("data*2", left, right)


def test_text_reads_back_as_the_same_object():
    made = [product(r, s) for r, s in PAIRS] + [sum_(r, s) for r, s in PAIRS] + [product(r, sum_(s, 1)) for r, s in PAIRS]
    made += [sub(r, 0, 1) for r in made if size(r) > 1] + [pad(r, 0, 3) for r in made] + [window(r, 2, 3, 1, -1) for r in made]
    for r in made:
        assert parse_range(str(r), MESH) is r


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("data * 128", "data*128"),
        ("t:8*16", "t:8*16"),
        ("data.0:2*4", "data.0:2*4"),
        ("pad(512,0,3)", "pad(512, 0, 3)"),
        ("win<2,3,1,1>(64)", "win<2,3,1,1>(64)"),
        ("win<2,3,1,-1>(data*64)", "win<2,3,1,-1>(data*64)"),
        ("win<-64,64,1,-192>(data) of 256", "win<-64,64,1,-192>(data) of 256"),
        ("16+4", "16 + 4"),
        ("512[0:256:1]", "512[0 : 256 : 1]"),
        ("(16 + 4)*data", "16*data + 4*data"),
        ("3*(data + 1)", "3*(data + 1)"),
        ("4*(2*data)*1", "8*data"),
        ("pad*win*2", "pad*win*2"),
    ],
)
def test_a_range_prints_as_it_is_written(text: str, printed: str):
    assert str(parse_range(text, *WRITTEN)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data*", "it ends too early"),
        ("data*[3]", "is not expected here"),
        ("da-ta", "`-` is not expected here"),
        ("data*4*data", "`data` is used twice in `data[*]4[*]data`"),
        ("data.0:2*data", "`data` is used twice"),
        ("data.0:2*4*data.0:2", "`data.0:2` is used twice"),
        ("dta*2", "the mesh has no axis `dta`"),
        ("t:0", "loop `t` has 0 iterations"),
        ("a.0:0", "`a.0:0` does not divide `a` .2 devices."),
        ("8[4 : 5 : 1]", "`8` has 8 indices: .4 : 5 : 1. reaches beyond them"),
        ("8[0 : 2 : 0]", "is not a sub-range"),
        ("1[0 : 1 : 0]", "is not a sub-range"),
        ("win<0,3,1,1>(8)", "is not a window"),
        ("pad(8, -1, 0)", "`-1` is not expected here"),
    ],
)
def test_a_range_that_makes_no_sense_is_an_error(text: str, message: str):
    with pytest.raises(Error) as caught:
        parse_range(text, *WRITTEN)
    caught.match(message)


def test_negative_sizes_and_bad_names_are_errors():
    for make in (
        lambda: Extent(-1),
        lambda: sub(3, -1, 3),
        lambda: Pad(Extent(3), -1, 0),
        lambda: Axis("2d", 2),
        lambda: Axis("d", 0),
        lambda: Devices((("d", 2),), "2d"),
        lambda: Axis("d", 2, Devices((("d", 4),))),
        lambda: Loop("a b", 2),
    ):
        with pytest.raises(Error):
            make()
