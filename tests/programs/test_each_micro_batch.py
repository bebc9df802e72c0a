"""`Microbatch(each=)`: what is in some scopes sees one micro-batch at a time. Equal to a loop by hand over micro-batches."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportMissingTypeStubs=false

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from jax import lax
from lowered import interpreted, lowers_from_its_text

import partita as pt
from partita.compiler.plan.history import prefixes

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
        out = jnp.einsum("tec,ecd->td", slots * scores[:, :, None], jnp.einsum("ecd,df->ecf", inner, ws[1])).reshape(-1, 4, 8)
        balance = 4 * jnp.sum(scores.mean(0) * chosen.mean(0))
        count = jnp.sum(slots.astype(int))
    return jnp.mean((out - y[:, None]) ** 2) + 0.1 * balance, (balance, count)


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


def test_random_numbers_are_those_of_the_whole_batch() -> None:
    def fn(ws, x, y, key):
        with jax.named_scope("bn"):
            x, mean = batch_norm(x @ ws[0])
            x = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0)
        return jnp.mean((x - y) ** 2), mean

    def alone(ws, x, y, key, at):
        kept = jax.random.bernoulli(key, 0.5, X.shape)[at::4]
        x, mean = batch_norm(x[at::4] @ ws[0])
        return jnp.mean((jnp.where(kept, x, 0) - y[at::4]) ** 2), mean

    args = W, X, Y, KEYS[3]
    plan = pt.plan(jax.value_and_grad(fn, has_aux=True), pt.Mesh(), *args)
    plan = plan.apply(pt.Microbatch(4, each="bn", inputs=("x", "y")))
    each = [jax.value_and_grad(alone, has_aux=True)(*args, at) for at in range(4)]
    same(plan.compile()(*args), jax.tree.map(lambda *parts: sum(parts) / 4, *each))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            y = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(4, (3, 3))(x)))
            x = jnp.tanh(y + nn.Conv(4, (1, 1))(x))
        return nn.Dense(10)(x.mean((1, 2)))


def train(params, stats, momentum, batch):
    def loss(params, stats, batch):
        logits, new = Net().apply({"params": params, "batch_stats": stats}, batch["x"], mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean(), new["batch_stats"]

    (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(params, stats, batch)
    updates, momentum = optax.sgd(0.1, 0.9).update(grads, momentum, params)
    return optax.apply_updates(params, updates), stats, momentum, value


@pytest.mark.parametrize("tactics", [(), (pt.DataParallel("data"),), (pt.DataParallel("data"), pt.FSDP("data"))])
@pytest.mark.parametrize("first", [True, False])
def test_a_flax_model_with_batch_norm(tactics: tuple[pt.Tactic, ...], first: bool) -> None:
    batch = {"x": jax.random.normal(KEYS[0], (16, 6, 6, 4)), "y": jnp.arange(16) % 10}
    model = Net().init(KEYS[1], batch["x"])
    args = model["params"], model["batch_stats"], optax.sgd(0.1, 0.9).init(model["params"]), batch
    plan = pt.plan(train, pt.Mesh(data=4), *args)
    with pytest.raises(pt.Error, match=r"each=\['\*\*/BatchNorm_\*'\]"):
        plan.apply(pt.Microbatch(4))
    micro = pt.Microbatch(2, each=["**/BatchNorm_*"])
    plan = plan.apply(*((micro, *tactics) if first else (*tactics, micro)))
    assert len(plan.loops().all()) == 1 and not plan.conflicts.all()
    parts = [train(*args[:3], jax.tree.map(lambda a, at=at: a[at::2], batch)) for at in range(2)]
    same(plan.compile()(*args), jax.tree.map(lambda *each: sum(each) / 2, *parts))
    again = pt.replay(train, pt.Mesh(data=4), plan.trace, *args)
    assert str(again.spmd()) == str(plan.spmd()) and again.layout() == plan.layout()


def test_a_plan_says_what_is_another_program() -> None:
    plan = planned("normed", 4)
    assert "another program than step: what is in `bn*` sees one micro-batch at a time" in str(plan)
    assert "the mean of 4 micro-batches: f32[8] of `div`" in str(plan)
    assert plan.check(W, X, Y) < 1e-4
    before, after = prefixes(plan)
    assert "another program" not in str(before) and after is plan


def test_what_comes_before_is_planned_again() -> None:
    start = pt.plan(partial(step, normed), pt.Mesh(data=2), W, X, Y)
    micro = pt.Microbatch(4, each="bn*", inputs=("x", "y"))
    plan = start.tile("x", 0, "data").name("ws", 0, "layers").apply(micro)
    assert plan.layout()["x"] == "f32[data*4*micro:4, 8]"
    same(plan.compile()(W, X, Y), by_hand(normed, 4, W, X, Y))


def flattened_by_time(ws, x, y):
    h = jnp.stack([x, 2 * x], 0).reshape(-1, 8)
    with jax.named_scope("bn"):
        h, mean = batch_norm(h @ ws[0])
        spread = jnp.mean(h**3)
    return spread + jnp.mean(y), mean


def two_batches(ws, x, y):
    with jax.named_scope("pairs"):
        scores = x @ y.T
    return jnp.mean(jax.nn.logsumexp(scores, 1)), ()


def in_a_branch(ws, x, y):
    def normed(x):
        with jax.named_scope("bn"):
            return batch_norm(x)[0]

    return jnp.mean(lax.cond(ws[0, 0, 0] > 0, normed, jnp.tanh, x) ** 2) + jnp.mean(y), ()


def of_other_sizes(ws, x, y):
    with jax.named_scope("bn"):
        h = batch_norm(x)[0] if len(x) == 32 else jnp.tanh(x)
    return jnp.mean(h**2) + jnp.mean(y), ()


def of_32_alone(ws, x, y):
    with jax.named_scope("bn"):
        return jnp.mean(batch_norm(x.reshape(32, 2, 4))[0] ** 2) + jnp.mean(y), ()


def true_or_false(ws, x, y):
    with jax.named_scope("bn"):
        large = x.mean() > 0
    return jnp.where(large, 1.0, 2.0) * jnp.mean(y) * ws.sum(), ()


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no such scope": (normed, {"each": "norm*"}, r"no scope is named `norm\*`"),
    "examples in another order": (flattened_by_time, {"each": "bn"}, r"`bn` are not those of the inputs: \[64, 8\]"),
    "two dims of the batch": (two_batches, {"each": "pairs"}, r"f32\[32, 32\], is not 4 micro-batches along one dim"),
    "within a branch": (in_a_branch, {"each": "bn"}, r"scopes of `each` are within `cond`"),
    "other ops": (of_other_sizes, {"each": "bn"}, r"one of 4 micro-batches has other ops than the whole batch"),
    "an error of the function": (of_32_alone, {"each": "bn"}, r"cannot be traced for one of 4 micro-batches"),
    "true or false": (true_or_false, {"each": "bn"}, r"says true or false of one micro-batch"),
    "no size": (normed, {"each": "bn*", "m": 5}, r"the 32 examples of `x` are not 5 micro-batches of one size"),
    "nothing of the batch": (normed, {"each": "bn*", "inputs": "ws", "m": 3}, r"one of 3 micro-batches has other ops"),
}


By = Callable[[Callable[..., Any], Any], Any]


def whole(fn, x):
    return fn(x)


def one_by_one(fn, x):
    """What a scope makes of each micro-batch, as a Python loop: those with a batch put together, the mean of the others."""
    parts = [fn(x[at::4]) for at in range(4)]

    def joined(*each):
        return jnp.stack(each, 1).reshape(-1, *each[0].shape[1:]) if each[0].ndim == 2 else sum(each) / 4

    return jax.tree.map(joined, *parts)


def read_in_and_out(w, x, by: By = whole):
    def inside(x):
        with jax.named_scope("s"):
            g = jnp.mean(x @ w, 0)
            return x * g[None], g

    z, g = by(inside, x)
    return jnp.mean(z**2) + jnp.sum(g) + jnp.sum(g**2)


def of_its_own_length(w, x, by: By = whole):
    def inside(x):
        with jax.named_scope("s"):
            n = len(x)
            z = x @ w - jnp.mean(x @ w, 0)[None]
            a = z * jax.jit(lambda a: a * (n / 8.0))(w[:1])
            b = z * (np.full((1, 8), n, np.float32) * w[:1])
            return a, b, z * lax.fori_loop(0, n, lambda _, a: a * 1.1, w[:1])

    return sum(jnp.mean(each**3) for each in by(inside, x))


def recomputed(w, x, by: By = whole):
    """A derivative by hand that computes the layer again: what it recomputes is no gradient."""

    def run(w, x):
        w = jnp.sin(w)

        def inside(x):
            with jax.named_scope("s"):
                z = jnp.tanh(x @ w)
                return z - jnp.mean(z, 0)[None]

        return by(inside, x)

    layer = jax.custom_vjp(run)
    layer.defvjp(lambda w, x: (run(w, x), (w, x)), lambda kept, g: jax.vjp(run, *kept)[1](g))
    return jnp.mean((layer(w, x) - 1) ** 2)


def turned_outside(w, x, by: By = whole):
    @jax.custom_vjp
    def product(w, x):
        return x @ w

    def backward(kept, given):
        w, x = kept
        turned = 0.5 * (2 * w.T)
        with jax.named_scope("s"):
            return x.T @ given, given @ turned

    product.defvjp(lambda w, x: (product(w, x), (w, x)), backward)

    def inside(x):
        with jax.named_scope("s"):
            z = product(w, x)
            return z - jnp.mean(z, 0)[None]

    return jnp.mean(by(inside, jnp.sin(x)) ** 3)


def pulled_back_by_hand(w, x, by: By = whole):
    def both(w):
        def inside(x):
            with jax.named_scope("s"):
                z = jnp.tanh(x @ w)
                return z - jnp.mean(z, 0)[None], jnp.mean(z, 0)

        return by(inside, x)

    (z, mean), pull = jax.vjp(both, w)
    return jnp.mean(z**2) + jnp.sum(pull((2 * z, 3 * mean))[0] * 0.0), pull((2 * z, 3 * mean))[0]


@jax.custom_vjp
def with_gradient(h, loss):
    return h


with_gradient.defvjp(lambda h, loss: (h, ()), lambda _, given: (given, jnp.float32(0.01)))


def a_constant_gradient(w, x, by: By = whole):
    """A derivative by hand that gives a loss a constant gradient, outside of the scope."""

    def inside(x):
        with jax.named_scope("s"):
            z = x @ w - jnp.mean(x @ w, 0)[None]
            return z, jnp.sum(jnp.mean(jax.nn.softmax(z), 0) ** 2)

    return jnp.mean((with_gradient(*by(inside, x)) - 1) ** 2)


def a_constant_gradient_inside(w, x, by: By = whole):
    def inside(x):
        with jax.named_scope("s"):
            z = x @ w - jnp.mean(x @ w, 0)[None]
            return with_gradient(z, jnp.sum(jnp.mean(jax.nn.softmax(z), 0) ** 2))

    return jnp.mean((by(inside, x) - 1) ** 2)


def stacked_means(w, x, by: By = whole):
    def layer(x, _):
        def inside(x):
            with jax.named_scope("s"):
                z = x @ w
                return jnp.tanh(z - jnp.mean(z, 0)[None]), jnp.mean(z, 0)

        return by(inside, x)

    x, means = lax.scan(layer, x, None, length=3)
    return jnp.mean(x**3) + jnp.sum(means**2)


SCOPED: tuple[Any, ...] = (
    read_in_and_out,
    of_its_own_length,
    recomputed,
    turned_outside,
    stacked_means,
    a_constant_gradient,
    a_constant_gradient_inside,
)


@pytest.mark.parametrize("fn", SCOPED)
def test_gradients_are_those_of_a_loop_over_the_scopes(fn: Any) -> None:
    plan = pt.plan(jax.value_and_grad(fn), pt.Mesh(), W[0], X).apply(pt.Microbatch(4, each="s", inputs="x", loops=9))
    same(plan.compile()(W[0], X), jax.value_and_grad(partial(fn, by=one_by_one))(W[0], X))


def test_a_gradient_that_is_pulled_back_by_hand() -> None:
    plan = pt.plan(pulled_back_by_hand, pt.Mesh(), W[0], X).apply(pt.Microbatch(4, each="s", inputs="x", loops=9))
    same(plan.compile()(W[0], X), pulled_back_by_hand(W[0], X, one_by_one))


def test_marks_of_gradients_leave_nothing_in_the_program() -> None:
    def fn(w, x):
        h = jax.jit(lambda w, x: with_gradient(x @ w, jnp.mean(w)))(w, x)
        h = lax.scan(lambda h, _: (with_gradient(jnp.tanh(h), jnp.mean(h)), None), h, None, length=2)[0]
        with jax.named_scope("s"):
            return jnp.mean((h - jnp.mean(h, 0)[None]) ** 2)

    plan = pt.plan(jax.grad(fn), pt.Mesh(), W[0], X).apply(pt.Microbatch(4, each="s", inputs="x"))
    assert "partita" not in str(plan.source.traced.module) and not plan.source.traced.tags


def test_a_value_goes_from_scope_to_scope_in_parts() -> None:
    def fn(w, x, between=lambda g: g):
        with jax.named_scope("s"):
            g = jnp.mean(x @ w, 0)
        g = between(g)
        with jax.named_scope("s"):
            return jnp.mean(jnp.exp(x @ w * g[None]))

    micro = pt.Microbatch(4, each="s", inputs="x", loops=9)
    parts = pt.plan(fn, pt.Mesh(), W[0], X).apply(micro).compile()(W[0], X)
    same(parts, sum(fn(W[0], X[at::4]) for at in range(4)) / 4)
    mean = jnp.mean(jnp.stack([jnp.mean(X[at::4] @ W[0], 0) for at in range(4)]), 0)
    left = pt.plan(lambda w, x: fn(w, x, lambda g: g * 1.0), pt.Mesh(), W[0], X).apply(micro).compile()(W[0], X)
    same(left, jnp.mean(jnp.exp(X @ W[0] * mean[None])))


def twice_backward(ws, x, y):
    def loss(ws):
        with jax.named_scope("bn"):
            z = jnp.tanh(x @ ws[0])
            z = z - jnp.mean(z, 0)[None]
        return jnp.mean((z - y) ** 3)

    return jnp.sum(jax.grad(loss)(ws) ** 2), ()


def side_by_side(ws, x, y):
    with jax.named_scope("bn"):
        x = jnp.concatenate([x - x.mean(0)[None], 2 * x @ ws[0]], 0)
    return jnp.mean((jnp.prod(x.reshape(2, -1, 8), 0) - y) ** 2), ()


def transposed(ws, x, y):
    def product(w):
        with jax.named_scope("bn"):
            return x @ w

    (back,) = jax.linear_transpose(product, ws[0])(y)
    return jnp.mean(back**2), ()


MORE_REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "gradients of gradients": (twice_backward, {"each": "bn"}, "pulls back a gradient of a gradient"),
    "several elements of an example": (side_by_side, {"each": "bn"}, "several elements of an example along dim 0"),
    "a transposed function": (lambda ws, x, y: transposed(lax.stop_gradient(ws), x, y), {"each": "bn"}, "depends on nothing"),
    "no parts": (normed, {"each": "bn*", "m": 0}, "takes the number of parts or their size, got m=0"),
    "less than none": (normed, {"each": "bn*", "m": -2}, "takes the number of parts or their size, got m=-2"),
}


@pytest.mark.parametrize("case", [*REFUSED, *MORE_REFUSED])
def test_what_cannot_see_one_micro_batch_is_refused(case: str) -> None:
    fn, options, message = {**REFUSED, **MORE_REFUSED}[case]
    plan = pt.plan(partial(step, fn), pt.Mesh(data=2), W, X, Y)
    micro: Callable[..., pt.Tactic] = partial(pt.Microbatch, inputs=("x", "y"), m=4)
    with pytest.raises(pt.Error, match=message):
        plan.apply(micro(**options))


def test_one_micro_batch_is_the_program() -> None:
    plan = pt.plan(partial(step, normed), pt.Mesh(), W, X, Y).apply(pt.Microbatch(1, each="bn*", inputs=("x", "y")))
    same(plan.compile()(W, X, Y), step(normed, W, X, Y))


def test_few_examples_over_many_devices_are_refused_with_a_number_that_fits() -> None:
    plan = pt.plan(partial(step, normed), pt.Mesh(data=4), W, X, Y).apply(pt.DataParallel("data", inputs=("x", "y")))
    with pytest.raises(pt.Error, match=r"has 2 examples, which do not divide over `data` \(4 devices\)") as refused:
        plan.apply(pt.Microbatch(16, each="bn*", inputs=("x", "y")))
    assert list(refused.value.helps) == ["at most 8 micro-batches: pt.Microbatch(8)"]


def tagged(ws, x, y):
    with jax.named_scope("bn"):
        z = pt.tag(x @ ws[0], "z")
        z = pt.constrain(z - jnp.mean(z, 0)[None], "_, data")
    return jnp.mean((z - y) ** 2), ()


def test_what_a_tactic_says_of_a_value_in_parts_is_refused() -> None:
    plan = pt.plan(partial(step, tagged), pt.Mesh(data=2), W, X, Y)
    micro = pt.Microbatch(4, each="bn", inputs=("x", "y"))
    with pytest.raises(pt.Error, match=r"tile\('z', 1, 'data'\) places `z`, which .* it is f\w*32\[4, 8, 8\]"):
        plan.tile("z", 1, "data").apply(micro)
    same(plan.apply(micro).tile("z", 2, "data").compile()(W, X, Y), by_hand(tagged, 4, W, X, Y))
    before, after = plan.apply(pt.Annotated(), micro), plan.apply(micro, pt.Annotated())
    assert before.layout() == after.layout()
    same(before.compile()(W, X, Y), by_hand(tagged, 4, W, X, Y))


def test_a_program_sees_micro_batches_in_one_way() -> None:
    plan = planned("normed", 4)
    with pytest.raises(pt.Error, match="name all scopes in one `each=`"):
        plan.apply(pt.Microbatch(2, name="more", each="bn0", inputs=("x", "y")))
