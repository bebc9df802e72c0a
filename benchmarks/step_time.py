"""The demo's training step against its peers on eight host devices: the time of a step, and the bytes that it receives.

    python -m benchmarks.step_time

Partita's plan, `jax.jit` with the same input shardings (Auto axes: Shardy decides), and the `shard_map` of
`handwritten` run in turn, a step each, so that the load of the machine affects all of them; figures are medians.
"""

from collections.abc import Callable
from statistics import median
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

import partita as pt
from partita.examples import demo, gpt, text
from partita.tests.support.jaxpr_collectives import collectives, counts, received

from . import handwritten
from .case import in_turn
from .report import Table, machine

ROUNDS = 150

Tree = Any
Step = Callable[..., Any]


def tables() -> list[Table]:
    """Times the three and counts their collectives."""
    jax.config.update("jax_num_cpu_devices", demo.MESH.size)
    args, steps = contenders()
    _check(args, steps)
    return [_times(args, steps), _bytes(args, steps)]


def contenders() -> tuple[Tree, dict[str, Step]]:
    """The arguments, placed, and the three compiled steps."""
    params = gpt.init(demo.CONFIG)
    opt = gpt.OPTIMIZER.init(params)
    batch = next(text.batches(text.corpus(), demo.BATCH, demo.CONFIG.length))
    plan = pt.plan(gpt.train_step, demo.MESH, params, opt, batch).apply(*demo.TACTICS.values())
    axes = demo.MESH.axes
    devices = np.array(jax.devices()[: demo.MESH.size]).reshape(*axes.values())
    mesh = Mesh(devices, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
    placed = handwritten.shardings(demo.CONFIG, mesh, opt)
    return jax.device_put((params, opt, batch), placed), {
        "partita": plan.compile(),
        "shard_map": handwritten.train_step(demo.CONFIG, mesh, opt),
        "jit": jax.jit(gpt.train_step, in_shardings=placed, out_shardings=(placed[0], placed[1], None)),
    }


def _times(args: Tree, steps: dict[str, Step]) -> Table:
    times = in_turn(steps, args, ROUNDS)
    middle = {name: median(each.wall) for name, each in times.items()}
    best = min(middle["shard_map"], middle["jit"])
    return Table(
        "step_time",
        "Time of a training step of the demo's GPT on eight host devices",
        ["step", "median, ms", "best, ms", "CPU time, ms", "median / better peer"],
        [
            [name, 1000 * middle[name], 1000 * min(each.wall), 1000 * median(each.cpu), middle[name] / best]
            for name, each in times.items()
        ],
        [
            "`jit`: jax.jit with the same input shardings, Auto axes; `shard_map`: the same strategy by hand.",
            f"One step of each in turn, {ROUNDS} times, each first as often as last; the bound for partita is 1.05.",
            machine(),
        ],
    )


def _bytes(args: Tree, steps: dict[str, Step]) -> Table:
    names = ["partita", "shard_map"]
    found = [collectives(steps[name], *args) for name in names]
    kinds = [counts(each) for each in found]
    rows = [[kind, *(each[kind] for each in kinds)] for kind in kinds[0]]
    return Table(
        "step_bytes",
        "Collectives of that step, counted in the jaxprs",
        ["", *names],
        [*rows, ["bytes that a device receives", *map(received, found)]],
    )


def _check(args: Tree, steps: dict[str, Step]) -> None:
    """Checks that all three compute the same loss."""
    losses = [float(step(*args)[2]) for step in steps.values()]
    assert np.allclose(losses, losses[0], rtol=1e-4), f"the losses differ: {dict(zip(steps, losses, strict=True))}"


if __name__ == "__main__":
    for table in tables():
        table.show()
        table.write()
