"""A device-local function over a mesh: `jax.shard_map`, extended to cases that JAX's does not handle.

over_devices(f, mesh, [P("data")], [P()])(x)    -->    f(x[0:64]) on the first of four devices, f(x[64:128]) on the next
"""

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from jax import Array
from jax.sharding import AbstractMesh, AxisType, Mesh as DeviceMesh, NamedSharding, PartitionSpec

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ..jax_private import jax, jnp

T = TypeVar("T")


def over_devices(
    local: Callable[..., Sequence[Array]],
    mesh: DeviceMesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
) -> Callable[..., Sequence[Array]]:
    """The function of global arrays that runs `local` on each device's blocks.

    It uses the given mesh, even if `jax.set_mesh` sets another one for the rest of the program. Inside a user's `shard_map`
    JAX raises an error, because a second one cannot use all devices.
    """

    @functools.wraps(local)
    def run(*leaves: Array) -> Sequence[Array]:
        leaves = tuple(untied(leaf, mesh.abstract_mesh) for leaf in leaves)
        mapped = _full(local, mesh, in_specs, out_specs, leaves)
        if AxisType.Manual in jax.sharding.get_abstract_mesh().axis_types:
            return mapped(*leaves)
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            return mapped(*leaves)

    return run


def untied(leaf: T, mesh: AbstractMesh | None = None) -> T:
    """The array, with the `Explicit` axes of a user's mesh removed from its type; XLA chooses its sharding.

    Its type is then on `mesh`, or on its own mesh with `Auto` axes.

        f32[512@z, 8]   -->   f32[512, 8]
    """
    axes = jax.typeof(leaf).sharding.mesh.axis_types if isinstance(leaf, jax.Array) else ()
    if AxisType.Explicit not in axes or AxisType.Manual in axes:
        return leaf
    if mesh is not None:
        return jax.sharding.reshard(leaf, NamedSharding(mesh, PartitionSpec()))
    sharding = cast(NamedSharding, cast(Array, leaf).sharding)
    there = cast(DeviceMesh, sharding.mesh)
    return jax.device_put(leaf, NamedSharding(DeviceMesh(there.devices, there.axis_names), sharding.spec))


def _full(
    local: Callable[..., Sequence[Array]],
    mesh: DeviceMesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    leaves: Sequence[Array],
) -> Callable[..., Sequence[Array]]:
    """The `shard_map`. Empty arrays are created on the devices, because XLA drops a kernel that takes only empty arrays."""
    full = [place for place, leaf in enumerate(leaves) if leaf.size]
    void = {
        place: jax.ShapeDtypeStruct(NamedSharding(mesh, spec).shard_shape(leaf.shape), leaf.dtype)
        for place, (leaf, spec) in enumerate(zip(leaves, in_specs, strict=True))
        if not leaf.size
    }

    @functools.wraps(local)
    def filled(*blocks: Array) -> Sequence[Array]:
        made = {place: jnp.zeros(each.shape, each.dtype) for place, each in void.items()}
        given = dict(zip(full, blocks, strict=True)) | made
        return local(*(given[place] for place in range(len(given))))

    mapped = jax.shard_map(
        filled, mesh=mesh, in_specs=tuple(in_specs[place] for place in full), out_specs=tuple(out_specs), check_vma=False
    )
    return lambda *leaves: mapped(*(leaves[place] for place in full))


def spec(layout: Layout, mesh: Mesh, rank: int | None = None) -> PartitionSpec:
    """The layout as a PartitionSpec: the axes of each of the first `rank` dims, major to minor."""
    dims = range(layout.rank if rank is None else rank)
    return PartitionSpec(*(tuple(factor.name for factor in layout.at(dim, mesh)) or None for dim in dims))
