"""The memory that plans estimate, beside what XLA allocates on CPU for the same plans.

    python -m benchmarks.memory            # every example in every way: two to three minutes
    python -m benchmarks.memory "demo"     # those whose names begin so

XLA's figure is `memory_analysis` of the compiled plan: arguments, results and temporaries of one device.
"""

import sys
from typing import Any

import jax
from rich.progress import track

from partita.tests.support.example_plans import DATA8, Made, examples

from .report import Table, machine


def of_xla(made: Made) -> tuple[int, int, int]:
    """Bytes of arguments, results and temporaries that XLA allocates on one device."""
    plan, args = made
    compiled: Any = plan.compile()
    found: Any = compiled.lower(*args).compile().memory_analysis()
    return found.argument_size_in_bytes, found.output_size_in_bytes, found.temp_size_in_bytes


def row(name: str, made: Made) -> list[Any]:
    """The estimate, XLA's figure, and the estimate divided by it."""
    ours, theirs = made[0].memory(), of_xla(made)
    return [name, ours.arguments, ours.results, ours.temporaries, theirs[2], ours.bytes / sum(theirs)]


def table(start: str = "") -> Table:
    """A row an example. A row fits if the last column is between 0.9 and 1.1."""
    jax.config.update("jax_num_cpu_devices", DATA8.size)
    chosen = {name: make for name, make in examples().items() if name.startswith(start)}
    return Table(
        "memory",
        "Bytes on a device: estimated by the plan, and allocated by XLA on CPU",
        ["", "arguments", "results", "temporaries", "temporaries, XLA", "all / all of XLA"],
        [row(name, make()) for name, make in track(chosen.items(), description="memory")],
        ["XLA adds 8 bytes for each result. It allocates the same arguments.", machine()],
    )


if __name__ == "__main__":
    made = table(*sys.argv[1:2])
    made.show()
    if not sys.argv[1:]:
        made.write()
