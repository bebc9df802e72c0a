"""The repr of each object: a few lines for programs of any size, and nothing is computed for it."""

# JAX annotates its functions only in part.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))
MESH = pt.Mesh(data=4, model=2)


@pytest.fixture
def plan() -> pt.Plan:
    return pt.plan(chain, MESH, X, W1, W2).tile("x", 0, "data").tile("w1", 1, "model")


def test_a_plan_prints_its_tactics_and_what_is_known(plan: pt.Plan):
    assert repr(plan) == "Plan of chain on data=4, model=2: 2 tactics\n  1: tile('x', 0, 'data')\n  2: tile('w1', 1, 'model')"
    plan.counts()
    assert repr(plan).endswith("\n1 all_reduce")


def test_what_a_plan_is_made_of_prints_on_a_line(plan: pt.Plan):
    parts = (plan.source, plan.source.traced, plan.source.addresses, plan.compile(), plan.lower(), pt.jit(chain, mesh=MESH))
    assert all(len(repr(part)) < 100 and "\n" not in repr(part) for part in parts)


def test_lists_read_as_sentences(plan: pt.Plan):
    (collective,) = plan.collectives()
    assert repr(collective) == str(collective)
    assert str(collective).startswith("all_reduce of `result`, made at models.py:") and ", over model: " in str(collective)


def test_a_function_may_have_parameters_of_our_names():
    def product(fn: np.ndarray, mesh: np.ndarray) -> np.ndarray:
        return fn @ mesh

    made = pt.plan(product, MESH, fn=X, mesh=W1)
    assert made.arguments() == pt.replay(product, MESH, "", fn=X, mesh=W1).arguments() == ["fn", "mesh"]


def test_a_collective_names_the_parameter_the_direction_the_trips_and_the_tactic_by_number() -> None:
    def loss(params: Any, x: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            return jnp.tanh(x @ w.astype(jnp.float32).T), None

        return lax.scan(jax.checkpoint(layer), x, params["wq"])[0].sum()

    # With fewer rows the activations would move, not the parameter.
    args = {"wq": np.ones((6, 64, 64), np.float16)}, np.ones((512, 64), np.float32)
    plan = pt.plan(jax.grad(loss), pt.Mesh(data=8), *args)
    plan = plan.apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params"))
    gathers = [each for each in plan.collectives() if each.kind == "all_gather" and each.value == "params/wq"]
    assert [(each.value, each.direction, each.times, each.numbers) for each in gathers] == [
        ("params/wq", "forward", 6, "2"),
        ("params/wq", "recomputed", 6, "2"),
    ]
    assert str(gathers[0]).startswith(
        "all_gather of `params/wq` (forward) over data: 7,168 bytes x 6 trips, needed by `convert_element_type` at "
    )
    assert str(gathers[1]).endswith(", because of 2: ZeRO(stage=3, axis='data', params='params')")


def test_what_the_program_itself_places_is_said_without_the_sign_of_a_comment() -> None:
    def local(x: Any) -> Any:
        return x * 2.0

    def doubled(x: Any) -> Any:
        mesh = jax.sharding.AbstractMesh((2,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
        rows = jax.sharding.PartitionSpec("a")
        return jax.shard_map(local, mesh=mesh, in_specs=rows, out_specs=rows)(x)

    plan = pt.plan(doubled, pt.Mesh(a=2), np.ones((8, 8), np.float32))
    assert plan.trace.startswith("# ") and "1: the program's own shard_map" in str(plan)
    assert "decided by 1: the program's own shard_map" in plan.explain("x")
    replicated = plan.replicate("result", "a").collectives()
    assert [each.causes[0] for each in replicated] == [(1, "the program's own shard_map")]
    said = ", because of 1: the program's own shard_map and 2: replicate('result', 'a')"
    assert all(said in str(each) for each in replicated)


def trained(params: Any, x: Any) -> Any:
    """A training step of layers in a loop, and of one after it that is read twice."""

    def loss(params: Any) -> Any:
        h, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, params["stack"])
        return jnp.mean((jnp.tanh(h @ params["twice"]) @ params["twice"] + params["b"][None, :]) ** 2)

    gradients = jax.grad(loss)(params)
    return jax.tree.map(lambda w, d: w - 0.1 * d, params, gradients)


def test_the_sum_of_a_gradient_names_its_parameter() -> None:
    params = {"stack": np.ones((3, 8, 8), np.float32), "twice": np.ones((8, 8), np.float32), "b": np.ones(8, np.float32)}
    plan = pt.plan(trained, pt.Mesh(data=4), params, np.ones((16, 8), np.float32)).apply(pt.DataParallel("data", inputs="x"))
    sums = {each.value.partition("#")[0] for each in plan.collectives() if each.direction == "backward"}
    assert sums == {f"grad(params/{name})" for name in params}
    for each in plan.collectives():
        assert plan.explain(each.value).steps and f"`{each.value}`" in str(each) and each.value in plan.layout(each.value)
    # Each such name is of one value.
    names = [name for name in plan.source.addresses.names.values() if name.startswith("grad(")]
    assert len(names) == len(set(names)) > 3


def test_a_program_without_a_backward_pass_names_no_gradient() -> None:
    def update(params: Any, gradient: Any) -> Any:
        return jax.tree.map(lambda w, d: w - 0.1 * d, params, gradient)

    plan = pt.plan(update, pt.Mesh(data=4), {"w": np.ones(8, np.float32)}, {"w": np.ones(8, np.float32)})
    assert plan.source.addresses.gradients == {}


def chained(params: Any, x: Any) -> Any:
    first, second, third = params
    return jnp.sum(jnp.tanh(x @ first) @ second) + jnp.max(x @ third)


def test_a_table_of_collectives_has_the_numbers_by_which_they_are_asked_for() -> None:
    params = [np.ones((8, 8), np.float32)] * 3
    plan = pt.plan(chained, pt.Mesh(data=4), params, np.ones((16, 8), np.float32)).apply(pt.Tile({"params/*": 0}, "data"))
    header, _, *rows = str(plan.collectives()).splitlines()
    assert header.split()[:2] == ["no.", "value"]
    listed = {int(row.split()[0]): row.split()[1:3] for row in rows if row[:1].isdecimal() and ": " not in row[:4]}
    assert listed == {at: [each.value, each.kind] for at, each in enumerate(plan.collectives())}
    assert "no." in plan.collectives().all().text()


def test_annotations_that_name_no_axis_are_said_to_be_wrong() -> None:
    plan = pt.plan(lambda x: pt.constrain(jnp.sin(x), "rows, _"), MESH, X)
    assert "1 annotation of the program not applied: `rows` is no axis of data=4, model=2: " in str(plan)


def test_a_value_that_the_program_returns_is_not_computed_in_parts() -> None:
    rows = pt.plan(lambda x, i: x[i], pt.Mesh(data=8), np.ones((64, 4), np.float32), np.arange(32)).tile("x", 0, "data")
    assert "can be computed in parts" not in str(rows)
