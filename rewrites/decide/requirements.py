"""What an op requires when an index is placed, as terms; the laws of `masks.rules` say what one device does instead.

An index that requires something for which there is no law is not placed.

    gather %table[(v: model), :] %ids   -->   take(ids, build(v, block, op)), for which the law is `lookup`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, cast

from ...dialects.definitions.ground_form import ELEMENT
from ...dialects.definitions.tilings import Index, Picks
from ...dialects.ranges.factor import Factor, is_padded, overcounts
from ..rules.files import rules

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


Term: TypeAlias = "str | int | Elements | Component | Picks | tuple[Term, ...]"


def requirements(
    info: Index,
    index: int,
    block: int,
    zeros: frozenset[int] = frozenset(),
    filled: bool = False,
    windows: bool = False,
    in_turn: bool = False,
) -> Iterator[Term]:
    """The terms for an index that is placed in blocks of this size, or in windows, beyond the op on local types.

    The operands at `zeros` are zero, so they may count on every device. `filled`: some rows must count for nothing.
    `in_turn`: blocks go to the devices in turn, so that every round of them is that of one part.
    """
    if filled and (unit := info.folds) is not None and not info.lookups:
        if windows and info.scan is None:
            yield from (("fold", unit, ("part", info.extent, ("cover", index, each))) for each in info.filled or ())
        else:
            yield from (("extend", unit, ("part", info.extent, ("build", index, block, each))) for each in info.filled or ())
    for operand, outside in info.windows:
        yield ("windows", index, ("surround", "add" if outside in zeros else outside, operand))
    yield from (("slice", index, block, ("over", first, part, below)) for first, part, below in info.over)
    yield from (once(operand, index) for operand in info.once if operand not in zeros)
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
    if info.scan is not None:
        yield ("scan", ("build", index, block, OP))
    if info.selects is not None:
        yield ("best", ("build", index, block, OP))
    if info.merges is not None:
        yield ("sort", ("build", index, block, OP))
    if info.pieces and not in_turn:
        (_, first), *parts = info.pieces
        chain: Term = first
        for begin, operand in parts:
            chain = ("chain", begin, chain, operand)
        yield ("slice", index, block, chain)
    if info.value:
        yield ("slice", index, block, ("iota", info.extent))


def fills(info: Index, factors: Sequence[Factor]) -> bool:
    """Whether rows of an index' factors must count for nothing: padding, and for a fold also what several devices hold."""
    return is_padded(info.extent, factors) if info.folds is None else overcounts(info.extent, factors)


def once(operand: int, over: int | tuple[str, ...]) -> Term:
    """An operand in a term outside of a sum, which runs over a placed index or over mesh axes."""
    return ("add", operand, ("sum", over, OP))


def law(term: Term) -> Term | None:
    """What one device does for a requirement; None if no law says it."""
    found = rules("masks").rewrite_root(term, {})
    return None if found is None else cast(Term, found[0])


@lru_cache(maxsize=1 << 10)
def is_lawful(info: Index, filled: bool = False, windows: bool = False) -> bool:
    """Whether there is a law for all that placing the index requires."""
    if filled and info.filled is None:
        return False
    looked_up = (law(("window", Component(ids, component), width)) for ids, component, width in info.lookups if width > 1)
    return None not in (*looked_up, *map(law, requirements(info, 0, 1, filled=filled, windows=windows)))
