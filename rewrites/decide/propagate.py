"""Propagation: carries the claims along one mesh axis through the definitions.

Claims go forward (an operand arrives tiled), backward (a result is wanted tiled) and between operands (one operand of a matmul
tiled on k makes the other tiled on k). An op whose claims match exactly one index takes it; several are a conflict. Forward
visits ops in program order, each after all its operands; backward in the reverse order, each after all its uses; until nothing
changes. Only ops beside a changed claim are visited, which gives the same plan as full sweeps do.

A claim has a rank. An op takes a claim of a later rank only when no op is left that a claim of an earlier rank may concern.

    tile x 0 data:   %h = dot %x %w1; %z = dot %h %w2   -->   both dots place their row index on data

Held propagation follows a range and never crosses one: it passes only through ops whose operands and results all have the
range. Ops that make the range, or fold it among others, are left to later tactics, and the value between is redistributed.

    tile w1 0 data, held:   %s = dot %d %x   %h = dot %s %w1   %z = dot %h %w2   %y = dot %c %z   -->   the inner two on data
                            [e,g,m]          [e,g,f]           [e,g,m]           [g,m]                  at e, for g the others
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import TypeAlias

from ...dialects.definitions.tilings import SubIndex
from ...dialects.ranges.algebra import Place
from ...dialects.ranges.factor import Factor, are_apart, crossing, hull, is_padded, joined, middle
from ...dialects.regions import TRIPS
from ..program.in_order import InOrder
from ..program.program import NO_NODE, NO_VALUE, Node, NodeId, Position, ValueId
from .table import CLOSED, COUNTS, UNEVEN, WHOLE, AxisTable, BlockedOp, Claim, Clash, Key, Table, claim_of, misfit, produced

ANY_WIDTH = 1 << 60
"""A width that no window reaches: more blocks than any axis has."""

Candidates = dict[tuple[int, Factor], tuple[Claim, int]]
"""A factor of an index -> the claim that asks for it, and who asks: an operand's position, or -1 - a result's."""


def propagate(
    table: Table, axis: Place, changed: Iterable[ValueId], tactic: int, held: bool = False, padded: bool = False
) -> None:
    """Carries the axis's claims from the changed values until nothing changes; updates `table` in place.

    `padded`: an extent that a window changes may be padded to what the axis divides.
    """
    Sweep(table, axis, tactic, held, padded).run(changed)


NO_CLAIMS: frozenset[Claim] = frozenset()


ClaimReading: TypeAlias = tuple[Claim, Position, Sequence[Factor]]
"""An op's claim on an index, the position of this index in the value that it reads, and the index's factors on other axes."""


FORWARD, BACKWARD, ARGUMENTS, SHIFTED, WIDENED, LOOKUP, PADDED = range(7)
"""What a sweep visits, in this order: three passes for exact claims, and then the ops that wait for claims of later ranks.

* SHIFTED: elements arrive through an op that moves them, and no use says in which window it reads them.
* WIDENED: the same for an op whose result is asked for in windows; such a result has most uses to wait for.
* LOOKUP: elements move that could stay, or a few are read as a sum over devices.
* PADDED: a block is short.
"""


class Sweep:
    """One propagation. Each pass and rank has a heap of the nodes or arguments that a changed claim may concern."""

    def __init__(self, table: Table, axis: Place, tactic: int, held: bool = False, padded: bool = False) -> None:
        self.table = table
        self.padded = padded
        self.program = table.program
        self.axis = axis
        self.tactic = tactic
        self.held = held
        self.claims: AxisTable = table.axes[axis]
        self.open = frozenset(table.conflicts)
        """The conflicts of earlier tactics."""
        self.arriving: dict[ValueId, Set[Claim]] = {}
        self.widened = {self.program.producer[value] for value in table.widened} - {NO_NODE}
        """Ops whose results a tactic asks for in the windows in which they are read."""
        self.following = self.program.shifting | self.widened
        """Ops that produce their results in the windows in which they are read, because moving elements costs nothing."""
        self.points = self.claims.points
        """The points of redistribution, which no claim crosses."""
        self.asking = False
        """Whether points claim their operands in the layouts of their results."""
        self.heaps = [InOrder[int]() for _ in range(PADDED + 1)]
        self.most_at_once: int | None = None
        """How many entries of a pass are visited before the next pass; None: all of them."""
        self.last = dict[NodeId, int]()
        """Ops that may take more than exact claims -> the last rank that they may take."""
        self.shifting = set[NodeId]()
        """The ops that only shift elements and have taken a claim."""

    def run(self, changed: Iterable[ValueId]) -> None:
        for value in changed:
            self.pass_on(value)
            self.wanted(value)
        while any(self.heaps):
            if not any(self.heaps[:SHIFTED]):
                self.admit(next(rank for rank, heap in enumerate(self.heaps) if heap))
            forward, backward, arguments = (islice(heap, self.most_at_once) for heap in self.heaps[:SHIFTED])
            for number in forward:
                self.visit(self.program.nodes[number])
            for number in backward:
                self.visit(self.program.nodes[-number])
            for position in arguments:
                self.argument(self.program.values[position])
        for number in sorted(self.shifting):
            self.leave(self.program.nodes[number])

    def may_take(self, number: NodeId, rank: int) -> bool:
        """Whether an op may take a claim of this rank; if not, it waits until no claim of an earlier rank is left."""
        if self.last.get(number, 0) >= rank:
            return True
        self.heaps[rank].add(number)
        return False

    def may_shift(self, number: NodeId) -> bool:
        return self.may_take(number, WIDENED if number in self.widened else SHIFTED)

    def admit(self, rank: int) -> None:
        """Lets all ops that wait for a rank take it, and visits all that may take more than exact claims."""
        # An op that no other claim reaches may take any of its last resorts.
        upto = PADDED if rank == LOOKUP else rank
        nodes = self.program.nodes
        if admitted := [nodes[at].number for at in self.heaps[rank] if self.last.get(nodes[at].number, 0) < rank]:
            self.last |= dict.fromkeys(admitted, upto)
            for number in self.last:
                self.mark_ahead(number)

    def mark_ahead(self, number: NodeId) -> None:
        if self.claims.nodes[number] is None:
            self.heaps[FORWARD].add(number)

    def wanted(self, value: ValueId) -> None:
        """Marks the producer of the value, or the argument: a claim of a use, or of the value itself, may concern it."""
        number = self.program.producer[value]
        if number < 0:
            self.heaps[ARGUMENTS].add(value)
        elif self.claims.nodes[number] is None:
            self.heaps[BACKWARD].add(-number)

    def visit(self, node: Node) -> None:
        """Places the one index that all claims on the op ask for, or records the conflict."""
        if self.claims.nodes[node.number] is not None or (self.points and node.number in self.points):
            return
        candidates: Candidates = {}
        self.result_claims(node, candidates)
        follows = node.number in self.following
        if not follows or (not candidates and self.may_shift(node.number)):
            self.operand_claims(node, candidates)
        if not candidates:
            if follows:
                # Its users may take the claims that it would pass on to them.
                self.pass_on(*node.results)
            return
        key = (node.number, NO_VALUE, self.axis)
        if len(candidates) > 1 and len(candidates := self.settled(node, candidates)) > 1:
            self.conflict(key, candidates.values())
            return
        ((index, factor),) = candidates
        if self.held and not self.along(node, index):
            return
        self.table.conflicts.pop(key, None)
        self.claims.nodes[node.number] = Claim(index, factor, self.tactic, self.held)
        self.decided(node)

    def conflict(self, key: Key, claims: Iterable[tuple[Claim, int]]) -> None:
        """Records claims that cannot all hold."""
        self.table.conflicts[key] = Clash(*key, tuple(claims))

    def pass_on(self, *values: ValueId) -> None:
        """Marks the ops that read these values for the forward pass."""
        for value in values:
            for number, _ in self.program.uses[value]:
                self.mark_ahead(number)

    def along(self, node: Node, index: int) -> bool:
        """Whether the op only follows the index: every array that it reads has it, and so do its results if it reads several.

        An op that reads no array can make its result in any layout: it follows if all uses of the result do.
        """
        program, signature = self.program, node.signature
        read = [at for at, v in zip(signature.operand_at, node.operands, strict=True) if max(program.shape(v), default=1) > 1]
        if not read:
            uses = [self.claims.nodes[number] for value in node.results for number, _ in program.uses[value]]
            return all(claim is not None and claim.held for claim in uses)
        return all(index in at for at in (*read, *(signature.result_at if len(read) > 1 else ())))

    def asks(self, claim: Claim) -> bool:
        """Whether other ops and values may follow the claim."""
        return claim.at != WHOLE and (not claim.held or claim.tactic == self.tactic)

    def decided(self, node: Node) -> None:
        if self.arriving:
            self.arriving.clear()
        if node.signature.shifts:
            self.shifting.add(node.number)
            for position in range(len(node.operands)):
                self.table.blocked.pop((node.number, position, self.axis), None)
        for value in node.operands:
            self.wanted(value)
        self.pass_on(*node.results)

    def leave(self, node: Node) -> None:
        """Leaves the elements that an op shifts on their devices, if all are then where the claim wants them.

        Under the claim, devices could still receive elements, namely such that are not in the result.

        ```
        x[:1] in blocks of 8, of an x in blocks of 16 (8 devices)   -->   in blocks of 16: the first device has the row
        ```
        """
        claim, signature = self.claims.nodes[node.number], node.signature
        assert claim is not None
        ends = [(value, at[claim.at]) for value, at in zip(node.operands, signature.operand_at, strict=True) if claim.at in at]
        if len(ends) != 1 or self.table.on_index(node, claim.at, self.axis):
            return
        ((value, at),) = ends
        own, index = claim_of(self.program, self.claims, value), signature.indices[claim.at]
        if at.reach is None or own is None or own.at != at.dim or self.table.on_dim(value, at.dim, self.axis):
            return
        there = at.reach.arriving(own.factor)
        wants, has = (None if each is None else at.reach.outward(each) for each in (claim.factor, there))
        if there is None or wants is None or has is None or own.factor.holds(wants, at.reach.size):
            return
        stays = own.factor.holds(has, at.reach.size) and there.holds(claim.factor, index.extent)
        if stays and misfit(signature, claim.at, [there]) is None:
            self.claims.nodes[node.number] = claim._replace(factor=there)

    def operand_claims(self, node: Node, candidates: Candidates) -> None:
        program, claims = self.program, self.claims
        for position, value in enumerate(node.operands):
            claim = claims.values[value]
            if claim is None:
                claim = produced(program, claims, value)
            if claim is not None and self.asks(claim):
                self.ask(node, position, node.signature.operand_dims[position][claim.at], claim, candidates)
        if candidates or not self.following:
            return
        for position, value in enumerate(node.operands):
            if (arriving := self.shifted(value)) and claim_of(program, claims, value) is None:
                if not self.may_shift(node.number):
                    return
                for claim in arriving:
                    digits = node.signature.operand_dims[position][claim.at]
                    self.ask(node, position, digits, claim, candidates, passing=True)

    def settled(self, node: Node, candidates: Candidates) -> Candidates:
        """The one of several candidates that serves all claims or ends an earlier conflict; all of them if there is none."""
        if found := self.with_all_in_place(node, candidates) or self.in_the_middle(node, candidates):
            return found
        is_open = (node.number, NO_VALUE, self.axis) in self.open
        mine = {each: asked for each, asked in candidates.items() if is_open and asked[0].tactic == self.tactic}
        return mine if len(mine) == 1 else candidates

    def with_all_in_place(self, node: Node, candidates: Candidates) -> Candidates:
        """The one of several candidates with which no value that claims the op has to move, if there is one.

        ```
        concatenate of 48 and 16 rows, in turn and in blocks of 4 (4 devices)   -->   in turn: 16 rows are one round
        ```
        """
        signature = node.signature
        for (index, factor), asked in candidates.items():
            beside = self.table.on_index(node, index, self.axis)
            ends = (
                (claim, (signature.operand_at[at] if at >= 0 else signature.result_at[-1 - at]).get(index))
                for claim, at in candidates.values()
            )
            if all(at is not None and at.dim == claim.at and at.outward(factor, beside) is claim.factor for claim, at in ends):
                return {(index, factor): asked}
        return {}

    def in_the_middle(self, node: Node, candidates: Candidates) -> Candidates:
        """The one in the middle of several candidates for an index, if they differ only in where the blocks begin."""
        (index, _), *others = candidates
        if any(other != index for other, _ in others):
            return {}
        extent, beside = node.signature.indices[index].extent, self.table.on_index(node, index, self.axis)
        factor = crossing(beside, extent, lambda *each: middle(extent, each), *(factor for _, factor in candidates))
        if factor is None or self.table.misfit(node, index, factor) is not None:
            return {}
        return {(index, factor): next(iter(candidates.values()))}

    def shifted(self, value: ValueId) -> Set[Claim]:
        """The claims that would reach a value through its op, if that is undecided and produces results where they are read."""
        if self.program.producer[value] not in self.following:
            return NO_CLAIMS
        if (known := self.arriving.get(value)) is None:
            known = self.arriving[value] = dict.fromkeys(self.arrivals(value)).keys()
        return known

    def arrivals(self, value: ValueId) -> Iterator[Claim]:
        node = self.program.made_by(value)
        if self.claims.nodes[node.number] is not None:
            return
        (result,) = node.signature.result_at[:1]
        for position, operand in enumerate(node.operands):
            own = claim_of(self.program, self.claims, operand)
            for claim in self.shifted(operand) if own is None else [own] if self.asks(own) else []:
                for digit in node.signature.operand_dims[position][claim.at]:
                    factor = digit.arriving(
                        claim.factor, self.table.on_dim(operand, claim.at, self.axis) if digit.reach else ()
                    )
                    if factor is not None and digit.at in result:
                        yield claim.moved(result[digit.at].dim, result[digit.at].outward(factor))

    def result_claims(self, node: Node, candidates: Candidates) -> None:
        for position, value in enumerate(node.results):
            dims = node.signature.result_dims[position]
            for claim in self.wants(value):
                self.ask(node, -1 - position, dims[claim.at], claim, candidates)

    def wants(self, value: ValueId) -> Collection[Claim]:
        """The claims on a value: its own or, if it has none, those of its decided uses."""
        own = self.claims.values[value]
        if own is not None:
            return (own,) if self.asks(own) else NO_CLAIMS
        read = self.read_by(value)
        if not read:
            return NO_CLAIMS
        if len(read) == 1:
            ((claim, at, _),) = read
            if at.reach is None and claim.factor.halo is None:
                return (claim.moved(at.dim, claim.factor.outward(at.minor)),)
        producer = self.program.producer[value]
        if producer in self.following and (window := self.one_window(value, producer, read)) is not None:
            return (window,)
        found = self.tilings(read, False)
        if not found and (found := self.tilings(read, True)) and producer >= 0 and not self.may_take(producer, PADDED):
            return NO_CLAIMS
        return found if len(found) < 2 else self.one_tiling(value, found)

    def tilings(self, read: list[ClaimReading], last: bool) -> Set[Claim]:
        """The claims on a value of the ops that read it, one by one; `last`: also those that are a last resort."""
        # In the order of the program, not of a hash: a plan must not depend on where objects lie in memory.
        found = dict[Claim, None]()
        for claim, at, beside in read:
            if at.reach is None and at.minor == 1 and at.dim == claim.at:
                found[claim] = None
            elif (factor := at.claim(claim.factor, self.padded, last, beside)) is not None:
                found[claim.moved(at.dim, factor)] = None
        return found.keys()

    def one_tiling(self, value: ValueId, found: Set[Claim]) -> Set[Claim]:
        """Reduces several claims on a dim to one in their middle, if they differ only in where the blocks begin."""
        one = min(found, key=lambda claim: claim.tactic)
        if any(claim.at != one.at for claim in found):
            return found
        extent, beside = self.program.shape(value)[one.at], self.table.on_dim(value, one.at, self.axis)
        factor = crossing(beside, extent, lambda *each: middle(extent, each), *(claim.factor for claim in found))
        return found if factor is None else {one._replace(factor=factor)}

    def read_by(self, value: ValueId) -> list[ClaimReading]:
        """The claims of the ops that read a value by a placed index, with the position of this index in the value."""
        nodes, claims, found = self.program.nodes, self.claims.nodes, list[ClaimReading]()
        uses = self.program.uses[value]
        if self.points and not self.asking:
            uses = [use for use in uses if use[0] not in self.points]
        for number, position in uses:
            claim = claims[number]
            if claim is not None and (not claim.held or self.asks(claim)):
                at = nodes[number].signature.operand_at[position].get(claim.at)
                if at is not None:
                    beside = () if at.reach is None else self.table.on_index(nodes[number], claim.at, self.axis)
                    found.append((claim, at, beside))
        return found

    def one_window(self, value: ValueId, producer: NodeId, readers: list[ClaimReading]) -> Claim | None:
        """The least window that contains all that is read of a value, for a value produced where it is read.

        None if there is none.
        """
        windows = [(claim, at.dim, at.window(claim.factor, beside)) for claim, at, beside in readers]
        read = [claim.moved(dim, window) for claim, dim, window in windows if window is not None]
        if len(read) < len(readers) or len({claim.at for claim in read}) != 1:
            return None
        one = min(read, key=lambda claim: claim.tactic)
        extent, most = self.program.shape(value)[one.at], ANY_WIDTH if producer in self.widened else 1

        def window_of(*factors: Factor) -> Factor | None:
            window = hull(extent, factors, most)
            if window is None or window.width <= window.span:
                return window
            self.table.too_wide[value, self.axis] = window, are_apart(factors)
            return None

        beside = self.table.on_dim(value, one.at, self.axis)
        window = crossing(beside, extent, window_of, *(claim.factor for claim in read))
        return None if window is None else one._replace(factor=window)

    def ask(
        self,
        node: Node,
        position: int,
        digits: tuple[SubIndex, ...],
        claim: Claim,
        candidates: Candidates,
        passing: bool = False,
    ) -> None:
        """Turns a claim on a dim into a claim on its index, if a factor of the index can be placed.

        With `passing`, the claim only passes through an undecided op, and no value has it yet.
        """
        if not passing and not node.signature.rivals:
            for digit in digits:
                factor = claim.factor.inward(digit.minor, digit.extent)
                if factor is not None and self.table.misfit(node, digit.at, factor) is None:
                    candidates.setdefault((digit.at, factor), (claim, position))
                    return
        elif (found := self.through_windows(node, position, digits, claim, passing)) is not None:
            candidates.setdefault(found, (claim, position))
            return
        if claim.factor.has_halo and (blocks := self.blocks(node, position, claim)) is not None:
            if not node.signature.shifts or self.may_take(node.number, PADDED):
                self.ask(node, position, digits, blocks, candidates, passing)
        elif not passing:
            self.block(node, position, claim, digits)

    def through_windows(
        self, node: Node, position: int, digits: tuple[SubIndex, ...], claim: Claim, passing: bool
    ) -> tuple[int, Factor] | None:
        """The index and factor for a dim's claim, for an op that reads windows or a claim forwarded by an undecided op.

        An op that only shifts keeps its blocks for the ops that read it; if only the caller reads it, it gets blocks of one
        size. An op that no other claim reaches takes, as a last resort, also a claim

        * by which a few elements are read as a sum over devices;
        * that passes through an undecided op and leaves a short block;
        * by which elements move that could stay where they are;
        * that pads an op that only shifts.
        """
        indices, shifts, few = node.signature.indices, False, False
        if node.signature.shifts:
            shifts = any(self.program.uses[result] for result in node.results)
            few = any(indices[digit.at].reads for digit in digits)
        around = self.table.on_dim(node.end(position), claim.at, self.axis) if node.signature.rivals else ()
        for digit, factor in self.crossings(node, digits, claim.factor, shifts, around):
            index = indices[digit.at]
            if factor is None or (few and index.extent < factor.size) or self.table.misfit(node, digit.at, factor) is not None:
                continue
            short = (passing or (self.padded and node.signature.shifts)) and self.is_short(node, digit.at, factor)
            resized = shifts and position >= 0 and factor.stride != claim.factor.stride
            moves = resized and digit.arriving(claim.factor, around) is not factor
            is_last = short or moves or (few and index.reads)
            if not is_last or self.may_take(node.number, PADDED if short and not passing else LOOKUP):
                return digit.at, factor
        return None

    def crossings(
        self, node: Node, digits: tuple[SubIndex, ...], factor: Factor, shifts: bool, around: Sequence[Factor]
    ) -> Iterable[tuple[SubIndex, Factor | None]]:
        """The factor on each index of a dim, None where it has none.

        Of windows to compute on, the one that reads least is first.
        """
        found = ((digit, digit.inward(factor, self.padded, shifts, around)) for digit in digits)
        return found if node.signature.shifts or len(digits) < 2 else sorted(found, key=lambda each: _width_read(*each))

    def is_short(self, node: Node, index: int, factor: Factor) -> bool:
        """Whether the last block of an index has fewer elements than others, or none."""
        extent, every = node.signature.indices[index].extent, [*self.table.on_index(node, index, self.axis), factor]
        one = joined(extent, every) or factor
        return is_padded(extent, every) or one.leaves_out(extent)

    def blocks(self, node: Node, position: int, claim: Claim) -> Claim | None:
        """The claim in blocks of one size, for an op that cannot hold windows; None if they do not divide.

        Windows that reach beyond the dim may be padded like blocks.
        """
        extent = self.program.shape(node.end(position))[claim.at]

        def even(one: Factor) -> Factor | None:
            return one.even(extent, self.padded or one.overhangs(extent))

        beside = self.table.on_dim(node.end(position), claim.at, self.axis)
        factor = crossing(beside, extent, even, claim.factor)
        return None if factor is None else claim._replace(factor=factor)

    def block(self, node: Node, position: int, claim: Claim, digits: tuple[SubIndex, ...]) -> None:
        value = node.end(position)
        extent = self.program.shape(value)[claim.at]
        if not extent:
            return
        reason = self.reason(node, position, claim, digits)
        key = (node.number, position, self.axis)
        self.table.blocked[key] = BlockedOp(
            node.number, position, self.axis, claim.at, extent, claim.factor, reason, claim.tactic
        )

    def reason(self, node: Node, position: int, claim: Claim, digits: tuple[SubIndex, ...]) -> str:
        """Why no index of the dim takes the claim."""
        if not digits:
            return "the trips of a loop run one after another" if node.op_name in TRIPS else "this dim cannot be placed"
        (major, *_), indices, factor = digits, {digit.at for digit in digits}, claim.factor
        asked = ((digit.at, digit.inward(factor, self.padded, node.signature.shifts)) for digit in digits)
        refusals = [self.table.misfit(node, index, inward) for index, inward in asked if inward is not None]
        if CLOSED in refusals:
            return CLOSED
        beside = [a for a, t in self.table.axes.items() if (c := t.nodes[node.number]) is not None and c.at in indices]
        if beside:
            return f"its blocks of {factor.stride} do not fit beside those of {', '.join(f'`{axis}`' for axis in beside)}"
        if told := next((each for each in refusals if each not in (None, UNEVEN)), None):
            return told.format(block=factor.stride, size=factor.size)
        extent, made, size = (
            self.program.shape(node.end(position))[claim.at],
            node.signature.indices[major.at].extent,
            factor.size,
        )
        if is_padded(extent, [factor]):
            return f"its blocks of {factor.stride} do not fit" if factor.inward(major.minor) is None else COUNTS
        if factor.is_in_turn(extent):
            return "needs one block on each device"
        if made == extent or extent % size:
            return UNEVEN
        if major.reach is None:
            return f"it has {made} blocks of {extent // made} that stay together, which {size} devices do not divide"
        return f"the result has {made} rows, which {size} devices do not divide"

    def argument(self, value: ValueId) -> None:
        """Places an argument on the one dim on which all its uses want it; one that is reconciled stays whole."""
        key = (NO_NODE, value, self.axis)
        if self.claims.values[value] is not None or key in self.table.reconciled:
            return
        found = self.wants(value)
        # A set has another order in another process; of equal claims the earliest counts.
        ordered = sorted(found, key=lambda claim: (claim.at, claim.factor.stride, -claim.tactic)) if len(found) > 1 else found
        wants = {claim[:2]: claim for claim in ordered}
        if len(wants) > 1:
            self.conflict(key, [(claim, 0) for claim in wants.values()])
        elif wants:
            ((dim, factor),) = wants
            if dim not in self.table.closed.get(value, ()) and self.table.fits_value(value, dim, factor):
                self.table.conflicts.pop(key, None)
                self.claims.values[value] = Claim(dim, factor, self.tactic, self.held)
                self.pass_on(value)


def _width_read(digit: SubIndex, factor: Factor | None) -> int:
    """How many positions of a dim a device reads by an index of the dim with this factor."""
    if factor is None or digit.reach is None:
        return ANY_WIDTH
    first, last = digit.reach.positions(factor)
    return last - first
