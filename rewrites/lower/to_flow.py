"""From a placed program to the dataflow graph: kernels, and the changes of layout between them.

Each redistribution or barrier of the program is a node, and what a device computes between two of them is one kernel. Equal
kernels share one function. What happens in the trips of a loop stays in the kernel of the loop.

    %1 = array.redistribute %w                %1 = flow.redistribute %w
    %2 = array.build {...}            -->     %2 = flow.kernel @main_0(%x, %1)
    %3 = array.redistribute %2                %3 = flow.redistribute %2
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import flow
from ...dialects.array import MESH, on_part
from ...dialects.ground.dtypes import itemsize
from ...dialects.ground.errors import Error
from ...dialects.mesh import Mesh
from ...dialects.ranges.algebra import SubAxis
from ...dialects.types import ArrayType
from ..redistribute.around_loops import has_loops as are_in_time
from ..redistribute.kinds.folds import still_pending
from ..redistribute.kinds.local import EachTrip
from ..redistribute.search import path
from ..redistribute.steps import Path
from .across_sets import OnSets
from .constructors import End, Global, Globals, Types, function, on_device, returned, said, type_of
from .fuse import AsWritten, replayed
from .in_time import run_in_time
from .joined_transforms import join_transforms
from .local_redistribution import stepped, way_of
from .materialise import Start
from .on_sets import on_set, run_on, split, sub_axes
from .runs import CUTS, Change, ChangeOp, Run, Runs, Typed
from .to_spmd import Local, in_space
from .transposed_products import swap_products

GRANULARITIES = ("whole", "collective")
LATER = ("stage",)


def to_flow(module: ModuleOp, granularity: str = "collective") -> ModuleOp:
    """Returns the graph of a placed module.

    `whole` makes one kernel with its collectives inside, `collective` cuts at each redistribution; a loop whose body
    communicates stays in one kernel, and so does an op that merges its blocks. Raises Error for another granularity.
    """
    made = in_space(replayed(module, cut_at(granularity), AsWritten))
    if on_part(cast(Operation, module.body.block.first_op)):
        # Each kernel says its own mesh.
        made.attributes.pop(MESH, None)
    return made


def cut_at(granularity: str, *helps: str) -> Start:
    """Returns the constructor for graphs of a granularity. Raises Error for an unknown one, with `helps` as further help."""
    if granularity in GRANULARITIES:
        return WholeGraph if granularity == "whole" else Kernels
    known = " or ".join(f"`{name}`" for name in GRANULARITIES)
    if granularity in LATER:
        raise Error(f"`{granularity}` cuts at the stages of a pipeline, which is not there yet", helps=[f"take {known}"])
    raise Error(f"`{granularity}` is not a granularity", helps=[f"take {known}", *helps])


class _Graph(OnSets):
    """Writes a graph, from the device-local program, which it cuts where its `cuts` are."""

    cuts: tuple[type[Operation], ...] = (ChangeOp,)

    def __init__(self, types: Types) -> None:
        super().__init__(types)
        self.graph, self.results = Block(), list[Typed]()
        self.in_graph = dict[Typed, SSAValue]()
        """Values -> those of the graph."""

    def finish_into(self, end: End, values: Globals) -> None:
        self.end_nest()
        self.mark()
        self.results = list(map(_typed, values))

    def ops(self, name: str, results: Types) -> list[Operation]:
        self.begin()
        has_loops = are_in_time(*(type.layout for type in {*self.types.values()}))
        block = self.in_time() if has_loops else self.block
        runs = Runs(block, self.types, self.changes, self.results, self.cuts, self.sets, self.where, has_loops=has_loops)
        self.results = runs.ends
        outs = {node: runs.outs(node) for node in runs.nodes if isinstance(node, Run) and node.is_needed}
        # Kernels are changed once none reads values of others any more, and what changes read is known.
        parts = sub_axes(self.types.values())
        bodies, kernels = {node: node.body(outs[node]) for node in outs}, _Kernels(name, parts)
        reads = {node: runs.reads(node) for node in runs.nodes}
        for node in runs.nodes:
            if isinstance(node, Operation):
                self.changed(node, reads[node], runs.makes(node))
            elif node in bodies:
                self.called(kernels.of(bodies[node], node.on), reads[node], outs[node])
        made = self.graph_op(name)
        for devices in dict.fromkeys(each for each in self.given if each not in {node.on for node in bodies}):
            made.attributes[f"{MESH}.{devices.devices}"] = StringAttr(str(split(devices, parts)))
        return [made, *kernels.every]

    def in_time(self) -> Block:
        """The block with its loops. What is in trips is no kernel of its own later, so its products are swapped here."""
        self.block.add_op(returned([local for local, _ in self.results]))
        swap_products(self.block)
        join_transforms(self.block)
        block, now = run_in_time(self.block, self.crossings)
        end = cast(Operation, block.last_op)
        self.results = [(local, type) for local, (_, type) in zip(end.operands, self.results, strict=True)]
        end.detach()
        end.erase()
        given = zip(block.args, cast("Sequence[ArrayType]", self.graph.arg_types), strict=True)
        self.in_graph = dict[Typed, SSAValue](zip(given, self.graph.args, strict=True))
        moved = ((now.get(value, value), type) for value, type in self.types.items())
        self.types = {value: type for value, type in moved if type.local is value.type}
        return block

    def begin(self) -> None:
        """Gives the graph its arguments."""
        given = list(map(_typed, self.arguments))
        self.graph = Block(arg_types=list(map(self.placed, given)))
        self.in_graph = dict[Typed, SSAValue](zip(given, self.graph.args, strict=True))

    def placed(self, each: Typed) -> ArrayType:
        """The type of a value, on its device set if there are several."""
        value, type = each
        return on_set(type, self.where.get(value))

    def called(self, kernel: func.FuncOp, ins: Sequence[Typed], outs: Sequence[Typed]) -> None:
        """Adds a call of a kernel to the graph."""
        op = flow.KernelOp(kernel.sym_name.data, [self.in_graph[each] for each in ins], list(map(self.placed, outs)))
        self.graph.add_op(op)
        self.in_graph.update(zip(outs, op.results, strict=True))

    def changed(self, op: Operation, reads: Sequence[Typed], makes: Sequence[Typed]) -> None:
        """Adds a redistribution, a transfer or a barrier to the graph."""
        ins, types = [self.in_graph[each] for each in reads], list(map(self.placed, makes))
        change = self.changes[op.number.data] if isinstance(op, ChangeOp) else None
        if change is None:
            made = flow.BarrierOp(ins)
        elif change.is_transfer:
            made = flow.TransferOp(ins[0], types[0])
        else:
            made = flow.RedistributeOp(ins, types, said(change.way))
        self.graph.add_op(made)
        self.in_graph.update(zip(makes, made.results, strict=True))

    def graph_op(self, name: str) -> Operation:
        self.graph.add_op(flow.ReturnOp(ends := [self.in_graph[each] for each in self.results]))
        return flow.GraphOp(name, Region(self.graph), [cast(ArrayType, end.type) for end in ends])


def _typed(value: Global) -> Typed:
    return on_device(value), type_of(value)


def kernel_function(name: str, block: Block) -> func.FuncOp:
    """Makes the function with this body, which already ends in a `func.return`."""
    end = cast(Operation, block.last_op)
    return function(name, block, [cast(ArrayType, type) for type in end.operand_types])


class WholeGraph(_Graph):
    """Writes one kernel, whose body is that of the device-local module; on several device sets, as few as each set can have."""

    # On one set, nothing crosses from kernel to kernel.
    keeps_types = False

    def changed_here(self, sources: Globals, targets: Types, way: Path | None) -> Globals:
        return self.changed_inside(sources, targets, way)

    def ops(self, name: str, results: Types) -> list[Operation]:
        if self.given:
            return super().ops(name, results)
        self.begin()
        ins, kernels = [*self.in_graph], list[Operation]()
        outs = [*dict.fromkeys(each for each in self.results if each not in self.in_graph)]
        if outs or self.block.first_op is not None:
            self.block.add_op(returned([local for local, _ in outs]))
            swap_products(self.block)
            join_transforms(self.block)
            kernel = kernel_function(f"{name}_0", run_in_time(self.block, self.crossings)[0])
            kernels.append(kernel)
            self.called(kernel, ins, outs)
        return [self.graph_op(name), *kernels]


class Kernels(_Graph):
    """Writes a node for each redistribution and barrier, and one for what devices compute between them."""

    cuts = CUTS

    def changed_here(self, sources: Globals, targets: Types, way: Path | None) -> Globals:
        self.end_nest_of(sources)
        before = list(map(type_of, sources))
        ways = [way or path(x.layout, y.layout, itemsize(x.dtype)) for x, y in zip(before, targets, strict=True)]
        if not any(step.is_in_time or step.loops or isinstance(step, EachTrip) for each in ways for step in each.steps):
            return self.change(Change(before, targets, way), list(map(on_device, sources)))
        if len(sources) > 1 or any(each.scans or each.is_gathered for each in before[0].layout.pending):
            return self.changed_inside(sources, targets, way)
        return [self.around_loops(sources[0], targets[0], ways[0])]

    def around_loops(self, source: Global, target: ArrayType, way: Path) -> Global:
        """Writes steps over loops in the kernel, and those between them as a redistribution, unless they are in trips."""
        ends, local = _ends(type_of(source), way), on_device(source)
        outside = [at for at, end in enumerate(ends) if not are_in_time(end.layout)]
        in_trips = any(step.loops or isinstance(step, EachTrip) for step in way.steps)
        is_between = not in_trips and bool(outside) and outside == [*range(outside[0], outside[-1] + 1)]
        first, last = (outside[0], outside[-1]) if is_between else (0, 0)
        local = stepped(way.steps[:first], local, self.block)
        if first < last:
            before, after, middle = ends[first], ends[last], Path.of(*way.steps[first:last])
            cheapest = path(before.layout, after.layout, itemsize(target.dtype))
            self.known([local], [before])
            (value,) = self.change(Change([before], [after], None if middle == cheapest else middle), [local])
            local = on_device(value)
        return self.known([stepped(way.steps[last:], local, self.block)], [target])[0]


def _ends(type: ArrayType, way: Path) -> list[ArrayType]:
    """The type of a value before each step of a path, and after the last one."""
    pending, ends = type.layout.pending, [type]
    for step in way.steps:
        pending = still_pending(step, pending)
        ends.append(ArrayType.of(type.dtype, step.after.with_pending(pending)))
    return ends


class _Kernels:
    """The kernels of a graph. Only those of equal type are compared."""

    def __init__(self, name: str, parts: Sequence[SubAxis]) -> None:
        self.name, self.parts = name, parts
        self.every = list[func.FuncOp]()
        self.first = dict[tuple[Attribute, Mesh | None], func.FuncOp | None]()
        """Type of a function and its device set -> the first kernel of both; None once there are several."""
        self.alike = dict[Hashable, func.FuncOp]()
        """The kernels that share their type with others, by their structure."""

    def of(self, block: Block, on: Mesh | None) -> func.FuncOp:
        """Returns the function with this body, on a device set: an existing one or a new one."""
        swap_products(block)
        join_transforms(block)
        made = kernel_function(f"{self.name}_{len(self.every)}", block)
        if on is not None:
            run_on(made, on, self.parts)
        key = made.function_type, on
        first = self.first.setdefault(key, made)
        if first is not made:
            if first is not None:
                self.alike[on, structure(first.body.block)] = first
                self.first[key] = None
            found = self.alike.setdefault((on, structure(block)), made)
            if found is not made:
                return found
        self.every.append(made)
        return made


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
