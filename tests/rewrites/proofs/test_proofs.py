"""Laws are proved from their text: true ones that are added, under any names; false ones are refuted, with sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from partita.rewrites.proofs.lemmas import lemmas
from partita.rewrites.proofs.of_rules.laws import NOT_PROVED, PROGRAMS, every_law
from partita.rewrites.proofs.of_rules.programs import prove_program
from partita.rewrites.proofs.of_rules.prove import cases, prove
from partita.rewrites.proofs.of_rules.refute import refuted, satisfiable
from partita.rewrites.proofs.of_rules.statement import variables
from partita.rewrites.rules.compile import load
from partita.rewrites.rules.rule import Compare, Condition, Holds, Rule, RuleApply, Term, Variable

DERIVED = [pytest.param(rule, id=rule.name) for file, rule in every_law() if file != PROGRAMS and rule.name not in NOT_PROVED]


def rule_of(text: str) -> Rule:
    (rule,) = load(text)
    return rule.rule


def test_every_listed_law_exists() -> None:
    assert set(NOT_PROVED) <= {rule.name for _, rule in every_law()}


def test_every_lemma_is_proved() -> None:
    found = lemmas()
    assert found
    assert all(found.values()), found


@pytest.mark.parametrize("rule", DERIVED)
def test_what_a_law_asks_for_can_hold_with_two_devices_and_blocks_of_two(rule: Rule) -> None:
    kinds = variables(rule)
    assert any(satisfiable(rule, kinds, case) for case in cases(rule, kinds))


@pytest.mark.parametrize("rule", DERIVED)
def test_no_small_sizes_refute_a_law_where_folds_are_written_out_and_no_lemma_is_used(rule: Rule) -> None:
    kinds = variables(rule)
    assert not [found for case in cases(rule, kinds) if case.kind == "integers" and (found := refuted(rule, kinds, case))]


def renamed(rule: Rule) -> Rule:
    """The rule with other names for all of its variables."""
    names = {name: f"w{number}" for number, name in enumerate(reversed(variables(rule)))}

    def term(each: Term) -> Term:
        match each:
            case Variable(name):
                return Variable(names[name])
            case RuleApply(args=args):
                return replace(each, args=tuple(map(term, args)))
            case _:
                return each

    def condition(each: Condition) -> Condition:
        match each:
            case Holds(args=args):
                return replace(each, args=tuple(map(term, args)))
            case Compare(operator, left, right):
                return Compare(operator, term(left), term(right))
            case _:
                return replace(each, parts=tuple(map(condition, each.parts)))

    left = term(rule.left)
    assert isinstance(left, RuleApply)
    return replace(rule, left=left, right=term(rule.right), where=rule.where and condition(rule.where))


@pytest.mark.parametrize("rule", DERIVED)
def test_renamed_variables_change_nothing(rule: Rule) -> None:
    assert prove(renamed(rule)).state == "proved"


ADDED = """
block: slice(a, m, build(a, m, x)) => x
blocks: build(a, m, slice(a, m, x)) => x
masked_find: find(k, build(a, m, x)) => sum(a, mask(mine(a, m, k), find(shift(a, m, k), x)))
found_by_taking: find(k, build(a, m, x)) => sum(a, mask(mine(a, m, k), take(shift(a, m, k), x)))
chained_the_other_way: slice(a, m, chain(n, x, y)) => select(within(a, m, n), slice(a, m, x), slice(a, m, after(n, y)))
overlaid_directly: slice(a, m, over(k, x, y)) => select(among(a, m, k, x), slice(a, m, after(k, x)), slice(a, m, y))
first_twice: mask(first(a), x) + mask(first(a), y) => mask(first(a), x + y)
inwards: sum(r, x) - y => sum(r, x) + -y
apart: sum(r, x + y) => sum(r, x) + sum(r, y)
sorted_twice: sort(s, sort(s, x)) => sort(s, x)
gathered: slice(a, i, s, all_gather(a, i, s, x)) => x
"""


@pytest.mark.parametrize("text", ADDED.strip().splitlines(), ids=lambda text: text.partition(":")[0])
def test_a_true_law_that_is_added_is_proved(text: str) -> None:
    assert prove(rule_of(text)).state == "proved"


FALSE = """
take(k, build(a, m, x)) => sum(a, take(shift(a, m, k), x))
take(k, build(a, m, x)) => sum(a, mask(mine(a, m, k), take(k, x)))
find(k, build(a, m, x)) => sum(a, find(k, x))
slice(a, m, put(n, k, x)) => put(m, k, x)
slice(a, m, join(n, k, x)) => join(m, shift(a, m, k), x)
scan(s, build(a, m, x)) => build(a, m, scan(s, x))
slice(a, m, iota(n)) => iota(m)
slice(a, m, iota(n)) => iota(m) + offset(a, n)
extend(u, part(n, build(a, m, x))) => build(a, m, x)
read(windows(a, surround(u, x))) => read(windows(a, surround(0, x)))
read(from(a, k)) => read(held(a, k))
slice(a, m, chain(n, x, y)) => select(behind(a, m, n), slice(a, m, y), slice(a, m, x))
slice(a, m, over(k, x, y)) => over(0, slice(a, m, after(k, x)), slice(a, m, y))
x + sum(a, y) => sum(a, x + y)
sum(r, x) * sum(r, y) => sum(r, x * y)
y / sum(r, x) => sum(r, y / x)
sort(s, build(a, m, x)) => build(a, m, sort(s, x))
fold(u, part(n, cover(a, x))) => sum(a, fold(u, x))
slice(b, i, s, all_gather(a, i, s, x)) => permute(a, b, x) where a != b
slice(a, j, t, all_gather(a, i, s, x)) => all_to_all(a, j, t, i, s, x) where i != j
slice(L, build(M, x)) => x
build(L, slice(M, x)) => x
"""


@pytest.mark.parametrize("law", FALSE.strip().splitlines())
def test_a_false_law_is_refuted_with_sizes(law: str) -> None:
    found = prove(rule_of(f"wrong: {law}"))
    assert found.state == "refuted"
    assert re.search(r"(size|extent)\(\w\) = [23].*: at .*index = ", found.how), found.how


def test_a_law_of_programs_says_for_which_numbers_it_is_proved() -> None:
    found: Mapping[str, str] = {
        "dot(x, y - z) => dot(x, y) - dot(x, z)": "proved: by sums of products",
        "dot(x / y, z) => dot(x, z) / y": "proved: by sums of products, for reals and complex",
    }
    assert {law: str(prove_program(rule_of(f"law: {law}"))) for law in found} == found
    assert prove_program(rule_of("wrong: dot(x, y + z) => dot(x, y) + z")).state == "refuted"


def test_a_head_without_a_meaning_proves_nothing() -> None:
    assert str(prove(rule_of("law: hidden(x) => x"))) == "not proved: `hidden` has no meaning here"


PADDED = {
    "take(k, part(n, build(a, m, x))) => sum(a, mask(mine(a, m, k), take(shift(a, m, k), x)))": "proved",
    # A position behind the array may lie in the padding of a block, where something else stands than zero.
    "find(k, part(n, build(a, m, x))) => sum(a, find(shift(a, m, k), x))": "refuted",
    "find(k, part(n, build(a, m, x))) => sum(a, find(shift(a, m, k), fill(within(a, m, n), 0, x)))": "proved",
}


@pytest.mark.parametrize("law", PADDED)
def test_of_a_padded_array_a_lookup_needs_no_more_but_finding_zero_outside_needs_zeros_behind_its_end(law: str) -> None:
    assert prove(rule_of(f"padded: {law}")).state == PADDED[law]
