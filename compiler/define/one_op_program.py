"""A program of one op with one of its indices placed, run for all devices in lockstep on a single device.

The program is lowered like any other, and each of its ops runs as on a device. Only the collectives are computed here, on
the arrays of all devices together, so no second device is needed and `jax.grad` works.

    %y = lax.f %x, its index placed over 2 devices   -->   %0 = spmd.slice %x;  %1 = lax.f %0;  %y = spmd.all_gather %1
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from jax import Array
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ...dialects.lax import OPS, LaxOp
from ...dialects.mesh import Mesh
from ...dialects.params import ParamsAttr
from ...dialects.ranges.algebra import Axis
from ...dialects.reference.interpret import Machine
from ...dialects.types import ArrayType
from ...rewrites.decide.decide import decide
from ...rewrites.decide.table import WHOLE, Claim, Table
from ...rewrites.lower.materialise import materialise
from ...rewrites.lower.to_spmd import Local
from ...rewrites.program.flatten import flatten
from ...rewrites.program.program import Program
from ..ops.bind import run_op
from .samples import Type

BlockFunction = Callable[[Sequence[Array], Sequence[Type]], Sequence[Array]]
"""(operands, types of the results) -> results: the op itself."""


def program_of(kind: str, params: ParamsAttr, ins: Sequence[Type], outs: Sequence[Type]) -> Program:
    """The program that consists of this op, on global arrays."""
    takes, gives = ([ArrayType.whole(dtype, shape) for dtype, shape in side] for side in (ins, outs))
    main = func.FuncOp("main", (takes, gives))
    op = OPS[kind].of(main.body.block.args, gives, params)
    main.body.block.add_ops([op, func.ReturnOp(*op.results)])
    return flatten(ModuleOp([main]), Mesh())


def run_in_blocks(
    program: Program, index: int, count: int, function: BlockFunction, operands: Sequence[Array]
) -> list[list[Array]]:
    """Runs the op with one index over `count` devices; for each result, the arrays that devices hold, equal ones once."""
    # The index is tiled over all devices; operands and results are replicated.
    table = Table(program)
    claims = table.touch(Axis("blocks", count))
    (node,) = program.nodes
    block = node.signature.indices[index].extent // count
    claims.nodes[node.number] = Claim(index, claims.whole.at(block), 0)
    for value in (*program.arguments, *program.returned):
        claims.values[value] = Claim(WHOLE, claims.whole, 0)
    main = cast(func.FuncOp, materialise(decide(table), Local).body.block.first_op)
    machine = _Devices(count, node.op_name, function)
    # The type checker sees NumPy arrays; here the values are JAX arrays.
    given = cast("list[list[np.ndarray]]", [[operand] * count for operand in operands])
    held = cast("list[list[Array]]", machine.block(main.body.block, given))
    return [list({id(array): array for array in value}.values()) for value in held]


@dataclass(frozen=True)
class _Devices(Machine):
    """All devices in lockstep, on JAX arrays. The tried op runs as its function, any other op as on a device."""

    kind: str
    function: BlockFunction

    def on_device(self, op: LaxOp, inputs: list[np.ndarray]) -> list[np.ndarray]:
        given = cast("list[Array]", inputs)
        if op.primitive() != self.kind:
            return cast("list[np.ndarray]", run_op(op, given, ()))
        types = [(out.dtype, out.shape) for out in cast("Sequence[ArrayType]", op.result_types)]
        return cast("list[np.ndarray]", list(self.function(given, types)))
