"""The controller: steps that nobody awaits run, from several threads too, and an error names the program that failed."""

from collections.abc import Callable, Iterator
from functools import partial
from threading import Thread
from typing import Any, cast

import numpy as np
import pytest

import partita as pt
from partita.compiler.jax_private import jax, jnp
from partita.compiler.run.controller import CONTROLLER, MOST_ON_CPU

MESH = pt.Mesh(data=8)
X, W = np.ones((64, 16), np.float32), np.full((16, 16), 0.01, np.float32)
STEPS = 3000
"""XLA ends the process when more than 32 are in flight: without the controller, after some hundred of these."""


def step(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w) + jnp.mean(x)


def scaled(by: int, x: Any, w: Any) -> Any:
    return step(x, w) * by


def more(x: Any) -> Any:
    return x + 1


def total(x: Any) -> Any:
    return jnp.sum(x)


def total_of_both(x: Any, w: Any) -> Any:
    return jnp.sum(x) + jnp.sum(w)


def plan_of(function: Callable[..., Any]) -> pt.Plan:
    return pt.plan(function, MESH, X, W).apply(pt.Tile({"x": 0}, "data"))


@pytest.fixture(autouse=True)
def _default() -> Iterator[None]:
    yield
    pt.set_in_flight(None)


def most_in_flight(call: Callable[[], object], times: int) -> int:
    """The most programs that were in flight after one of these calls."""
    found = 0
    for _ in range(times):
        call()
        found = max(found, len(CONTROLLER.flying))
    return found


def test_steps_that_nobody_awaits_run() -> None:
    run = plan_of(step).compile()
    assert most_in_flight(lambda: run(X, W), STEPS) == MOST_ON_CPU
    np.testing.assert_allclose(run(X, W), step(X, W), rtol=1e-6)


def test_donated_steps_that_nobody_awaits_run() -> None:
    function = plan_of(step)
    run, kept = function.compile(donate="x"), function.compile()
    x, w = jax.device_put((X, W), tuple(run.in_shardings))
    expected = x
    for _ in range(STEPS):
        expected = kept(expected, w)
    for _ in range(STEPS):
        x = run(x, w)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("is_chain", [True, False])
def test_results_that_others_overwrite_are_counted_too(is_chain: bool) -> None:
    run = plan_of(step).compile()
    theirs = jax.jit(more, donate_argnums=0)
    first, w = jax.device_put((X, W), tuple(run.in_shardings))
    x = y = first
    for _ in range(STEPS):
        y = theirs(run(x, w))
        x = y if is_chain else first
    np.testing.assert_allclose(theirs(run(first, w)), step(X, W) + 1, rtol=1e-6)
    assert run.issued.tokened.copies and len(CONTROLLER.flying) <= MOST_ON_CPU // 4
    # Of another mesh around, the copies know nothing.
    plan = plan_of(step).lower()
    with jax.set_mesh(jax.sharding.Mesh(np.array(jax.devices()[::-1]), ("z",), axis_types=(jax.sharding.AxisType.Auto,))):
        for _ in range(3):
            plan.run(X, W).delete()
    assert y.shape == X.shape


def test_an_older_result_that_others_overwrite_is_found_when_it_is_awaited() -> None:
    run = plan_of(step).compile()
    theirs = jax.jit(more, donate_argnums=0)
    made = [run(X, W) for _ in range(MOST_ON_CPU)]
    for each in made[:-1]:
        theirs(each)
    assert not run.issued.tokened.copies
    CONTROLLER.wait()
    assert run.issued.tokened.copies and not CONTROLLER.flying


def test_only_a_small_result_is_kept_as_a_token() -> None:
    wide = np.ones((64, 4096), np.float32)
    small, large = (pt.plan(fn, MESH, wide).apply(pt.Tile({"x": 0}, "data")).compile() for fn in (total, more))
    CONTROLLER.wait()
    results = small(wide), large(wide)
    assert [token.shape for _, token in CONTROLLER.flying] == [(), ()]
    (_, own), (_, beside) = CONTROLLER.flying
    assert own is results[0] and beside is not results[1] and beside.dtype == bool


def test_a_result_that_is_no_array_of_jax_is_no_token() -> None:
    def f(n: Any, x: Any) -> Any:
        return (n * x).sum()

    n, x = np.arange(8), np.ones(8, np.float32)
    slopes: Any = pt.jit(jax.grad(f, argnums=(0, 1), allow_int=True), mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    keys: Any = pt.jit(jax.random.split, mesh=MESH, tactics=[pt.Replicate("key", "data")])
    for _ in range(2 * MOST_ON_CPU):
        np.testing.assert_array_equal(slopes(n, x)[1], n)
        assert keys(jax.random.key(0)).shape == (2,)
    np.testing.assert_allclose(plan_of(step).compile()(X, W), step(X, W), rtol=1e-6)


@jax.tree_util.register_pytree_node_class
class OnHost:
    """A tree of which JAX makes another tree than that of the results."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def tree_flatten(self) -> tuple[Any, None]:
        return self.parts, None

    @classmethod
    def tree_unflatten(cls, _: None, parts: Any) -> Any:
        is_made = all(isinstance(part, jax.Array) and not isinstance(part, jax.core.Tracer) for part in parts)
        return cls(np.asarray(parts[0])) if is_made else cls(*parts)


def test_results_may_be_rebuilt_as_other_trees() -> None:
    def both(x: Any, w: Any) -> Any:
        return OnHost(x + 1, jnp.sum(w))

    run = plan_of(both).compile()
    for _ in range(2 * MOST_ON_CPU):
        found: Any = run(X, W).parts[0]
        assert isinstance(found, np.ndarray) and np.array_equal(cast(Any, found), X + 1)


def test_a_donating_program_stands_only_for_what_it_overwrites() -> None:
    run = plan_of(step).compile()
    keeps, gives = plan_of(total_of_both).compile(), plan_of(step).compile(donate="x")
    x, w = jax.device_put((X, W), tuple(gives.in_shardings))
    result = run(X, W)
    keeps(X, W)
    result.delete()
    gives(x, w)
    assert not run.issued.tokened.copies
    CONTROLLER.wait()
    assert run.issued.tokened.copies and not gives.issued.tokened.copies


def test_functions_and_graphs_share_one_limit() -> None:
    plan = plan_of(step)
    run, graph = plan.compile(), plan.lower("collective")
    jitted = pt.jit(step, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    assert most_in_flight(lambda: (run(X, W), jitted(X, W), graph.run(X, W)), 200) == MOST_ON_CPU
    np.testing.assert_allclose(graph.run(X, W), jitted(X, W), rtol=1e-6)


def test_two_threads_with_two_programs_each_run() -> None:
    results = dict[tuple[int, int], Any]()

    def work(number: int) -> None:
        runs = [plan_of(partial(scaled, number + at)).compile() for at in range(2)]
        for _ in range(STEPS // 4):
            results.update({(number, at): run(X, W) for at, run in enumerate(runs)})

    threads = [Thread(target=work, args=(number,)) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for (number, at), found in results.items():
        np.testing.assert_allclose(found, step(X, W) * (number + at), rtol=1e-6)
    assert len(results) == 4


def test_fewer_may_be_in_flight() -> None:
    run = plan_of(step).compile()
    pt.set_in_flight(2)
    assert most_in_flight(lambda: run(X, W), 50) == 2
    CONTROLLER.wait()
    assert not CONTROLLER.flying


def test_what_is_called_in_a_transformation_has_no_token() -> None:
    run = plan_of(step).compile()
    CONTROLLER.wait()

    def loss(w: Any) -> Any:
        return run(X, w).sum()

    jaxpr = jax.make_jaxpr(run)(X, W)
    jax.block_until_ready((jax.jit(run)(X, W), jax.grad(loss)(W), jax.vmap(run)(X[None], W[None])))
    assert not CONTROLLER.flying and len(jaxpr.out_avals) == len(run.jaxpr(X, W).out_avals) == 1


def test_one_device_needs_no_token() -> None:
    run = pt.plan(step, pt.Mesh(data=1), X, W).compile()
    CONTROLLER.wait()
    run(X, W)
    assert not CONTROLLER.flying


class Failed:
    """The token of a program that has failed."""

    def is_deleted(self) -> bool:
        return False

    def block_until_ready(self) -> None:
        raise jax.errors.JaxRuntimeError("INTERNAL: a device is lost\n  at 0x1")


def test_a_program_that_failed_is_named_by_a_later_call() -> None:
    run, failed = plan_of(step).compile(), Failed()
    CONTROLLER.wait()
    CONTROLLER.flying.append((run.issued.tokened, cast(Any, failed)))
    pt.set_in_flight(1)
    with pytest.raises(pt.Error, match="a call of `step` has failed on its devices") as error:
        run(X, W)
    assert error.value.notes == ("JAX says: INTERNAL: a device is lost",)
    np.testing.assert_allclose(run(X, W), step(X, W), rtol=1e-6)


@pytest.mark.parametrize(
    ("most", "says"),
    [
        (0, "`most` takes a number of programs, 1 or more, or None, got 0"),
        ("many", "`most` takes an integer, got .many."),
        (17, "XLA:CPU cannot run 17 programs over several devices at once"),
    ],
)
def test_a_wrong_limit_is_refused(most: Any, says: str) -> None:
    with pytest.raises(pt.Error, match=says):
        pt.set_in_flight(most)
    assert CONTROLLER.most is None
