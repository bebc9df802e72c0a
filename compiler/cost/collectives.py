"""The collectives of a plan, each with its provenance: the value sent, how often, and the tactics that cause it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...dialects.mesh import Mesh
from ...rewrites.decide.decide import Move
from ...rewrites.decide.device_sets import DeviceSets, coordinates
from ...rewrites.decide.made_again import moved_on
from ...rewrites.program.program import Node
from ...rewrites.redistribute.steps import Step
from ..inputs.lines import SourceLine, at_line, place_of
from ..ops.shard_map import own_collectives
from ..plan.source_lines import line_of, line_of_op
from ..plan.state import State
from ..views.colours import paragraph
from ..views.grouping import grouped
from ..views.listing import Listing, ListingForm, by_index
from ..views.view import Cell
from .as_lowered import Sending, sent, trips_around
from .causes import Cause, cause_at, causes, causes_text
from .counts import CountedCollective, Counts, bytes_received, count_collectives
from .device_sets import Relaid, cause_of_set, relaid
from .relocations import because, parameter

RESULT, ARGUMENT = "the result", "the argument"


@dataclass(frozen=True, slots=True)
class Collective(CountedCollective):
    """One collective of a plan with its provenance: the value it moves, the use that needs it, the tactics that cause it.

    A device receives `bytes` of it each time it runs, which is `times` in one call, and so `total_bytes` in one call.
    """

    value: str = field(kw_only=True)
    use: str = field(kw_only=True)
    made: SourceLine | None = field(kw_only=True)
    """The source line of the op that makes the value; None for an argument."""
    used: SourceLine | None = field(kw_only=True)
    """The source line of the op that needs the value; None for a result, and for an op that has no line in the program."""
    resolves: bool = field(kw_only=True)
    """Whether it resolves a pending fold, and does not only move data."""
    causes: tuple[Cause, ...] = field(kw_only=True)
    """The tactics that cause it, in the order of `plan.trace`; empty if the program alone needs it."""
    why: str = field(kw_only=True, default="")
    """Its relation to a lookup, scan, selection, sort, gathered fold or relocated op; otherwise empty."""
    move: int = field(kw_only=True, default=-1, repr=False, compare=False)
    """The number of the redistribution that it belongs to; -1 if it is no decision, but what a value needs that crosses."""
    mesh: tuple[str, ...] = field(kw_only=True, default=(), repr=False, compare=False)
    """The mesh axes of the plan, for their colours in a notebook."""

    def _repr_html_(self) -> str:
        return paragraph(str(self), self.mesh)

    def __str__(self) -> str:
        made, used = (f", made at {self.made}, ", "") if self.is_of_maker else (" ", at_line(self.used))
        when = f" ({self.when})" if self.when else ""
        why = f" ({self.why})" if self.why else ""
        use = f"for {self.use}" if self.use in (RESULT, ARGUMENT) else f"needed by `{self.use}`"
        what = f"{self.kind} of `{self.value}`{when}{made}over {', '.join(self.axes)}"
        return f"{what}: {self.sent}, {use}{used}, because of {causes_text(self.causes)}{why}"

    __repr__ = __str__

    @property
    def is_of_maker(self) -> bool:
        """Whether texts cite the line of the op that makes the value: for a pending sum, and if the use has no line."""
        return self.made is not None and (self.resolves or self.used is None)

    @property
    def source(self) -> SourceLine | None:
        """The source line that texts cite: `made` for a pending sum, `used` for a value that is only moved."""
        return self.made if self.is_of_maker else self.used

    @property
    def at(self) -> str:
        """The file and number of that source line, for a table: `mlp.py:12`, or `made at mlp.py:12`."""
        place = place_of(self.source)
        return f"made at {place}" if place and self.is_of_maker else place

    @property
    def direction(self) -> str:
        """`forward`, `recomputed` or `backward`, in a program that JAX has differentiated; otherwise empty."""
        return "" if self.source is None else self.source.direction

    @property
    def when(self) -> str:
        """The pass, and the branch or loop of unknown trip count, in which it runs: `backward, in while#0`."""
        return ", ".join(filter(None, (self.direction, self.where and f"in {self.where}")))

    @property
    def tactics(self) -> tuple[int, ...]:
        """The numbers of the tactics that cause it, as in `plan.trace`, counted from 1."""
        return tuple(each.number for each in self.causes)

    @property
    def numbers(self) -> str:
        """The numbers of the tactics that cause it, in one text: `1, 3`."""
        return ", ".join(map(str, self.tactics))


def counts(plan: State) -> Counts:
    """How often each kind of collective runs in one call."""
    program = plan.source.program
    nodes = (node for node in program.nodes if node.signature.own)
    maps = ((each.op, program.trips(each.region) * trips_around(plan, each), program.where(each.region)) for each in nodes)
    return count_collectives(_counted(plan), own_collectives(maps, plan.source.traced.foreign))


def bytes_per_device(plan: State) -> int:
    return bytes_received(_of_one_device(plan))


def _of_one_device(plan: State) -> Sequence[CountedCollective]:
    """The collectives in which a device takes part: of several device sets, on that where one receives most."""
    if (sets := plan.table.sets) is None:
        return [*_counted(plan)]
    return max((received_on(plan, sets, on) for on in sets.every), key=bytes_received)


def received_on(plan: State, sets: DeviceSets, on: Mesh) -> Sequence[CountedCollective]:
    """The collectives on a device set."""
    moves = (move for move in plan.decisions.moves if moved_on(sets, move) is on)
    return [*counted(plan, moves), *_to_cross(each for each in relaid(plan) if each.on is on)]


def bytes_by_axes(plan: State) -> dict[tuple[str, ...], int]:
    """The bytes that one device receives in one call, by the axes that they are sent over."""
    found = _of_one_device(plan)
    return {
        axes: bytes_received(each for each in found if each.axes == axes) for axes in dict.fromkeys(each.axes for each in found)
    }


def _counted(plan: State) -> Iterator[CountedCollective]:
    yield from counted(plan, plan.decisions.moves)
    yield from _to_cross(relaid(plan))


def _to_cross(those: Iterable[Relaid]) -> Iterator[CountedCollective]:
    """The collectives of redistributions for what crosses. They are in no loop: a region runs on one set."""
    steps = (step for each in those for step in each.path.steps)
    return (CountedCollective(step.kind, step.names, part, 1) for step in steps for part in step.collectives)


def counted(plan: State, moves: Iterable[Move]) -> Iterator[CountedCollective]:
    """Yields the collectives of redistributions."""
    return (_collective_of(plan, move, each) for move in moves for each in sent(plan, move))


def _collective_of(plan: State, move: Move, of: Sending) -> CountedCollective:
    program, region = plan.source.program, move.region
    return CountedCollective(of.step.kind, of.step.names, of.received, program.trips(region) * of.trips, program.where(region))


def by_cause(plan: State) -> dict[int, Counts]:
    """How often each kind of collective runs, by the number of the tactic that causes it; 0 stands for the program.

    A collective that several tactics cause is counted for each of them.
    """
    counted = [
        (number, _collective_of(plan, move, each))
        for move in plan.decisions.moves
        for each in sent(plan, move)
        for number in [cause.number for cause in causes(plan, move, each.step)] or [0]
    ]
    counted += [(number, each) for relay in relaid(plan) for each in of_relaid(plan, relay) for number in each.tactics]
    rows = grouped(counted, lambda pair: pair[0])
    return {number: count_collectives((each for _, each in found), ()) for number, found in rows.items()}


def collectives(plan: State) -> Listing[Collective]:
    found = [each for number in range(len(plan.decisions.moves)) for each in of_move(plan, number)]
    found += [each for relay in relaid(plan) for each in of_relaid(plan, relay)]
    spare = "for", "when", "times", "at"
    return Listing(found, ListingForm("collectives", _COLUMNS, _row, _tactics, spare=spare, number=by_index(found)))


def of_move(plan: State, number: int) -> list[Collective]:
    """The collectives of one redistribution, by its number."""
    move = plan.decisions.moves[number]
    return [_collective(plan, number, each.step, _collective_of(plan, move, each)) for each in sent(plan, move)]


_COLUMNS = ("value", "collective", "over", "when", "times", "total bytes", "for", "at", "tactic")


def _row(each: Collective) -> Sequence[Cell]:
    when = ", ".join(filter(None, (each.direction, each.where)))
    return each.value, each.kind, ", ".join(each.axes), when, each.times, each.total_bytes, each.use, each.at, each.numbers


def _tactics(found: Sequence[Collective]) -> list[str]:
    """The tactics whose numbers a table cites."""
    return list(map(str, sorted({cause for each in found for cause in each.causes})))


def _collective(plan: State, number: int, step: Step, of: CountedCollective) -> Collective:
    addresses, program, move = plan.source.addresses, plan.source.program, plan.decisions.moves[number]
    node = use_of(plan, move)
    # A sum that waits behind ops that only move it is known by what it was before.
    value = program.source(move.value) if move.pending else parameter(plan, move.value)
    return Collective(
        of.kind,
        of.axes,
        of.received,
        of.times,
        of.where,
        value=addresses.names[value],
        use=node.op_name if node is not None else end_of(move),
        made=line_of(plan, value, None),
        used=line_of_op(plan, node) if node is not None and (move.uses or value != move.value) else None,
        resolves=bool(move.pending),
        causes=causes(plan, move, step),
        why=because(plan, move, step),
        move=number,
        mesh=plan.coloured,
    )


def of_relaid(plan: State, each: Relaid) -> list[Collective]:
    """The collectives of one redistribution for what crosses between device sets."""
    own = Collective(
        "",
        (),
        0,
        1,
        value=plan.source.addresses.names[each.value],
        use=each.node.op_name,
        made=line_of(plan, each.value, None),
        used=line_of_op(plan, each.node),
        resolves=False,
        causes=(cause_at(plan, cause_of_set(plan, each.target, each.node)),),
        why=f"it crosses from {coordinates(each.source)} to {coordinates(each.target)} in blocks of consecutive elements",
        mesh=plan.coloured,
    )
    steps = ((step, part) for step in each.path.steps for part in step.collectives)
    return [replace(own, kind=step.kind, axes=step.names, received=part) for step, part in steps]


def end_of(move: Move) -> str:
    """What a redistribution is for that no op needs: a result, or an argument."""
    return RESULT if move.uses else ARGUMENT


def use_of(plan: State, move: Move) -> Node | None:
    nodes = plan.source.program.nodes
    number = move.uses[0][0] if move.uses else plan.source.program.producer[move.value]
    return nodes[number] if 0 <= number < len(nodes) else None
