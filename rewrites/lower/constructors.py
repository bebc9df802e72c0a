"""Two ways to construct placed builders and slicers: as written, and fused as they are built.

Both take the same calls, one `open ... close` for each op of the program. `Plain` writes each op as a separate builder with
a slicer for every operand, which is the readable form. `Fusing` applies the builder rules before it allocates: a slicer that
meets its builder cancels (beta), a builder of a slice becomes the sliced value (eta), neighbours share one nest (fusion), and
the axes of a nest come into the order of the devices (interchange). Lowering the plain text replays the same calls into
`Fusing`, so the rules, not a second code path, lower a program.

    %h = build (data) { tanh (slice %x) }              build (data) { %h = tanh (slice %x)
    %z = build (data) { exp (slice %h) }        -->                   %z = exp %h; yield %z }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, cast

from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.array import BarrierOp, BuildOp, CoordinateOp, RedistributeOp, SliceOp, YieldOp
from ...dialects.dtypes import itemsize
from ...dialects.ranges.algebra import MeshAxis
from ...dialects.types import ArrayType, AxesAttr
from ..redistribute.search import path
from ..rewire import rewire_users
from ..rules.files import rules


@dataclass(eq=False, slots=True)
class Built:
    """A global value that an open or closed nest builds; `ssa` is set once something outside the nest needs it."""

    nest: Nest
    local: SSAValue
    type: ArrayType
    ssa: SSAValue | None = None


Global = SSAValue | Built


@dataclass(eq=False, slots=True)
class Nest:
    """A builder under construction: its ops, the axes that they use, and the slices of values from outside."""

    block: Block = field(default_factory=Block)
    axes: dict[MeshAxis, None] = field(default_factory=dict[MeshAxis, None])
    """The axes, outer to inner: in the order in which its ops use them."""
    slices: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    sliced: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    coordinates: dict[MeshAxis, SSAValue] = field(default_factory=dict[MeshAxis, SSAValue])
    leaves: dict[SSAValue, Built] = field(default_factory=dict[SSAValue, Built])
    """What is read outside, by the values that stand for it there until the nest has its results."""


class Constructor(Protocol):
    """The interface with which materialising and the `fuse` pass build."""

    def open(self) -> None: ...

    def slice(self, source: Global, target: ArrayType) -> SSAValue: ...

    def coordinate(self, axis: MeshAxis) -> SSAValue: ...

    def append(self, op: Operation) -> None: ...

    def close(self, results: Sequence[tuple[SSAValue, ArrayType]], axes: Sequence[MeshAxis]) -> list[Global]: ...

    def redistribute(self, sources: Sequence[Global], targets: Sequence[ArrayType]) -> Sequence[Global]: ...

    def barrier(self, values: Sequence[Global]) -> list[Global]: ...

    def force(self, value: Global) -> SSAValue: ...

    def inside(self, block: Block) -> Constructor: ...

    def outer(self, op: Operation) -> None: ...

    def finish_into(self, last: Operation) -> None: ...


def type_of(value: Global) -> ArrayType:
    """The global type of a value."""
    return value.type if isinstance(value, Built) else cast(ArrayType, value.type)


def placed(type: ArrayType) -> bool:
    """Whether a type is more than a plain shape."""
    return not type.is_whole


def axes_of(type: ArrayType) -> list[MeshAxis]:
    """The axes that a type's dims are placed on or that its sums are pending over."""
    return [*type.layout.axes, *(each.axis for each in type.layout.pending)]


def nested(axes: Iterable[MeshAxis]) -> tuple[MeshAxis, ...]:
    """The axes of a nest, in the order to which `interchange` brings them."""
    laws, placed = rules("builders"), list[MeshAxis]()

    def before(b: object, a: object) -> bool:
        return cast(MeshAxis, b).stride > cast(MeshAxis, a).stride

    for axis in dict.fromkeys(axes):
        at = len(placed)
        while at and laws.rewrite_root(("each", placed[at - 1], ("each", axis, "x")), {"before": before}):
            at -= 1
        placed.insert(at, axis)
    return tuple(placed)


class Plain:
    """Writes every op as a separate builder with every operand sliced; ops without placed values need no builder."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.body = Block()

    def open(self) -> None:
        self.body = Block()

    def slice(self, source: Global, target: ArrayType) -> SSAValue:
        ssa = self.force(source)
        if not placed(target):
            return ssa
        op = SliceOp(ssa, target.layout)
        self.body.add_op(op)
        return op.out

    def coordinate(self, axis: MeshAxis) -> SSAValue:
        op = CoordinateOp([axis])
        self.body.add_op(op)
        return op.out

    def append(self, op: Operation) -> None:
        self.body.add_op(op)

    def close(self, results: Sequence[tuple[SSAValue, ArrayType]], axes: Sequence[MeshAxis]) -> list[Global]:
        if not axes:
            for op in list(self.body.ops):
                op.detach()
                self.block.add_op(op)
            return [local for local, _ in results]
        self.body.add_op(YieldOp([local for local, _ in results]))
        build = BuildOp(nested(axes), Region(self.body), [type for _, type in results])
        self.block.add_op(build)
        return list(build.results)

    def redistribute(self, sources: Sequence[Global], targets: Sequence[ArrayType]) -> Sequence[Global]:
        op = RedistributeOp([self.force(source) for source in sources], targets)
        self.block.add_op(op)
        return op.results

    def barrier(self, values: Sequence[Global]) -> list[Global]:
        op = BarrierOp([self.force(value) for value in values])
        self.block.add_op(op)
        return list(op.results)

    def force(self, value: Global) -> SSAValue:
        assert isinstance(value, SSAValue)
        return value

    def inside(self, block: Block) -> Plain:
        return Plain(block)

    def outer(self, op: Operation) -> None:
        self.block.add_op(op)

    def finish_into(self, last: Operation) -> None:
        self.block.add_op(last)


class Fusing:
    """Builders that fuse as they are built; a nest ends where one of its values must be redistributed."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.nest = Nest()
        self.ended: list[tuple[Nest, BuildOp]] = []
        self.rules = rules("builders")
        both = ("both", ("build", "L", "x"), ("build", "M", "y"))
        self.fuses = self.beta and self.rules.rewrite_root(both, {}) is not None

    @cached_property
    def beta(self) -> bool:
        """Whether a slicer that meets its builder cancels. The law holds of all values, so the rules are asked once."""
        return self.rules.rewrite_root(("slice", "L", ("build", "L", "x")), {}) is not None

    @cached_property
    def eta(self) -> bool:
        """Whether a builder that meets its slicer cancels; asked where the first one does."""
        return self.rules.rewrite_root(("build", "L", ("slice", "L", "x")), {}) is not None

    def open(self) -> None:
        """An op joins the open nest by `fusion`, if by `beta` it need not be built for the op."""
        if not self.fuses:
            self.end_nest()

    def slice(self, source: Global, target: ArrayType) -> SSAValue:
        """Slices by the value's own layout, then by the finer one. By `beta`, values that this nest builds need no slice."""
        own = type_of(source)
        if isinstance(source, Built) and source.nest is self.nest and self.beta:
            base = source.local
        else:
            base = self.slice_outside(self.force(source), own)
        return base if own is target else self.cut(base, own, target)

    def slice_outside(self, source: SSAValue, own: ArrayType) -> SSAValue:
        if not placed(own):
            # A replicated value is its own slice. `build` must know it: an op that returns it unchanged builds nothing.
            self.nest.sliced[source] = source
            return source
        found = self.nest.slices.get(source)
        if found is None:
            op = SliceOp(source, own.layout)
            self.append(op)
            found = self.nest.slices[source] = op.out
            self.nest.sliced[found] = source
            self.nest.axes |= dict.fromkeys(axes_of(own))
        return found

    def cut(self, local: SSAValue, own: ArrayType, target: ArrayType) -> SSAValue:
        """A device's own part of its local array, without communication."""
        for step in path(own.layout, target.layout, itemsize(own.dtype)).steps:
            for op in step.ops(local):
                self.append(op)
                local = op.results[0]
            self.nest.axes |= dict.fromkeys(step.axes)
        return local

    def coordinate(self, axis: MeshAxis) -> SSAValue:
        found = self.nest.coordinates.get(axis)
        if found is None:
            op = CoordinateOp([axis])
            self.append(op)
            found = self.nest.coordinates[axis] = op.out
            self.nest.axes[axis] = None
        return found

    def append(self, op: Operation) -> None:
        self.nest.block.add_op(op)

    def close(self, results: Sequence[tuple[SSAValue, ArrayType]], axes: Sequence[MeshAxis]) -> list[Global]:
        self.nest.axes |= dict.fromkeys(axes)
        return [self.build(local, type) for local, type in results]

    def build(self, local: SSAValue, type: ArrayType) -> Global:
        """Builds a value. By `eta`, a slice built again in its own layout is the sliced value."""
        source = self.nest.sliced.get(local)
        if source is not None and source.type is type and self.eta:
            return source
        return Built(self.nest, local, type)

    def redistribute(self, sources: Sequence[Global], targets: Sequence[ArrayType]) -> Sequence[Global]:
        op = RedistributeOp([self.outside(source) for source in sources], targets)
        self.block.add_op(op)
        return op.results

    def barrier(self, values: Sequence[Global]) -> list[Global]:
        op = BarrierOp([self.outside(value) for value in values])
        self.block.add_op(op)
        return list(op.results)

    def outside(self, value: Global) -> SSAValue:
        """The value for users after the nest: the nest that builds it ends here."""
        if isinstance(value, Built) and value.nest is self.nest:
            self.end_nest()
        return self.force(value)

    def force(self, value: Global) -> SSAValue:
        if not isinstance(value, Built):
            return value
        if value.ssa is None:
            value.ssa = Block(arg_types=[value.type]).args[0]
            value.nest.leaves[value.ssa] = value
        return value.ssa

    def inside(self, block: Block) -> Fusing:
        return Fusing(block)

    def outer(self, op: Operation) -> None:
        self.end_nest()
        self.block.add_op(op)

    def end_nest(self) -> None:
        """Closes the nest; its results are known at the end, when all later ops exist."""
        # A nest without ops may still build a value: a replicated one from outside, with another type.
        if self.nest.block.ops or self.nest.axes:
            op = BuildOp.create(properties={"place": AxesAttr(())}, regions=[Region(self.nest.block)])
            self.block.add_op(op)
            self.ended.append((self.nest, op))
        self.nest = Nest()

    def finish_into(self, last: Operation) -> None:
        """Ends the block with `last`, and gives every nest the results that are read outside it."""
        self.end_nest()
        self.block.add_op(last)
        # A nest may yield a value of an earlier nest, so all nests yield before the first one gets its results.
        yields = [YieldOp([leaf.local for leaf in nest.leaves.values()]) for nest, _ in self.ended]
        read: dict[SSAValue, SSAValue] = {}
        for (nest, op), leaves in zip(self.ended, yields, strict=True):
            nest.block.add_op(leaves)
            read.update(zip(nest.leaves, self.settle(nest, op, leaves, read), strict=True))
        rewire_users(read)

    def settle(self, nest: Nest, op: BuildOp, leaves: YieldOp, read: Mapping[SSAValue, SSAValue]) -> Sequence[SSAValue]:
        """Gives the builder its results, or replaces it by its ops if it uses no axis; returns what is read outside it."""
        if not nest.axes:
            results: Sequence[SSAValue] = [read.get(value, value) for value in leaves.operands]
            leaves.detach()
            leaves.erase()
            for each in list(nest.block.ops):
                each.detach()
                self.block.insert_op_before(each, op)
        else:
            region = op.detach_region(op.body)
            build = BuildOp(nested(nest.axes), region, [leaf.type for leaf in nest.leaves.values()])
            self.block.insert_op_before(build, op)
            results = build.results
        op.detach()
        op.erase()
        return results
