"""The collectives of a plan, each with its provenance: the value sent, how often, and the tactic that causes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...rewrites.decide.decide import Move
from ...rewrites.program.program import Node
from ...rewrites.redistribute.steps import Bytes, Step
from ..inputs.lines import Source, place_of
from ..ops.shard_map import own_collectives
from ..views.listing import Listing, Shape
from ..views.view import Cell
from .counts import Counts, Exchange, counted, received, tally
from .elsewhere import because, parameter
from .lookups import is_own, made_by
from .state import State


@dataclass(frozen=True, slots=True)
class Collective(Exchange):
    """One collective of a plan with its provenance: the value it moves, the use that needs it, the tactic that causes it.

    `tactic` is the text of the tactic, and `number` its place in `plan.trace`, counted from 1; 0 for the program itself.
    """

    value: str = field(kw_only=True)
    use: str = field(kw_only=True)
    source: Source | None = field(kw_only=True)
    tactic: str = field(kw_only=True)
    number: int = field(kw_only=True, default=0)
    direction: str = field(kw_only=True, default="")
    """`forward`, `recomputed` or `backward`, in a program that JAX has differentiated; otherwise empty."""
    why: str = field(kw_only=True, default="")
    """How it relates to lookups, scans, selections, sorts, gathered folds, or an op that runs along a stored dim, if at all."""
    move: int = field(kw_only=True, default=-1, repr=False, compare=False)
    """The number of the redistribution that it is a part of."""

    def __str__(self) -> str:
        where = f" at {self.source}" if self.source is not None else ""
        trips = f"{self.times} trips" if self.times != 1 else ""
        when = ", ".join(filter(None, (self.direction, trips, self.where and f"in {self.where}")))
        what = f"{self.kind} of `{self.value}`{f' ({when})' if when else ''} over {', '.join(self.axes)}"
        by = f"{self.number}: {self.tactic}" if self.number else self.tactic
        why = f" ({self.why})" if self.why else ""
        return f"{what}: {self.bytes} bytes for {self.use}{where}, by {by}{why}"

    __repr__ = __str__


def counts(plan: State) -> Counts:
    """Executions of each kind of collective in one call."""
    program = plan.source.program
    maps = ((node.op, program.trips(node.region), program.where(node.region)) for node in program.nodes if node.signature.own)
    return counted(_exchanges(plan), own_collectives(maps, plan.source.traced.foreign))


def bytes_per_device(plan: State) -> int:
    return received(_exchanges(plan))


def bytes_by_axes(plan: State) -> dict[tuple[str, ...], int]:
    """The bytes that one device receives in one call, by the axes over which they come."""
    found = list(_exchanges(plan))
    return {axes: received(each for each in found if each.axes == axes) for axes in dict.fromkeys(each.axes for each in found)}


def _exchanges(plan: State) -> Iterator[Exchange]:
    where = plan.source.program.where
    return (Exchange(step.kind, step.axes, part, move.trips, where(move.region)) for move, step, part in _parts(plan))


def by_cause(plan: State) -> dict[int, Counts]:
    """The executions of each kind of collective by the number of the tactic that causes them; 0 is the program."""
    where = plan.source.program.where
    rows: dict[int, list[tuple[str, int, str]]] = {}
    for move, step, _ in _parts(plan):
        cause = _cause(plan, move, step)
        rows.setdefault(0 if cause is None else cause + 1, []).append((step.kind, move.trips, where(move.region)))
    return {number: tally(found) for number, found in rows.items()}


def _parts(plan: State) -> Iterator[tuple[Move, Step, Bytes]]:
    """Every collective, of the step of a move, with its bytes. (A dead value is never moved to its home.)"""
    for move in plan.decisions.moves:
        for step in move.path.steps:
            for part in step.parts:
                yield move, step, part


def collectives(plan: State) -> Listing[Collective]:
    found = [each for number in range(len(plan.decisions.moves)) for each in of_move(plan, number)]
    return Listing(found, Shape("collectives", _COLUMNS, _row, _tactics))


def of_move(plan: State, number: int) -> list[Collective]:
    """The collectives of one redistribution."""
    move = plan.decisions.moves[number]
    return [_collective(plan, move, step, part, number) for step in move.path.steps for part in step.parts]


_COLUMNS = ("value", "collective", "over", "when", "times", "bytes", "for", "at", "tactic")


def _row(each: Collective) -> Sequence[Cell]:
    when, at, sent = ", ".join(filter(None, (each.direction, each.where))), place_of(each.source), each.times * each.received
    return each.value, each.kind, ", ".join(each.axes), when, each.times, round(sent), each.use, at, str(each.number or "")


def _tactics(found: Sequence[Collective]) -> list[str]:
    """The tactics that a table cites by number."""
    return [f"{number}: {text}" for number, text in sorted({each.number: each.tactic for each in found if each.number}.items())]


def _collective(plan: State, move: Move, step: Step, bytes: Bytes, number: int) -> Collective:
    addresses, program = plan.source.addresses, plan.source.program
    node = use_of(plan, move)
    # A sum that waits behind ops that only move it is known by what it was before, and by the line that made it.
    value = program.source(move.value) if move.pending else parameter(plan, move.value)
    is_moved = move.pending and value != move.value
    source, cause = line_of(plan, value, None if is_moved else node), _cause(plan, move, step)
    return Collective(
        step.kind,
        step.axes,
        bytes,
        move.trips,
        program.where(move.region),
        value=addresses.names[value],
        use=node.kind if node is not None else "the result" if move.uses else "the argument",
        source=source,
        tactic="the program" if cause is None else plan.actions[cause].text,
        number=0 if cause is None else cause + 1,
        direction="" if source is None else source.direction,
        why=because(plan, move, step),
        move=number,
    )


def use_of(plan: State, move: Move) -> Node | None:
    nodes = plan.source.program.nodes
    number = move.uses[0][0] if move.uses else plan.source.program.producer[move.value]
    return nodes[number] if 0 <= number < len(nodes) else None


def line_of(plan: State, value: int, node: Node | None) -> Source | None:
    """The source line of the use, or else of the op that produces the value."""
    program, sources = plan.source.program, plan.source.traced.sources
    made = program.producer[value]
    for each in (node, program.nodes[made] if made >= 0 else None):
        if each is not None and each.op in sources:
            return sources[each.op]
    return None


def _cause(plan: State, move: Move, step: Step) -> int | None:
    """The tactic that causes the step, None for the program: that of the fold, of the tile that is moved, or of the use.

    A step over an axis on which no tactic has placed anything is on the way of a move: the tactic of the move causes it.
    """
    # A sum may be resolved by a scatter and a gather, with other steps between them.
    use = use_of(plan, move) if move.uses else None
    for axis in dict.fromkeys(axis for each in (step, *move.path.steps) for axis in each.axes):
        folds = any(each.axis == axis for each in move.pending)
        fold = use if is_own(move) else made_by(plan, move.value) if folds else None
        placed, used = (None if node is None else plan.decisions.placements.claim(node.number, axis) for node in (fold, use))
        for claim in (placed, plan.table.claim(move.value, axis), used):
            if claim is not None:
                return claim.tactic
    return None
