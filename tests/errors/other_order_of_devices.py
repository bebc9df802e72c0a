"""An argument that is committed to the same devices in another order."""

# JAX annotates its functions only in part.
# pyright: basic

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import partita as pt


def step(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return x @ params["w"]


PARAMS, X = {"w": np.ones((8, 16), np.float32)}, np.ones((256, 8), np.float32)
plan = pt.plan(step, pt.Mesh(data=4, model=2), PARAMS, X).tile("x", 0, "data")
reverse = NamedSharding(Mesh(np.array(jax.devices()[::-1]), ("all",)), PartitionSpec("all"))
plan.compile()(PARAMS, jax.device_put(X, reverse))
