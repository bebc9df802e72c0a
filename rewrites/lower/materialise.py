"""Writes the decisions into the IR, as placed builders and slicers.

This is one walk in program order. It opens every op, slices its operands for its placement, emits its local form, and builds
its results. Each move becomes a redistribution. The gather of a parameter waits at a barrier for the value that starts its use.

    decisions of a plan   -->   func @main(%x: f32[data*64, 8], ...) { array.build (data, model) {...} ... }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Region, SSAValue

from ...dialects.ground.argument_names import keep_names
from ...dialects.lax import YieldOp
from ...dialects.layouts import Layout, Pending
from ...dialects.mesh import Mesh
from ...dialects.module_op import Module
from ...dialects.ranges.algebra import Place
from ...dialects.types import ArrayType
from ..decide.decide import Decisions, Move, first_use, starter
from ..decide.deferred_reductions import carried_sum, kept
from ..decide.made_again import MadeAgain
from ..decide.placements import Unreduced, boundary
from ..decide.walk import Walk
from ..program.program import NO_VALUE, Control, Node, ValueId
from ..redistribute.steps import Path
from .bit_exact_lookups import picked
from .constructors import Constructor, Fusing, Global, Globals, Types, placed_axes, returned, type_of, with_regions
from .device_local_op import localise, on_first, same_op

Start = Callable[[Types], Constructor]
"""Makes the constructor of a function with arguments of these types."""


def materialise(decisions: Decisions, constructor: Start = Fusing) -> ModuleOp:
    """Writes the decisions as a new module with this constructor: by default, the placed program."""
    return Writer(decisions, constructor).module()


def finished_module(into: Constructor, old: func.FuncOp, results: Types) -> ModuleOp:
    """The module of a finished constructor, with the names of an earlier form of the program, and results of these types."""
    ops = into.ops(old.sym_name.data, results)
    keep_names(old, ops[0])
    return Module(ops)


class OpTypes(NamedTuple):
    """The types around an op: those that it slices its operands to, those that it builds, their local types, and its axes."""

    wanted: Types
    results: Types
    local: Types
    axes: Sequence[Place]


def _all(parts_of_ops: Iterable[OpTypes]) -> OpTypes:
    """Joins the types of several ops, as if they were one."""
    return OpTypes._make([each for part in parts for each in part] for parts in zip(*parts_of_ops, strict=True))


class Writer(Walk[Global]):
    """Writes the program as it walks; `into` writes the region in which it is."""

    def __init__(self, decisions: Decisions, constructor: Start) -> None:
        super().__init__(decisions)
        self.picked = picked(decisions)
        self.types: dict[tuple[ArrayType, Layout, Unreduced], ArrayType] = {}
        self.cached: dict[int, OpTypes] = {}
        program = self.program
        inputs, self.outputs = (
            [self.type_at(value, boundary(self.placements, value)) for value in values]
            for values in (program.arguments, program.returned)
        )
        self.into = self.outermost = constructor(inputs)
        self.sets = self.placements.table.sets
        self.now: Mesh | None = None
        self.where = dict[Global, Mesh | None]()
        """The device set of each value, if there are several."""
        self.crossed = dict[tuple[Global, ArrayType, Mesh | None], Global]()
        self.again = None if self.sets is None else MadeAgain(decisions, self.sets)
        self.made_on = dict[tuple[ValueId, Mesh | None], Global]()
        """What was made again, and on which set."""

    def module(self) -> ModuleOp:
        self.write()
        return finished_module(self.into, self.program.main, self.outputs)

    def write(self) -> None:
        """Writes all of the program, for the constructor to finish."""
        program, into = self.program, self.into
        if self.sets is not None:
            into.given_on([self.sets.arguments[value] for value in program.arguments])
        for value, arg in zip(program.arguments, into.arguments, strict=True):
            if self.sets is not None:
                self.go(self.sets.arguments[value])
            self.define(value, arg)
        self.body(0)
        into.finish_into(returned, self.ends())

    def ends(self) -> list[Global]:
        """What the program returns, in the types of the boundary, each where it is made."""
        found, program = list[Global](), self.program
        for at, (value, type) in enumerate(zip(program.returned, self.outputs, strict=True)):
            if self.sets is not None:
                self.go(self.sets.of(value))
            made = self.read(value, program.end, at)
            self.go(self.where.get(made))
            found.append(self.into.force(self.cut(made, type)))
        return found

    def type_at(self, value: ValueId, layout: Layout, pending: Unreduced = ()) -> ArrayType:
        whole = self.program.types[value]
        key = (whole, layout, pending)
        found = self.types.get(key)
        if found is None:
            found = self.types[key] = ArrayType.of(whole.dtype, layout.with_pending(pending))
        return found

    # --- on device sets ----------------------------------------------------------------------------------------------

    def go(self, devices: Mesh | None) -> None:
        """Goes to a device set: what follows runs there."""
        if devices is not None and devices is not self.now:
            self.into.on(devices)
            self.now = devices

    def go_to_set_of(self, entry: Node | Control) -> None:
        """Goes to the device set on which an op runs. What is in a region runs where the region does."""
        if self.sets is not None and self.into is self.outermost:
            self.go(self.sets.around(entry))

    def define(self, value: ValueId, made: Global) -> None:
        if self.sets is not None:
            self.where[made] = self.now
        super().define(value, made)
        if self.sets is not None:
            self.where.setdefault(self.values[value], self.now)

    def nearest(self, value: ValueId, made: Global) -> Global:
        """A value where it is made, or made again on the set on which the program is now, if that costs less than to cross."""
        is_here = self.where.get(made, self.now) is self.now
        if self.again is None or self.now is None or is_here or self.values[value] is not made:
            return made
        if (value, self.now) not in self.made_on and (node := self.again.instead(value, self.now)) is not None:
            self.once_more(node)
        return self.made_on.get((value, self.now), made)

    def once_more(self, node: Node) -> None:
        """Writes an op again, on the set on which the program is now."""
        for value, made in zip(node.results, self.written([node]), strict=True):
            self.where[made] = self.now
            home = self.decisions.homes.get(value)
            self.made_on[value, self.now] = now = made if home is None else self.settled(home, made)
            self.where.setdefault(now, self.now)

    def here(self, value: ValueId, made: Global, target: ArrayType) -> Global:
        """A value on the set on which the program is now: of one that is elsewhere, the part that is wanted crosses."""
        made = self.nearest(value, made)
        if self.sets is None or self.where.get(made, self.now) is self.now:
            return made
        if (key := (made, target, self.now)) not in self.crossed:
            self.crossed[key] = crossed = self.into.redistribute([made], [target])[0]
            self.where[crossed] = self.now
        return self.crossed[key]

    def changed(self, moves: Sequence[Move], starts: Globals, way: Path | None = None) -> Globals:
        """Redistributes values, on the set on which the program is now. A sum is resolved where it is made."""
        targets = list(map(self.target_of, moves))
        if self.sets is None:
            return self.into.redistribute(starts, targets, way)
        now, pending = self.now, [self.where[each] for each in starts if type_of(each).layout.pending]
        if len(starts) > 1 and any(each is not now for each in pending):
            return [self.changed([move], [start])[0] for move, start in zip(moves, starts, strict=True)]
        self.go(pending[0] if pending else now)
        starts = starts if pending else [self.nearest(move.value, start) for move, start in zip(moves, starts, strict=True)]
        made = self.into.redistribute(starts, targets, way)
        self.where.update(dict.fromkeys(made, self.now))
        self.go(now)
        return made

    # --- ops ---------------------------------------------------------------------------------------------------------

    def op(self, nodes: Sequence[Node]) -> None:
        """One op, on its set: its operands sliced, its local form emitted, its results built."""
        node = nodes[0]
        if len(nodes) > 1 and self.sets is not None:
            sets = {each.number: self.sets.ops[each.number] for each in nodes}
            if len(every := dict.fromkeys(sets.values())) > 1:
                # Values that are placed apart may be on several sets.
                for devices in every:
                    self.op([each for each in nodes if sets[each.number] is devices])
                return
        self.go_to_set_of(node)
        values = node.results if len(nodes) == 1 else [value for each in nodes for value in each.results]
        for value, made in zip(values, self.written(nodes), strict=True):
            self.define(value, made)

    def written(self, nodes: Sequence[Node]) -> Globals:
        """Writes one op on the set on which the program is now."""
        node, into, alone = nodes[0], self.into, len(nodes) == 1
        wanted, results, types, axes = self.op_types(node) if alone else _all(map(self.op_types, nodes))
        read = self.reads(node) if alone else [made for each in nodes for made in self.reads(each)]
        if self.sets is not None:
            read = list(map(self.here, [value for each in nodes for value in each.operands], read, wanted))
        into.open()
        locals = [into.slice(made, type) for made, type in zip(read, wanted, strict=True)]
        outs = self.local(node, locals, types) if alone else same_op(node.op, locals, types, into)
        return into.close(list(zip(outs, results, strict=True)), axes)

    def local(self, node: Node, locals: list[SSAValue], types: Types) -> list[SSAValue]:
        """Emits the op's local form, as it is placed and with the sum that it carries."""
        placed, carry = self.placements.nodes[node.number], self.decisions.carried.get(node.number)
        return localise(self.program, node, placed, carry, locals, types, self.into)

    def op_types(self, node: Node) -> OpTypes:
        """The types around an op, cached for ops with equal placements and nothing pending."""
        placed = self.placements.nodes[node.number]
        pends = any(placed.pending) or not self.placements.sources.keys().isdisjoint(node.results)
        is_alike = not pends and node.number not in self.decisions.carried
        found = self.cached.get(id(placed)) if is_alike else None
        if found is None:
            results = [self.built(node, at) for at in range(len(node.results))]
            wanted = [self.wanted(node, at) for at in range(len(node.operands))]
            found = OpTypes(wanted, results, [type.local for type in results], self.axes(node))
            if is_alike:
                self.cached[id(placed)] = found
        return found

    def built(self, node: Node, position: int) -> ArrayType:
        """The type in which an op leaves a result; a sum that it carries is pending there."""
        value, placed = node.results[position], self.placements.nodes[node.number]
        pending = self.placements.made(value) or placed.pending[position]
        return self.type_at(value, placed.produced[position], self.pending(value, pending))

    def pending(self, value: ValueId, pending: Unreduced) -> Unreduced:
        """The pending sums in a value's type; those of a lookup whose elements each come from one device are `pick`."""
        return tuple(Pending("pick", each.axis) for each in pending) if value in self.picked else pending

    def axes(self, node: Node) -> list[Place]:
        """The axes that an op's iterations run over, and those over which a result is pending."""
        pending = [each.axis for value in node.results for each in self.placements.made(value)]
        placed = (factor.axis for _, factor in self.placements.nodes[node.number].placement)
        return [*dict.fromkeys((*placed, *pending))]

    def wanted(self, node: Node, position: int) -> ArrayType:
        """The type to which an op slices an operand: the layout that its placement wants, with pending sums that it carries."""
        value = node.operands[position]
        pend = kept(self.placements.sources.get(value, ()), carried_sum(self.decisions.carried, node.number))
        return self.type_at(value, self.placements.nodes[node.number].wanted[position], self.pending(value, pend))

    def moves(self, moves: Sequence[Move], starts: Globals) -> Globals:
        if len(moves) > 1:
            return self.changed(moves, starts)
        (move,), (start,) = moves, starts
        anchor = self.values[move.start] if move.start >= 0 else None
        if anchor is not None and self.where.get(anchor, self.now) is self.now and self.where.get(start, self.now) is self.now:
            start = self.into.barrier([start, anchor])[0]
        return [self.move(move, start)]

    def prefetch(self, move: Move) -> None:
        assert move.trip_ahead is not None
        start = starter(self.placements, first_use(move.trip_ahead)[0])
        self.into.barrier([self.moved[move], *([] if start == NO_VALUE else [self.values[start]])], prefetch=True)

    def move(self, move: Move, start: Global) -> Global:
        """Writes a redistribution; one that only slices is left to the slicers of its uses."""
        target = self.target_of(move)
        if type_of(start) is target or not move.communicates:
            return start
        return self.changed([move], [start], move.path if move.is_said else None)[0]

    def settled(self, move: Move, made: Global) -> Global:
        return self.cut(self.move(move, made), self.target_of(move))

    def target_of(self, move: Move) -> ArrayType:
        """The type to which a move leads: where the move resolves a sum on some of its axes, it is pending on the others."""
        return self.type_at(move.value, move.target, self.pending(move.value, move.target.pending))

    def control(self, control: Control) -> None:
        """Writes an op with regions: its operands in the layouts of its borders, and each region inside."""
        into = self.into
        self.go_to_set_of(control)
        operands = [into.force(each) for each in [self.sliced(node, 0) for node in control.enters]]
        regions = [self.inner(control, position) for position in range(len(control.regions))]
        results = into.outer(with_regions(control.op, regions), operands, [self.built(made, 0) for made, _ in control.leaves])
        for (_, node), out in zip(control.leaves, results, strict=True):
            self.leave(node, out)

    def inner(self, control: Control, position: int) -> Region:
        """Writes one region of an op: its arguments, its ops, and its yielded values in the layouts of its borders."""
        values = [self.program.numbers[arg] for arg in control.op.regions[position].block.args]
        outer = self.into
        self.into = inside = outer.inside([self.entered(value) for value in values])
        for value, arg in zip(values, inside.arguments, strict=True):
            self.define(value, arg)
        self.body(control.regions[position])
        ends = [self.sliced(node, at) for node, at in control.yields[position]]
        inside.finish_into(YieldOp, [inside.force(each) for each in ends])
        self.into = outer
        return Region(inside.block)

    def entered(self, value: ValueId) -> ArrayType:
        """The type in which a border returns a value; the value's own layout may differ."""
        node = self.program.made_by(value)
        return self.built(node, node.results.index(value))

    def sliced(self, node: Node, position: int) -> Global:
        """An operand of a loop, or of its terminator, in the layout that it needs; zero becomes a sum of zeros."""
        wanted = self.wanted(node, position)
        made = self.read(node.operands[position], node.number, position)
        made = self.cut(self.here(node.operands[position], made, wanted), wanted)
        carry = self.decisions.carried.get(node.number)
        if carry is None or len(type_of(made).layout.pending) == len(carry.pend):
            return made
        axes = dict(carry.once).get(position)
        return self.rebuilt(made, type_of(made), self.built(node, 0), axes)

    def cut(self, made: Global, target: ArrayType) -> Global:
        """Rebuilds a value that only needs a slice: `build (slice x)` in the finer layout."""
        return made if type_of(made) is target else self.rebuilt(made, target, target)

    def rebuilt(self, made: Global, at: ArrayType, target: ArrayType, once: tuple[Place, ...] | None = None) -> Global:
        """A slice of a value, which counts on the first device alone along some axes, built again."""
        self.into.open()
        local = self.into.slice(made, at)
        if once:
            local = on_first(local, once, self.into)
        return self.into.close([(local, target)], placed_axes(target))[0]
