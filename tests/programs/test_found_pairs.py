"""`Megatron` without patterns pairs the weights of programs as people write them: it receives no more than tiles by hand."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import jax
import jax.numpy as jnp
import pytest
from jax import Array
from sent import normal

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(model=8)
FOUND = pt.Megatron("model")

Params: TypeAlias = dict[str, Array]
Dims: TypeAlias = dict[str, int]


def as_by_hand(plan: Plan, dims: Dims, *args: object) -> Plan:
    """The plan with the pairs that are found, after a check that it sends what these tiles send, and computes the same."""
    found, by_hand = plan.apply(FOUND), plan.apply(pt.Tile(dims, "model"))
    assert found.counts() == by_hand.counts() and found.bytes_per_device() == by_hand.bytes_per_device()
    assert found.layout([*dims]) == by_hand.layout([*dims])
    assert found.check(*args) < 1e-3
    return found


def trained(loss: Callable[..., Array]) -> Callable[..., object]:
    def step(params: object, *batch: Array) -> object:
        gradients = cast("Callable[..., object]", jax.grad(loss))(params, *batch)
        return jax.tree.map(lambda param, gradient: param - 0.1 * gradient, params, gradients)

    return step


def norm(x: Array) -> Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


# --- decoding ------------------------------------------------------------------------------------------------------------

B, T, M, H, D = 16, 8, 32, 8, 4
SIZES = {"q": (M, H, D), "k": (M, H, D), "v": (M, H, D), "o": (H, D, M), "up": (M, 4 * M), "down": (4 * M, M)}


def attend(x: Array, p: Params, cache: Params, at: Array) -> tuple[Array, Params]:
    q, k, v = (jnp.einsum("bm,mhd->bhd", x, p[name]) for name in "qkv")
    new = {"k": k[:, None], "v": v[:, None]}
    cache = {name: jax.lax.dynamic_update_slice_in_dim(cache[name], new[name], at, axis=1) for name in "kv"}
    scores = jnp.einsum("bhd,bthd->bht", q, cache["k"])
    scores = jax.nn.softmax(jnp.where(jnp.arange(T) <= at, scores, -1e9))
    return jnp.einsum("bhd,hdm->bm", jnp.einsum("bht,bthd->bhd", scores, cache["v"]), p["o"]), cache


def decoded(
    params: dict[str, Array], layers: Sequence[Params], caches: list[Params], token: Array
) -> tuple[Array, list[Params]]:
    """Logits of the tokens, one more at each trip. No norm is between the layers."""

    def step(carry: tuple[Array, list[Params]], at: Array) -> tuple[tuple[Array, list[Params]], Array]:
        token, caches = carry
        x, after = params["embed"][token], list[Params]()
        for p, cache in zip(layers, caches, strict=True):
            found, cache = attend(x, p, cache, at)
            x = x + found
            x = x + jnp.tanh(x @ p["up"]) @ p["down"]
            after.append(cache)
        logits = x @ params["out"]
        return (jnp.argmax(logits, axis=-1), after), logits

    (_, caches), logits = jax.lax.scan(step, (token, caches), jnp.arange(T))
    return logits, caches


@pytest.mark.parametrize("is_kept", [True, False], ids=["the cache is returned", "it is not"])
def test_a_cache_is_tiled_by_its_heads(is_kept: bool) -> None:
    """The width that all layers share would be a range as well, but each product would sum over it."""
    layers = [{name: 0.3 * normal(*shape) for name, shape in SIZES.items()} for _ in range(2)]
    caches = [{name: jnp.zeros((B, T, H, D)) for name in "kv"} for _ in layers]
    args = {"embed": normal(64, M), "out": normal(M, 64)}, layers, caches, jnp.arange(B) % 64

    def logits(params: Params, layers: Sequence[Params], caches: list[Params], token: Array) -> Array:
        return decoded(params, layers, caches, token)[0]

    plan = pt.plan(decoded if is_kept else logits, MESH, *args)
    heads = {f"layers/*/{name}": 1 for name in "qkv"} | {"layers/*/o": 0}
    found = as_by_hand(plan, {**heads, "layers/*/up": 1, "layers/*/down": 0}, *args)
    assert found.counts()["all_reduce"] == sum(found.counts().values()) == 2 * len(layers) * T
    assert found.bytes_per_device() == 2 * 2 * T * (2 * 7 / 8 * B * M * 4)
    assert found.layout("caches/0/k") == {"caches/0/k": "f32[16, 8, model, 4]"}


# --- fewer heads of keys than devices ------------------------------------------------------------------------------------


def grouped(p: Params, x: Array, width: int) -> Array:
    """Attention whose heads of queries are in groups, one for each head of keys, and a perceptron."""
    h, heads = norm(x), p["k"].shape[1] // width
    q, k, v = ((h @ p[name]).reshape(*h.shape[:2], heads, -1, width) for name in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bqhgd,bkhd->bhgqk", q, k[:, :, :, 0]))
    x = x + jnp.einsum("bhgqk,bkhd->bqhgd", scores, v[:, :, :, 0]).reshape(*h.shape[:2], -1) @ p["o"]
    return x + jnp.tanh(norm(x) @ p["up"]) @ p["down"]


def apart(p: Params, x: Array, width: int) -> Array:
    """The same with heads that are a dim of their own before they are put in groups."""
    h = norm(x)
    q, k, v = ((h @ p[name]).reshape(*h.shape[:2], -1, width) for name in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bqhgd,bkhd->bhgqk", q.reshape(*h.shape[:2], k.shape[2], -1, width), k))
    found = jnp.einsum("bhgqk,bkhd->bqhgd", scores, v).reshape(*h.shape[:2], -1, width)
    x = x + jnp.einsum("bthd,hdm->btm", found, p["o"].reshape(-1, width, x.shape[2]))
    return x + jnp.tanh(norm(x) @ p["up"]) @ p["down"]


GROUPED = {"params/*/q": 1, "params/*/o": 0, "params/*/up": 1, "params/*/down": 0}
Layer: TypeAlias = Callable[[Params, Array, int], Array]


def in_groups(layer: Layer, keys: int, model: int, width: int) -> tuple[Callable[..., object], tuple[object, Array]]:
    """A step of two layers with 16 heads of queries, and its arguments."""

    def loss(params: list[Params], x: Array) -> Array:
        for p in params:
            x = layer(p, x, width)
        return jnp.mean(x**2)

    sizes = {"q": 16 * width, "k": keys * width, "v": keys * width, "up": 4 * model}
    rows = {"o": 16 * width, "down": 4 * model}
    params = {name: 0.3 * normal(model, size) for name, size in sizes.items()}
    params |= {name: 0.3 * normal(size, model) for name, size in rows.items()}
    return trained(loss), ([params, params], normal(4, 16, model))


@pytest.mark.parametrize(("keys", "received"), [(1, 229_376), (2, 225_280), (4, 217_088)])
@pytest.mark.parametrize("layer", [grouped, apart])
def test_heads_of_queries_are_tiled_where_there_are_fewer_heads_of_keys(layer: Layer, keys: int, received: int) -> None:
    """Devices share the head of keys of their group. The decisions cross the reshape of all heads to groups by sub-axes."""
    step, args = in_groups(layer, keys, 64, 16)
    found = as_by_hand(pt.plan(step, MESH, *args), GROUPED, *args)
    # Seven of pairs, and the gradients of keys and values in each of two layers.
    assert found.counts()["all_reduce"] == sum(found.counts().values()) == 7 + 2 * 2
    assert found.bytes_per_device() <= received


@pytest.mark.parametrize("tactic", [FOUND, pt.Megatron("model", column=["**/q", "**/up"], row=["**/o", "**/down"])], ids=str)
@pytest.mark.parametrize("layer", [grouped, apart])
def test_heads_are_on_sub_axes_where_a_gather_of_them_would_cost_less(layer: Layer, tactic: pt.Tactic) -> None:
    """A column that is gathered before its row is no pair: in a small program that was an error."""
    step, args = in_groups(layer, 2, 32, 4)
    placed = pt.plan(step, MESH, *args).apply(tactic)
    assert placed.counts()["all_reduce"] == sum(placed.counts().values()) == 7 + 2 * 2
    assert placed.layout("params/0/q") == {"params/0/q": "f32[32, model*8]"} and placed.check(*args) < 1e-3
    assert pt.replay(step, MESH, placed.trace, *args).counts() == placed.counts()


# --- weights that the program puts together ------------------------------------------------------------------------------

LAYERS = [{"up": normal(16, 64 + 8 * layer)[:, :64], "down": normal(64, 16)} for layer in range(3)]
X = normal(8, 16)


def layer(x: Array, p: Params) -> tuple[Array, None]:
    return x + jnp.tanh(norm(x) @ p["up"]) @ p["down"], None


def stacked(layers: Sequence[Params], x: Array) -> Array:
    """Weights that are arguments of their own, stacked for a loop."""
    stack = {name: jnp.stack([p[name] for p in layers]) for name in layers[0]}
    return jnp.mean(jax.lax.scan(layer, x, stack)[0] ** 2)


def by_number(stack: Params, x: Array) -> Array:
    """Layers of a stack, taken by a number that a loop counts."""
    made = jax.lax.fori_loop(0, 3, lambda i, x: layer(x, {name: w[i] for name, w in stack.items()})[0], x)
    return jnp.mean(made**2)


@pytest.mark.parametrize(("program", "reduced"), [(stacked, 3), (trained(stacked), 6)], ids=["forward", "a step"])
def test_layers_that_the_program_stacks_pair_up(program: Callable[..., object], reduced: int) -> None:
    layers = "layers" if program is stacked else "params"
    found = as_by_hand(pt.plan(program, MESH, LAYERS, X), {f"{layers}/*/up": 1, f"{layers}/*/down": 0}, LAYERS, X)
    assert found.counts()["all_reduce"] == sum(found.counts().values()) == reduced


def test_layers_that_a_loop_takes_by_number_pair_up() -> None:
    stack = {name: jnp.stack([p[name] for p in LAYERS]) for name in ("up", "down")}
    found = as_by_hand(pt.plan(by_number, MESH, stack, X), {"stack/up": 2, "stack/down": 1}, stack, X)
    assert found.counts()["all_reduce"] == sum(found.counts().values()) == 3


def test_weights_that_the_program_puts_side_by_side_are_no_one_weight_to_be_tiled_in_turn() -> None:
    def gated(p: Params, x: Array) -> Array:
        gate, up = jnp.split(x @ jnp.concatenate([p["gate"], p["up"]], axis=1), 2, axis=1)
        return (jnp.tanh(gate) * up) @ p["down"]

    p = {"gate": normal(16, 64), "up": normal(16, 64) + 0.1, "down": normal(64, 16)}
    with pytest.raises(pt.Error, match="`slice` needs other blocks of it on a device") as caught:
        pt.plan(gated, MESH, p, X).apply(FOUND)
    assert "in turn" not in str(caught.value)


# --- ensembles -----------------------------------------------------------------------------------------------------------


def adam(params: Params, m: Params, v: Params, x: Array, y: Array) -> tuple[Params, Params, Params]:
    def loss(p: Params) -> Array:
        return jnp.mean((jnp.tanh(x @ p["up"] + p["bias"]) @ p["down"] - y) ** 2)

    g = cast("Callable[..., Params]", jax.grad(loss))(params)
    m = {name: 0.9 * m[name] + 0.1 * each for name, each in g.items()}
    v = {name: 0.99 * v[name] + 0.01 * each * each for name, each in g.items()}
    return {name: p - 0.1 * m[name] / (jnp.sqrt(v[name]) + 1e-3) for name, p in params.items()}, m, v


def test_models_of_an_ensemble_that_are_trained_each_on_its_batch_pair_up() -> None:
    """The weights lead with the models as the batches do, but are no inputs: a step replaces them."""
    params = {"up": normal(4, 16, 64), "bias": normal(4, 1, 64), "down": normal(4, 64, 16)}
    state = {name: jnp.zeros_like(each) for name, each in params.items()}
    args = params, state, state, normal(4, 8, 16), normal(4, 8, 17)[..., :16]
    plan = pt.plan(cast("Callable[..., object]", jax.vmap(adam)), MESH, *args)
    found = as_by_hand(plan, {"params/up": 2, "params/down": 1}, *args)
    assert found.counts()["all_reduce"] == sum(found.counts().values()) == 1
    assert found.layout("m/up") == {"m/up": "f32[4, 16, model*8]"}


# --- a width that layers share -------------------------------------------------------------------------------------------


def residual(p: Params, x: Array) -> Array:
    """Two layers between a product that makes their width and one that sums over it, without a norm."""
    x = jnp.tanh(x @ p["into"])
    for _ in range(2):
        x = x + jnp.tanh(x @ p["up"]) @ p["down"]
    return jnp.mean((x @ p["out"]) ** 2)


@pytest.mark.parametrize("ensemble", [(), (4,)], ids=["one model", "an ensemble"])
def test_hidden_units_come_before_the_width_that_layers_share(ensemble: tuple[int, ...]) -> None:
    """Over the width, each `x @ up` would be a sum, which is larger than `x`."""
    sizes = {"into": (16, 32), "up": (32, 128), "down": (128, 32), "out": (32, 8)}
    params = {name: 0.3 * normal(*ensemble, *shape) for name, shape in sizes.items()}
    args = params, normal(*ensemble, 8, 16)
    step = trained(residual)
    plan = pt.plan(jax.vmap(step) if ensemble else step, MESH, *args)
    at = len(ensemble)
    found = as_by_hand(plan, {"params/up": at + 1, "params/down": at}, *args)
    # Two forward and one backward; in front of the first layer the gradient of `x` is summed too.
    assert found.counts()["all_reduce"] == sum(found.counts().values()) == 4
    assert found.bytes_per_device() == 4 * (2 * 7 / 8) * (4 if ensemble else 1) * 8 * 32 * 4


def test_a_width_is_a_pair_where_no_other_pair_takes_its_products() -> None:
    def widening(p: Params, x: Array) -> Array:
        return jnp.mean(jnp.tanh(x @ p["first"]) @ p["second"])

    p = {"first": normal(16, 32), "second": normal(32, 64)}
    found = as_by_hand(pt.plan(widening, MESH, p, X), {"p/first": 1, "p/second": 0}, p, X)
    assert found.counts()["all_reduce"] == 1
