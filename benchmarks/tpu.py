"""Programs compiled for a TPU pod slice (v5e:4x4), beside `jax.jit` with the same argument shardings. No TPU is needed.

    pip install 'partita[tpu]'
    python -m benchmarks.tpu              # every program: an hour on two cores
    python -m benchmarks.tpu "4 layers"   # those whose names begin so; the rows of the others stay as they are written

XLA:TPU compiles ahead of time for devices that are only described, so bytes and memory are those of the real chips, and nothing
runs. Times are those of XLA's schedule on a clock: see `timeline`. The peers are `jax.jit`, and `jax.jit` with constraints on
the activations.
"""

import importlib.metadata
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from time import process_time
from typing import Any

import jax
from jax.experimental import topologies
from jax.sharding import NamedSharding

import partita as pt
from partita.compiler.jax_private import RELEASE

from . import hlo, tpu_programs
from .case import on_auto_axes
from .report import RESULTS, Cell, Table
from .timeline import Timeline, timeline
from .tpu_programs import Program

TOPOLOGY = "v5e:4x4"
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-16",
    "TPU_WORKER_HOSTNAMES": "localhost",
}
OPTIONS = {"xla_tpu_scoped_vmem_limit_kib": str(32 << 10)}
"""XLA:TPU runs out of its 16 MiB of scoped vector memory in some lookups of many rows, in programs of its peers too."""

MISSING = "this needs XLA's compiler for TPUs: pip install 'partita[tpu]'"
COLUMNS = [
    "program",
    "compiled by",
    "received, MB",
    "temporaries, MiB",
    "peak, MiB",
    "compile, CPU s",
    "compute, ms",
    "hidden, ms",
    "exposed, ms",
    "step, ms",
    "received / better peer",
    "temporaries / better peer",
    "step / better peer",
]
NOTES = [
    "Received: bytes that a device receives in a step, from the compiled program.",
    "Times are those of XLA's schedule, on a clock: what is computed as fast as XLA estimates, and collectives one after "
    "another at 90 GB/s and 1 us. They are hidden while something is computed, and exposed while a device only waits.",
    "`jit`: jax.jit with the same shardings of arguments and results. `constrained`: the same, with constraints on the "
    "activations: their batch dim, and in Llama and the experts their heads, their units and the slots of the experts. "
    "The better peer is the one with the smaller figure in that column.",
    "Llama: the layers of Llama 3.2 1B. Experts: 16 experts a layer in place of its units, two for each token. 4 x tokens: a "
    "batch of 128 in place of 32.",
    "All are compiled with 32 MiB of scoped vector memory, because XLA stops at its default of 16 MiB in 16 layers, Z3, scan "
    "with remat.",
]


@dataclass(frozen=True)
class Figures:
    """What a compiled program needs on one device, in bytes and seconds."""

    received: float
    temporaries: int
    peak: int
    seconds: float
    time: Timeline

    def cells(self) -> list[Cell]:
        times = self.time.compute, self.time.hidden, self.time.exposed, self.time.step
        return [self.received / 1e6, self.temporaries / 2**20, self.peak / 2**20, self.seconds, *(1e3 * each for each in times)]


@cache
def devices(topology: str) -> Sequence[Any]:
    """The devices of a topology such as `v5e:4x4`, which are only described."""
    os.environ.update(ENVIRONMENT)
    jax.config.update("jax_platforms", "cpu")
    return topologies.get_topology_desc(platform="tpu", topology_name=topology).devices


def measured(lower: Callable[[], Any]) -> Figures | None:
    """The figures of a program. None if XLA cannot compile it."""
    start = process_time()
    try:
        compiled = lower().compile(compiler_options=OPTIONS)
    except jax.errors.JaxRuntimeError:
        return None
    seconds, memory = process_time() - start, compiled.memory_analysis()
    text = compiled.as_text()
    received, time = hlo.received(hlo.collectives(text)), timeline(hlo.schedule(text))
    return Figures(received, memory.temp_size_in_bytes, memory.peak_memory_in_bytes, seconds, time)


def contenders(program: Program, devices: Sequence[Any]) -> dict[str, Callable[[], Any]]:
    """What lowers the program: as a plan, by `jax.jit`, and by `jax.jit` with constraints."""
    function, args = program.function(lambda x, _: x), program.args
    plan = pt.plan(function, program.mesh, *args).apply(*program.tactics)
    compiled = plan.compile(devices=devices)
    leaves, tree = jax.tree.flatten(args)
    given = jax.tree.unflatten(tree, map(on_auto_axes, compiled.in_shardings[: len(leaves)]))
    results = jax.tree.structure(jax.eval_shape(function, *args))
    wanted = jax.tree.unflatten(results, map(on_auto_axes, compiled.out_shardings))
    mesh, places = jax.tree.leaves(given)[0].mesh, program.places
    fixed = program.function(lambda x, name: jax.lax.with_sharding_constraint(x, NamedSharding(mesh, places[name])))
    return {
        "partita": lambda: compiled.lower(*args),
        "jit": lambda: jax.jit(function, in_shardings=given, out_shardings=wanted).lower(*args),
        "constrained": lambda: jax.jit(fixed, in_shardings=given, out_shardings=wanted).lower(*args),
    }


def rows(program: Program, devices: Sequence[Any]) -> list[list[Cell]]:
    """A row a contender; that of the plan ends with its figures divided by the better peer's."""
    found = {name: measured(lower) for name, lower in contenders(program, devices).items()}
    ours, *peers = found.values()
    made = [
        [program.name, name, *(figures.cells() if figures else ["does not compile", *[None] * 7]), *[None] * 3]
        for name, figures in found.items()
    ]
    others = [each for each in peers if each is not None]
    if ours is not None and others:
        made[0][-3] = ratio(ours.received, min(each.received for each in others))
        made[0][-2] = ratio(ours.temporaries, min(each.temporaries for each in others))
        made[0][-1] = ratio(ours.time.step, min(each.time.step for each in others))
    return made


def ratio(ours: float, best: float) -> float | None:
    """Ours divided by the best; 1 where both are nothing, None where only the best is."""
    return ours / best if best else None if ours else 1.0


def table(start: str = "") -> Table:
    """The rows of the programs whose names begin so."""
    described = devices(TOPOLOGY)
    made: list[list[Cell]] = []
    for program in tpu_programs.programs():
        if program.name.startswith(start):
            made += rows(program, described)
            print(*("  ".join(_shown(cell) for cell in row) for row in made[-3:]), sep="\n", flush=True)
    return Table("tpu", f"Compiled for {TOPOLOGY}", COLUMNS, made, [*NOTES, versions()])


def beside_written(made: Table) -> Table:
    """The table with the written rows of other programs. Raises ValueError if they are of other versions."""
    written = json.loads((RESULTS / f"{made.name}.json").read_text())
    order, new = [program.name for program in tpu_programs.programs()], {row[0] for row in made.rows}
    kept = [row for row in written["rows"] if row[0] in order and row[0] not in new]
    if kept and written["notes"][-1] != versions():
        raise ValueError(f"the other rows are of {written['notes'][-1]}")
    return replace(made, rows=sorted([*made.rows, *kept], key=lambda row: order.index(str(row[0]))))


def versions() -> str:
    """The versions that the figures are of."""
    return f"jax {RELEASE}, libtpu {importlib.metadata.version('libtpu')}."


def _shown(cell: Cell) -> str:
    return "" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else str(cell)


if __name__ == "__main__":
    if importlib.util.find_spec("libtpu") is None:
        sys.exit(MISSING)
    made = table(*sys.argv[1:2])
    made.show()
    beside_written(made).write()
