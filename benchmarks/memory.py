"""The memory that plans estimate, beside what XLA allocates on CPU for the same plans.

    python -m benchmarks.memory            # every example in every way: three to four minutes
    python -m benchmarks.memory "demo"     # those whose names begin so
    python -m benchmarks.memory ranking    # ten plans of one model, ranked by both

XLA's figure is `memory_analysis` of the compiled plan: arguments, results and temporaries of one device.
"""

import sys
from typing import Any

import jax
import ten_plans
from example_plans import DATA8, LARGER, Made, examples
from rich.progress import track
from scipy.stats import kendalltau, rankdata

from .report import Table, machine

MODELS = {"transformer": ten_plans.transformer(LARGER), "llama": ten_plans.small_llama()}


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
    chosen = {name: make for name, make in examples().items() if name.startswith(start)}
    rows = [row(name, make()) for name, make in track(chosen.items(), description="memory")]
    fitting = sum(0.9 <= each[-1] <= 1.1 for each in rows)
    return Table(
        "memory",
        "Bytes on a device: estimated by the plan, and allocated by XLA on CPU",
        ["", "arguments", "results", "temporaries", "temporaries, XLA", "all / all of XLA"],
        rows,
        [
            f"{fitting} of {len(rows)} estimates are within a tenth of what XLA allocates.",
            "XLA adds 8 bytes for each of several results. It allocates the same arguments.",
            machine(),
        ],
    )


def ranking(name: str, model: ten_plans.Model) -> Table:
    """Ten plans of a model, the one that stores least first, and how far both orders agree."""
    both = {way: (made[0].memory().bytes, sum(of_xla(made))) for way, make in model.ten().items() if (made := make())}
    ours, theirs = zip(*both.values(), strict=True)
    places = zip(*(map(int, rankdata(each)) for each in (ours, theirs)), strict=True)
    rows = sorted(([way, *both[way], *place] for way, place in zip(both, places, strict=True)), key=lambda row: row[2])
    return Table(
        f"memory_ranking_{name}",
        f"Ten plans of one {name}, ranked by memory",
        ["plan", "bytes, estimated", "bytes, XLA", "place by estimate", "place by XLA"],
        rows,
        [f"Kendall's tau of the two rankings: {kendalltau(ours, theirs).statistic:.3f}.", machine()],
    )


def main(start: str = "") -> None:
    jax.config.update("jax_num_cpu_devices", DATA8.size)
    tables = [] if start == "ranking" else [table(start)]
    if start in ("", "ranking"):
        tables += [ranking(*each) for each in MODELS.items()]
    for made in tables:
        made.show()
        if start in ("", "ranking"):
            made.write()
        if made.name == "memory_ranking_transformer":
            made.write_on_page()


if __name__ == "__main__":
    main(*sys.argv[1:2])
