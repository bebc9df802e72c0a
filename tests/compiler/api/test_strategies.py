"""What all strategies share: the options `values` and `padded`, names of parameters inside of loops, and claims on nothing."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import partita as pt
from partita.compiler.api.tactics.base import Strategy

MESH = pt.Mesh(data=2, model=2)
Params = dict[str, Array]
Step = Callable[[pt.Plan], pt.Plan]
Model = dict[str, Params]


def array(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32) / 4


def arrays(tree: object) -> object:
    """A tree of arrays, from one of their shapes."""
    return jax.tree.map(array, tree, is_leaf=lambda leaf: isinstance(leaf, tuple))


def descended(leaf: Array, gradient: Array) -> Array:
    return leaf - 0.1 * gradient


def trained(loss: Callable[..., Array]) -> Callable[..., object]:
    """One step of gradient descent."""

    def step(params: object, *batch: object) -> object:
        return jax.tree.map(descended, params, jax.grad(loss)(params, *batch))

    return step


# --- a perceptron, and its gradients accumulated in a loop ---------------------------------------------------------------


def perceptron(params: Params, x: Array) -> Array:
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"]) ** 2)


def accumulated(params: Params, batch: Array) -> Params:
    def add(total: Params, part: Array) -> tuple[Params, None]:
        return jax.tree.map(jnp.add, total, jax.grad(perceptron)(params, part)), None

    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), batch)[0]


def columns(plan: pt.Plan) -> pt.Plan:
    return plan.tile("params/w1", 1, "model")


WEIGHTS = {"w1": (16, 12), "w2": (12, 16)}
NOT_AT_X: list[Step] = [
    pt.Megatron("model"),
    pt.Megatron("model", column="params/w1"),
    pt.Megatron("model", column={"params/w1": 1}, row={"params/w2": 0}),
    pt.Tile({"params/w1": 1}, "model"),
    pt.TileRange("params/w1.1", "model"),
    pt.Replicate("params/w1", "model"),
    pt.DataParallel("data", inputs="params/w1"),
    pt.ZeRO(3, "data", params="params"),
    pt.VocabularyParallel("model"),
    pt.VocabularyParallel("model", embedding="params/w1"),
    pt.ExpertParallel("model", experts="params"),
    pt.ExpertParallel("model"),
    pt.ContextParallel("model"),
    pt.ContextParallel("model", inputs="params/w1", dim=1),
    pt.SequenceParallel("model"),
    pt.Tensor2D("data", "model", inputs="params/w1"),
    pt.Widen("params/w1"),
    pt.EachTrip("x"),
    pt.Resolve(),
    pt.Annotated(),
    columns,
]


@pytest.mark.parametrize("within", [pt.then, pt.or_else, pt.repeat])
@pytest.mark.parametrize("tactic", NOT_AT_X, ids=lambda each: getattr(each, "__name__", None) or str(each))
def test_a_tactic_that_claims_nothing_where_it_is_applied_is_refused(tactic: Step, within: Callable[[Step], Step]) -> None:
    plan = pt.plan(perceptron, MESH, arrays(WEIGHTS), np.ones((4, 16), np.float32))
    for at in (pt.at("x", tactic), pt.at("x", within(tactic)), pt.at("x", pt.at("x", tactic)), within(pt.at("x", tactic))):
        with pytest.raises(pt.Error):
            plan.apply(at)


@pytest.mark.parametrize("strategy", [t for t in NOT_AT_X if isinstance(t, pt.Megatron | pt.DataParallel | pt.ZeRO)], ids=str)
def test_values_that_a_strategy_does_not_claim_are_an_error_that_names_what_it_claims(strategy: pt.Tactic) -> None:
    plan = pt.plan(perceptron, MESH, arrays(WEIGHTS), np.ones((4, 16), np.float32))
    with pytest.raises(pt.Error, match="claims nothing at 'x'") as caught:
        plan.apply(pt.at("x", strategy))
    assert "name some of what it claims: `params/w1`" in caught.value.helps[0]


@pytest.mark.parametrize("pattern", ["params", "**", "params/w1", ["params/w1", "params/w2"]])
def test_names_of_parameters_hold_inside_loops(pattern: str | list[str]) -> None:
    plan = pt.plan(accumulated, MESH, arrays(WEIGHTS), np.ones((2, 4, 16), np.float32))
    for strategy in (pt.Megatron("model"), pt.Megatron("model", padded=True), pt.Megatron("model", column="params/w1")):
        there, everywhere = plan.apply(pt.at(pattern, strategy)), plan.apply(strategy)
        assert there.layout() == everywhere.layout() and there.counts() == everywhere.counts()
        assert next(seed.name for seed in strategy.seeds(plan)) == "params/w1"
    with pytest.raises(pt.Error, match="claims nothing at 'batch'"):
        plan.apply(pt.at("batch", pt.Megatron("model")))


def test_names_of_parameters_hold_inside_branches() -> None:
    def sometimes(params: Model, x: Array) -> Array:
        def block(h: Array) -> Array:
            return feed(h, params["block"])

        def trip(h: Array, number: Array) -> tuple[Array, None]:
            after = cast("Array", jax.lax.cond(number > 1, block, norm, h))  # pyright: ignore[reportUnknownMemberType]
            return after, None

        return jax.lax.scan(trip, x, jnp.arange(3))[0]

    args = arrays({"block": TRANSLATION["encoder"]}), np.ones((4, 8, 32), np.float32)
    plan = pt.plan(sometimes, MESH, *args)
    for strategy in (pt.Megatron("model"), pt.Megatron("model", column="params/block/up", row="params/block/down")):
        placed = plan.apply(pt.at("params", strategy))
        assert placed.layout("params/**") == {"params/block/down": "f32[model*32, 32]", "params/block/up": "f32[32, model*32]"}
        assert placed.check(*args) < 1e-5


# --- the options ----------------------------------------------------------------------------------------------------------


def norm(x: Array) -> Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)


def feed(x: Array, p: Params) -> Array:
    return x + jax.nn.relu(norm(x) @ p["up"]) @ p["down"]


def attend(x: Array, memory: Array, p: Params) -> Array:
    q, k, v = jnp.einsum("btm,mhd->bthd", norm(x), p["q"]), *(jnp.einsum("btm,mhd->bthd", memory, p[name]) for name in "kv")
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return x + jnp.einsum("bthd,hdm->btm", jnp.einsum("bhqk,bkhd->bqhd", scores, v), p["o"])


def translation(p: Model, b: Params) -> Array:
    memory = norm(feed(b["source"], p["encoder"]))
    return jnp.mean((norm(feed(attend(b["target"], memory, p["cross"]), p["decoder"])) - b["target"]) ** 2)


HEADS = (32, 4, 8)
TRANSLATION = {
    "encoder": {"up": (32, 64), "down": (64, 32)},
    "cross": {"q": HEADS, "k": HEADS, "v": HEADS, "o": (4, 8, 32)},
    "decoder": {"up": (32, 64), "down": (64, 32)},
}
PAIRS = {"source": (8, 24, 32), "target": (8, 16, 32)}


def test_an_encoder_and_a_decoder_have_each_their_own_positions() -> None:
    args = arrays(TRANSLATION), arrays(PAIRS)
    tensor = pt.plan(trained(translation), MESH, *args).apply(pt.DataParallel("data"), pt.Megatron("model"))
    assert tensor.counts()["all_reduce"] == 13
    both = tensor.apply(pt.SequenceParallel("model"))
    # Of the 13 sums, 5 are those of streams: the two of the encoder, and the three forward and backward of the decoder.
    assert {kind: both.counts()[kind] for kind in ("all_gather", "all_reduce", "reduce_scatter")} == {
        "all_gather": 7,
        "all_reduce": 8,
        "reduce_scatter": 5,
    }
    assert both.check(*args) < 2e-4


def test_sequence_parallelism_can_be_restricted_to_the_parameters_of_a_stream() -> None:
    args = arrays(TRANSLATION), arrays(PAIRS)
    tensor = pt.plan(trained(translation), MESH, *args).apply(pt.DataParallel("data"), pt.Megatron("model"))
    some = pt.SequenceParallel("model", values="params/encoder")
    encoder, at = tensor.apply(some), tensor.apply(pt.at("params/encoder", pt.SequenceParallel("model")))
    assert encoder.layout() == at.layout() and encoder.counts() == at.counts()
    assert encoder.counts()["reduce_scatter"] == 2 and encoder.check(*args) < 2e-4
    rest = encoder.apply(pt.SequenceParallel("model", values=["params/cross", "params/decoder"]))
    assert rest.counts() == tensor.apply(pt.SequenceParallel("model")).counts()


def test_sequence_parallelism_takes_tags_of_two_lengths() -> None:
    def tagged(p: Model, b: Params) -> Array:
        memory = norm(pt.tag(feed(b["source"], p["encoder"]), "memory"))
        return jnp.mean(norm(pt.tag(feed(attend(b["target"], memory, p["cross"]), p["decoder"]), "out")) ** 2)

    args = arrays(TRANSLATION), arrays(PAIRS)
    plan = pt.plan(tagged, MESH, *args).apply(pt.DataParallel("data", inputs="b"), pt.Megatron("model"))
    plan = plan.apply(pt.SequenceParallel("model", values=["memory", "out"]))
    assert plan.layout(["memory", "out"]) == {"memory": "f32[data*4, model*12, 32]", "out": "f32[data*4, model*8, 32]"}
    assert plan.check(*args) < 2e-4


def test_sequence_parallelism_finds_the_sums_of_tactics_where_weights_are_gathered_because_that_costs_less() -> None:
    """With so many tokens the weights are gathered, and no sum over `model` is left, until the stream is tiled."""

    def gated(p: Params, x: Array) -> Array:
        for _ in range(2):
            x = norm(x + (jax.nn.sigmoid(x @ p["q"]) * (x @ p["k"])) @ p["o"])
        return jnp.mean(x**2)

    f32, width = jnp.float32, 2048
    weights = {name: jax.ShapeDtypeStruct((width, width), f32) for name in "qko"}
    args = weights, jax.ShapeDtypeStruct((32, 2048, width), f32)
    placed = [pt.Tile({f"p/{name}": 0 if name == "o" else 1}, "model") for name in "qko"]
    backward = cast("Callable[..., object]", jax.grad(gated))
    plan = pt.plan(backward, pt.Mesh(data=8, model=4), *args).apply(pt.DataParallel("data", inputs="x"))
    tensor = plan.apply(*placed)
    both = tensor.apply(pt.SequenceParallel("model"))
    assert tensor.decisions.placements.elsewhere and "f32[data*4, model*512, 2048]" in both.layout("**").values()
    # Also without the tactic, gradients are scattered as weights lie: with all_reduces instead, 149,946,368 bytes are received.
    assert both.bytes_per_device() == tensor.bytes_per_device() < 149_946_368


def test_numbers_in_a_scope_have_no_positions() -> None:
    """The constants of a scope are its values too."""

    def scoped(p: Model, x: Array) -> Array:
        with jax.named_scope("first"):
            x = feed(x, p["encoder"])
        return jnp.mean(feed(x, p["decoder"]) ** 2)

    args = arrays({name: TRANSLATION[name] for name in ("encoder", "decoder")}), np.ones((4, 8, 32), np.float32)
    plan = pt.plan(scoped, MESH, *args).apply(pt.Megatron("model"), pt.at("first", pt.SequenceParallel("model")))
    assert "f32[4, model*4, 32]" in plan.layout("first").values() and plan.counts()["reduce_scatter"] == 2
    assert plan.check(*args) < 1e-5


def language(p: Model, tokens: Array) -> Array:
    x = p["table"]["embed"][tokens]
    x = feed(attend(x, norm(x), p["cross"]), p["decoder"])
    logits = x @ p["table"]["embed"].T
    right = jnp.take_along_axis(logits, tokens[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - right)


DATA, BATCH = pt.DataParallel("data"), pt.DataParallel("model", padded=True)
STRATEGIES: dict[str, tuple[list[Strategy], Strategy]] = {
    "data": ([], pt.DataParallel("model")),
    "fsdp": ([BATCH], pt.FSDP("model", smallest=1)),
    "zero": ([BATCH], pt.ZeRO(3, "model", params="params")),
    "megatron": ([DATA], pt.Megatron("model")),
    "vocabulary": ([DATA], pt.VocabularyParallel("model")),
    "sequence": ([pt.Megatron("model", padded=True)], pt.SequenceParallel("model")),
    "context": ([DATA], pt.ContextParallel("model")),
    "two dims": ([], pt.Tensor2D("data", "model", smallest=1)),
}
"""By name, what comes before, and the strategy."""


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_pads_what_does_not_divide(name: str) -> None:
    mesh, odd = pt.Mesh(data=2, model=3), {**TRANSLATION, "table": {"embed": (50, 32)}}
    params, tokens = arrays(odd), np.arange(8 * 16).reshape(8, 16).astype(np.int32) % 50
    before, strategy = STRATEGIES[name]
    plan = pt.plan(trained(language), mesh, params, tokens).apply(*before)
    padded = plan.apply(replace(strategy, padded=True))
    assert "pad" in str(padded.spmd()) and padded.check(params, tokens) < 2e-4
    assert "padded=True" in padded.trace.splitlines()[-1] or name == "vocabulary"


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_takes_the_values_to_which_it_is_restricted(name: str) -> None:
    params, tokens = arrays({**TRANSLATION, "table": {"embed": (48, 32)}}), np.zeros((8, 16), np.int32)
    before, strategy = STRATEGIES[name]
    plan = pt.plan(trained(language), MESH, params, tokens).apply(*before)
    some = "batch" if name in ("data", "context") else ["params/cross", "params/decoder", "params/table"]
    chosen = plan.apply(replace(strategy, values=some))
    assert chosen.actions[-1].values
    if name != "two dims":
        assert chosen.layout() == plan.apply(pt.at(some, strategy)).layout()
    again = pt.replay(trained(language), MESH, chosen.trace, params, tokens)
    assert again.layout() == chosen.layout() and again.trace == chosen.trace


# --- the batch ------------------------------------------------------------------------------------------------------------


def test_inputs_of_two_encoders_are_one_batch() -> None:
    def step(p: Params, source: Array, target: Array) -> Array:
        left, right = (jnp.sum(p["table"][each], axis=1) for each in (source, target))
        return jnp.mean((left @ right.T) ** 2)

    args = arrays({"table": (32, 16)}), np.zeros((8, 24), np.int32), np.zeros((8, 16), np.int32)
    plan = pt.plan(step, MESH, *args).apply(pt.DataParallel("data"))
    assert plan.layout(["source", "target"]) == {"source": "i32[data*4, 24]", "target": "i32[data*4, 16]"}


def test_a_batch_is_found_behind_frozen_weights() -> None:
    """As in low-rank adaptation: the weights that stay lead with ranges that those which are trained have too."""

    def loss(adapters: Params, frozen: Params, x: Array, y: Array) -> Array:
        h = jax.nn.relu(x @ frozen["up"] + x @ adapters["a"] @ adapters["b"])
        return jnp.mean((h @ frozen["down"] - y) ** 2)

    given = *map(arrays, ({"a": (16, 4), "b": (4, 32)}, {"up": (16, 32), "down": (32, 16)})), array((64, 16)), array((64, 16))
    plan = pt.plan(trained(loss), MESH, *given).apply(pt.DataParallel("data"))
    assert plan.layout("batch") == {
        "batch/1": "f32[data*32, 16]",
        "batch/2": "f32[data*32, 16]",
        "batch/0/down": "f32[32, 16]",
        "batch/0/up": "f32[16, 32]",
    }
    assert plan.counts()["all_gather"] == 0 and not plan.conflicts


def test_a_batch_is_found_behind_lists_of_indices_of_different_length() -> None:
    def loss(p: Params, rows: Array, columns: Array, x: Array) -> Array:
        return jnp.mean((x @ p["w"][rows][:, columns] + p["b"][columns][None]) ** 2)

    given = arrays({"w": (16, 32), "b": (32,)}), np.arange(8), np.arange(5), np.ones((64, 8), np.float32)
    plan = pt.plan(trained(loss), MESH, *given)
    assert plan.apply(pt.DataParallel("data")).layout("batch") == {
        "batch/0": "i32[8]",
        "batch/1": "i32[5]",
        "batch/2": "f32[data*32, 8]",
    }


def orthogonalised(m: Array) -> Array:
    """A Newton-Schulz iteration, as Muon makes: its first product sums over the columns of `m`."""
    return 1.5 * m - 0.5 * (m @ m.T) @ m


def test_products_of_an_optimizer_are_not_between_column_and_row() -> None:
    def loss(p: Params, x: Array) -> Array:
        return jnp.mean((jax.nn.relu(x @ p["up"]) @ p["down"]) ** 2)

    def step(params: Params, x: Array) -> object:
        grads = cast("Callable[..., Params]", jax.grad(loss))(params, x)
        return {name: each - 0.1 * orthogonalised(grads[name]) for name, each in params.items()}

    numbers = np.random.default_rng(0)
    up, down, x = (numbers.normal(size=shape).astype(np.float32) / 8 for shape in ((8, 32), (32, 8), (16, 8)))
    params = {"up": up, "down": down}
    plan = pt.plan(step, pt.Mesh(data=4, model=2), params, x).apply(pt.DataParallel("data", inputs="x"))
    found, by_hand = plan.apply(pt.Megatron("model")), plan.tile("params/up", 1, "model")
    assert found.layout("params/**") == {"params/up": "f32[8, model*16]", "params/down": "f32[model*16, 8]"}
    assert found.counts() == by_hand.counts()
    assert found.check(params, x) < 2e-4
