"""Tactics that find their ranges: the vocabulary, positions, keys and values, experts, the stream between Megatron's pairs."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.advice.redundancy import redundant_flops
from partita.compiler.api.plan import Plan
from partita.examples import llama, moe, vocabulary

MESH = pt.Mesh(data=2, model=4)
PARTS = llama.PARTS

Tree = Any


@cache
def llama_plan(words: int, layers: int = 4) -> Plan:
    args = jax.eval_shape(lambda: llama.arguments(llama.Config(vocabulary=words, layers=layers)))
    return pt.plan(llama.train_step, MESH, *args)


def kinds(plan: Plan) -> dict[str, int]:
    return {kind: count for kind, count in plan.counts().items() if count}


def test_a_vocabulary_that_does_not_divide_is_padded_and_the_head_is_no_longer_computed_by_all() -> None:
    """Three quarters of a device's flops were those of logits that others computed too."""
    tensor = llama_plan(50_257).apply(pt.DataParallel("data"), pt.Megatron("model"))
    parallel = tensor.apply(pt.VocabularyParallel("model"))
    share = [redundant_flops(plan) / plan.flops_per_device().known for plan in (tensor, parallel)]
    assert share[0] > 0.7 and share[1] < 0.03
    assert parallel.layout("params/embed") == {"params/embed": "f32[model*12565 pad 50257, 32]"}
    # Five for each micro-batch; a table that is padded is whole between calls: the new one and Adam's two are gathered.
    assert parallel.counts()["all_reduce"] == tensor.counts()["all_reduce"] + 5 * PARTS
    assert parallel.counts()["all_gather"] == 3


@pytest.mark.parametrize("layers", [2, 3])
def test_a_llama_in_four_lines_sends_what_its_closed_form_says(layers: int) -> None:
    """Seven matrices a layer, gathered forward and where it is computed again, in each micro-batch."""
    tactics = pt.DataParallel("data"), pt.Megatron("model"), pt.VocabularyParallel("model"), pt.FSDP("data")
    trips = PARTS * layers
    assert kinds(llama_plan(512, layers).apply(*tactics)) == {
        # The table once for all micro-batches.
        "all_gather": 2 * 7 * trips + 1,
        # Megatron's pairs, the vocabulary; three norms, the loss, and the norm of the gradients.
        "all_reduce": 5 * trips + 5 * PARTS + 3 + 1 + 1,
        # All gradients once, after the loop over the micro-batches.
        "reduce_scatter": 7 + 1,
    }


def test_a_vocabulary_is_found_as_the_example_names_it() -> None:
    plan = pt.plan(vocabulary.train_step, MESH, *vocabulary.arguments(vocabulary.Config()))
    found, named = plan.apply(pt.VocabularyParallel("model")), plan.apply(vocabulary.VOCABULARY)
    assert found.layout("**") == named.layout("**") and kinds(found) == {"all_reduce": 5}
    by_name = plan.apply(pt.VocabularyParallel("model", embedding="params/in", head={"params/out": 0}))
    assert by_name.layout("**") == named.layout("**")


def normal(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(sum(shape)).standard_normal(shape) * 0.3, jnp.float32)


def classified(params: Tree, tokens: jax.Array) -> jax.Array:
    """A head of few classes, and positions that are looked up: neither is the vocabulary."""
    x = params["words"][tokens] + params["places"][jnp.arange(tokens.shape[1])][None]
    return jax.nn.softmax(jnp.mean(jnp.tanh(x), axis=1) @ params["head"])


def test_positions_and_classes_are_no_vocabulary() -> None:
    params = {"words": normal(64, 16), "places": normal(8, 16), "head": normal(16, 8)}
    args = params, np.zeros((4, 8), np.int32)
    placed = pt.plan(classified, MESH, *args).apply(pt.VocabularyParallel("model"))
    assert placed.layout("params") == {
        "params/head": "f32[16, 8]",
        "params/places": "f32[8, 16]",
        "params/words": "f32[model*16, 16]",
    }
    assert kinds(placed) == {"all_reduce": 1} and placed.check(*args) < 2e-4


def test_the_table_of_a_step_that_gives_its_token_to_the_next_one_is_a_vocabulary() -> None:
    """A result of the step replaces the token that it reads, so the token is no input."""

    def decode(p: Tree, cache: Any, token: Any) -> Any:
        h = jnp.tanh(p["table"][token] + cache)
        return jnp.argmax(h @ p["table"].T, -1).astype(token.dtype), h

    args = {"table": np.ones((64, 16), np.float32)}, np.ones((8, 16), np.float32), np.arange(8, dtype=np.int32)
    assert pt.plan(decode, MESH, *args).apply(pt.VocabularyParallel("model")).layout("p") == {"p/table": "f32[model*16, 16]"}


def test_experts_are_found_as_the_example_names_them() -> None:
    plan = pt.plan(moe.train_step, pt.Mesh(data=8), *moe.arguments(moe.Config()))
    found = plan.apply(pt.ExpertParallel("data"), pt.DataParallel("data"))
    assert found.layout("**") == plan.apply(*moe.TACTICS).layout("**")
    assert found.counts()["all_to_all"] == 4


# --- positions -------------------------------------------------------------------------------------------------------


def attention(q: jax.Array, k: jax.Array, v: jax.Array, repeats: int = 1) -> jax.Array:
    k, v = (jnp.repeat(each, repeats, axis=2) for each in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool))[None, None], scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def norm(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def layer(x: jax.Array, p: Tree, repeats: int = 1) -> jax.Array:
    h = norm(x)
    q, k, v = (jnp.einsum("btm,mhd->bthd", h, p[name]) for name in "qkv")
    x = pt.tag(x + jnp.einsum("bqhd,hdm->bqm", attention(q, k, v, repeats), p["o"]), "stream")
    return pt.tag(x + jnp.tanh(norm(x) @ p["up"]) @ p["down"], "stream")


def weights(heads: int, kv: int) -> Tree:
    sizes = {"q": (16, heads, 4), "k": (16, kv, 4), "v": (16, kv, 4), "o": (heads, 4, 16), "up": (16, 32), "down": (32, 16)}
    return {name: normal(*shape) for name, shape in sizes.items()}


def trained(layers: int, repeats: int = 1) -> Callable[..., Any]:
    def step(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        def loss(params: Tree) -> jax.Array:
            out = jnp.tanh(x)
            for _ in range(layers):
                out = layer(out, params, repeats)
            return jnp.mean((out - y) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


XY = normal(4, 8, 16), normal(4, 8, 17)[..., :16]


@pytest.mark.parametrize(("kv", "sent"), [(4, 4), (2, 2)])
def test_keys_are_gathered_where_they_are_smallest(kv: int, sent: int) -> None:
    """Keys and values of two heads are gathered before they are repeated for four."""
    params = weights(4, kv)
    plan = pt.plan(trained(1, 4 // kv), MESH, params, *XY)
    placed = plan.apply(pt.ContextParallel("model", inputs=["x", "y"], dim=1))
    gathers = [each for each in placed.collectives() if each.kind == "all_gather"]
    # Of 4 x 8 positions, `kv` heads of 4 floats.
    assert [each.bytes for each in gathers] == [4 * 8 * sent * 4 * 4 * 3 // 4] * 2
    assert placed.counts()["reduce_scatter"] == 2 and not placed.conflicts
    assert placed.check(params, *XY) < 2e-4


@pytest.mark.parametrize("layers", [1, 2])
def test_one_tag_and_one_line_tile_the_sequence(layers: int) -> None:
    params = weights(4, 4)
    tensor = pt.plan(trained(layers), MESH, params, *XY).apply(pt.Megatron("model"))
    found = tensor.apply(pt.SequenceParallel("model"))
    tagged = tensor.apply(pt.SequenceParallel("model", values=["stream", "grad(stream)"]))
    # Nothing asks for the gradient of the first layer's input.
    assert kinds(found) == {"all_gather": 4 * layers, "all_reduce": 1, "reduce_scatter": 4 * layers - 1}
    assert tagged.counts()["reduce_scatter"] == found.counts()["reduce_scatter"]
    assert found.check(params, *XY) < 2e-4


def test_the_positions_of_a_flat_stream_have_to_be_named() -> None:
    def flat(w1: jax.Array, w2: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w1) @ w2

    tensor = pt.plan(flat, MESH, normal(16, 32), normal(32, 16), normal(8, 16)).apply(pt.Megatron("model"))
    with pytest.raises(pt.Error, match=r"has no dim of positions: its shape is \[8, 16\]"):
        tensor.apply(pt.SequenceParallel("model"))
    assert kinds(tensor.apply(pt.SequenceParallel("model", dim=0))) == {"reduce_scatter": 1}


def test_the_channels_of_a_depthwise_convolution_are_no_experts() -> None:
    def loss(w: Any, x: jax.Array) -> jax.Array:
        h = jax.lax.conv_general_dilated(
            x, w["k"], (1,), "SAME", feature_group_count=16, dimension_numbers=("NWC", "WIO", "NWC")
        )
        return jnp.sum(jnp.tanh(h @ w["out"]))

    w = {"k": np.ones((3, 1, 16), np.float32), "out": np.ones((16, 8), np.float32)}
    plan = pt.plan(jax.grad(loss), pt.Mesh(data=4), w, np.ones((8, 12, 16), np.float32))
    with pytest.raises(pt.Error, match="`ExpertParallel` finds no experts"):
        plan.apply(pt.ExpertParallel("data"))


def test_an_input_that_no_op_reads_has_no_say_in_what_the_batch_is() -> None:
    def step(w: jax.Array, batch: Any) -> jax.Array:
        return w - jax.grad(lambda w: jnp.sum(w[batch["tokens"]] ** 2))(w)

    batch = {"labels": np.zeros((16, 4), np.int32), "tokens": np.zeros((16, 4), np.int32)}
    plan = pt.plan(step, pt.Mesh(data=4), np.ones((32, 8), np.float32), batch).apply(pt.DataParallel("data"))
    assert plan.layout("batch/tokens") == {"batch/tokens": "i32[data*4, 4]"}


def test_inputs_that_lead_with_different_ranges_are_named() -> None:
    def loss(w: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.sum(w[a]) + jnp.sum(w[b])

    arrays = np.ones((32, 8), np.float32), np.zeros((16, 4), np.int32), np.zeros((8, 4), np.int32)
    with pytest.raises(pt.Error, match=r"`a` \[16, 4\] and `b` \[8, 4\] do not lead with the same range"):
        pt.plan(jax.grad(loss), pt.Mesh(data=4), *arrays).apply(pt.DataParallel("data"))


def test_a_batch_of_the_shape_of_a_parameter_is_the_batch_and_is_not_stored() -> None:
    def step(p: Any, x: jax.Array) -> Any:
        grads = jax.grad(lambda p: jnp.sum(jnp.tanh(x @ p["a"]) @ p["b"]))(p)
        return jax.tree.map(jnp.subtract, p, grads)

    p, x = {"a": np.ones((8, 16), np.float32), "b": np.ones((16, 8), np.float32)}, np.ones((16, 8), np.float32)
    plan = pt.plan(step, pt.Mesh(data=4), p, x)
    assert plan.successors == {"p/a": "result/a", "p/b": "result/b"}
    placed = plan.apply(pt.DataParallel("data"), pt.FSDP("data"))
    assert placed.actions[0].values.keys() == {plan.source.addresses.arguments["x"]}
    assert plan.source.addresses.arguments["x"] not in placed.actions[1].values
    assert placed.layout(["p/*", "x"]) == {"p/a": "f32[data*2, 16]", "p/b": "f32[data*4, 8]", "x": "f32[data*4, 8]"}
    assert placed.check(p, x) < 1e-4


def test_what_runs_backwards_in_windows_is_counted() -> None:
    def fn(x: jax.Array) -> Any:
        return jax.value_and_grad(lambda x: jnp.sum(jnp.tanh(jax.lax.rev(x, (0,)))))(x)

    plan = pt.plan(fn, pt.Mesh(b=2), np.ones((8, 6), np.float32)).widen("result/1").tile("result/1", 0, "b")
    assert "1 permute" in str(plan)
