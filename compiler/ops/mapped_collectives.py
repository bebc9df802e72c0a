"""Collectives of a `shard_map` run by `jax.vmap`, where JAX has no rule: over several axes, in groups, or to some devices only.

Each is a function of the arrays of all devices and of a device's own number among them. `all_gather` provides both, one axis
after another:

    ppermute(x, ("a", "b"), [(0, 1), ...])   -->   all_gather(x, ("a", "b"))[0] where axis_index(("a", "b")) is 1, ...
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jax import Array

from ..jax_private import jnp, lax

Params = Mapping[str, Any]
"""The parameters of the JAX primitive."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceGroup:
    """The arrays of a group of devices, stacked along a new first dim, and this device's position in the group."""

    arrays: Array
    size: int
    position: Array

    @property
    def own_shape(self) -> tuple[int, ...]:
        return self.arrays.shape[1:]

    def part(self, dim: int, tiled: bool) -> Array:
        """This device's part of a dim of all arrays: a block of it, or with `tiled` false one index."""
        if not tiled:
            return lax.dynamic_index_in_dim(self.arrays, self.position, dim + 1, keepdims=False)
        block = self.own_shape[dim] // self.size
        return lax.dynamic_slice_in_dim(self.arrays, self.position * block, block, dim + 1)


def together(x: Array, dim: int, tiled: bool) -> Array:
    """Moves the first dim to `dim`; if `tiled`, it is merged with that dim, as the major part."""
    moved = jnp.moveaxis(x, 0, dim)
    shape = moved.shape
    return moved.reshape(*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]) if tiled else moved


def _sum(arrays: Array) -> Array:
    return jnp.sum(arrays, 0, dtype=arrays.dtype)


def _permute(group: DeviceGroup, perm: Sequence[tuple[int, int]]) -> Array:
    source = np.full(group.size, -1)
    for start, end in perm:
        source[end] = start
    here = jnp.asarray(source)[group.position]
    received = lax.dynamic_index_in_dim(group.arrays, jnp.maximum(here, 0), 0, keepdims=False)
    return jnp.where(here < 0, jnp.zeros_like(received), received)


_KINDS: Mapping[str, Callable[[DeviceGroup, Params], Array]] = {
    "psum": lambda group, _: _sum(group.arrays),
    "pmax": lambda group, _: jnp.max(group.arrays, 0),
    "pmin": lambda group, _: jnp.min(group.arrays, 0),
    **dict.fromkeys(
        ("all_gather", "all_gather_invariant"),
        lambda group, how: together(group.arrays, how["all_gather_dimension"], how["tiled"]),
    ),
    "reduce_scatter": lambda group, how: _sum(group.part(how["scatter_dimension"], how["tiled"])),
    # JAX adds and removes a dim around the primitive where it is not tiled.
    "all_to_all": lambda group, how: together(group.part(how["split_axis"], True), how["concat_axis"], True),
    "ppermute": lambda group, how: _permute(group, how["perm"]),
}


def has_rule(primitive: str, params: Params) -> bool:
    """Whether `jax.vmap` can run this op: no collective, one over all devices of an axis, or a fold over several axes."""
    if primitive not in _KINDS:
        return True
    if params.get("axis_index_groups"):
        return False
    if primitive in ("psum", "pmax", "pmin"):
        return True
    axes = _axes(params)
    return len(axes) == 1 and (primitive != "ppermute" or len(params["perm"]) == lax.axis_size(axes[0]))


def run_under_vmap(primitive: str, params: Params, x: Array, order: Sequence[str]) -> Array:
    """What the collective returns on this device. `order` lists the mesh's axes: a permute numbers devices in that order."""
    axes = _axes(params)
    if primitive == "ppermute":
        axes = tuple(sorted(axes, key=order.index))
    return _KINDS[primitive](_group(x, axes, params.get("axis_index_groups")), params)


def _axes(params: Params) -> tuple[str, ...]:
    given = params["axes"] if "axes" in params else params["axis_name"]
    return (given,) if isinstance(given, str) else tuple(given)


def _group(x: Array, axes: Sequence[str], groups: Sequence[Sequence[int]] | None) -> DeviceGroup:
    for axis in reversed(axes):
        x = lax.all_gather(x, axis)
    size = prod(x.shape[: len(axes)])
    arrays, number = x.reshape(size, *x.shape[len(axes) :]), lax.axis_index(tuple(axes))
    if not groups:
        return DeviceGroup(arrays, size, number)
    members = np.array(groups)
    # Of each device: its group, and its position there.
    found = np.argsort(members.ravel())
    own, position = jnp.asarray(np.divmod(found, members.shape[1]))[:, number]
    return DeviceGroup(jnp.take(arrays, jnp.asarray(members)[own], 0), members.shape[1], position)
