"""A graph as a module of the flow dialect: its name, mesh, kernels, arguments and results. `Graph` adds the queries."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...dialects.array import mesh_of
from ...dialects.flow import GraphOp
from ...dialects.ground.argument_names import ARGUMENTS, RESULTS, names_of
from ...dialects.mesh import Mesh
from ..trace.trace import Traced


@dataclass(frozen=True, eq=False)
class GraphModule:
    """The module of a graph, and the function that it came from; None if the graph was read from text.

    `arguments` and `results` are the names of their leaves.
    """

    module: ModuleOp
    traced: Traced | None = None

    @property
    def op(self) -> GraphOp:
        return cast(GraphOp, self.module.body.block.first_op)

    @property
    def foreign(self) -> tuple[object, ...]:
        """The parameters that have no text. A graph that was read from text has none."""
        return self.traced.foreign if self.traced is not None else ()

    @property
    def name(self) -> str:
        return self.op.sym_name.data

    @cached_property
    def mesh(self) -> Mesh:
        return mesh_of(self.op)

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
