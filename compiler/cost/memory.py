"""The memory of one device: the most bytes at one time, by value and source line.

plan.memory()                          arguments, results, and the temporaries at the peak
plan.memory(donate=["params", "opt"])  results take the buffers of these arguments, and of those that `pt.jit` donates
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from ...dialects.mesh import Mesh
from ...rewrites.decide.device_sets import coordinates
from ...rewrites.decide.live_ranges import LiveRanges, Peak
from ...rewrites.decide.live_ranges_on_sets import live_ranges_by_set
from ...rewrites.program.program import NO_VALUE, ValueId
from ..gc_pause import without_collector
from ..inputs.lines import SourceLine, at_line
from ..inputs.message_language import all_of
from ..inputs.names import Patterns
from ..plan.donation import donated_bytes
from ..plan.source_lines import line_of
from ..plan.state import State
from ..views.view import Part, View
from .alike_ends import bytes_of_arguments, device_sets, ends_on
from .loops import are_several, loops

MOST_ROWS = 12
"""The most arrays that the text of a `Memory` shows."""


class Stored(NamedTuple):
    """An array that a device stores at the peak: its bytes, its value's name, its kind, and the line of the op that makes it.

    `kind` is `argument`, `result` or `temporary`. `form` is the kind of the step that moved a temporary, such as `all_gather`;
    "" for a value as its op makes it.
    """

    bytes: int
    value: str
    kind: str
    form: str = ""
    source: SourceLine | None = None

    def __str__(self) -> str:
        form = f" ({self.form})" if self.form else ""
        return f"{self.bytes:>16,}  {self.kind} {self.value}{form}{at_line(self.source)}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class _Peak:
    """What is kept of the peak: the temporaries that are stored, and the op that runs, with its value and node."""

    bytes: int
    arrays: tuple[tuple[int, ValueId, str], ...]
    """The bytes, value and form of each temporary, the largest first."""
    step: str = ""
    value: ValueId = NO_VALUE
    node: int = -1


@dataclass(frozen=True, repr=False, eq=False)
class Memory(View):
    """The most bytes that one device stores at one time, estimated without compiling.

    `bytes` is `arguments + results + temporaries - donated`. `at` is the op that runs at the peak, and `arrays` are the
    arguments, the results and the temporaries stored then, the largest first. These have names, which take long to find in a
    large program: so they are looked up when they are asked for.
    """

    arguments: int
    results: int
    temporaries: int
    donated: int
    """The bytes of results that take the buffers of donated arguments."""
    plan: State
    peak: _Peak
    devices: Mesh | None = None
    """The device set on which a device stores so much, if the plan has several."""
    whole: bool = False
    """Whether the text lists all arrays."""

    @cached_property
    def at(self) -> str:
        plan, found = self.plan, self.peak
        node = plan.source.program.nodes[found.node] if found.node >= 0 else None
        source = line_of(plan, found.value, node) if found.value >= 0 else None
        return f"`{found.step}`{at_line(source)}" if found.step else "the call"

    @cached_property
    def arrays(self) -> tuple[Stored, ...]:
        return tuple(map(self.array, self.largest))

    @cached_property
    def sizes(self) -> Sequence[int]:
        """The bytes of the arguments, of the results, which are stored all the time too, and of the temporaries."""
        return [*ends_on(self.plan, self.devices), *(size for size, _, _ in self.peak.arrays)]

    @cached_property
    def largest(self) -> Sequence[int]:
        """The numbers of those that take room, the largest first."""
        return sorted(filter(self.sizes.__getitem__, range(len(self.sizes))), key=self.sizes.__getitem__, reverse=True)

    def array(self, number: int) -> Stored:
        """The one with a number: its name, and the line of a temporary."""
        plan, size = self.plan, self.sizes[number]
        for kind, names in (("argument", plan.source.program.argument_names), ("result", plan.source.program.result_names)):
            if number < len(names):
                return Stored(size, names[number], kind)
            number -= len(names)
        _, value, form = self.peak.arrays[number]
        if value == NO_VALUE:
            return Stored(size, "of all trips, for a later loop", "temporary", form)
        return Stored(size, plan.source.addresses.names[value], "temporary", form, line_of(plan, value, None))

    def __eq__(self, other: object) -> bool:
        return self._said() == other._said() if isinstance(other, Memory) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._said())

    def _said(self) -> tuple[object, ...]:
        return self.arguments, self.results, self.temporaries, self.donated, self.at, self.arrays

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: all but the plan."""
        return {**vars(self), "at": self.at, "arrays": self.arrays, "plan": None}

    def all(self) -> Memory:
        """Returns the same memory, whose text lists all arrays."""
        return replace(self, whole=True).on(self.axes)

    @property
    def bytes(self) -> int:
        """The most bytes stored at one time."""
        return self.arguments + self.results + self.temporaries - self.donated

    def sums(self, text: Callable[[int], str] = "{:,}".format) -> str:
        """The terms of the sum `bytes`, in text: `64 of arguments, 32 of results, 128 of temporaries`."""
        sums = f"{text(self.arguments)} of arguments, {text(self.results)} of results, {text(self.temporaries)} of temporaries"
        return sums + (f", less {text(self.donated)} donated" if self.donated else "")

    def parts(self) -> Sequence[Part]:
        device = "a device" if self.devices is None else f"a device of {coordinates(self.devices)}"
        lines = [f"{self.bytes:,} bytes on {device} at the peak: {self.sums()}", f"The peak is in {self.at}. Stored then:"]
        most = len(self.arrays) if self.whole else MOST_ROWS
        lines += map(str, self.arrays[:most])
        rest = self.arrays[most:]
        lines += [f"{sum(each.bytes for each in rest):>16,}  in {len(rest)} more: see {all_of('`.arrays`')}"] if rest else []
        return lines


def memory(plan: State, donate: Patterns = ()) -> Memory:
    """The memory of one device at the peak. Raises Error for a donated argument that does not exist or is static."""
    return max((memory_on(plan, on, donate) for on in device_sets(plan)), key=attrgetter("bytes"))


def memory_on(plan: State, on: Mesh | None, donate: Patterns = ()) -> Memory:
    """The memory of a device of one set at the peak."""
    taken = donated_bytes(plan.source.traced, plan.decisions.placements, donate, on)
    found, sizes, count = plan.once(_peaks)[on], ends_on(plan, on), len(plan.source.program.arguments)
    return Memory(sum(sizes[:count]), sum(sizes[count:]), found.bytes, taken, plan, found, on)


def over_time(plan: State) -> tuple[Memory, LiveRanges]:
    """The memory of one device at the peak, and the temporaries that it stores during each step."""
    found = memory(plan)
    return found, plan.once(_ranges)[found.devices]


def peak_bytes(plan: State) -> int:
    """The most bytes that one device stores at one time."""
    return memory(plan).bytes


def at_peak(plan: State) -> list[ValueId]:
    """The values that one device stores at the peak, the largest first."""
    return [value for _, value in held_at_peak(plan)]


def held_at_peak(plan: State) -> list[tuple[int, ValueId]]:
    """The (bytes, value) of each temporary that is stored at the peak, the largest first."""
    return [(size, value) for size, value, _ in memory(plan).peak.arrays if value != NO_VALUE]


def _ranges(plan: State) -> Mapping[Mesh | None, LiveRanges]:
    with without_collector():
        return live_ranges_by_set(plan.decisions, bytes_of_arguments(plan))


def _peaks(plan: State) -> Mapping[Mesh | None, _Peak]:
    # A loop stores them until a later one has read them. When that is, is not known here: they count at any time.
    stacks = [(each.kept, NO_VALUE, each.loop) for each in loops(plan) if each.kept] if are_several(plan) else []
    return {on: _left_by(found.peak, stacks) for on, found in plan.once(_ranges).items()}


def _left_by(found: Peak, stacks: Sequence[tuple[int, ValueId, str]]) -> _Peak:
    arrays = [(each.bytes, each.value, each.form) for each in found.arrays]
    largest = tuple(sorted([*arrays, *stacks], key=lambda each: -each[0]))
    total = found.bytes + sum(size for size, _, _ in stacks)
    if (step := found.step) is None:
        return _Peak(total, largest)
    return _Peak(total, largest, step.name, step.makes[0].value if step.makes else NO_VALUE, step.node)
