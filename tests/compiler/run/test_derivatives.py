"""Derivatives and `vmap` of a compiled plan are those of the function, each planned separately with the same tactics."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.sharding import PartitionSpec as P
from jaxpr_collectives import collectives, counts

import partita as pt

MESH = pt.Mesh(data=4, model=2)
X = jnp.linspace(-2.0, 2.0, 32).reshape(8, 4).at[:, 0].set(0.0)
Function = Callable[[Any], Any]


@jax.custom_vjp
def straight(x: jax.Array) -> jax.Array:
    return jnp.round(x)


straight.defvjp(lambda x: (straight(x), None), lambda _, g: (g,))


@jax.custom_vjp
def clipped(x: jax.Array) -> jax.Array:
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))


@jax.custom_jvp
def tripled(x: jax.Array) -> jax.Array:
    return x * 2


tripled.defjvp(lambda primals, tangents: (tripled(primals[0]), tangents[0] * 3))


def mapped(x: jax.Array) -> jax.Array:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    return jax.shard_map(tripled, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)


def scanned(x: jax.Array) -> jax.Array:
    return lax.scan(lambda c, _: (straight(c) + 0.5, None), x, length=3)[0]


def solved(x: jax.Array) -> jax.Array:
    return jnp.linalg.solve(jnp.eye(4) * 9 + x[:4], x[4])


RULES: dict[str, Function] = {
    "relu": jax.nn.relu,
    "custom_vjp": straight,
    "a clipped gradient": lambda x: clipped(x) * 5,
    "custom_jvp": tripled,
    "logaddexp": lambda x: jnp.logaddexp(x, x),
    "two": lambda x: tripled(straight(x)),
    "in jit": jax.jit(lambda x: jax.jit(tripled)(x)),
    "in checkpoint": jax.checkpoint(tripled),
    "in scan": scanned,
    "in while": lambda x: lax.fori_loop(0, 2, lambda _, c: tripled(c), x),
    "in cond": lambda x: lax.cond(x.sum() < 9, tripled, lambda x: x, x),
    "in shard_map": mapped,
    "in vmap": jax.vmap(straight),
    "solve": solved,
    "gamma": lambda x: jax.random.gamma(jax.random.key(0), jnp.abs(x) + 1),
}

AT = jnp.array([[1], [9], [-20], [3]])
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
INTO = lax.ScatterDimensionNumbers((1,), (0,), (0,))

# Functions whose device-local code, if it were differentiated, would give another derivative.
NUMBERS: dict[str, Function] = {
    **{f"gather {mode}": lambda x, mode=mode: lax.gather(x, AT, ROWS, (1, 4), mode=mode) for mode in ("clip", None)},
    "gather fill": lambda x: lax.gather(x, AT, ROWS, (1, 4), mode="fill", fill_value=0),
    **{f"scatter {mode}": lambda x, mode=mode: lax.scatter_add(x, AT, 2 * x[:4], INTO, mode=mode) for mode in ("clip", None)},
    "scatter that sets": lambda x: lax.scatter(x, AT, 2 * x[:4], INTO, mode="clip"),
    "cumprod": lambda x: lax.cumprod(x.at[3].set(jnp.inf) + 3),
    "cummin": lambda x: lax.cummin(x.at[3].set(-jnp.inf)),
    "cummax": lambda x: lax.cummax(x.at[3].set(jnp.inf)),
    "a sum from 3": lambda x: lax.reduce(x, 3.0, lax.add, (0,)),
    "a maximum from 1": lambda x: lax.reduce(x, 1.0, lax.max, (0,)),
    "a maximum of rows and columns": lambda x: x - jnp.max(x, 1, keepdims=True) * jnp.max(x, 0, keepdims=True),
    "a maximum of equals": lambda x: jnp.max(jnp.round(x), 0),
}


def loss(function: Function) -> Function:
    return lambda x: jnp.sum(function(x) ** 2)


def partitioned(function: Function) -> Function:
    return pt.jit(function, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])


def agree(ours: Any, theirs: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5), ours, theirs)


@pytest.mark.parametrize("name", RULES)
def test_a_derivative_of_a_compiled_plan_uses_the_custom_rule(name: str) -> None:
    function = loss(RULES[name])
    agree(jax.grad(partitioned(lambda x: function(x)))(X), jax.grad(function)(X))


@pytest.mark.parametrize("name", NUMBERS)
def test_a_derivative_of_a_compiled_plan_is_that_of_the_function(name: str) -> None:
    function = NUMBERS[name]
    ours = partitioned(lambda x: function(x))
    agree(jax.grad(lambda x: loss(ours)(x))(X), jax.grad(loss(function))(X))
    agree(jax.jvp(ours, (X,), (X + 1,)), jax.jvp(function, (X,), (X + 1,)))


@pytest.mark.parametrize("name", ["relu", "a clipped gradient", "in scan"])
def test_a_partitioned_derivative_uses_the_custom_rule(name: str) -> None:
    gradient = jax.grad(loss(RULES[name]))
    agree(partitioned(lambda x: gradient(x))(X), gradient(X))


def smooth(x: jax.Array) -> jax.Array:
    """Not where `tanh` is nearly 1: the last bit of its value would decide its derivative."""
    return jnp.tanh(jax.nn.softmax(x) * lax.stop_gradient(x) + (jax.nn.relu(x) / 2) ** 3)


WAYS: dict[str, Callable[[Function], Any]] = {
    "linearize": lambda f: jax.linearize(f, X)[1](X),
    "vjp": lambda f: jax.vjp(f, X)[1](X),
    "value_and_grad": lambda f: jax.value_and_grad(loss(f))(X),
    "under jit": lambda f: jax.jit(jax.grad(loss(f)))(X),
    "of jit": lambda f: jax.grad(jax.jit(loss(f)))(X),
    "of vmap": lambda f: jax.grad(loss(jax.vmap(f, 1)))(jnp.stack([X, X + 1], 1)),
    "vmap of grad": lambda f: jax.vmap(jax.grad(loss(f)))(jnp.stack([X, X + 1])),
    "vmap of vmap": lambda f: jax.vmap(jax.vmap(f, 2, 1), 1)(X[:, None, :, None] + jnp.arange(6.0).reshape(1, 2, 1, 3)),
    "of scan": lambda f: jax.grad(lambda x: lax.scan(lambda c, _: (f(c), c), x, length=2)[0].sum())(X),
    "of checkpoint": lambda f: jax.grad(loss(jax.checkpoint(f)))(X),
    "of cond": lambda f: jax.grad(lambda x: lax.cond(x.sum() < 9, f, jnp.sin, x).sum())(X),
    "forward over reverse": lambda f: jax.jvp(jax.grad(loss(f)), (X,), (X + 1,)),
    "reverse over reverse": lambda f: jax.grad(lambda x: (jax.grad(loss(f))(x) ** 2).sum())(X),
    "reverse over forward": lambda f: jax.grad(lambda x: (jax.jvp(f, (x,), (X,))[1] ** 2).sum())(X),
    "of the tangent": lambda f: jax.vmap(jax.linearize(f, X)[1])(jnp.stack([X, X + 1])),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_transform_is_that_of_the_function(way: str) -> None:
    agree(WAYS[way](pt.plan(smooth, MESH, X).tile("x", 0, "data").compile()), WAYS[way](smooth))


def test_a_linear_program_is_transposed() -> None:
    def double(x: jax.Array) -> jax.Array:
        return 2 * x

    compiled = pt.plan(double, MESH, X).tile("x", 0, "data").compile()
    agree(jax.linear_transpose(compiled, X)(X), jax.linear_transpose(double, X)(X))


def test_a_plan_of_a_compiled_plan_has_its_derivative() -> None:
    compiled = pt.plan(straight, MESH, X).tile("x", 0, "data").compile()
    outer = pt.plan(lambda x: (compiled(x) ** 2).sum(), MESH, X).tile("x", 0, "data").compile()
    agree(jax.grad(outer)(X), jax.grad(loss(straight))(X))
    agree(pt.plan(jax.grad(loss(compiled)), MESH, X).compile()(X), jax.grad(loss(straight))(X))
    forward = lambda f: lambda x: jax.jvp(f, (x,), (x + 1,))  # noqa: E731
    smoothed = pt.plan(smooth, MESH, X).tile("x", 0, "data").compile()
    agree(pt.plan(forward(smoothed), MESH, X).compile()(X), forward(smooth)(X))


def test_a_function_with_only_forward_mode_keeps_it() -> None:
    def windows(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, 1.0, lax.mul, (3, 1), (1, 1), "SAME")

    def looped(x: jax.Array) -> jax.Array:
        return lax.while_loop(lambda c: c[0].sum() < 99, lambda c: (c[0] * c[0] + 1, c[1] + 1), (x, 0))[0]

    for function in (windows, looped):
        ours = partitioned(lambda x, function=function: function(x))
        agree(jax.jvp(ours, (X,), (X + 1,)), jax.jvp(function, (X,), (X + 1,)))
        with pytest.raises(ValueError) as theirs:
            jax.grad(loss(function))(X)
        with pytest.raises(ValueError, match=str(theirs.value)[:20]):
            jax.grad(loss(ours))(X)


def test_a_custom_vjp_has_no_forward_mode_as_in_jax() -> None:
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(partitioned(lambda x: straight(x)), (X,), (X,))


def mlp(params: dict[str, jax.Array], x: jax.Array, key: jax.Array) -> jax.Array:
    h = pt.tag(jax.nn.relu(x @ params["w1"]), "h")
    return ((h * jax.random.bernoulli(key, 0.5, h.shape)) @ params["w2"]).sum() / x.size


PARAMS = {"w1": jnp.linspace(-1, 1, 32).reshape(4, 8), "w2": jnp.linspace(1, 2, 32).reshape(8, 4)}
GIVEN = PARAMS, X, jax.random.key(7)


@pytest.mark.parametrize(
    ("tactics", "wanted"),
    [
        ([pt.Tile({"x": 0}, "data")], {"all_reduce": 3}),
        # The sum of the second product is part of that over the batch.
        ([pt.Tile({"x": 0}, "data"), pt.Tile({"params/w1": 1}, "model")], {"all_reduce": 3}),
        ([pt.Tile({"x": 0}, "data"), lambda plan: plan.tile("h", 1, "model")], {"all_reduce": 3}),
        (
            [pt.Tile({"x": 0}, "data"), pt.ZeRO(3, "data", params="params", optimizer="params")],
            {"all_reduce": 1, "all_gather": 3, "reduce_scatter": 2},
        ),
    ],
    ids=["data", "megatron", "a tag", "zero"],
)
def test_the_derivative_follows_the_tactics(tactics: Any, wanted: dict[str, int]) -> None:
    compiled = pt.plan(mlp, MESH, *GIVEN).apply(*tactics).compile()
    gradient = jax.jit(jax.grad(compiled))
    agree(gradient(*GIVEN), jax.grad(mlp)(*GIVEN))
    found = counts(collectives(gradient, *GIVEN))
    assert {kind: times for kind, times in found.items() if times} == wanted
    for name, made in gradient(*GIVEN).items():
        assert made.sharding.is_equivalent_to(compiled.in_shardings[list(PARAMS).index(name)], made.ndim)


def test_a_batch_dim_is_replicated_and_the_others_stay() -> None:
    batched = jax.jit(jax.vmap(pt.plan(jnp.tanh, MESH, X).tile("x", 0, "data").compile(), 1, 0))
    made = batched(jnp.stack([X, X], 1))
    assert made.sharding.spec == P(None, "data") and not collectives(batched, jnp.stack([X, X], 1))


def test_an_effect_runs_once_in_a_derivative(capfd: pytest.CaptureFixture[str]) -> None:
    def told(x: jax.Array) -> jax.Array:
        jax.debug.print("met {}", x[0, 0])
        return jnp.tanh(x)

    jax.grad(loss(partitioned(told)))(X)
    jax.effects_barrier()
    assert capfd.readouterr().out.count("met") == 1


def test_closed_over_arrays_are_neither_lost_nor_differentiated() -> None:
    scale = jnp.arange(4.0)

    def scaled(x: jax.Array) -> jax.Array:
        return lax.scan(lambda c, row: (c + row * scale, c), scale, x)[1]

    compiled = pt.plan(scaled, MESH, X).tile("x", 0, "data").compile()
    agree(jax.grad(loss(compiled))(X), jax.grad(loss(scaled))(X))
    agree(jax.vmap(compiled)(X[None]), scaled(X)[None])


def test_a_residual_is_kept_once_and_nothing_else_is() -> None:
    compiled = pt.plan(jax.nn.relu, MESH, X).tile("x", 0, "data").compile()
    _, pull = jax.vjp(compiled, X)
    assert [each.shape for each in jax.tree.leaves(pull)] == [X.shape]


def test_effects_integers_batches_and_donation_work() -> None:
    def step(params: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        jax.debug.callback(lambda _: None, x[0, 0])
        return params + tripled(x), jnp.argmax(x)

    plan = pt.plan(step, MESH, X, X).tile("x", 0, "data")
    compiled = plan.compile()
    many = jnp.stack([X, X * 2])
    for ours, theirs in (
        (jax.vmap(compiled)(many, many), jax.vmap(step)(many, many)),
        (jax.jit(compiled)(X, X), step(X, X)),
        (pt.plan(compiled, MESH, X, X).compile()(X, X), step(X, X)),
        (jax.grad(lambda x: (x * compiled(X, X)[0]).sum())(X), step(X, X)[0]),
    ):
        jax.tree.map(np.testing.assert_allclose, ours, theirs)
    donor = pt.jit(
        lambda params, x: tripled(params) + x, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")], donate_argnames="params"
    )
    given = jax.device_put(X + 0, cast(Any, plan.compile().in_shardings[0]))
    donor(given, X)
    assert given.is_deleted()
    exported = export.export(jax.jit(pt.jit(tripled, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])))(X)
    assert exported.nr_devices == 8


def test_a_user_defined_op_keeps_its_rule() -> None:
    kept = pt.define("kept_rule(x)   out[i, j] = @(x[i, j])")(straight)
    jitted = pt.jit(loss(kept), mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    np.testing.assert_allclose(jax.grad(jitted)(X), jax.grad(loss(straight))(X), rtol=1e-5)
