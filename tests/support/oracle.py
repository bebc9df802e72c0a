"""The oracle: the least that a small program can cost under what its tactics fix, by exhaustive search.

An op runs in any way of `oracle_ways`. A value costs what it takes to move it from the layout in which it is made to all layouts
in which it is read, so it is a table over the ways of its op and of its readers. The optimum is the least sum of one entry of
every table. It is found exactly: op by op is eliminated, from the one whose tables are smallest.

    %h = dot %x %w; %y = tanh %h   -->   tables over (dot), (dot, tanh), (tanh): the last one moves %y to where it is returned

Tables begin as bounds, which need no search for a path. What costs more than the plan by these bounds stays out of the search.

Fixed are the layouts of arguments and results, and those of the values that a tactic placed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from oracle_moves import lacks, moved
from oracle_ways import Way, way_of, ways

from partita.compiler.api.plan import Plan
from partita.dialects.ground.dtypes import itemsize
from partita.dialects.layouts import Layout
from partita.rewrites.decide.decide import Decisions
from partita.rewrites.decide.placements import boundary
from partita.rewrites.decide.price import Price, is_stored
from partita.rewrites.program.program import Node, NodeId, ValueId

Costs: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Wants: TypeAlias = tuple[Layout, ...]

TIE = 2.0**-12
"""What a collective weighs beside a byte: all of them together are less than the smallest part of a byte that paths receive."""


def weight(price: Price) -> float:
    return float(price.bytes) + TIE * price.collectives


@dataclass(slots=True)
class Costly:
    """A table of costs over the ways of some ops: an axis for each of them."""

    ops: tuple[NodeId, ...]
    costs: Costs

    def at(self, chosen: Mapping[NodeId, int]) -> float:
        return float(self.costs[tuple(chosen[op] for op in self.ops)])

    def least(self, op: NodeId) -> Costs:
        """For each way of an op, the least cost over those of the others."""
        return self.costs.min(tuple(n for n, each in enumerate(self.ops) if each != op))


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves of a value: from where its op makes it, or where it is fixed, to where some ops read it and it is returned."""

    value: ValueId
    home: Layout | None
    readers: tuple[NodeId, ...]
    returned: Wants


class Oracle:
    """The tables of a plan's program. `frugal`: no op divides its work among fewer devices than in the plan."""

    def __init__(self, plan: Plan, frugal: bool = False) -> None:
        self.decisions: Decisions = plan.decisions
        self.placements = self.decisions.placements
        self.program, self.mesh = plan.source.program, plan.mesh
        self.ways: dict[NodeId, list[Way]] = {}
        self.own: dict[NodeId, int] = {}
        """Each op's way in the plan."""
        self.foreign = list[NodeId]()
        """The ops whose ways in the plan are not among all ways."""
        for node in self.program.nodes:
            own, every = self.decided(node), ways(self.program, node, self.mesh)
            same = [n for n, each in enumerate(every) if (each.wanted, each.made) == (own.wanted, own.made)]
            if not same:
                self.foreign.append(node.number)
            others = [each for n, each in enumerate(every) if n not in same and not (frugal and each.parts < own.parts)]
            self.ways[node.number], self.own[node.number] = [own, *others], 0
        self.tables = list[Costly]()
        self.build()

    def decided(self, node: Node) -> Way:
        """The way in which the plan runs an op."""
        placed, sources = self.placements.nodes[node.number], self.placements.sources
        if (carry := self.decisions.carried.get(node.number)) is None:
            return way_of(self.program, node, placed, (), frozenset(), self.mesh)
        once = {position for position, _ in carry.once}
        at = frozenset(n for n, value in enumerate(node.operands) if value in sources or n in once)
        return way_of(self.program, node, placed, carry.pend, at, self.mesh)

    # --- the tables -------------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Makes all tables, those of moves as bounds, drops the ways that cost too much, and then searches for the paths."""
        self.tables = [Costly((op,), np.array([weight(way.price) for way in every])) for op, every in self.ways.items()]
        self.tables += [Costly((), np.array(each)) for each in self.entering()]
        moves = [*self.moves()]
        bounds = [Costly(self.ops(each), self.bounds(each)) for each in moves]
        self.tables += bounds
        self.most = weight(self.decisions.price) + TIE / 2
        self.prune()
        for each, table in sorted(zip(moves, bounds, strict=True), key=lambda pair: pair[1].costs.size):
            table.costs = self.exact(each, table)
            self.prune()

    def entering(self) -> Iterator[float]:
        """What it costs to move arguments from where they are given to where they lie."""
        for value in self.program.arguments:
            home = self.placements.homes[value]
            yield self.cost(value, boundary(self.placements, value), home)

    def moves(self) -> Iterator[Moves]:
        for value in self.program.arguments:
            yield from (Moves(value, self.placements.homes[value], *group) for group in self.groups(value))
        for value in (value for node in self.program.nodes for value in node.results):
            if (home := self.placements.pinned.get(value)) is not None:
                yield Moves(value, None, (), (home,))
            yield from (Moves(value, home, *group) for group in self.groups(value))

    def groups(self, value: ValueId) -> Iterator[tuple[tuple[NodeId, ...], Wants]]:
        """The ops that read a value and share its moves, with the layouts in which it is returned."""
        uses, end = self.placements.uses(value), self.program.end
        readers = tuple(dict.fromkeys(number for number, _ in uses if number != end))
        returned = (boundary(self.placements, value),) if any(number == end for number, _ in uses) else ()
        if self.program.parameter[value] and is_stored(self.placements, value):
            yield from (((each,), ()) for each in readers)
            yield (), returned
        else:
            yield readers, returned

    def ops(self, moves: Moves) -> tuple[NodeId, ...]:
        return moves.readers if moves.home is not None else (self.program.producer[moves.value], *moves.readers)

    def made(self, moves: Moves) -> list[Layout]:
        """The layouts in which a value is made, by the ways of its op."""
        if moves.home is not None:
            return [moves.home]
        node = self.program.made_by(moves.value)
        return [way.made[node.results.index(moves.value)] for way in self.ways[node.number]]

    def wanted(self, moves: Moves) -> list[list[Wants]]:
        """The layouts that each reader wants of a value, by the reader's ways."""
        nodes = [self.program.nodes[number] for number in moves.readers]
        at = [sorted(node.positions({moves.value})) for node in nodes]
        return [
            [tuple(dict.fromkeys(way.wanted[n] for n in some)) for way in self.ways[node.number]]
            for node, some in zip(nodes, at, strict=True)
        ]

    def bounds(self, moves: Moves) -> Costs:
        """The least that it can cost to move a value: what a device lacks of each layout."""
        made, wants = self.made(moves), self.wanted(moves)
        sources = {each: n for n, each in enumerate(dict.fromkeys(made))}
        every = dict.fromkeys([*moves.returned, *(layout for one in wants for asked in one for layout in asked)])
        targets = {each: n for n, each in enumerate(every)}
        if not targets:
            return np.zeros(() if moves.home is not None else len(made))
        lack = lacks([*sources], [*targets], self.mesh) * itemsize(self.program.types[moves.value].dtype)
        rows = lack[[sources[each] for each in made]]
        parts = [rows[:, [targets[each] for each in moves.returned]].max(1, initial=0)]
        for at, one in enumerate(wants, 1):
            most = np.stack([rows[:, [targets[each] for each in asked]].max(1) for asked in one], 1)
            parts.append(most.reshape(len(made), *(most.shape[1] if n == at else 1 for n in range(1, len(wants) + 1))))
        found = reduce(np.maximum, (part.reshape(part.shape + (1,) * (len(wants) + 1 - part.ndim)) for part in parts))
        return found if moves.home is None else found[0]

    def exact(self, moves: Moves, bound: Costly) -> Costs:
        """What it costs to move a value, where that may be as little as the plan costs; elsewhere no number is as large."""
        costs = np.full(bound.costs.shape, np.inf)
        left = self.most - sum(float(table.costs.min()) for table in self.tables)
        ahead = bound.costs - bound.costs.min()
        for n, op in enumerate(bound.ops):
            shape = [-1 if each == n else 1 for each in range(len(bound.ops))]
            alone = (each for each in self.tables if each.ops == (op,) and each is not bound)
            ahead = ahead + sum((each.costs - each.costs.min() for each in alone), np.zeros(len(self.ways[op]))).reshape(shape)
        made, wants = self.made(moves), self.wanted(moves)
        known: dict[tuple[Layout, Wants], float] = {}
        for at in zip(*np.nonzero(ahead <= left), strict=True) if bound.ops else [()]:
            source, asked = (made[0], at) if moves.home is not None else (made[at[0]], at[1:])
            chosen = (layout for n, one in zip(asked, wants, strict=True) for layout in one[n])
            targets = tuple(dict.fromkeys([*moves.returned, *chosen]))
            if (found := known.get((source, targets))) is None:
                found = known[source, targets] = self.shared(moves.value, source, targets)
            costs[at] = found
        return costs

    def shared(self, value: ValueId, source: Layout, targets: Wants) -> float:
        """What it costs to move a value to several layouts: each move once, directly or by way of their common layout."""
        own = source.pending
        kept = dict.fromkeys(each.with_pending(tuple(p for p in each.pending if p in own)) for each in targets)
        waits = sum(self.cost(value, source, each) for each in kept if each.pending and each is not source)
        plain = [each for each in kept if not each.pending and each is not source]
        direct = sum(self.cost(value, source, each) for each in plain)
        if len(plain) > 1 and direct:
            between = common(plain)
            apart = sum(self.cost(value, between, each) for each in plain if each is not between)
            direct = min(direct, self.cost(value, source, between) + apart)
        return waits + direct

    def cost(self, value: ValueId, source: Layout, target: Layout) -> float:
        return weight(moved(source, target, itemsize(self.program.types[value].dtype), self.mesh.size))

    def prune(self) -> None:
        """Drops the ways that cost more than the plan in any case."""
        least = sum(float(table.costs.min()) for table in self.tables)
        for op, every in self.ways.items():
            mine = sum(table.least(op) - table.costs.min() for table in self.tables if op in table.ops)
            keep = np.flatnonzero(least + mine <= self.most)
            if len(keep) < len(every):
                self.own[op] = keep.tolist().index(self.own[op])
                self.ways[op] = [every[n] for n in keep]
                for table in self.tables:
                    if op in table.ops:
                        table.costs = table.costs.take(keep, table.ops.index(op))

    # --- the least sum ----------------------------------------------------------------------------------------------------

    @property
    def plan_cost(self) -> float:
        """What the plan costs by these tables."""
        return sum(table.at(self.own) for table in self.tables)

    @cached_property
    def best(self) -> tuple[float, dict[NodeId, int]]:
        """The least cost, and a way of every op that has it."""
        tables, left, order = [*self.tables], {*self.ways}, list[tuple[NodeId, Costly]]()
        while left:
            op = min(left, key=lambda op: self.size(op, tables))
            joined = self.joined(op, [table for table in tables if op in table.ops])
            order.append((op, joined))
            tables = [table for table in tables if op not in table.ops]
            tables.append(Costly(joined.ops[1:], joined.costs.min(0)))
            left.remove(op)
        chosen: dict[NodeId, int] = {}
        for op, joined in reversed(order):
            chosen[op] = int(joined.costs[(slice(None), *(chosen[each] for each in joined.ops[1:]))].argmin())
        return sum(float(table.costs) for table in tables), chosen

    def size(self, op: NodeId, tables: Sequence[Costly]) -> int:
        """How large the table is from which an op is eliminated."""
        together = {each for table in tables if op in table.ops for each in table.ops}
        return int(np.prod([len(self.ways[each]) for each in together]))

    def joined(self, op: NodeId, tables: Sequence[Costly]) -> Costly:
        """The sum of tables, with the op's axis first."""
        ops = tuple(dict.fromkeys([op, *(each for table in tables for each in table.ops)]))
        costs = np.zeros([len(self.ways[each]) for each in ops])
        for table in tables:
            order = sorted(range(len(table.ops)), key=lambda n: ops.index(table.ops[n]))
            shape = [len(self.ways[each]) if each in table.ops else 1 for each in ops]
            costs = costs + table.costs.transpose(order).reshape(shape)
        return Costly(ops, costs)


def common(targets: Sequence[Layout]) -> Layout:
    """The layout with the factors that all targets have."""
    first, *others = (layout.factors for layout in targets)
    return Layout.of(targets[0].global_shape, [each for each in first if all(each in other for other in others)])
