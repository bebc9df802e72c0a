"""`plan.rewrites`: where laws apply to a plan's program, and what each would save, the best first.

law           at                  places   bytes saved   flops saved   memory saved
reassociate   dot_general#3            1         1,024        65,536          4,096
tile, dim 0, t:8   logits              1             0             0      1,400,000
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...dialects.ground.validation import checked
from ...rewrites.decide.price import Price
from ..cost.collectives import bytes_per_device
from ..cost.costs import price
from ..cost.flops import flops_per_device
from ..cost.memory import peak_bytes
from ..inputs.message_language import cited
from ..plan.claims import Some
from ..plan.named_laws import unnumbered
from ..plan.state import State
from ..views.listing import Listing, ListingForm
from ..views.view import Cell, Part, View
from .rewrite_candidates import LawCandidate, matched, searched
from .tactic_edits import attempted

ALWAYS_LISTED = "recompute", "stack"
"""Laws that are listed even if they save nothing on CPU, because compilers for other devices gain by them."""
SPARE = "line", "places"
"""The columns that may be left out on a narrow screen."""
COLUMNS = ("law", "at", "places", "bytes saved", "flops saved", "memory saved", "line")


class Saved(NamedTuple):
    """Savings of one device: bytes received, flops, and bytes of memory at the peak; and what a call then costs."""

    bytes: int
    flops: int
    memory: int
    price: Price


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A law at places that are alike, and what one device saves by it. A negative number is a cost.

    It is a tactic itself: `plan.apply(plan.rewrites()[0])`.
    """

    candidate: LawCandidate
    bytes: int
    flops: int
    memory: int
    before: Price = field(kw_only=True, repr=False, compare=False)
    """What a call of the plan costs."""
    price: Price = field(kw_only=True, repr=False, compare=False)
    """What it costs after the rewriting."""

    @property
    def seconds(self) -> float:
        """An estimate of the time, in seconds, that a chip of the mesh saves in a call."""
        return self.before.seconds - self.price.seconds

    @property
    def law(self) -> str:
        """The name of the law; `tile` for a large value that is computed in parts, in a loop."""
        return self.candidate.law

    @property
    def at(self) -> tuple[str, ...]:
        """The names of the places."""
        return self.candidate.at

    @property
    def places(self) -> int:
        """How many places are alike."""
        return self.candidate.places

    @property
    def line(self) -> str:
        """The line of the first of them in the user's program."""
        return self.candidate.line

    @property
    def tactic(self) -> str:
        """The tactic as a line of a trace."""
        return self.candidate.tactic

    @checked
    def __call__(self, plan: Some) -> Some:
        return self.candidate(plan)

    def __repr__(self) -> str:
        saves = f"{self.bytes:,} bytes received, {self.flops:,} flops and {self.memory:,} bytes of memory"
        return f"{cited(self.tactic)}: saves a device {saves}"


@dataclass(frozen=True, repr=False)
class Trials(View):
    """What has been found so far, the best first, and what is left to try. `of` is the number of all candidates."""

    found: Listing[Rewriting]
    left: Sequence[LawCandidate]
    of: int
    whole: bool
    is_done: bool = False

    def parts(self) -> Sequence[Part]:
        if self.is_done:
            return self.found.all().parts() if self.whole else self.found.parts()
        shape: ListingForm[Rewriting | LawCandidate] = ListingForm("rewritings", COLUMNS, _row, merges=False, spare=SPARE)
        return [*shape.parts([*self.found, *self.left], self.whole), f"{self.of - len(self.left):,} of {self.of:,} tried"]


def rewrites(plan: State) -> Listing[Rewriting]:
    """Tries each law at each kind of place. What saves time comes first, then what saves memory."""
    *_, last = tried_rewrites(plan)
    return last.found


def tried_rewrites(plan: State, whole: bool = False) -> Iterator[Trials]:
    """Yields the listing as it grows: first the places that match, then what each saves, as it becomes known."""
    left = matched(plan)
    yield Trials(_best(()), left, len(left), whole)
    left = [*searched(plan), *left]
    found, total, before = list[Rewriting](), len(left), price(plan)
    while left:
        each = left.pop(0)
        saved = _saved(plan, each)
        if saved is not None and (any(amount > 0 for amount in saved[:3]) or each.law in ALWAYS_LISTED):
            found.append(Rewriting(each, *saved[:3], before=before, price=saved.price))
        if saved is not None and left:
            yield Trials(_best(found), tuple(left), total, whole)
    yield Trials(_best(found), (), total, whole, is_done=True)


def _saved(plan: State, each: LawCandidate) -> Saved | None:
    """What a device saves by a candidate; None if the law cannot be applied there. Each is tried once for a plan."""
    known = plan.once(_tried_cache)
    if each not in known:
        known[each] = _tried(plan, each)
    return known[each]


def _tried(plan: State, each: LawCandidate) -> Saved | None:
    made = attempted(plan, each)
    if made is None:
        return None
    (sent, computed, stored), (sends, computes, stores) = _cost(plan), _cost(made)
    return Saved(sent - sends, computed - computes, stored - stores, price(made))


def _tried_cache(plan: State) -> dict[LawCandidate, Saved | None]:
    """A cache of the candidates that have been tried."""
    del plan
    return {}


def _cost(plan: State) -> tuple[int, int, int]:
    return bytes_per_device(plan), flops_per_device(plan).known, peak_bytes(plan)


def _best(found: Sequence[Rewriting]) -> Listing[Rewriting]:
    """The listing of rewritings, the best first. Of values that one loop computes in parts, the largest is listed."""
    unlike = dict[object, Rewriting]()
    for each in found:
        loop = each.candidate.loop
        unlike.setdefault(each.tactic if loop is None else (loop[1:], each.bytes, each.flops, each.memory), each)
    best = sorted(unlike.values(), key=lambda each: (min(each.price, each.before), -each.memory))
    return Listing(best, ListingForm("rewritings", COLUMNS, _row, merges=False, spare=SPARE))


def _row(each: Rewriting | LawCandidate) -> Sequence[Cell]:
    where = each.candidate if isinstance(each, Rewriting) else each
    saved = (each.bytes, each.flops, each.memory) if isinstance(each, Rewriting) else ("", "", "")
    first, *others = where.at
    at = unnumbered(first) if others else first
    law = where.law if (loop := where.loop) is None else f"tile, dim {loop.dim}, {loop.loop}{'' if loop.backward else ', uses'}"
    return law, at, where.places, *saved, where.line
