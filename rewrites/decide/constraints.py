"""Points of redistribution: the constraints of a program, at which a value has one layout before and may have another after.

A constraint sets its result's layout, and no claim crosses it. First the claims of arguments propagate, then those of the
results of constraints. Then a constraint's operand takes the layout of the result, if nothing else claims it. Where claims
still meet at an op, the program has set the layouts around it but not the op's own: the op takes the claim that costs least.

    %a = cos %x; %b = constrain %a {d on 0}; %c = sin %b; %r = constrain %c {d on 1}   -->   cos, sin on 0; %c moves to 1
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...dialects.ground.dtypes import itemsize
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Place, major_to_minor
from ..program.in_order import InOrder
from ..program.program import Node, Program, ValueId
from ..redistribute.search import path
from .placements import OpPlacement, place_op, placement_of
from .price import Price, computed
from .propagate import Candidates, Sweep, propagate
from .table import WHOLE, Claim, Key, Table, claim_of, misfit


def is_point(program: Program, value: ValueId) -> bool:
    """Whether the value is the result of a constraint."""
    number = program.producer[value]
    return number >= 0 and program.nodes[number].op_name == "constrain"


def claims_of(table: Table, value: ValueId, axes: Iterable[Place]) -> dict[Place, Claim]:
    """The claims of a value on those of the axes on which it has one."""
    return {axis: claim for axis in axes if (claim := table.claim(value, axis)) is not None}


def carry_said(
    table: Table,
    points: Mapping[ValueId, Mapping[Place, Claim]],
    axes: Sequence[Place],
    values: Sequence[ValueId],
    tactic: int,
    said: Collection[int],
) -> None:
    """Carries the claims of a program on these values along the axes, those of arguments first; updates `table` in place.

    The constraints whose results have the claims `points` become points of redistribution. If `said` numbers all tactics that
    make claims of the program, what they leave is placed too.
    """
    for value, own in points.items():
        _make_point(table, table.program.made_by(value), own)
    producer = table.program.producer
    for is_made in (False, True):
        for axis in axes:
            propagate(table, axis, [value for value in values if (producer[value] >= 0) is is_made], tactic)
    if said:
        reconcile(table, tactic, said)


def _make_point(table: Table, node: Node, claims: Mapping[Place, Claim]) -> None:
    (at,) = node.signature.result_dims
    for axis, claim in claims.items():
        of = table.axes[axis]
        of.points |= {node.number}
        if of.nodes[node.number] is None and claim.at != WHOLE:
            (digit,) = at[claim.at]
            factor = digit.inward(claim.factor, False, False)
            assert factor is not None, "a constraint has the indices of its dims"
            # Where an earlier tactic has placed the op, and the claim does not fit beside that, the result moves.
            if misfit(node.signature, digit.at, [factor, *table.on_index(node, digit.at, axis)]) is None:
                of.nodes[node.number] = claim.moved(digit.at, factor)


def reconcile(table: Table, tactic: int, said: Collection[int]) -> None:
    """Places what nothing has claimed: the operands of points, and ops at which only claims of the program meet.

    `said` has the numbers of the tactics that made the program's claims.
    """
    for axis in [axis for axis in major_to_minor(table.axes) if table.axes[axis].points]:
        _Meeting(table, axis, tactic, InOrder()).before()
    keys, of = InOrder(table.conflicts), dict[Place, _Meeting]()
    for key in keys:
        number, _, axis = key
        met = table.conflicts.get(key)
        if met is None or any(claim.tactic not in said for claim, _ in met.claims):
            continue
        table.reconciled[key] = table.conflicts.pop(key)
        # An argument that is wanted on several dims stays whole: each use takes its part of it.
        if number >= 0:
            meeting = of.get(axis) or of.setdefault(axis, _Meeting(table, axis, tactic, keys))
            meeting.decide_by_price(table.program.nodes[number])


class _Meeting(Sweep):
    """Propagation in which points claim their operands. The keys of the conflicts that it meets are listed."""

    def __init__(self, table: Table, axis: Place, tactic: int, keys: InOrder[Key]) -> None:
        super().__init__(table, axis, tactic)
        self.asking = True
        self.keys = keys

    def conflict(self, key: Key, claims: Iterable[tuple[Claim, int]]) -> None:
        super().conflict(key, claims)
        self.keys.add(key)

    def before(self) -> None:
        """Carries the claims of the points to their operands, where nothing else claims these."""
        operands = (self.program.nodes[number].operands[0] for number in sorted(self.claims.points))
        self.run([value for value in operands if claim_of(self.program, self.claims, value) is None])

    def decide_by_price(self, node: Node) -> None:
        """Places an op at which claims meet. Every op that waits then waits anew, as other axes may have changed."""
        self.open = frozenset[Key]()
        self.heaps = [InOrder[int]() for _ in self.heaps]
        self.arriving.clear()
        self.last.clear()
        candidates = Candidates()
        self.result_claims(node, candidates)
        self.operand_claims(node, candidates)
        if candidates and self.claims.nodes[node.number] is None:
            # Of equal prices an operand's claim wins, then the first index: the same in every process.
            claims = {Claim(*each, self.tactic): at < 0 for each, (_, at) in candidates.items()}
            asks = {each: (self.price(node, each), at_end, each.at, each.factor.stride) for each, at_end in claims.items()}
            self.claims.nodes[node.number] = min(asks, key=asks.__getitem__)
            self.decided(node)
            self.run(())

    def price(self, node: Node, claim: Claim) -> tuple[bool, Price]:
        """The price if an op takes a claim. It counts first if neither a result nor any reader is then tiled on the axis."""
        placed, width = self.placed(node, claim), self.table.program.types
        ways = [
            path(self.table.layout(value), wanted, itemsize(width[value].dtype))
            for value, wanted in zip(node.operands, placed.wanted, strict=True)
        ]
        is_lost = False
        for value, layout, pend in zip(node.results, placed.produced, placed.pending, strict=True):
            wanted = list(dict.fromkeys(self.wanted_by(value)))
            is_lost |= self.axis not in layout.axes and all(self.axis not in each.axes for each in wanted)
            source = layout.with_pending(pend)
            ways += [path(source, each, itemsize(width[value].dtype)) for each in wanted or [layout]]
        return is_lost, Price.of(self.program.mesh, ((way, 1) for way in ways), [(computed(node, placed), 1)])

    def placed(self, node: Node, claim: Claim | None = None) -> OpPlacement:
        """The op under its claims, with another claim on this axis if one is given."""
        claims = {axis: each.nodes[node.number] for axis, each in self.table.axes.items()}
        claims[self.axis] = claim or claims[self.axis]
        return place_op(node.signature, placement_of(claims))

    def wanted_by(self, value: ValueId) -> Iterator[Layout]:
        """The layouts in which ops that are placed on the axis, and points, read a value."""
        for number, position in self.program.uses[value]:
            if self.claims.nodes[number] is not None or number in self.claims.points:
                yield self.placed(self.program.nodes[number]).wanted[position]
