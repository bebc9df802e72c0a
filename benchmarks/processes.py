"""Two processes: how two stages overlap, one in each, and what a transfer from one to the other takes.

    python -m benchmarks.processes            # half a minute on two cores

Stages compute, on a device of their own. The table is written by process 0.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import subprocess
import sys
from statistics import median
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental.multihost_utils import broadcast_one_to_all, sync_global_devices

import partita as pt
from partita.benchmarks.dispatch import INPUTS, SECONDS, stage, trips_of_a_stage
from partita.benchmarks.report import Cell, Table, machine

ROUNDS, CALLS = 5, 50
BYTES = (1 << 12, 1 << 20, 1 << 24)


def both_at_once(call: Any, inputs: list[Any]) -> float:
    """The seconds until the results of all calls are there, in both processes."""
    sync_global_devices("begin")
    start = perf_counter()
    jax.block_until_ready([call(each) for each in inputs])
    sync_global_devices("end")
    return perf_counter() - start


def overlap() -> list[Cell]:
    x = jnp.ones((96, 96))
    # Both processes run the same program.
    trips = int(broadcast_one_to_all(np.int32(trips_of_a_stage(x))))
    first, second = (pt.kernel(stage(trips), devices=pt.devices(1, name)) for name in ("first", "second"))
    here, there = jax.devices()[:1], jax.devices()[4:5]
    both = pt.program(lambda x: second(first(x)), devices={"first": here, "second": there})
    every = [np.asarray(x + number) for number in range(INPUTS)]
    both_at_once(both, every[:1])
    took, least = median(both_at_once(both, every) for _ in range(ROUNDS)), (INPUTS + 1) * SECONDS
    name = f"{INPUTS} inputs through two stages of {1000 * SECONDS:.0f} ms, one in each process"
    return [name, 1000 * took, 1000 * least, took / least]


def transfer(size: int, before: int, after: int) -> list[Cell]:
    def same(x: Array) -> Array:
        return x

    rows = [pt.Tile({"x": 0}, "d")]
    first, second = (
        pt.kernel(same, devices=pt.Mesh(d=count).on(name), tactics=rows)
        for name, count in (("first", before), ("second", after))
    )
    devices = {"first": jax.devices()[:before], "second": jax.devices()[4:][:after]}
    x = jnp.ones((size // 4 // 64, 64))
    both = pt.program(lambda x: second(first(x)), devices=devices)
    graph = both.graph(x).compile(devices)
    placed = pt.program(first, devices={"first": devices["first"]})(x)
    both_at_once(graph, [placed])
    took = median(both_at_once(graph, [placed] * CALLS) for _ in range(ROUNDS)) / CALLS
    return [f"{size // 1024:,} KiB from {before} devices to {after} of the other process", 1000 * took, None, None]


def main() -> None:
    found = [overlap(), *(transfer(size, *ends) for size in BYTES for ends in ((4, 2), (2, 4)))]
    notes = [f"Medians of {ROUNDS}; of transfers, a graph of two kernels and one transfer, {CALLS} calls.", machine()]
    table = Table("processes", "Two processes", ["", "wall, ms", "least, ms", "ratio"], found, notes)
    if jax.process_index() == 0:
        table.show()
        table.write()


if __name__ == "__main__":
    command = [sys.executable, "-m", "partita", "run", "--processes", "2", f"{__file__}:main"]
    sys.exit(subprocess.run(command, check=False).returncode)
