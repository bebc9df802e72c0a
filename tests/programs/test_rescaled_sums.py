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


X, Y = jax.random.normal(KEYS[0], (64, 32)), jax.random.normal(KEYS[1], (32, 128))


def counted_maxima(x, w):
    y = jax.nn.relu(x @ w)
    return jnp.sum((y / jnp.max(y, 0, keepdims=True)).astype(jnp.int32).astype(jnp.float32), 0)


def complex_mean(x, w):
    z = jax.lax.complex(x @ w, jnp.tanh(x @ w))
    return jnp.sum(jnp.real(z * jnp.conj(jnp.sum(z, 0, keepdims=True))), 0)


def guarded(x, w):
    y = jax.nn.relu(x @ w - 1e3)
    return jnp.sum(jnp.where(y > 0, y / jnp.sum(y, 0, keepdims=True), 0.0) * y, 0)


def masked(x, w):
    scores = jnp.where(jnp.arange(128)[:, None] > 0, (x @ w).T, -jnp.inf)
    return jnp.where(jnp.isfinite(scores), jax.nn.softmax(scores, -1), 0.0) @ jnp.tanh(x)


def another_maximum(x, w):
    """The terms are shifted by the maximum of something else, which grows more slowly than they do."""
    s = x @ w
    m = jnp.max(s[:, 0] * 0 + jnp.linspace(-400, 0, 64))
    return jnp.sum(jnp.exp(s * 0 - m) * s, 0)


def masked_by_a_product(x, w):
    s = (x @ w).T + 4.0 * jnp.arange(64)[None]
    valid = jnp.broadcast_to(jnp.arange(64)[None] >= 48, s.shape)
    e = jnp.exp(s - jnp.max(jnp.where(valid, s, -jnp.inf), 1, keepdims=True)) * valid.astype(s.dtype)
    return e @ jnp.tanh(x) / jnp.sum(e, 1, keepdims=True)


def transposed_maximum(x, w):
    s = (x * jnp.where(jnp.arange(64) < 16, 10.0, 1.0)[:, None] * 30 @ w)[:, :121].reshape(64, 11, 11)
    return jnp.sum(jnp.exp(s.transpose(0, 2, 1) - jnp.max(s, 0, keepdims=True).transpose(0, 2, 1)), 0)


def large_factors(x, w):
    y = jnp.abs(x @ w * 1e19)
    return jnp.sum(y / jnp.max(y) * 1e19, 0)


def nothing_but_infinity(x, w):
    y = (x @ w).at[:, 3].set(-jnp.inf)
    return jnp.sum(jnp.exp(y - jnp.max(y, 0, keepdims=True)), 0)


def sums_of_two_kinds(x, w):
    p = jnp.exp((x @ w).T - jnp.max((x @ w).T, 1, keepdims=True))
    c = jnp.sum(jnp.tanh(x) ** 2, 0)
    return p * jnp.sum(p[:, :, None] * x[None] / c[None, None], (1, 2))[:, None] @ x


def integer_maximum(x, w):
    y = (x @ w * 10).astype(jnp.int32)
    return jnp.sum(jnp.exp(y.astype(jnp.float32) - jnp.max(y, 0, keepdims=True).astype(jnp.float32)), 0)


def boolean_shift(x, w):
    y = x @ w
    return jnp.sum(jnp.exp(y - jnp.any(y > 3, 0, keepdims=True).astype(jnp.float32)), 0)


OTHERS = [
    *(counted_maxima, complex_mean, guarded, masked, another_maximum, masked_by_a_product, transposed_maximum),
    *(large_factors, nothing_but_infinity, sums_of_two_kinds, integer_maximum, boolean_shift),
]


@pytest.mark.parametrize("fn", OTHERS, ids=lambda fn: fn.__name__)
def test_what_looks_like_a_softmax_is_what_it_is_as_a_whole(fn) -> None:
    found = pt.plan(fn, pt.Mesh(), X, Y).tile("x", 0, "t:4").compile()(X, Y)
    np.testing.assert_allclose(found, fn(X, Y), rtol=2e-4, atol=2e-4)


def test_half_precision_does_not_overflow_before_the_division() -> None:
    args = [jnp.zeros((1, 4, 16), jnp.float16), jnp.zeros((1, 8192, 16), jnp.float16), jnp.full((1, 8192, 16), 10, jnp.float16)]
    plan = pt.plan(attention, pt.Mesh(), *args).tile("k", 1, "t:16")
    assert len(loops(plan)) == 1
    same(plan.compile()(*args), attention(*args), 1e-3)
