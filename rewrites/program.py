"""The program as flat tables: what propagation and decisions read.

The xDSL module stays the one source; a `Program` is a view of it, built once and shared by every plan. Each operation
becomes a `Node` (its bound definition, its operand and result value numbers); a loop becomes its body's nodes between the
pseudo nodes `scan_const`, `scan_xs`, `scan_carry`, `scan_ys` and `scan_out`, whose definitions say how a dim crosses the loop.

    %y:2 = lax.scan %c, %x {...}   -->   scan_carry, scan_xs, body nodes ..., scan_ys
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.array import ArrayType
from ..dialects.definition import definitions
from ..dialects.instance import Instance, bind
from ..dialects.lax import LaxOp
from ..dialects.params import NO_PARAMS, ParamsAttr
from ..dialects.precision import itemsize

Position = tuple[int, int, int]
"""Where an index stands in a value: (dim, product of the extents minor to it in that dim, its extent)."""


APART = ("lax.optimization_barrier",)
"""Ops whose values have nothing to do with one another: a node for each, so that each is placed by itself."""


class Signature:
    """An instance with both directions of its index tables: index -> position in a value, and dim -> indices in it."""

    __slots__ = ("empty", "instance", "operand_at", "operand_dims", "placed", "result_at", "result_dims")

    def __init__(self, instance: Instance, empty: bool) -> None:
        self.instance = instance
        self.empty = empty
        extents = [index.extent for index in instance.indices]
        self.operand_dims = tuple(_dims(value, extents) for value in instance.operands)
        self.result_dims = tuple(_dims(value, extents) for value in instance.results)
        self.operand_at = tuple(_at(dims) for dims in self.operand_dims)
        self.result_at = tuple(_at(dims) for dims in self.result_dims)
        self.placed: dict[object, object] = {}


def _dims(value: tuple[tuple[int, ...], ...], extents: list[int]) -> tuple[tuple[tuple[int, int, int], ...], ...]:
    """Per dim the (index, minor extent, extent) of each index in it, major to minor."""
    rows: list[tuple[tuple[int, int, int], ...]] = []
    for indices in value:
        minor = 1
        row: list[tuple[int, int, int]] = []
        for index in reversed(indices):
            row.append((index, minor, extents[index]))
            minor *= extents[index]
        rows.append(tuple(reversed(row)))
    return tuple(rows)


def _at(dims: tuple[tuple[tuple[int, int, int], ...], ...]) -> dict[int, Position]:
    return {index: (dim, minor, extent) for dim, row in enumerate(dims) for index, minor, extent in row}


@dataclass(slots=True, eq=False)
class Node:
    """One operation, or one end of a loop, as propagation sees it."""

    number: int
    kind: str
    signature: Signature
    operands: tuple[int, ...]
    results: tuple[int, ...]
    op: Operation
    loop: int


@dataclass(slots=True)
class Loop:
    """A `lax.scan` and its place in the nest of loops; loop 0 is the program itself, run once."""

    parent: int
    trips: int
    op: Operation | None


@dataclass(slots=True)
class Program:
    """Flat tables of one module; values and nodes are numbers."""

    module: ModuleOp
    nodes: list[Node] = field(default_factory=list[Node])
    loops: list[Loop] = field(default_factory=list[Loop])
    types: list[ArrayType] = field(default_factory=list[ArrayType])
    bytes: list[int] = field(default_factory=list[int])
    producer: list[int] = field(default_factory=list[int])
    uses: list[list[tuple[int, int]]] = field(default_factory=list[list[tuple[int, int]]])
    zero: list[bool] = field(default_factory=list[bool])
    parameter: list[bool] = field(default_factory=list[bool])
    numbers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    arguments: tuple[int, ...] = ()
    returned: tuple[int, ...] = ()
    argument_names: tuple[str, ...] = ()
    result_names: tuple[str, ...] = ()
    signatures: dict[object, Signature] = field(default_factory=dict[object, Signature])

    def together(self, node: Node) -> list[Node]:
        """The nodes of the node's op: one, but for an op whose values are placed apart."""
        if node.op.name not in APART:
            return [node]
        return [self.nodes[self.producer[self.numbers[result]]] for result in node.op.results]

    @property
    def main(self) -> func.FuncOp:
        """The function that the program is."""
        return cast(func.FuncOp, next(iter(self.module.body.block.ops)))

    def shape(self, value: int) -> tuple[int, ...]:
        """The global extents of a value."""
        return self.types[value].shape

    def operand_loop(self, node: Node, operand: int) -> int:
        """The loop in whose trips a use happens: what enters a loop is read before it."""
        inside = node.kind == "scan_ys" or (node.kind == "scan_carry" and operand == 1)
        if inside or not node.kind.startswith("scan_"):
            return node.loop
        return self.loops[node.loop].parent

    def trips(self, loop: int) -> int:
        """How often one call runs the body of a loop."""
        times = 1
        while loop:
            times *= self.loops[loop].trips
            loop = self.loops[loop].parent
        return times


def flatten(module: ModuleOp) -> Program:
    """Build the tables of a module whose first function is the program."""
    program = Program(module)
    program.loops.append(Loop(0, 1, None))
    main = program.main
    block = main.body.block
    program.arguments = tuple(_value(program, arg, -1) for arg in block.args)
    for value in program.arguments:
        program.parameter[value] = True
    program.argument_names = _names(main, "arg_names", len(program.arguments), "argument")
    _Flattener(program).block(block, 0)
    last = block.last_op
    assert isinstance(last, func.ReturnOp)
    program.returned = tuple(program.numbers[value] for value in last.operands)
    program.result_names = _names(main, "result_names", len(program.returned), "result")
    return program


def _names(main: func.FuncOp, key: str, count: int, stem: str) -> tuple[str, ...]:
    names = main.attributes.get(key)
    if names is None:
        return tuple(f"{stem}/{i}" for i in range(count))
    return tuple(name.data for name in cast("Iterable[StringAttr]", names))


def _value(program: Program, ssa: SSAValue, producer: int) -> int:
    number = len(program.types)
    type = cast(ArrayType, ssa.type)
    program.types.append(type)
    program.bytes.append(_bytes(type))
    program.producer.append(producer)
    program.uses.append([])
    program.zero.append(False)
    program.parameter.append(False)
    program.numbers[ssa] = number
    return number


@cache
def _bytes(type: ArrayType) -> int:
    return prod(type.shape) * itemsize(type.dtype)


class _Flattener:
    """Walks blocks in program order; a method a kind of operation."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def block(self, block: Block, loop: int) -> None:
        numbers = self.program.numbers
        for op in block.ops:
            if op.name == "lax.scan":
                self.scan(cast(LaxOp, op), loop)
            elif op.name in APART:
                for value, out in zip(op.operands, op.results, strict=True):
                    self.node(op.name[4:], op, (numbers[value],), (out,), loop)
            elif op is not block.last_op:
                operands = tuple(numbers[value] for value in op.operands)
                self.node(op.name[4:], op, operands, op.results, loop)

    def node(self, kind: str, op: Operation, operands: tuple[int, ...], outs: Sequence[SSAValue], loop: int) -> Node:
        program = self.program
        params = cast(ParamsAttr, op.properties.get("params", NO_PARAMS)) if not kind.startswith("scan_") else NO_PARAMS
        ins = tuple(program.types[value] for value in operands)
        types = tuple(cast(ArrayType, out.type) for out in outs)
        return self.insert(kind, op, operands, outs, loop, self.signature(kind, params, ins, types))

    def insert(
        self,
        kind: str,
        op: Operation,
        operands: tuple[int, ...],
        outs: Sequence[SSAValue],
        loop: int,
        signature: Signature,
    ) -> Node:
        program = self.program
        number = len(program.nodes)
        results = tuple(_value(program, out, number) for out in outs)
        node = Node(number, kind, signature, operands, results, op, loop)
        program.nodes.append(node)
        for position, value in enumerate(operands):
            program.uses[value].append((number, position))
        self.facts(node)
        return node

    def facts(self, node: Node) -> None:
        """Zeros stay zeros, and parameters parameters, through ops that only move or cast them."""
        program = self.program
        if node.kind == "constant":
            program.zero[node.results[0]] = cast(ParamsAttr, node.op.properties["params"]).get("value") in (0, 0.0)
            return
        moves = node.signature.instance.moves
        if moves or node.kind == "broadcast_in_dim":
            program.zero[node.results[0]] = program.zero[node.operands[0]]
        if moves or node.kind in ("scan_const", "scan_xs"):
            program.parameter[node.results[0]] = program.parameter[node.operands[0]]

    def signature(self, kind: str, params: ParamsAttr, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> Signature:
        """The bound definition, one object for equal (op, params, types): a transformer repeats a few dozen."""
        table = self.program.signatures
        key = (kind, id(params), *map(id, ins), 0, *map(id, outs))
        found = table.get(key)
        if found is None:
            slow = (kind, params, ins, outs)
            found = table.get(slow)
            if found is None:
                found = table[slow] = Signature(
                    _bind(kind, params, ins, outs), empty=any(0 in type.shape for type in (*ins, *outs))
                )
            table[key] = found
        return found

    def scan(self, op: LaxOp, outer: int) -> None:
        program = self.program
        params = cast(ParamsAttr, op.properties["params"])
        consts, carries = cast(int, params["num_consts"]), cast(int, params["num_carry"])
        loop = len(program.loops)
        program.loops.append(Loop(outer, cast(int, params["length"]), op))
        block = op.regions[0].block
        operands = tuple(program.numbers[value] for value in op.operands)
        for position, (arg, value) in enumerate(zip(block.args, operands, strict=True)):
            kind = "scan_const" if position < consts else "scan_xs"
            if consts <= position < consts + carries:
                self.carry(op, value, arg, loop)
            else:
                self.node(kind, op, (value,), (arg,), loop)
        self.block(block, loop)
        last = block.last_op
        assert last is not None
        inner = tuple(program.numbers[value] for value in last.operands)
        for position, (value, out) in enumerate(zip(inner, op.results, strict=True)):
            arg = block.args[consts + position] if position < carries else None
            self.leave(op, value, out, None if arg is None else program.numbers[arg], loop)

    def carry(self, op: LaxOp, value: int, arg: SSAValue, loop: int) -> None:
        """A carry joins its first value and the body's; the body's value is known only after the body."""
        type = self.program.types[value]
        signature = self.signature("scan_carry", NO_PARAMS, (type, type), (type,))
        self.insert("scan_carry", op, (value,), (arg,), loop, signature)

    def leave(self, op: LaxOp, value: int, out: SSAValue, carried: int | None, loop: int) -> None:
        if carried is None:
            self.node("scan_ys", op, (value,), (out,), loop)
            return
        program = self.program
        join = program.nodes[program.producer[carried]]
        join.operands = (join.operands[0], value)
        program.uses[value].append((join.number, 1))
        self.node("scan_out", op, (carried,), (out,), loop)


def _bind(kind: str, params: ParamsAttr, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> Instance:
    in_types = [(t.dtype, t.shape) for t in ins]
    out_types = [(t.dtype, t.shape) for t in outs]
    if not outs:
        # An effect without results: nothing of it can be placed.
        return Instance(definitions[kind], (), tuple(((),) * len(shape) for _, shape in in_types), (), moves=False)
    return bind(definitions[kind], params, in_types, out_types)
