"""From a placed program to the dataflow graph: kernels, and the changes of layout between them.

Each redistribution or barrier of the program is a node, and what a device computes between two of them is one kernel. Equal
kernels share one function. What happens in the trips of a loop stays in the kernel of the loop.

    %1 = array.redistribute %w                %1 = flow.redistribute %w
    %2 = array.build {...}            -->     %2 = flow.kernel @main_0(%x, %1)
    %3 = array.redistribute %2                %3 = flow.redistribute %2
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import flow, spmd
from ...dialects.array import MESH, on_part
from ...dialects.ground.dtypes import itemsize
from ...dialects.ground.errors import Error
from ...dialects.lax import ConstantOp, LaxOp, RegionOp, WholeOp
from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ...dialects.ranges.algebra import SubAxis
from ...dialects.types import ArrayType
from ..decide.device_sets import SMALL
from ..emit import again
from ..program.breadth_first import reached
from ..redistribute.around_loops import has_loops as are_in_time
from ..redistribute.kinds.folds import still_pending
from ..redistribute.kinds.local import EachTrip
from ..redistribute.search import path
from ..redistribute.steps import Path
from .constructors import Built, End, Global, Globals, Make, Types, function, on_device, returned, said, type_of
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
        raise Error(f"`{granularity}` cuts at pipeline stages, but plans do not have stages yet", helps=[f"take {known}"])
    raise Error(f"`{granularity}` is not a granularity", helps=[f"take {known}", *helps])


class _Graph(Local):
    """Writes a graph, from the device-local program, which it cuts where its `cuts` are."""

    cuts: tuple[type[Operation], ...] = (ChangeOp,)

    def __init__(self, types: Types) -> None:
        self.types = dict[SSAValue, ArrayType]()
        """Each device's part of a value -> the type of the value."""
        self.where = dict[SSAValue, Mesh | None]()
        """The device set of each value, and of each op."""
        self.sets = dict[Operation, Mesh | None]()
        self.copies = dict[tuple[SSAValue, ArrayType, Mesh], Global]()
        self.free = dict[SSAValue, int]()
        """The values that depend on nothing but numbers and keys, numbered in the order in which they are made."""
        self.again = dict[tuple[SSAValue, Mesh | None], SSAValue]()
        self.changes = list[Change]()
        super().__init__(types)
        self.graph, self.results = Block(), list[Typed]()
        self.in_graph = dict[Typed, SSAValue]()
        """Values -> those of the graph."""

    # --- the device-local program ----------------------------------------------------------------------------------

    def known(self, values: Sequence[SSAValue], types: Types) -> list[Global]:
        self.types.update(zip(values, types, strict=True))
        self.where.update(dict.fromkeys(values, self.devices))
        return super().known(values, types)

    def build(self, local: SSAValue, type: ArrayType) -> Global:
        self.types.setdefault(local, type)
        self.where.setdefault(local, self.devices)
        return super().build(local, type)

    def change(self, change: Change, locals: Sequence[SSAValue]) -> list[Global]:
        op = ChangeOp(locals, [each.local for each in change.after], {"number": IntAttr(len(self.changes))})
        self.changes.append(change)
        self.block.add_op(op)
        return self.known(op.results, change.after)

    def finish_into(self, end: End, values: Globals) -> None:
        self.end_nest()
        self.mark()
        self.results = list(map(_typed, values))

    # --- on device sets --------------------------------------------------------------------------------------------

    def on(self, devices: Mesh | None) -> None:
        if devices is not self.devices:
            self.end_nest()
            self.mark()
            self.devices = devices

    def given_on(self, sets: Sequence[Mesh]) -> None:
        super().given_on(sets)
        self.where.update(zip(self.block.args, sets, strict=False))

    def mark(self) -> None:
        """Notes where the ops run that were written since it was last called, and what another set could make too."""
        new, op = list[Operation](), self.block.last_op
        while op is not None and op not in self.sets:
            new.append(op)
            op = op.prev_op
        for op in reversed(new):
            self.sets[op] = self.devices
            is_local = isinstance(op, LaxOp | spmd.CoordinateOp) and not isinstance(op, RegionOp | WholeOp)
            if is_local and all(each in self.free or self.is_small(each) for each in op.operands):
                self.free.update((each, len(self.free)) for each in op.results)

    def redistribute(self, sources: Globals, targets: Types, way: Path | None = None) -> Globals:
        if self.devices is not None:
            sources = list(map(self.here, sources, targets))
            if len(sources) == 1 and type_of(sources[0]) is targets[0]:
                return sources
        return self.changed_here(sources, targets, way)

    @abstractmethod
    def changed_here(self, sources: Globals, targets: Types, way: Path | None) -> Globals:
        """Redistributes values of the set on which the program is now."""

    def changed_inside(self, sources: Globals, targets: Types, way: Path | None) -> Globals:
        """Writes a redistribution as what a device does."""
        return super().redistribute(sources, targets, way)

    def barrier(self, values: Globals) -> Globals:
        return super().barrier(list(map(self.here, values)))

    def outer(self, make: Make, operands: Globals, types: Types) -> Globals:
        return super().outer(make, list(map(self.here, operands)), types)

    def here(self, source: Global, target: ArrayType | None = None) -> Global:
        """The value on the set on which the program is now: itself, or a copy, at best of the part that is wanted."""
        local, type = on_device(source), type_of(source)
        at, here = self.where.get(local, self.devices), self.devices
        if at is here or here is None or isinstance(local.owner, ConstantOp):
            return source
        sent = type.layout.natural.with_pending(())
        is_part = target is not None and sent is type.layout and target.layout.natural is target.layout
        wanted = target if is_part and target is not None and sent.covers(target.layout) else type
        key = local, wanted, here
        if key not in self.copies and local in self.free:
            (self.copies[key],) = self.known([self.made_here(local)], [type])
        elif key not in self.copies:
            self.copies[key] = self.copied(source, sent, wanted, at)
        return self.copies[key]

    def copied(self, source: Global, sent: Layout, wanted: ArrayType, at: Mesh | None) -> Global:
        """A copy of a value. What crosses has blocks of consecutive elements."""
        if sent is not type_of(source).layout:
            self.mark()
            # The nest stays open: nothing that it builds is on the other set.
            here, self.devices = self.devices, at
            (source,) = self.redistribute([source], [ArrayType.of(wanted.dtype, sent)])
            self.mark()
            self.devices = here
        arrives = wanted if sent.covers(wanted.layout) and wanted.layout.natural is wanted.layout else type_of(source)
        (made,) = self.change(Change([type_of(source)], [arrives], is_transfer=True), [on_device(source)])
        return made if arrives is wanted else self.redistribute([made], [wanted])[0]

    def is_small(self, local: SSAValue) -> bool:
        """Whether a value is an argument that is a number or a key."""
        return local.owner is self.block and cast(ArrayType, local.type).nbytes <= SMALL

    def made_here(self, local: SSAValue) -> SSAValue:
        """The same value, computed on the set on which the program is now."""

        def before(value: SSAValue) -> Sequence[SSAValue]:
            return () if self.is_small(value) or (value, self.devices) in self.again else cast(Operation, value.owner).operands

        made = dict[SSAValue, SSAValue]()
        for value in sorted(reached([local], before), key=lambda each: self.free.get(each, -1)):
            op = value.owner
            if (known := self.again.get((value, self.devices))) is not None:
                made[value] = known
            elif self.is_small(value):
                made[value] = on_device(self.here(Built(None, value, self.types[value])))
            elif isinstance(op, ConstantOp):
                made[value] = value
            elif value not in made:
                made.update(self.op_again(cast(Operation, op), made))
        return made[local]

    def op_again(self, op: Operation, made: Mapping[SSAValue, SSAValue]) -> Mapping[SSAValue, SSAValue]:
        """Writes an op once more, on what was made of its operands."""
        new = again(op, [made[each] for each in op.operands], op.result_types)
        self.block.add_op(new)
        found = dict[SSAValue, SSAValue](zip(op.results, new.results, strict=True))
        for old, value in found.items():
            if old in self.types:
                # Other kernels of the set may read it too. What has no type stays in its kernel.
                self.known([value], [self.types[old]])
                self.again[old, self.devices] = value
        return found

    # --- the graph -------------------------------------------------------------------------------------------------

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
