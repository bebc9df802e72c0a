"""The device-local program of a plan with loops, and how often its loops run what the plan decides.

Lowering decides in which loop an op runs: what is the same in all trips runs once, and what nothing needs, not at all. So the
program is written with a mark on each collective, the number of a redistribution's collective, and this is read off it.

    all_to_all of what the trips of t:3 have, and of a number that is broadcast in them   -->   3 times, and once
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import spmd
from ...dialects.lax import RegionOp
from ...dialects.ranges.algebra import Loop, Place
from ...rewrites.decide.decide import SELECTED, Decisions, Move
from ...rewrites.lower.constructors import Global, Globals, Make, Types, on_device
from ...rewrites.lower.loop_schedule import Crossing
from ...rewrites.lower.materialise import Writer
from ...rewrites.lower.to_spmd import Local
from ...rewrites.program.program import Control, Node, NodeId, ValueId
from ...rewrites.redistribute.steps import Bytes, Path, Step
from ..gc_pause import without_collector
from ..plan.lowering import decided
from ..plan.state import State

MARK = "decided"
"""The attribute of what is marked: a collective has its number, an op with regions the numbers of these."""


@dataclass(frozen=True, slots=True)
class AsLowered:
    """The device-local program, what several loops in it need, and what runs in them."""

    main: Block
    crossings: Sequence[Crossing]
    values: Mapping[SSAValue, ValueId]
    runs: Mapping[Move, Sequence[int]]
    """How often the loops run each collective of a redistribution."""
    around: Mapping[int, frozenset[Place]]
    """The loops whose trips each run a region of the program: it lies inside of them, as a scan of layers in micro-batches."""


class Sending(NamedTuple):
    """A collective of a redistribution."""

    step: Step
    received: Bytes
    trips: int
    """How often loops run it in one run of its region."""


def as_lowered(plan: State) -> AsLowered:
    return plan.once(_lowered)


def sent(plan: State, move: Move) -> Iterator[Sending]:
    """The collectives of a redistribution, without those in loops that nothing needs."""
    every = [(step, part) for step in move.path.steps for part in step.collectives]
    runs = as_lowered(plan).runs.get(move, ()) if plan.mesh.loops else repeat(1, len(every))
    return (Sending(*each, trips) for each, trips in zip(every, runs, strict=True) if trips)


def trips_around(plan: State, node: Node) -> int:
    """How often the trips of loops run an op that is not placed on these loops, because its region lies inside of them."""
    if not (node.region and plan.mesh.loops and (outer := as_lowered(plan).around.get(node.region))):
        return 1
    own = (factor.axis for _, factor in plan.decisions.placements.nodes[node.number].placement)
    return prod(each.size for each in outer.difference(own))


def _lowered(plan: State) -> AsLowered:
    with without_collector():
        writer = _Writer(decided(plan))
        module = writer.module()
    main = cast(FuncOp, module.body.block.first_op).body.block
    runs, around = dict.fromkeys(range(len(writer.collectives)), 0), dict[int, frozenset[Place]]()
    loops = {str(each): each for each in plan.mesh.loops}
    for op, within in _within(main, loops, ()):
        match op.attributes.get(MARK):
            case IntAttr(data=number):
                runs[number] += prod(each.size for each in within)
            case ArrayAttr(data=regions):
                around |= dict.fromkeys((cast(IntAttr, each).data for each in regions), frozenset(within))
            case _:
                pass
    of_moves = defaultdict[Move, list[int]](list)
    for number, move in enumerate(writer.collectives):
        of_moves[move].append(runs[number])
    values = {on_device(made): value for value, made in writer.values.items()}
    return AsLowered(main, cast(Local, writer.outermost).crossings, values, of_moves, around)


def _within(
    block: Block, loops: Mapping[str, Place], outer: tuple[Place, ...]
) -> Iterator[tuple[Operation, tuple[Place, ...]]]:
    """Yields the ops of a block with the loops of the plan in whose trips each is."""
    for op in block.ops:
        yield op, outer
        if op.regions:
            loop = cast(RegionOp, op).params.get("loop")
            inner = (*outer, loops[loop]) if isinstance(loop, str) else outer
            for region in op.regions:
                yield from _within(region.block, loops, inner)


class _Writer(Writer):
    """Writes the device-local program, with marks."""

    def __init__(self, decisions: Decisions) -> None:
        super().__init__(decisions, partial(_Marked, self))
        self.collectives = list[Move]()
        """The redistribution of each collective that is marked, by number."""
        self.due: Iterator[Move] = iter(())
        """The redistributions of the collectives that are written next."""
        self.controls = list[Control]()
        """The ops with regions that are being written."""
        self.exchanges = defaultdict[NodeId, list[Move]](list)
        """The redistributions by which ops exchange what they have selected or sorted of each block."""
        for move in decisions.moves:
            for node in (node for node, position in move.uses if position == SELECTED):
                self.exchanges[node].append(move)

    @contextmanager
    def sending(self, moves: Sequence[Move]) -> Generator[None]:
        """Marks the collectives that are written meanwhile: they are those of these redistributions, in order."""
        self.due = iter([move for move in moves for step in move.path.steps for _ in step.collectives])
        yield
        assert next(self.due, None) is None, "a redistribution is written with all of its collectives"

    def moves(self, moves: Sequence[Move], starts: Globals) -> Globals:
        with self.sending(moves):
            return super().moves(moves, starts)

    def settled(self, move: Move, made: Global) -> Global:
        with self.sending([move]):
            return super().settled(move, made)

    def local(self, node: Node, locals: list[SSAValue], types: Types) -> list[SSAValue]:
        if (moves := self.exchanges.get(node.number)) is None:
            return super().local(node, locals, types)
        with self.sending(moves):
            return super().local(node, locals, types)

    def control(self, control: Control) -> None:
        self.controls.append(control)
        super().control(control)
        self.controls.pop()

    def mark(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if spmd.sends(type(op)) and not all(isinstance(each, Loop) for each in cast(spmd.Collective, op).axes):
                op.attributes[MARK] = IntAttr(len(self.collectives))
                self.collectives.append(next(self.due))


class _Marked(Local):
    """Writes the device-local program, with marks."""

    def __init__(self, writer: _Writer, types: Types) -> None:
        super().__init__(types)
        self.writer = writer

    def append(self, op: Operation) -> None:
        super().append(op)
        if spmd.sends(type(op)):
            self.writer.mark([op])

    def redistribute(self, sources: Globals, targets: Types, way: Path | None = None) -> Globals:
        self.end_nest_of(sources)
        last = self.block.last_op
        made = super().redistribute(sources, targets, way)
        new = self.block.first_op if last is None else last.next_op
        self.writer.mark(_from(new))
        return made

    def inside(self, types: Types) -> Local:
        return _Marked(self.writer, types)

    def local_op(self, make: Make, operands: Globals, types: Types) -> RegionOp:
        made = super().local_op(make, operands, types)
        made.attributes[MARK] = ArrayAttr(map(IntAttr, self.writer.controls[-1].regions))
        return made


def _from(op: Operation | None) -> Iterator[Operation]:
    """An op, and those behind it in its block."""
    while op is not None:
        yield op
        op = op.next_op
