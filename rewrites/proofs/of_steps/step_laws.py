"""Each kind of step with its laws: for which layouts, and for how many devices, if not for any.

slice   p*c*q*a'*r*b*s --> p*c*q*a*r*b*s     the axis a goes inside c and around b; all of these sizes are any
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ...redistribute.kinds.all_gather import AllGather
from ...redistribute.kinds.all_to_all import AllToAll
from ...redistribute.kinds.folds import AllReduce, ReduceScatter
from ...redistribute.kinds.local import Cut, Pad, Slice
from ..record import recorded
from ..symbolic.explore import Law, explore
from ..symbolic.given import Given
from ..verdict import Verdict, timed
from .exchanges import between, blocks, cut_from, even, halo, permute, pieces, resized, shifted, whole, windows
from .local_arrays import as_functions
from .steps import tiled


@dataclass(frozen=True, slots=True)
class StepLaw:
    """A law of a kind of step, and for what it is stated."""

    kind: str
    what: str
    law: Law
    text: str = ""
    """The layouts before and after, if it is stated for given ones."""

    def __str__(self) -> str:
        return f"{self.text}, {self.what}" if self.text else self.what

    @property
    def name(self) -> str:
        """Another one for each law."""
        return f"{self.kind} {self}"

    def holds(self, given: Given) -> bool:
        with as_functions():
            return self.law(given)


TILED = {
    "alone on a dim": ("a", "p*a'*q --> p*a*q"),
    "inside an axis, around another": ("a", "c*p*a'*q*b*r --> c*p*a*q*b*r"),
    "two axes side by side, around another": ("ca", "p*c'*a'*q*b*r --> p*c*a*q*b*r"),
    "the inner part of an axis whose outer part stays": ("e", "d*p*e'*q, r --> d*p*e*q, r"),
    "both parts of an axis": ("de", "p*d'*e'*q --> p*d*e*q"),
}
"""Where axes come in, as axes and text."""
MOVES = {
    "to another dim": ("a", "p*a*q, r*a'*s --> p*a'*q, r*a*s"),
    "to another dim, beside other axes": ("a", "c*a*q*b*r, s*a'*t --> c*a'*q*b*r, s*a*t"),
    "inwards": ("a", "p*a*q*a'*r --> p*a'*q*a*r"),
    "outwards": ("a", "p*a'*q*a*r --> p*a*q*a'*r"),
    "outwards, over an axis that stays": ("a", "a'*p*b*a*r --> a*p*b*a'*r"),
    "two axes side by side": ("ca", "c*a*q, r*c'*a' --> c'*a'*q, r*c*a"),
    "a part of an axis": ("e", "d*e*p, q*e'*r --> d*e'*p, q*e*r"),
}
FOLDS = {
    "over an axis": ("a", "p*c*q*b, r {+a} --> p*c*q*b, r"),
    "over two axes": ("ab", "p*c*q {+a, b} --> p*c*q"),
}


def turned(text: str) -> str:
    return " --> ".join(reversed(text.split(" --> ")))


def pending(axes: str, text: str) -> str:
    return text.replace(" -->", f" {{+{', '.join(axes)}}} -->")


def of_blocks() -> Iterator[StepLaw]:
    """The laws of steps over axes with any numbers of devices."""
    for what, (axes, text) in TILED.items():
        yield StepLaw("slice", what, tiled(Slice, axes, text), text)
        yield StepLaw("all_gather", what, tiled(AllGather, axes, turned(text)), turned(text))
        yield StepLaw("reduce_scatter", what, tiled(ReduceScatter, axes, pending(axes, text)), pending(axes, text))
    for what, (axes, text) in MOVES.items():
        yield StepLaw("all_to_all", what, tiled(AllToAll, axes, text), text)
    for what, (axes, text) in FOLDS.items():
        yield StepLaw("all_reduce", what, tiled(AllReduce, axes, text), text)
    yield StepLaw("pad", "to more blocks for each device", resized(Pad))
    yield StepLaw("cut", "to fewer blocks for each device", resized(Cut))
    yield StepLaw("cut", "of a dim that every device has, from any row on", cut_from)


PERMUTES = [
    ("a*p, q --> b*p, q", {"a": 2, "b": 2}),
    ("p*a*q*b*r --> p*b*q*a*r", {"a": 3, "b": 3}),
    ("p*a*q, r*b*s --> p*b*q, r*a*s", {"a": 2, "b": 2}),
    ("p*a*b*q --> p*b*a*q", {"a": 2, "b": 3}),
    ("p*a*b*q --> p*b*a*q", {"a": 2, "b": 4}),
]
PIECES = [
    ("a*2*m --> 2*a*m", {"a": 2}),
    ("2*a*3*m, n --> 3*a*2*m, n", {"a": 2}),
    ("a*3*m --> 3*a*m", {"a": 3}),
    ("a*4*m --> 4*a*m", {"a": 4}),
    ("a*2*m, 2*b*n --> 2*b*m, a*2*n", {"a": 2, "b": 2}),
    ("a*9*m, n --> 3*b*2*m, n", {"a": 2, "b": 3}),
]


def sizes_text(sizes: dict[str, int]) -> str:
    return "with " + ", ".join(f"{name}={size}" for name, size in sizes.items())


def of_pieces() -> Iterator[StepLaw]:
    """The laws of steps between given numbers of devices."""
    for text, sizes in PERMUTES:
        yield StepLaw("permute", sizes_text(sizes), between(permute, text, **sizes), text)
    for text, sizes in PIECES:
        yield StepLaw("pieces", sizes_text(sizes), between(pieces, text, **sizes), text)


def of_halos() -> Iterator[StepLaw]:
    """The laws of halos."""
    same = "before block"
    for count, what, ends in (
        (2, "whole --> windows of any stride", (whole, windows())),
        (3, "whole --> windows of any stride", (whole, windows())),
        (2, "whole --> windows that run backwards", (whole, windows(-1))),
        (2, "blocks --> blocks, both perhaps padded", (blocks, blocks)),
        (3, "blocks --> blocks, both perhaps padded", (blocks, blocks)),
        (2, "blocks, perhaps padded --> windows of their stride", (blocks, windows(1, same))),
        (2, "blocks --> windows of their stride that run backwards", (even, windows(-1, same))),
        (3, "blocks --> blocks that begin elsewhere", (even, shifted)),
        (2, "windows --> blocks", (windows(), even)),
    ):
        yield StepLaw("halo", f"{what}, on {count} devices", halo(count, *ends))


@cache
def step_laws() -> tuple[StepLaw, ...]:
    """The laws of all kinds."""
    return *of_blocks(), *of_pieces(), *of_halos()


@recorded
def step_verdict(name: str) -> Verdict:
    """What is known of a law."""
    return timed(lambda: explore(next(each for each in step_laws() if each.name == name).holds))


NOT_PROVED = {
    "merge": "needs a lemma of sorting networks: one that sorts every sequence of 0 and 1 sorts any",
    "pieces of padded dims": "which units are padding is no number of the code, which lists them",
    "halo between any strides, on 4 devices and more": "takes too many ways: a lemma is needed that each row has one owner",
    "exscan and each_trip": "run over loops, and have no meaning here",
    "halo of blocks in turn": "how many turns there are is no number of the code, which runs over them",
}
"""The steps that are not proved, and what a proof needs. They stay tested against the interpreter."""
