"""From a placed program to the dataflow graph: kernels, and the changes of layout between them.

Each redistribution or barrier of the program is a node. The builders, loops and unpartitioned ops between two of them are one
kernel. Equal kernels share one function.

    %1 = array.redistribute %w                %1 = flow.redistribute %w
    %2 = array.build {...}            -->     %2 = flow.kernel @main_0(%x, %1)
    %3 = array.redistribute %2                %3 = flow.redistribute %2
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from ...dialects import flow
from ...dialects.array import BarrierOp, BuildOp, RedistributeOp, keep_mesh
from ...dialects.errors import Error
from ...dialects.lax import ConstantOp
from ...dialects.module import Module
from ...dialects.names import keep_names
from ...dialects.types import ArrayType
from ..rewire import rewire_users
from .to_spmd import Lowering

GRANULARITIES = ("whole", "collective")
LATER = ("stage",)

NOTHING: Mapping[SSAValue, ConstantOp] = {}


def to_flow(module: ModuleOp, granularity: str = "collective") -> ModuleOp:
    """The graph of a placed module, whose ops move into its kernels: `module` is used up.

    `whole` makes one kernel with its collectives inside, `collective` cuts at each redistribution; a loop whose body
    communicates stays in one kernel, and so does an op that merges its blocks. Raises Error for another granularity.
    """
    check(granularity)
    main = cast(func.FuncOp, module.body.block.first_op)
    *ops, end = main.body.block.ops
    writer = _Writer(main)
    if granularity == "whole":
        writer.whole(ops, end.operands)
    else:
        writer.cut(ops)
    result = writer.module(end.operands)
    keep_mesh(module, result)
    return result


def check(granularity: str, *helps: str) -> None:
    """Raises Error for a granularity that does not exist, with what else may help."""
    if granularity in GRANULARITIES:
        return
    known = " or ".join(f"`{name}`" for name in GRANULARITIES)
    if granularity in LATER:
        raise Error(f"`{granularity}` cuts at pipeline stages, but plans do not have stages yet", helps=[f"take {known}"])
    raise Error(f"`{granularity}` is not a granularity", helps=[f"take {known}", *helps])


def runs(ops: Sequence[Operation]) -> Iterator[list[Operation]]:
    """The ops of each node of the graph: each communicating op alone, the ops between two of them together."""
    between: list[Operation] = []
    for op in ops:
        if isinstance(op, RedistributeOp | BarrierOp):
            if between:
                yield between
            yield [op]
            between = []
        else:
            between.append(op)
    if between:
        yield between


class _Writer:
    """Writes the graph; `values` maps values of the program to values of the graph."""

    def __init__(self, main: func.FuncOp) -> None:
        self.main = main
        self.block = Block(arg_types=list(main.function_type.inputs))
        self.values: dict[SSAValue, SSAValue] = dict(zip(main.body.block.args, self.block.args, strict=True))
        self.kernels: dict[Hashable, func.FuncOp] = {}

    def whole(self, ops: Sequence[Operation], results: Sequence[SSAValue]) -> None:
        """One kernel, whose body is that of the device-local module."""
        ins = self.main.body.block.args
        outs = [value for value in dict.fromkeys(results) if value not in self.values]
        if ops:
            block, lowering = self.lowered(ops, ins)
            self.call(block, ins, outs, lowering)

    def cut(self, ops: Sequence[Operation]) -> None:
        """A node for each redistribution and barrier, and one for each run of ops between them."""
        known = constants(ops)
        for run in runs(ops):
            match run:
                case [RedistributeOp() as op]:
                    types = [after for _, after in op.changes]
                    self.node(flow.RedistributeOp([self.values[value] for value in op.ins], types), op.results)
                case [BarrierOp() as op]:
                    self.node(flow.BarrierOp([self.values[value] for value in op.operands]), op.results)
                case _:
                    self.kernel(run, known)

    def node(self, op: Operation, results: Sequence[SSAValue]) -> None:
        self.block.add_op(op)
        self.values.update(zip(results, op.results, strict=True))

    def kernel(self, run: Sequence[Operation], known: Mapping[SSAValue, ConstantOp]) -> None:
        """A kernel with its operands by first use, and its results in the order in which they are made.

        Each kernel has its own constants, at its beginning. Equal layers then have equal kernels.
        """
        read = reads(run)
        ins = [value for value in read if value not in known]
        outs = leaves(run, known)
        block, lowering = self.lowered(run, ins, {value: known[value] for value in read if value in known})
        order = {op: number for number, op in enumerate(block.ops)}
        outs.sort(key=lambda out: _made_at(lowering.get(out), order))
        self.call(block, ins, outs, lowering, hoist_constants)

    def lowered(
        self,
        run: Sequence[Operation],
        ins: Sequence[SSAValue],
        own: Mapping[SSAValue, ConstantOp] = NOTHING,
    ) -> tuple[Block, Lowering]:
        """The ops on the local arrays of their operands."""
        lowering = Lowering()
        block = Block(arg_types=[lowering.local(value.type) for value in ins])
        lowering.locals.update(zip(ins, block.args, strict=True))
        for value, constant in own.items():
            copy = constant.clone()
            block.add_op(copy)
            lowering.locals[value] = copy.results[0]
        for op in run:
            lowering.op(op, block)
        return block, lowering

    def call(
        self,
        block: Block,
        ins: Sequence[SSAValue],
        outs: Sequence[SSAValue],
        lowering: Lowering,
        tidy: Callable[[Block], None] | None = None,
    ) -> None:
        """Calls the function with this body, an existing one or a new one."""
        block.add_op(func.ReturnOp(*(lowering.get(out) for out in outs)))
        if tidy is not None:
            tidy(block)
        key = structure(block)
        kernel = self.kernels.get(key)
        if kernel is None:
            kernel = self.kernels[key] = function(f"{self.main.sym_name.data}_{len(self.kernels)}", block)
        types = [cast(ArrayType, out.type) for out in outs]
        self.node(flow.KernelOp(kernel.sym_name.data, [self.values[value] for value in ins], types), outs)

    def module(self, results: Sequence[SSAValue]) -> ModuleOp:
        """The graph, as the overview, and after it the kernels."""
        self.block.add_op(flow.ReturnOp([self.values[value] for value in results]))
        outputs = [cast(ArrayType, type) for type in self.main.function_type.outputs]
        graph = flow.GraphOp(self.main.sym_name.data, Region(self.block), outputs)
        keep_names(self.main, graph)
        return Module([graph, *self.kernels.values()])


def constants(ops: Sequence[Operation]) -> dict[SSAValue, ConstantOp]:
    """The constants of the program, inside builders and outside; no node waits for them."""
    found: dict[SSAValue, ConstantOp] = {}
    for op in ops:
        if isinstance(op, ConstantOp):
            found[op.results[0]] = op
        elif isinstance(op, BuildOp):
            end = cast(Operation, op.body.block.last_op)
            for result, local in zip(op.results, end.operands, strict=True):
                if isinstance(local.owner, ConstantOp) and result.type is local.type:
                    found[result] = local.owner
    return found


def reads(run: Iterable[Operation]) -> list[SSAValue]:
    """The values from before the ops that they read, each once, by first use."""
    inside: set[SSAValue] = set()
    found: dict[SSAValue, None] = {}
    for each in run:
        for op in each.walk():
            found.update([(value, None) for value in op.operands if value not in inside])
            inside.update(op.results)
            for region in op.regions:
                inside.update(arg for block in region.blocks for arg in block.args)
    return list(found)


def leaves(run: Sequence[Operation], known: Mapping[SSAValue, ConstantOp]) -> list[SSAValue]:
    """The values that later ops read; a constant only if something other than a kernel reads it."""
    here = set(run)
    found: list[SSAValue] = []
    for result in (result for op in run for result in op.results):
        users = [use.operation for use in result.uses if not _is_within(use.operation, here)]
        if result in known:
            users = [user for user in users if isinstance(user, RedistributeOp | BarrierOp | func.ReturnOp)]
        if users:
            found.append(result)
    return found


def _is_within(op: Operation | None, run: Set[Operation]) -> bool:
    """Whether the op is one of these, or inside of one."""
    while op is not None and op not in run:
        op = op.parent_op()
    return op is not None


def _made_at(value: SSAValue, order: Mapping[Operation, int]) -> tuple[int, int]:
    """The position in a body at which a value is made; arguments come first."""
    match value:
        case OpResult():
            return order[value.op], value.index
        case BlockArgument():
            return -1, value.index
        case _:
            raise AssertionError("a value is a result or an argument")


def hoist_constants(block: Block) -> None:
    """Moves constants to the beginning, each once, in the order in which they are read, and removes unused ones."""
    made: dict[SSAValue, ConstantOp] = {op.results[0]: op for op in block.ops if isinstance(op, ConstantOp)}
    for op in made.values():
        op.detach()
    kept: dict[tuple[Attribute, Attribute], ConstantOp] = {}
    first: dict[SSAValue, SSAValue] = {}
    for value in (value for op in block.walk() for value in op.operands):
        if (op := made.get(value)) is not None:
            first[value] = kept.setdefault((op.params, value.type), op).results[0]
    rewire_users(first)
    if kept:
        block.insert_ops_before(list(kept.values()), cast(Operation, block.first_op))


def structure(block: Block, outer: dict[SSAValue, int] | None = None) -> Hashable:
    """The text of a body without the names of its values and the hints on its ops: equal for equal kernels."""
    numbers = {} if outer is None else outer
    for value in block.args:
        numbers[value] = len(numbers)
    ops: list[Hashable] = []
    for op in block.ops:
        operands = tuple([numbers[value] for value in op.operands])
        bodies = tuple(structure(inner, numbers) for region in op.regions for inner in region.blocks)
        ops.append((op.name, operands, tuple(op.result_types), frozenset(op.properties.items()), bodies))
        for value in op.results:
            numbers[value] = len(numbers)
    return tuple(block.arg_types), tuple(ops)


def function(name: str, block: Block) -> func.FuncOp:
    """The function with this body, which already ends in a `func.return`."""
    end = cast(Operation, block.last_op)
    return func.FuncOp(name, (list(block.arg_types), list(end.operand_types)), Region(block))


def change(op: flow.RedistributeOp) -> func.FuncOp:
    """The device-local program of a redistribution, as a separate module.

    f32[data*64]{+model} to f32[data*64]   -->   spmd.all_reduce add %0 over (model) : f32[64] -> f32[64]
    """
    lowering = Lowering()
    block = Block(arg_types=[before.local for before, _ in op.changes])
    lowering.locals.update(zip(op.ins, block.args, strict=True))
    lowering.redistribute(op, block)
    block.add_op(func.ReturnOp(*(lowering.get(out) for out in op.outs)))
    return function("redistribute", block)
