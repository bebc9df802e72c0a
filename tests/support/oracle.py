"""The oracle: the least that a small program can cost under what its tactics fix, by exhaustive search.

An op runs in any way of `oracle_ways`. A value costs what it takes to move it from where it is made to all layouts in which it
is read, so it is a table over the ways of its op and of its readers. The optimum is the least sum of one entry of every table.
It is found exactly: op by op is eliminated, the one with the smallest tables first.

    %h = dot %x %w; %y = tanh %h   -->   tables over (dot), (dot, tanh), (tanh): the last one moves %y to where it is returned

The entries begin as bounds, which need no search for a path. Those on which a least sum depends become costs, until a least sum
is one of costs. What costs more than a sum of costs that is known is dropped.

Fixed are the layouts of arguments and results, and those of the values that a tactic placed. What is free says
`docs/design.md`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import TypeAlias, TypeVar

import numpy as np
from oracle_moves import TIE, Costs, lacks, moved
from oracle_ways import Way, divides_its_work, way_of, ways

from partita.compiler.api.plan import Plan
from partita.dialects.ground.dtypes import itemsize
from partita.dialects.layouts import Layout
from partita.dialects.ranges.algebra import Place
from partita.rewrites.decide.choices import is_stored
from partita.rewrites.decide.decide import Decisions
from partita.rewrites.decide.placements import boundary
from partita.rewrites.program.program import Node, NodeId, ValueId

Wants: TypeAlias = tuple[Layout, ...]
Cell: TypeAlias = tuple[int, ...]
Choice: TypeAlias = Mapping[NodeId, int]
"""Op -> the number of the way in which it runs."""

OTHER = 2.0**-16
"""What an op weighs that runs otherwise than in the plan, so that of equal choices the nearest one is found."""


@dataclass(slots=True)
class Table:
    """Costs over the ways of some ops, with an axis for each of them."""

    ops: tuple[NodeId, ...]
    costs: Costs

    def least(self, op: NodeId) -> Costs:
        """For each way of an op, the least cost over those of the others."""
        return self.costs.min(tuple(n for n, each in enumerate(self.ops) if each != op))


@dataclass(slots=True)
class Moves:
    """The moves of a value, from where it is made to where some ops read it: costs by layouts, at first only bounds."""

    value: ValueId
    ops: tuple[NodeId, ...]
    """The op that makes the value, unless its layout is fixed, and the ops that read it."""
    made: Sequence[Layout]
    wants: Sequence[Sequence[Wants]]
    """For each op that reads it, the layouts that it may want."""
    returned: Wants
    at: list[list[int]]
    """For each axis of the costs, which of its layouts each way of the op has."""
    costs: Costs
    known: dict[Cell, float] = field(default_factory=dict[Cell, float])
    """The entries that are costs, and not bounds."""

    @property
    def table(self) -> Table:
        costs = self.costs[np.ix_(*self.at)]
        return Table(self.ops, costs if len(self.at) == len(self.ops) else costs[0])

    def cell(self, chosen: Choice) -> Cell:
        """The entry for a choice of ways."""
        own = [0] * (len(self.at) - len(self.ops)) + [chosen[op] for op in self.ops]
        return tuple(at[n] for at, n in zip(self.at, own, strict=True))

    def keep(self, op: NodeId, ways: Sequence[int]) -> None:
        if op in self.ops:
            axis = self.ops.index(op) - len(self.ops)
            self.at[axis] = [self.at[axis][n] for n in ways]


class Oracle:
    """The tables of a plan's program."""

    def __init__(self, plan: Plan) -> None:
        self.decisions: Decisions = plan.decisions
        self.placements = self.decisions.placements
        self.program, self.mesh = plan.source.program, plan.mesh
        self.foreign = list[NodeId]()
        """The ops whose ways in the plan are not among all ways."""
        self.decided = [self.decide(node) for node in self.program.nodes]
        """The ways in which the plan runs its ops."""
        self.ways = {node.number: [*self.ways_of(node)] for node in self.program.nodes}
        self.own: dict[NodeId, int] = dict.fromkeys(self.ways, 0)
        """The number of each op's way in the plan, unless it has been dropped."""
        self.always = sum(self.entering())
        self.moves = [*self.all_moves()]
        self.plan_cost = self.exact(self.own)
        self.most = self.plan_cost
        """What is known to be enough."""

    @property
    def plan_moves(self) -> float:
        """What moves cost in the plan, without what ops compute."""
        return self.plan_cost - sum(way.work for way in self.decided)

    # --- the ways of ops --------------------------------------------------------------------------------------------------

    def around(self, node: Node) -> set[Place]:
        """The axes that values of an op have in the plan."""
        return {axis for value in (*node.operands, *node.results) for axis in self.placements.with_sums(value).named}

    def ways_of(self, node: Node) -> Iterator[Way]:
        """The ways to run an op that are free, that of the plan first.

        An op runs among the axes that its values have in the plan. One that computes much stays on those that claims give it.
        """
        own, every = self.decided[node.number], ways(self.placements, node, self.mesh)
        ends = own.wanted, own.made
        others = [each for each in every if (each.wanted, each.made) != ends]
        if len(others) == len(every):
            self.foreign.append(node.number)
        yield own
        claims = ((axis, table.nodes[node.number]) for axis, table in self.placements.table.axes.items())
        claimed = {axis for axis, claim in claims if claim is not None}
        divided = claimed if divides_its_work(self.program, node) else set[Place]()
        yield from (each for each in others if divided <= each.axes <= self.around(node) | own.axes)

    def decide(self, node: Node) -> Way:
        """The way in which the plan runs an op."""
        placed, sources = self.placements.nodes[node.number], self.placements.sources
        if (carry := self.decisions.carried.get(node.number)) is None:
            return way_of(self.placements, node, placed, (), frozenset(), self.mesh)
        once = {position for position, _ in carry.once}
        at = frozenset(n for n, value in enumerate(node.operands) if value in sources or n in once)
        return way_of(self.placements, node, placed, carry.pend, at, self.mesh)

    # --- the moves of values ----------------------------------------------------------------------------------------------

    def entering(self) -> Iterator[float]:
        """What it costs to move arguments from where they are given to where they lie."""
        for value in self.program.arguments:
            yield self.cost(value, boundary(self.placements, value), self.placements.homes[value])

    def all_moves(self) -> Iterator[Moves]:
        """The moves of all values; those of a value that a tactic placed begin there."""
        for value in self.program.arguments:
            yield from self.moves_from(value, self.placements.homes[value])
        for value in (value for node in self.program.nodes for value in node.results):
            if (home := self.placements.pinned.get(value)) is not None:
                yield self.moves_to(value, None, (), (home,))
            yield from self.moves_from(value, home)

    def moves_from(self, value: ValueId, home: Layout | None) -> Iterator[Moves]:
        """The moves of a value to all of its uses, those together that may share a move."""
        uses, end = self.placements.uses(value), self.program.end
        readers = tuple(dict.fromkeys(number for number, _ in uses if number != end))
        returned = (boundary(self.placements, value),) if any(number == end for number, _ in uses) else ()
        if self.program.parameter[value] and is_stored(self.placements, value):
            yield from (self.moves_to(value, home, (each,), ()) for each in readers)
            readers = ()
        yield self.moves_to(value, home, readers, returned)

    def moves_to(self, value: ValueId, home: Layout | None, readers: tuple[NodeId, ...], returned: Wants) -> Moves:
        """The moves of a value to some of its uses, with what devices lack for a bound of their costs."""
        ops, by_way = readers, [self.wanted(number, value) for number in readers]
        layouts = [] if home is None else [home]
        if home is None:
            maker = self.program.made_by(value)
            ops = (maker.number, *readers)
            layouts = [way.made[maker.results.index(value)] for way in self.ways[maker.number]]
        made, places = distinct(layouts)
        found = [distinct(each) for each in by_way]
        wants, at = [each for each, _ in found], [places, *(numbers for _, numbers in found)]
        return Moves(value, ops, made, wants, returned, at, self.bounds(value, made, wants, returned))

    def wanted(self, number: NodeId, value: ValueId) -> list[Wants]:
        """The layouts that an op wants of a value, by the op's ways."""
        positions = sorted(self.program.nodes[number].positions({value}))
        return [tuple(dict.fromkeys(way.wanted[at] for at in positions)) for way in self.ways[number]]

    def bounds(self, value: ValueId, made: list[Layout], wants: list[list[Wants]], returned: Wants) -> Costs:
        """The least that it can cost to move a value: what a device lacks of the two layouts of which it lacks most."""
        every = [[returned], *wants] if returned else wants
        targets = [*dict.fromkeys(layout for one in every for asked in one for layout in asked)]
        found = np.zeros([len(made), *map(len, every)])
        if targets:
            number = {each: n for n, each in enumerate(targets)}
            lack = lacks(made, targets, self.mesh) * itemsize(self.program.types[value].dtype)
            rows = [[[number[layout] for layout in asked] for asked in zip(*padded(one), strict=True)] for one in every]
            for (a, ones), (b, twos) in combinations_with_replacement(enumerate(rows), 2):
                others = [1 + n for n in range(len(every)) if n not in (a, b)]
                for one, two in product(map(np.array, ones), map(np.array, twos)):
                    most = lack[:, one, two] if a == b else lack[:, one[:, None], two]
                    found = np.maximum(found, np.expand_dims(most, others))
        return found[:, 0] if returned else found

    def shared(self, moves: Moves, cell: Cell) -> float:
        """What it costs to move a value to several layouts: each move once, directly or by way of their common layout."""
        value, source, own = moves.value, moves.made[cell[0]], moves.made[cell[0]].pending
        chosen = (layout for n, one in zip(cell[1:], moves.wants, strict=True) for layout in one[n])
        targets = dict.fromkeys([*moves.returned, *chosen])
        kept = dict.fromkeys(each.with_pending(tuple(p for p in each.pending if p in own)) for each in targets)
        waits = sum(self.cost(value, source, each) for each in kept if each.pending)
        plain = [each for each in kept if not each.pending and each is not source]
        direct = sum(self.cost(value, source, each) for each in plain)
        if len(plain) > 1 and direct:
            between = common(plain)
            apart = sum(self.cost(value, between, each) for each in plain if each is not between)
            direct = min(direct, self.cost(value, source, between) + apart)
        return waits + direct

    def cost(self, value: ValueId, source: Layout, target: Layout) -> float:
        return moved(source, target, itemsize(self.program.types[value].dtype), self.mesh.size)

    # --- the least sum ----------------------------------------------------------------------------------------------------

    @cached_property
    def best(self) -> tuple[float, Choice]:
        """The least cost, and a way of every op that has it."""
        self.most = min(self.most, self.exact(self.nearby()))
        while True:
            self.prune()
            chosen = self.least()
            if all(moves.cell(chosen) in moves.known for moves in self.moves):
                return self.exact(chosen), chosen
            self.most = min(self.most, self.exact(chosen))

    def nearby(self) -> Choice:
        """A choice from which no op alone can be moved to a lower sum, by the bounds."""
        tables, chosen = self.tables(), dict.fromkeys(self.ways, 0)
        while True:
            before = {**chosen}
            for op in chosen:
                costs = np.zeros(len(self.ways[op]))
                for table in (table for table in tables if op in table.ops):
                    costs += table.costs[tuple(slice(None) if each == op else chosen[each] for each in table.ops)]
                chosen[op] = int(costs.argmin())
            if chosen == before:
                return chosen

    def exact(self, chosen: Choice) -> float:
        """The cost of a choice; the entries of which it is the sum become costs."""
        for moves in self.moves:
            if (cell := moves.cell(chosen)) not in moves.known:
                moves.known[cell] = moves.costs[cell] = self.shared(moves, cell)
        own = sum(self.ways[op][n].cost for op, n in chosen.items())
        return self.always + own + sum(moves.known[moves.cell(chosen)] for moves in self.moves)

    def tables(self) -> list[Table]:
        """The costs of running ops, and of moving values."""
        own = (
            Table((op,), np.array([way.cost + OTHER * (n != self.own.get(op)) for n, way in enumerate(every)]))
            for op, every in self.ways.items()
        )
        return [*own, *(moves.table for moves in self.moves)]

    def prune(self) -> None:
        """Drops the ways that cost more than what is known to be enough."""
        tables = self.tables()
        least = self.always + sum(float(table.costs.min()) for table in tables)
        for op, every in [*self.ways.items()]:
            mine = sum((table.least(op) - table.costs.min() for table in tables if op in table.ops), np.zeros(len(every)))
            keep = np.flatnonzero(least + mine <= self.most + TIE / 2).tolist()
            if len(keep) < len(every):
                if (own := self.own.pop(op, None)) in keep:
                    self.own[op] = keep.index(own)
                self.ways[op] = [every[n] for n in keep]
                for moves in self.moves:
                    moves.keep(op, keep)
                tables = self.tables()

    def least(self) -> Choice:
        """A choice that has the least sum of the tables."""
        tables, left, order = self.tables(), {*self.ways}, list[tuple[NodeId, Table]]()
        while left:
            op = min(left, key=lambda op: self.size(op, tables))
            joined = self.joined(op, [table for table in tables if op in table.ops])
            order.append((op, joined))
            tables = [table for table in tables if op not in table.ops]
            tables.append(Table(joined.ops[1:], joined.costs.min(0)))
            left.remove(op)
        chosen: dict[NodeId, int] = {}
        for op, joined in reversed(order):
            chosen[op] = int(joined.costs[(slice(None), *(chosen[each] for each in joined.ops[1:]))].argmin())
        return chosen

    def size(self, op: NodeId, tables: Sequence[Table]) -> int:
        """How large the table is from which an op is eliminated."""
        together = {each for table in tables if op in table.ops for each in table.ops}
        return int(np.prod([len(self.ways[each]) for each in together]))

    def joined(self, op: NodeId, tables: Sequence[Table]) -> Table:
        """The sum of tables, with the op's axis first."""
        ops = tuple(dict.fromkeys([op, *(each for table in tables for each in table.ops)]))
        costs = np.zeros([len(self.ways[each]) for each in ops])
        for table in tables:
            order = sorted(range(len(table.ops)), key=lambda n: ops.index(table.ops[n]))
            shape = [len(self.ways[each]) if each in table.ops else 1 for each in ops]
            costs += table.costs.transpose(order).reshape(shape)
        return Table(ops, costs)


T = TypeVar("T")


def padded(every: Sequence[Wants]) -> list[Wants]:
    """The wanted layouts, the last of each repeated so that all are as long as the longest."""
    longest = max(map(len, every))
    return [each + each[-1:] * (longest - len(each)) for each in every]


def distinct(every: Sequence[T]) -> tuple[list[T], list[int]]:
    """The different ones of some things, and for each of these its number among them."""
    found = {each: n for n, each in enumerate(dict.fromkeys(every))}
    return [*found], [found[each] for each in every]


def common(targets: Sequence[Layout]) -> Layout:
    """The layout with the factors that all targets have."""
    first, *others = (layout.factors for layout in targets)
    return Layout.of(targets[0].global_shape, [each for each in first if all(each in other for other in others)])
