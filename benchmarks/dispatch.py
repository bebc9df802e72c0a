"""What it takes to issue programs: graphs of one node and of 128, beside the bare calls, and how two device sets overlap.

    python -m benchmarks.dispatch            # half a minute on two cores

As figure 5 of Pathways (arXiv 2203.12533): a chain of 128 nodes, each one kernel; the same fused into one node; one node. Bare
calls are those of the `jax.jit` functions underneath, with as many in flight. All results are awaited.
"""

from collections import deque
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

import partita as pt

from .report import Cell, Table, machine

NODES, ROUNDS, CALLS, IN_FLIGHT = 128, 25, 64, 16
DEVICES = 8
INPUTS, SECONDS = 8, 0.1


def small(x: Array) -> Array:
    return x * 0.5 + 1.0


def chain(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for _ in range(NODES):
            x = call(x)
        return x

    return run


def bounded(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The bare calls, of which the oldest is awaited before there are too many."""

    def run(x: Any) -> Any:
        flying = deque[Any]()
        for _ in range(NODES):
            if len(flying) == IN_FLIGHT:
                jax.block_until_ready(flying.popleft())
            x = call(x)
            flying.append(x)
        return x

    return run


def seconds(call: Callable[[Any], Any], x: Any, times: int = 1) -> float:
    """Of one call and the wait for its results, the mean."""
    start = perf_counter()
    for _ in range(times):
        jax.block_until_ready(call(x))
    return (perf_counter() - start) / times


def beside(name: str, ours: Callable[[Any], Any], bare: Callable[[Any], Any], x: Any, times: int) -> list[Cell]:
    """The median of both in turn, in microseconds, and their ratio."""
    np.testing.assert_allclose(ours(x), bare(x), rtol=1e-5)
    found = [(seconds(ours, x, times), seconds(bare, x, times)) for _ in range(ROUNDS)]
    one, other = (median(side) for side in zip(*found, strict=True))
    return [name, 1e6 * one, 1e6 * other, one / other]


def issued() -> Table:
    mesh, rows = pt.Mesh(d=DEVICES), [pt.Tile({"x": 0}, "d")]
    kernel, x = pt.kernel(small, devices=mesh, tactics=rows), jnp.ones((64, 8))
    plan, fused = (pt.plan(each, mesh, x).apply(*rows) for each in (small, chain(small)))
    x = jax.device_put(x, plan.compile().in_shardings[0])
    run, run_fused = plan.compile(), fused.compile()
    bare, bare_fused = (lambda x, of=each: of.jitted(of.consts, x) for each in (run, run_fused))
    found = [
        beside("one node, whole", plan.lower("whole").run, bare, x, CALLS),
        beside("the compiled plan", run, bare, x, CALLS),
        beside(f"{NODES} nodes", pt.program(chain(kernel)), bounded(bare), x, 1),
        beside(f"{NODES} nodes, fused", pt.program(pt.kernel(chain(small), devices=mesh, tactics=rows)), bare_fused, x, CALLS),
    ]
    notes = [f"Medians of {ROUNDS} rounds of {CALLS} calls, or a chain, on {DEVICES} host devices.", machine()]
    return Table("dispatch", "Issuing programs", ["", "partita, us", "bare, us", "ratio"], found, notes)


def stage(trips: int) -> Callable[[Array], Array]:
    """A stage that one core computes."""
    w = jnp.eye(96) / 2

    def run(x: Array) -> Array:
        return lax.fori_loop(0, trips, lambda _, x: jnp.sin(x @ w) + 0.1, x)

    return run


def trips_of_a_stage(x: Array) -> int:
    """How many trips take `SECONDS` on this machine."""
    trips = 500
    for _ in range(2):
        probe: Any = jax.jit(stage(trips))
        jax.block_until_ready(probe(x))
        trips = int(trips * SECONDS / median(seconds(probe, x) for _ in range(5)))
    return trips


def overlap() -> Table:
    x = jnp.ones((96, 96))
    trips = trips_of_a_stage(x)
    first, second = (pt.kernel(stage(trips), devices=pt.devices(1, name)) for name in ("first", "second"))

    @pt.program
    def both(x: Array) -> Array:
        return second(first(x))

    every = [x + number for number in range(INPUTS)]
    jax.block_until_ready(both(x))
    times, returns = list[float](), list[float]()
    for _ in range(5):
        start = perf_counter()
        results = [both(each) for each in every]
        returns.append(perf_counter() - start)
        jax.block_until_ready(results)
        times.append(perf_counter() - start)
    least = (INPUTS + 1) * SECONDS
    row: list[Cell] = [f"{INPUTS} inputs through two stages of {1000 * SECONDS:.0f} ms, a device each"]
    row += [1000 * median(times), 1000 * least, median(times) / least, 1000 * median(returns)]
    columns = ["", "wall, ms", "least, ms", "ratio", "calls returned after, ms"]
    return Table("overlap", "Two device sets at once", columns, [row], ["Medians of 5.", machine()])


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    for made in (issued(), overlap()):
        made.show()
        made.write()
