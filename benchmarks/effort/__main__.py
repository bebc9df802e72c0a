"""The table of user effort, in `results/effort.md` and on the page `docs/benchmarks.md`.

python -m benchmarks.effort          # half a minute
python -m benchmarks.effort check    # only whether all compute the same
"""

import sys

import jax

from partita.compiler.jax_private import RELEASE

from ..report import Table
from .measure import COLUMNS, programs, rows

NOTES = [
    "Lines written and replaced, and places: against the step on one device, by difflib. A place is a run of lines.",
    "Collectives and bytes a device: of a step that XLA compiles for 8 host devices. There it merges all_reduces into few, "
    "merges gathers that are repeated in the backward pass, and has no reduce_scatter of its own.",
]


def table() -> Table:
    title = "One training step, partitioned in five ways: data parallel, Megatron, ZeRO-3"
    made = sorted(rows(), key=lambda row: int(str(row[1])))
    return Table("effort", title, COLUMNS, made, [*NOTES, f"jax {RELEASE}."])


def main(only: str = "") -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    if only == "check":
        print(*(f"{name}: trains as the plain program" for name, *_ in programs()), sep="\n")
        return
    made = table()
    made.show()
    made.write()
    made.write_on_page()


if __name__ == "__main__":
    main(*sys.argv[1:2])
