"""An op whose result could differ between devices runs once, and all devices share it; a region may contain only an effect."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback

import partita as pt

Array = Any
MESH = pt.Mesh(a=2, b=4)
X = jnp.arange(8.0)
SCALAR, FLAG = jax.ShapeDtypeStruct((), jnp.float32), jax.ShapeDtypeStruct((), jnp.bool_)


class Host:
    """A host that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def number(self, *_: Array) -> Array:
        self.calls += 1
        return np.float32(self.calls)

    def goes_on(self, *_: Array) -> Array:
        self.calls += 1
        return np.bool_(self.calls < 4)


def runs(function: Callable[..., Any], tiled: str | None = "result") -> list[Callable[..., Any]]:
    """The function as a plan runs it, whole and as a graph."""
    plan = pt.plan(function, MESH, X)
    plan = plan if tiled is None else plan.tile(tiled, 0, "a")
    return [plan.compile(), plan.lower("collective").run]


def pieces(array: Array) -> list[Array]:
    """The shard of each device, and the same part of the global array."""
    return [(np.asarray(shard.data), np.asarray(array)[shard.index]) for shard in array.addressable_shards]


@pytest.mark.parametrize("callback", [io_callback, jax.pure_callback])
def test_a_callback_with_a_result_runs_once_and_all_devices_have_its_answer(callback: Callable[..., Any]) -> None:
    host = Host()
    for number, run in enumerate(runs(lambda x: x + callback(host.number, SCALAR, x.sum()))):
        result = run(X)
        np.testing.assert_array_equal(result, X + number + 1)
        for mine, whole in pieces(result):
            np.testing.assert_array_equal(mine, whole)


def test_a_callback_in_a_loop_runs_once_a_trip() -> None:
    host = Host()
    run, _ = runs(lambda x: lax.scan(lambda c, v: (c, v * 0 + io_callback(host.number, SCALAR)), 0.0, x)[1])
    np.testing.assert_array_equal(run(X), np.arange(1.0, 9.0))
    assert host.calls == 8


@pytest.mark.parametrize("callback", [io_callback, jax.pure_callback])
def test_a_while_that_a_callback_ends_ends_on_all_devices_together(callback: Callable[..., Any]) -> None:
    host = Host()
    run, _ = runs(lambda x: lax.while_loop(lambda c: callback(host.goes_on, FLAG, c.sum()), lambda c: c + x.sum(), x))
    np.testing.assert_array_equal(run(X), X + 3 * 28)


def test_a_while_that_a_draw_ends_ends_on_all_devices_together() -> None:
    draws = lambda x: lax.while_loop(lambda c: lax.rng_uniform(0.0, 1.0, ()) < 0.7, lambda c: c + x.sum(), x)  # noqa: E731
    run, _ = runs(draws)
    trips = (np.asarray(run(X)) - np.asarray(X)) / 28
    assert np.ptp(trips) == 0


def test_a_draw_is_one_draw_on_all_devices() -> None:
    run, _ = runs(lambda x: x * 0 + lax.rng_uniform(0.0, 1.0, (8,)), None)
    for mine, whole in pieces(run(X)):
        np.testing.assert_array_equal(mine, whole)


def test_sharing_keeps_infinities_and_nan_and_is_counted() -> None:
    odd = np.array([2.0, 0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0], np.float32)
    plan = pt.plan(lambda x: io_callback(lambda: odd, jax.ShapeDtypeStruct((8,), jnp.float32)), MESH, X)
    np.testing.assert_array_equal(plan.compile()(X), odd)
    assert plan.counts()["all_reduce"] == 1
    assert "runs unpartitioned, on one device: the others receive its result" in str(plan.whole[0])


def said(line: str, *values: Array) -> None:
    jax.debug.print(line, *values)


EFFECTS: dict[str, tuple[Callable[[Array], Any], int]] = {
    "a cond": (lambda x: lax.cond(x[0] < 1, lambda: said("hi {}", x[1]), lambda: None), 1),
    "a cond in a cond": (
        lambda x: lax.cond(x[0] < 1, lambda: lax.cond(x[1] < 5, lambda: said("hi {}", x[1]), lambda: None), lambda: None),
        1,
    ),
    "a switch": (lambda x: lax.switch(x[1].astype(int), [lambda: None, lambda: said("hi {}", x[0])]), 1),
    "a scan": (lambda x: lax.scan(lambda c, v: (c, said("hi {}", v)), 0.0, x)[1], 8),
    "lax.map": (lambda x: lax.map(lambda v: said("hi {}", v), x), 8),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_a_region_of_nothing_but_an_effect_runs_it_once(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    function, times = EFFECTS[name]
    for run in runs(lambda x: (function(x), x * 2)[1]):
        np.testing.assert_array_equal(run(X), X * 2)
        jax.effects_barrier()
        assert capfd.readouterr().out.count("hi") == times
