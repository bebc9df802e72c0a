"""Fuses the builders and slicers of placed text: replays a module, op by op, into a constructor.

Materialising makes the same calls while it walks the program, so lowering the unfused text gives the same result as a plan. The
other passes of `partita-opt` replay a module into their own constructors.

    build {a}; build {b (slice a)}   -->   build {a; b a}
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import spmd
from ...dialects.array import (
    BarrierOp,
    BuildOp,
    CoordinateOp,
    RedistributeOp,
    SliceOp,
    YieldOp,
    keep_mesh,
)
from ...dialects.lax import RegionOp, YieldOp as RegionYieldOp
from ...dialects.types import ArrayType
from .constructors import Constructor, Fusing, Global, returned
from .materialise import Start, written
from .moved import moved


def fuse(module: ModuleOp) -> ModuleOp:
    """Returns the same placed program with its builders and slicers fused."""
    return replayed(module, Fusing, Replay())


def replayed(module: ModuleOp, constructor: Start, replay: Replay) -> ModuleOp:
    """Returns the module that a constructor makes from a placed module."""
    main = cast(func.FuncOp, module.body.block.first_op)
    into = constructor([cast(ArrayType, type) for type in main.function_type.inputs])
    replay.block(main.body.block, into)
    made = written(into, main, [cast(ArrayType, type) for type in main.function_type.outputs])
    keep_mesh(module, made)
    return made


class Replay:
    """Replays the text into a constructor; `made` maps old values to new ones."""

    def __init__(self) -> None:
        self.made: dict[SSAValue, Global] = {}

    def block(self, source: Block, into: Constructor) -> None:
        self.made.update(zip(source.args, into.arguments, strict=True))
        for op in source.ops:
            self.op(op, into)

    def op(self, op: Operation, into: Constructor) -> None:
        match op:
            case BuildOp():
                self.build(op, into)
            case RedistributeOp():
                moved = into.redistribute([self.made[value] for value in op.ins], [after for _, after in op.changes])
                self.made.update(zip(op.results, moved, strict=True))
            case BarrierOp():
                self.made.update(zip(op.results, into.barrier([self.made[v] for v in op.operands]), strict=True))
            case RegionOp():
                self.regions(op, into)
            case func.ReturnOp() | RegionYieldOp():
                end = returned if isinstance(op, func.ReturnOp) else RegionYieldOp
                into.finish_into(end, [into.force(self.made[value]) for value in op.operands])
            case _:
                self.whole(op, into)

    def build(self, op: BuildOp, into: Constructor) -> None:
        into.open()
        self.body(op, {}, into)

    def body(self, op: BuildOp, locals: dict[SSAValue, SSAValue], into: Constructor) -> None:
        """Replays the ops of a builder, and of the builders inside it."""
        for inner in op.body.block.ops:
            match inner:
                case BuildOp():
                    self.body(inner, locals, into)
                case RedistributeOp() | BarrierOp():
                    self.moved(inner, locals, into)
                case SliceOp():
                    source = inner.source
                    if source in locals:  # A builder inside this one reads the value as a global one.
                        (self.made[source],) = into.close([(locals[source], cast(ArrayType, source.type))], ())
                    locals[inner.out] = into.slice(self.made[source], inner.target)
                case CoordinateOp():
                    locals[inner.out] = into.coordinate(*inner.axes)
                case YieldOp():
                    types = [cast(ArrayType, type) for type in op.result_types]
                    leaves = [locals[v] if v in locals else self.outside(v, into) for v in inner.operands]
                    made = into.close(list(zip(leaves, types, strict=True)), op.axes)
                    self.made.update(zip(op.results, made, strict=True))
                case _:
                    self.copy(inner, locals, into)

    def moved(self, op: RedistributeOp | BarrierOp, locals: dict[SSAValue, SSAValue], into: Constructor) -> None:
        """Replays a redistribution between the builders in a builder, or a barrier, as ops of the nest."""
        ins = [locals[v] if v in locals else self.outside(v, into) for v in op.operands]
        block = Block()
        if isinstance(op, RedistributeOp):
            before, after = zip(*op.changes, strict=True)
            made = moved(ins, before, after, block)
        else:
            block.add_op(barrier := spmd.BarrierOp(ins))
            made = barrier.results
        for each in list(block.ops):
            each.detach()
            into.append(each)
        locals.update(zip(op.results, made, strict=True))

    def copy(self, op: Operation, locals: dict[SSAValue, SSAValue], into: Constructor) -> None:
        new = op.clone({v: locals[v] if v in locals else self.outside(v, into) for v in op.operands})
        into.append(new)
        locals.update(zip(op.results, new.results, strict=True))

    def outside(self, value: SSAValue, into: Constructor) -> SSAValue:
        """Slices a replicated value that is read inside a nest; by its own layout, this returns the value itself."""
        return into.slice(self.made[value], cast(ArrayType, value.type))

    def whole(self, op: Operation, into: Constructor) -> None:
        """Replays an op without placed values, as a nest over no axes."""
        into.open()
        locals: dict[SSAValue, SSAValue] = {}
        self.copy(op, locals, into)
        results = [(locals[result], cast(ArrayType, result.type)) for result in op.results]
        self.made.update(zip(op.results, into.close(results, ()), strict=True))

    def regions(self, op: RegionOp, into: Constructor) -> None:
        operands = [into.force(self.made[value]) for value in op.operands]
        regions: list[Region] = []
        for source in (region.block for region in op.regions):
            inside = into.inside([cast(ArrayType, arg.type) for arg in source.args])
            self.block(source, inside)
            regions.append(Region(inside.block))
        made = into.outer(op, operands, [cast(ArrayType, type) for type in op.result_types], regions)
        self.made.update(zip(op.results, made, strict=True))


class AsWritten(Replay):
    """Keeps the nests of the text, and so the order of its ops."""

    def op(self, op: Operation, into: Constructor) -> None:
        super().op(op, into)
        into.end_nest()
