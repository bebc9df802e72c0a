"""Ways to construct placed builders and slicers: as written, and fused as they are built.

All take the same calls, one `open ... close` for each op of the program. `Plain` writes each op as a separate builder with
a slicer for every operand, which is the readable form. `Nesting` applies the builder rules before it allocates: a slicer that
meets its builder cancels (beta), a builder of a slice becomes the sliced value (eta), neighbours share one nest (fusion), and
the axes of a nest come into the order of the devices (interchange). `Fusing` writes the nests that are left as builders, and
`Local` (`to_spmd.py`) writes what one device does in them. Lowering the plain text replays the same calls, so the rules, not a
second code path, lower a program.

    %h = build (data) { tanh (slice %x) }              build (data) { %h = tanh (slice %x)
    %z = build (data) { exp (slice %h) }        -->                   %z = exp %h; yield %z }
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Protocol, cast

from xdsl.dialects import func
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.array import BarrierOp, BuildOp, CoordinateOp, PrefetchOp, RedistributeOp, SliceOp, YieldOp, put_on
from ...dialects.ground.dtypes import itemsize
from ...dialects.lax import RegionOp
from ...dialects.mesh import Mesh
from ...dialects.ranges.algebra import Place
from ...dialects.types import ArrayType
from ..redistribute.path_text import path_text
from ..redistribute.search import Path, path
from ..rewire import rewire_users
from ..rules.rule_files import rules


@dataclass(eq=False, slots=True)
class Built:
    """A global value that a nest builds, or of which each device has its part already.

    `ssa` is the value itself, once something outside the nest needs it.
    """

    nest: Nest | None
    local: SSAValue
    type: ArrayType
    ssa: SSAValue | None = None


Global = SSAValue | Built

Globals = Sequence[Global]

Types = Sequence[ArrayType]

End = Callable[[Sequence[SSAValue]], Operation]
"""Makes the last op of a block from the values that the block returns."""

Make = Callable[[Sequence[SSAValue], Types], RegionOp]
"""Makes an op with regions of operands, with results of these types."""


@dataclass(eq=False, slots=True)
class Nest:
    """A builder under construction: its ops, the axes that they use, and the slices of values from outside."""

    ops: list[Operation] = field(default_factory=list[Operation])
    axes: dict[Place, None] = field(default_factory=dict[Place, None])
    """The axes, outer to inner: in the order in which its ops use them."""
    slices: dict[Global, SSAValue] = field(default_factory=dict[Global, SSAValue])
    sliced: dict[SSAValue, Global] = field(default_factory=dict[SSAValue, Global])
    coordinates: dict[tuple[Place, ...], SSAValue] = field(default_factory=dict[tuple[Place, ...], SSAValue])
    devices: Mesh | None = None
    leaves: dict[Built, None] = field(default_factory=dict["Built", None])
    """The values that are read outside the nest."""


class Constructor(Protocol):
    """The interface by which materialising and the passes build: it writes one block, from its `arguments`."""

    block: Block
    arguments: Globals

    def on(self, devices: Mesh) -> None:
        """What follows runs on this part of the mesh."""
        ...

    def given_on(self, sets: Sequence[Mesh]) -> None:
        """Says on which part of the mesh each argument is."""
        ...

    def open(self) -> None: ...

    def slice(self, source: Global, target: ArrayType) -> SSAValue: ...

    def coordinate(self, *axes: Place) -> SSAValue: ...

    def append(self, op: Operation) -> None: ...

    def close(self, results: Sequence[tuple[SSAValue, ArrayType]], axes: Sequence[Place]) -> list[Global]: ...

    def redistribute(self, sources: Globals, targets: Types, way: Path | None = None) -> Globals:
        """Brings values into other layouts: by the cheapest paths, unless one value takes another way."""
        ...

    def barrier(self, values: Globals, prefetch: bool = False) -> Globals:
        """Returns values that are there together, or starts the gather of the first one for the next trip of a loop."""
        ...

    def force(self, value: Global) -> Global:
        """Returns the value for users outside of its nest."""
        ...

    def inside(self, types: Types) -> Constructor:
        """Returns a constructor for a region of an op, with arguments of these types."""
        ...

    def outer(self, make: Make, operands: Globals, types: Types) -> Globals:
        """Writes an op with regions like `like`; its operands have been forced."""
        ...

    def end_nest(self) -> None: ...

    def finish_into(self, end: End, values: Globals) -> None:
        """Ends the block, which returns these values; they are forced."""
        ...

    def ops(self, name: str, results: Types) -> list[Operation]:
        """Returns the ops of a module: first the function with the finished block, whose results have these types."""
        ...


def type_of(value: Global) -> ArrayType:
    """The global type of a value."""
    return value.type if isinstance(value, Built) else cast(ArrayType, value.type)


def on_device(value: Global) -> SSAValue:
    """One device's part of a value."""
    assert isinstance(value, Built)
    return value.local


def is_placed(type: ArrayType) -> bool:
    """Whether a type is placed, padded or pending, not only a plain shape."""
    return not type.is_whole


@cache
def placed_axes(type: ArrayType) -> tuple[Place, ...]:
    """The axes that a type's dims are placed on or that its sums are pending over."""
    return (*type.layout.axes, *(each.axis for each in type.layout.pending))


def with_regions(op: RegionOp, regions: Sequence[Region]) -> Make:
    """Makes the same op with other regions."""
    return lambda operands, types: type(op).of(operands, types, op.params, regions)


def returned(values: Sequence[SSAValue]) -> Operation:
    """Makes a function's terminator, which returns these values."""
    return func.ReturnOp(*values)


def function(name: str, block: Block, results: Types, given: Sequence[Mesh] = ()) -> func.FuncOp:
    """Makes the function with this body. `given` are the parts of the mesh on which its arguments are, if they are on some."""
    made = func.FuncOp(name, (list(block.arg_types), list(results)), Region(block))
    put_on(given, [made])
    return made


def said(way: Path | None) -> str | None:
    """The text of a way that is not the cheapest path."""
    return None if way is None else path_text(way)


def _ssa(values: Globals) -> list[SSAValue]:
    assert all(isinstance(value, SSAValue) for value in values)
    return cast("list[SSAValue]", values)


def nested(axes: Iterable[Place]) -> tuple[Place, ...]:
    """The axes of a nest, in the order to which `interchange` brings them."""
    laws, placed = rules("builders"), list[Place]()

    def before(b: object, a: object) -> bool:
        return cast(Place, b).stride > cast(Place, a).stride

    for axis in dict.fromkeys(axes):
        at = len(placed)
        while at and laws.rewrite_root(("each", placed[at - 1], ("each", axis, "x")), {"before": before}):
            at -= 1
        placed.insert(at, axis)
    return tuple(placed)


class Plain:
    """Writes every op as a separate builder with every operand sliced; ops without placed values need no builder."""

    def __init__(self, types: Types) -> None:
        self.block = Block(arg_types=types)
        self.arguments: Globals = self.block.args
        self.body: list[Operation] = []
        self.devices: Mesh | None = None
        self.given: Sequence[Mesh] = ()

    def on(self, devices: Mesh) -> None:
        self.devices = devices

    def given_on(self, sets: Sequence[Mesh]) -> None:
        self.given = sets

    def write(self, *ops: Operation) -> None:
        """Adds ops to the block."""
        put_on(self.devices, ops)
        self.block.add_ops(ops)

    def open(self) -> None:
        self.body = []

    def slice(self, source: Global, target: ArrayType) -> SSAValue:
        ssa = self.force(source)
        if not is_placed(target):
            return ssa
        op = SliceOp(ssa, target.layout)
        self.append(op)
        return op.out

    def coordinate(self, *axes: Place) -> SSAValue:
        op = CoordinateOp(axes)
        self.append(op)
        return op.out

    def append(self, op: Operation) -> None:
        self.body.append(op)

    def close(self, results: Sequence[tuple[SSAValue, ArrayType]], axes: Sequence[Place]) -> list[Global]:
        if not axes:
            self.write(*self.body)
            return [local for local, _ in results]
        self.append(YieldOp([local for local, _ in results]))
        build = BuildOp(nested(axes), Region(Block(self.body)), [type for _, type in results])
        self.write(build)
        return list(build.results)

    def redistribute(self, sources: Globals, targets: Types, way: Path | None = None) -> Globals:
        op = RedistributeOp(_ssa(sources), targets, said(way))
        self.write(op)
        return op.results

    def barrier(self, values: Globals, prefetch: bool = False) -> Globals:
        op = (PrefetchOp if prefetch else BarrierOp)(_ssa(values))
        self.write(op)
        return op.results

    def force(self, value: Global) -> SSAValue:
        assert isinstance(value, SSAValue)
        return value

    def inside(self, types: Types) -> Plain:
        return Plain(types)

    def outer(self, make: Make, operands: Globals, types: Types) -> Globals:
        op = make(_ssa(operands), types)
        self.write(op)
        return op.results

    def end_nest(self) -> None:
        """Does nothing: every op has its own nest."""

    def finish_into(self, end: End, values: Globals) -> None:
        self.block.add_op(end(_ssa(values)))

    def ops(self, name: str, results: Types) -> list[Operation]:
        return [function(name, self.block, results, self.given)]


class Nesting(ABC):
    """Builders that fuse as they are built; a nest ends where one of its values must be redistributed."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.nest = Nest()
        self.rules = rules("builders")
        # The laws hold for all values, so the rules are asked once. Beta: a slicer that meets its builder cancels.
        self.beta = self.rules.rewrite_root(("slice", "L", ("build", "L", "x")), {}) is not None
        both = ("both", ("build", "L", "x"), ("build", "M", "y"))
        self.fuses = self.beta and self.rules.rewrite_root(both, {}) is not None
        self.devices: Mesh | None = None
        """The part of the mesh on which the nest runs; None for all of it."""
        self.given: Sequence[Mesh] = ()
        """The part of the mesh on which each argument is."""

    def on(self, devices: Mesh) -> None:
        if devices is not self.devices:
            self.end_nest()
            self.devices = devices

    def given_on(self, sets: Sequence[Mesh]) -> None:
        self.given = sets

    @cached_property
    def eta(self) -> bool:
        """Whether a builder that meets its slicer cancels. The rules are asked at the first such pair."""
        return self.rules.rewrite_root(("build", "L", ("slice", "L", "x")), {}) is not None

    def open(self) -> None:
        """Opens an op: in the current nest if the builder rules fuse nests (`fusion` and `beta`), otherwise in a new one."""
        if not self.fuses:
            self.end_nest()

    def slice(self, source: Global, target: ArrayType) -> SSAValue:
        """Slices by the value's own layout, then by the finer one. By `beta`, values that this nest builds need no slice."""
        if isinstance(source, Built) and source.nest is self.nest and self.beta:
            own, base = source.type, source.local
        else:
            own = type_of(source)
            base = self.slice_outside(source, own)
        return base if own is target else self.cut(base, own, target)

    @abstractmethod
    def slice_outside(self, source: Global, own: ArrayType) -> SSAValue:
        """One device's part of a value from outside of the nest."""

    def cut(self, local: SSAValue, own: ArrayType, target: ArrayType) -> SSAValue:
        """Cuts a device's part out of its local array, without communication."""
        for step in path(own.layout, target.layout, itemsize(own.dtype)).steps:
            for op in step.ops(local):
                self.append(op)
                local = op.results[0]
            self.nest.axes |= dict.fromkeys(step.axes)
        return local

    def coordinate(self, *axes: Place) -> SSAValue:
        found = self.nest.coordinates.get(axes)
        if found is None:
            op = self.coordinate_op(axes)
            self.append(op)
            found = self.nest.coordinates[axes] = op.results[0]
            self.nest.axes |= dict.fromkeys(axes)
        return found

    @abstractmethod
    def coordinate_op(self, axes: Sequence[Place]) -> Operation: ...

    def append(self, op: Operation) -> None:
        self.nest.ops.append(op)

    def close(self, results: Sequence[tuple[SSAValue, ArrayType]], axes: Sequence[Place]) -> list[Global]:
        self.nest.axes |= dict.fromkeys(axes)
        return [self.build(local, type) for local, type in results]

    def build(self, local: SSAValue, type: ArrayType) -> Global:
        """Builds a value. By `eta`, a slice built again in its own layout is the sliced value."""
        source = self.nest.sliced.get(local)
        if source is not None and type_of(source) is type and self.eta:
            return source
        return Built(self.nest, local, type)

    def end_nest_of(self, values: Globals) -> None:
        """Ends the nest if it builds one of these values, because they are read after it."""
        if any(isinstance(value, Built) and value.nest is self.nest for value in values):
            self.end_nest()

    @abstractmethod
    def end_nest(self) -> None: ...


class Fusing(Nesting):
    """Writes a builder for each nest."""

    def __init__(self, types: Types) -> None:
        super().__init__(Block(arg_types=types))
        self.arguments: Globals = self.block.args
        self.written: list[Operation | Nest] = []
        """The contents of the finished block. A nest's results are known only then, when all later ops exist."""

    def slice_outside(self, source: Global, own: ArrayType) -> SSAValue:
        whole = self.force(source)
        if not is_placed(own):
            # A replicated value is its own slice. `build` must know this: an op that returns the value unchanged builds
            # nothing.
            self.nest.sliced[whole] = whole
            return whole
        found = self.nest.slices.get(whole)
        if found is None:
            op = SliceOp(whole, own.layout)
            self.append(op)
            found = self.nest.slices[whole] = op.out
            self.nest.sliced[found] = whole
            self.nest.axes |= dict.fromkeys(placed_axes(own))
        return found

    def coordinate_op(self, axes: Sequence[Place]) -> Operation:
        return CoordinateOp(axes)

    def redistribute(self, sources: Globals, targets: Types, way: Path | None = None) -> Globals:
        self.end_nest_of(sources)
        return self.write(RedistributeOp([self.force(source) for source in sources], targets, said(way)))

    def barrier(self, values: Globals, prefetch: bool = False) -> Globals:
        self.end_nest_of(values)
        return self.write((PrefetchOp if prefetch else BarrierOp)([self.force(value) for value in values]))

    def write(self, op: Operation) -> Globals:
        put_on(self.devices, [op])
        self.written.append(op)
        return op.results

    def force(self, value: Global) -> SSAValue:
        if not isinstance(value, Built):
            return value
        if value.ssa is None:
            # A placeholder stands for the value until the nest has its results.
            value.ssa = Block(arg_types=[value.type]).args[0]
            cast(Nest, value.nest).leaves[value] = None
        return value.ssa

    def inside(self, types: Types) -> Fusing:
        return Fusing(types)

    def outer(self, make: Make, operands: Globals, types: Types) -> Globals:
        self.end_nest()
        return self.write(make(_ssa(operands), types))

    def end_nest(self) -> None:
        # A nest without ops may still build a value: a replicated one from outside, with another type.
        if self.nest.ops or self.nest.axes:
            self.nest.devices = self.devices
            self.written.append(self.nest)
        self.nest = Nest()

    def finish_into(self, end: End, values: Globals) -> None:
        """Gives every nest the results that are read outside it."""
        self.end_nest()
        self.written.append(end(_ssa(values)))
        # A nest may yield a value of an earlier nest, so all nests yield before the first one gets its results.
        nests = [each for each in self.written if isinstance(each, Nest)]
        yields = {nest: YieldOp([leaf.local for leaf in nest.leaves]) for nest in nests}
        read: dict[SSAValue, SSAValue] = {}
        for each in self.written:
            if isinstance(each, Nest):
                stood_for = [cast(SSAValue, leaf.ssa) for leaf in each.leaves]
                read.update(zip(stood_for, self.settle(each, yields[each], read), strict=True))
            else:
                self.block.add_op(each)
        rewire_users(read)

    def settle(self, nest: Nest, leaves: YieldOp, read: Mapping[SSAValue, SSAValue]) -> Sequence[SSAValue]:
        """Writes the builder, or only its ops if it uses no axis; returns the results that are read outside it."""
        if not nest.axes:
            results = [read.get(value, value) for value in leaves.operands]
            leaves.erase()
            put_on(nest.devices, nest.ops)
            self.block.add_ops(nest.ops)
            return results
        types = [leaf.type for leaf in nest.leaves]
        build = BuildOp(nested(nest.axes), Region(Block([*nest.ops, leaves])), types)
        put_on(nest.devices, [build])
        self.block.add_op(build)
        return build.results

    def ops(self, name: str, results: Types) -> list[Operation]:
        return [function(name, self.block, results, self.given)]
