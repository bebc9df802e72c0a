"""Trains a small GPT on eight host devices with three tactics, and compares it with the unpartitioned run.

    partita demo

The model is `examples/gpt.py`, the text is the source of Python's standard library, the mesh data=4 x model=2. After
each tactic it shows the layouts of the first block that have changed. The last screen says whether the losses agree, what
each tactic did to the memory and the communication of a device, and which tactic causes which collectives.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import partita as pt

from . import gpt, text

CONFIG = gpt.Config()
BATCH = 32
STEPS = 200

MESH = pt.Mesh(data=4, model=2)
TACTICS = {
    "data parallel": pt.DataParallel("data", inputs="batch/*"),
    "Megatron": pt.Megatron(
        "model",
        column={"params/**/wqkv": 2, "params/**/w1": 1},
        row={"params/**/wo": 0, "params/**/w2": 0},
    ),
    # Only the matrices: a vector of 128 elements is not worth a separate collective.
    "ZeRO-3": pt.ZeRO(
        3,
        "data",
        params=["params/embed", "params/position", "params/**/w*"],
        optimizer=["opt/**/embed", "opt/**/position", "opt/**/w*"],
    ),
}
SHOWN = ["params/embed", "params/blocks/0/**", "batch/*"]

# Both runs round differently, by about 1e-6 of the loss; a wrong gradient is off by far more.
BOUND = 1e-4

NEXT = """
Next: a step of your own, by the same tactics. docs/tutorial.ipynb goes through it in ten minutes.

    step = pt.jit(train_step, mesh=pt.Mesh(data=8), tactics=[pt.DataParallel("data", inputs="batch")])
    print(step.plan(params, opt, batch))"""

Step = Callable[[Any, Any, Any], tuple[Any, Any, jax.Array]]


def partitioned(params: Any, opt: Any, console: Console) -> list[pt.Plan]:
    """The plan of the training step without tactics, and after each of them, which is shown as it is applied."""
    console.print("tracing the training step ...", style="dim")
    plan = pt.plan(gpt.train_step, MESH, params, opt, next(_batches()))
    console.print(f"train_step on a mesh of {MESH}\n", highlight=False)
    plans = [plan]
    for name, tactic in TACTICS.items():
        plans.append(plans[-1].apply(tactic))
        console.print(_changed(name, *plans[-2:]))
        console.print()
    return plans


def train(step: Step, params: Any, opt: Any, title: str, console: Console) -> list[float]:
    """The losses of `STEPS` steps, with a progress bar."""
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    losses: list[float] = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=STEPS, loss=float("nan"))
        for batch in islice(_batches(), STEPS):
            params, opt, loss = step(params, opt, batch)
            losses.append(float(loss))
            progress.update(task, advance=1, loss=losses[-1])
    return losses


def main() -> int:
    """Runs the demo; 0 if the losses agree."""
    jax.config.update("jax_num_cpu_devices", MESH.size)
    console = Console()
    params = gpt.init(CONFIG)
    opt = gpt.OPTIMIZER.init(params)
    plans = partitioned(params, opt, console)
    alone = train(jax.jit(gpt.train_step), params, opt, "1 device, unpartitioned", console)
    together = train(plans[-1].compile(), params, opt, f"{MESH.size} devices, {MESH}", console)
    agree = _agree(alone, together, console)
    for table in (_costs(plans), _by_cause(plans[-1])):
        console.print()
        console.print(table)
    console.print(NEXT, highlight=False, markup=False, soft_wrap=True)
    return 0 if agree else 1


def _changed(name: str, before: pt.Plan, after: pt.Plan) -> Table:
    """The layouts of the first block and the batch that a tactic has changed."""
    table = Table("value", "before", "after", title=f"{name} changes the layouts", title_justify="left")
    for pattern in SHOWN:
        old = before.layout(pattern)
        for value, layout in after.layout(pattern).items():
            if layout != old[value]:
                table.add_row(value, _escaped(old[value]), f"[green]{_escaped(layout)}[/]")
    return table


def _costs(plans: Sequence[pt.Plan]) -> Table:
    """What a device stores at the peak of a step and receives in it, without tactics and after each."""
    whole = plans[0].memory().bytes
    table = Table(title="what a device stores and receives in a step", title_justify="left")
    for column in ("after", "stored at the peak", "% of one device", "received"):
        table.add_column(column, justify="left" if column == "after" else "right")
    for name, plan in zip(["no tactic (one device)", *TACTICS], plans, strict=True):
        stored = plan.memory().bytes
        table.add_row(name, _mebibytes(stored), f"{stored / whole:.0%}", _mebibytes(plan.bytes_per_device()))
    return table


def _by_cause(plan: pt.Plan) -> Table:
    """The collectives of a step by the tactics that cause them."""
    counts: dict[tuple[str, ...], Counter[str]] = {}
    received: Counter[tuple[str, ...]] = Counter()
    for each in plan.collectives():
        causes = tuple(list(TACTICS)[cause.number - 1] for cause in each.causes)
        counts.setdefault(causes, Counter())[each.kind] += each.times
        received[causes] += each.total_bytes
    table = Table("because of", "collectives of a step", title="collectives by cause", title_justify="left")
    table.add_column("received", justify="right")
    for causes, size in received.most_common():
        kinds = ", ".join(f"{times} {kind}" for kind, times in sorted(counts[causes].items()))
        table.add_row(" and ".join(causes), kinds, _mebibytes(size))
    return table


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.2f} MiB"


def _escaped(layout: str) -> str:
    """Brackets are markup to rich."""
    return layout.replace("[", r"\[")


def _agree(alone: list[float], together: list[float], console: Console) -> bool:
    a, b = np.array(alone), np.array(together)
    worst = float(np.max(np.abs(a - b) / np.abs(a)))
    verdict = "agree" if worst <= BOUND else "DO NOT agree"
    said = f"The losses {verdict}: over {STEPS} steps they differ by at most {worst:.1e} of the loss (bound {BOUND:.0e})."
    console.print(said, soft_wrap=True)
    return worst <= BOUND


def _batches() -> Iterator[dict[str, np.ndarray]]:
    """The same batches for both runs."""
    return text.batches(text.corpus(), BATCH, CONFIG.length)


if __name__ == "__main__":
    raise SystemExit(main())
