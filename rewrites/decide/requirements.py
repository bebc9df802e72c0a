"""What an op requires when an index is placed, as terms; the laws of `masks.rules` say what one device does instead.

An index whose requirements have no law is not placed.

    gather %table[(v: model), :] %ids   -->   take(ids, build(v, block, op)), for which the law is `lookup`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from ...dialects.definitions.requirement_terms import BLOCK, INDEX, TILED, Held, Term, with_index
from ...dialects.definitions.tilings import Index
from ...dialects.ranges.factor import Factor, is_contiguous, is_padded
from ..rules.allowed_heads import Head, Heads
from ..rules.compile import RuleSet
from ..rules.rule_files import register_check, rules


class Placing(NamedTuple):
    """How an index is placed, as far as its requirements depend on it. `block`: how many of its values one device holds."""

    held: Held
    block: int

    @staticmethod
    def of(extent: int, factors: Sequence[Factor]) -> Placing:
        held = Held.PADDED if is_padded(extent, factors) else Held.BLOCKS
        if any(factor.has_halo for factor in factors):
            held = Held.WINDOWS
        elif not is_contiguous(extent, factors):
            held = Held.TURNS
        return Placing(held, min(factor.stride for factor in factors))


def requirements(info: Index, index: int, placing: Placing) -> Iterator[Term | None]:
    """What one device does for a placed index, beyond the op on local types; None for what has no law."""
    own, block = placing
    tiled, run = None if own is Held.WINDOWS else index, None if own is Held.TURNS else block
    given: Mapping[Term, Term | None] = {INDEX: index, TILED: tiled, BLOCK: run}
    for held, term in info.terms:
        if own in held:
            yield None if (asked := with_index(term, given)) is None else law(asked)


REQUIREMENTS = Heads(
    Head("requirement", "take find scan best sort", ". array"),
    Head("requirement", "slice", ". . whole"),
    Head("requirement", "extend", ". first"),
    Head("requirement", "fold", ". covered"),
    Head("requirement", "read", "rows"),
    Head("requirement", "add", ". folded"),
    Head("array", "build", ". . ."),
    Head("array", "deal", ". ."),
    Head("whole", "put join over", ". . ."),
    Head("whole", "iota", "."),
    Head("whole", "chain", ". * ."),
    Head("first", "part", ". array"),
    Head("covered", "part", ". cover"),
    Head("cover", "cover", ". ."),
    Head("rows", "windows", ". bordered"),
    Head("rows", "from", ". ."),
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
    return None not in requirements(info, 0, placing)
