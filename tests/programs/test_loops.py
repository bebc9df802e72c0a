"""Ranges placed in time: each program, with a loop before, after and without an axis, equals the function.

The programs need carries, stacks, windows, prefixes, several loops one after another, and loops inside of regions.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax
from lowered import executions, interpreted, lowers_from_its_decisions, lowers_from_its_text, reparsed

import partita as pt
from partita.compiler.cost.loops import loops
from partita.dialects.lax import ScanOp
from partita.dialects.reference.interpret import interpret
from partita.rewrites.lower.to_flow import to_flow

KEYS = jax.random.split(jax.random.key(0), 4)


def normal(*shape: int, key: int = 0) -> Array:
    return jax.random.normal(KEYS[key], shape)


def folded_in_the_middle(h, w):
    s = h @ w
    return jnp.sum(jnp.exp(s - lax.stop_gradient(jnp.max(s, axis=0, keepdims=True))))


def split_by_a_reshape(h, w):
    s = (h @ w).reshape(-1, 32, 64)
    return jax.nn.softmax(s, -1).sum(0)


def stencil(u):
    p = jnp.pad(u, ((1, 1), (0, 0)))
    return jnp.tanh(p[2:] - 2 * p[1:-1] + p[:-2])


def prefix(h, w):
    return jnp.cumsum(jnp.tanh(h @ w), 0) / 64


def looked_up(table, ids):
    return jnp.tanh(table[ids]) @ table.T


def masked_mean(h, w, mask):
    return jnp.sum(jnp.tanh(h @ w).sum(1) * mask) / jnp.sum(mask)


def scanned(h, ws):
    def body(c, w):
        c = jnp.tanh(c @ w)
        return c, c.sum()

    c, ys = lax.scan(body, h, ws)
    return (c**2).mean() + ys.mean()


def batch_norms_in_a_scan(h, ws):
    def body(c, w):
        c = c @ w
        c = (c - c.mean(0, keepdims=True)) / jnp.sqrt(c.var(0, keepdims=True) + 1)
        return jnp.tanh(c), c[:, 0]

    c, ys = lax.scan(body, h, ws)
    return (c**2).mean() + ys.mean()


def while_beside(h, w):
    return lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ w), h).sum(0)


def while_around(h, w):
    def body(state):
        return state[0] + 1, jnp.tanh(state[1] @ w)

    return lax.while_loop(lambda s: (s[0] < 3) & (jnp.max(s[1]) < 100), body, (0, h))[1].sum(0)


def choice(h, w, which):
    return lax.cond(which > 0, lambda x: jnp.tanh(x @ w).sum(0), lambda x: x.sum(0) * w[0], h)


def dropout(h, w, key):
    x = h @ w
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0).sum(1)


def convolution(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME")


def associative(h):
    return lax.associative_scan(jnp.add, jnp.tanh(h), axis=0) / 64


def cross_entropy(h, w, y):
    logits = h @ w
    return jnp.mean(jax.nn.logsumexp(logits, 1) - jnp.take_along_axis(logits, y[:, None], 1)[:, 0])


def contrastive(h, g):
    s = h @ g.T
    return jnp.mean(jax.nn.logsumexp(s, 1) - jnp.diag(s)) + jnp.mean(jax.nn.logsumexp(s, 0) - jnp.diag(s))


def clipped(h, w):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(h @ w) ** 2))(w)
    return w - gradient * jnp.minimum(1, 1 / jnp.sqrt(jnp.sum(gradient**2)))


def folds(h):
    return jnp.max(jnp.tanh(h), 0), jnp.argmax(h, 0), jnp.any(h > 2, 0), jnp.all(h < 2, 0), jnp.prod(h * 0.5, 0)


def sorted_rows(h):
    return jnp.sort(jnp.tanh(h), axis=0)


def with_gradient(fn: Callable[..., Any], count: int = 1) -> Callable[..., Any]:
    def both(*args: Any) -> Any:
        return jax.value_and_grad(lambda *given: jnp.sum(fn(*given) * 0.37), argnums=tuple(range(count)))(*args)

    return both


H, W = normal(64, 32), normal(32, 32, key=1) / 4
PROGRAMS: dict[str, tuple[Callable[..., Any], Sequence[Any], int, int]] = {
    "folded in the middle": (with_gradient(folded_in_the_middle, 2), (H, W), 0, 0),
    "split by a reshape": (with_gradient(split_by_a_reshape, 2), (normal(512, 64), normal(64, 64, key=1) / 8), 0, 0),
    "stencil": (with_gradient(stencil), (normal(512, 16),), 0, 0),
    "prefix": (with_gradient(prefix, 2), (H, W), 0, 0),
    "looked up, the ids": (with_gradient(looked_up), (H, jax.random.randint(KEYS[3], (128,), 0, 64)), 1, 0),
    "looked up, the table": (with_gradient(looked_up), (H, jax.random.randint(KEYS[3], (128,), 0, 64)), 0, 0),
    "masked mean": (with_gradient(masked_mean, 2), (H, W, (normal(64, key=2) > 0) * 1.0), 0, 0),
    "scanned": (with_gradient(scanned, 2), (H, normal(4, 32, 32, key=1) / 4), 0, 0),
    "scanned, in parts of a layer": (with_gradient(scanned, 2), (H, normal(4, 32, 32, key=1) / 4), 1, 1),
    "batch norms in a scan": (with_gradient(batch_norms_in_a_scan, 2), (H, normal(4, 32, 32, key=1) / 4), 0, 0),
    "while beside": (while_beside, (H, W), 0, 0),
    "while around": (while_around, (H, W), 0, 0),
    "choice": (with_gradient(choice, 2), (H, W, jnp.int32(1)), 0, 0),
    "dropout": (with_gradient(dropout, 2), (H, W, jax.random.key(3)), 0, 0),
    "convolution rows": (with_gradient(convolution, 2), (normal(8, 3, 32, 16), normal(4, 3, 3, 3, key=1) / 4), 0, 2),
    "associative scan": (with_gradient(associative), (H,), 0, 0),
    "tokens of a loss": (
        with_gradient(cross_entropy, 2),
        (H, normal(32, 96, key=1) / 4, jax.random.randint(KEYS[3], (64,), 0, 96)),
        0,
        0,
    ),
    "vocabulary of a loss": (
        with_gradient(cross_entropy, 2),
        (H, normal(32, 96, key=1) / 4, jax.random.randint(KEYS[3], (64,), 0, 96)),
        1,
        1,
    ),
    "contrastive": (with_gradient(contrastive, 2), (H / 6, normal(64, 32, key=1) / 6), 0, 0),
    "clipped": (clipped, (H, W), 0, 0),
    "folds": (folds, (H,), 0, 0),
    "sorted rows": (sorted_rows, (H,), 0, 0),
}


def branch_by_a_counter(h, w):
    """A value that all trips share comes out of a loop that is in the trips; a fold is in the branches."""
    count, h = lax.fori_loop(0, 3, lambda _, s: (s[0] + 1, jnp.tanh(s[1] @ w)), (0, h))
    return lax.cond(count > 2, lambda x: (x - x.mean(0, keepdims=True)).sum(1), lambda x: x.sum(1), h)


PROGRAMS["branch by a counter"] = branch_by_a_counter, (H, W), 0, 0
ORDERS = {"alone": ["t:8"], "before an axis": ["t:8", "data"], "after an axis": ["data", "t:8"]}


def planned(name: str, order: str) -> pt.Plan:
    fn, args, argument, dim = PROGRAMS[name]
    plan = pt.plan(fn, pt.Mesh(data=2), *args)
    value = list(plan.source.addresses.arguments)[argument]
    for place in ORDERS[order]:
        plan = plan.tile(value, dim, place)
    return plan


def same(found: Any, wanted: Any) -> None:
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_in_a_loop_is_the_program(name: str, order: str) -> None:
    fn, args, *_ = PROGRAMS[name]
    plan = planned(name, order)
    assert any(isinstance(op, ScanOp) and op.params.get("loop") == "t:8" for op in plan.spmd().walk())
    same(plan.compile()(*args), fn(*args))


@pytest.mark.parametrize("name", ["folded in the middle", "scanned", "stencil", "prefix", "choice"])
def test_a_loop_is_in_every_form_of_a_plan(name: str) -> None:
    fn, args, *_ = PROGRAMS[name]
    plan = planned(name, "after an axis")
    given = [np.asarray(arg) for arg in args]
    same(interpret(plan.ir(), given), fn(*args))
    same(interpreted(plan, given), fn(*args))
    same(plan.lower().run(*args), fn(*args))
    lowers_from_its_text(plan)
    lowers_from_its_decisions(plan)


def layers(x, ws):
    @jax.checkpoint
    def body(c, w):
        return jnp.tanh(c @ w) + c, None

    return jax.value_and_grad(lambda ws: (lax.scan(body, x, ws)[0] ** 2).mean())(ws)


def test_what_a_scan_of_layers_gathers_counts_in_each_trip_around_it() -> None:
    args = H, normal(4, 32, 32, key=1) / 8
    plan = pt.plan(layers, pt.Mesh(data=2), *args).tile("x", 0, "data").tile("x", 0, "t:4").tile("ws", 1, "data")
    assert plan.counts()["all_gather"] == executions(plan.spmd())[0]["all_gather"] == 4 * 8
    same(plan.compile()(*args), layers(*args))


def test_a_graph_from_text_is_that_of_the_plan_and_is_not_cut_in_loops() -> None:
    plan = planned("clipped", "after an axis")
    placed = reparsed(str(plan.ir()))
    assert str(to_flow(placed, "whole")) == str(plan.lower("whole").module)
    with pytest.raises(pt.Error, match="has no loops, and the plan has `t:8`"):
        to_flow(placed, "collective")


def test_a_page_shows_a_plan_with_loops(tmp_path: Path) -> None:
    planned("scanned", "after an axis").html(tmp_path / "plan.html")
    assert "t:8" in (tmp_path / "plan.html").read_text()


def test_loops_in_loops_are_counted_once_each() -> None:
    fn, args, *_ = PROGRAMS["clipped"]
    plan = pt.plan(fn, pt.Mesh(), *args).tile("h", 0, "t:4").tile("h", 0, "u:2")
    assert [(each.loop, each.times) for each in loops(plan)] == [("t:4", 1), ("u:2", 1)]
    same(plan.compile()(*args), fn(*args))


def test_a_dim_is_padded_on_an_axis_and_a_loop_at_once() -> None:
    fn, args, *_ = PROGRAMS["clipped"]
    for places in (("data", "t:3"), ("t:3", "data")):
        plan = pt.plan(fn, pt.Mesh(data=2), *args).tile("h", 0, places, padded=True)
        assert plan.layout("h")["h"] == "f32[data*t:3*11 pad 64, 32]"
        same(plan.compile()(*args), fn(*args))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_order_of_a_loop_and_an_axis_does_not_matter(name: str) -> None:
    before, after = planned(name, "before an axis"), planned(name, "after an axis")
    assert str(before.spmd()) == str(after.spmd())
    assert before.layout() == after.layout() and before.counts() == after.counts()
