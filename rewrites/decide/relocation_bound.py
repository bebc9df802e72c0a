"""Whether it is worth while to try an op along an index: what devices would have to receive at least, and receive now.

Looks a few ops up and down: what an op needs moves to it, or the op that makes it runs along the same index, or whole too; what
it makes moves on, or the op that reads it follows. What these ops receive now is saved then. A try in full (`place_by_cut.py`)
takes longer than this. Trips of loops are not counted.

    dot %h, %t {data*512}: %t is gathered, 61 MB   -->   along `data`: %h is gathered, 31 MB, and %t no more
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import MeshAxis
from ..program.program import Node, NodeId, Position, ValueId
from ..redistribute.steps import Bytes, share
from .free_ops import FreeOps, index_of
from .min_cut import ENDLESS
from .price import charged, is_slow, seconds

Arrivals = Mapping[int, Bytes]
"""Of values, `v`, and of what ops make and read, `~n`: the bytes that devices receive more than now."""

FEW_AXES = 2
"""With how many placed axes the ops around one are looked at. With more there are too many paths to search."""

DEPTH = 8
"""How many ops up and down are looked at."""

MOST_WAIT = 200
"""Through how many ops a sum is followed."""


class RelocationBound:
    """What devices receive at least if ops run elsewhere."""

    def __init__(self, ops: FreeOps) -> None:
        self.ops, self.placements, self.program, self.choices = ops, ops.placements, ops.program, ops.choices
        self.is_many = len(ops.table.axes) > FEW_AXES
        self.read: dict[object, Arrivals] = {}
        """This and the next three hold until an op moves."""
        self.made: dict[object, Bytes] = {}
        self.alone: dict[NodeId, Bytes] = {}
        self.saved: dict[tuple[NodeId, int], Bytes] = {}

    def forget(self) -> None:
        """Drops what held until an op moved."""
        for cache in (self.read, self.made, self.alone, self.saved):
            cache.clear()

    def promises(self, node: Node, axis: MeshAxis, index: int | None) -> bool:
        """Whether an op could cost less along an index: what devices then receive at least is less than what they do now.

        What ops downstream receive then, and what they no longer receive, counts too.
        """
        now, after = self.placements.nodes[node.number], self.ops.along(node, axis, index)
        if after is None:
            return False
        received = sum(self.received(node, at) for at in range(len(node.operands)))
        received += sum(way.bytes for way, _ in self.choices.own(node, now)[0])
        if self.is_many:
            # Over many axes a search for paths is long.
            return self.gathers(node, axis, index) < received
        received += sum(way.bytes for value in node.results for way, _ in self.choices.ways(value))
        least = sum(self.reads(node, axis, index).values())
        least += sum(bound(node, axis, index) for bound in (self.makes, self.shared))
        work, less = (charged(self.placements, node, each) for each in (now, after))
        return self.seconds(axis, least, less) < self.seconds(axis, received, work)

    def seconds(self, axis: MeshAxis, received: Bytes, computed: int) -> float:
        """The time of bytes that are received over an axis, and of flops."""
        slow = received if is_slow(self.program.mesh, [axis]) else 0
        return seconds(self.program.mesh, received, slow, computed)

    def reads(self, node: Node, axis: MeshAxis, index: int | None, depth: int = DEPTH) -> Arrivals:
        """What devices at least receive so that an op can run along an index; without one, on all devices.

        What several operands are computed from arrives once.
        """
        key = node.number, axis, index, depth
        if key in self.read:
            return self.read[key]
        if (after := self.ops.along(node, axis, index)) is None:
            return {~node.number: ENDLESS}
        found = {~node.number: self.scatters(node, axis, index)}
        for at, value in enumerate(node.operands):
            if not self.program.zero[value]:
                for each, more in self.arrives(value, axis, after.wanted[at], self.dim(node, at, index), depth).items():
                    found[each] = max(found.get(each, more), more)
        self.read[key] = found
        return found

    def arrives(self, value: ValueId, axis: MeshAxis, wanted: Layout, dim: int | None, depth: int) -> Arrivals:
        """What devices at least receive to have a value in a layout: it moves, or its op runs elsewhere.

        Then nothing moves any more for that op alone, so less than nothing may arrive.
        """
        missed, maker = self.placements.misses(value, self.placements.with_sums(value), wanted), self.program.maker(value)
        if not missed:
            return {}
        direct: Arrivals = {value: missed}
        if maker is None or not self.ops.may_move(maker, axis):
            return direct
        if dim is None and not (depth and self.ops.may_be_whole(maker, axis)):
            return direct
        index = None if dim is None else index_of(maker.signature.result_at[maker.results.index(value)], dim)
        if dim is not None and index is None:
            return direct
        if not depth:
            return {}
        before, saved = self.reads(maker, axis, index, depth - 1), self.received_alone(maker)
        before = {**before, ~maker.number: before[~maker.number] - saved} if saved else before
        return direct if missed < sum(before.values()) else before

    def makes(self, node: Node, axis: MeshAxis, index: int | None, depth: int = DEPTH) -> Bytes:
        """The bytes that devices at least receive of the results of an op that runs along an index, or farther downstream."""
        key = node.number, axis, index, depth
        if key in self.made:
            return self.made[key]
        if (after := self.ops.along(node, axis, index)) is None:
            return ENDLESS
        found = self.made[key] = sum(
            self.together(
                self.leaves(value, layout, axis, None if index is None else at.get(index), use, depth) for use in uses
            )
            for value, layout, at in zip(node.results, after.produced, node.signature.result_at, strict=True)
            if (uses := self.placements.uses(value)) and (index is None or index in at)
        )
        return found

    def leaves(
        self, value: ValueId, layout: Layout, axis: MeshAxis, at: Position | None, use: tuple[NodeId, int], depth: int
    ) -> Bytes:
        """The bytes that devices at least receive for a use of a value: it moves, or the op that reads it runs elsewhere.

        Less than nothing if that op, or those behind it, then receive so much less.
        """
        number, position = use
        if number == self.program.end:
            return self.placements.misses(value, layout, self.placements.outside(value, layout))
        direct = self.placements.misses(value, layout, self.placements.wanted(number, position))
        reader = self.program.nodes[number]
        if not self.ops.may_move(reader, axis):
            return direct
        index = None if at is None else index_of(reader.signature.operand_at[position], at.dim)
        follows = self.ops.may_be_whole(reader, axis) if at is None else direct and index is not None
        if not follows or (after := self.ops.along(reader, axis, index)) is None:
            return direct
        others = (n for n in range(len(reader.operands)) if n != position and index not in reader.signature.operand_at[n])
        gathered = sum(self.lacks(reader.operands[n], after.wanted[n]) for n in others)
        least = gathered + (self.makes(reader, axis, index, depth - 1) if depth else 0) - self.saves(reader, position)
        # What is saved counts once for all operands that lead there.
        ways = sum(not self.program.parameter[each] and bool(self.program.shape(each)) for each in reader.operands)
        return min(direct, least // ways if least < 0 < ways else least)

    def saves(self, reader: Node, position: int) -> Bytes:
        """The bytes that devices receive now of what an op makes, and of all that it reads but one operand."""
        if (known := self.saved.get(key := (reader.number, position))) is None:
            known = sum(self.received(reader, at) for at in range(len(reader.operands)) if at != position)
            known += sum(way.bytes for each in reader.results for way, _ in self.choices.ways(each))
            self.saved[key] = known
        return known

    def together(self, uses: Iterable[Bytes]) -> Bytes:
        """The least for several uses of a value: they may share what they receive, and each may save what it received."""
        every = [*uses]
        return max((*every, 0)) + sum(each for each in every if each < 0)

    def shared(self, node: Node, axis: MeshAxis, index: int | None) -> Bytes:
        """The bytes that devices at least receive for the other uses of what the op reads, if these values move for it."""
        found: Bytes = 0
        if (after := self.ops.along(node, axis, index)) is None:
            return ENDLESS
        for position, (value, wanted) in enumerate(zip(node.operands, after.wanted, strict=True)):
            if self.received(node, position):
                at = None if index is None else node.signature.operand_at[position].get(index)
                others = [use for use in self.placements.uses(value) if use[0] != node.number]
                found += self.together(self.leaves(value, wanted, axis, at, use, DEPTH) for use in others)
        return found

    def gathers(self, node: Node, axis: MeshAxis, index: int | None) -> Bytes:
        """The bytes that devices lack of the operands of an op that runs along an index, or receive to scatter its sum."""
        if (after := self.ops.along(node, axis, index)) is None:
            return ENDLESS
        lies = map(self.placements.home, node.operands)
        return sum(map(self.placements.misses, node.operands, lies, after.wanted)) + self.scatters(node, axis, index)

    def scatters(self, node: Node, axis: MeshAxis, index: int | None) -> Bytes:
        """The bytes that devices at least receive to scatter the sum that an op makes along an index."""
        is_sum = index is not None and any(index not in at for at in node.signature.result_at)
        return share(min(self.waiting(node)), axis.size) if is_sum else 0

    def waiting(self, node: Node) -> Iterator[int]:
        """The local bytes of the op's result, and of each later result through which its sum may wait."""
        for _ in range(MOST_WAIT):
            (value, *others), axes = node.results, self.placements.axes(node)
            yield self.placements.local_bytes(value, self.placements.without(node, axes).produced[0])
            uses = self.placements.uses(value)
            if others or len(uses) != 1 or not self.ops.may_wait(uses[0][0], frozenset({uses[0][1]})):
                return
            node = self.program.nodes[uses[0][0]]

    def received(self, node: Node, position: int) -> Bytes:
        """The bytes that devices receive of an operand of an op now."""
        value = node.operands[position]
        made, want = self.placements.with_sums(value), self.choices.wants(value)[node.number, position]
        return self.placements.received(value, made, self.choices.target(value, made, want))

    def received_alone(self, node: Node) -> Bytes:
        """The bytes that devices receive of the operands that no other op reads in the same layout."""
        if (known := self.alone.get(node.number)) is None:
            wants = ((at, value, self.choices.wants(value)[node.number, at]) for at, value in enumerate(node.operands))
            alone = (at for at, value, want in wants if self.choices.counted[value][want] == 1)
            known = self.alone[node.number] = sum(self.received(node, at) for at in alone)
        return known

    def lacks(self, value: ValueId, target: Layout) -> int:
        """The bytes by which the target is larger than a device's part of the value: it receives at least so many."""
        return max(self.placements.local_bytes(value, target) - self.placements.home_bytes(value), 0)

    def dim(self, node: Node, position: int, index: int | None) -> int | None:
        """The dim of an operand along which an index runs; None if it has none."""
        at = None if index is None else node.signature.operand_at[position].get(index)
        return None if at is None else at.dim
