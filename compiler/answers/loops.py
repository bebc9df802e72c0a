"""The loops in which a plan runs: what each folds and stores, what ends it, and what the next one needs of it.

two loops over t:8, of which the second needs the sum of the first
    -->   t:8   1   0.13 MFLOP   128   0          and: `dot_general#0` is computed again in a later loop: 0.13 MFLOP;
          t:8   1   0.52 MFLOP   4,100 8,192           stored, 8,192 bytes
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from ...dialects.ground.amounts import counted, exact_bytes, of_bytes, of_flops
from ...rewrites.decide.decide import Move
from ...rewrites.decide.in_memory import once
from ...rewrites.decide.in_trips import Once
from ...rewrites.decide.live_ranges import over_steps
from ...rewrites.lower.loop_schedule import Crossing
from ...rewrites.program.program import NO_VALUE, ValueId
from ...rewrites.redistribute.kinds.folds import AllReduce
from ..cost.loops import LoopRun, chain, crossings, loops
from ..cost.memory import over_time
from ..inputs.lines import at_line
from ..plan.source_lines import line_of
from ..plan.state import State
from ..views.listing import Listing, ListingForm
from ..views.view import Cell

_COLUMNS = "loop", "times", "flops", "carried", "stored", "for later loops"

MOST_LINES = 12
"""The most values that the text names."""


def listed(plan: State) -> Listing[LoopRun]:
    """The loops of a plan, in the order in which they begin, and below them what each needs of others."""
    notes = partial(_notes, plan)
    return Listing(loops(plan), ListingForm("loops", _COLUMNS, _row, notes, merges=False, spare=("times",)))


def _row(run: LoopRun) -> Sequence[Cell]:
    return run.loop, run.times, of_flops(run.flops), of_bytes(run.folds), of_bytes(run.stores), of_bytes(run.kept)


def _notes(plan: State, runs: Sequence[LoopRun]) -> Sequence[str]:
    names = Counter(run.loop for run in runs)
    several = [loop for loop, count in names.items() if count > 1]
    return [
        *(f"a trip of {loop} stores {of_bytes(_in_a_trip(plan, loop))} at the most" for loop in names),
        *sent_around(plan),
        *_some(f"a loop over {loop} ends: {why_ended(plan, move, loop)}" for loop in several for move in chain(plan, loop)),
        *_some(_needed(plan, value, each) for value, each in crossings(plan) if _is_shown(value, each)),
    ]


def _some(lines: Iterator[str]) -> Sequence[str]:
    """The first of some lines, each once."""
    every = [*dict.fromkeys(lines)]
    more = len(every) - MOST_LINES
    return [*every[:MOST_LINES], *([f"and {counted(more, 'more line', 'more lines')} like these"] if more > 0 else [])]


def _in_a_trip(plan: State, loop: str) -> int:
    """The most bytes that one trip of a loop stores at one time, of arrays that are its own."""
    (place,), (_, ranges) = plan.mesh.named(loop), over_time(plan)
    every = [ranges, *ranges.inside.values()]
    return max(max(over_steps((a for a in each.arrays if place in a.loops), len(each.steps))) for each in every)


def _is_shown(value: ValueId, each: Crossing) -> bool:
    return value != NO_VALUE and (each.is_stored or bool(each.flops))


def _needed(plan: State, value: ValueId, each: Crossing) -> str:
    """How later loops get a value, and what the other way would take."""
    name = f"`{plan.source.addresses.names[value]}`{at_line(line_of(plan, value, None))}"
    flops = "flops that are not known" if each.flops is None else of_flops(each.flops)
    size, later = of_bytes(each.bytes), counted(each.others, "later loop")
    if each.is_stored:
        return f"{name} is stored for {later} over {each.loop}: {size}; computed again, {flops} in each"
    return f"{name} is computed again in {later} over {each.loop}: {flops} in each; stored, {size}"


def sent_once(plan: State) -> Sequence[Once]:
    """What is sent once around loops, the cheapest to send in each trip first."""
    return once(plan.decisions)


def sent_around(plan: State) -> Iterator[str]:
    """Yields what is sent once around loops, and what in each trip for want of memory, with the cost of the other way."""
    for is_once, values in ((True, plan.once(sent_once)), (False, plan.decisions.for_memory)):
        if values:
            held, more = of_bytes(sum(each.held for each in values)), of_bytes(int(sum(each.more for each in values)))
            what, room = f"around loops, {counted(len(values), 'value')}", exact_bytes(plan.mesh.chip.memory)
            if is_once:
                yield f"{what} sent once: a device holds {held} more; in each trip, it would receive {more} more"
            else:
                yield f"{what} sent in each trip, for a memory of {room}: {more} more received; once, {held} more would be held"


def why_ended(plan: State, move: Move, loop: str) -> str:
    """Why a loop ends where a value moves: it is folded over its trips, or put together from them."""
    steps = [step for step in move.path.steps if step.communicates]
    sent = [f"{step.kind} {step.over}" for step in steps if not step.is_in_time]
    value = f"`{plan.source.addresses.names[move.value]}`{at_line(line_of(plan, move.value, None))}"
    if any(isinstance(step, AllReduce) and step.is_in_time for step in steps):
        what, why = f"is folded over the trips of {loop}", "and later ops read it"
    elif orders := [step.order for step in steps if step.order]:
        what = f"goes on {'forwards' if orders[0] > 0 else 'backwards'} from trip to trip of {loop}"
        why = "and others go on forwards"
    else:
        what, why = f"is put together from all trips of {loop}", f"for {sent[0]}" if sent else "for ops that need it whole"
    return f"{value} {what}, {'in each trip of a loop of the program' if move.region else why}"
