"""Fuses the builders and slicers of placed text: replays a module, op by op, into a constructor.

Materialising makes the same calls while it walks the program, so lowering the unfused text gives the same result as a plan. The
other passes of `partita-opt` replay a module into their own constructors.

    build {a}; build {b (slice a)}   -->   build {a; b a}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import spmd
from ...dialects.array import (
    ON,
    BarrierOp,
    BuildOp,
    CoordinateOp,
    PrefetchOp,
    RedistributeOp,
    SliceOp,
    YieldOp,
    keep_mesh,
    on_part,
)
from ...dialects.lax import RegionOp, YieldOp as RegionYieldOp
from ...dialects.ranges.algebra import Place
from ...dialects.types import ArrayType
from ..emit import type_at
from .constructors import Constructor, Fusing, Global, returned, with_regions
from .local_redistribution import redistributed, way_of
from .materialise import Start, finished_module


def fuse(module: ModuleOp) -> ModuleOp:
    """Returns the same placed program with its builders and slicers fused."""
    return replayed(module, Fusing, Replay)


def replayed(module: ModuleOp, constructor: Start, replay: Callable[[Constructor], Replay]) -> ModuleOp:
    """Returns the module that a constructor makes from a placed module."""
    main = cast(func.FuncOp, module.body.block.first_op)
    inputs, outputs = (
        cast("list[ArrayType]", list(types)) for types in (main.function_type.inputs, main.function_type.outputs)
    )
    into = constructor(inputs)
    into.given_on(on_part(main))
    replay(into).block(main.body.block)
    made = finished_module(into, main, outputs)
    keep_mesh(module, made)
    return made


def types_of(op: Operation) -> list[ArrayType]:
    return list(map(type_at, op.results))


class Replay:
    """Replays the text into a constructor; `made` maps old values to new ones, `locals` those of the nest that is open."""

    def __init__(self, into: Constructor) -> None:
        self.into = into
        self.made: dict[SSAValue, Global] = {}
        self.locals: dict[SSAValue, SSAValue] = {}

    def block(self, source: Block) -> None:
        self.make(source.args, self.into.arguments)
        for op in source.ops:
            self.op(op)

    def make(self, old: Sequence[SSAValue], new: Sequence[Global]) -> None:
        self.made.update(zip(old, new, strict=True))

    def op(self, op: Operation) -> None:
        into, ins = self.into, [self.made[value] for value in op.operands]
        for devices in on_part(op):
            into.on(devices)
        match op:
            case BuildOp():
                self.open()
                self.body(op)
            case RedistributeOp():
                self.make(op.results, into.redistribute(ins, [after for _, after in op.changes], way_of(op)))
            case BarrierOp() | PrefetchOp():
                self.make(op.results, into.barrier(ins, isinstance(op, PrefetchOp)))
            case RegionOp():
                operands = [into.force(value) for value in ins]
                regions = [self.region(region.block) for region in op.regions]
                self.make(op.results, into.outer(with_regions(op, regions), operands, types_of(op)))
            case func.ReturnOp() | RegionYieldOp():
                end = returned if isinstance(op, func.ReturnOp) else RegionYieldOp
                into.finish_into(end, [into.force(value) for value in ins])
            case _:
                # An op without placed values: a nest over no axes.
                self.open()
                self.copy(op)
                self.close(op, op.results, ())

    def open(self) -> None:
        self.into.open()
        self.locals = {}

    def close(self, op: Operation, leaves: Sequence[SSAValue], axes: Sequence[Place]) -> None:
        """Builds the results of an op, of these leaves."""
        locals = [self.local(value) for value in leaves]
        self.make(op.results, self.into.close(list(zip(locals, types_of(op), strict=True)), axes))

    def body(self, op: BuildOp) -> None:
        """Replays the ops of a builder, and of the builders inside it."""
        for inner in op.body.block.ops:
            match inner:
                case BuildOp():
                    self.body(inner)
                case RedistributeOp() | BarrierOp():
                    self.moved(inner)
                case SliceOp():
                    source = inner.source
                    if source in self.locals:  # It is global to a builder in the builder.
                        (self.made[source],) = self.into.close([(self.locals[source], type_at(source))], ())
                    self.locals[inner.out] = self.into.slice(self.made[source], inner.target)
                case CoordinateOp():
                    self.locals[inner.out] = self.into.coordinate(*inner.axes)
                case YieldOp():
                    self.close(op, inner.operands, op.axes)
                case _:
                    self.copy(inner)

    def moved(self, op: RedistributeOp | BarrierOp) -> None:
        """Replays a redistribution between the builders in a builder, or a barrier, as ops of the nest."""
        ins, block = [self.local(value) for value in op.operands], Block()
        if isinstance(op, RedistributeOp):
            before, after = zip(*op.changes, strict=True)
            made = redistributed(ins, before, after, block, way_of(op))
        else:
            block.add_op(barrier := spmd.BarrierOp(ins))
            made = barrier.results
        for each in list(block.ops):
            each.detach()
            self.into.append(each)
        self.locals.update(zip(op.results, made, strict=True))

    def copy(self, op: Operation) -> None:
        new = op.clone({value: self.local(value) for value in op.operands})
        new.attributes.pop(ON, None)
        self.into.append(new)
        self.locals.update(zip(op.results, new.results, strict=True))

    def local(self, value: SSAValue) -> SSAValue:
        """What the nest has of a value. A replicated one from outside is its own slice."""
        if value in self.locals:
            return self.locals[value]
        return self.into.slice(self.made[value], type_at(value))

    def region(self, source: Block) -> Region:
        outer = self.into
        self.into = inside = outer.inside(list(map(type_at, source.args)))
        self.block(source)
        self.into = outer
        return Region(inside.block)


class AsWritten(Replay):
    """Keeps the nests of the text, and so the order of its ops."""

    def op(self, op: Operation) -> None:
        super().op(op)
        self.into.end_nest()
