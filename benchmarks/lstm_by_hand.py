"""The training step of `examples/lstm.py` on one device's rows: with ZeRO-3 each weight is gathered once, before the loop."""

from typing import Any

import jax
from jax.sharding import NamedSharding

from partita.examples import lstm

Tree = Any
Dims = dict[str, int | None]


def dims(shardings: dict[str, NamedSharding]) -> Dims:
    """The dim of each parameter that is over `data`."""
    specs = {name: tuple(each.spec) for name, each in shardings.items()}
    return {name: spec.index("data") if "data" in spec else None for name, spec in specs.items()}


def train_step(dims: Dims, params: Tree, batch: jax.Array) -> tuple[Tree, jax.Array]:
    """One step, with the dims over which the parameters are split."""
    wholes = {name: _gathered(shard, dims[name]) for name, shard in params.items()}
    value, grads = jax.value_and_grad(lstm.loss)(wholes, batch)
    grads = {name: _summed(grad, dims[name]) / jax.lax.axis_size("data") for name, grad in grads.items()}
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), jax.lax.pmean(value, "data")


def _gathered(shard: jax.Array, dim: int | None) -> jax.Array:
    return shard if dim is None else jax.lax.all_gather(shard, "data", axis=dim, tiled=True)


def _summed(grad: jax.Array, dim: int | None) -> jax.Array:
    if dim is None:
        return jax.lax.psum(grad, "data")
    return jax.lax.psum_scatter(grad, "data", scatter_dimension=dim, tiled=True)
