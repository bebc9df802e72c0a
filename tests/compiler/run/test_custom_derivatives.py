"""A function with a derivative rule of its own: a compiled plan has its ops and not its rule, and says so."""

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


RULES: dict[str, tuple[Function, str]] = {
    "relu": (jax.nn.relu, "`relu`, not its rule"),
    "custom_vjp": (straight, "`straight`, not its rule"),
    "a clipped gradient": (lambda x: clipped(x) * 5, "`clipped`, not its rule"),
    "custom_jvp": (tripled, "`tripled`, not its rule"),
    "logaddexp": (lambda x: jnp.logaddexp(x, x), "`logaddexp`, not its rule"),
    "two": (lambda x: tripled(straight(x)), "`straight`, `tripled`, not their rules"),
    "in jit": (jax.jit(lambda x: jax.jit(tripled)(x)), "`tripled`, not its rule"),
    "in checkpoint": (jax.checkpoint(tripled), "`tripled`, not its rule"),
    "in scan": (scanned, "`straight`, not its rule"),
    "in while": (lambda x: lax.fori_loop(0, 2, lambda _, c: tripled(c), x), "`tripled`, not its rule"),
    "in cond": (lambda x: lax.cond(x.sum() < 9, tripled, lambda x: x, x), "`tripled`, not its rule"),
    "in shard_map": (mapped, "`tripled`, not its rule"),
    "in vmap": (jax.vmap(straight), "`straight`, not its rule"),
    "solve": (solved, "`custom_linear_solve`, not its rule"),
    "gamma": (lambda x: jax.random.gamma(jax.random.key(0), jnp.abs(x) + 1), "`random_gamma`, not its rule"),
}


def loss(function: Function) -> Function:
    return lambda x: jnp.sum(function(x) ** 2)


@pytest.mark.parametrize("name", RULES)
def test_a_compiled_function_whose_rule_is_left_out_has_no_derivative(name: str) -> None:
    function, title = RULES[name]
    wanted = loss(function)
    jitted = pt.jit(wanted, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    np.testing.assert_allclose(jitted(X), wanted(X), rtol=1e-5)
    with pytest.raises(pt.Error, match=title) as caught:
        jax.grad(jitted)(X)
    assert "test_custom_derivatives.py" in str(caught.value) and "pt.jit(jax.grad(" in str(caught.value)
    with pytest.raises(pt.Error, match=title):
        jax.jvp(jitted, (X,), (X,))


@pytest.mark.parametrize("name", [name for name in RULES if name not in ("gamma", "solve")])
def test_the_partitioned_derivative_is_by_the_rule(name: str) -> None:
    gradient = jax.grad(loss(RULES[name][0]))
    ours = pt.jit(gradient, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    np.testing.assert_allclose(ours(X), gradient(X), rtol=1e-5)


def test_every_way_to_differentiate_is_refused() -> None:
    compiled = pt.plan(tripled, MESH, X).tile("x", 0, "data").compile()
    ways: dict[str, Callable[[], Any]] = {
        "linearize": lambda: jax.linearize(compiled, X),
        "vjp": lambda: jax.vjp(compiled, X),
        "of jit": lambda: jax.grad(jax.jit(lambda x: compiled(x).sum()))(X),
        "of vmap": lambda: jax.jacrev(jax.vmap(compiled))(X[None]),
        "under jit": lambda: jax.jit(jax.grad(lambda x: compiled(x).sum()))(X),
        "of scan": lambda: jax.grad(lambda x: lax.scan(lambda c, _: (compiled(c), None), x, length=2)[0].sum())(X),
        "of a plan of it": lambda: jax.grad(pt.plan(lambda x: compiled(x).sum(), MESH, X).compile())(X),
    }
    for way in ways.values():
        with pytest.raises(pt.Error, match=r"`tripled`, not its rule|has no derivative"):
            way()


def test_all_else_of_it_works() -> None:
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


def test_a_program_that_is_a_derivative_or_gives_no_numbers_has_no_guard() -> None:
    for function in (jax.grad(loss(clipped)), jnp.tanh, lambda x: jnp.argmax(jax.nn.relu(x))):
        compiled = pt.plan(cast(Any, function), MESH, X).compile()
        assert "custom_jvp" not in str(compiled.jaxpr(X))
    assert "custom_jvp" in str(pt.plan(tripled, MESH, X).compile().jaxpr(X))


def test_an_op_of_ones_own_keeps_its_rule() -> None:
    kept = pt.define("kept_rule(x)   out[i, j] = @(x[i, j])")(straight)
    jitted = pt.jit(loss(kept), mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    np.testing.assert_allclose(jax.grad(jitted)(X), jax.grad(loss(straight))(X), rtol=1e-5)


def test_what_no_rule_is_about_is_differentiated() -> None:
    def smooth(x: jax.Array) -> jax.Array:
        return jnp.sum(jax.nn.softmax(x) * lax.stop_gradient(x) + jax.nn.gelu(x))

    jitted = pt.jit(smooth, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    np.testing.assert_allclose(jax.grad(jitted)(X), jax.grad(smooth)(X), rtol=1e-5, atol=1e-6)
