"""A placement propagates through a loop: carries reach a fixed point, and collectives of the body count once per trip."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jaxpr_collectives import collectives, counts

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=4, model=2)
TRIPS = 5


def recurrent(x: jax.Array, ws: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Its carry is needed replicated along dim 0 in every trip, and once more after the loop."""

    def body(carry: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        drift = jnp.fft.fft(carry, axis=0, norm="ortho").real * 0.1
        return jnp.tanh(carry @ w) + drift, carry.sum(0)

    last, sums = jax.lax.scan(body, x, ws)
    return jnp.fft.fft(last, axis=0, norm="ortho").real, sums * 2


def gradients(x: jax.Array, ws: jax.Array) -> Any:
    def loss(x: jax.Array, ws: jax.Array) -> jax.Array:
        return sum((jnp.sum(part**2) for part in recurrent(x, ws)), jnp.zeros(()))

    return jax.grad(loss, argnums=(0, 1))(x, ws)


def arguments() -> tuple[jax.Array, jax.Array]:
    keys = jax.random.split(jax.random.key(0))
    return jax.random.normal(keys[0], (8, 16)), jax.random.normal(keys[1], (TRIPS, 16, 16)) * 0.1


TACTICS: dict[str, list[tuple[str, int, str]]] = {
    "rows of the carry": [("x", 0, "data")],
    "columns of the carry": [("x", 1, "data")],
    "a matrix a trip": [("ws", 2, "model")],
    "all of them": [("x", 0, "data"), ("ws", 1, "data"), ("ws", 2, "model")],
}


def planned(function: Callable[..., Any], name: str) -> Plan:
    plan = pt.plan(function, MESH, *arguments())
    for place in TACTICS[name]:
        plan = plan.tile(*place)
    return plan


@pytest.mark.parametrize("function", [recurrent, gradients])
@pytest.mark.parametrize("name", TACTICS)
def test_a_partitioned_loop_is_the_loop_and_counts_its_trips(function: Callable[..., Any], name: str) -> None:
    plan = planned(function, name)
    assert counts(collectives(plan.compile(), *arguments())) == plan.counts()
    assert plan.check(*arguments()) <= 2e-4


def test_a_carry_that_is_needed_replicated_is_gathered_in_every_trip_and_once_after_the_loop() -> None:
    plan = planned(recurrent, "rows of the carry")
    assert plan.counts()["all_gather"] == TRIPS + 1
    assert {each.times for each in plan.collectives() if each.kind == "all_gather"} == {TRIPS, 1}
