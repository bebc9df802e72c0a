"""A law without one of its masks, shifts, offsets or cases is refuted, with sizes: each of them is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from partita.rewrites.proofs.of_rules.laws import NOT_PROVED
from partita.rewrites.proofs.of_rules.prove import prove
from partita.rewrites.rules.rule import Rule, RuleApply, Term
from partita.rewrites.rules.rule_files import rules

DROPPED = {"mask": [1], "fill": [2], "shift": [2], "local": [1], "after": [1], "select": [1, 2]}
"""Heads, and the arguments that are left without them."""


def weakened(term: Term) -> Iterator[Term]:
    """The terms with one mask, shift, offset or case dropped."""
    if not isinstance(term, RuleApply):
        return
    yield from (term.args[at] for at in DROPPED.get(term.head, ()))
    if term.head == "add" and isinstance(offset := term.args[1], RuleApply) and offset.head == "offset":
        yield term.args[0]
    for at, arg in enumerate(term.args):
        yield from (replace(term, args=(*term.args[:at], each, *term.args[at + 1 :])) for each in weakened(arg))


WEAKENED = [
    pytest.param(replace(each.rule, right=right), id=f"{each.name}: {right}")
    for each in rules("masks")
    if each.name not in NOT_PROVED
    for right in weakened(each.rule.right)
]


@pytest.mark.parametrize("rule", WEAKENED)
def test_a_weakened_law_is_refuted_with_sizes(rule: Rule) -> None:
    found = prove(rule)
    assert found.state == "refuted", found
    assert re.search(r"size\(a\) = [23].*: at .*index = ", found.how), found.how


def test_every_law_of_masks_is_weakened_or_has_nothing_to_drop() -> None:
    whole = {each.name for each in rules("masks") if each.name not in NOT_PROVED and not [*weakened(each.rule.right)]}
    assert whole == {"scanned", "sorted"}
