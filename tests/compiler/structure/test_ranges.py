"""`plan.ranges`: dims that belong together, with names by which a strategy is written."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt

MESH = pt.Mesh(data=4, model=2)
PARAMS = {name: np.ones(shape, np.float32) for name, shape in {"embed": (32, 8), "w1": (8, 64), "w2": (64, 8)}.items()}
ARGS = PARAMS, {"tokens": np.zeros((16, 6), np.int32), "target": np.ones((16, 6, 8), np.float32)}


def train_step(params: Any, batch: Any) -> Any:
    def loss(params: Any) -> Any:
        h = jax.nn.relu(params["embed"][batch["tokens"]] @ params["w1"])
        return jnp.mean((h @ params["w2"] - batch["target"]) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


@pytest.fixture
def plan() -> pt.Plan:
    return pt.plan(train_step, MESH, *ARGS)


def test_ranges_have_names_extents_and_dims(plan: pt.Plan) -> None:
    found = {each.name: each for each in plan.ranges()}
    assert set(found) == {"batch", "length", "params/embed.0", "params/embed.1", "params/w1.1", "params/w2.1"}
    assert found["batch"].dims == ("batch/target.0", "batch/tokens.0")
    assert found["length"].dims == ("batch/target.1", "batch/tokens.1")
    assert found["params/w1.1"].dims == ("params/w1.1", "params/w2.0", "result/w1.1", "result/w2.0")
    assert [found[name].extents for name in ("batch", "length", "params/embed.0", "params/w1.1")] == [(16,), (6,), (32,), (64,)]


def test_a_suggested_name_is_a_whole_strategy(plan: pt.Plan) -> None:
    by_range = plan.tile("*", "batch", "data").tile("**", "params/w1.1", "model")
    by_tactics = plan.apply(pt.DataParallel("data", inputs="batch/*"), pt.Megatron("model", column="**/w1", row="**/w2"))
    assert (by_range.layout("**"), by_range.counts()) == (by_tactics.layout("**"), by_tactics.counts())
    again = pt.replay(train_step, MESH, by_range.trace, *ARGS)
    assert (again.layout("**"), again.trace) == (by_range.layout("**"), by_range.trace)
    assert {each.name: each.axes for each in by_range.ranges()}["batch"] == ("data",)


def test_a_name_that_a_tactic_gives_is_the_name_of_its_range(plan: pt.Plan) -> None:
    assert "hidden" in {each.name for each in plan.name("params/w1", 1, "hidden").ranges()}
    with pytest.raises(pt.Error, match="no range is named `bath`") as raised:
        plan.tile("*", "bath", "data")
    assert raised.value.helps[0] == "did you mean `batch`?"


def test_a_function_without_a_training_step_has_the_ranges_of_its_arguments() -> None:
    def product(x: Any, w: Any) -> Any:
        return x @ w

    found = pt.plan(product, MESH, np.ones((8, 4)), np.ones((4, 2))).ranges()
    assert {each.name: each.dims for each in found} == {
        "x.0": ("x.0", "result.0"), "x.1": ("x.1", "w.0"), "w.1": ("w.1", "result.1"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("function", "args", "batch"),
    [
        pytest.param(lambda x, w1, w2: jax.nn.relu(x @ w1) @ w2, [(64, 16), (16, 32), (32, 16)], None, id="a result like x"),
        pytest.param(lambda w, x: jax.lax.scan(lambda x, w: (x @ w, None), x, w)[0], [(4, 8, 8), (2, 8)], None, id="layers"),
        pytest.param(lambda k, x: x + jax.random.normal(k, x.shape), [None, (8, 4)], None, id="a key"),
        pytest.param(lambda p, s, t: (p[t] + s[None], s), [(32, 8), (6, 8), "tokens"], ("t.0",), id="tokens"),
    ],
)  # fmt: skip
def test_no_range_is_called_the_batch_unless_the_inputs_say_so(function: Any, args: Any, batch: tuple[str, ...] | None) -> None:
    made = [jax.random.key(0) if a is None else np.zeros((16, 6), np.int32) if a == "tokens" else np.ones(a) for a in args]
    found = {each.name: each.dims for each in pt.plan(function, MESH, *made).ranges()}
    assert found.get("batch", (None,))[0] == (batch or (None,))[0]


def test_a_pattern_of_names_takes_the_ranges_of_all_layers() -> None:
    def stack(layers: Any, x: Any) -> Any:
        for w1, w2 in layers:
            x = jax.nn.relu(x @ w1) @ w2
        return x

    plan = pt.plan(stack, MESH, [(np.ones((8, 16)), np.ones((16, 8)))] * 3, np.ones((4, 8)))
    tiled = plan.tile("**", "layers/*/0.1", "model")
    assert tiled.layout("layers/2/1") == {"layers/2/1": "f32[model*8, 8]"}
    assert tiled.counts()["all_reduce"] == 3


def test_a_name_that_hides_a_suggestion_hides_no_range(plan: pt.Plan) -> None:
    found = plan.name("params/w1", 1, "batch").ranges()
    assert {each.dims[0] for each in found} == {each.dims[0] for each in plan.ranges()}
    assert next(each.dims[0] for each in found if each.name == "batch") == "params/w1.1"


def test_the_dims_that_a_loop_takes_apart_into_trips_are_one_row() -> None:
    def layers(a: jax.Array, b: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w[0]) @ w[1], None), x, (a, b))[0]

    found = pt.plan(layers, pt.Mesh(d=2), jnp.ones((3, 8, 6)), jnp.ones((3, 6, 8)), jnp.ones((4, 8))).ranges()
    assert [each.name for each in found if each.is_stack] == ["a.0", "b.0"]
    rows = str(found).splitlines()
    assert "`a.0` stands for 2 ranges of 3: the trips of loops" in rows and not any(row.startswith("b.0") for row in rows)
    assert any(row.startswith("b.0") for row in str(found.all()).splitlines())
