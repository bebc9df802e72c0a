"""`pt.tactics_from`: the tactics of a config file are those that Python calls, and each mistake in it is told at its place."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from pathlib import Path

import jax
import pytest
from models import chain
from root import ROOT

import partita as pt

MESH = pt.Mesh(data=4, model=2)
X, W1, W2 = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((256, 8), (8, 16), (16, 8)))
TACTICS = (pt.DataParallel("data", inputs="x"), pt.Tile({"w1": 1}, "model"), pt.ZeRO(3, "data", params=["w1", "w2"]))
"""What each of the files says."""
FILES = {
    "a table for each tactic": """
        [[tactics]]
        name = "DataParallel"
        axis = "data"
        inputs = "x"

        [[tactics]]
        name = "Tile"
        axis = "model"
        [tactics.values]
        w1 = 1

        [[tactics]]
        name = "ZeRO"
        stage = 3
        axis = "data"
        params = ["w1", "w2"]
    """,
    "a list": """
        tactics = [
          {name = "DataParallel", axis = "data", inputs = "x"},
          {name = "Tile", values = {w1 = 1}, axis = "model"},
          {name = "ZeRO", stage = 3, axis = "data", params = ["w1", "w2"]},
        ]
    """,
    "a text": """
        plan = '''
          DataParallel("data", inputs="x")  # the rows
          tile w1.1 @model
          ZeRO(3, "data", params=["w1", "w2"])
        '''
    """,
    "a text with escapes": r"""
        plan = "DataParallel(\"data\", inputs=\"x\"); tile w1.1 @model\nZeRO(3, 'data', params=['w1', 'w2'])"
    """,
}


def written(folder: Path, text: str) -> Path:
    (folder / "strategy.toml").write_text(text)
    return folder / "strategy.toml"


def planned(tactics: tuple[object, ...]) -> pt.Plan:
    return pt.plan(chain, MESH, X, W1, W2).apply(*tactics)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("form", FILES)
def test_the_tactics_of_a_file_are_those_that_python_calls(form: str, tmp_path: Path):
    found = planned(pt.tactics_from(written(tmp_path, FILES[form])))
    wanted = planned(TACTICS)
    assert (found.layout(), found.counts()) == (wanted.layout(), wanted.counts())
    assert pt.replay(chain, MESH, found.trace, X, W1, W2).layout() == wanted.layout()


def test_a_table_of_a_file_that_holds_more(tmp_path: Path):
    file = written(tmp_path, "rate = 0.1\n[train.partition]\nplan = 'tile x.0 @data'\n")
    assert planned(pt.tactics_from(str(file), "train.partition")).trace == "tile('x', 0, 'data')"


def test_what_a_saved_plan_holds_can_stand_in_a_config_file(tmp_path: Path):
    planned(TACTICS).save(tmp_path / "plan.partita")
    _, _, inside = (tmp_path / "plan.partita").read_text().partition("{\n")
    file = written(tmp_path, f"plan = '''\n{inside.rpartition('}')[0]}'''\n")
    assert planned(pt.tactics_from(file)).trace == planned(TACTICS).trace
    assert planned(pt.tactics_from(tmp_path / "plan.partita")).trace == planned(TACTICS).trace


def test_a_tactic_at_a_scope_is_a_table_in_a_table(tmp_path: Path):
    text = "[[tactics]]\nname = 'at'\nvalues = 'w1'\ntactic = {name = 'Tile', values = {w1 = 1}, axis = 'model'}\n"
    assert planned(pt.tactics_from(written(tmp_path, text))).trace == "at('w1', Tile(values={'w1': 1}, axis='model'))"


def test_a_tactic_prints_as_the_call_that_it_is():
    assert str(pt.tactics_from(ROOT / "examples" / "strategy.toml", "by_name")) == (
        "(DataParallel(axis='data'), Megatron(axis='model'), VocabularyParallel(axis='model'), "
        "FSDP(axis='data', values=['params', 'opt']))"
    )


def test_no_tactics_are_none(tmp_path: Path):
    assert pt.tactics_from(written(tmp_path, "tactics = []")) == pt.tactics_from(written(tmp_path, "plan = ''")) == ()


def test_pt_jit_takes_them_on_any_mesh_with_the_axes(tmp_path: Path):
    tactics = pt.tactics_from(written(tmp_path, FILES["a text"]))
    layout = pt.jit(chain, mesh=pt.Mesh(data=2, model=4), tactics=tactics).plan(X, W1, W2).layout("x")
    assert layout == {"x": "f32[data*128, 8]"}


PLACES = {
    "an unknown tactic": ('[[tactics]]\nname = "DataParalel"\naxis = "data"', (2, "DataParalel")),
    "an unknown argument": ('[[tactics]]\nname = "DataParallel"\naxs = "data"', (3, "axs")),
    "an argument that is missing": ('[[tactics]]\nname = "ZeRO"\naxis = "data"', (2, "ZeRO")),
    "a value of a wrong kind": ('[[tactics]]\nname = "DataParallel"\naxis = 3', (3, "axis")),
    "a flag that is a text": ('[[tactics]]\nname = "Tile"\npadded = "no"\naxis = "data"\nvalues.x = 0', (3, "padded")),
    "a stage that there is not": (
        '[[tactics]]\nname = "ZeRO"\nstage = 4\naxis = "data"\nparams = "w1"',
        (3, "stage"),
    ),
    "an axis that the mesh has not": ('[[tactics]]\nname = "DataParallel"\naxis = "dat"', (3, "dat")),
    "the second of two that are alike": (
        '[[tactics]]\nname = "DataParallel"\naxis = "data"\ninputs = "x"\n[[tactics]]\nname = "DataParallel"\naxis = "dat"',
        (7, "dat"),
    ),
    "a value in a table of its own": ('[[tactics]]\nname = "Tile"\naxis = "data"\n[tactics.values]\nw1 = 0\nw9 = 1', (6, "w9")),
    "a value in a tactic at a scope": (
        '[[tactics]]\nname = "at"\nvalues = "w1"\ntactic = {name = "Tile", values = {w9 = 1}, axis = "data"}',
        (4, "w9"),
    ),
    "a tactic without a name": ('[[tactics]]\nname = "Resolve"\n[[tactics]]\naxis = "data"', (3, "tactics")),
    "a line of a text": ("# ours\nplan = '''\ntile x.0 @data\ntile w9.1 @model\n'''", (4, "w9")),
    "an axis in a text": ('[train]\nplan = "tile x.0 @data; tile w1.1 @modl"', (2, "modl")),
    "a slip in a text": ('[train]\nplan = """tile x.0 data\n"""', (2, "data")),
    "an unknown key": ("rate = 1\n", (1, "rate")),
}


@pytest.mark.parametrize("case", PLACES)
def test_an_error_points_at_its_place_in_the_file(case: str, tmp_path: Path):
    text, (line, said) = PLACES[case]
    with pytest.raises(pt.Error) as caught:
        planned(pt.tactics_from(written(tmp_path, text), "train" if "[train]" in text else ""))
    at = caught.value.location
    assert at is not None
    assert (Path(at.file).name, at.line, at.text) == ("strategy.toml", line, text.splitlines()[line - 1])
    assert at.text[at.column - 1 : at.end_column - 1] == said


LARGE = {
    "many tactics": "".join(f'[[tactics]]\nname = "Tile"\naxis = "data"\nvalues = {{x{n} = 0}}\n' for n in range(3000)),
    "a long line": f"[[tactics]]\nname = 'Tile'\naxis = 'data'\nvalues = {{{', '.join(f'x{n} = 0' for n in range(20_000))}}}\n",
}


@pytest.mark.parametrize("case", LARGE)
def test_a_large_file_is_not_read_again_and_again_for_a_place(case: str, tmp_path: Path):
    with pytest.raises(pt.Error, match="no value is named `x0`"):
        planned(pt.tactics_from(written(tmp_path, LARGE[case])))
