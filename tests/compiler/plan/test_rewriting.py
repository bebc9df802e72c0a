"""A rewritten program keeps its placements, and can be undone, compared and replayed like any tactic."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.advice import rewrites as rewrites_module
from partita.compiler.advice.rewrite_candidates import LawCandidate, places
from partita.compiler.advice.rewrites import Saved, tried_rewrites
from partita.compiler.api.plan import Plan
from partita.compiler.api.tactic_text import tactics_of
from partita.compiler.cost.costs import price
from partita.compiler.cost.loops import loops
from partita.examples import gpt

Array = Any
MESH = pt.Mesh(data=4, model=2)


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def adapter(x: Array, a: Array, b: Array) -> Array:
    """A product with a matrix of low rank."""
    with jax.named_scope("adapter"):
        return (x @ (a @ b)) * 2.0


LOW_RANK = f32(64, 32), f32(32, 4), f32(4, 32)
SAVES = "dot(x, dot(y, z)) => dot(dot(x, y), z)"


def planned() -> Plan:
    return pt.plan(adapter, MESH, *LOW_RANK).tile("x", 0, "data").name("a", 1, "rank").replicate("b", "model")


def test_the_earlier_tactics_make_the_same_claims_on_what_is_left() -> None:
    before = planned()
    after = before.rewrite("reassociate")
    assert (
        after.layout("**")
        == before.layout("**")
        == {
            "x": "f32[data*16, 32]",
            "a": "f32[32, 4]",
            "b": "f32[4, 32]",
            "result": "f32[data*16, 32]",
        }
    )
    assert after.trace == f"{before.trace}\nrewrite('reassociate')"
    assert [action.text for action in after.actions] == [*(action.text for action in before.actions), "rewrite('reassociate')"]
    assert next(each.dims for each in after.ranges() if each.name == "rank") == ("a.1", "b.0")


def test_it_is_undone_compared_and_replayed_like_any_tactic() -> None:
    before = planned()
    trace, counts = before.trace, before.counts()
    after = before.rewrite(f"low_rank: {SAVES}", at="adapter")
    assert (before.trace, before.counts()) == (trace, counts)
    again = pt.replay(adapter, MESH, after.trace, *LOW_RANK)
    assert (again.trace, again.counts(), again.layout("**")) == (after.trace, after.counts(), after.layout("**"))
    change = after.diff(before)
    assert change.flops[1].known < change.flops[0].known
    assert change.layouts == {}
    assert "flops of a device" in str(change)


def test_a_law_is_applied_only_where_the_pattern_matches() -> None:
    def two(x: Array, a: Array, b: Array) -> Array:
        with jax.named_scope("first"):
            x = x @ (a @ b)
        with jax.named_scope("second"):
            return x @ (a @ b)

    plan = pt.plan(two, MESH, *LOW_RANK)
    law = pt.rule(f"low_rank: {SAVES}")
    assert plan.rewrite(law, at="second").flops_per_device().known < plan.flops_per_device().known
    assert plan.rewrite(law).flops_per_device().known < plan.rewrite(law, at="second").flops_per_device().known
    with pytest.raises(pt.Error) as error:
        plan.rewrite(law, at="third")
    assert error.value.title == "`low_rank` does not apply at 'third'"
    assert "it applies at first, second" in str(error.value)


def test_what_a_tactic_has_placed_is_not_removed() -> None:
    def tagged(x: Array, y: Array) -> Array:
        return jnp.exp(x) * jnp.exp(y)

    plan = pt.plan(tagged, MESH, f32(8, 8), f32(8, 8)).tile("exp#0", 0, "data")
    with pytest.raises(pt.Error) as error:
        plan.rewrite("powers: exp(x) * exp(y) => exp(x + y)")
    assert error.value.title == "the rewriting would remove `exp#0`, which 1: tile('exp#0', 0, 'data') places"
    assert plan.layout("exp#0") == {"exp#0": "f32[data*2, 8]"}


@pytest.mark.parametrize(
    ("rule", "given", "title"),
    [
        ("reasociate", {}, "no law is called `reasociate`"),
        (3, {}, "`rule` takes a law, got 3"),
        ("reassociate", {"trips": 2}, "`reassociate` takes no `trips`"),
        ("chunk", {"at": "x", "dim": 0, "trips": 2}, "`chunk` is no law any more: a value in parts is a tile on a loop"),
        ("sum_product", {}, "`sum_product` applies nowhere in this program"),
        ("a: exp(x) => x", {}, "`a` is not a law: its sides differ, 1 and 0"),
    ],
)
def test_bad_input_is_an_error_that_changes_nothing(rule: Any, given: Any, title: str) -> None:
    plan = planned()
    with pytest.raises(pt.Error) as error:
        plan.rewrite(rule, **given)
    assert error.value.title == title


@cache
def training() -> tuple[Plan, tuple[Any, ...]]:
    config = gpt.Config(vocabulary=1024, length=16, layers=2, width=16, heads=2)
    params = gpt.init(config)
    tokens = np.random.default_rng(0).integers(0, 1024, (8, 17)).astype(np.int32)
    args = params, gpt.OPTIMIZER.init(params), {"x": tokens[:, :-1], "y": tokens[:, 1:]}

    def step(params: Any, opt: Any, batch: Any) -> Any:
        def loss(params: Any) -> Array:
            x = params["embed"][batch["x"]] + params["position"][None]
            for number, block in enumerate(params["blocks"]):
                with jax.named_scope(f"block{number}"):
                    x = gpt.block(x, block)
            x = pt.tag(x, "hidden")
            logits = pt.tag(x @ params["embed"].T, "logits")
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), batch["y"][..., None], -1))

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt = gpt.OPTIMIZER.update(grads, opt, params)
        return jax.tree.map(jnp.add, params, updates), opt, value

    tactics = pt.DataParallel("data", inputs="batch/*"), pt.ZeRO(3, "data", params="params", optimizer="opt")
    return pt.plan(step, MESH, *args).apply(*tactics), args


def temporary_bytes(plan: Plan, args: tuple[Any, ...]) -> int:
    found = plan.compile().lower(*args).compile().memory_analysis()
    assert found is not None
    return found.temp_size_in_bytes


def test_a_training_step_with_its_loss_in_parts_stores_less() -> None:
    plan, args = training()
    after = plan.tile("hidden", "length", "t:4", backward=False)
    assert after.layout(["hidden", "logits"]) == {"hidden": "f32[data*2, 16, 16]", "logits": "f32[data*2, t:4*4, 1024]"}
    # Forward and backward are one loop. The layers run outside of it.
    (loop,) = loops(after)
    assert (loop.loop, loop.kept) == ("t:4", 0)
    # The table of embeddings is gathered for all trips, forward and backward.
    gathers = plan.counts()["all_gather"] - 1
    assert after.counts() == plan.counts() | {"all_gather": gathers}
    # No array is as large as the logits any more; the largest is the table, gathered.
    logits = 2 * 16 * 1024 * 4
    whole, parts = ([each.bytes for each in made.memory().arrays if each.kind == "temporary"] for made in (plan, after))
    assert max(whole) == logits and max(parts) < logits
    assert after.memory().bytes < plan.memory().bytes
    assert after.check(*args) < 2e-4
    temporaries = [temporary_bytes(each, args) for each in (plan, after)]
    assert temporaries[1] < 0.7 * temporaries[0]


def test_a_training_step_with_layers_computed_again_gathers_as_jax_checkpoint_does() -> None:
    plan, args = training()
    after = plan.rewrite("recompute", at="block*")
    # Each block's parameters but the last bias are gathered once more, those of them that are sharded.
    assert after.counts()["all_gather"] - plan.counts()["all_gather"] == 2 * 7
    assert after.counts()["reduce_scatter"] == plan.counts()["reduce_scatter"]
    assert after.check(*args) < 2e-4


def test_a_name_among_several_that_names_nothing_is_refused() -> None:
    plan, _ = training()
    with pytest.raises(pt.Error, match="no value and no scope is named `blockk1`") as caught:
        plan.rewrite("recompute", at=["block0", "blockk1"])
    assert "`block1`" in caught.value.helps[0]


def test_rewritings_are_listed_with_what_they_save_and_are_tactics() -> None:
    plan, args = training()
    found = plan.rewrites()
    assert {"tile", "recompute"} <= {each.law for each in found}
    # What saves time comes first, then what saves memory.
    saved = [max(each.seconds, 0) for each in found]
    assert saved == sorted(saved, reverse=True)
    best = max(found, key=lambda each: each.memory)
    assert best.law == "tile"
    after = plan.apply(best)
    assert (best.before, best.price) == (price(plan), price(after))
    assert after.memory().bytes == plan.memory().bytes - best.memory
    assert after.bytes_per_device() == plan.bytes_per_device() - best.bytes
    assert after.trace.splitlines()[-1] == best.tactic
    assert after.check(*args) < 2e-4
    assert "memory saved" in str(found)


def test_a_listing_begins_with_the_places_and_grows_with_what_each_saves() -> None:
    plan, _ = training()
    first, *later, last = tried_rewrites(plan)
    assert not first.found
    assert {each.law for each in first.left} == {"distribute", "divide_last", "scale_first", "scale_last", "sum_product"}
    assert str(first).endswith(f"0 of {len(first.left)} tried")
    left = [len(each.left) for each in later]
    assert left == sorted(left, reverse=True)
    assert str(later[0]).endswith(f"{last.of - left[0]} of {last.of} tried")
    assert str(last) == str(plan.rewrites())
    assert [*last.found] == [*plan.rewrites()]


def test_what_has_been_tried_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = training()[0].tile("params/embed", 1, "model")
    places: list[object] = []

    def counted(plan: Plan, each: LawCandidate) -> Saved | None:
        places.append(each.tactic)
        return tried(plan, each)

    tried = rewrites_module._tried  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(rewrites_module, "_tried", counted)
    found = plan.rewrites()
    assert len(places) == len(set(map(str, places)))
    tries = len(places)
    assert [*plan.rewrites()] == [*found]
    assert len(places) == tries


def test_a_rewriting_names_a_value_by_its_tag() -> None:
    def loss(x: Array, w: Array, out: Array, y: Array) -> Array:
        with jax.named_scope("body"):
            x = pt.tag((x @ w) @ w, "hidden")
        logits = pt.tag(x @ out, "logits")
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=-1))

    shapes = f32(512, 64), f32(64, 64), f32(64, 1024), jax.ShapeDtypeStruct((512,), jnp.int32)
    plan = pt.plan(jax.value_and_grad(loss, (1, 2)), MESH, *shapes)
    found = {(each.law, each.at) for each in plan.rewrites()}
    assert ("tile", ("logits",)) in found
    assert places(plan, "reassociate").keys() >= {"hidden"}
    assert "body" in places(plan, "recompute")
    assert places(plan, "dot(x, y) => dot(x, y)") == {}
    assert plan.rewrite("reassociate", at="hidden").flops_per_device() != plan.flops_per_device()


def loss_over(shapes: Any, mesh: pt.Mesh = MESH) -> Plan:
    def loss(x: Array, out: Array, y: Array) -> Array:
        logits = pt.tag(x @ out, "logits")
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=-1))

    return pt.plan(jax.value_and_grad(loss, 1), mesh, *shapes)


def test_the_text_of_a_plan_says_how_a_large_value_is_computed_in_parts() -> None:
    large = f32(512, 64), f32(64, 4096), jax.ShapeDtypeStruct((512,), jnp.int32)
    assert "in parts" not in str(loss_over(large))
    plan = loss_over(large).tile("out", 1, "model")
    (said,) = [line for line in str(plan).splitlines() if "in parts" in line]
    text = said.partition("plan.")[2]
    assert text == "tile('logits', 0, 't:8')"
    after = plan.apply(*tactics_of(text))
    assert after.memory().bytes < plan.memory().bytes / 2
    assert "in parts" not in str(after)
    # A loop over the rows that a device has only a part of would gather them.
    assert "dim=0" not in str(plan.tile(["x", "y"], 0, "data"))
    assert "in parts" not in str(loss_over((f32(512, 1024), f32(1024, 8), large[2])).tile("out", 1, "model"))


def test_a_law_is_shown_in_a_line() -> None:
    law = pt.rule("halves: dot(x + x, y) => dot(x, y) + dot(x, y)")
    assert repr(law).startswith("<law halves: dot(x + x, y) => dot(x, y) + dot(x, y) (")
