"""`plan.rewrites`: where which law applies to the program of a plan, and what each would save, the best first.

law           at                  places   bytes saved   flops saved   memory saved
reassociate   dot_general#3            1         1,024        65,536          4,096
chunk         logits                   1             0             0      1,400,000
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...dialects.errors import Error
from ...rewrites.laws.law import Law, Site
from ...rewrites.laws.library import library
from ..views.listing import Listing, Shape
from ..views.view import Cell
from .claims import Some
from .collectives import bytes_per_device, line_of
from .laws import made_by, scope_of
from .memory import at_peak, peak_bytes
from .rewriting import rewrite
from .seconds import BYTES_PER_SECOND, FLOPS_PER_SECOND
from .state import State
from .work import flops_per_device

MOST = 8
"""The most kinds of places of library laws that are tried: those that save most flops and elements by themselves."""
TRIPS = 8
"""The number of parts in which a large value is tried to be computed."""
SHOWN = "recompute", "stack"
"""What is listed even if it saves nothing on CPU, because compilers for other devices gain by it."""
LARGEST = 4
"""How many kinds of the largest values at the peak of memory are tried to be computed in parts."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A law at some places that are alike, and what one device saves by it; a negative number is a cost.

    It is a tactic itself: `plan.apply(plan.rewrites()[0])`.
    """

    law: str
    at: tuple[str, ...]
    places: int
    bytes: int
    flops: int
    memory: int
    line: str = ""
    given: Mapping[str, int | str] = field(default_factory=dict[str, int | str])

    @property
    def seconds(self) -> float:
        """About how much sooner a TPU v5e receives and computes."""
        return self.bytes / BYTES_PER_SECOND + self.flops / FLOPS_PER_SECOND

    @property
    def tactic(self) -> str:
        """The same as a line of a trace."""
        at = self.at[0] if len(self.at) == 1 else list(self.at)
        return f"rewrite({', '.join([repr(self.law), f'at={at!r}', *(f'{k}={v!r}' for k, v in self.given.items())])})"

    def __call__(self, plan: Some) -> Some:
        return rewrite(plan, self.law, self.at[0] if len(self.at) == 1 else list(self.at), self.given)

    def __repr__(self) -> str:
        saves = f"{self.bytes:,} bytes received, {self.flops:,} flops and {self.memory:,} bytes of memory"
        return f"{self.tactic}: saves a device {saves}"


def rewrites(plan: State) -> Listing[Rewriting]:
    """Each law at each kind of place, tried. Those that save time come first, then those that save memory."""
    before = _cost(plan)
    found: list[Rewriting] = []
    for law, at, places, given in _candidates(plan):
        try:
            made = rewrite(plan, law, at[0] if len(at) == 1 else list(at), given)
        except Error:
            continue
        received, flops, memory = (old - new for old, new in zip(before, _cost(made), strict=True))
        if max(received, flops, memory) > 0 or law in SHOWN:
            found.append(Rewriting(law, at, places, received, flops, memory, _line(plan, at), given))
    # Of large values that are computed in parts together, one.
    unlike = {
        (each.law, each.bytes, each.flops, each.memory, *each.given.items()) if each.given else each.tactic: each
        for each in found
    }
    best = sorted(unlike.values(), key=lambda each: (-each.seconds, -each.memory))
    return Listing(best, Shape("rewritings", COLUMNS, _row, merges=False))


def _cost(plan: State) -> tuple[int, int, int]:
    return bytes_per_device(plan), flops_per_device(plan).known, peak_bytes(plan)


COLUMNS = ("law", "at", "places", "bytes saved", "flops saved", "memory saved", "line")

Candidate = tuple[str, tuple[str, ...], int, Mapping[str, int | str]]
"""A law, the patterns for its places, how many they are, and what else the law needs."""


def _candidates(plan: State) -> Iterator[Candidate]:
    """What to try: the laws that need more than the program, and those of the library where they save most by themselves."""
    yield from _in_parts(plan)
    yield from _again(plan)
    groups = [group for law in library().values() for group in _groups(plan, law)]
    for candidate, *_ in sorted(groups, key=lambda each: each[1:], reverse=True)[:MOST]:
        yield candidate


def _groups(plan: State, law: Law) -> Iterator[tuple[Candidate, int, int]]:
    """The places of a law, those that differ only in the numbers of layers together, with the flops and elements saved."""
    alike: dict[object, list[Site]] = {}
    program, names = plan.source.program, plan.source.addresses.names
    for site in law.sites(program):
        ends = (value for each in (site.value, *site.inside) for value in (*made_by(plan, each).operands, each))
        alike.setdefault((_starred(names[site.value]), *(program.types[value] for value in ends)), []).append(site)
    for sites in alike.values():
        candidate: Candidate = law.name, tuple(names[site.value] for site in sites), len(sites), {}
        yield candidate, sum(site.flops for site in sites), sum(site.elements for site in sites)


def _starred(name: str) -> str:
    """The name without numbers, which tell layers apart: `block*/dot_general#*`."""
    return re.sub(r"\d+", "*", name)


def _in_parts(plan: State) -> Iterator[Candidate]:
    """The largest values at the peak of memory, in parts of each of their dims."""
    program, names = plan.source.program, plan.source.addresses.names
    computed = [value for value in at_peak(plan) if program.producer[value] >= 0 and not made_by(plan, value).is_border]
    alike = {(_starred(names[value]), program.types[value]): value for value in reversed(computed)}
    for value in list(alike.values())[: -LARGEST - 1 : -1]:
        for dim, extent in enumerate(program.shape(value)):
            if extent % TRIPS == 0 and extent > TRIPS:
                yield "chunk", (names[value],), 1, {"dim": dim, "trips": TRIPS}


def _again(plan: State) -> Iterator[Candidate]:
    """The outermost scopes of the program, those of layers that are alike together."""
    scopes = dict.fromkeys(scope_of(plan, node).split("/")[0] for node in plan.source.program.nodes if not node.is_border)
    alike: dict[str, list[str]] = {}
    for scope in scopes:
        alike.setdefault(_starred(scope), []).append(scope)
    for some in (some for name, some in alike.items() if name):
        yield "recompute", tuple(some), len(some), {}


def _line(plan: State, at: Sequence[str]) -> str:
    """The source line of the first place."""
    value = plan.source.addresses.by_name(at[0])
    source = None if value is None else line_of(plan, value, made_by(plan, value))
    return "" if source is None else source.place


def _row(each: Rewriting) -> Sequence[Cell]:
    first, *others = each.at
    at = _starred(first) if others else first
    law = ", ".join([each.law, *(f"{name} {value}" for name, value in each.given.items())])
    return law, at, each.places, each.bytes, each.flops, each.memory, each.line
