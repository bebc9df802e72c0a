"""From a placed program to the dataflow graph: kernels, and the changes of layout between them.

A redistribution or a barrier of the program is a node of its own; the builders, loops and whole ops that stand between
two of them are one kernel. Kernels that do the same share one function.

    %1 = array.redistribute %w                %1 = flow.redistribute %w
    %2 = array.build {...}            -->     %2 = flow.kernel @main_0(%x, %1)
    %3 = array.redistribute %2                %3 = flow.redistribute %2
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from ..dialects import flow
from ..dialects.array import BarrierOp, RedistributeOp, mesh_of, set_mesh
from ..dialects.errors import Error, nearest
from ..dialects.mesh import Mesh
from ..dialects.types import ArrayType
from .lower import Lowering

GRANULARITIES = ("whole", "collective")
LATER = ("stage",)


def to_flow(module: ModuleOp, granularity: str = "collective") -> ModuleOp:
    """The graph of a placed module, whose ops move into its kernels: `module` is used up.

    `whole` makes one kernel with its collectives inside, `collective` cuts at each redistribution; a loop whose body
    communicates stays in one kernel. Raises Error for another granularity.
    """
    check(granularity)
    main = cast(func.FuncOp, module.body.block.first_op)
    writer = _Writer(main, mesh_of(main))
    for run in runs(list(main.body.block.ops)[:-1], granularity):
        writer.add(run)
    return writer.module()


def check(granularity: str) -> None:
    """Raise Error unless a program can be cut so."""
    if granularity in GRANULARITIES:
        return
    known = " or ".join(f"`{name}`" for name in GRANULARITIES)
    if granularity in LATER:
        raise Error(f"`{granularity}` cuts at the stages of a pipeline, and plans have none yet", helps=[f"take {known}"])
    close = nearest(granularity, GRANULARITIES)
    helps = [f"did you mean `{close[0]}`?"] if close else []
    raise Error(f"`{granularity}` is no granularity", helps=[*helps, f"take {known}"])


def runs(ops: Sequence[Operation], granularity: str) -> Iterator[list[Operation]]:
    """The ops of each node of the graph: what communicates by itself, what stands between together."""
    between: list[Operation] = []
    for op in ops:
        if granularity == "collective" and isinstance(op, RedistributeOp | BarrierOp):
            if between:
                yield between
            yield [op]
            between = []
        else:
            between.append(op)
    if between:
        yield between


class _Writer:
    """Writes the graph; `values` says which of its values stands for one of the program."""

    def __init__(self, main: func.FuncOp, mesh: Mesh) -> None:
        self.main = main
        self.mesh = mesh
        self.block = Block(arg_types=list(main.function_type.inputs))
        self.values: dict[SSAValue, SSAValue] = dict(zip(main.body.block.args, self.block.args, strict=True))
        self.kernels: dict[Hashable, func.FuncOp] = {}

    def add(self, run: list[Operation]) -> None:
        """One node."""
        match run:
            case [RedistributeOp() as op]:
                made = flow.RedistributeOp(self.values[op.source], cast(ArrayType, op.out.type))
                self.node(made, op.results)
            case [BarrierOp() as op]:
                self.node(flow.BarrierOp([self.values[value] for value in op.operands]), op.results)
            case _:
                self.kernel(run)

    def node(self, op: Operation, results: Sequence[SSAValue]) -> None:
        self.block.add_op(op)
        self.values.update(zip(results, op.results, strict=True))

    def kernel(self, run: list[Operation]) -> None:
        """A call of the function that does these ops on one device."""
        ins, outs = read(run), left(run)
        lowering = Lowering(self.mesh)
        block = Block(arg_types=[lowering.local(value.type) for value in ins])
        lowering.locals.update(zip(ins, block.args, strict=True))
        for op in run:
            lowering.op(op, block)
        # By where they are made, and not by who reads them, or equal layers of a model would have different kernels.
        order = {op: number for number, op in enumerate(block.ops)}
        outs.sort(key=lambda out: _made_at(lowering.get(out), order))
        block.add_op(func.ReturnOp(*(lowering.get(out) for out in outs)))
        operands = [self.values[value] for value in ins]
        call = flow.KernelOp(self.function(block), operands, [cast(ArrayType, out.type) for out in outs])
        self.node(call, outs)

    def function(self, block: Block) -> str:
        """The name of the function with this body: one that is there, or a new one."""
        key = structure(block)
        found = self.kernels.get(key)
        if found is None:
            name = f"{self.main.sym_name.data}_{len(self.kernels)}"
            found = self.kernels[key] = function(name, block)
        return found.sym_name.data

    def module(self) -> ModuleOp:
        """The graph, as the overview, and behind it the kernels."""
        end = cast(Operation, self.main.body.block.last_op)
        self.block.add_op(flow.ReturnOp([self.values[value] for value in end.operands]))
        outputs = [cast(ArrayType, type) for type in self.main.function_type.outputs]
        graph = flow.GraphOp(self.main.sym_name.data, Region(self.block), outputs)
        for key in ("arg_names", "result_names"):
            if key in self.main.attributes:
                graph.attributes[key] = self.main.attributes[key]
        module = ModuleOp([graph, *self.kernels.values()])
        set_mesh(module, self.mesh)
        return module


def read(run: Iterable[Operation]) -> list[SSAValue]:
    """The values that the ops take from before them, each once, by first use."""
    inside: set[SSAValue] = set()
    found: dict[SSAValue, None] = {}
    for each in run:
        for op in each.walk():
            found.update((value, None) for value in op.operands if value not in inside)
            inside.update(op.results)
            inside.update(arg for region in op.regions for block in region.blocks for arg in block.args)
    return list(found)


def left(run: Sequence[Operation]) -> list[SSAValue]:
    """The values that something after the ops reads."""
    here = {op for each in run for op in each.walk()}
    results = [result for op in run for result in op.results]
    return [result for result in results if any(use.operation not in here for use in result.uses)]


def _made_at(value: SSAValue, order: dict[Operation, int]) -> tuple[int, int]:
    return (order[value.op], value.index) if isinstance(value, OpResult) else (-1, value.index)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]


def structure(block: Block, outer: dict[SSAValue, int] | None = None) -> Hashable:
    """What a body does, without the names of its values and the hints on its ops: equal for equal kernels."""
    numbers = {} if outer is None else outer
    for value in block.args:
        numbers[value] = len(numbers)
    ops: list[Hashable] = []
    for op in block.ops:
        operands = tuple(numbers[value] for value in op.operands)
        bodies = tuple(structure(inner, numbers) for region in op.regions for inner in region.blocks)
        ops.append((op.name, operands, tuple(op.result_types), frozenset(op.properties.items()), bodies))
        for value in op.results:
            numbers[value] = len(numbers)
    return tuple(block.arg_types), tuple(ops)


def function(name: str, block: Block) -> func.FuncOp:
    """The function whose body ends in a `func.return` already."""
    end = cast(Operation, block.last_op)
    return func.FuncOp(name, (list(block.arg_types), list(end.operand_types)), Region(block))


def change(source: ArrayType, target: ArrayType, mesh: Mesh) -> func.FuncOp:
    """What one device does in a redistribution, in a module of its own.

    f32[data*64]{+model} to f32[data*64]   -->   spmd.all_reduce add %0 over (model) : f32[64] -> f32[64]
    """
    lowering = Lowering(mesh)
    whole, block = Block(arg_types=[source]), Block(arg_types=[source.local(mesh)])
    lowering.locals[whole.args[0]] = block.args[0]
    block.add_op(func.ReturnOp(lowering.steps(whole.args[0], target, block)))
    made = function("redistribute", block)
    set_mesh(ModuleOp([made]), mesh)
    return made
