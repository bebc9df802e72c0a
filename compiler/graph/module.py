"""A graph as a module of the flow dialect: its name, mesh, kernels, arguments and results. `Graph` adds the queries."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, cast

import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.export import Exported
from jax.sharding import AbstractMesh, Mesh as DeviceMesh
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...dialects.array import mesh_of, meshes_of
from ...dialects.flow import GraphOp, KernelOp, RedistributeOp, is_joined
from ...dialects.ground.argument_names import ARGUMENTS, RESULTS, names_of
from ...dialects.mesh import Mesh, with_parts
from ...dialects.op_text import array_types
from ...dialects.types import ArrayType
from ...rewrites.lower.to_flow import change
from ..inputs.lines import SourceLine
from ..inputs.names import Patterns
from ..trace.trace import Traced
from .travel import TravelForm, exported, on_blocks


class Caller(Protocol):
    """How a graph is called like a function."""

    @property
    def consts(self) -> Sequence[Array | np.ndarray]:
        """The arrays that it closes over, the last arguments of the graph."""
        ...

    @property
    def takes(self) -> Sequence[tuple[str, ShapedArray]]:
        """The name and the type of each leaf of a call's arguments."""
        ...

    def flatten(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[Array]:
        """The leaves of a call's arguments, as the program takes them."""
        ...

    def takes_as_given(self, args: Sequence[object]) -> bool:
        """Whether the leaves of these arguments are what the program takes, in its order. They fit, as `flatten` says."""
        ...

    def unflatten(self, leaves: Sequence[Array]) -> object:
        """The result of a call, of the results of the program."""
        ...

    def donates(self, given: Patterns) -> Collection[str]:
        """The arguments that a call may overwrite: the given ones, and those of the function itself."""
        ...


@dataclass(frozen=True, eq=False)
class GraphModule:
    """The module of a graph, and the function that it came from; None if the graph was read from text.

    `arguments` and `results` are the names of their leaves.
    """

    module: ModuleOp
    traced: Traced | None = None
    own: Mapping[str, tuple[object, ...]] = field(default_factory=dict[str, tuple[object, ...]])
    """Of a program of several kernels: the parameters without text of each kernel that has any."""
    lines: Mapping[int, SourceLine] = field(default_factory=dict[int, SourceLine])
    """Of a program of several kernels: the line for which each node runs, by the number of the node."""
    exported: Mapping[Hashable, Exported] = field(default_factory=dict[Hashable, Exported])
    """Of a saved graph: its kernels, which have no bodies."""
    saved: Caller | None = None
    """How a saved graph is called."""

    @property
    def op(self) -> GraphOp:
        return cast(GraphOp, self.module.body.block.first_op)

    @cached_property
    def is_joined(self) -> bool:
        """Whether each kernel says its own mesh: a program of several kernels, perhaps on several device sets."""
        return is_joined(self.op, self.kernels.values())

    @property
    def name(self) -> str:
        return self.op.sym_name.data

    @property
    def caller(self) -> Caller | None:
        """How the graph is called; None if it takes and returns arrays by position."""
        return self.traced if self.saved is None else self.saved

    @cached_property
    def sets(self) -> dict[str, Mesh]:
        """The device sets by name, each as a mesh whose axes are whole. A graph of one plan is on one set without a name."""
        if not self.is_joined:
            return {"": mesh_of(self.op)}
        found = dict[str, Mesh]()
        for mesh in meshes_of(self.op, self.kernels.values()):
            found.setdefault(mesh.devices, mesh.whole())
        return found

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        return self._names(ARGUMENTS, len(self.op.body.block.args))

    @cached_property
    def results(self) -> tuple[str, ...]:
        return self._names(RESULTS, len(self.op.function_type.outputs))

    def _names(self, key: str, count: int) -> tuple[str, ...]:
        return names_of(self.op, key) or tuple(map(str, range(count)))

    @cached_property
    def kernels(self) -> dict[str, FuncOp]:
        """The device-local functions by name. Equal kernels share one function."""
        return {op.sym_name.data: op for op in self.module.body.block.ops if isinstance(op, FuncOp)}


def name_of(op: Operation) -> str:
    """The name of a node: that of its kernel, or what it does."""
    return op.name_of_kernel if isinstance(op, KernelOp) else op.name.removeprefix("flow.")


def program_key(op: Operation) -> Hashable:
    """What nodes have in common that share one program."""
    path = op.path if isinstance(op, RedistributeOp) else None
    return name_of(op), tuple(op.operand_types), tuple(op.result_types), path


def program_of(
    graph: GraphModule,
    op: Operation,
    takes: Sequence[TravelForm],
    gives: Sequence[TravelForm],
    there: DeviceMesh | AbstractMesh,
) -> Callable[..., Sequence[Array]]:
    """The function of a kernel or a redistribution, on arrays as they travel."""
    name = name_of(op)
    if isinstance(op, KernelOp) and graph.exported:
        return exported(name, graph.exported[program_key(op)], gives)
    local = change(op) if isinstance(op, RedistributeOp) else graph.kernels[name]
    return on_blocks(name, local.body.block, foreign_of(graph, name), takes, gives, there)


def foreign_of(graph: GraphModule, kernel: str) -> tuple[object, ...]:
    """The parameters of a kernel that have no text. A graph that was read from text has none."""
    if graph.is_joined or graph.traced is None:
        return graph.own.get(kernel, ())
    return graph.traced.foreign


def mesh_at(graph: GraphModule, op: Operation) -> Mesh:
    """The mesh of a node: that of its kernel, or of its set, with the sub-axes on which its values lie."""
    if isinstance(op, KernelOp):
        return mesh_of(graph.kernels[op.name_of_kernel])
    return mesh_of_types(graph, *array_types((*op.operands, *op.results)))


def set_at(graph: GraphModule, op: Operation) -> str:
    """The name of the set on which a node makes what it makes; empty in a graph on one set without a name."""
    types = array_types((*op.results, *op.operands))
    if isinstance(op, KernelOp) and graph.is_joined:
        return mesh_of(graph.kernels[op.name_of_kernel]).devices
    return types[0].on if types else ""


def mesh_of_types(graph: GraphModule, *types: ArrayType) -> Mesh:
    """The mesh of values on one set, with the sub-axes on which they lie."""
    return with_parts(graph.sets[types[0].on], (axis for type in types for axis in type.layout.named))
