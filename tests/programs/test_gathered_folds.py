"""Folds by monoids without a collective: devices gather each other's parts, as small as the result, and fold them."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from lowered import interpreted, lowers_from_its_text

import partita as pt

MESH = pt.Mesh(x=4, y=2)
NUMBERS = jnp.arange(1, 129, dtype=jnp.int32).reshape(16, 8)
FOLDS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "product": lambda a: lax.reduce_prod(a % 5 - 2, (0,)),
    "product of floats": lambda a: jnp.prod(1 + a / 512, axis=0),
    "exclusive-or": lambda a: lax.reduce_xor(a, (0,)),
    "parity": lambda a: lax.reduce_xor(a > 60, (0,)),
    "bits of all": lambda a: lax.reduce_and(a | 64, (0,)),
    "bits of any": lambda a: lax.reduce_or(a, (0,)),
    "all of it": lambda a: lax.reduce_xor(a, (0, 1)),
}


@pytest.mark.parametrize("what", FOLDS)
@pytest.mark.parametrize("axes", ["x", "xy"])
def test_a_fold_without_a_collective_is_gathered(what: str, axes: str):
    plan = pt.plan(FOLDS[what], MESH, NUMBERS)
    for axis in axes:
        plan = plan.tile("a", 0, axis)
    counts = plan.counts()
    assert counts["all_gather"] == 1 and sum(counts.values()) == 1
    wanted = FOLDS[what](NUMBERS)
    devices = {"x": 4, "xy": 8}[axes]
    assert plan.bytes_per_device() == wanted.nbytes * (devices - 1)
    for found in (plan.compile()(NUMBERS), plan.lower("collective").run(NUMBERS), interpreted(plan, (NUMBERS,))[0]):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    lowers_from_its_text(plan)


def test_a_plan_says_why_parts_are_gathered():
    plan = pt.plan(FOLDS["exclusive-or"], MESH, NUMBERS).tile("a", 0, "x")
    (collective,) = plan.collectives()
    assert "because of 1: tile('a', 0, 'x') (the parts of a fold that has no collective)" in str(collective)


def test_the_result_of_a_gathered_fold_is_tiled():
    def function(a: Any) -> Any:
        return lax.reduce_xor(a, (0,)) + 1

    plan = pt.plan(function, MESH, NUMBERS).tile("a", 0, "x").tile("a", 1, "y")
    assert plan.layout("result") == {"result": "i32[y*4]"}
    assert plan.bytes_per_device() == 4 * 4 * 3
    np.testing.assert_array_equal(plan.compile()(NUMBERS), function(NUMBERS))


def test_a_gathered_fold_in_a_loop_is_done_in_each_trip():
    def function(a: Any) -> Any:
        return lax.scan(lambda c, _: (c + lax.reduce_xor(a + c[None], (0,)), None), jnp.zeros(8, jnp.int32), length=3)[0]

    plan = pt.plan(function, MESH, NUMBERS).tile("a", 0, "x")
    assert plan.counts()["all_gather"] == 3
    np.testing.assert_array_equal(plan.compile()(NUMBERS), function(NUMBERS))


def test_the_gradient_of_a_product_over_devices():
    def loss(a: Any) -> Any:
        return jnp.prod(1 + a / 512, axis=0).sum()

    a = NUMBERS.astype(jnp.float32)
    plan = pt.plan(jax.grad(loss), MESH, a).tile("a", 0, "x")
    np.testing.assert_allclose(plan.compile()(a), jax.grad(loss)(a), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(pt.plan(loss, MESH, a).tile("a", 0, "x").compile())(a), jax.grad(loss)(a), rtol=1e-5)
