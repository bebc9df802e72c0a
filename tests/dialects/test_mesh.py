"""The mesh: an ordered, immutable mapping from axis names to sizes."""

import copy
import pickle

import pytest

from partita.dialects.chips import CHIPS
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


@pytest.mark.parametrize("chip", CHIPS)
def test_a_mesh_names_its_chip(chip: str):
    mesh = Mesh(pod=2, data=4, slow="pod", chip=chip)
    assert mesh.chip is CHIPS[chip] and mesh.chip.name == chip
    assert Mesh.parse(str(mesh)) is copy.deepcopy(mesh) is pickle.loads(pickle.dumps(mesh)) is mesh
    assert mesh.axes == {"pod": 2, "data": 4} and mesh.size == 8 and mesh.slow == ("pod",)


def test_a_mesh_of_the_default_chip_does_not_say_so():
    assert Mesh(data=4, chip="v5e") is Mesh(data=4) is Mesh.parse("chip=v5e, data=4")
    assert str(Mesh(data=4)) == "data=4" and repr(Mesh(data=4)) == "Mesh(data=4)"
    mesh = Mesh(data=8, model=4, chip="v5p")
    assert str(mesh) == "data=8, model=4, chip=v5p" and repr(mesh) == "Mesh(data=8, model=4, chip='v5p')"
    assert mesh is not Mesh(data=8, model=4)


def test_the_same_devices_are_the_same_chips():
    mesh = Mesh(data=8, chip="H100")
    assert str(mesh.refine(data=(2, 4))) == "data.0=2, data.1=4, chip=H100"
    assert mesh.having("data.0:2").whole() is mesh is mesh.on("left").on("")
    left = mesh.on("left")
    assert repr(left) == "Mesh(data=8, chip='H100').on(\"left\")" and Mesh.parse("data@left=8, chip=H100") is left


def test_an_axis_may_be_called_chip():
    mesh = Mesh(data=2, chip=4, model=2)
    assert str(mesh) == "data=2, chip=4, model=2" and mesh["chip"] == 4 and mesh.chip.name == "v5e"
    assert Mesh.parse(str(mesh)) is mesh is Mesh({"data": 2, "chip": 4, "model": 2})
    both = Mesh({"chip": 4}, chip="v4")
    assert str(both) == "chip=4, chip=v4" and both.axes == {"chip": 4} and Mesh.parse(str(both)) is both
    assert both.refine(chip=(2, 2)).whole() is both


def test_a_mesh_says_how_much_memory_a_plan_may_use():
    mesh = Mesh(data=8, chip="H100", memory="1.5GiB")
    assert mesh.chip.memory == 3 << 29 and str(mesh) == "data=8, chip=H100, memory=1536MiB"
    assert repr(mesh) == "Mesh(data=8, chip='H100', memory='1536MiB')" and eval(repr(mesh), {"Mesh": Mesh}) is mesh
    assert Mesh.parse(str(mesh)) is copy.deepcopy(mesh) is pickle.loads(pickle.dumps(mesh)) is mesh
    assert str(mesh.refine(data=(2, 4)).having("t:4")) == "data.0=2, data.1=4, t:4, chip=H100, memory=1536MiB"
    assert mesh.refine(data=(2, 4)).whole() is mesh.on("left").on("") is mesh
    assert Mesh(data=8, memory="16GB") is Mesh(data=8), "a v5e has as much"
    assert Mesh.parse("memory=4, memory=12GB, data=2") is Mesh({"memory": 4, "data": 2}, memory="12GB")
    assert Mesh(memory=4).axes == {"memory": 4}


@pytest.mark.parametrize("memory", ["12", "x", "0GiB", "-1GiB", "12 gib", "GiB", 1.5, ["1GiB"], 16 << 30])
def test_a_memory_that_is_no_number_of_bytes_is_an_error(memory: str):
    with pytest.raises(Error, match="`memory` takes how much of a device's memory a plan may use"):
        Mesh(data=8, memory=memory)


def test_a_mesh_has_one_memory():
    with pytest.raises(Error, match="says its memory twice"):
        Mesh.parse("data=8, memory=1GiB, memory=2GiB")


@pytest.mark.parametrize(
    ("chip", "said"),
    [
        ("v5", "takes the name of a chip, got 'v5'\nhelp: did you mean `v5p`?\nhelp: the chips are v3, v4, v5e, "),
        ("a100", "got 'a100'\nhelp: did you mean `A100`?"),
        ("", "got ''\nhelp: the chips are"),
        (None, "got None\nhelp: the chips are"),
        (2.5, "got 2.5\nhelp: the chips are"),
        (True, "got True\nhelp: the chips are"),
        (0, "mesh axis `chip` has size 0"),
    ],
)
def test_a_chip_that_is_unknown_is_an_error(chip: str, said: str):
    with pytest.raises(Error) as error:
        Mesh(data=4, chip=chip)
    assert said in str(error.value)


@pytest.mark.parametrize("text", ["chip=v9", "chip=v4 slow", "chip=v4, chip=v4", "chip@left=v4", "chip=", "chip=-1", "data=v4"])
def test_text_of_a_chip_that_makes_no_sense_is_an_error(text: str):
    with pytest.raises(Error):
        Mesh.parse(text)


def test_a_part_of_a_set_is_a_set_with_the_other_axes():
    pipe = Mesh(stage=2, data=4, slow="stage").on("pipe")
    last = pipe.at(stage=1)
    assert str(last) == "data@pipe_stage1=4 of [stage@pipe=2 slow, data@pipe=4] at 4:8"
    assert last.part == (pipe, (4, 5, 6, 7)) and last.places[0] is not pipe.places[1]
    assert pipe.at(data=3).part == (pipe, (3, 7)) and str(pipe.at(data=3, stage=1)).startswith("device@pipe_stage1_data3=1 of ")
    assert pipe.at() is pipe


def test_a_row_of_devices_is_sliced_as_a_list_is():
    row = Mesh(device=8).on("row")
    assert row[:2].part == (row, (0, 1)) and row[6:].part == (row, (6, 7)) and row[1::3].part == (row, (1, 4, 7))
    assert row[-1].part == (row, (7,)) and row[2].size == 1 and row["device"] == 8
    assert row[2:6][1:].part == (row[2:6], (1, 2, 3))


def test_parts_of_sets_have_a_text_and_stay_the_same_objects():
    row = Mesh(device=8, chip="v4").on("row")
    grid = Mesh(a=2, b=2, c=2).on("grid")
    for part in (row[:2], row[1::3], row[2:6][1:], grid.at(b=1), grid.at(b=1).at(a=0), grid.at(b=0, c=1)):
        assert Mesh.parse(str(part)) is part is eval(repr(part)) is pickle.loads(pickle.dumps(part))
        assert part.refine(**{next(iter(part)): (1, part[next(iter(part))])}).whole() is part


@pytest.mark.parametrize(
    "text",
    [
        "a@x=2 of [a@all=8] at 7:9",
        "a@x=2 of [a@all=8] at 1 1",
        "a@x=2 of [a@all=8] at 0:9999999999999999999999",
        "a@x=2 of [a@all=8] at 0 1 2",
    ],
)
def test_a_part_has_as_many_devices_of_the_set_as_it_says(text: str):
    with pytest.raises(Error, match="are not 2 devices of a set of 8"):
        Mesh.parse(text)
