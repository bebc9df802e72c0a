"""`Megatron` without patterns finds the pairs of products that an expert names."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.api.plan import Plan
from partita.examples import demo, flax_transformer, gpt, llama, scan_layers

MESH = pt.Mesh(data=2, model=4)
FOUND = pt.Megatron("model")

Tree = Any


def of_llama() -> tuple[Plan, pt.Tactic]:
    args = jax.eval_shape(lambda: llama.arguments(llama.Config(vocabulary=503)))
    return pt.plan(llama.train_step, MESH, *args), llama.TACTICS[1]


def of_gpt() -> tuple[Plan, pt.Tactic]:
    params = gpt.init(gpt.Config())
    tokens = jax.ShapeDtypeStruct((8, 64), jnp.int32)
    args = params, gpt.OPTIMIZER.init(params), {"x": tokens, "y": tokens}
    return pt.plan(gpt.train_step, MESH, *args), demo.TACTICS["Megatron"]


def of_flax() -> tuple[Plan, pt.Tactic]:
    args = jax.eval_shape(flax_transformer.create_state), jax.eval_shape(flax_transformer.random_batch)
    return pt.plan(flax_transformer.train_step, pt.Mesh(data=4, model=2), *args), flax_transformer.heads


def of_stack() -> tuple[Plan, pt.Tactic]:
    return pt.plan(scan_layers.train_step, MESH, *scan_layers.arguments()), pt.Megatron("model", column="params/w1")


@pytest.mark.parametrize("make", [of_llama, of_gpt, of_flax, of_stack])
def test_it_finds_what_the_examples_write(make: Callable[[], tuple[Plan, pt.Tactic]]) -> None:
    plan, by_patterns = make()
    found, written = plan.apply(FOUND), plan.apply(by_patterns)
    assert found.trace == "Megatron(axis='model')"
    assert found.layout("**") == written.layout("**") and found.counts() == written.counts()


def normal(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(sum(shape)).standard_normal(shape) * 0.3, jnp.float32)


def attention(p: Tree, x: jax.Array, kv: int, head: int = 4) -> jax.Array:
    """Attention whose heads are parts of one dim of the weights, as many libraries write it."""
    heads = p["q"].shape[1] // head
    q, k, v = ((x @ p[name]).reshape(*x.shape[:2], -1, head) for name in "qkv")
    k, v = (jnp.repeat(each, heads // kv, axis=2) for each in (k, v))
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(*x.shape[:2], -1) @ p["o"]


def weights(kv: int, heads: int = 8, head: int = 4, width: int = 16) -> Tree:
    sizes = {"q": heads * head, "k": kv * head, "v": kv * head}
    return {**{name: normal(width, size) for name, size in sizes.items()}, "o": normal(heads * head, width)}


def step(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    def update(params: Tree, *args: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *args)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return update


X = normal(4, 8, 16)


@pytest.mark.parametrize(
    ("kv", "columns"),
    [
        (8, "params/k.1, params/q.1, params/v.1"),  # a head of keys for each head of queries
        (4, "params/k.1, params/q.1, params/v.1"),  # for two of them
        (2, "params/q.1"),  # fewer than devices: they stay whole
        (1, "params/q.1"),
    ],
)
@pytest.mark.parametrize("stacked", [False, True])
def test_heads_are_found_in_fused_dims(kv: int, columns: str, stacked: bool) -> None:
    """The heads of queries are split over 4 devices; those of keys and values too, if there are enough."""

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        layer = jax.checkpoint(lambda x, p: (attention(p, x, kv), None))
        return jnp.mean((jax.lax.scan(layer, x, params)[0] if stacked else attention(params, x, kv)) ** 2)

    params = weights(kv)
    params = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), params) if stacked else params
    plan = pt.plan(step(loss), MESH, params, X)
    (pair,) = [pair for pair in FOUND.pairs(plan) if not pair.why_not]
    assert ", ".join(sorted(pair.columns)) == (columns.replace(".1", ".2") if stacked else columns)
    assert pair.rows == ("params/o.1" if stacked else "params/o.0",)
    placed = plan.apply(FOUND)
    assert placed.collectives()[0].kind == "all_reduce"
    assert not stacked or placed.check(params, X) < 2e-4


def mlp(params: Sequence[jax.Array], x: jax.Array) -> jax.Array:
    for w in params:
        x = jnp.tanh(x @ w)
    return x


def test_every_second_product_of_a_chain_is_a_row() -> None:
    plan = pt.plan(mlp, MESH, [normal(16, 32), normal(32, 16), normal(16, 64), normal(64, 8)], normal(8, 16))
    found = [(pair.columns, pair.rows) for pair in FOUND.pairs(plan) if not pair.why_not]
    assert found == [(("params/0.1",), ("params/1.0",)), (("params/2.1",), ("params/3.0",))]
    assert plan.apply(FOUND).counts()["all_reduce"] == 2


def test_pairs_that_are_alike_are_one_row_with_the_extent_of_each() -> None:
    layers = [{"up": normal(16, 32), "down": normal(32, 16)} for _ in range(3)]
    table = FOUND.pairs(pt.plan(lambda layers, x: mlp([w for p in layers for w in (p["up"], p["down"])], x), MESH, layers, X))
    (row,) = [line.split() for line in str(table).splitlines() if line.startswith("layers")]
    assert row == ["layers/*/up.1", "x", "3", "layers/*/down.0", "32"]


def test_weights_that_no_step_replaces_are_found_too() -> None:
    """Adapters are trained; the weights beside them are only read."""

    def loss(adapters: Tree, base: Tree, x: jax.Array) -> jax.Array:
        hidden = jnp.tanh(x @ base["up"] + (x @ adapters["a"]) @ adapters["b"])
        return jnp.mean((hidden @ base["down"]) ** 2)

    args = {"a": normal(16, 2), "b": normal(2, 32)}, {"up": normal(16, 32), "down": normal(32, 16)}, normal(8, 16)
    plan = pt.plan(step(loss), MESH, *args)
    (pair,) = [pair for pair in FOUND.pairs(plan) if not pair.why_not]
    assert set(pair.columns) == {"args/0/up.1", "params/b.1"} and pair.rows == ("args/0/down.0",)
    assert plan.apply(FOUND).check(*args) < 2e-4


def test_what_is_no_pair_has_a_reason() -> None:
    def loss(params: Tree, x: jax.Array) -> jax.Array:
        x = x / jnp.std(x, axis=-1, keepdims=True)
        return jnp.mean(jax.nn.logsumexp((x + jnp.tanh(x @ params["w1"]) @ params["w2"]) @ params["head"], axis=-1))

    params = {"w1": normal(16, 32), "w2": normal(32, 16), "head": normal(16, 64)}
    reasons = {pair.columns[0]: pair.why_not for pair in FOUND.pairs(pt.plan(step(loss), MESH, params, X))}
    assert reasons == {
        "params/w1.1": "",
        "params/head.1": "`reduce_max` folds the range",
    }


def test_heads_that_do_not_divide_are_listed_and_may_be_padded() -> None:
    def loss(params: Tree, x: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"]) ** 2)

    params = {"w1": normal(16, 30), "w2": normal(30, 16)}
    plan = pt.plan(step(loss), MESH, params, normal(8, 16))
    pair, *_ = FOUND.pairs(plan)
    assert (pair.columns, pair.why_not) == (("params/w1.1",), "it does not divide over `model` (4 devices)")
    placed = plan.apply(pt.Megatron("model", padded=True))
    assert placed.counts()["all_reduce"] == 1 and placed.check(params, normal(8, 16)) < 2e-4


def test_an_axis_that_an_earlier_tactic_uses_is_left_alone() -> None:
    params = [normal(16, 32), normal(32, 16)]
    plan = pt.plan(mlp, MESH, params, normal(8, 16)).apply(pt.DataParallel("model", inputs="x"))
    with pytest.raises(pt.Error, match="finds no pair of products over `model`"):
        plan.apply(FOUND)


def test_one_device_needs_no_pair() -> None:
    plan = pt.plan(mlp, pt.Mesh(model=1), [normal(16, 32)], normal(8, 16))
    assert plan.apply(FOUND).trace == "Megatron(axis='model')"


def test_fused_parts_have_a_cure_that_works() -> None:
    """Queries, keys and values are parts of one dim: their blocks go to the devices in turn."""

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        heads = (each.reshape(*x.shape[:2], 4, 4) for each in jnp.split(x @ params["qkv"], 3, axis=-1))
        q, k, v = heads
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
        return jnp.mean((jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ params["o"]) ** 2)

    params = {"qkv": normal(16, 48), "o": normal(16, 16)}
    plan = pt.plan(step(loss), MESH, params, X)
    with pytest.raises(pt.Error, match="`slice` needs other blocks of it on a device") as caught:
        plan.apply(FOUND)
    cure = 'pt.Tile({"params/qkv": 1}, "model", block=4)'
    assert cure in str(caught.value) and cure in str(FOUND.pairs(plan))
    placed = plan.apply(pt.Tile({"params/qkv": 1}, "model", block=4))
    assert placed.layout("params/o") == {"params/o": "f32[model*4, 16]"} and placed.counts()["all_reduce"] == 1
    assert placed.check(params, X) < 2e-4


def test_fused_parts_that_are_left_whole_are_listed_and_explained_with_the_cure() -> None:
    def loss(params: Tree, x: jax.Array) -> jax.Array:
        for layer in range(2):
            parts = jnp.split(x @ params[f"qkv{layer}"], 3, axis=-1)
            q, k, v = (each.reshape(*x.shape[:2], 4, 4) for each in parts)
            weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
            x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ params[f"o{layer}"]
        return jnp.mean((x + jnp.tanh(x @ params["up"]) @ params["down"]) ** 2)

    sizes = {"qkv": (16, 48), "o": (16, 16)}
    params = {f"{name}{layer}": normal(*size) for name, size in sizes.items() for layer in range(2)}
    plan = pt.plan(step(loss), MESH, {**params, "up": normal(16, 32), "down": normal(32, 16)}, X).apply(FOUND)
    cure = f"tile its parts in turn: tile('params/qkv*', 1, 'model', block=4) before 1: {FOUND}"
    assert plan.layout("params/up") == {"params/up": "f32[16, model*8]"}
    assert [stop.cure is not None and str(stop.cure) for stop in plan.blocked] == [cure, cure]
    assert f"left whole by 1: {FOUND}" in plan.explain("params/qkv0") and cure in plan.explain("params/qkv0")
    assert "left whole" not in plan.explain("params/o0")
    cured = plan.apply(next(stop.cure for stop in plan.blocked if stop.cure is not None))
    assert list(cured.blocked) == [] and "left whole" not in cured.explain("params/qkv1")
    assert cured.layout("params/o1") == {"params/o1": "f32[model*4, 16]"}


def test_parts_that_the_devices_do_not_divide_are_listed_with_a_change_of_the_program() -> None:
    def loss(params: Tree, x: jax.Array) -> jax.Array:
        left, right = jnp.split(x @ params["both"], 2, axis=-1)
        x = (jnp.tanh(left) * right) @ params["out"]
        return jnp.mean((x + jnp.tanh(x @ params["up"]) @ params["down"]) ** 2)

    sizes = {"both": (16, 12), "out": (6, 16), "up": (16, 32), "down": (32, 16)}
    plan = pt.plan(step(loss), MESH, {name: normal(*size) for name, size in sizes.items()}, X).apply(FOUND)
    (stop,) = plan.blocked
    assert stop.cure is None and stop.helps == ["give the parts of `params/both` a dim of their own"]
    assert stop.helps[0] in plan.explain("params/both")


def by_number(w: Tree, x: jax.Array) -> jax.Array:
    """Layers of a stack, in a Python loop."""
    for layer in range(3):
        x = x + jnp.tanh(x @ w["up"][layer]) @ w["down"][layer]
    return jnp.mean(x**2)


@pytest.mark.parametrize(
    "tactic", [pt.Megatron("model"), pt.Megatron("model", column="w/up", row="w/down")], ids=["found", "named"]
)
def test_layers_of_a_stack_that_are_taken_by_number_pair_up(tactic: pt.Tactic) -> None:
    w, x = {"up": 0.2 * normal(3, 16, 64), "down": 0.2 * normal(3, 64, 16)}, normal(8, 16)
    plan = pt.plan(jax.value_and_grad(by_number, (0, 1)), MESH, w, x).apply(tactic)
    assert plan.layout("w/*") == {"w/down": "f32[3, model*16, 16]", "w/up": "f32[3, 16, model*16]"}
    # One forward and one backward for each layer.
    assert plan.counts()["all_reduce"] == sum(plan.counts().values()) == 2 * 3
    assert plan.check(w, x) < 2e-4
