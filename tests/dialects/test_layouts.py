"""Layouts: made of tiles and back, their shapes, and the text of array types."""

import itertools
import pickle

import pytest
from tiles import Tile, factors_of, layout, tiles_of

from partita.dialects.errors import Error
from partita.dialects.layouts import Layout, Pending, parse_array
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import Axis, Extent, denote, parse_range, product
from partita.dialects.ranges.factor import fit, padded

MESH = Mesh(x=2, y=3, one=1)


def test_tiles_of_an_extent_make_a_product_major_to_minor():
    mesh = Mesh(data=4, model=2)
    assert str(layout((512, 256), [("data", 0, 128)], mesh)) == "[data*128, 256]"
    assert str(layout((512, 256), [("model", 0, 64), ("data", 0, 128)], mesh)) == "[data*model*64, 256]"
    assert str(layout((512, 256), [("data", 1, 1), ("model", 0, 64)], mesh)) == "[4*model*64, 64*data]"
    assert str(layout((16,), [("t:4", 0, 4)], mesh)) == "[t:4*4]"
    assert str(layout((16, 4), [("data.0:2", 0, 8), ("data.1:2", 1, 2)], mesh)) == "[data.0:2*8, data.1:2*2]"
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
        assert set(tiles_of(made, MESH)) == set(tiles) and layout((n,), tiles_of(made, MESH), MESH) is made
        assert made.global_shape == (n,) and made.local_shape == (padded(n, factors) // 6,)
        for at in MESH.coordinates():
            held = [i for i in range(n) if i // s % 2 == at["x"] and i // t % 3 == at["y"]]
            assert denote(made.dims[0], at) == held


def test_tiles_are_given_dim_by_dim_major_to_minor():
    made = Layout((parse_range("4*y*x*2"), parse_range("t:2*5")))
    assert tiles_of(made, MESH) == (("y", 0, 4), ("x", 0, 2), ("t:2", 1, 5))
    assert made.axes() == ("y", "x") and made.rank == 2


def test_an_axis_of_size_one_is_not_placed():
    made = layout((6, 4), [("one", 1, 3), ("x", 0, 3)], MESH, [Pending("add", "y")])
    assert str(made) == "[x*3, 4]{+y}"


def test_an_axis_is_used_at_most_once_in_a_layout():
    for tiles, pending in [
        ([("x", 0, 3), ("x", 1, 2)], []),
        ([("x", 0, 3)], [Pending("add", "x")]),
        ([], [Pending("add", "x"), Pending("max", "x")]),
        ([("y.0:3", 0, 2)], [Pending("add", "y")]),
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
    with pytest.raises(Error, match=r"`y\.0:2` is not a sub-axis of `y`"):
        layout((6, 4), [("y.0:2", 0, 3)], MESH)
    with pytest.raises(Error, match="is not a mesh axis, sub-axis or loop"):
        layout((6, 4), [("x*2", 0, 1)], MESH)
    with pytest.raises(Error, match="`sum` is not a monoid"):
        Pending("sum", "x")
    with pytest.raises(Error, match="cannot be pending over `t:2`"):
        Pending("add", "t:2")


def test_a_dim_that_is_not_a_tiling_has_no_tiles():
    made = Layout((parse_range("x*3 + 1"),))
    assert made.global_shape == (7,) and made.local_shape == (4,)
    with pytest.raises(Error, match=r"dim 0 of `.x[*]3 [+] 1.` is not a tiling"):
        tiles_of(made, MESH)
    assert tiles_of(Layout((parse_range("16 + 4"),)), MESH) == ()


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
    made = Layout(tuple(map(parse_range, dims)), tuple(Pending(*p) for p in pending))
    assert made.text(dtype) == text
    assert parse_array(text) == (dtype, made)
    assert parse_array(text)[1] is pickle.loads(pickle.dumps(made)) is made


def test_text_without_an_array_type_is_an_error_that_points():
    with pytest.raises(Error) as caught:
        parse_array("f32[data*, 256]")
    assert f"error: {caught.value}" == (
        "error: `f32[data*, 256]` is not a valid array type\n  --> <array type>:1:10\n   |\n 1 | f32[data*, 256]\n"
        "   |          ^ `,` is not expected here\nhelp: write it as `f32[data*128, 256]{+model}`"
    )


def test_equal_layouts_are_one_object():
    made = layout((512, 256), [("data", 0, 128)], Mesh(data=4))
    assert made is Layout((product(Axis("data"), 128), Extent(256)))
    assert Layout((), (Pending("add", "a"), Pending("add", "b"))) is Layout((), (Pending("add", "b"), Pending("add", "a")))
    assert Layout((), (Pending("add", "a"), Pending("max", "b"))) is not Layout((), (Pending("max", "b"), Pending("add", "a")))


def test_a_pending_scan_is_written_like_a_pending_sum_with_the_dim_that_it_goes_along() -> None:
    mesh = Mesh(data=4, model=2)
    for text in ("f32[data*16, 8]{+data before 0}", "f32[data*16, model*4]{+data before 0, max model behind 1}"):
        dtype, made = parse_array(text)
        assert made.text(dtype) == text
        assert made.local_shape[0] == 16
    assert parse_array("f32[data*16]{+data before 0}")[1].pending[0].scans
