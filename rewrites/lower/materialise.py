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

from ...dialects.ground.names import keep_names
from ...dialects.lax import YieldOp
from ...dialects.layouts import Layout, Pending
from ...dialects.module import Module
from ...dialects.ranges.algebra import MeshAxis
from ...dialects.types import ArrayType
from ..decide.decide import Decisions, Move
from ..decide.placements import Pend, boundary
from ..program.program import Control, Node
from .constructors import Constructor, Fusing, Global, axes_of, returned, type_of
from .exact_lookups import picked
from .localise import localise, on_first, same_op

Start = Callable[[Sequence[ArrayType]], Constructor]
"""Makes the constructor of a function with arguments of these types."""


def materialise(decisions: Decisions, constructor: Start = Fusing) -> ModuleOp:
    """Writes the decisions as a new module with this constructor: by default, the placed program."""
    return Writer(decisions, constructor).module()


def written(into: Constructor, old: func.FuncOp, results: Sequence[ArrayType]) -> ModuleOp:
    """The module of a finished constructor, with the names of an earlier form of the program, and results of these types."""
    ops = into.ops(old.sym_name.data, results)
    keep_names(old, ops[0])
    return Module(ops)


class Kind(NamedTuple):
    """The types around an op: those that it slices its operands to, those that it builds, their local types, and its axes."""

    wanted: Sequence[ArrayType]
    results: Sequence[ArrayType]
    local: Sequence[ArrayType]
    axes: Sequence[MeshAxis]


def _all(kinds: Iterable[Kind]) -> Kind:
    """Joins the types of several ops, as if they were one."""
    return Kind._make([each for part in parts for each in part] for parts in zip(*kinds, strict=True))


class Writer:
    """Walks the program once; `values` maps a value to its new one, `moved` maps a move to its result."""

    def __init__(self, decisions: Decisions, constructor: Start) -> None:
        self.decisions = decisions
        self.placements = decisions.placements
        self.picked = picked(decisions)
        self.program = decisions.placements.program
        self.constructor = constructor
        self.values: dict[int, Global] = {}
        self.moved: dict[Move, Global] = {}
        self.types: dict[tuple[ArrayType, Layout, Pend], ArrayType] = {}
        self.kinds: dict[int, Kind] = {}
        self.entries = self.program.entries()

    def module(self) -> ModuleOp:
        program = self.program
        inputs = [self.type_at(value, boundary(self.placements, value)) for value in program.arguments]
        outputs = [self.type_at(value, boundary(self.placements, value)) for value in program.returned]
        into = self.constructor(inputs)
        for value, arg in zip(program.arguments, into.arguments, strict=True):
            self.define(value, arg, into)
        self.body(0, into)
        into.finish_into(returned, self.returned(outputs, into))
        return written(into, program.main, outputs)

    def returned(self, outputs: Sequence[ArrayType], into: Constructor) -> list[Global]:
        """The values that the program returns, in these types."""
        end = len(self.program.nodes)
        read = [self.read(value, end, at, into) for at, value in enumerate(self.program.returned)]
        return [into.force(self.cut(made, type, into)) for made, type in zip(read, outputs, strict=True)]

    def type_at(self, value: int, layout: Layout, pending: Pend = ()) -> ArrayType:
        whole = self.program.types[value]
        key = (whole, layout, pending)
        found = self.types.get(key)
        if found is None:
            found = self.types[key] = ArrayType.of(whole.dtype, layout.with_pending(pending))
        return found

    def define(self, value: int, made: Global, into: Constructor) -> None:
        """Records the new value; a value that a tactic placed is moved to its own layout at once."""
        home = self.decisions.homes.get(value)
        if home is not None:
            made = self.cut(self.move(home, made, into), self.type_at(value, home.target), into)
        self.values[value] = made

    def body(self, region: int, into: Constructor) -> None:
        """Writes the ops of one region, including nested ops with regions."""
        for entry in self.entries[region]:
            self.entry(entry, into)

    def entry(self, entry: Node | Control, into: Constructor) -> None:
        if isinstance(entry, Node):
            self.node(entry, into)
        else:
            self.control(entry, into)

    def node(self, node: Node, into: Constructor) -> None:
        """Writes one op: slices its operands, emits its local form, and builds its results."""
        nodes = self.program.together(node)
        if node is not nodes[0]:
            return
        wanted, results, types, axes = self.kind(node) if len(nodes) == 1 else _all(map(self.kind, nodes))
        read = [self.read(value, each.number, at, into) for each in nodes for at, value in enumerate(each.operands)]
        into.open()
        locals = [into.slice(made, type) for made, type in zip(read, wanted, strict=True)]
        outs = self.local(node, locals, types, into) if len(nodes) == 1 else same_op(node.op, locals, types, into)
        made = into.close(list(zip(outs, results, strict=True)), axes)
        values = [value for each in nodes for value in each.results]
        for value, result in zip(values, made, strict=True):
            self.define(value, result, into)

    def local(self, node: Node, locals: list[SSAValue], types: Sequence[ArrayType], into: Constructor) -> list[SSAValue]:
        """Emits the op's local form, as it is placed and with the sum that it carries."""
        placed, carry = self.placements.nodes[node.number], self.decisions.carried.get(node.number)
        return localise(self.program, node, placed, carry, locals, types, into)

    def kind(self, node: Node) -> Kind:
        """The types around an op, cached for ops with equal placements and nothing pending."""
        placed = self.placements.nodes[node.number]
        pends = any(placed.pending) or not self.placements.sources.keys().isdisjoint(node.results)
        is_alike = not pends and node.number not in self.decisions.carried
        found = self.kinds.get(id(placed)) if is_alike else None
        if found is None:
            results = [self.built(node, at) for at in range(len(node.results))]
            wanted = [self.wanted(node, at) for at in range(len(node.operands))]
            found = Kind(wanted, results, [type.local for type in results], self.axes(node))
            if is_alike:
                self.kinds[id(placed)] = found
        return found

    def built(self, node: Node, position: int) -> ArrayType:
        """The type in which an op leaves a result; a sum that it carries is pending there."""
        value, placed = node.results[position], self.placements.nodes[node.number]
        pending = self.placements.sources.get(value, placed.pending[position])
        return self.type_at(value, placed.produced[position], self.pending(value, pending))

    def pending(self, value: int, pending: Pend) -> Pend:
        """The pending sums in a value's type; those of a lookup whose elements each come from one device are `pick`."""
        return tuple(Pending("pick", each.axis) for each in pending) if value in self.picked else pending

    def axes(self, node: Node) -> list[MeshAxis]:
        """The axes that an op's iterations run over, and those over which a result is pending."""
        pending = [each.axis for value in node.results for each in self.placements.sources.get(value, ())]
        return [factor.axis for _, factor in self.placements.nodes[node.number].placement] + pending

    def wanted(self, node: Node, position: int) -> ArrayType:
        """The type to which an op slices an operand: the layout that its placement wants, with pending sums that it carries."""
        value = node.operands[position]
        pend = self.placements.sources.get(value, ()) if node.number in self.decisions.carried else ()
        return self.type_at(value, self.placements.nodes[node.number].wanted[position], self.pending(value, pend))

    def read(self, value: int, number: int, position: int, into: Constructor) -> Global:
        """The value that a use reads: in its own layout, or moved for the use."""
        move = self.decisions.at_use.get((number, position))
        return self.values[value] if move is None else self.moved_value(move, into)

    def moved_value(self, move: Move, into: Constructor) -> Global:
        found = self.moved.get(move)
        if found is None and move.together:
            starts = [self.values[each.value] for each in move.together]
            targets = [self.type_at(each.value, each.target) for each in move.together]
            self.moved.update(zip(move.together, into.redistribute(starts, targets), strict=True))
            found = self.moved[move]
        elif found is None:
            start = self.values[move.value] if move.before is None else self.moved_value(move.before, into)
            if move.anchor >= 0:
                start = into.barrier([start, self.values[move.anchor]])[0]
            found = self.moved[move] = self.move(move, start, into)
        return found

    def move(self, move: Move, start: Global, into: Constructor) -> Global:
        """Writes a redistribution; one that only slices is left to the slicers of its uses."""
        target = self.type_at(move.value, move.target)
        if type_of(start) is target or not move.communicates:
            return start
        return into.redistribute([start], [target])[0]

    def control(self, control: Control, into: Constructor) -> None:
        """Writes an op with regions: its operands in the layouts of its borders, and each region inside."""
        operands = [into.force(each) for each in [self.sliced(node, 0, into) for node in control.enters]]
        regions = [self.inner(control, position, into) for position in range(len(control.regions))]
        results = into.outer(control.op, operands, [self.type_of_border(made) for made, _ in control.leaves], regions)
        for (_, node), out in zip(control.leaves, results, strict=True):
            self.leave(node, out, into)

    def inner(self, control: Control, position: int, into: Constructor) -> Region:
        """Writes one region of an op: its arguments, its ops, and its yielded values in the layouts of its borders."""
        values = [self.program.numbers[arg] for arg in control.op.regions[position].block.args]
        inside = into.inside([self.entered(value) for value in values])
        for value, arg in zip(values, inside.arguments, strict=True):
            self.define(value, arg, inside)
        self.body(control.regions[position], inside)
        ends = [self.sliced(node, at, inside) for node, at in control.yields[position]]
        inside.finish_into(YieldOp, [inside.force(each) for each in ends])
        return Region(inside.block)

    def entered(self, value: int) -> ArrayType:
        """The type in which a border returns a value; the value's own layout may differ."""
        node = self.program.nodes[self.program.producer[value]]
        return self.built(node, node.results.index(value))

    def leave(self, node: Node, made: Global, into: Constructor) -> None:
        """Records a result of an op with regions, sliced after the op if its border's layout is finer."""
        move = self.decisions.at_use.get((node.number, 0)) if self.program.from_outside(node.number, 0) else None
        if move is not None:
            made = self.cut(self.move(move, made, into), self.type_of_border(node), into)
        self.define(node.results[0], made, into)

    def type_of_border(self, node: Node) -> ArrayType:
        return self.built(node, 0)

    def sliced(self, node: Node, position: int, into: Constructor) -> Global:
        """An operand of a loop, or of its terminator, in the layout that it needs; zero becomes a sum of zeros."""
        made = self.read(node.operands[position], node.number, position, into)
        made = self.cut(made, self.wanted(node, position), into)
        carry = self.decisions.carried.get(node.number)
        if carry is None or len(type_of(made).layout.pending) == len(carry.pend):
            return made
        into.open()
        local, target = into.slice(made, type_of(made)), self.built(node, 0)
        if axes := dict(carry.once).get(position):
            local = on_first(local, axes, into)
        return into.close([(local, target)], axes_of(target))[0]

    def cut(self, made: Global, target: ArrayType, into: Constructor) -> Global:
        """Rebuilds a value that only needs a slice: `build (slice x)` in the finer layout."""
        if type_of(made) is target:
            return made
        into.open()
        local = into.slice(made, target)
        return into.close([(local, target)], axes_of(target))[0]
