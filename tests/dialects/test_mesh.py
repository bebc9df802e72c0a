"""The mesh: an ordered, immutable mapping from axis names to sizes."""

import copy
import pickle

import pytest

from partita.dialects.ground.errors import Error
from partita.dialects.mesh import Mesh


def test_a_mesh_maps_axis_names_to_sizes_in_order():
    mesh = Mesh(data=4, model=2)
    assert mesh["data"] == 4 and list(mesh) == ["data", "model"] and len(mesh) == 2 and mesh.size == 8
    assert mesh.axes == {"data": 4, "model": 2} == dict(mesh.items())
    assert "model" in mesh and "expert" not in mesh and mesh.get("expert") is None
    assert str(mesh) == "data=4, model=2" and repr(mesh) == "Mesh(data=4, model=2)"


def test_the_order_of_the_axes_is_part_of_the_mesh():
    assert Mesh(data=4, model=2) != Mesh(model=2, data=4)
    assert Mesh(data=4, model=2) is Mesh({"data": 4}, model=2) is Mesh({"data": 4, "model": 2})
    assert len({Mesh(data=4), Mesh(data=4), Mesh(data=2)}) == 2


def test_a_mesh_reads_back_from_its_text():
    for mesh in (Mesh(), Mesh(data=4), Mesh(data=4, model=2), Mesh(a=8).refine(a=(2, 4))):
        assert Mesh.parse(str(mesh)) is copy.deepcopy(mesh) is pickle.loads(pickle.dumps(mesh)) is mesh


def test_devices_are_counted_with_the_last_axis_fastest():
    mesh = Mesh(a=2, b=3)
    a, b = mesh.places
    assert list(mesh.coordinates()) == [{a: i, b: j} for i in range(2) for j in range(3)]
    assert list(Mesh().coordinates()) == [{}]


def test_a_mesh_cannot_be_changed():
    mesh = Mesh(data=4)
    mesh.axes["data"] = 5
    assert mesh["data"] == 4
    with pytest.raises(AttributeError):
        mesh.pairs = ()  # pyright: ignore[reportAttributeAccessIssue]


def test_refining_splits_axes_in_order():
    mesh = Mesh(x=3, a=8, b=2).refine(a=(2, 4))
    assert str(mesh) == "x=3, a.0=2, a.1=4, b=2"
    assert mesh["a"] == 8 and mesh["a.1"] == 4 and mesh.sub_axes("a") == (2, 4) and mesh.sub_axes("b") == ()
    with pytest.raises(Error, match=r"`a` .8 devices. does not split into 3 [*] 2"):
        Mesh(a=8).refine(a=(3, 2))


def test_an_unknown_axis_suggests_the_nearest_names():
    with pytest.raises(Error) as caught:
        Mesh(data=4, model=2)["modle"]
    assert f"error: {caught.value}" == "error: the mesh has no axis `modle`\nhelp: did you mean `model`?"
    with pytest.raises(Error) as caught:
        Mesh(data=4, model=2)["x"]
    assert f"error: {caught.value}" == "error: the mesh has no axis `x`\nhelp: the mesh has `data`, `model`"


@pytest.mark.parametrize("axes", [{"2d": 4}, {"a b": 2}, {"": 2}, {"a": 0}, {"a": -1}, {"a": True}, {"b": 2.5}])
def test_a_mesh_that_makes_no_sense_is_an_error(axes: dict[str, int]):
    with pytest.raises(Error):
        Mesh(axes)


@pytest.mark.parametrize("text", ["data", "data=", "data=x", "data=4, data=2", "=4", "data=-1"])
def test_mesh_text_that_makes_no_sense_is_an_error(text: str):
    with pytest.raises(Error):
        Mesh.parse(text)


def test_a_mesh_says_which_axes_have_slow_links():
    mesh = Mesh(pod=2, data=4, slow="pod")
    assert str(mesh) == "pod=2 slow, data=4" and repr(mesh) == "Mesh(pod=2, data=4, slow='pod')"
    assert repr(Mesh(a=2, b=2, slow=["b", "a"])) == "Mesh(a=2, b=2, slow=('a', 'b'))"
    assert Mesh.parse(str(mesh)) is copy.deepcopy(mesh) is pickle.loads(pickle.dumps(mesh)) is mesh
    assert mesh != Mesh(pod=2, data=4) and mesh.axes == Mesh(pod=2, data=4).axes
    assert mesh.is_slow(("data", "pod")) and not mesh.is_slow(("data",))


def test_parts_of_a_slow_axis_are_slow():
    mesh = Mesh(pod=4, data=2, slow="pod")
    assert str(mesh.refine(pod=(2, 2))) == "pod.0=2 slow, pod.1=2 slow, data=2"
    assert mesh.having("pod.0:2").whole() is mesh and mesh.refine(data=(1, 2)).slow == ("pod",)


@pytest.mark.parametrize(
    ("slow", "said"),
    [("dat", "the mesh has no axis `dat`"), (["pod", "x"], "has no axis `x`"), (4, "takes names of axes, got 4")],
)
def test_slow_links_of_no_axis_are_an_error(slow: str, said: str):
    with pytest.raises(Error, match=said):
        Mesh(pod=2, data=4, slow=slow)


@pytest.mark.parametrize("text", ["pod=2 fast", "pod=2 slow slow", "pod=slow"])
def test_a_mark_that_is_unknown_is_an_error(text: str):
    with pytest.raises(Error):
        Mesh.parse(text)
