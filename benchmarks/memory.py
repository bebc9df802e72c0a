"""The memory that plans estimate, beside what XLA allocates for the same plans on TPUs. No TPU is needed.

    pip install 'partita[tpu]'
    python -m benchmarks.memory            # the programs of benchmarks.tpu, and the rankings: a quarter of an hour on two cores
    python -m benchmarks.memory "4 layers" # those programs whose names begin so
    python -m benchmarks.memory ranking    # ten plans of one model, ranked by both

XLA's figure is `memory_analysis` of the compiled plan: arguments, results and temporaries of one device, less what is donated.
"""

import importlib.util
import sys
from typing import Any

import ten_plans
from example_plans import LARGER
from rich.progress import track
from scipy.stats import kendalltau, rankdata

import partita as pt

from . import tpu, tpu_programs
from .report import Table

EIGHT = "v5e:2x4"
AHEAD = "Compiled ahead of time. "
MODELS = {"transformer": ten_plans.transformer(LARGER), "llama": ten_plans.small_llama()}


def allocated(plan: pt.Plan, args: Any, topology: str) -> tuple[int, int]:
    """The bytes that XLA allocates on one device of a topology, and those of the temporaries among them."""
    compiled = plan.compile(devices=tpu.devices(topology)[: plan.mesh.size])
    found: Any = compiled.lower(*args).compile(compiler_options=tpu.OPTIONS).memory_analysis()
    every = found.argument_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes + found.temp_size_in_bytes
    return every, found.temp_size_in_bytes


def row(program: tpu_programs.Program) -> list[Any]:
    """The estimate, XLA's figure, and the estimate divided by it."""
    plan = pt.plan(program.function(lambda x, _: x), program.mesh, *program.args).apply(*program.tactics)
    ours, (theirs, temporaries) = plan.memory(), allocated(plan, program.args, tpu.TOPOLOGY)
    return [program.name, ours.arguments, ours.results, ours.temporaries, temporaries, ours.bytes / theirs]


def table(start: str = "") -> Table:
    """A row a program. A row fits if the last column is between 0.85 and 1.15."""
    chosen = [program for program in tpu_programs.programs() if program.name.startswith(start)]
    rows = [row(program) for program in track(chosen, description="memory")]
    fitting = sum(0.85 <= each[-1] <= 1.15 for each in rows)
    return Table(
        "memory",
        f"Bytes on a device: estimated by the plan, and allocated by XLA on {tpu.TOPOLOGY}",
        ["", "arguments", "results", "temporaries", "temporaries, XLA", "all / all of XLA"],
        rows,
        [
            f"{fitting} of {len(rows)} estimates are within 15 % of what XLA allocates.",
            "XLA keeps what fits in the 128 MiB of a chip's vector memory, which it does not count: all of a small program.",
            AHEAD + tpu.versions(),
        ],
    )


def ranking(name: str, model: ten_plans.Model) -> Table:
    """Ten plans of a model, the one that stores least first, and how far both orders agree."""
    made = {way: make() for way, make in model.ten().items()}
    found = track(made.items(), description=name)
    both = {way: (plan.memory().bytes, allocated(plan, args, EIGHT)[0]) for way, (plan, args) in found}
    ours, theirs = zip(*both.values(), strict=True)
    places = zip(*(map(int, rankdata(each)) for each in (ours, theirs)), strict=True)
    rows = sorted(([way, *both[way], *place] for way, place in zip(both, places, strict=True)), key=lambda row: row[2])
    return Table(
        f"memory_ranking_{name}",
        f"Ten plans of one {name}, ranked by memory",
        ["plan", "bytes, estimated", "bytes, XLA", "place by estimate", "place by XLA"],
        rows,
        [f"Kendall's tau of the two rankings: {kendalltau(ours, theirs).statistic:.3f}.", AHEAD + tpu.versions()],
    )


def main(start: str = "") -> None:
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
    if importlib.util.find_spec("libtpu") is None:
        sys.exit(tpu.MISSING)
    main(*sys.argv[1:2])
