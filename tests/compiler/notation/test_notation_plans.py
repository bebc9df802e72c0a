"""Axes after `@` and `plan` blocks partition the program; messages and collectives point at its lines."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt

MLP = """
mesh data=4, model=2

fn mlp(x: f32[B=512 @data, D=256], w1: f32[D, H=1024 @model], w2: f32[H, D]) -> f32[B, D] {
  h[b, j] = max(sum(k) x[b, k] * w1[k, j], 0)
  y[b, d] = sum(j) h[b, j] * w2[j, d]
  return y
}

plan zero3 { tile w1.0 @data; tile w2.1 @data }
"""

LAYERS = """
mesh data=4, model=2
let D=16

fn layer(x: f32[8, D], w: f32[D, D]) -> f32[8, D] {
  s[i, e] = sum(d) x[i, d] * w[d, e]
  y[i, e] = tanh(s[i, e])
  return y
}

fn network(x: f32[8, D], w1: f32[D, E=D], w2: f32[D, E]) -> f32[8, D] {
  a = layer(x, w1)
  b[i, d] = a[i, d]
  z = layer(b, w2)
  return z
}

PLAN
"""


def arrays(notation: pt.Notation) -> list[np.ndarray]:
    """Small integers: their sums are exact in any order, so results on any machine are equal."""
    random = np.random.default_rng(0)
    return [random.integers(-1, 2, each.shape).astype(each.dtype) for each in notation.arguments().values()]


def test_annotations_are_claimed_together_before_the_plan():
    plan = pt.parse(MLP).plan()
    assert plan.layout("**") == {
        "x": "f32[data*128, 256]",
        "w1": "f32[256, model*512]",
        "w2": "f32[model*512, 256]",
        "result": "f32[data*128, 256]",
    }
    assert plan.counts()["all_reduce"] == 1


def test_a_plan_block_starts_from_the_annotations():
    program = pt.parse(MLP)
    plan = program.plan("zero3")
    assert plan.layout("w*") == {"w1": "f32[data*64, model*512]", "w2": "f32[model*512, data*64]"}
    plan.expect(all_gather=2, all_reduce=1)
    assert plan.check(*arrays(program)) == 0


def test_collectives_point_at_the_lines_of_the_text():
    places = {str(each).split(" at ")[1].split(" in ")[0] for each in pt.parse(MLP, "mlp.partita").plan("zero3").collectives()}
    assert places == {"mlp.partita:5", "mlp.partita:6"}


def test_jax_transforms_parsed_functions():
    program = pt.parse(MLP)
    mlp, (x, w1, w2) = program.functions["mlp"], arrays(program)
    step = jax.grad(lambda w1, w2: jnp.sum(mlp(x, w1, w2) ** 2), (0, 1))
    found = pt.plan(step, pt.Mesh(data=4, model=2), w1, w2).tile("w1", 1, "model")
    assert found.check(w1, w2) == 0
    assert jax.jit(mlp)(x, w1, w2).shape == (512, 256)


@pytest.mark.parametrize(
    ("block", "layouts"),
    [
        ("tile x.0 @data", {"x": "f32[data*2, 16]", "result": "f32[data*2, 16]"}),
        ("tile x.0 @data @model", {"x": "f32[data*model, 16]"}),
        ("tile x.0 @data  tile w1.1, w2.0 @model", {"w1": "f32[16, model*8]", "w2": "f32[model*8, 16]"}),
        ("tile w1.E @model", {"w1": "f32[16, model*8]", "w2": "f32[model*8, 16]"}),
        ("tile a.0 @data", {"x": "f32[data*2, 16]"}),
        ("tile a/s.1 @model", {"w1": "f32[16, model*8]"}),
        ("tile b.0 @data", {"x": "f32[data*2, 16]"}),
        ("tile z/s.0 @data", {"result": "f32[data*2, 16]"}),
        ("tile range E over model", {"w1": "f32[16, model*8]"}),
        ("name x.0 as B; tile range B over data", {"x": "f32[data*2, 16]"}),
        ('DataParallel("data", inputs="x")', {"x": "f32[data*2, 16]"}),
        ('tile("x", 0, "data", propagate=False)', {"x": "f32[data*2, 16]", "w1": "f32[16, 16]"}),
        ('tile("x", 0, "data", propagate=False); propagate data', {"result": "f32[data*2, 16]"}),
        ("replicate w1 @model; tile w2.0 @model", {"w1": "f32[16, 16]", "w2": "f32[model*8, 16]"}),
    ],
)
def test_a_line_of_a_plan_is_a_tactic(block: str, layouts: dict[str, str]):
    plan = pt.parse(LAYERS.replace("PLAN", f"plan p {{ {block} }}")).plan("p")
    assert layouts.items() <= plan.layout("**").items()


def test_the_trace_of_a_plan_replays():
    program = pt.parse(MLP)
    plan = program.plan("zero3")
    again = pt.replay(program.functions["mlp"], plan.mesh, plan.trace, *program.arguments().values())
    assert again.counts() == plan.counts()


def test_an_axis_on_the_left_places_an_intermediate_value():
    text = MLP.replace("h[b, j]", "h[b, j @model]", 1).replace("H=1024 @model", "H=1024")
    assert pt.parse(text).plan().layout("w1") == {"w1": "f32[256, model*512]"}


def test_an_axis_after_a_result_places_it():
    text = MLP.replace("B=512 @data", "B=512").replace("-> f32[B, D]", "-> f32[B @data, D]")
    assert pt.parse(text).plan().layout("x") == {"x": "f32[data*128, 256]"}


def test_axes_of_one_dim_go_from_major_to_minor():
    text = MLP.replace("B=512 @data", "B=512 @model @data").replace("H=1024 @model", "H=1024")
    assert pt.parse(text).plan().layout("x") == {"x": "f32[model*data*64, 256]"}


def test_another_mesh_may_replace_the_mesh_of_the_text():
    assert pt.parse(MLP).plan(mesh=pt.Mesh(data=2, model=4)).layout("x") == {"x": "f32[data*256, 256]"}


@pytest.mark.parametrize(
    ("call", "title"),
    [
        (lambda: pt.parse(MLP).plan("zero"), "has no plan `zero`"),
        (lambda: pt.parse(MLP).plan(function="mpl"), "has no function `mpl`"),
        (lambda: pt.parse(MLP.replace("mesh data=4, model=2", "").replace("@data", "").replace("@model", "")), "has no mesh"),
        (lambda: pt.parse("mesh data=4").plan(), "has no function"),
        (lambda: pt.parse("fn f(x: f32[8]) -> f32[8] { return x }").plan(), "names no mesh"),
        (lambda: pt.load("nowhere.partita"), "no such file: `nowhere.partita`"),
        (
            lambda: pt.parse(MLP).functions["mlp"](*[np.ones((4, 256), np.float32)] * 3),
            "f32[4, 256]",
        ),
    ],
)
def test_a_wrong_call_is_refused(call: object, title: str):
    assert callable(call)
    with pytest.raises(pt.Error) as caught:
        call()
    assert title in str(caught.value)
    assert "\nhelp: " in str(caught.value)


@pytest.mark.parametrize(
    ("tactic", "title"),
    [
        ('ZeRO(3, b"data", params=["w1"])', "takes the name of a mesh axis, a string, got b'data'"),
        ('ZeRO(3, {"data": 1}, params=["w1"])', "takes the name of a mesh axis, a string, got {'data': 1}"),
        ('ZeRO(3, ["data", "data"], params=["w1"])', "axis `data` is named twice"),
        ('ZeRO(3, "data", params=5)', "a pattern of names must be a string, got 5"),
        ('ZeRO(3, "data", params=["w1"], optimizer=4)', "a pattern of names must be a string, got 4"),
        ('DataParallel(None, inputs="x")', "takes the name of a mesh axis, a string, got None"),
        ('Megatron(3, column="w1")', "takes the name of a mesh axis, a string, got 3"),
        ('name("x", 0, 3)', "a range's name must be an identifier, got 3"),
    ],
)
def test_a_tactic_with_an_argument_of_another_kind_is_refused(tactic: str, title: str):
    with pytest.raises(pt.Error) as caught:
        pt.parse(MLP.replace("tile w1.0 @data; tile w2.1 @data", tactic)).plan("zero3")
    assert title in caught.value.title
    assert caught.value.location is not None
    assert caught.value.helps
