"""Trains a small GPT on eight host devices with three tactics, and compares it with the unpartitioned run.

    partita demo

The model is `examples/gpt.py`, the text is the source of Python's standard library, the mesh data=4 x model=2. After
each tactic it shows the plan: the layouts of the first block, the collectives of a step, and the bytes that a device
receives and stores.
"""

from collections.abc import Callable, Iterator
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
Next: a step of your own, by the same tactics.

    step = pt.jit(train_step, mesh=pt.Mesh(data=4, model=2), tactics=[pt.DataParallel("data", inputs="batch/*")])
    print(step.plan(params, opt, batch))

What a plan answers is in docs/plans.md, kinds of parallelism are in docs/parallelism.md.
"""

Step = Callable[[Any, Any, Any], tuple[Any, Any, jax.Array]]


def partitioned(params: Any, opt: Any, console: Console) -> pt.Plan:
    """The plan of the training step after all tactics; each is shown as it is applied."""
    console.print("tracing the training step ...", style="dim")
    batch = next(_batches())
    plan = pt.plan(gpt.train_step, MESH, params, opt, batch)
    console.print(f"train_step on a mesh of {MESH}\n", highlight=False)
    console.print(f"on one device: {_megabytes(plan.memory().bytes)} stored at the peak of a step\n", highlight=False)
    before = {pattern: plan.layout(pattern) for pattern in SHOWN}
    for name, tactic in TACTICS.items():
        plan = plan.apply(tactic)
        layouts = {pattern: plan.layout(pattern) for pattern in SHOWN}
        console.print(_picture(name, plan, before, layouts))
        console.print()
        before = layouts
    return plan


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
    plan = partitioned(params, opt, console)
    alone = train(jax.jit(gpt.train_step), params, opt, "1 device, unpartitioned", console)
    together = train(plan.compile(), params, opt, f"{MESH.size} devices, {MESH}", console)
    agree = _agree(alone, together, console)
    console.print(NEXT, highlight=False, markup=False)
    return 0 if agree else 1


def _picture(name: str, plan: pt.Plan, before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> Table:
    """The layouts of the first block and the batch, with changed ones in colour, and below them the cost."""
    counts = {kind: times for kind, times in plan.counts().items() if times}
    collectives = ", ".join(f"{times} {kind}" for kind, times in counts.items()) or "no collectives"
    received = f"{_megabytes(plan.bytes_per_device())} received by a device in a step"
    stored = f"{_megabytes(plan.memory().bytes)} stored by a device at the peak"
    table = Table(
        title=f"after {name}", caption="\n".join([collectives, received, stored]), title_justify="left", caption_justify="left"
    )
    table.add_column("value")
    table.add_column("layout")
    for pattern in SHOWN:
        for value, layout in after[pattern].items():
            table.add_row(value, _escaped(layout), style="bold green" if before[pattern][value] != layout else "dim")
    return table


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB"


def _escaped(layout: str) -> str:
    """Brackets are markup to rich."""
    return layout.replace("[", r"\[")


def _agree(alone: list[float], together: list[float], console: Console) -> bool:
    table = Table("step", "1 device", f"{MESH.size} devices", "difference", title="loss", title_justify="left")
    for index in [*range(0, STEPS, STEPS // 6), STEPS - 1]:
        a, b = alone[index], together[index]
        table.add_row(str(index + 1), f"{a:.5f}", f"{b:.5f}", f"{b - a:+.1e}")
    console.print(table)
    a, b = np.array(alone), np.array(together)
    worst = float(np.max(np.abs(a - b) / np.abs(a)))
    verdict = "agree" if worst <= BOUND else "DO NOT agree"
    console.print(
        f"The losses {verdict}: over {STEPS} steps they differ by at most {worst:.1e} of the loss (bound {BOUND:.0e})."
    )
    return worst <= BOUND


def _batches() -> Iterator[dict[str, np.ndarray]]:
    """The same batches for both runs."""
    return text.batches(text.corpus(), BATCH, CONFIG.length)


if __name__ == "__main__":
    raise SystemExit(main())
