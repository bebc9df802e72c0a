"""Builds the flat tables from the xDSL module, in one walk in program order.

lax.while {cond} {body}   -->   enter, carry, the condition's nodes, enter (the predicate), the body's nodes, leave
lax.cond {...} {...}      -->   enter, the nodes of each branch, join
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.array import ArrayType
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Leaf, Number, Param, Read
from ...dialects.definitions.tilings import Instance, bind
from ...dialects.ground.argument_names import ARGUMENTS, RESULTS, names_of
from ...dialects.lax import RegionOp
from ...dialects.mesh import Mesh
from ...dialects.params import NO_PARAMS, ParamsAttr
from ...dialects.regions import BORDERS
from .program import NO_NODE, Control, Node, NodeId, Program, Region, Signature, Signatures, ValueId
from .run_counts import Marks, trips
from .shard_maps import mesh_misfit, own_signature
from .single_device_ops import once_signature

UNKNOWN_TRIPS = 16
"""The trip count that is assumed of a loop whose trip count is unknown."""


def flatten(module: ModuleOp, mesh: Mesh, bound: Signatures | None = None) -> Program:
    """Builds the tables of a module whose first function is the program. `bound` holds definitions that are bound already.

    The mesh is where ops with their own axes run, and those that run once.
    """
    program = Program(module, mesh, signatures=bound or {})
    flattener = _Flattener(program)
    flattener.region(0, 1, 1, "")
    main = program.main
    block = main.body.block
    program.arguments = tuple(_value(program, arg, NO_NODE, 0) for arg in block.args)
    for value in program.arguments:
        program.parameter[value] = True
    program.argument_names = names_of(main, ARGUMENTS) or _numbered("argument", len(program.arguments))
    flattener.block(block, 0)
    last = block.last_op
    assert isinstance(last, func.ReturnOp)
    program.returned = tuple(program.numbers[value] for value in last.operands)
    program.result_names = names_of(main, RESULTS) or _numbered("result", len(program.returned))
    return program


def _numbered(stem: str, count: int) -> tuple[str, ...]:
    return tuple(f"{stem}/{number}" for number in range(count))


def _value(program: Program, ssa: SSAValue, producer: NodeId, region: int) -> ValueId:
    number = ValueId(len(program.types))
    type = cast(ArrayType, ssa.type)
    program.types.append(type)
    program.producer.append(producer)
    program.region.append(region)
    program.uses.append([])
    program.zero.append(False)
    program.parameter.append(False)
    program.numbers[ssa] = number
    return number


class _Flattener:
    """Walks blocks in program order, with one method for each kind of operation."""

    def __init__(self, program: Program) -> None:
        self.program, self.mesh = program, program.mesh
        self.marks = Marks()

    def block(self, block: Block, region: int) -> None:
        numbers = self.program.numbers
        for op in block.ops:
            if op.regions:
                assert isinstance(op, RegionOp)
                self.program.controls[region].append(_CONTROLS[op.name](self, op, region))
            elif op is not block.last_op:
                op_name, operands = op.name[4:], tuple(numbers[value] for value in op.operands)
                # A user's function may need its operands together.
                apart = definitions[op_name].apart and op_name not in definitions.added
                pairs = zip(operands, op.results, strict=True) if apart else ()
                for read, made in [((value,), (out,)) for value, out in pairs] or [(operands, op.results)]:
                    self.node(op_name, op, read, made, region)

    def node(self, op_name: str, op: Operation, operands: tuple[ValueId, ...], outs: Sequence[SSAValue], region: int) -> Node:
        params = cast(ParamsAttr, op.properties.get("params", NO_PARAMS))
        ins = tuple(self.program.types[value] for value in operands)
        types = tuple(cast(ArrayType, out.type) for out in outs)
        node = self.insert(op_name, op, operands, self.signature(op_name, params, ins, types), region)
        node.results = tuple(_value(self.program, out, node.number, region) for out in outs)
        self.facts(node)
        return node

    def insert(self, op_name: str, op: Operation, operands: tuple[ValueId, ...], signature: Signature, region: int) -> Node:
        program = self.program
        node = Node(program.end, op_name, signature, operands, (), op, region)
        program.nodes.append(node)
        if signature.shifts:
            program.shifting.add(node.number)
        if signature.own and not signature.once:
            program.mapped.update(signature.own)
        for position, value in enumerate(operands):
            program.uses[value].append((node.number, position))
        return node

    def facts(self, node: Node) -> None:
        """Marks results that are zero, and results that are parameters. Moves keep both; casts keep only zeros."""
        program, instance = self.program, node.signature.instance
        moved = instance.definition.moved
        for value in node.results if moved and all(self.is_zero(each, node) for each in moved) else ():
            program.zero[value] = True
        if instance.moves:
            program.parameter[node.results[0]] = program.parameter[node.operands[0]]

    def is_zero(self, leaf: Leaf, node: Node) -> bool:
        """Whether a constant, or every operand that the leaf reads, is zero."""
        match leaf:
            case Read(array):
                read = node.signature.definition.positions(array)
                return all(self.program.zero[node.operands[position]] for position in read)
            case Number(value):
                return value == 0
            case Param():
                return leaf.value(node.params) == 0

    def signature(self, op_name: str, params: ParamsAttr, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> Signature:
        """The bound definition of an op. Equal ops share one object, because a transformer repeats a few dozen of them."""
        table = self.program.signatures
        key = (op_name, id(params), *map(id, ins), 0, *map(id, outs))
        found = table.get(key)
        if found is None and params.get("own_axes") and mesh_misfit(params, self.mesh) is None:
            found = table[key] = own_signature(params, self.mesh, ins, outs)
        if found is None and params.get("once"):
            found = table[key] = once_signature(self.mesh, ins, outs)
        if found is None:
            slow = (op_name, params, ins, outs)
            found = table.get(slow)
            if found is None:
                found = table[slow] = Signature(_bind(op_name, params, ins, outs), ins, outs)
            table[key] = found
        return found

    # --- regions ---------------------------------------------------------------------------------------------------

    def region(self, parent: int, trips: int, likely: int, mark: str) -> int:
        program = self.program
        program.regions.append(Region(parent, trips, likely, mark))
        program.controls.append([])
        return len(program.regions) - 1

    def border(
        self,
        op_name: str,
        op: Operation,
        reads: Sequence[tuple[ValueId, int]],
        makes: Sequence[tuple[SSAValue, int]],
        types: tuple[ArrayType, ...] = (),
    ) -> Node:
        """Adds a border that reads and makes these values, each with its region. `types` are those of operands added later."""
        program = self.program
        operands = tuple(value for value, _ in reads)
        ins = (*(program.types[value] for value in operands), *types)
        outs = tuple(cast(ArrayType, value.type) for value, _ in makes)
        region = makes[0][1] if makes else reads[0][1]
        node = self.insert(op_name, op, operands, self.signature(op_name, NO_PARAMS, ins, outs), region)
        node.reads = tuple(region for _, region in reads)
        node.results = tuple(_value(program, value, node.number, region) for value, region in makes)
        if len(ins) == 1:
            enters = program.regions[region].parent == reads[0][1]
            for value in node.results:
                program.parameter[value] = enters and program.parameter[operands[0]]
                program.zero[value] = program.zero[operands[0]]
        return node

    def carry(self, op: Operation, init: ValueId, outer: int, args: Sequence[tuple[SSAValue, int]]) -> Node:
        """Adds the border of a carry. Its second operand, the body's value, is added after the body."""
        return self.border("carry", op, [(init, outer)], args, (self.program.types[init],))

    def behind(self, control: Control, carry: Node, last: ValueId, out: SSAValue, outer: int) -> None:
        """Completes a carry: adds the value at the end of a trip, and the border for the loop's result."""
        body = control.regions[-1]
        self.program.uses[last].append((carry.number, 1))
        carry.operands, carry.reads = (*carry.operands, last), (*carry.reads, body)
        control.yields[-1].append((carry, 1))
        control.leaves.append((carry, self.border("leave", control.op, [(carry.results[0], outer)], [(out, outer)])))

    def values(self, values: Iterable[SSAValue]) -> list[ValueId]:
        return [self.program.numbers[value] for value in values]

    def loop(self, op: RegionOp, outer: int) -> Control:
        """Flattens a `scan`, or a `while`, which has a condition before its body."""
        times = trips(op)
        regions = tuple(self.region(outer, times, UNKNOWN_TRIPS if mark else times, mark) for mark in self.marks.of(op))
        control = Control(op, regions, self.program.end)
        self.enter(control, outer)
        *conditions, (body, inside) = zip((region.block for region in op.regions), regions, strict=True)
        for block, region in conditions:
            self.block(block, region)
            # All devices continue, or none does: the predicate is read replicated.
            (predicate,) = self.values(_end(block).operands)
            control.yields.append([(self.border("enter", op, [(predicate, region)], []), 0)])
        self.block(body, inside)
        control.yields.append([])
        ends = zip(self.values(_end(body).operands), op.results, strict=True)
        for carry, (last, out) in zip(control.enters[op.entry.carries], ends, strict=False):
            self.behind(control, carry, last, out, outer)
        for last, out in ends:
            made = self.border("collect", op, [(last, inside)], [(out, outer)])
            control.yields[-1].append((made, 0))
            control.leaves.append((made, made))
        return control

    def enter(self, control: Control, outer: int) -> None:
        """Adds the borders at which the operands of a loop enter its regions."""
        op, entry, values = control.op, control.op.entry, self.values(control.op.operands)
        arguments = [list(region.block.args) for region in op.regions]
        for region, consts, args in zip(control.regions, entry.consts, arguments, strict=True):
            for value in values[consts]:
                control.enters.append(self.border("enter", op, [(value, outer)], [(args.pop(0), region)]))
        for value in values[entry.carries]:
            # The body's argument first: a carry has the layout of the body's argument.
            inside = [(args.pop(0), region) for args, region in zip(arguments[::-1], control.regions[::-1], strict=True)]
            control.enters.append(self.carry(op, value, outer, inside))
        for value, arg in zip(values[entry.rows], arguments[-1], strict=True):
            control.enters.append(self.border("trip", op, [(value, outer)], [(arg, control.regions[-1])]))

    def cond(self, op: RegionOp, outer: int) -> Control:
        branches = tuple(self.region(outer, 1, 1, mark) for mark in self.marks.of(op))
        control = Control(op, branches, self.program.end)
        which, *given = self.values(op.operands)
        control.enters.append(self.border("enter", op, [(which, outer)], []))
        for position, value in enumerate(given):
            args = [(region.block.args[position], each) for region, each in zip(op.regions, branches, strict=True)]
            control.enters.append(self.border("enter", op, [(value, outer)], args))
        for region, each in zip(op.regions, branches, strict=True):
            self.block(region.block, each)
        ends = zip(*(self.values(_end(region.block).operands) for region in op.regions), strict=True)
        made = [
            self.border("join", op, list(zip(values, branches, strict=True)), [(out, outer)])
            for values, out in zip(ends, op.results, strict=True)
        ]
        control.yields = [[(node, branch) for node in made] for branch in range(len(branches))]
        control.leaves = [(node, node) for node in made]
        return control


def _end(block: Block) -> Operation:
    return cast(Operation, block.last_op)


_CONTROLS: Mapping[str, Callable[[_Flattener, RegionOp, int], Control]] = {
    "lax.scan": _Flattener.loop,
    "lax.while": _Flattener.loop,
    "lax.cond": _Flattener.cond,
}


def _bind(op_name: str, params: ParamsAttr, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> Instance:
    in_types = [(t.dtype, t.shape) for t in ins]
    out_types = [(t.dtype, t.shape) for t in outs]
    if not outs:
        # A border without results: a predicate or a branch number, which all devices read replicated.
        return Instance(definitions[op_name], (), tuple(((),) * len(shape) for _, shape in in_types), (), moves=False)
    if op_name in BORDERS:
        # Every region receives the same value.
        one = bind(definitions[op_name], params, in_types, out_types[:1])
        return replace(one, results=one.results * len(outs))
    return bind(definitions[op_name], params, in_types, out_types)
