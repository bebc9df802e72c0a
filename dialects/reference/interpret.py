"""The interpreter: runs a program in NumPy, at every stage of its lowering.

A traced program runs on whole arrays. A placed program, its kernels and its graph run on all devices in lockstep, with one
array per device for each value. Loops run one iteration after another. The interpreter is the oracle of the tests: slow,
plain, and independent of the compiler's rules and tables.

    interpret(plan.ir(), arrays)   -->   the results of the program on whole arrays
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from .. import array, flow, lax, spmd
from ..array import MESH, Barrier, Coordinate, enclosing_ops, mesh_of
from ..ground.amounts import counted
from ..ground.dtypes import Array, dtype_of
from ..ground.errors import Error
from ..mesh import Mesh
from ..types import ArrayType
from .evaluate import evaluate
from .lockstep import DeviceArrays, collect, cut, distribute, groups, rank, redistribute


def interpret(program: Operation, args: Sequence[Array], mesh: Mesh | None = None) -> list[Array]:
    """Runs a program on whole arrays, distributing the arguments and collecting the results by the program's types.

    `program` is a `func.func`, a `flow.graph`, or a module; of a module, the graph runs, or the first function if there is
    none. The mesh is the module's unless it is given.
    """
    entry = entry_of(program)
    if mesh is None:
        mesh = mesh_of(entry) if any(MESH in each.attributes for each in enclosing_ops(entry)) else Mesh()
    machine = Machine(mesh.iterations)
    block = entry.regions[0].block
    if len(args) != len(block.args):
        raise Error(f"the program takes {counted(len(block.args), 'argument')}, not {len(args)}")
    inputs = [
        machine.enter(np.asarray(arg), _type(value), position)
        for position, (arg, value) in enumerate(zip(args, block.args, strict=True))
    ]
    outputs = machine.block(block, inputs)
    end = block.last_op
    assert end is not None
    return [collect(value, _type(out).layout, machine.devices) for value, out in zip(outputs, end.operands, strict=True)]


def entry_of(program: Operation) -> Operation:
    """The entry of a module: its graph, or its first function."""
    if not isinstance(program, ModuleOp):
        return program
    ops = list(program.body.block.ops)
    starts = [op for op in ops if isinstance(op, flow.GraphOp)] or [op for op in ops if isinstance(op, FuncOp)]
    if not starts:
        raise Error("the module has no function to run")
    return starts[0]


def _type(value: SSAValue) -> ArrayType:
    assert isinstance(value.type, ArrayType)
    return value.type


@dataclass(frozen=True)
class Machine:
    """All devices of a set, in lockstep, with a method for each kind of operation."""

    devices: int

    def enter(self, array: Array, type: ArrayType, position: int) -> DeviceArrays:
        if array.shape != tuple(type.layout.global_shape):
            title = f"argument {position} is {type.text}, and {array.dtype}{list(array.shape)} was given"
            raise Error(title, helps=["a kernel takes what each device holds: use `run_devices`"])
        return distribute(array, type.layout, self.devices)

    def block(
        self, block: Block, inputs: Sequence[DeviceArrays], outer: dict[SSAValue, DeviceArrays] | None = None
    ) -> list[DeviceArrays]:
        """Runs a block; returns the operands of its terminator. `outer` holds the values of the enclosing blocks."""
        env = dict(outer or {}) | dict(zip(block.args, inputs, strict=True))
        for op in block.ops:
            operands = [env[value] for value in op.operands]
            if op.next_op is None:
                return operands
            results = self.run(op, operands, env)
            for result, value in zip(op.results, results, strict=True):
                self.check(op, _type(result), value)
                env[result] = value
        raise AssertionError("a block ends in a terminator")

    def check(self, op: Operation, type: ArrayType, value: DeviceArrays) -> None:
        local, dtype = type.layout.local_shape, dtype_of(type.dtype)
        for held in value:
            if held.shape != tuple(local) or held.dtype != dtype:
                raise Error(f"`{op.name}` gave {held.dtype}{list(held.shape)} where its type says {type.text}")

    def run(self, op: Operation, operands: list[DeviceArrays], env: dict[SSAValue, DeviceArrays]) -> list[DeviceArrays]:
        match op:
            case lax.ScanOp():
                return self.scan(op, operands, env)
            case lax.WhileOp():
                return self.while_(op, operands, env)
            case lax.CondOp():
                which = min(max(int(self.agreed(op, operands[0])), 0), len(op.regions) - 1)
                return self.block(op.regions[which].block, op.entry.arguments(which, operands, ()), env)
            case lax.LaxOp():
                return self.named(op, operands)
            case array.BuildOp():
                # Every iteration of the build is a device. Devices that differ in none of its axes agree.
                return self.block(op.body.block, [], env)
            case array.SliceOp():
                return [cut(operands[0], _type(op.source).layout, op.layout, self.devices)]
            case array.RedistributeOp() | flow.RedistributeOp():
                pairs = zip(operands, op.changes, strict=True)
                return [redistribute(x, source.layout, target.layout, self.devices) for x, (source, target) in pairs]
            case Barrier():
                return operands
            case Coordinate():
                return [[np.asarray(rank(op.axes, device), np.int32) for device in range(self.devices)]]
            case spmd.Collective():
                result = list(operands[0])
                for group in groups(op.axes, self.devices):
                    for device, received in zip(group, op.exchange([operands[0][each] for each in group]), strict=True):
                        result[device] = received
                return [result]
            case CallOp() | flow.KernelOp():
                function = SymbolTable.lookup_symbol(op, op.callee)
                assert isinstance(function, FuncOp)
                return self.block(function.body.block, operands)
            case _:
                raise Error(f"the interpreter does not know `{op.name}`")

    def named(self, op: lax.LaxOp, operands: list[DeviceArrays]) -> list[DeviceArrays]:
        """Runs a named op on every device; devices that hold the same arrays share the work."""
        done: dict[tuple[int, ...], list[Array]] = {}
        results: list[DeviceArrays] = [[] for _ in op.results]
        for device in range(self.devices):
            inputs = [value[device] for value in operands]
            key = tuple(map(id, inputs))
            if key not in done:
                done[key] = self.on_device(op, inputs)
            for result, held in zip(results, done[key], strict=True):
                result.append(held)
        return results

    def on_device(self, op: lax.LaxOp, inputs: list[Array]) -> list[Array]:
        """Runs a named op on the local arrays of one device."""
        types = [(_type(result).dtype, _type(result).shape) for result in op.results]
        return evaluate(op.primitive(), op.params, inputs, types)

    def scan(self, op: lax.ScanOp, operands: list[DeviceArrays], env: dict[SSAValue, DeviceArrays]) -> list[DeviceArrays]:
        entry, trips = op.entry, range(op.length)
        carry, rows = operands[entry.carries], operands[entry.rows]
        carries = len(carry)
        stacks: list[list[DeviceArrays]] = []
        for trip in reversed(trips) if op.params["reverse"] else trips:
            each = [[held[trip] for held in value] for value in rows]
            left = self.block(op.regions[0].block, entry.arguments(0, operands, carry, each), env)
            carry = left[:carries]
            stacks.append(left[carries:])
        if op.params["reverse"]:
            stacks.reverse()
        ys = [self.stack([trip[at] for trip in stacks], _type(out)) for at, out in enumerate(op.results[carries:])]
        return [*carry, *ys]

    def while_(self, op: lax.WhileOp, operands: list[DeviceArrays], env: dict[SSAValue, DeviceArrays]) -> list[DeviceArrays]:
        entry = op.entry
        carry = operands[entry.carries]
        test, body = (region.block for region in op.regions)
        while self.agreed(op, self.block(test, entry.arguments(0, operands, carry), env)[0]):
            carry = self.block(body, entry.arguments(1, operands, carry), env)
        return carry

    def agreed(self, op: lax.RegionOp, value: DeviceArrays) -> Array:
        """The common value of all devices. Raises Error if their values differ."""
        if any(held != value[0] for held in value):
            raise Error(f"`{op.name}` gets different values on different devices")
        return value[0]

    def stack(self, trips: list[DeviceArrays], type: ArrayType) -> DeviceArrays:
        if not trips:
            return [np.zeros(type.layout.local_shape, dtype_of(type.dtype))] * self.devices
        return [np.stack([trip[device] for trip in trips]) for device in range(self.devices)]


def run_devices(function: FuncOp, args: Sequence[DeviceArrays], devices: int) -> list[DeviceArrays]:
    """Runs a function of local ops, given each device's local array of each argument."""
    return Machine(devices).block(function.body.block, args)
