"""The ways out of conflicts: what each costs is what the plan costs with it alone, however many are tried in one plan."""

# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, cast

import jax
import jax.numpy as jnp
import pytest
from generated import examples
from hypothesis import given, strategies as st
from small_programs import KINDS, Kind, drawn

import partita as pt
from partita.compiler.advice.open_conflicts import open_keys
from partita.compiler.advice.ways_out import tried_ways_out
from partita.compiler.cost.costs import price
from partita.compiler.cost.memory import peak_bytes

Piece = Callable[[Any, Any], Any]


def crossed(a: Any, b: Any) -> Any:
    return a + a.T


def product(a: Any, b: Any) -> Any:
    return jnp.tanh(a @ a.T) @ jnp.sin(a + a.T)


def rolled(a: Any, b: Any) -> Any:
    """What is returned has windows, and the halos of several results may be exchanged at one time."""
    return jnp.roll(a.T + a, 1, 0)


def shifted(a: Any, b: Any) -> Any:
    return (a.T + a)[1:] * 2


def looked_up(a: Any, b: Any) -> Any:
    """An op that may run where the table lies, if that receives less."""
    return jnp.take(a + a.T, jnp.arange(4), axis=0) @ a.T


def of_both(a: Any, b: Any) -> Any:
    return a @ b + b.T


def through_another(a: Any, b: Any) -> Any:
    return jnp.concatenate([a.T, b]) @ (a + a.T)


def summed(a: Any, b: Any) -> Any:
    return (a + a.T).sum(0, keepdims=True) * b


def linked(a: Any, b: Any) -> Any:
    return jnp.tanh(a @ a.T + b.T) @ b + a


PIECES: Sequence[Piece] = crossed, product, rolled, shifted, looked_up, of_both, through_another, summed, linked


@st.composite
def plans(draw: st.DrawFn) -> pt.Plan:
    """Pieces of a program, or the gradient of their sum. Each is of an array and another one, or of what earlier ones made."""
    count = draw(st.integers(2, 4))
    others = st.integers(0, 1)
    pieces = [(draw(st.sampled_from(PIECES)), at, (at + draw(others)) % count, draw(st.booleans())) for at in range(count)]
    is_trained = draw(st.booleans())
    # To move small arrays costs little, and to move large ones more than it takes to start a collective.
    size = draw(st.sampled_from([16, 256]))
    mesh = pt.Mesh(draw(st.sampled_from([{"data": 4}, {"data": 4, "model": 2}])))

    def found(given: Sequence[Any]) -> list[Any]:
        arrays, results = [*given], list[Any]()
        for piece, one, other, goes_on in pieces:
            results.append(piece(arrays[one], arrays[other]))
            if goes_on and results[-1].shape == (size, size):
                arrays[(one + 1) % count] = results[-1]
        return results

    def loss(arrays: Sequence[Any]) -> Any:
        return sum(jnp.mean(each**2) for each in found(arrays))

    function = cast("Callable[[Sequence[Any]], Any]", jax.grad(loss)) if is_trained else found
    plan = pt.plan(function, mesh, [jax.ShapeDtypeStruct((size, size), "float32")] * count)
    dims = draw(st.lists(st.tuples(*[st.integers(0, 1)] * len(mesh)), min_size=count, max_size=count))
    for at, of_array in enumerate(dims):
        for axis, dim in zip(mesh, of_array, strict=True):
            with suppress(pt.Error):  # a claim of an earlier one came there first
                plan = plan.tile(f"arrays/{at}", dim, axis)
    return plan


@given(plans(), st.randoms(use_true_random=False))
@examples(12)
def test_each_way_out_costs_what_the_plan_costs_with_it_alone(plan: pt.Plan, random: Random) -> None:
    left = [*open_keys(plan)]
    random.shuffle(left)
    while left:
        count = random.randint(1, len(left))
        for key, ways in tried_ways_out(plan, left[:count]).items():
            assert ways.found == tried_ways_out(plan, [key])[key].found
            for way in ways.found:
                made = plan.apply(way)
                assert (way.bytes, way.flops) == (made.bytes_per_device(), made.flops_per_device().known)
                assert way.price == price(made)
                assert way.memory == peak_bytes(made)
        del left[:count]


@given(plans())
@examples(8)
def test_resolve_never_costs_more_than_to_leave_conflicts_open(plan: pt.Plan) -> None:
    assert price(plan.apply(pt.Resolve())) <= price(plan)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_resolve_never_costs_more_where_bytes_or_flops_decide(kind: Kind) -> None:
    conflicting = [plan for seed in range(60) if (plan := drawn(kind, seed).plan).conflicts]
    pairs = [(price(plan.apply(pt.Resolve())), price(plan)) for plan in conflicting]
    assert all(then <= before for then, before in pairs)
    assert any(then < before for then, before in pairs)
