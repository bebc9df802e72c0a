"""Plan files: what a trace can hold can be written as statements, and a file that is read again is the same plan."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from generated import Case, cases, examples
from hypothesis import given, strategies as st
from models import chain

import partita as pt
from partita.compiler.answers.plan_text import text_of_plan
from partita.compiler.api.notation_plans import steps_of
from partita.compiler.api.replay import Replayed
from partita.compiler.inputs.tactic_calls import Call
from partita.compiler.notation.check import CheckedFile
from partita.compiler.notation.diagnostics import Text
from partita.compiler.notation.parse import tree
from partita.compiler.notation.tactic_statements import Statements, statement
from partita.compiler.plan.history import without_tactics
from partita.compiler.plan.seeds import Seed
from partita.dialects.grammar import phrases

MESH = pt.Mesh(data=4, model=2)
SHAPES = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((256, 8), (8, 16), (16, 8))]
STATEMENTS = {
    "tile('x', 0, 'data')": "tile x.0 @data",
    "tile('x', -1, 'data.0:2')": "tile x.-1 @data.0:2",
    "tile('params/*/w1', 1, 'model', padded=True)": "tile params/*/w1.1 @model padded",
    "tile('x', 0, 'data', block=16)": "tile x.0 @data block 16",
    "tile('x', 0, 'data', propagate=False)": "tile('x', 0, 'data', propagate=False)",
    "tile('*', 'batch', 'data')": "tile *.batch @data",
    "tile('params/*', 'params/w1.1', 'model')": 'tile params/*."params/w1.1" @model',
    "tile(['x', 'y'], 0, 'data')": "tile(['x', 'y'], 0, 'data')",
    "tile('a.b', 0, 'data')": 'tile "a.b".0 @data',
    "tile('range', 0, 'data')": 'tile "range".0 @data',
    "tile('range/w', 0, 'data')": 'tile "range/w".0 @data',
    "tile('params/w[qk]', 0, 'data')": 'tile "params/w[qk]".0 @data',
    "tile('transpose(jvp(h))#3', 0, 'data')": 'tile "transpose(jvp(h))#3".0 @data',
    "tile('say \"w\"', 0, 'data')": "tile('say \"w\"', 0, 'data')",
    "tile('a\\nb', 0, 'data')": "tile('a\\nb', 0, 'data')",
    "Tile(values={'x': 0, 'y': 1}, axis='data')": "tile x.0, y.1 @data",
    "Tile(values={'x': 0}, axis='data', held=True)": "tile x.0 @data held",
    "Tile(values={'x': 0, 'y': 1}, axis='data', held=True, padded=True)": "tile x.0, y.1 @data held padded",
    "Tile(values={'x': 0}, axis='data')": "Tile(values={'x': 0}, axis='data')",
    "TileRange(range='batch', axis='data')": "tile range batch over data",
    "TileRange(range='params/w1.1', axis='model', padded=True)": "tile range params/w1.1 over model padded",
    "TileRange(range='params/layer norm.1', axis='model')": 'tile range "params/layer norm.1" over model',
    "replicate('x', 'data')": "replicate x @data",
    "replicate(['x', 'a b'], 'data')": 'replicate x, "a b" @data',
    "replicate('x', 'data', propagate=False)": "replicate('x', 'data', propagate=False)",
    "name('batch/x', 0, 'B')": "name batch/x.0 as B",
    "name('batch/x', 0, '_b')": "name('batch/x', 0, '_b')",
    "propagate('data')": "propagate data",
    "propagate('data', split=True)": "propagate('data', split=True)",
    "widen('h')": "widen('h')",
    "each_trip('params')": "each_trip('params')",
    "DataParallel(axis=('data', 'model'), inputs='batch/*')": "DataParallel(axis=('data', 'model'), inputs='batch/*')",
    "Megatron(axis='model', column={'a(b)': (1, (2,))})": "Megatron(axis='model', column={'a(b)': (1, (2,))})",
}


def read_again(line: str) -> list[str]:
    """The calls that a line of a file stands for, as a trace writes them."""
    node = tree(Text("", line), "line")
    return [str(call) for each in phrases(node) for call in Statements(Text("", line), pt.Mesh(data=4, model=2)).calls(each)]


@pytest.mark.parametrize("call", STATEMENTS)
def test_a_call_of_a_trace_is_written_as_a_statement_that_reads_back_as_it(call: str) -> None:
    assert statement(call) == STATEMENTS[call]
    assert read_again(STATEMENTS[call]) == [call]


@examples(50)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(-3, 3), st.sampled_from(["data", "data.1:2"]))
def test_any_name_of_a_value_can_be_written(name: str, dim: int, axis: str) -> None:
    call = str(Call("tile", (name, dim, axis)))
    assert read_again(statement(call)) == [call]


def test_a_plan_and_its_file(tmp_path: Path) -> None:
    plan = pt.plan(chain, MESH, *SHAPES).tile("x", 0, "data").apply(pt.Megatron("model", column="w1")).name("x", 0, "B")
    plan.save(tmp_path / "plan.partita")
    assert (tmp_path / "plan.partita").read_text() == (
        "mesh data=4, model=2\n"
        "\n"
        "plan chain {\n"
        "  tile x.0 @data\n"
        "    => x: no collectives\n"
        "  Megatron(axis='model', column='w1')\n"
        "    => w1: 1 all_reduce\n"
        "  name x.0 as B\n"
        "  layout x: f32[data*64, 8]\n"
        "  layout w1: f32[8, model*8]\n"
        "  layout w2: f32[model*8, 8]\n"
        "  layout result: f32[data*64, 8]\n"
        "}\n"
    )
    again = pt.replay(chain, tmp_path / "plan.partita", *SHAPES)
    assert (again.trace, again.layout(), again.counts(), again.mesh) == (plan.trace, plan.layout(), plan.counts(), MESH)
    saved = pt.load(tmp_path / "plan.partita")
    assert (saved.mesh, saved.plans, saved.functions) == (MESH, ("chain",), {})
    assert pt.plan(chain, MESH, *SHAPES).apply(*saved.tactics()).trace == plan.trace
    step = pt.jit(chain, mesh=MESH, tactics=saved.tactics())
    assert step.plan(*SHAPES).layout() == plan.layout()


@examples(40)
@given(cases())
def test_a_plan_that_is_saved_and_read_again_is_the_same_plan(case: Case) -> None:
    text = text_of_plan(case.plan)
    made = Replayed.of(pt.parse(text, "plan.partita").block(), without_tactics(case.plan))
    assert made.problem("plan.partita") is None
    assert text_of_plan(made.plan) == text
    assert (made.plan.trace, made.plan.mesh) == (case.plan.trace, case.plan.mesh)
    assert (made.plan.layout(), made.plan.counts()) == (case.plan.layout(), case.plan.counts())


def test_a_tactic_of_the_users_is_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pt.Tactic, "known", dict(pt.Tactic.known))

    @dataclass(frozen=True, repr=False)
    class Rows(pt.Tactic):
        axis: str

        def seeds(self, plan: pt.Plan) -> Iterator[Seed]:
            yield from pt.Tile({"x": 0}, self.axis).seeds(plan)

    plan = pt.plan(chain, MESH, *SHAPES).apply(Rows("data"))
    plan.save(tmp_path / "plan.partita")
    assert pt.replay(chain, tmp_path / "plan.partita", *SHAPES).trace == "Rows(axis='data')"


def test_the_mesh_is_the_one_before_tactics_refined_it(tmp_path: Path) -> None:
    plan = pt.plan(chain, pt.Mesh(data=8), *SHAPES).tile("x", 0, "data.0:2")
    plan.save(tmp_path / "plan.partita")
    assert (tmp_path / "plan.partita").read_text().startswith("mesh data=8\n")
    refined = pt.plan(chain, pt.Mesh(data=8).refine(data=(2, 2, 2)), *SHAPES).tile("x", 0, "data.1:2")
    refined.save(tmp_path / "plan.partita")
    assert (tmp_path / "plan.partita").read_text().startswith("mesh data.0=2, data.1=2, data.2=2\n")
    assert pt.replay(chain, tmp_path / "plan.partita", *SHAPES).layout() == refined.layout()


PODS = pt.Mesh(pod=2, data=4, slow="pod", memory="12GiB")


@pytest.mark.parametrize(
    "mesh",
    [
        PODS.at(pod=1),
        PODS.on("pods").at(data=2),
        pt.Mesh(a=2, b=2, c=2).at(a=1).at(b=0),
        pt.devices(7, "row")[1:][::3],
        pt.devices(4, "row")[1],
        pt.Mesh(a=4, b=2, c=4).at(a=1, c=3),
    ],
    ids=str,
)
def test_a_part_of_a_mesh_is_in_the_file(mesh: pt.Mesh, tmp_path: Path) -> None:
    file, axis = tmp_path / "plan.partita", next(iter(mesh))
    for name in (axis, f"{axis}@{mesh.devices}"):
        plan = pt.plan(chain, mesh, *SHAPES).tile("x", 0, name)
        plan.save(file)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = pt.replay(chain, file, *SHAPES)
        assert again.mesh is mesh and again.layout() == plan.layout() and again.trace == plan.trace
        assert pt.load(file).mesh is mesh
    plan.save(file)
    with pytest.raises(pt.Error, match="the mesh has no axis") as error:
        pt.replay(chain, pt.Mesh(other=8), file, *SHAPES)
    assert error.value.location is not None and error.value.location.line == 4


def test_a_file_may_hold_plans_of_several_functions(tmp_path: Path) -> None:
    file = tmp_path / "plans.partita"
    file.write_text("mesh data=4\nplan rows of chain { tile x.0 @data }\nplan other { tile y.0 @data }\n")
    assert pt.replay(chain, file, *SHAPES).trace == "tile('x', 0, 'data')"
    with pytest.raises(pt.Error, match="has several plans: rows, other"):
        pt.replay(jnp.sin, file, SHAPES[0])
    with pytest.raises(pt.Error, match="has no plan `row`"):
        pt.load(file).tactics("row")


def test_the_tactics_of_a_file_on_another_mesh(tmp_path: Path) -> None:
    pt.plan(chain, MESH, *SHAPES).tile("x", 0, "data").save(tmp_path / "plan.partita")
    wide = pt.replay(chain, pt.Mesh(data=8), tmp_path / "plan.partita", *SHAPES)
    assert wide.layout("x") == {"x": "f32[data*32, 8]"}


def test_a_program_in_index_notation_is_saved_without_its_function(tmp_path: Path) -> None:
    program = pt.parse("mesh data=4\nfn f(x: f32[B=8 @data]) -> f32[B] { y[b] = x[b] * 2.0 return y }")
    program.plan().save(tmp_path / "plan.partita")
    again = pt.replay(program.functions["f"], tmp_path / "plan.partita", *program.arguments().values())
    assert again.layout() == program.plan().layout()


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "no such file": (lambda folder: pt.replay(chain, folder / "plan.partita", *SHAPES), "no such file"),
    "a folder": (lambda folder: pt.plan(chain, MESH, *SHAPES).save(folder), "cannot be written: Is a directory"),
    "not a name": (lambda folder: pt.plan(chain, MESH, *SHAPES).save(3), "`file` takes the name of a file, got 3"),  # pyright: ignore[reportArgumentType]
    "a trace without a mesh": (lambda folder: pt.replay(chain, "tile('x', 0, 'data')", *SHAPES), "needs a mesh for a trace"),
    "a dict as the mesh": (lambda folder: pt.replay(chain, {"data": 4}, "", *SHAPES), "`mesh` must be a pt.Mesh"),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_says_what_to_write(name: str, tmp_path: Path) -> None:
    call, title = WRONG[name]
    with pytest.raises(pt.Error, match=title) as caught:
        call(tmp_path)
    assert caught.value.helps


def test_a_file_with_functions_is_not_replayed(tmp_path: Path) -> None:
    (tmp_path / "f.partita").write_text("mesh data=4\nfn f(x: f32[8]) -> f32[8] { return x }\nplan p { tile x.0 @data }")
    with pytest.raises(pt.Error, match="has functions of its own"):
        pt.replay(chain, tmp_path / "f.partita", *SHAPES)


def test_a_plan_file_has_no_function_to_plan(tmp_path: Path) -> None:
    pt.plan(chain, MESH, *SHAPES).save(tmp_path / "plan.partita")
    with pytest.raises(pt.Error, match="has no function") as caught:
        pt.load(tmp_path / "plan.partita").plan("chain")
    assert caught.value.helps == ('to partition a JAX function: pt.replay(step, "plan.partita", *args)',)


def test_a_refused_tactic_is_shown_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "plan.partita").write_text("mesh data=3\nplan p {\n  tile w1.1, x.0 @data\n}\n")
    with pytest.raises(pt.Error) as caught:
        pt.replay(chain, tmp_path / "plan.partita", *SHAPES)
    assert "plan.partita:3:8\n" in str(caught.value)
    assert " 3 |   tile w1.1, x.0 @data\n   |        ^^" in str(caught.value)


def test_an_exact_replay_warns_of_nothing(tmp_path: Path) -> None:
    pt.plan(chain, MESH, *SHAPES).tile("x", 0, "data").save(tmp_path / "plan.partita")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt.replay(chain, tmp_path / "plan.partita", *SHAPES)


def test_a_changed_program_is_reported_at_the_tactic_that_does_something_else(tmp_path: Path) -> None:
    pt.plan(chain, MESH, *SHAPES).tile("x", 0, "data").tile("w1", 1, "model").save(tmp_path / "plan.partita")

    def twice(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
        return jnp.sin(x @ w1 @ w2) @ w1 @ w2

    with pytest.warns(pt.ReplayWarning) as caught:
        pt.replay(twice, tmp_path / "plan.partita", *SHAPES)
    text = str(caught[0].message).replace(str(tmp_path) + "/", "")
    assert text == (
        "`plan.partita` was saved from another program: 1 of its 2 tactics does something else\n"
        "  --> plan.partita:6:3\n"
        "   |\n"
        " 6 |   tile w1.1 @model\n"
        "   |   ^^^^^^^^^^^^^^^^\n"
        "note: plan.partita:6:3: `tile w1.1 @model`\n"
        "      was w1: 1 all_reduce\n"
        "       is w1: 2 all_reduce\n"
        'help: to keep what it does now: plan.save("plan.partita")'
    )
    assert steps_of(
        CheckedFile(Text("", "tile x.0 @data"), MESH, {}, {}, {}), phrases(tree(Text("", "tile x.0 @data"), "line"))[0]
    )


def mlp(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    with jax.named_scope("up"):
        h = pt.tag(jax.nn.relu(x @ w1), "h")
    return h @ w2


def refactored(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    def up(x: jax.Array) -> jax.Array:
        with jax.named_scope("up"):
            return pt.tag(jax.nn.relu(x @ weights["in"]), "h")

    return up(x) @ weights["out"]


def test_a_replay_on_another_mesh_reads_the_layouts_on_that_of_the_file(tmp_path: Path) -> None:
    plan = pt.plan(chain, MESH, *SHAPES).tile("x", 0, "data").tile("w1", 1, "model")
    plan.tile("x", 1, "model.0:2").save(tmp_path / "plan.partita")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt.replay(chain, pt.Mesh(data=2, model=4), tmp_path / "plan.partita", *SHAPES)
    more = [jax.ShapeDtypeStruct((512, 8), "float32"), *SHAPES[1:]]
    with pytest.warns(pt.ReplayWarning) as caught:
        pt.replay(chain, pt.Mesh(data=2, model=4), tmp_path / "plan.partita", *more)
    assert str(caught[0].message) == (
        "the program has changed since `plan.partita` was saved\n"
        "note: its arguments and results are not the same:\n"
        "      `x` was f32[256, 8], is f32[512, 8]\n"
        "      `result` was f32[256, 8], is f32[512, 8]\n"
        'help: to keep what it does now: plan.save("plan.partita")'
    )


def test_a_value_that_was_renamed_is_suggested_by_its_type(tmp_path: Path) -> None:
    def logits(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ params["embed"]) @ params[next(name for name in params if name != "embed")]

    x, embed, head = SHAPES
    pt.plan(logits, MESH, {"embed": embed, "head": head}, x).tile("params/head", 0, "model").save(tmp_path / "plan.partita")
    with pytest.raises(pt.Error, match="no value is named `params/head`") as caught:
        pt.replay(logits, tmp_path / "plan.partita", {"embed": embed, "lm": head}, x)
    assert caught.value.helps == (
        "did you mean `params/lm`?",
        "if the program has none any more: take `params/head` out of this line",
    )


def test_tags_scopes_and_ranges_survive_a_refactoring_of_the_model(tmp_path: Path) -> None:
    plan = pt.plan(mlp, MESH, *SHAPES).tile("h", 1, "model").name("up", 0, "B").apply(pt.TileRange("B", "data"))
    plan.save(tmp_path / "plan.partita")
    x, *weights = SHAPES
    with pytest.warns(pt.ReplayWarning, match="and its tactics do the same") as caught:
        again = pt.replay(refactored, tmp_path / "plan.partita", dict(zip(("in", "out"), weights, strict=True)), x)
    assert "`weights/in` is new: was it `w1`?" in str(caught[0].message)
    assert (again.trace, again.counts()) == (plan.trace, plan.counts())
    assert list(again.layout(["weights", "x"]).values()) == list(plan.layout(["w1", "w2", "x"]).values())
