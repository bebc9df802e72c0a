"""How long a plan takes to answer on thousands of devices, over twelve axes of size 2, and with ten thousand leaves; and with a
thousand constraints, conflicts or stops.

    python -m benchmarks.growth                                     # the table
    python -m benchmarks.growth devices 4096 roll                   # one program, as JSON

CPU seconds of each question on a traced program, each program in a separate process. `replay` traces the program again, so the
seconds of a trace are taken off.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from rich.progress import track

import partita as pt
from partita.tests.support import growing

from . import fresh
from .report import Table, machine

KINDS = {"devices": 4096, "two axes": 4096, "axes": 12, "leaves": 10_000, "many": 1_000}
SLOWEST = 3
"""How many of the slowest questions a row names."""


def programs(kind: str, count: int) -> Mapping[str, Callable[[], growing.Made]]:
    if kind == "two axes":
        return growing.devices(count, two=True)
    kinds = {"devices": growing.devices, "axes": growing.axes, "leaves": growing.leaves, "many": growing.many}
    return kinds[kind](count)


def measured(kind: str, count: int, name: str) -> dict[str, float]:
    """The CPU seconds of each question, the grammar files and JAX's own functions being loaded already."""
    found: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        for _, answer in growing.questions(growing.devices(2)["roll"](), Path(folder)):
            answer()
        made = programs(kind, count)[name]()
        start = process_time()
        pt.plan(made[2], made[0].mesh, *made[3])
        traced = process_time() - start
        for question, answer in growing.questions(made, Path(folder)):
            start = process_time()
            answer()
            found[question] = process_time() - start
    return found | {"replay": max(0.0, found["replay"] - traced)}


def tables() -> list[Table]:
    cases = [(kind, count, name) for kind, count in KINDS.items() for name in programs(kind, 4)]
    rows: list[list[str | int | float]] = []
    for kind, count, name in track(cases, description="growth"):
        found = fresh.measure("growth", kind, count, name)
        slowest = sorted(found, key=lambda each: -found[each])[:SLOWEST]
        said = ", ".join(f"{each} {found[each]:.2f}" for each in slowest)
        rows.append([kind, count, name, sum(found.values()), sum(each > 1 for each in found.values()), said])
    columns = ["of", "how many", "program", "all questions, s", "questions over 1 s", "the slowest, s"]
    title = "Every question on a plan of a large mesh or program: CPU seconds"
    return [Table("growth", title, columns, rows, [machine()])]


if __name__ == "__main__":
    match sys.argv[1:]:
        case [kind, count, name]:
            fresh.answer(**measured(kind, int(count), name))
        case []:
            for table in tables():
                table.show()
                table.write()
        case _:
            sys.exit(__doc__)
