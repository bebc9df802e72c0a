"""What an op requires when an index is placed, as terms; the laws of `masks.rules` say what one device does instead.

An index whose requirements have no law is not placed.

    gather %table[(v: model), :] %ids   -->   take(ids, build(v, block, op)), for which the law is `lookup`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from ...dialects.definitions.requires import OP, Component, Term, with_index
from ...dialects.definitions.tilings import Index
from ...dialects.ranges.algebra import MeshAxis
from ...dialects.ranges.factor import Factor, is_contiguous, is_padded, overcounts
from ..rules.allowed_heads import Head, Heads
from ..rules.compile import RuleSet
from ..rules.rule_files import register_check, rules


class Placing(NamedTuple):
    """How an index is placed, as far as its requirements depend on it.

    * `block`: how many of its values one device holds.
    * `filled`: some rows must not count: padding, and for a fold also rows that several devices hold.
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
    """The terms that a placed index requires, beyond the op on local types.

    The operands at `zeros` are zero, so they may count on every device.
    """
    block = placing.block
    if placing.filled:
        yield from _filled(info, index, placing)
    for operand, outside in info.windows:
        yield ("windows", index, ("surround", "add" if outside in zeros else outside, operand))
    yield from (counts_once(operand, index) for operand in info.once if operand not in zeros)
    yield from (with_index(term, index, block) for term in info.requires)
    if info.pieces and not placing.in_turn:
        (_, first), *parts = info.pieces
        chain: Term = first
        for begin, operand in parts:
            chain = ("chain", begin, chain, operand)
        yield ("slice", index, block, chain)


def _filled(info: Index, index: int, placing: Placing) -> Iterator[Term]:
    """The terms that fill the operands of a fold or scan with its unit, in rows that must not count."""
    if (unit := info.folds) is None or info.lookups:
        return
    for operand in info.filled or ():
        if placing.windows and info.scan is None:
            yield ("fold", unit, ("part", info.extent, ("cover", index, operand)))
        else:
            yield ("extend", unit, ("part", info.extent, ("build", index, placing.block, operand)))


def counts_once(operand: int, over: int | tuple[MeshAxis, ...]) -> Term:
    """The term of an operand that must count once, outside of a sum over a placed index or over mesh axes."""
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


register_check("masks", _check)


def law(term: Term) -> Term | None:
    """What one device does for a requirement; None if there is no law for it."""
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
