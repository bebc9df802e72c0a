"""Runs a device-local function over a mesh: `jax.shard_map`, extended to cases that JAX's own does not handle.

    over_devices(f, mesh, [P("data")], [P()])(x)    -->    f(x[0:64]) on the first of four devices, f(x[64:128]) on the next

The program that calls a plan may have another mesh. Values cross from it to the plan's mesh and back.

JAX has one mesh at a time: that of `jax.set_mesh`, or that of the `shard_map` around. If it has `Explicit` axes, the type of
each value says how the value lies on them, and JAX refuses values of another mesh.

    f32[512@z, 8]   -- entered -->   f32[512, 8] on the plan's mesh   -- the plan, returned -->   f32[512@z, 8]
"""

import functools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import takewhile
from math import prod
from typing import NamedTuple

from jax import Array, ShapeDtypeStruct
from jax.core import ShapedArray
from jax.sharding import AbstractMesh, AxisType, Mesh as DeviceMesh, NamedSharding, PartitionSpec

from ...dialects.ground.errors import Error, Location
from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ..jax_private import device_context, empty_concrete_mesh, get_concrete_mesh, jax, jnp, lax, varying_axes
from ..ops.shard_map import dims_of

Axes = tuple[str, ...]
"""The axes of one dim, major to minor."""


def over_devices(
    local: Callable[..., Sequence[Array]],
    mesh: DeviceMesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    location: Location | None = None,
) -> Callable[..., Sequence[Array]]:
    """Makes a function of global arrays that runs `local` on each device's blocks.

    It uses the given mesh, even if `jax.set_mesh` sets another one for the rest of the program. Inside a user's `shard_map` it
    uses the axes that are left there. Raises Error, at the location, if the program's mesh has no place for it.
    """
    shardings, axes = [NamedSharding(mesh, each) for each in in_specs], mesh.axis_names

    def full(mesh: DeviceMesh | AbstractMesh, leaves: Sequence[Array]) -> Sequence[Array]:
        """Calls the `shard_map` on these leaves. Devices create empty ones: XLA drops a kernel that takes only such arrays."""
        void = _empty_blocks(leaves, in_specs, mesh)
        present = [place for place in range(len(leaves)) if place not in void]

        @functools.wraps(local)
        def on_blocks(*blocks: Array) -> Sequence[Array]:
            made = {place: jnp.zeros(each.shape, each.dtype) for place, each in void.items()}
            given = dict(zip(present, map(unvarying, blocks), strict=True)) | made
            # XLA refuses a callback on one device in a program that takes arrays and returns none.
            return local(*(given[place] for place in range(len(given)))) or (jnp.zeros((), bool),)

        ends = tuple(out_specs) or (PartitionSpec(),)
        specs = {"in_specs": tuple(in_specs[place] for place in present), "out_specs": ends}
        mapped = jax.shard_map(on_blocks, mesh=mesh, axis_names=set(axes), **specs, check_vma=False) if axes else on_blocks
        return mapped(*(leaves[place] for place in present))[: len(out_specs)]

    @functools.wraps(local)
    def run(*leaves: Array) -> Sequence[Array]:
        if is_inside():
            return full(enclosing_mesh(mesh.abstract_mesh, location), leaves)
        check_size(mesh.abstract_mesh, location)
        with on_no_mesh(), jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            return full(mesh, tuple(map(entered, leaves, shardings)))

    return run


def _empty_blocks(
    leaves: Sequence[Array], specs: Sequence[PartitionSpec], mesh: DeviceMesh | AbstractMesh
) -> dict[int, ShapeDtypeStruct]:
    """The block that a device has of each array without elements, by the place of the array."""
    return {
        place: ShapeDtypeStruct(NamedSharding(mesh, spec).shard_shape(leaf.shape), leaf.dtype)
        for place, (leaf, spec) in enumerate(zip(leaves, specs, strict=True))
        if not leaf.size
    }


def spec(layout: Layout, rank: int | None = None) -> PartitionSpec:
    """Converts a layout to a PartitionSpec: the axes of each of the first `rank` dims, major to minor."""
    dims = range(layout.rank if rank is None else rank)
    return PartitionSpec(*(tuple(factor.axis.on_devices for factor in layout.at(dim)) or None for dim in dims))


def described(mesh: Mesh) -> AbstractMesh:
    """JAX's form of a mesh without devices."""
    return AbstractMesh(tuple(mesh.axes.values()), tuple(mesh), axis_types=(AxisType.Auto,) * len(mesh))


def on_no_mesh() -> AbstractContextManager[object]:
    """A context without a mesh. What is traced in it can run under any mesh."""
    return jax.sharding.use_abstract_mesh(AbstractMesh((), ()))


def on_own_devices() -> AbstractContextManager[object]:
    """A context in which programs are compiled, and run, on their own devices, whatever `jax.set_mesh` says."""
    return nullcontext() if get_concrete_mesh().empty else _on_own_devices()


@contextmanager
def _on_own_devices() -> Generator[None]:
    before = device_context.swap_local(empty_concrete_mesh)
    try:
        with on_no_mesh():
            yield
    finally:
        device_context.set_local(before)


def is_inside() -> bool:
    """Whether the code runs inside of the body of a `shard_map`."""
    return AxisType.Manual in jax.sharding.get_abstract_mesh().axis_types


def is_explicit(array: object) -> bool:
    """Whether the type of an array gives its layout over `Explicit` axes, which XLA cannot change."""
    return isinstance(array, jax.Array) and AxisType.Explicit in jax.typeof(array).sharding.mesh.axis_types


def given(array: Array) -> Array:
    """Replicates an argument that is not placed, if the program's mesh has `Explicit` axes, as JAX does."""
    mesh = jax.sharding.get_abstract_mesh()
    if AxisType.Explicit not in mesh.axis_types or not jax.typeof(array).sharding.mesh.empty:
        return array
    return jax.sharding.reshard(array, NamedSharding(mesh, PartitionSpec()))


def entered(array: Array, sharding: NamedSharding) -> Array:
    """Moves an argument to the plan's mesh, as the plan wants it, if its type has `Explicit` axes of the program's mesh.

    f32[512@z, 8]   -->   f32[512, 8]
    """
    if not is_explicit(array):
        return array
    moved = jax.sharding.reshard(array, NamedSharding(sharding.mesh, PartitionSpec()))
    return jax.lax.with_sharding_constraint(moved, sharding)


class Gathered(NamedTuple):
    """A result that the program's mesh cannot lay out as the plan does: its sharding by the plan, and the part that is kept."""

    layout: NamedSharding
    kept: NamedSharding


def to_program_mesh(array: Array, layout: NamedSharding) -> tuple[Array, Gathered | None]:
    """Moves a result of the plan to the program's mesh, if that has `Explicit` axes. `layout` is its sharding by the plan.

    Its type then names the program's axes in place of the plan's. A dim is gathered over plan axes that the program's axes
    cannot express, and over the axes minor to these.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if AxisType.Explicit not in mesh.axis_types or is_inside():
        return array, None
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    blocks = _same_blocks(dims_of(layout.spec, array.ndim)[: array.ndim], layout.mesh.abstract_mesh, mesh)
    said = [tuple(takewhile(lambda axis: kinds[axis] is AxisType.Explicit, axes)) for axes, _ in blocks]
    # XLA keeps what Auto axes tile, but no type can say it.
    is_kept = all(
        is_same and all(kinds[axis] is AxisType.Auto for axis in axes[len(own) :])
        for own, (axes, is_same) in zip(said, blocks, strict=True)
    )
    if AxisType.Auto in kinds.values():
        # Or XLA might lay a dim out over a part of an Auto axis, and JAX ends in an error.
        auto = AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=(AxisType.Auto,) * len(kinds))
        with on_no_mesh():
            array = jax.lax.with_sharding_constraint(array, NamedSharding(auto, PartitionSpec(*(axes for axes, _ in blocks))))
    kept = NamedSharding(mesh, PartitionSpec(*said))
    return jax.sharding.reshard(array, kept), None if is_kept else Gathered(layout, kept)


def typed(array: Array, aval: ShapedArray) -> Array:
    """Gives an array this type: its layout on `Explicit` axes, and the axes of a `shard_map` along which it varies."""
    wanted = aval.sharding
    if AxisType.Explicit in wanted.mesh.axis_types and jax.typeof(array).sharding != wanted:
        array = jax.sharding.reshard(array, wanted)
    return varying(array, varying_axes(aval))


def varying(array: Array, axes: Iterable[str]) -> Array:
    """Marks an array as varying along these axes of an enclosing `shard_map`, in whose body types record that."""
    missing = tuple(axis for axis in axes if axis not in varying_axes(jax.typeof(array)))
    return jax.lax.pcast(array, missing, to="varying") if missing else array


def unvarying(block: Array) -> Array:
    """Removes varying axes from a block's type. JAX does not track them through the ops of a plan."""
    if not varying_axes(jax.typeof(block)):
        return block
    return lax.reshape_p.bind(block, new_sizes=block.shape, dimensions=None, sharding=None)


def check_size(mesh: AbstractMesh, location: Location | None) -> None:
    """Raises Error if the program's mesh has another number of devices: JAX runs a whole program on one mesh."""
    theirs = jax.sharding.get_abstract_mesh()
    if theirs.empty or theirs.size == mesh.size:
        return
    own, set_ = mesh_text(mesh.shape), mesh_text(theirs.shape)
    raise Error(
        f"the plan is for the mesh {own or 'of one device'}, but `jax.set_mesh` sets the mesh {set_}",
        location=location,
        notes=[f"they have {mesh.size} and {theirs.size} devices"],
        helps=["plan for a mesh of as many devices", "or call the plan outside of `with jax.set_mesh(...)`"],
    )


def enclosing_mesh(mesh: AbstractMesh, location: Location | None) -> AbstractMesh:
    """The mesh of the enclosing `shard_map`. Raises Error unless it leaves all axes of the plan's mesh to XLA."""
    theirs = jax.sharding.get_abstract_mesh()
    kinds = dict(zip(theirs.axis_names, theirs.axis_types, strict=True))
    left = {axis: size for axis, size in theirs.shape.items() if kinds[axis] is AxisType.Auto}
    if all(left.get(axis) == size for axis, size in mesh.shape.items()):
        return theirs
    explicit = {axis: size for axis, size in theirs.shape.items() if kinds[axis] is AxisType.Explicit}
    own, whole, rest, typed = map(mesh_text, (mesh.shape, theirs.shape, left, explicit))
    if rest:
        cure = f"plan for them: pt.Mesh({rest})"
    elif typed:
        cure = f"make the others Auto axes: jax.make_mesh(..., axis_types=...), here {typed}"
    else:
        cure = "leave it axes of the mesh: jax.shard_map(..., axis_names={...})"
    raise Error(
        f"the plan is for the mesh {own}, but is called inside a `shard_map` on the mesh {whole}",
        location=location,
        notes=[
            f"a plan runs on the axes that a `shard_map` leaves to XLA, and this one leaves {rest or 'none'}",
            *([f"axes that are Explicit are not left to XLA: {typed}"] if typed else []),
        ],
        helps=[cure, "or call the plan outside of the `shard_map`"],
    )


def mesh_text(axes: Mapping[str, int]) -> str:
    """The axes of a mesh with their sizes, in text: `data=4, model=2`."""
    return ", ".join(f"{axis}={size}" for axis, size in axes.items())


def _same_blocks(dims: Sequence[Axes], mesh: AbstractMesh, theirs: AbstractMesh) -> Sequence[tuple[Axes, bool]]:
    """For each dim, the axes of `theirs` that cut it into the same blocks, and whether the blocks are the same.

    Axes over the same devices count: `data*model` of data=4, model=2 is `z` of z=8. If there are none, axes that cut the dim
    into fewer, larger blocks are taken, and are not the same: `data` becomes `u` if theirs is u=2, v=4.
    """
    if all(theirs.shape.get(axis) == mesh.shape[axis] for axes in dims for axis in axes):
        return [(axes, True) for axes in dims]
    strides = _strides(theirs)
    at = {strides[axis] * size: axis for axis, size in theirs.shape.items() if size > 1}

    def same(runs: Iterable[tuple[int, int]]) -> tuple[Axes, bool]:
        found: Axes = ()
        for stride, size in runs:
            end = stride * size
            while end > stride:
                axis = at.get(end)
                if axis is None or strides[axis] < stride:
                    return found, False
                found, end = (*found, axis), strides[axis]
        return found, True

    return [same(_device_strides(axes, mesh)) for axes in dims]


def _device_strides(axes: Sequence[str], mesh: AbstractMesh) -> list[tuple[int, int]]:
    """The (stride, size) of these axes in the numbering of devices. Axes that follow each other are merged."""
    strides, found = _strides(mesh), list[tuple[int, int]]()
    for axis in axes:
        stride, size = strides[axis], mesh.shape[axis]
        if found and found[-1][0] == stride * size:
            size *= found.pop()[1]
        found.append((stride, size))
    return found


def _strides(mesh: AbstractMesh) -> dict[str, int]:
    """The number of devices between neighbours along each axis."""
    sizes = list(mesh.shape.values())
    return {axis: prod(sizes[number + 1 :]) for number, axis in enumerate(mesh.shape)}
