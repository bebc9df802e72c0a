"""What device sets make again instead of receiving it, by price.

A value that is needed on another set crosses, for the start of a transfer and its bytes over the link. Or the op that makes it
runs there too: for the time in which a device computes it, and for what it costs to have its operands there, each in the
cheaper of these two ways. That has to save as much time as a start takes. Only ops that compute little are made again, and what
depends on nothing but numbers and random keys, for any time saved: the work of others stays where tactics put it. Other ops
that their own sets do not read are not made again: there they would then run for nothing.

Numbers and keys cost nothing on any set. Neither does what ops of the set read in any case, nor what crosses for an earlier op
that is made again; that a later one will need it is not known.

    %m = broadcast %ids {B, H, S, S} on stage=0, read on stage=1   -->   %ids crosses, and %m is made on both
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import inf
from typing import NamedTuple

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ..program.program import Node, NodeId, ValueId
from . import price
from .ahead import seconds_of
from .decide import Decisions, Move
from .device_sets import DeviceSets, along, arriving, free, is_number
from .free_ops import computes_little
from .price import Price, seconds

Sent = Mapping[tuple[ValueId, Layout], Price]
"""The values that cross, in which layouts, and what that costs."""

Wanted = dict[ValueId, dict[Layout, bool]]
"""Values of other sets, and the layouts in which they would arrive on a set: whether they are there so in any case."""


class Ways(NamedTuple):
    """What it costs to have the results of an op on another device set. Each transfer takes the time of its start too."""

    crossing: Price
    """If they cross."""
    computed: float
    """If the op runs there too: the seconds in which a device computes it, and ops that run there for it."""
    sends: Sent
    """And what crosses for that."""
    is_read: bool
    """Whether ops of the set read them, and not only ops that are made again there."""
    departs: bool
    """Whether the op has to save the time of a start to run there too: it departs from where tactics put it."""

    @property
    def again(self) -> Price:
        """What it costs if the op runs there too."""
        return Price.sum([Price(self.computed, 0), *self.sends.values()])

    @property
    def is_again(self) -> bool:
        """Whether the op runs there too."""
        return self.again.pays(self.crossing) if self.departs else self.again <= self.crossing


class MadeAgain:
    """The ops that run on further sets than their own, because that costs less than if what they make crossed."""

    def __init__(self, decisions: Decisions, sets: DeviceSets) -> None:
        self.decisions, self.sets = decisions, sets
        self.placements, self.program = decisions.placements, decisions.placements.program
        self.free = free(self.program)
        self.is_local = cache(self.runs_anywhere)
        self.ways = {on: self.found(on, wanted) for on, wanted in self.needed().items()}

    def instead(self, value: ValueId, on: Mesh) -> Node | None:
        """The op that makes a value again on a set; None if the value crosses."""
        ways = self.ways.get(on, {}).get(self.program.producer[value])
        return self.program.made_by(value) if ways is not None and ways.is_again else None

    def needed(self) -> Mapping[Mesh, Wanted]:
        """What ops of each set read of other sets."""
        found = dict[Mesh, Wanted]()
        for node in self.program.nodes:
            for at, value in enumerate(node.operands):
                if self.sets.of(value) is not (on := self.sets.ops[node.number]) and self.is_read_on(on, node, at):
                    found.setdefault(on, {}).setdefault(value, {})[self.arrives(node, at)] = True
        return found

    def is_read_on(self, on: Mesh, node: Node, at: int) -> bool:
        """Whether an operand crosses to a set as it is made, and not only once it has been redistributed elsewhere."""
        move = self.decisions.at_use.get((node.number, at))
        if move is None or not move.communicates:
            return True
        return not move.pending and move.before is None and moved_on(self.sets, move) is on

    def arrives(self, node: Node, at: int) -> Layout:
        """The layout in which an operand of an op would arrive on another set."""
        move = self.decisions.at_use.get((node.number, at))
        wanted = self.placements.nodes[node.number].wanted[at] if move is None else move.target
        return arriving(self.placements.homes[node.operands[at]], wanted)

    def runs_anywhere(self, node: Node) -> bool:
        """Whether other sets may make what an op makes: by what one device does, without effects, and for little."""
        own, placed, found = node.signature, self.placements.nodes[node.number], self.decisions
        is_own = node.region or node.is_border or own.once or own.own or own.definition.apart or node.op_name == "whole"
        if is_own or not (node.number in self.free or (computes_little(node) and self.is_read_at_home(node))):
            return False
        moves = [found.homes.get(value) for value in node.results]
        moves += [found.at_use.get((node.number, at)) for at in range(len(node.operands))]
        sends = any(placed.pending) or placed.selected or placed.merged or node.number in found.carried
        return not sends and not any(move is not None and (move.communicates or move.waits) for move in moves)

    def is_read_at_home(self, node: Node) -> bool:
        """Whether an op's own set needs what it makes: else it would run there for nothing, and receive what it reads."""
        users = (user for value in node.results for user, _ in self.program.uses[value])
        return any(user == self.program.end or self.sets.ops[user] is self.sets.ops[node.number] for user in users)

    def found(self, on: Mesh, wanted: Wanted) -> Mapping[NodeId, Ways]:
        """What both ways cost for what ops of a set need of others, and for what this is made of, in program order."""
        ways = dict[NodeId, Ways]()
        for node in self.tried(on, wanted):
            takes, sends = self.computed(node), dict[tuple[ValueId, Layout], Price]()
            for at in range(len(node.operands)):
                more, sent = self.operand(on, node, at, wanted, ways)
                takes += more
                sends.update(sent)
            crossing = self.crossing(on, node, wanted)
            made = Ways(crossing, takes, sends, self.is_read(node, wanted), self.departs(node, wanted))
            ways[node.number] = made
            if made.is_again and made.is_read:
                for value, arrives in sends:
                    wanted[value][arrives] = True
        return ways

    def tried(self, on: Mesh, wanted: Wanted) -> Iterable[Node]:
        """The ops that may pay on a set, in program order: back to where ops take longer than a transfer.

        What their operands would be there is added to what is wanted.
        """
        left, found = {self.program.producer[value]: inf for value in wanted}, list[Node]()
        for node in reversed(self.program.nodes):
            if node.number not in left or not self.is_local(node):
                continue
            crossing = self.crossing(on, node, wanted).seconds - price.START * self.departs(node, wanted)
            room = min(left[node.number], crossing) - self.computed(node)
            if room < 0:
                continue
            found.append(node)
            for at, value in enumerate(node.operands):
                if self.sets.of(value) is not on:
                    wanted.setdefault(value, {}).setdefault(self.arrives(node, at), False)
                    number = self.program.producer[value]
                    left[number] = max(left.get(number, 0.0), room)
        return reversed(found)

    def operand(self, on: Mesh, node: Node, at: int, wanted: Wanted, ways: Mapping[NodeId, Ways]) -> tuple[float, Sent]:
        """What it takes to have an operand of an op on a set: seconds that are computed, and what is sent."""
        value, arrives = node.operands[at], self.arrives(node, at)
        if self.sets.of(value) is on or is_number(self.program, value) or wanted[value][arrives]:
            return 0, {}
        known = ways.get(self.program.producer[value])
        if known is None or not known.is_again:
            return 0, {(value, arrives): self.transfer(on, value, arrives)}
        return (0, {}) if known.is_read else (known.computed, known.sends)

    def is_read(self, node: Node, wanted: Wanted) -> bool:
        """Whether ops of a set read what an op makes."""
        return any(any(wanted.get(value, {}).values()) for value in node.results)

    def departs(self, node: Node, wanted: Wanted) -> bool:
        """Whether an op has to save a start: not if only ops that run again read it, nor if it reads only numbers."""
        return self.is_read(node, wanted) and node.number not in self.free

    def crossing(self, on: Mesh, node: Node, wanted: Wanted) -> Price:
        """What it costs if the results of an op cross, in each layout in which they would arrive."""
        return Price.sum(self.transfer(on, value, arrives) for value in node.results for arrives in wanted.get(value, ()))

    def transfer(self, on: Mesh, value: ValueId, arrives: Layout) -> Price:
        """A transfer, with the redistributions that bring a value into blocks of consecutive elements and back."""
        mesh, home = self.program.mesh, self.placements.homes[value]
        sent = home.natural
        ways = [(self.placements.way(value, *ends), 1) for ends in ((home, sent), (sent, home)) if sent is not home]
        size = self.placements.local_bytes(value, sent if ways else arrives)
        slow = size if mesh.is_slow(axes_between(self.sets.of(value), on)) else 0
        found = Price.sum([Price.of(mesh, ways), Price(seconds(mesh, size, slow), 1, 0, size)])
        return Price(found.with_starts, 0, 0, found.bytes)

    def computed(self, node: Node) -> float:
        """The seconds in which a device computes an op."""
        return seconds_of(self.placements, node, self.placements.nodes[node.number])


def axes_between(source: Mesh, target: Mesh) -> tuple[str, ...]:
    """The axes along which values cross from one device set to another."""
    return tuple(axis for axis, at in along(target).items() if along(source).get(axis) != at)


def moved_on(sets: DeviceSets, move: Move) -> Mesh:
    """Where a value is redistributed: a sum where it is made, any other value where it is first read."""
    first = move.uses[0][0] if move.uses and not move.pending else sets.program.end
    return sets.of(move.value) if first == sets.program.end else sets.ops[first]
