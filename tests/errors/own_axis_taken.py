"""An axis on which a `shard_map` of the program has already placed an argument."""

# pyright: basic

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

import partita as pt

ROWS = PartitionSpec("a")


def doubled(x: jax.Array) -> jax.Array:
    mesh = AbstractMesh((2,), ("a",), axis_types=(AxisType.Auto,))
    return jax.shard_map(lambda x: x * 2.0, mesh=mesh, in_specs=ROWS, out_specs=ROWS)(x)


pt.plan(doubled, pt.Mesh(a=2), np.ones((8, 8), np.float32)).tile("x", 1, "a")
