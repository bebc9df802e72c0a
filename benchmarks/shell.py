"""How long `partita shell` takes to answer, on the training step of a GPT-3-shaped transformer.

    python -m benchmarks.shell           # the table: 12 layers and 96
    python -m benchmarks.shell 12        # one measurement, as JSON

A session of almost all commands, in one process for each size. A figure is the time of one line, with the prompt that follows
it, as long as nobody has asked for the same before. It is the time of the processor, which is that of the clock on an idle
machine: a session has one thread. `rewrites` answers at once with the places, and later with what each law saves there: both
are measured. `run` and `check` compile, and are not measured.
"""

import sys
from time import process_time

from rich.progress import track

from . import fresh
from .gpt3 import MESH, shapes, train_step
from .report import Table, machine

LAYERS = (12, 96)
BOUNDS = {12: 200, 96: 1000}
REPEATS = 3
SESSION = (
    "tile range batch over data",
    "Megatron('model', column={'params/**/wqkv': 2, 'params/**/w1': 1}, row={'params/**/wo': 0, 'params/**/w2': 0})",
    "ZeRO(3, 'data', params=['params/**/w*', 'params/embed'], optimizer=['opt/**/w*', 'opt/*/embed'])",
    "tile params/embed.0 @model",
    "replicate batch/x @model",
    "undo",
    "redo",
    "branch other",
    "tile result/0/embed.1 @model",
    "diff main",
    "branch main",
    "show",
    "show params/blocks/3/**",
    "ranges",
    "explain params/blocks/0/w1",
    "explain collective 3",
    "collectives",
    "collectives over model",
    "conflicts",
    "blocked",
    "silent",
    "bytes",
    "memory",
    "plan",
    "rewrites",
    "history",
    "help",
    "help tile",
    "save FOLDER/plan.partita",
    "load FOLDER/plan.partita",
    "lower spmd",
)
"""The lines of the session."""
COMPLETE = ", complete"
"""What marks the time until an answer that comes in parts is complete, for which there is no bound."""
TYPED = ("ti", "tile ", "tile params/", "tile params/blocks/", "tile params/blocks/3/w1.", "tile params/blocks/3/w1.1 @")
"""What is completed, in the state after the session."""


def measure(layers: int) -> dict[str, float]:
    """The seconds of each line, of the first prompt, and of completions."""
    import tempfile

    import partita as pt
    from partita.compiler.shell.answer import prompt
    from partita.compiler.shell.completion import completions
    from partita.compiler.shell.run_line import do
    from partita.compiler.shell.session import Session
    from partita.compiler.shell.typed_line import Typed

    start = process_time()
    session = Session.start(pt.plan(train_step, pt.Mesh(MESH), *shapes(layers)))
    figures = {"(trace)": process_time() - start}
    start = process_time()
    prompt(session)
    figures["(the first prompt)"] = process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        for number, line in enumerate(SESSION, 1):
            vars(session.plan).pop("_known", None)  # What other lines have asked of this plan.
            start = process_time()
            answer = do(session, Typed(line.replace("FOLDER", folder), number))
            session = answer.session
            prompt(session)
            figures[line.replace("FOLDER/", "")] = process_time() - start
            if answer.later is not None:
                answer.final()
                figures[f"{line}{COMPLETE}"] = process_time() - start
    for typed in TYPED:
        start = process_time()
        list(completions(session, typed))
        figures[f"(completion of `{typed}`)"] = process_time() - start
    return figures


def table() -> Table:
    runs: dict[int, list[dict[str, float]]] = {layers: [] for layers in LAYERS}
    for layers in track([n for _ in range(REPEATS) for n in LAYERS], description="shell"):
        runs[layers].append(fresh.measure("shell", layers))
    found = {layers: fresh.medians(each) for layers, each in runs.items()}
    rows = [[line, *(1000 * found[layers][line] for layers in LAYERS)] for line in found[LAYERS[0]]]
    return Table(
        "shell",
        "What a session of `partita shell` takes, in milliseconds",
        ["line", *(f"{layers} layers" for layers in LAYERS)],
        [*rows, ["bound", *(BOUNDS[layers] for layers in LAYERS)]],
        [
            "A GPT-3-shaped training step: forward, backward and Adam; 96 layers are about 33,000 equations.",
            "Each line with the prompt that follows it, which shows the collectives and their bytes.",
            "`rewrites` shows the places first, within the bound, and then, one after another, what each law saves there.",
            "`run` and `check` compile, and are not measured.",
            f"Each session in a fresh process, the median of {REPEATS}; times of the processor.",
            machine(),
        ],
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case [layers]:
            fresh.answer(**measure(int(layers)))
        case []:
            made = table()
            made.show()
            made.write()
        case _:
            sys.exit(__doc__)
