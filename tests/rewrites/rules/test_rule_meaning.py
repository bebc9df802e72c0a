"""Every rewrite rule is a law: its two sides mean the same for all values of its variables."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, cast

import array_terms
import collective_terms
import numpy as np
import pytest
from collective_terms import Bindings, NoLayout, Placed
from hypothesis import given, settings, strategies as st
from lockstep import Value

from partita.rewrites.rules.compile import CompiledRule, Environment, load
from partita.rewrites.rules.rule import Rule, RuleApply, RuleNumber, Symbol, Term, Variable
from partita.rewrites.rules.rule_files import all_rules

Instance = Callable[[Rule, Random], tuple[Bindings, Environment] | None]

MEANING: dict[str, tuple[Instance, Callable[[object], Any]]] = {
    "builders": (array_terms.builder_instance, array_terms.builder),
    "collectives": (collective_terms.instance, collective_terms.evaluate),
    "linearity": (array_terms.linear_instance, array_terms.linear),
    "masks": (array_terms.mask_instance, array_terms.masked),
}
RULES = [pytest.param(file, rule, id=rule.name) for file, rules in all_rules().items() for rule in rules]


@pytest.mark.parametrize(("file", "rule"), RULES)
@settings(max_examples=15)
@given(seed=st.integers(0, 1 << 32))
def test_both_sides_of_a_rule_mean_the_same(file: str, rule: CompiledRule, seed: int) -> None:
    assert holds(file, rule, Random(seed)), rule.rule


FALSE = [
    ("collectives", "backwards: slice(a, j, t, all_gather(a, i, s, x)) => all_to_all(a, j, t, i, s, x) where i != j"),
    ("collectives", "any: slice(b, i, s, all_gather(a, i, s, x)) => permute(a, b, x) where a != b"),
    ("linearity", "square: sum(r, x) * sum(r, y) => sum(r, x * y)"),
    ("linearity", "under: y / sum(r, x) => sum(r, y / x)"),
    ("masks", "always: x + sum(a, y) => sum(a, x + y)"),
]


@pytest.mark.parametrize(("file", "text"), FALSE, ids=[text.partition(":")[0] for _, text in FALSE])
def test_a_false_law_is_found(file: str, text: str) -> None:
    (rule,) = load(text)
    assert not all(holds(file, rule, Random(seed)) for seed in range(15))


def holds(file: str, rule: CompiledRule, random: Random) -> bool:
    """Whether both sides agree on a random instance."""
    find, evaluate = MEANING[file]
    for _ in range(5000):
        try:
            if (sides := fired(rule, find, random)) is not None:
                left, right = (evaluate(side) for side in sides)
                return same(left, right)
        except (NoLayout, ValueError, KeyError):
            return False
    raise AssertionError(f"no instance of `{rule.rule}` was found")


def fired(rule: CompiledRule, find: Instance, random: Random) -> tuple[object, object] | None:
    """An instance on which the rule fires: its left side and what it becomes."""
    if (found := find(rule.rule, random)) is None:
        return None
    bound, env = found
    args = tuple(term_of(argument, bound) for argument in rule.rule.left.args)
    right = rule(args, env)
    return None if right is None else ((rule.rule.left.head, *args), right)


def term_of(pattern: Term, bound: Bindings) -> object:
    """The tuple term that a pattern becomes under the bindings."""
    match pattern:
        case Variable(name):
            return bound[name]
        case RuleApply(head, args):
            return (head, *(term_of(argument, bound) for argument in args))
        case Symbol(constant) | RuleNumber(constant):
            return constant


def same(left: Any, right: Any) -> bool:
    match left:
        case Placed():
            return left.same(right)
        case dict():
            value = cast(Value, left)
            return all(np.array_equal(local, right[device]) for device, local in value.items())
        case _:
            return np.array_equal(left, right)
