"""A compiled plan, called inside a `shard_map` whose other axes are Explicit."""

# What users write has no types.
# pyright: basic

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec as P

import partita as pt

X = np.ones((8, 4), np.float32)


def layer(x):
    return jnp.sin(x) * 2


step = pt.plan(layer, pt.Mesh(data=2), X).compile()
mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Explicit), devices=jax.devices()[:4])
with jax.set_mesh(mesh):
    jax.jit(jax.shard_map(step, in_specs=P(), out_specs=P(), axis_names={"data"}, check_vma=False))(X)
