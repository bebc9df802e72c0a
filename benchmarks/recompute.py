"""What `recompute` saves on a TPU: the layers of a GPT computed again, by a rewrite of its step and by `jax.checkpoint`.

    pip install 'partita[tpu]'
    python -m benchmarks.recompute      # no TPU is needed: five minutes on two cores

The training step of `examples/gpt.py`, 8 layers of width 512 on 64 x 512 tokens, with data parallelism and ZeRO-3 on 16 chips.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

import partita as pt
from partita.examples import gpt

from . import tpu
from .report import Cell, Table

CONFIG = gpt.Config(vocabulary=1024, length=512, layers=8, width=512, heads=8)
BATCH = 64


def step(block: Callable[..., Any]) -> Callable[..., Any]:
    """The training step with this block, each layer in a scope of its own."""

    def loss(params: Any, batch: Any) -> jax.Array:
        x = params["embed"][batch["x"]] + params["position"][None]
        for number, each in enumerate(params["blocks"]):
            with jax.named_scope(f"block{number}"):
                x = block(x, each)
        logits = x @ params["embed"].T
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]))

    def train_step(params: Any, opt: Any, batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, batch)
        updates, opt = gpt.OPTIMIZER.update(grads, opt, params)
        return optax.apply_updates(params, updates), opt, value

    return train_step


def plans(args: tuple[Any, ...]) -> dict[str, pt.Plan]:
    tactics = pt.DataParallel("data", inputs="batch/*"), pt.ZeRO(3, "data", params="params", optimizer="opt")
    plain, remat = (
        pt.plan(step(block), pt.Mesh(data=16), *args).apply(*tactics) for block in (gpt.block, jax.checkpoint(gpt.block))
    )
    return {"stored": plain, "recompute": plain.rewrite("recompute", at="block*"), "jax.checkpoint": remat}


def table() -> Table:
    devices = tpu.devices(tpu.TOPOLOGY)
    params = jax.eval_shape(lambda: gpt.init(CONFIG))
    tokens = jax.ShapeDtypeStruct((BATCH, CONFIG.length), jnp.int32)
    args = params, jax.eval_shape(gpt.OPTIMIZER.init, params), {"x": tokens, "y": tokens}
    rows: list[list[Cell]] = []
    for name, plan in plans(args).items():
        memory = plan.compile(devices=devices).lower(*args).compile().memory_analysis()
        rows.append([name, memory.temp_size_in_bytes / 2**20, plan.counts()["all_gather"], plan.bytes_per_device() / 1e6])
    notes = [f"Compiled ahead of time. {tpu.versions()}"]
    columns = ["values of the layers", "temporaries, MiB", "all_gather", "received, MB"]
    return Table("recompute", f"Layers computed again, compiled for {tpu.TOPOLOGY}", columns, rows, notes)


if __name__ == "__main__":
    made = table()
    made.show()
    made.write()
