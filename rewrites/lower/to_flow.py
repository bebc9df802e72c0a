"""From a placed program to the dataflow graph: kernels, and the changes of layout between them.

Each redistribution or barrier of the program is a node. The builders, loops and unpartitioned ops between two of them are one
kernel. Equal kernels share one function.

    %1 = array.redistribute %w                %1 = flow.redistribute %w
    %2 = array.build {...}            -->     %2 = flow.kernel @main_0(%x, %1)
    %3 = array.redistribute %2                %3 = flow.redistribute %2
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import flow
from ...dialects.ground.errors import Error
from ...dialects.lax import ConstantOp
from ...dialects.ranges.algebra import Loop
from ...dialects.types import ArrayType
from ..redistribute.steps import Path
from ..rewire import rewire
from .constructors import (
    Built,
    End,
    Global,
    Globals,
    Make,
    Nest,
    Types,
    function,
    is_placed,
    on_device,
    placed_axes,
    returned,
    said,
    type_of,
)
from .fuse import AsWritten, replayed
from .in_time import run_in_time
from .joined_transforms import join_transforms
from .local_redistribution import way_of
from .materialise import Start
from .to_spmd import Local, in_space
from .transposed_products import swap_products

GRANULARITIES = ("whole", "collective")
LATER = ("stage",)


def to_flow(module: ModuleOp, granularity: str = "collective") -> ModuleOp:
    """Returns the graph of a placed module.

    `whole` makes one kernel with its collectives inside, `collective` cuts at each redistribution; a loop whose body
    communicates stays in one kernel, and so does an op that merges its blocks. Raises Error for another granularity.
    """
    return in_space(replayed(module, cut_at(granularity), AsWritten))


def cut_at(granularity: str, *helps: str) -> Start:
    """Returns the constructor for graphs of a granularity. Raises Error for an unknown one, with `helps` as further help."""
    if granularity in GRANULARITIES:
        return WholeGraph if granularity == "whole" else Kernels
    known = " or ".join(f"`{name}`" for name in GRANULARITIES)
    if granularity in LATER:
        raise Error(f"`{granularity}` cuts at pipeline stages, but plans do not have stages yet", helps=[f"take {known}"])
    raise Error(f"`{granularity}` is not a granularity", helps=[f"take {known}", *helps])


class _Graph(Local):
    """Writes a graph. The `ssa` of each value is its value in the graph."""

    def __init__(self, types: Types) -> None:
        super().__init__(types)
        self.graph = Block(arg_types=types)
        self.are(self.arguments, self.graph.args)
        self.results: Globals = ()

    def are(self, values: Globals, results: Sequence[SSAValue]) -> None:
        for value, result in zip(values, results, strict=True):
            cast(Built, value).ssa = result

    def in_graph(self, values: Globals) -> list[SSAValue]:
        return [cast(SSAValue, value.ssa) for value in cast("Sequence[Built]", values)]

    def slice_outside(self, source: Global, own: ArrayType) -> SSAValue:
        self.nest.axes |= dict.fromkeys(placed_axes(own))
        return super().slice_outside(source, own)

    def finish_into(self, end: End, values: Globals) -> None:
        self.end_nest()
        self.results = values

    def called(self, kernel: func.FuncOp, ins: Globals, outs: Sequence[Built]) -> None:
        """Adds a call of a kernel to the graph."""
        results = {_result(out): out.type for out in outs}
        op = flow.KernelOp(kernel.sym_name.data, self.in_graph(ins), list(results.values()))
        self.graph.add_op(op)
        made = dict(zip(results, op.results, strict=True))
        self.are(outs, [made[_result(out)] for out in outs])

    def graph_op(self, name: str, results: Types) -> Operation:
        self.graph.add_op(flow.ReturnOp(self.in_graph(self.results)))
        return flow.GraphOp(name, Region(self.graph), results)


def kernel_function(name: str, block: Block) -> func.FuncOp:
    """Makes the function with this body, which already ends in a `func.return`."""
    end = cast(Operation, block.last_op)
    return function(name, block, [cast(ArrayType, type) for type in end.operand_types])


def _result(value: Built) -> Built | SSAValue:
    """The key of a kernel's result: the value or, without axes, the local value, which several values may share."""
    return value.local if value.nest is not None and not value.nest.axes else value


def _returned(outs: Sequence[Built]) -> Operation:
    return returned([value.local for value in {_result(out): out for out in outs}.values()])


class WholeGraph(_Graph):
    """Writes one kernel, whose body is that of the device-local module."""

    def ops(self, name: str, results: Types) -> list[Operation]:
        arguments = set(self.arguments)
        outs = [value for value in dict.fromkeys(cast("Sequence[Built]", self.results)) if value not in arguments]
        kernels: list[Operation] = []
        if outs or self.block.first_op is not None:
            self.block.add_op(_returned(outs))
            swap_products(self.block)
            join_transforms(self.block)
            kernel = kernel_function(f"{name}_0", run_in_time(self.block, self.crossings))
            kernels = [kernel]
            self.called(kernel, self.arguments, outs)
        return [self.graph_op(name, results), *kernels]


@dataclass(frozen=True, slots=True)
class _Change:
    """A redistribution or a barrier."""

    make: Callable[[Sequence[SSAValue]], Operation]
    ins: Globals
    outs: Globals


class Kernels(_Graph):
    """Writes a node for each redistribution and barrier, and one for each run of nests and loops between them."""

    def __init__(self, types: Types) -> None:
        super().__init__(types)
        self.run = _Run()
        self.nodes: list[_Run | _Change] = []
        self.kernels: list[func.FuncOp] = []
        self.first: dict[Attribute, func.FuncOp | None] = {}
        """Type of a function -> the first kernel of this type; None once there are several."""
        self.alike: dict[Hashable, func.FuncOp] = {}
        """The kernels that share their type with others, by their structure."""

    def slice_outside(self, source: Global, own: ArrayType) -> SSAValue:
        self.force(source)
        if is_placed(own):
            self.nest.sliced_at.setdefault(on_device(source), len(self.nest.ops))
        return super().slice_outside(source, own)

    def force(self, value: Global) -> Global:
        if isinstance(value, Built) and value.nest is not None:
            value.nest.leaves[value] = None
        return value

    def redistribute(self, sources: Globals, targets: Types, way: Path | None = None) -> Globals:
        return self.change(lambda values: flow.RedistributeOp(values, targets, said(way)), sources, targets)

    def barrier(self, values: Globals) -> Globals:
        return self.change(flow.BarrierOp, values, [value.type for value in cast("Sequence[Built]", values)])

    def change(self, make: Callable[[Sequence[SSAValue]], Operation], sources: Globals, types: Types) -> Globals:
        self.end_nest_of(sources)
        self.end_run()
        ins = [self.force(source) for source in sources]
        outs = self.known(Block(arg_types=[type.local for type in types]).args, types)
        self.nodes.append(_Change(make, ins, outs))
        return outs

    def outer(self, make: Make, operands: Globals, types: Types) -> Globals:
        self.end_nest()
        op = self.local_op(make, operands, types)
        nest = Nest([op], sliced={on_device(operand): operand for operand in operands})
        self.run.nests.append(nest)
        return [Built(nest, out, type) for out, type in zip(op.results, types, strict=True)]

    def end_nest(self) -> None:
        if loops := [f"`{place}`" for place in self.nest.axes if isinstance(place, Loop)]:
            title = f"a graph that is cut at each redistribution has no loops, and the plan has {' and '.join(loops)}"
            raise Error(title, helps=["take `whole`"])
        if self.nest.ops or self.nest.axes:
            self.run.nests.append(self.nest)
        self.nest = Nest()

    def end_run(self) -> None:
        """Ends the kernel; the open nest belongs to the next one."""
        if self.run.nests:
            self.nodes.append(self.run)
        self.run = _Run()

    def ops(self, name: str, results: Types) -> list[Operation]:
        self.end_run()
        for node in self.nodes:
            if isinstance(node, _Run):
                node.trace()
        read = {*self.results, *(value for node in self.nodes for value in node.ins)}
        outs = {node: node.outs(read) for node in self.nodes if isinstance(node, _Run)}
        bodies = {node: node.body(each) for node, each in outs.items()}
        for node in self.nodes:
            if isinstance(node, _Change):
                op = node.make(self.in_graph(node.ins))
                self.graph.add_op(op)
                self.are(node.outs, op.results)
            else:
                # Only now: other kernels read values of this one until they have their own bodies.
                swap_products(bodies[node])
                join_transforms(bodies[node])
                self.called(self.kernel(name, bodies[node]), node.ins, outs[node])
        return [self.graph_op(name, results), *self.kernels]

    def kernel(self, name: str, block: Block) -> func.FuncOp:
        """Returns the function with this body, an existing one or a new one. Only kernels of equal type are compared."""
        made = kernel_function(f"{name}_{len(self.kernels)}", block)
        first = self.first.setdefault(made.function_type, made)
        if first is not made:
            if first is not None:
                self.alike[structure(first.body.block)] = first
                self.first[made.function_type] = None
            found = self.alike.setdefault(structure(block), made)
            if found is not made:
                return found
        self.kernels.append(made)
        return made


@dataclass(eq=False, slots=True)
class _Run:
    """The nests and loops of one kernel: its operands by first use, and its results in the order in which they are computed.

    Each kernel has its own constants, at its beginning, in the order in which they are read. So equal layers have equal
    kernels, and no node waits for a constant.
    """

    nests: list[Nest] = field(default_factory=list[Nest])
    arguments: dict[SSAValue, Global] = field(default_factory=dict[SSAValue, Global])
    """Local value -> the earlier global value that the kernel reads through it."""
    others: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])
    """The values that are computed or read here, in this order -> whether another value replaces them in the kernel."""
    constants: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The constants that are computed here -> the number of values before each."""
    kept: dict[tuple[Attribute, Attribute], ConstantOp] = field(default_factory=dict[tuple[Attribute, Attribute], ConstantOp])
    instead: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """`kept` has the kernel's own constants, each once; `instead` maps each constant to the one that replaces it."""
    readers: list[Operation] = field(default_factory=list[Operation])
    """The ops that read a replaced value."""

    @property
    def ins(self) -> Globals:
        return list(self.arguments.values())

    def trace(self) -> None:
        """Finds the arguments and constants that the ops read."""
        others = self.others
        for nest in self.nests:
            slices = [*nest.sliced_at.items()][::-1]
            for number, op in enumerate(nest.ops):
                while slices and slices[-1][1] <= number:
                    self.is_argument(slices.pop()[0], nest)
                is_reader = False
                for value in op.operands:
                    other = others.get(value)
                    is_reader |= self.read(value, nest) if other is None else other
                if is_reader:
                    self.readers.append(op)
                if isinstance(op, ConstantOp):
                    self.constants[op.results[0]] = len(others)
                else:
                    for result in op.results:
                        others[result] = False
            for local in [*(local for local, _ in slices[::-1]), *(leaf.local for leaf in nest.leaves)]:
                self.is_argument(local, nest)

    def is_argument(self, value: SSAValue, nest: Nest) -> bool:
        """Whether a value that a nest reads is an argument of the kernel, which a constant is not. Records the argument."""
        if value in self.others or value in self.constants:
            return value in self.arguments
        source = nest.sliced[value]
        if isinstance(value.owner, ConstantOp) and type_of(source) is value.type:
            return False
        self.arguments[value] = source
        self.others[value] = True
        return True

    def read(self, value: SSAValue, nest: Nest) -> bool:
        """Records the first use of a value from elsewhere, or of a constant; returns whether another value replaces it here."""
        if self.is_argument(value, nest):
            return True
        self.others[value] = found = self.constant(value) is not value
        return found

    def constant(self, value: SSAValue) -> SSAValue:
        """The kernel's own constant that replaces this one."""
        op = cast(ConstantOp, value.owner)
        key = (op.params, value.type)
        if key not in self.kept:
            self.kept[key] = op if value in self.constants else op.clone()
        self.instead[value] = made = self.kept[key].results[0]
        return made

    def outs(self, read: Set[Global]) -> list[Built]:
        """The values that are read outside the kernel, in the order in which they are computed; arguments come first."""
        places: dict[SSAValue, float] = {value: place for place, value in enumerate(self.others)}
        places |= {value: place - 0.5 for value, place in self.constants.items()}
        places |= {value: place - len(self.arguments) for place, value in enumerate(self.arguments)}
        leaves = (leaf for nest in self.nests for leaf in nest.leaves if leaf in read)
        return sorted(leaves, key=lambda leaf: places.get(leaf.local, -1))

    def body(self, outs: Sequence[Built]) -> Block:
        """The body of the kernel's function."""
        end = _returned(outs)
        for value in end.operands:
            if isinstance(value.owner, ConstantOp) and value not in self.arguments:
                self.constant(value)
        block = Block(arg_types=[value.type for value in self.arguments])
        block.add_ops(self.kept.values())
        block.add_ops(op for nest in self.nests for op in nest.ops if not isinstance(op, ConstantOp))
        block.add_op(end)
        values = {**dict(zip(self.arguments, block.args, strict=True)), **self.instead}
        for op in (*self.readers, end):
            rewire(op, values)
        return block


def structure(block: Block, outer: dict[SSAValue, int] | None = None) -> Hashable:
    """A body's text without value names and without hints on its ops: equal for equal kernels."""
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


def change(op: flow.RedistributeOp) -> func.FuncOp:
    """The device-local program of a redistribution, as a separate function.

    f32[data*64]{+model} to f32[data*64]   -->   spmd.all_reduce add %0 over (model) : f32[64] -> f32[64]
    """
    into = Local([before for before, _ in op.changes])
    into.finish_into(returned, into.redistribute(into.arguments, [after for _, after in op.changes], way_of(op)))
    return kernel_function("redistribute", into.block)
