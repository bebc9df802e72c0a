"""How long composite tactics take to find and place what they place, on the GPT-3-shaped step of 96 layers.

    python -m benchmarks.composites                     # the table
    python -m benchmarks.composites 96 "FSDP"           # one measurement, as JSON

CPU seconds, each measurement in a separate process: of the last tactic of a row, and of the decisions that follow from it.
"""

import sys
from collections.abc import Callable, Sequence
from time import process_time

from rich.progress import track

import partita as pt

from . import fresh
from .gpt3 import MESH, shapes, train_step
from .report import Table, machine

LAYERS = (12, 96)
KINDS = ("all_gather", "all_reduce", "reduce_scatter")
DATA, MODEL = pt.DataParallel("data"), pt.Megatron("model")
BY_PATTERNS = pt.Megatron("model", column={"**/wqkv": 2, "**/w1": 1}, row={"**/wo": 0, "**/w2": 0})

ROWS: dict[str, Sequence[Callable[[pt.Plan], pt.Plan]]] = {
    "DataParallel": [DATA],
    "Megatron": [DATA, MODEL],
    "Megatron by patterns": [DATA, BY_PATTERNS],
    "SequenceParallel": [DATA, MODEL, pt.SequenceParallel("model")],
    "VocabularyParallel": [DATA, MODEL, pt.VocabularyParallel("model")],
    "ContextParallel": [pt.ContextParallel("data")],
    "FSDP": [DATA, MODEL, pt.FSDP("data")],
    "FSDP of every vector": [DATA, MODEL, pt.FSDP("data", smallest=1)],
    "Tensor2D": [pt.Tensor2D("data", "model")],
}


def measured(layers: int, name: str) -> dict[str, float]:
    """The CPU seconds of the last tactic of a row, and of its decisions; the collectives."""
    *before, last = ROWS[name]
    plan = pt.plan(train_step, pt.Mesh(MESH), *shapes(layers)).apply(*before)
    laps = [process_time()]
    plan = plan.apply(last)
    laps.append(process_time())
    counts = plan.counts()
    laps.append(process_time())
    return {"tactic": laps[1] - laps[0], "decisions": laps[2] - laps[1], **{kind: counts[kind] for kind in KINDS}}


def tables() -> list[Table]:
    runs = [(n, name, fresh.measure("composites", n, name)) for n in track(LAYERS, description="composites") for name in ROWS]
    rows = [[name, n, f["tactic"], f["decisions"], *(int(f[kind]) for kind in KINDS)] for n, name, f in runs]
    columns = ["last tactic", "layers", "tactic, s", "decisions, s", *KINDS]
    title = "Composite tactics on a GPT-3-shaped training step: CPU seconds, and what a step sends"
    return [Table("composites", title, columns, rows, [machine()])]


if __name__ == "__main__":
    match sys.argv[1:]:
        case [layers, name]:
            fresh.answer(**measured(int(layers), name))
        case []:
            for table in tables():
                table.show()
                table.write()
        case _:
            sys.exit(__doc__)
