"""Sums of terms that are scaled by what another fold gives: softmax, attention and losses in one loop less."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportMissingTypeStubs=false

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from lowered import interpreted, lowers_from_its_decisions, lowers_from_its_text

import partita as pt
from partita.compiler.cost.loops import loops
from partita.dialects.reference.interpret import interpret

KEYS = jax.random.split(jax.random.key(0), 4)
Q, K, V = (jax.random.normal(key, (2, 32, 16)) * 2 for key in KEYS[:3])
H, W = jax.random.normal(KEYS[0], (24, 16)), jax.random.normal(KEYS[1], (16, 45))
IDS = jax.random.randint(KEYS[2], (24,), 0, 45)


def attention(q, k, v):
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(jnp.einsum("hqd,hkd->hqk", q, k) / 4, -1), v)


def causal(q, k, v):
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / 4
    scores = jnp.where(jnp.arange(q.shape[1])[:, None] >= jnp.arange(k.shape[1])[None], scores, -jnp.inf)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, -1), v)


def cross_entropy(h, w, ids):
    logits = h @ w
    return jnp.mean(jax.nn.logsumexp(logits, 1) - jnp.take_along_axis(logits, ids[:, None], 1)[:, 0])


def same(found, wanted, tolerance=2e-5):
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(ours, np.float32), np.asarray(theirs, np.float32), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("places", [("t:4",), ("t:4", "data"), ("data", "t:4")], ids=str)
@pytest.mark.parametrize("fn", [attention, causal])
def test_attention_over_keys_is_one_loop(fn, places) -> None:
    """What all keys of a trip give is added to what is left of the trips before: no row of scores is ever whole."""
    plan = pt.plan(fn, pt.Mesh(data=2), Q, K, V)
    for place in places:
        plan = plan.tile("k", 1, place)
    assert [(each.loop, each.times) for each in loops(plan)] == [("t:4", 1)]
    wanted, args = fn(Q, K, V), [np.asarray(each) for each in (Q, K, V)]
    same(plan.compile()(Q, K, V), wanted)
    same(interpret(plan.ir(), args), [wanted])
    same(interpreted(plan, args), [wanted])
    same(plan.lower("whole").run(Q, K, V), wanted)
    lowers_from_its_text(plan)
    lowers_from_its_decisions(plan)


@pytest.mark.parametrize("fn", [attention, causal])
def test_the_gradients_of_attention_over_keys(fn) -> None:
    def squares(q, k, v):
        return jnp.mean(fn(q, k, v) ** 2)

    step = jax.value_and_grad(squares, (0, 1, 2))
    plan = pt.plan(step, pt.Mesh(data=2), Q, K, V).tile("k", 1, "t:4").tile("q", 0, "data")
    assert len(loops(plan)) == 3, "forward, the sum of the gradients of the scores of a row, and backward"
    same(plan.compile()(Q, K, V), step(Q, K, V))


@pytest.mark.parametrize("padded", [False, True])
def test_a_loss_over_the_vocabulary_is_a_loop_forward_and_one_backward(padded) -> None:
    step = jax.value_and_grad(cross_entropy, (0, 1))
    plan = pt.plan(step, pt.Mesh(data=2), H, W, IDS)
    made = plan.tile("w", 1, "t:4" if padded else "t:5", padded=padded).tile("h", 0, "data")
    assert [(each.loop, each.times) for each in loops(made)] == [("t:4" if padded else "t:5", 1)] * 2
    # The logits, which take 2 of 6 products, are computed twice.
    once = plan.tile("h", 0, "data").flops_per_device().known
    assert made.flops_per_device().known < 1.5 * once
    same(made.compile()(H, W, IDS), step(H, W, IDS))


def test_scores_may_be_large_small_or_missing() -> None:
    plan = pt.plan(causal, pt.Mesh(), Q, K, V).tile("k", 1, "t:8")
    run = plan.compile()
    for scale in (1e-30, 1e3, 1e15):
        same(run(Q * scale, K * scale, V), causal(Q * scale, K * scale, V))
    # The largest score is in the last trip, and far from those before.
    rising = K * jnp.linspace(0.01, 300, 32)[None, :, None]
    same(run(Q, rising, V), causal(Q, rising, V), 2e-4)
    same(run(Q, rising[:, ::-1], V), causal(Q, rising[:, ::-1], V), 2e-4)


def test_a_row_without_scores_is_what_it_is_as_a_whole() -> None:
    def total(x, y, mask):
        return jax.nn.logsumexp(jnp.where(mask, x @ y.T, -jnp.inf), 1)

    x, mask = jax.random.normal(KEYS[3], (16, 8)), jnp.arange(256).reshape(16, 16) % 16 >= jnp.arange(16)[:, None]
    mask = mask.at[3].set(False)
    plan = pt.plan(total, pt.Mesh(), x, x, mask).tile("y", 0, "t:4")
    assert len(loops(plan)) == 1
    same(plan.compile()(x, x, mask), total(x, x, mask))


def test_narrow_scores() -> None:
    args = [each.astype(jnp.bfloat16) for each in (Q, K, V)]
    plan = pt.plan(attention, pt.Mesh(), *args).tile("k", 1, "t:4")
    same(plan.compile()(*args), attention(*args), 3e-2)


@given(st.integers(0, 2**31), st.sampled_from([1, 4, 30]), st.booleans())
def test_random_scores(seed: int, scale: int, masked: bool) -> None:
    keys = jax.random.split(jax.random.key(seed), 3)
    args = [scale * jax.random.normal(key, (2, 32, 16)) for key in keys]
    same(RUN[masked](*args), (causal if masked else attention)(*args), 1e-3 * scale)


RUN = [pt.plan(fn, pt.Mesh(), Q, K, V).tile("k", 1, "t:4").compile() for fn in (attention, causal)]
