"""Mutable references that a program makes become values; references from outside are refused."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportAttributeAccessIssue=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from unpartitioned import unpartitioned

import partita as pt

Array = Any
MESH = pt.Mesh(a=2)
X = jnp.arange(8.0)
OUTSIDE = jax.new_ref(jnp.zeros(8))


def added(x: Array) -> Array:
    r = jax.new_ref(jnp.zeros(8))
    jax.ref.addupdate(r, ..., x[0] + x)
    return r[...]


def in_a_cond(x: Array) -> Array:
    r = jax.new_ref(jnp.zeros(8))

    def write() -> None:
        r[1:3] = x[1:3]

    lax.cond(x[0] < 1, write, lambda: None)
    return r[...]


def in_a_scan(x: Array) -> Any:
    r = jax.new_ref(jnp.zeros(8))

    def trip(c: Array, v: Array) -> Any:
        jax.ref.addupdate(r, c, v)
        return c + 1, r[c]

    return lax.scan(trip, 0, x)[1], r[...]


def in_a_loop(x: Array) -> Array:
    r = jax.new_ref(jnp.zeros(8))

    def trip(i: Array, c: None) -> None:
        r[i] = x[i] * 2

    lax.fori_loop(0, x[4].astype(int), trip, None)
    return r[...]


def in_a_jit(x: Array) -> Any:
    r = jax.new_ref(jnp.zeros(8))

    @jax.jit
    def step(r: Any, v: Array) -> Array:
        r[...] = r[...] + v
        return v.sum()

    return step(r, x) + step(r, x), r[...]


def behind_a_barrier(x: Array) -> Array:
    r = jax.new_ref(x)
    r[...] = lax.optimization_barrier(x * 2)
    return r[...]


def made_in_a_loop(x: Array) -> Any:
    def trip(c: Array, v: Array) -> Any:
        r = jax.new_ref(c)
        r[...] = r[...] + v
        return r[...], r[...] * 2

    return lax.scan(trip, 0.0, x)


def differentiated(x: Array) -> Array:
    @jax.checkpoint
    def loss(x: Array) -> Array:
        r = jax.new_ref(x * 0)
        r[...] = jnp.sin(x)
        return (r[...] ** 2).sum()

    return jax.grad(loss)(x)


def of_keys(x: Array) -> Array:
    r = jax.new_ref(jax.random.key(0))
    r[...] = jax.random.split(r[...])[0]
    return x + jax.random.uniform(r[...])


def looked_up(x: Array) -> Any:
    r = jax.new_ref(jnp.zeros((4, 8)))
    r[x[:2].astype(int) + 1, 3] = x[4:6]
    return r[...], r[1:, x[2].astype(int)]


PROGRAMS = [
    added, in_a_cond, in_a_scan, in_a_loop, in_a_jit, behind_a_barrier, made_in_a_loop, differentiated, of_keys, looked_up
]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda each: each.__name__)
def test_a_reference_is_a_value_that_can_be_placed(function: Callable[..., Any]) -> None:
    plan = pt.plan(function, MESH, X).tile("x", 0, "a")
    expected = jax.jit(function)(X)
    for run in (plan.compile(), plan.lower("collective").run, unpartitioned(plan.source.traced)):
        for one, other in zip(jax.tree.leaves(run(X)), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    assert not plan.whole


def test_a_placed_result_of_a_reference_has_its_value_on_all_devices() -> None:
    plan = pt.plan(added, MESH, X).tile("result", 0, "a")
    np.testing.assert_array_equal(plan.compile()(X), X)


@jax.custom_jvp
def doubled(x: Array) -> Array:
    return jnp.sin(x)


doubled.defjvp(lambda primals, tangents: (doubled(primals[0]), tangents[0] * 2))


def ruled(x: Array) -> Array:
    r = jax.new_ref(x)
    r[...] = doubled(r[...])
    return r[...].sum()


def test_a_derivative_rule_beside_a_reference_holds() -> None:
    np.testing.assert_array_equal(jax.grad(pt.plan(ruled, MESH, X).compile())(X), 2 * np.ones_like(X))


@jax.custom_jvp
def inside(x: Array) -> Array:
    r = jax.new_ref(x)
    r[...] = jnp.sin(r[...])
    return r[...]


inside.defjvp(lambda primals, tangents: (inside(primals[0]), tangents[0] * 2))


def writes(x: Array) -> Array:
    OUTSIDE[...] = x
    return x


def writes_in_a_loop(x: Array) -> Array:
    return lax.scan(lambda c, v: (c, jax.ref.addupdate(OUTSIDE, ..., v + x)), 0.0, x)[0]


def takes(x: Array, r: Any) -> Array:
    r[...] = x
    return x


def test_a_reference_that_cannot_become_a_value_is_refused_with_a_reason() -> None:
    for function in (writes, writes_in_a_loop, lambda x: x + OUTSIDE[...]):
        with pytest.raises(pt.Error, match="mutable reference that was created outside it"):
            pt.plan(function, MESH, X)
    with pytest.raises(pt.Error, match="argument `r` of `takes` is a mutable reference, expected an array"):
        pt.plan(takes, MESH, X, OUTSIDE)
    with pytest.raises(pt.Error, match="in a way that JAX cannot replace by values"):
        pt.plan(inside, MESH, X)
