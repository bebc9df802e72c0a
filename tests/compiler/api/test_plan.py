"""Plans say what they do and why, and never change."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import copy
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import Transformer, chain, gram, train_step

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=4, model=2)
X, W1, W2 = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((256, 8), (8, 16), (16, 8)))
SMALL = Transformer(layers=1)
BATCH = pt.DataParallel("data", inputs="batch/*")
MEGATRON = pt.Megatron("model", column={"params/**/wqkv": 2, "params/**/w1": 1})
ZERO = pt.ZeRO(3, "data", params="params", optimizer="opt")


@pytest.fixture
def plan() -> Plan:
    return pt.plan(chain, MESH, X, W1, W2)


@pytest.fixture(scope="session")
def training() -> Plan:
    return pt.plan(train_step, MESH, *SMALL.shapes())


def readings(plan: Plan) -> tuple[object, ...]:
    """The reports of a plan, computed on a copy without memos."""
    fresh = replace(plan)
    return fresh.trace, fresh.layout(), fresh.counts(), fresh.bytes_per_device()


# --- order ---------------------------------------------------------------------------------------------------------------


def test_the_order_of_tactics_decides_and_each_plan_says_which_was_earlier(training: Plan) -> None:
    batch_first, zero_first = training.apply(BATCH, ZERO), training.apply(ZERO, BATCH)
    assert batch_first.counts() != zero_first.counts()
    weight = "params/blocks/0/w1"
    assert batch_first.layout(weight) == zero_first.layout(weight) == {weight: "f32[data*4, 32]"}
    assert f"already uses `data` by 1: {BATCH!r}, which was earlier than 2: {ZERO!r}" in batch_first.explain(weight)
    assert "which was earlier" not in zero_first.explain(weight)
    # The batch has the axis in all ops even so, because that receives less.
    assert "already uses" not in zero_first.explain("batch/x")
    assert any("`dot_general` runs along dim 0 of `add#" in each.why for each in zero_first.collectives())


def test_explain_names_the_tactic_the_line_and_the_path(plan: Plan) -> None:
    tiled = plan.tile("w1", 1, "model")
    said = tiled.explain("result")
    assert "result: f32[256, 8]{+model}" in said
    assert "by all_reduce" in said
    assert "w2: f32[model*8, 8]\n  dim 0 on `model`: decided by 1: tile('w1', 1, 'model')" in tiled.explain("w2")


# --- traces --------------------------------------------------------------------------------------------------------------


def test_a_replayed_trace_gives_the_same_plan(training: Plan) -> None:
    made = training.apply(BATCH, MEGATRON, ZERO)
    again = pt.replay(train_step, MESH, made.trace, *SMALL.shapes())
    assert readings(again) == readings(made)


def test_every_action_is_replayed(plan: Plan) -> None:
    made = (
        plan.name("x", 0, "B")
        .tile("*", "B", "data", propagate=False)
        .propagate("data")
        .replicate(["w1"], "model")
        .apply(pt.Replicate("w2", "data"), pt.Tile({"w2": -2}, "model"), pt.ZeRO(3, "data", params="w1"))
        .tile("result", np.int64(1), "model")  # pyright: ignore[reportArgumentType]
    )
    text = f"# what was found to be best\n\n{made.trace}\n"
    again = pt.replay(chain, MESH, text, X, W1, W2)
    assert readings(again) == readings(made)
    assert len(made.trace.splitlines()) == 8


def test_a_user_defined_tactic_is_a_function(plan: Plan) -> None:
    def halves(plan: Plan) -> Plan:
        return plan.tile("x", 0, "data").tile("w1", 1, "model")

    assert plan.apply(halves).trace == "tile('x', 0, 'data')\ntile('w1', 1, 'model')"


# --- immutability ----------------------------------------------------------------------------------------------------------


def test_a_plan_never_changes(plan: Plan) -> None:
    before = readings(plan)
    tiled = plan.tile("x", 0, "data")
    between = readings(tiled)
    tiled.tile("w1", 1, "model").apply(pt.ZeRO(3, "data", params="w*"))
    with pytest.raises(pt.Error):
        tiled.apply(pt.Tile({"w1": 1, "x": 1}, "data"))
    assert readings(plan) == before and readings(tiled) == between
    with pytest.raises(AttributeError):
        plan.mesh = MESH  # pyright: ignore[reportAttributeAccessIssue]


def test_a_copy_of_a_plan_is_the_plan(plan: Plan) -> None:
    tiled = plan.tile("x", 0, "data")
    assert copy.copy(tiled) is tiled and copy.deepcopy({"plan": tiled})["plan"] is tiled


def test_two_branches_of_a_plan_are_independent(plan: Plan) -> None:
    base = plan.tile("x", 0, "data")
    left, right = base.tile("w1", 1, "model"), base.tile("w1", 0, "model")
    assert left.layout("w1") == {"w1": "f32[8, model*8]"} and right.layout("w1") == {"w1": "f32[model*4, 16]"}
    assert base.layout("w1") == {"w1": "f32[8, 16]"}


# --- tiles ---------------------------------------------------------------------------------------------------------------


def test_a_tile_without_propagation_waits_for_it(plan: Plan) -> None:
    still = plan.tile("x", 0, "data", propagate=False)
    assert still.layout() == {"x": "f32[data*64, 8]", "w1": "f32[8, 16]", "w2": "f32[16, 8]", "result": "f32[256, 8]"}
    assert still.counts()["all_gather"] == 1
    wanted = plan.tile("x", 0, "data")
    for carried in (still.propagate("data"), still.tile("x", 0, "data")):
        assert (carried.layout(), carried.counts()) == (wanted.layout(), wanted.counts())


def test_dims_count_from_the_end_too(plan: Plan) -> None:
    assert plan.tile("x", -2, "data").layout() == plan.tile("x", 0, "data").layout()


def test_a_value_named_twice_is_tiled_once(plan: Plan) -> None:
    assert plan.tile(["x", "x", "?"], 0, "data").layout() == plan.tile("x", 0, "data").layout()


def test_a_result_is_tiled_and_its_arguments_follow(plan: Plan) -> None:
    tiled = plan.tile("result", 0, "data")
    assert tiled.layout() == plan.tile("x", 0, "data").layout()
    assert "said by 1: tile('result', 0, 'data')" in tiled.explain("result")


def test_a_value_in_the_middle_is_tiled_by_tag_or_scope() -> None:
    def model(x: jax.Array, w: jax.Array) -> jax.Array:
        with jax.named_scope("mlp"):
            h = jnp.tanh(pt.tag(x @ w, "h"))
        return jnp.sum(h @ w)

    x, w = np.ones((16, 8), np.float32), np.full((8, 8), 0.1, np.float32)
    plan = pt.plan(jax.grad(model, argnums=1), MESH, x, w)
    for name, dim, axis in (("h", 0, "data"), ("grad(h)", 1, "model"), ("jvp(mlp)/dot_general#0", 1, "data")):
        tiled = plan.tile(name, dim, axis)
        assert axis in tiled.layout(name)[name]
        assert tiled.check(x, w) < 2e-4
    (scope,) = pt.plan(model, MESH, x, w).tile("mlp", 0, "data").layout("mlp").values()
    assert scope == "f32[data*4, 8]"


def test_a_dim_takes_several_axes_in_the_order_in_which_they_are_placed(plan: Plan) -> None:
    assert plan.tile("x", 0, "data").tile("x", 0, "model").layout("x") == {"x": "f32[data*model*32, 8]"}
    assert plan.tile("x", 0, "model").tile("x", 0, "data").layout("x") == {"x": "f32[model*data*32, 8]"}
    both = plan.apply(pt.DataParallel(("data", "model"), inputs="x"))
    assert both.layout("result") == {"result": "f32[data*model*32, 8]"}


def test_zero_over_several_axes_tiles_one_dim_as_over_one_axis_of_all_their_devices(plan: Plan) -> None:
    several = plan.apply(pt.ZeRO(3, ["data", "model"], params="w*"))
    assert several.layout("w1") == {"w1": "f32[data*model, 16]"}
    by_hand = plan.tile("w*", 0, ("data", "model"))
    assert several.layout() == by_hand.layout() and several.counts() == by_hand.counts()
    assert len(several.trace.splitlines()) == 1


def test_axes_that_divide_no_dim_together_tile_one_each() -> None:
    mesh, args = pt.Mesh(data=4, ctx=2, model=2), [jnp.ones((4, 6))]
    plan = pt.plan(lambda w: w * 2, mesh, *args)
    assert plan.apply(pt.FSDP(("data", "ctx"))).layout("w") == {"w": "f32[data, ctx*3]"}
    padded = pt.plan(lambda w: w * 2, mesh, jnp.ones((6, 9))).apply(pt.FSDP(("data", "ctx"), padded=True))
    assert padded.layout("w") == {"w": "f32[6, data*ctx*2 pad 9]"}


def test_propagation_does_not_cross_a_replicated_value(plan: Plan) -> None:
    kept = plan.replicate("x", "data").tile("result", 0, "data")
    assert kept.layout() == {"x": "f32[256, 8]", "w1": "f32[8, 16]", "w2": "f32[16, 8]", "result": "f32[data*64, 8]"}
    assert sum(kept.counts().values()) == 0


def test_an_axis_of_size_one_does_nothing_and_is_kept_in_the_trace() -> None:
    plan = pt.plan(chain, pt.Mesh(data=1, model=2), X, W1, W2)
    tiled = plan.tile("x", 0, "data").tile("x", 1, "data").replicate("x", "data").propagate("data")
    assert tiled.layout() == plan.layout() and tiled.counts() == plan.counts()
    assert len(tiled.trace.splitlines()) == 4


# --- names ---------------------------------------------------------------------------------------------------------------


def test_a_range_name_tiles_every_argument_that_has_the_range(training: Plan) -> None:
    named = training.name(["batch/x", "batch/y"], 0, "B")
    assert named.labels.keys() == {"B"} and not training.labels
    tiled = named.tile("batch", "B", "data")
    assert tiled.layout() == training.apply(BATCH).layout()


def test_a_range_name_is_a_label_and_changes_nothing(plan: Plan) -> None:
    named = plan.name("w1", 1, "H")
    assert (named.layout(), named.counts()) == (plan.layout(), plan.counts())
    assert named.tile("w*", "H", "model").layout("w*") == {"w1": "f32[8, model*8]", "w2": "f32[model*8, 8]"}


def test_successors_are_the_results_of_the_same_tree(training: Plan) -> None:
    assert training.successors["params/embed"] == "result/0/embed"
    assert training.successors["opt/m/blocks/0/w1"] == "result/1/m/blocks/0/w1"
    assert not [name for name in training.successors if name.startswith("batch")]
    assert training.arguments()[0].startswith("params/") and training.results()[-1] == "result/2"


# --- readings ------------------------------------------------------------------------------------------------------------


def test_expect_is_the_plan_or_an_error(plan: Plan) -> None:
    tiled = plan.tile("x", 1, "data")
    assert tiled.expect(all_reduce=1, all_gather=0) is tiled
    with pytest.raises(pt.Error, match="all_reduce: 1, expected 0") as caught:
        tiled.expect(all_reduce=0)
    assert "because of 1: tile('x', 1, 'data')" in str(caught.value)


def test_collectives_sum_to_the_bytes_and_the_counts(training: Plan) -> None:
    plan = training.apply(BATCH, MEGATRON, ZERO)
    found = plan.collectives()
    assert sum(each.bytes * each.times for each in found) == plan.bytes_per_device()
    assert sum(each.total_bytes for each in found) == plan.bytes_per_device()
    for kind, count in plan.counts().items():
        assert sum(each.times for each in found if each.kind == kind) == count
    assert {cause.tactic for each in found for cause in each.causes} == {repr(tactic) for tactic in (BATCH, MEGATRON, ZERO)}
    assert all(each.source is not None for each in found)


def test_diff_says_what_a_tactic_changed(plan: Plan) -> None:
    before = plan.tile("x", 0, "data")
    after = before.tile("w1", 1, "model")
    said = str(after.diff(before))
    assert "w1" in said and "model" in said and "all_reduce" in said
    assert "x" not in after.diff(before).layouts
    assert not after.diff(after).layouts


def test_a_resolution_of_a_conflict_is_a_tactic_that_can_be_replayed() -> None:
    plan = pt.plan(gram, MESH, X).tile("x", 0, "data")
    (conflict,) = plan.conflicts
    (way,) = conflict.resolutions
    solved = pt.replay(gram, MESH, f"{plan.trace}\n{way.tactic}", X)
    assert not solved.conflicts and solved.bytes_per_device() == way.bytes
    assert plan.apply(way).trace == solved.trace
