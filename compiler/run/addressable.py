"""Arrays of which other processes have some parts, or all.

JAX calls the devices of this process addressable. A program in several processes is the same in each of them, and so are its
arrays: a process has the parts of an array that are on its devices.

    f32[8] over left, which is in process 0   -->   in process 1 the same array, without a part
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, cast

import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from ..jax_private import Device, jax, jnp
from ..ops.prng_keys import unwrap


def process_of(device: Device) -> int:
    """The number of the process that a device belongs to."""
    # Any: JAX's devices have no types.
    return cast(Any, device).process_index


def is_here(device: Device) -> bool:
    """Whether a device is one of this process."""
    return process_of(device) == jax.process_index()


def devices_of(sharding: Sharding) -> Set[Device]:
    """All devices of a sharding."""
    # Any: JAX's shardings have no types.
    return cast(Any, sharding).device_set


def assembled(shape: tuple[int, ...], dtype: str, sharding: NamedSharding, blocks: Sequence[Array]) -> Array:
    """The array of the blocks that the devices of this process have."""
    return jax.make_array_from_single_device_arrays(shape, sharding, blocks, dtype=jnp.dtype(dtype))


def replicated(array: Array) -> Array:
    """The array, whole on each of its devices."""
    if array.is_fully_replicated:
        return array
    mesh = cast(NamedSharding, array.sharding).mesh
    return jax.jit(jnp.positive, out_shardings=NamedSharding(mesh, PartitionSpec()))(array)


def fetched(array: Array) -> np.ndarray:
    """Fetches a whole array. If other processes have parts of it, all processes must fetch it at the same time.

    What is not committed is a process's own, as results of `jax.jit` are for arrays of NumPy.
    """
    array = unwrap(array)
    if jax.process_count() == 1 or not getattr(array, "committed", False):
        return np.asarray(array)
    from jax.experimental.multihost_utils import broadcast_one_to_all

    owners = {*map(process_of, devices_of(array.sharding))}
    own = np.zeros(array.shape, array.dtype)
    if jax.process_index() in owners:
        own = np.asarray(replicated(array))
    if len(owners) == jax.process_count():
        return own
    # Any: JAX has no type for it.
    return np.asarray(cast(Any, broadcast_one_to_all)(own, is_source=jax.process_index() == min(owners)))
