"""A step of many models on eight host devices, beside `jax.jit` with the same shardings and a `shard_map` by hand.

python -m benchmarks.step_times            # all rows
python -m benchmarks.step_times lstm       # the rows whose name begins so
"""

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import jax
import numpy as np

from . import contenders
from .case import Case, in_turn
from .report import Cell, Table, machine

SECONDS, FEWEST, MOST = 12, 11, 100
"""Each row is measured for so many seconds, and for so many rounds."""

Tree = Any
Step = Callable[..., Any]


def tables(start: str = "") -> list[Table]:
    """Times every contender of every row."""
    jax.config.update("jax_num_cpu_devices", 8)
    rows = [row(name, *make()) for name, make in contenders.rows().items() if name.startswith(start)]
    columns = ["", "plan, ms", "by hand, ms", "jit, ms", "plan / better peer", "best", "CPU time"]
    sent = ["plan receives", "by hand", "jit"]
    notes = [
        "Medians of calls in turn, each first as often as last. `best`: the same ratio of the shortest calls.",
        "`CPU time`: of the medians of the time of all threads, which other processes disturb least.",
        f"At least {FEWEST} rounds, at most {MOST}; bytes are those that a device receives, of `jit` by what XLA compiles.",
        machine(),
    ]
    return [Table("step_times", "Time of a step on eight host devices", columns + sent, rows, notes)]


def row(name: str, case: Case, by_hand: Step | None) -> list[Cell]:
    """The times of all contenders, after a check that they compute what the program does."""
    steps = {"plan": case.compiled} | ({"by hand": by_hand} if by_hand else {}) | {"jit": case.peer}
    expected, slowest = jax.jit(case.function)(*case.args), 0.0
    for step in steps.values():
        jax.tree.map(_near, step(*case.placed), expected)
        begin = perf_counter()
        jax.block_until_ready(step(*case.placed))
        slowest = max(slowest, perf_counter() - begin)
    rounds = min(MOST, max(FEWEST, round(SECONDS / (slowest * len(steps)))))
    times = in_turn(steps, case.placed, rounds)
    found = {each: case.counted(step) for each, step in steps.items()}
    print(name, {each: kinds for each, (kinds, _) in found.items()}, flush=True)
    middle = {each: median(them.wall) for each, them in times.items()}
    best = {each: min(them.wall) for each, them in times.items()}
    busy = {each: median(them.cpu) for each, them in times.items()}
    shown = [1000 * middle[each] if each in middle else None for each in ("plan", "by hand", "jit")]
    received = [found[each][1] if each in found else None for each in ("plan", "by hand", "jit")]
    return [name, *shown, _ratio(middle), _ratio(best), _ratio(busy), *received]


def _ratio(times: dict[str, float]) -> float:
    return times["plan"] / min(time for each, time in times.items() if each != "plan")


def _near(got: Any, expected: Any) -> None:
    """Checks two results up to rounding, which Adam's first step makes as large as a step where a gradient is near zero."""
    a, b = np.asarray(got, np.float64).ravel(), np.asarray(expected, np.float64).ravel()
    assert np.linalg.norm(a - b) <= 2e-3 * np.linalg.norm(b) + 1e-5, (np.linalg.norm(a - b), np.linalg.norm(b))


if __name__ == "__main__":
    for table in tables(*sys.argv[1:]):
        table.show()
        if len(sys.argv) == 1:
            table.write()
