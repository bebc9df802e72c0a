"""`print(plan)`: the whole state of a plan on one screen, and its `repr`, which computes nothing.

Plan of train_step on data=4, model=2
  1: DataParallel(axis='data', inputs='batch/*')
collectives: 9 all_reduce
a device receives 144 KiB in a call: 96.0 KiB over data, 48.0 KiB over model
a device computes 12.8 MFLOP in a call, 1.3% of it redundantly
a device stores 236 KiB at the peak: 96.0 KiB of arguments, ...
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...dialects.ground.amounts import counted, exact_bytes, of_bytes, of_flops, of_seconds
from ...rewrites.decide.device_sets import coordinates, free
from ..advice.conflicts import conflict, out_of_order, warning
from ..advice.large_values import best_in_parts
from ..advice.open_conflicts import open_keys
from ..advice.redundancy import silent
from ..advice.stops import TRIED, Stop, split_text, stops
from ..advice.ways_out import to_take
from ..cost.collectives import bytes_by_axes, bytes_per_device, counts, received_on
from ..cost.counts import bytes_received
from ..cost.device_sets import made_again, transfers
from ..cost.flops import computed_on, flops_per_device, work
from ..cost.loops import loops
from ..cost.memory import memory, memory_on
from ..gc_pause import without_collector
from ..inputs.checks import shortened
from ..inputs.message_language import Question, question, step
from ..plan.annotation_outcomes import unapplied
from ..plan.state import State
from ..views.grouping import grouped
from .loops import sent_around

MOST_TACTICS = 8
MOST_SHOWN = 3
"""The most entries of one kind that a summary lists."""
WIDTH = 160
"""The most characters of a tactic or an entry. A longer one is cut and ends in `...`."""


def brief(plan: State) -> str:
    """The `repr` of a plan: its function, mesh and tactics; and its counts, if they are computed already."""
    lines = [*_tactics(plan), *(line for line in (unapplied(plan), warning(plan)) if line is not None)]
    if "decisions" in vars(plan):
        lines.append(counts(plan).text())
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Summary:
    """The contents of `print(plan)`: tactics, figures, then what is redundant or open, as sections with titles."""

    tactics: list[str]
    """The title, then a line for each tactic."""
    figures: list[str]
    sections: list[tuple[str, list[str]]]
    notes: list[str]

    def text(self) -> str:
        """The summary as text. The lines of a section are indented below its title."""
        below = [line for title, lines in self.sections for line in (f"{title}:", *(f"  {each}" for each in lines))]
        return "\n".join([*self.tactics, *self.figures, *below, *self.notes])


def summary(plan: State) -> Summary:
    """Summarises a plan: its tactics, counts, bytes, flops, memory, and what is open."""
    with without_collector():
        return _summary(plan)


def _summary(plan: State) -> Summary:
    kinds, received, flops = counts(plan), bytes_per_device(plan), flops_per_device(plan)
    excessive, stored = silent(plan), memory(plan)
    parts = [f"{of_bytes(size)} over {_links(plan, axes)}" for axes, size in bytes_by_axes(plan).items() if size]
    # Branches with collectives over different axes do not all run.
    by_axes = ("at most " if kinds.branches else "") + ", ".join(parts)
    share = f", {excessive.share} of it redundantly" if excessive.share else ""
    figures = [
        f"collectives: {text}" if (text := kinds.text()) != "no collectives" else text,
        f"a device receives {of_bytes(received)} in a call" + (f": {by_axes}" if parts else ""),
        *(f"  {text}" for text in [split_text(plan)] if text),
        f"a device computes {flops.text(number=of_flops)} in a call{share}",
        f"a device stores {of_bytes(stored.bytes)} at the peak: {stored.sums(of_bytes)}",
        *([f"  that is more than a device has: {exact_bytes(room)}"] if stored.bytes > (room := plan.mesh.chip.memory) else []),
        *_device_sets(plan),
        *_otherwise(plan),
        *_loops(plan),
        *sent_around(plan),
        *_ahead(plan),
        *_in_parts(plan),
    ]
    redundant = _section(
        Question.SILENT, [shortened(str(each), WIDTH) for each in excessive[:MOST_SHOWN]], len(excessive), "redundant"
    )
    note = unapplied(plan)
    sections = [*redundant, *_conflicts(plan), *_stops(plan)]
    return Summary([*_tactics(plan)], figures, sections, [] if note is None else [note])


def _device_sets(plan: State) -> Iterator[str]:
    """Yields a line for each device set of several, for each two between which values cross, and for what is made again."""
    if (sets := plan.table.sets) is None:
        return
    for on in sets.every:
        received, stored = bytes_received(received_on(plan, sets, on)), memory_on(plan, on).bytes
        does = f"computes {computed_on(plan, sets, on).text(number=of_flops)}, receives {of_bytes(received)}"
        yield f"on {coordinates(on)} a device {does}, stores {of_bytes(stored)}"
    for (source, target), found in grouped(transfers(plan), lambda each: (each.source, each.target)).items():
        size = of_bytes(sum(each.bytes for each in found))
        yield f"from {source} to {target}: {counted(len(found), 'value')}, {size} to each device"
    numbers = free(plan.source.program)
    arrays = (each for each in made_again(plan) if each.node.number not in numbers)
    for on, again in grouped(arrays, lambda each: each.on).items():
        flops = work(plan, (each.node for each in again)).text(number=of_flops)
        size = of_bytes(int(sum(each.ways.crossing.bytes for each in again if each.ways.is_read)))
        count = counted(sum(len(each.node.results) for each in again), "value")
        yield f"made again on {coordinates(on)}: {count}, {flops} for {size} that do not cross"


def _ahead(plan: State) -> Iterator[str]:
    """Yields a line if gathers start ahead of their uses, and one if some in loops start a trip ahead."""
    chip, every = plan.mesh.chip.name, plan.decisions.ahead
    outside = [region for region, ahead in every.items() if ahead.bytes and not region]
    inside = [region for region, ahead in every.items() if ahead.bytes and region]
    for title, of, found in (("in loops a trip ahead", "in these", inside), ("ahead of their uses", "in a call", outside)):
        if found:
            # Loops in each other hold what is ahead in all of them; loops one after another do not.
            held = max(map(plan.decisions.bytes_ahead, found))
            before = sum(every[each].exposed[0] for each in found)
            after = sum(every[each].exposed[every[each].bytes] for each in found)
            hides = f"a device of {chip} is estimated to wait {of_seconds(after)} {of}, and not {of_seconds(before)}"
            yield f"gathers start {title}, {of_bytes(held)} at most: {hides}"


def _loops(plan: State) -> Iterator[str]:
    """Yields a line for each loop in which a tactic has placed a range."""
    for loop in map(str, plan.mesh.loops):
        found = [each for each in loops(plan) if each.loop == loop]
        if not found:
            continue
        times, after = sum(each.times for each in found), ", one after another" if len(found) > 1 else ""
        carries, stored = of_bytes(sum(each.folds for each in found)), of_bytes(sum(each.stores for each in found))
        computed = of_flops(sum(each.flops for each in found))
        yield f"in {loop}: {counted(times, 'loop')}{after}, {computed}; {carries} of carries, {stored} stored for what follows"


def _otherwise(plan: State) -> Iterator[str]:
    """Yields lines if the plan is of another program than its function."""
    if lines := plan.source.traced.changes:
        yield f"another program than {plan.source.traced.name}: {lines[0]}"
        yield from (f"  {shortened(line, WIDTH)}" for line in lines[1 : MOST_SHOWN + 1])
        if (more := len(lines) - 1 - MOST_SHOWN) > 0:
            yield f"  and {counted(more, 'other')}"


def _in_parts(plan: State) -> Iterator[str]:
    """Yields a help if, after the tactics, a large value still fills the memory and can be computed in parts."""
    if plan.actions and (found := best_in_parts(plan)) is not None:
        text, size = found
        yield f"  help: {of_bytes(size)} of it can be computed in parts: {step(text)}"


def _tactics(plan: State) -> Iterator[str]:
    count = counted(len(plan.actions), "tactic") if plan.actions else "no tactics"
    yield f"Plan of {plan.source.traced.name} on {plan.mesh}: {count}"
    for number, action in list(enumerate(plan.actions))[:MOST_TACTICS]:
        yield f"  {shortened(plan.cited(number), WIDTH)}{', which changes nothing' if action.idle else ''}"
    if (more := len(plan.actions) - MOST_TACTICS) > 0:
        yield f"  ... and {more} more: {question(Question.TRACE)}"


def _links(plan: State, axes: Sequence[str]) -> str:
    """The axes that bytes are sent over, in text, marked if their links are slow."""
    return ", ".join(axes) + (", by slow links" if plan.decided.mesh.is_slow(axes) else "")


def _section(name: Question, shown: Sequence[str], count: int, title: str) -> Iterator[tuple[str, list[str]]]:
    if shown:
        more = f", of which {question(name)} has all {count:,}" if count > len(shown) else ""
        yield f"{title}{more}", [line for each in shown for line in each.splitlines()]


def _conflicts(plan: State) -> Iterator[tuple[str, list[str]]]:
    keys = [*open_keys(plan)]
    if not keys:
        return
    first = conflict(plan, keys[0])
    way = f"apply {question(Question.RESOLVE)}, or one of {question(Question.WAYS)}"
    if len(plan.source.program.nodes) <= TRIED and (ways := first.resolutions):
        way = f"the fastest way out: {ways[0]!r}; {question(Question.RESOLVE)} takes it"
        if to_take(plan, ways) is None:
            way = f"{first.left_open}; no way out costs less, the fastest is {ways[0]!r}"
    helps = [f"  help: {help}" for help in (out_of_order(plan), way) if help is not None]
    shown = "\n".join([shortened(repr(first), WIDTH), *helps])
    yield from _section(Question.CONFLICTS, [shown], len(keys), "open conflicts")


def _stops(plan: State) -> Iterator[tuple[str, list[str]]]:
    found = [each for each in stops(plan) if each.bytes or each.flops.known]
    alike: dict[tuple[str, str, int, str], Stop] = {}
    for each in found:
        alike.setdefault((each.op, each.axis, each.dim, each.reason), each)
    shown = [
        "\n".join([shortened(each.title, WIDTH), *(f"  help: {help}" for help in each.helps)])
        for each in list(alike.values())[:MOST_SHOWN]
    ]
    yield from _section(Question.BLOCKED, shown, len(found), "propagation stopped")
