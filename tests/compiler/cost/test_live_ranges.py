"""When arrays are stored, and what is computed again: temporaries of small programs, in arrays."""

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

import partita as pt
from partita.dialects.definitions.registry import definitions
from partita.rewrites.decide.live_ranges import traits

X = np.ones((32, 32), np.float32)
WIDE = np.ones((32, 64), np.float32)
MESH = pt.Mesh(data=8)

Function = Callable[..., Any]


def with_branches(x: Any) -> Any:
    return lax.cond(x[0, 0] > 0, lambda x: (x @ x) @ x, lambda x: x @ x, x) @ x


def in_a_loop(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda _, y: jnp.tanh(y @ x) @ x, x) @ x


def stacked(x: Any) -> Any:
    """Six rows of the stack, the carry, and the next carry."""
    return lax.scan(lambda y, _: (y @ x, y), x, None, length=6)[1].sum()


def of_two(x: Any) -> Any:
    y = x @ x + x
    return y @ x, y @ x.T


def updated(x: Any) -> Any:
    """The carry, whose rows are replaced where they lie."""
    return lax.fori_loop(0, 4, lambda i, y: lax.dynamic_update_index_in_dim(y, y[i] * 2, i, 0), x) @ x


PROGRAMS: dict[str, tuple[Function, float]] = {
    "a chain of elementwise ops stores nothing": (lambda x: jnp.tanh(x * 2 + 1), 0),
    "a product is stored for the next": (lambda x: (x @ x) @ x, 1),
    "a map of one array is computed again in each op that reads it": (lambda x: (y := jnp.exp(x)[::-1], y @ y.T)[1].sum(), 1),
    "a map of several arrays is stored for several": (of_two, 1),
    "not for one": (lambda x: (jnp.tanh(x @ x) + x) @ x, 1),
    "a fold computes the map that it reads": (lambda x: (x + 1).sum(), 0),
    "what a map reads is stored until its own result is read": (lambda x: (jnp.tanh(x @ x) @ x) @ (x @ x), 2),
    "branches store as much as the larger one": (with_branches, 2),
    "a loop stores its carry and what a trip needs": (in_a_loop, 2),
    "what trips stack is stored": (stacked, 8),
    "an update is made where its operand lies": (updated, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_temporaries_in_arrays(name: str) -> None:
    function, arrays = PROGRAMS[name]
    plan = pt.plan(function, MESH, X)
    assert plan.memory().temporaries / X.nbytes == pytest.approx(arrays, abs=0.05)


def test_what_is_never_stored_depends_on_the_definition_of_an_op() -> None:
    maps = "add tanh select_n reshape transpose concatenate pad rev dynamic_slice tag".split()
    others = "dot_general reduce_sum argmax cumsum sort gather cholesky fft scatter_add dynamic_update_slice".split()
    assert [name for name in (*maps, *others) if traits(definitions[name]).maps] == maps
    updates = ["scatter_add", "dynamic_update_slice"]
    assert [name for name in (*maps, *others) if traits(definitions[name]).in_place] == maps + updates


def test_a_parameter_that_is_gathered_is_stored_whole_while_it_is_used() -> None:
    def loss(w: Any, x: Any) -> Any:
        return ((x @ w) ** 2).sum()

    plan = pt.plan(loss, MESH, WIDE, X).apply(pt.DataParallel("data", inputs="x"))
    stored = plan.apply(pt.ZeRO(3, "data", params="w"))
    memory = stored.memory()
    assert (plan.memory().arguments - memory.arguments) == WIDE.nbytes * 7 // 8
    assert [(each.bytes, each.form) for each in memory.arrays if each.value == "w" and each.kind == "temporary"] == [
        (WIDE.nbytes, "all_gather")
    ]


def test_layers_gathered_in_each_trip_are_not_stored_together() -> None:
    """Before the loop, all devices have the whole weight; in each trip, it is stored only in the trip."""

    def loss(w: Any, x: Any) -> Any:
        return lax.scan(lambda y, _: (jnp.tanh(y @ w), None), x, None, length=4)[0].sum()

    plan = pt.plan(jax.grad(loss), MESH, X, np.ones((8, 32), np.float32))
    once = plan.apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="w"))
    each = plan.apply(pt.EachTrip("w"), pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="w"))
    assert each.bytes_per_device() > once.bytes_per_device()
    assert each.diff(once).memory == (once.memory().bytes, each.memory().bytes)
