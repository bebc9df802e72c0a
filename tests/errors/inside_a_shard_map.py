"""A compiled plan is called where a `shard_map` has taken the axis that it is for."""

# pyright: basic

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import partita as pt


def layer(x: jax.Array) -> jax.Array:
    return jnp.tanh(x) * 2


step = pt.plan(layer, pt.Mesh(data=4), jnp.ones((8, 4))).tile("x", 0, "data").compile()
mesh = jax.make_mesh((2, 4), ("replica", "data"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
jax.shard_map(step, mesh=mesh, in_specs=P("replica"), out_specs=P("replica"))(jnp.ones((16, 4)))
