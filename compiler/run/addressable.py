"""Arrays of which other processes have some parts, or all: how this process puts them on devices, and fetches them.

JAX calls the devices of this process addressable. A program in several processes is the same in each of them, and so are its
arrays: a process has the parts of an array that are on its devices.

    f32[8] over left, which is in process 0   -->   in process 1 the same array, without a part
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec

from ...dialects.ground.errors import Error
from ..jax_private import Device, jax, jnp
from ..ops.prng_keys import unwrap


def process_of(device: Device) -> int:
    """The number of the process that a device belongs to."""
    # Any: JAX's devices have no types.
    return cast(Any, device).process_index


def is_here(device: Device) -> bool:
    """Whether a device is one of this process."""
    return process_of(device) == jax.process_index()


def put(array: Array | np.ndarray, sharding: NamedSharding) -> Array:
    """Puts an array on devices. One that only this process has, as NumPy's, is the same in each process.

    Raises Error for an array on the devices of other processes that is wanted on other ones: only transfers move that.
    """
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    if isinstance(array, Array) and not array.is_fully_addressable:
        # Any: JAX's shardings have no types.
        if cast(Any, array.sharding).device_set != cast(Any, sharding).device_set:
            raise Error(
                "an array lies on devices of other processes, and is wanted elsewhere",
                helps=["call the kernel that makes it and the one that takes it in one pt.program: it transfers the array"],
            )
        return jax.device_put(array, sharding)
    return jax.make_array_from_callback(array.shape, sharding, np.asarray(array).__getitem__, dtype=array.dtype)


def fetched(array: Array) -> np.ndarray:
    """Fetches a whole array. If other processes have parts of it, all processes must fetch it at the same time.

    What is not committed is a process's own, as results of `jax.jit` are for arrays of NumPy.
    """
    array = unwrap(array)
    if jax.process_count() == 1 or not getattr(array, "committed", False):
        return np.asarray(array)
    from jax.experimental.multihost_utils import broadcast_one_to_all

    # Any: JAX's shardings have no types.
    owners = {process_of(device) for device in cast(Any, array.sharding).device_set}
    own = np.zeros(array.shape, array.dtype)
    if jax.process_index() in owners:
        own = np.asarray(array if array.is_fully_addressable else _whole(array))
    if len(owners) == jax.process_count():
        return own
    return np.asarray(cast(Any, broadcast_one_to_all)(own, is_source=jax.process_index() == min(owners)))


def _whole(array: Array) -> Array:
    """The array, whole on each of its devices."""
    if array.is_fully_replicated:
        return array
    mesh = cast(NamedSharding, array.sharding).mesh
    return jax.jit(jnp.positive, out_shardings=NamedSharding(mesh, PartitionSpec()))(array)
