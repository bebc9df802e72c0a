"""How values travel between the programs of a graph.

If a `NamedSharding` can express the layout of a value, the value goes from node to node as that array. A value that is
pending, or whose blocks are out of order, goes as its raw local blocks, with the mesh's axes as leading dims. Numbers of less
than a byte travel as bytes, because JAX packs them inside a compiled program but not outside of it.

    f32[data*64, 8]{+model}   -->   f32[4, 2, 64, 8] over (data, model, None, None): one block a device
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, cast

from jax import Array, ShapeDtypeStruct
from jax.export import Exported
from jax.sharding import AbstractMesh, Mesh as DeviceMesh, NamedSharding, PartitionSpec
from xdsl.ir import Block

from ...dialects.mesh import Mesh
from ...dialects.types import ArrayType
from ..jax_private import jax
from ..run.collectives import BYTES
from ..run.device_code import run_local
from ..run.extended_shard_map import over_devices, spec


@dataclass(frozen=True)
class TravelForm:
    """How a value of this type is passed between programs: as a sharded array or as raw blocks, and with which dtype."""

    raw: bool
    shape: tuple[int, ...]
    local: tuple[int, ...]
    dtype: str
    travels: str
    spec: PartitionSpec

    mesh: DeviceMesh | AbstractMesh

    @classmethod
    def of(cls, type: ArrayType, mesh: Mesh, there: DeviceMesh | AbstractMesh) -> Self:
        """How a value travels. `mesh` has the axes on which it lies, or their sub-axes; `there` are its devices."""
        layout, travels = type.layout.split(mesh.places), BYTES.get(type.dtype, type.dtype)
        shape, local = layout.global_shape, layout.local_shape
        if layout.pending or layout is not layout.natural:
            # A dim for each axis, also where a program has split it into sub-axes.
            whole = mesh.whole()
            spread = PartitionSpec(*map(mesh.parts, whole))
            return cls(True, (*whole.axes.values(), *local), local, type.dtype, travels, spread, there)
        return cls(False, shape, local, type.dtype, travels, spec(layout), there)

    def unwrap(self, block: Array) -> Array:
        """Extracts one device's block from its part of the array that is passed."""
        block = block.astype(self.dtype)
        return block.reshape(self.local) if self.raw else block

    def wrap(self, local: Array) -> Array:
        local = local.astype(self.travels)
        return local.reshape((1,) * (len(self.shape) - len(self.local)) + self.local) if self.raw else local

    @cached_property
    def sharding(self) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec)

    @property
    def struct(self) -> ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self.shape, self.travels, sharding=self.sharding)


def on_blocks(
    name: str,
    block: Block,
    foreign: Sequence[object],
    takes: Sequence[TravelForm],
    gives: Sequence[TravelForm],
    there: DeviceMesh | AbstractMesh,
) -> Callable[..., Sequence[Array]]:
    """The function that runs a device-local block on each device's parts of arrays as they travel."""

    def local(*blocks: Array) -> tuple[Array, ...]:
        given = [form.unwrap(block) for form, block in zip(takes, blocks, strict=True)]
        values = run_local(block, given, foreign)
        return tuple(form.wrap(value) for form, value in zip(gives, values, strict=True))

    local.__name__ = name
    return over_devices(local, there, [form.spec for form in takes], [form.spec for form in gives])


def exported(name: str, program: Exported, gives: Sequence[TravelForm]) -> Callable[..., Sequence[Array]]:
    """The function of a program that JAX has exported, whose results lie as they travel."""

    def run(*arrays: Array) -> Sequence[Array]:
        # Any: JAX does not know what an exported program returns.
        results = cast("Sequence[Array]", cast(Any, program).call(*arrays))
        return [jax.lax.with_sharding_constraint(each, form.sharding) for each, form in zip(results, gives, strict=True)]

    run.__name__ = name
    return run
