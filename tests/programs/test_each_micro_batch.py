"""`Microbatch(each=)`: what is in some scopes sees one micro-batch at a time. Equal to a loop by hand over micro-batches."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from lowered import interpreted, lowers_from_its_text

import partita as pt

KEYS = jax.random.split(jax.random.key(0), 8)
X, Y = jax.random.normal(KEYS[0], (32, 8)), jax.random.normal(KEYS[1], (32, 8))
W = jax.random.normal(KEYS[2], (3, 8, 8)) / 3


def batch_norm(x, scale=1.0):
    mean = x.mean(0)
    var = jnp.mean(jnp.square(x - mean[None]), 0)
    return (x - mean[None]) * lax.rsqrt(var + 1e-5)[None] * scale, mean


def normed(ws, x, y):
    means = list[jax.Array]()
    for number, w in enumerate(ws):
        with jax.named_scope(f"bn{number}"):
            x, mean = batch_norm(x @ w, 1 + w[None, 0])
        x = jnp.tanh(x)
        means.append(mean)
    return jnp.mean((x - y) ** 2), means


def scanned(ws, x, y):
    def layer(x, w):
        with jax.named_scope("bn"):
            x, mean = batch_norm(x @ w, 1 + w[None, 0])
        return jnp.tanh(x), mean

    x, means = lax.scan(layer, x, ws)
    return jnp.mean((x - y) ** 2), means


def rematerialised(ws, x, y):
    @jax.checkpoint
    def layer(w, x):
        with jax.named_scope("bn"):
            return jnp.tanh(batch_norm(x @ w.astype(jnp.float32), 1 + w[None, 0])[0])

    def body(x, w):
        return layer(w, x), None

    x = lax.scan(body, layer(ws[0], x), ws[1:])[0]
    return jnp.mean((x - y) ** 2), ()


def experts(ws, x, y):
    """Tokens of sequences go to the expert that they score, up to its capacity; the others are dropped."""
    tokens = (x[:, None] * jnp.arange(1.0, 5)[None, :, None] + y[:, None]).reshape(-1, 8)
    with jax.named_scope("moe"):
        scores = jax.nn.softmax(tokens @ ws[0, :, :4])
        chosen = jax.nn.one_hot(jnp.argmax(scores, 1), 4)
        capacity = len(tokens) // 8
        at = jnp.cumsum(chosen, 0) * chosen - chosen
        slots = jax.nn.one_hot(at.astype(int), capacity) * chosen[:, :, None]
        inner = jnp.tanh(jnp.einsum("tec,td->ecd", slots, tokens))
        out = jnp.einsum("tec,ecd->td", slots * scores[:, :, None], jnp.einsum("ecd,df->ecf", inner, ws[1]))
        balance = 4 * jnp.sum(scores.mean(0) * chosen.mean(0))
        count = jnp.sum(slots.astype(int))
    return jnp.mean((out.reshape(-1, 4, 8) - y[:, None]) ** 2) + 0.1 * balance, (balance, count)


def its_own_loss(ws, x, y):
    """No gradient enters the scope: that of the loss is 1."""
    with jax.named_scope("bn"):
        x, mean = batch_norm(x @ ws[0], 1 + ws[1, :1])
        spread = jnp.sum(jnp.square(jnp.mean(x * y, 0)))
    return spread, mean


def an_added_loss(ws, x, y):
    h = jnp.tanh(x @ ws[0])
    with jax.named_scope("bn"):
        h, mean = batch_norm(h, 1 + ws[1, :1])
        spread = jnp.sum(jnp.square(jnp.mean(jnp.sin(h) * ws[1, 0, 0], 0)))
    return jnp.mean((h @ ws[2] - y) ** 2) + spread, mean


@jax.custom_vjp
def doubled(h, w):
    return h @ w


def _backward(kept, given):
    h, w = kept
    turned = 2.0 * w.T
    return given @ turned / 2, h.T @ given


doubled.defvjp(lambda h, w: (h @ w, (h, w)), _backward)


def with_its_own_derivative(ws, x, y):
    with jax.named_scope("bn"):
        h, mean = batch_norm(doubled(x, ws[0]), 1 + ws[1, :1])
    return jnp.mean((h - y) ** 2), mean


def called(ws, x, y):
    @jax.jit
    def inner(x, w):
        with jax.named_scope("bn"):
            return batch_norm(x @ w)

    x, mean = inner(x, ws[0])
    return jnp.mean((x - y) ** 2), mean


def dropped_out(ws, x, y, key):
    with jax.named_scope("bn"):
        x, mean = batch_norm(x @ ws[0])
        x = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0)
    return jnp.mean((x - y) ** 2), mean


PROGRAMS: dict[str, Any] = {
    each.__name__: each
    for each in (normed, scanned, rematerialised, experts, its_own_loss, an_added_loss, with_its_own_derivative, called)
}
SCOPES = ["bn*", "moe"]


def scopes(name: str) -> list[str]:
    return ["moe"] if name == "experts" else ["bn*"]


def step(fn: Callable[..., Any], ws, x, y):
    (loss, more), grads = jax.value_and_grad(fn, has_aux=True)(ws, x, y)
    return loss, more, grads


def by_hand(fn: Callable[..., Any], m: int, ws, x, y):
    """Each micro-batch has every m-th example."""
    each = [step(fn, ws, x[at::m], y[at::m]) for at in range(m)]

    def joined(*parts):
        return sum(parts) / (1 if jnp.issubdtype(parts[0].dtype, jnp.integer) else m)

    return jax.tree.map(joined, *each)


def same(found: Any, wanted: Any, tolerance: float = 2e-5) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def planned(name: str, m: int, *tactics: pt.Tactic) -> pt.Plan:
    fn = partial(step, PROGRAMS[name])
    return pt.plan(fn, pt.Mesh(data=2), W, X, Y).apply(pt.Microbatch(m, each=scopes(name), inputs=("x", "y")), *tactics)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_micro_batch_alone_is_what_a_loop_by_hand_computes(name: str, m: int) -> None:
    plan = planned(name, m)
    assert len(plan.loops().all()) == 1
    same(plan.compile()(W, X, Y), by_hand(PROGRAMS[name], m, W, X, Y))
    lowers_from_its_text(plan)


@pytest.mark.parametrize("name", PROGRAMS)
def test_micro_batches_alone_are_those_of_any_mesh(name: str) -> None:
    data = pt.DataParallel("data", inputs=("x", "y"))
    micro = pt.Microbatch(2, each=scopes(name), inputs=("x", "y"))
    start = pt.plan(partial(step, PROGRAMS[name]), pt.Mesh(data=2), W, X, Y)
    before, after = start.apply(micro, data), start.apply(data, micro)
    assert str(before.spmd()) == str(after.spmd())
    assert len(before.loops().all()) == 1
    same(before.compile()(W, X, Y), by_hand(PROGRAMS[name], 2, W, X, Y))
    same(interpreted(before, (W, X, Y)), jax.tree.leaves(by_hand(PROGRAMS[name], 2, W, X, Y)))
