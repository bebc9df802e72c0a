"""Layouts: made of tiles and back, their shapes, and the text of array types."""

import itertools
import pickle
from typing import cast

import pytest
from tiles import Tile, factors_of, layout, tiles_of

from partita.dialects.ground.errors import Error
from partita.dialects.layouts import Layout, Pending, parse_array
from partita.dialects.mesh import Mesh, axis_of
from partita.dialects.ranges.algebra import Axis, Extent, Loop, SubAxis, denote, parse_range, product
from partita.dialects.ranges.factor import Factor, fit, padded

MESH = Mesh(x=2, y=3, one=1)
X, Y = MESH.place("x"), MESH.place("y")
AXES = Mesh(data=4, model=2, a=2, b=2), Mesh(a=4).refine(a=(2, 2))


def test_tiles_of_an_extent_make_a_product_major_to_minor():
    mesh = Mesh(data=4, model=2)
    assert str(layout((512, 256), [("data", 0, 128)], mesh)) == "[data*128, 256]"
    assert str(layout((512, 256), [("model", 0, 64), ("data", 0, 128)], mesh)) == "[data*model*64, 256]"
    assert str(layout((512, 256), [("data", 1, 1), ("model", 0, 64)], mesh)) == "[4*model*64, 64*data]"
    assert str(layout((16,), [("t:4", 0, 4)], mesh)) == "[t:4*4]"
    split = mesh.refine(data=(2, 2))
    assert str(layout((16, 4), [("data.0:2", 0, 8), ("data.1:2", 1, 2)], split)) == "[data.0:2*8, data.1:2*2]"
    assert str(layout((), [], mesh)) == "[]"


@pytest.mark.parametrize("n", [6, 12, 18, 24])
def test_every_tiling_comes_back_and_says_which_elements_a_device_holds(n: int):
    for s, t in itertools.product(range(1, n + 1), repeat=2):
        tiles: list[Tile] = [("x", 0, s), ("y", 0, t)]
        factors = [factor for _, factor in factors_of(tiles, MESH)]
        if not fit(n, factors):
            with pytest.raises(Error, match=f"an extent of {n} does not divide over"):
                layout((n,), tiles, MESH)
            continue
        made = layout((n,), tiles, MESH)
        assert made is layout([n], reversed(tiles), MESH)
        assert set(tiles_of(made)) == set(tiles) and layout((n,), tiles_of(made), MESH) is made
        assert made.global_shape == (n,) and made.local_shape == (padded(n, factors) // 6,)
        for at in MESH.coordinates():
            held = [i for i in range(n) if i // s % 2 == at[X] and i // t % 3 == at[Y]]
            assert denote(made.dims[0], at) == held


def test_tiles_are_given_dim_by_dim_major_to_minor():
    made = Layout((parse_range("4*y*x*2", MESH), parse_range("t:2*5")))
    assert tiles_of(made) == (("y", 0, 4), ("x", 0, 2), ("t:2", 1, 5))
    assert made.axes == (Y, X, Loop("t", 2)) and made.rank == 2


def test_an_axis_of_size_one_is_not_placed():
    made = layout((6, 4), [("one", 1, 3), ("x", 0, 3)], MESH, [Pending("add", Y)])
    assert str(made) == "[x*3, 4]{+y}"


def test_an_axis_is_used_at_most_once_in_a_layout():
    for tiles, pending in [
        ([("x", 0, 3), ("x", 1, 2)], []),
        ([("x", 0, 3)], [Pending("add", X)]),
        ([], [Pending("add", X), Pending("max", X)]),
        ([("y", 0, 2)], [Pending("add", SubAxis(cast(Axis, Y), (3, 1), 0))]),
    ]:
        with pytest.raises(Error, match="used twice"):
            layout((6, 4), tiles, MESH, pending)


def test_tiles_that_do_not_exist_are_errors():
    with pytest.raises(Error, match="cannot be placed on dim 2 of a value of rank 2"):
        layout((6, 4), [("x", 2, 1)], MESH)
    with pytest.raises(Error, match="the mesh has no axis `z`"):
        layout((6, 4), [("z", 0, 1)], MESH)
    with pytest.raises(Error, match="the mesh has no axis `z`"):
        layout((6, 4), [("z.0:2", 0, 1)], MESH)
    with pytest.raises(Error, match=r"`y\.0:2` does not divide `y` \(3 devices\)"):
        layout((6, 4), [("y.0:2", 0, 3)], MESH)
    with pytest.raises(Error, match=r"`y` is not an axis of the mesh"):
        layout((6, 4), [("y", 0, 2)], MESH.refine(y=(3, 1)))
    with pytest.raises(Error, match="`sum` is not a monoid"):
        Pending("sum", X)


def test_a_dim_that_is_not_a_tiling_has_no_tiles():
    made = Layout((parse_range("x*3 + 1", MESH),))
    assert made.global_shape == (7,) and made.local_shape == (4,)
    with pytest.raises(Error, match=r"dim 0 of `.x[*]3 [+] 1.` is not a tiling"):
        tiles_of(made)
    assert tiles_of(Layout((parse_range("16 + 4"),))) == ()


@pytest.mark.parametrize(
    ("text", "dtype", "dims", "pending"),
    [
        ("f32[]", "float32", [], []),
        ("bool[7]", "bool", ["7"], []),
        ("f32[data*128, 256]{+model}", "float32", ["data*128", "256"], [("add", "model")]),
        ("bf16[t:8*16, 4]{+data, +model}", "bfloat16", ["t:8*16", "4"], [("add", "model"), ("add", "data")]),
        ("i32[16 + 4]{max model}", "int32", ["16 + 4"], [("max", "model")]),
        ("f64[2]{max model, +data}", "float64", ["2"], [("max", "model"), ("add", "data")]),
        ("u8[512[0 : 256 : 1], pad(5, 0, 1)]", "uint8", ["512[0:256:1]", "pad(5, 0, 1)"], []),
        ("c64[win<2,3,1,1>(64), 2*(a + 1)]", "complex64", ["win<2,3,1,1>(64)", "2*(a + 1)"], []),
        ("f8_e4m3fn[a.0:2*4]{+a.1:2}", "float8_e4m3fn", ["a.0:2*4"], [("add", "a.1:2")]),
        ("u32[3]", "uint32", ["3"], []),
    ],
)
def test_an_array_type_prints_as_it_is_read(text: str, dtype: str, dims: list[str], pending: list[tuple[str, str]]):
    folds = tuple(Pending(monoid, axis_of(axis, *AXES)) for monoid, axis in pending)
    made = Layout(tuple(parse_range(dim, *AXES) for dim in dims), folds)
    assert made.text(dtype) == text
    assert parse_array(text, *AXES) == (dtype, made)
    assert parse_array(text, *AXES)[1] is pickle.loads(pickle.dumps(made)) is made


def test_text_without_an_array_type_is_an_error_that_points():
    with pytest.raises(Error) as caught:
        parse_array("f32[data*, 256]")
    assert f"error: {caught.value}" == (
        "error: `f32[data*, 256]` is not a valid array type\n  --> <array type>:1:10\n   |\n 1 | f32[data*, 256]\n"
        "   |          ^ `,` is not expected here\nhelp: write it as `f32[data*128, 256]{+model}`"
    )


def test_equal_layouts_are_one_object():
    made = layout((512, 256), [("data", 0, 128)], Mesh(data=4))
    assert made is Layout((product(Axis("data", 4), 128), Extent(256)))
    add, other, most = Pending("add", X), Pending("add", Y), Pending("max", Y)
    assert Layout((), (add, other)) is Layout((), (other, add))
    assert Layout((), (add, most)) is not Layout((), (most, add))


def test_layouts_on_axes_of_one_name_are_one_object_only_if_the_axes_are() -> None:
    """The two print alike: what tells them apart is the device set, and how many devices there are along `data`."""
    meshes = Mesh(data=4), Mesh(data=2), Mesh(data=4, model=2), Mesh(data=4).on("left")
    made = [layout((8,), [("data" if not mesh.devices else "data@left", 0, 8 // mesh["data"])], mesh) for mesh in meshes]
    assert [str(each) for each in made] == ["[data*2]", "[data*4]", "[data*2]", "[data@left*2]"]
    assert len({*made}) == 4 and [each.local_shape for each in made] == [(2,), (4,), (2,), (2,)]
    assert [parse_array(each.text("float32"), mesh)[1] for each, mesh in zip(made, meshes, strict=True)] == made


def test_a_text_on_several_meshes_names_the_device_set_of_each_axis() -> None:
    left, right = Mesh(data=4).on("left"), Mesh(data=8).on("right")
    for mesh, text in ((left, "f32[data@left*2]"), (right, "f32[data@right*2]"), (left, "f32[8]{+data@left}")):
        made = parse_array(text, left, right)[1]
        assert {str(axis).partition("@")[2] for axis in (*made.axes, *(each.axis for each in made.pending))} == {mesh.devices}
        assert made.text("float32") == text
    for text in ("f32[data@left*2, data@right*2]", "f32[data@left*2]{+data@right}"):
        with pytest.raises(Error, match="has axes of several device sets") as caught:
            parse_array(text, left, right)
        assert caught.value.helps == ("a value is on one device set: transfer it",)


def test_a_pending_scan_is_written_like_a_pending_sum_with_the_dim_that_it_goes_along() -> None:
    mesh = Mesh(data=4, model=2)
    for text in ("f32[data*16, 8]{+data before 0}", "f32[data*16, model*4]{+data before 0, max model behind 1}"):
        dtype, made = parse_array(text, mesh)
        assert made.text(dtype) == text
        assert made.local_shape[0] == 16
    assert parse_array("f32[data*16]{+data before 0}", mesh)[1].pending[0].scans


def test_a_layout_splits_axes_as_another_one_does():
    mesh = Mesh(data=8, model=2)
    layout = Layout.of((64, 8), [(0, Factor(mesh.place("data"), 8)), (1, Factor(mesh.place("model"), 4))])
    halves = mesh.refine(data=(2, 4)).places[:2]
    split = layout.split(halves)
    assert str(split) == "[data.0:2*data.1:4*8, model*4]" and split.joined(mesh.places) is layout
    assert layout.split(mesh.places) is layout
    pending = Layout.of((8,), (), [Pending("add", mesh.place("data"))])
    assert str(pending.split(halves)) == "[8]{+data.0:2, +data.1:4}"
