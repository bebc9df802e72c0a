"""What an op requires when an index is placed, as terms; the laws of `masks.rules` say what one device does instead.

An index that requires something for which there is no law is not placed.

    gather %table[(v: model), :] %ids   -->   take(ids, build(v, block, op)), for which the law is `lookup`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

from ...dialects.definitions.ground_form import ELEMENT
from ...dialects.definitions.tilings import Index, Picks
from ...dialects.ranges.algebra import Axis, MeshAxis, SubAxis
from ...dialects.ranges.factor import Factor, is_contiguous, is_padded, overcounts
from ..rules.compile import RuleSet
from ..rules.files import checked, rules
from ..rules.heads import Head, Heads

OP = "op"
"""The leaf of a term: the op itself, with the requirements of its other indices."""


@dataclass(frozen=True, slots=True)
class Elements:
    """A looked-up index: the elements of operand `ids`."""

    ids: int


@dataclass(frozen=True, slots=True)
class Component:
    """A looked-up index: one component of the index vectors that operand `ids` holds."""

    ids: int
    number: int


Term: TypeAlias = "str | int | Axis | SubAxis | Elements | Component | Picks | tuple[Term, ...]"


class Placing(NamedTuple):
    """How an index is placed, as far as its requirements depend on it.

    * `block`: how many of its values one device holds.
    * `filled`: some rows must count for nothing: padding, and for a fold also what several devices hold.
    * `windows`: devices hold windows, which may overlap.
    * `in_turn`: blocks go to the devices in turn, and each round of them lies in one part of a concatenation.
    """

    block: int
    filled: bool
    windows: bool
    in_turn: bool

    @staticmethod
    def of(info: Index, factors: Sequence[Factor]) -> Placing:
        filled = is_padded(info.extent, factors) if info.folds is None else overcounts(info.extent, factors)
        windows = any(factor.has_halo for factor in factors)
        in_turn = not windows and not is_contiguous(info.extent, factors)
        return Placing(min(factor.stride for factor in factors), filled, windows, in_turn)


def requirements(info: Index, index: int, placing: Placing, zeros: frozenset[int] = frozenset()) -> Iterator[Term]:
    """The terms for a placed index, beyond the op on local types.

    The operands at `zeros` are zero, so they may count on every device.
    """
    block = placing.block
    if placing.filled:
        yield from _filled(info, index, placing)
    for operand, outside in info.windows:
        yield ("windows", index, ("surround", "add" if outside in zeros else outside, operand))
    yield from (("slice", index, block, ("over", first, part, below)) for first, part, below in info.over)
    yield from (counts_once(operand, index) for operand in info.once if operand not in zeros)
    yield from _looked_up(info, index, block)
    if info.scan is not None:
        yield ("scan", ("build", index, block, OP))
    if info.selects is not None:
        yield ("best", ("build", index, block, OP))
    if info.merges is not None:
        yield ("sort", ("build", index, block, OP))
    if info.pieces and not placing.in_turn:
        (_, first), *parts = info.pieces
        chain: Term = first
        for begin, operand in parts:
            chain = ("chain", begin, chain, operand)
        yield ("slice", index, block, chain)
    if info.value:
        yield ("slice", index, block, ("iota", info.extent))


def _filled(info: Index, index: int, placing: Placing) -> Iterator[Term]:
    """The operands of a fold or scan, with its unit in rows that must count for nothing."""
    if (unit := info.folds) is None or info.lookups:
        return
    for operand in info.filled or ():
        if placing.windows and info.scan is None:
            yield ("fold", unit, ("part", info.extent, ("cover", index, operand)))
        else:
            yield ("extend", unit, ("part", info.extent, ("build", index, placing.block, operand)))


def _looked_up(info: Index, index: int, block: int) -> Iterator[Term]:
    """The positions at which an op reads or writes along the index."""
    for ids, component, width in info.lookups:
        k: Term = Elements(ids) if component == ELEMENT else Component(ids, component)
        if width > 1:
            k = law(("window", k, width)) or k
        if info.monoid is not None:
            yield ("take" if info.masked else "find", k, ("build", index, block, OP))
        elif component == ELEMENT and info.masked:
            yield from (("slice", index, block, ("join", info.extent, k, operand)) for operand in info.masked)
        else:
            yield ("slice", index, block, ("put", info.extent, k, OP))
    if info.picks is not None:
        yield ("take", info.picks, ("build", index, block, OP))


def counts_once(operand: int, over: int | tuple[MeshAxis, ...]) -> Term:
    """An operand in a term outside of a sum, which runs over a placed index or over mesh axes."""
    return ("add", operand, ("sum", over, OP))


REQUIREMENTS = Heads(
    Head("requirement", "take", "* array"),
    Head("requirement", "find", "* array"),
    Head("requirement", "slice", ". . whole"),
    Head("requirement", "scan", "array"),
    Head("requirement", "best", "array"),
    Head("requirement", "sort", "array"),
    Head("requirement", "extend", ". first"),
    Head("requirement", "fold", ". covered"),
    Head("requirement", "windows", ". bordered"),
    Head("requirement", "add", ". folded"),
    Head("requirement", "window", ". ."),
    Head("array", "build", ". . ."),
    Head("whole", "put", ". * ."),
    Head("whole", "join", ". * ."),
    Head("whole", "iota", "."),
    Head("whole", "chain", ". * ."),
    Head("whole", "over", ". . ."),
    Head("first", "part", ". array"),
    Head("covered", "part", ". windows"),
    Head("windows", "cover", ". ."),
    Head("bordered", "surround", ". ."),
    Head("folded", "sum", ". ."),
)
"""The terms that definitions ask for. Each is the left side of some law of `masks.rules`."""


def _check(masks: RuleSet) -> None:
    REQUIREMENTS.check(masks, [(each.rule, "requirement", each.rule.left) for each in masks], "rewrites")


checked("masks", _check)


def law(term: Term) -> Term | None:
    """What one device does for a requirement; None if no law says it."""
    found = rules("masks").rewrite_root(term, {})
    if found is None:
        assert REQUIREMENTS.fits("requirement", term), f"no definition asks for {term}"
        return None
    return cast(Term, found[0])


@lru_cache(maxsize=1 << 10)
def is_lawful(info: Index, placing: Placing) -> bool:
    """Whether there is a law for all that placing the index requires."""
    if placing.filled and info.filled is None:
        return False
    looked_up = (law(("window", Component(ids, component), width)) for ids, component, width in info.lookups if width > 1)
    return None not in (*looked_up, *map(law, requirements(info, 0, placing)))
