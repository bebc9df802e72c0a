"""A device-local function over a mesh: `jax.shard_map`, extended to cases that JAX's does not handle.

over_devices(f, mesh, [P("data")], [P()])(x)    -->    f(x[0:64]) on the first of four devices, f(x[64:128]) on the next
"""

import functools
from collections.abc import Callable, Sequence

from jax import Array
from jax.sharding import AbstractMesh, Mesh as DeviceMesh, NamedSharding, PartitionSpec

from ...dialects.errors import Location
from ...dialects.layouts import Layout
from ..jax_private import jax, jnp
from .program_mesh import around, check_size, entered, is_inside, on_no_mesh, unvarying


def over_devices(
    local: Callable[..., Sequence[Array]],
    mesh: DeviceMesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    location: Location | None = None,
) -> Callable[..., Sequence[Array]]:
    """The function of global arrays that runs `local` on each device's blocks.

    It uses the given mesh, even if `jax.set_mesh` sets another one for the rest of the program. Inside a user's `shard_map` it
    uses the axes that are left there. Raises Error, at the location, if the program's mesh has no place for it.
    """
    shardings = [NamedSharding(mesh, each) for each in in_specs]

    @functools.wraps(local)
    def run(*leaves: Array) -> Sequence[Array]:
        if is_inside():
            return _full(local, around(mesh.abstract_mesh, location), mesh.axis_names, in_specs, out_specs, leaves)(*leaves)
        check_size(mesh.abstract_mesh, location)
        with on_no_mesh(), jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            leaves = tuple(map(entered, leaves, shardings))
            return _full(local, mesh, mesh.axis_names, in_specs, out_specs, leaves)(*leaves)

    return run


def _full(
    local: Callable[..., Sequence[Array]],
    mesh: DeviceMesh | AbstractMesh,
    axes: Sequence[str],
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    leaves: Sequence[Array],
) -> Callable[..., Sequence[Array]]:
    """The `shard_map` over these axes of the mesh.

    Empty arrays are created on the devices, because XLA drops a kernel that takes only empty arrays.
    """
    full = [place for place, leaf in enumerate(leaves) if leaf.size]
    void = {
        place: jax.ShapeDtypeStruct(NamedSharding(mesh, spec).shard_shape(leaf.shape), leaf.dtype)
        for place, (leaf, spec) in enumerate(zip(leaves, in_specs, strict=True))
        if not leaf.size
    }

    @functools.wraps(local)
    def filled(*blocks: Array) -> Sequence[Array]:
        made = {place: jnp.zeros(each.shape, each.dtype) for place, each in void.items()}
        given = dict(zip(full, map(unvarying, blocks), strict=True)) | made
        return local(*(given[place] for place in range(len(given))))

    specs = {"in_specs": tuple(in_specs[place] for place in full), "out_specs": tuple(out_specs)}
    mapped = jax.shard_map(filled, mesh=mesh, axis_names=set(axes), **specs, check_vma=False) if axes else filled
    return lambda *leaves: mapped(*(leaves[place] for place in full))


def spec(layout: Layout, rank: int | None = None) -> PartitionSpec:
    """The layout as a PartitionSpec: the axes of each of the first `rank` dims, major to minor."""
    dims = range(layout.rank if rank is None else rank)
    return PartitionSpec(*(tuple(str(factor.place) for factor in layout.at(dim)) or None for dim in dims))
