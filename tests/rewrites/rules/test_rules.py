"""A rule file is a table of laws: it reads back as it prints, and each law rewrites exactly its left side."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.rewrites.rules import rule_files as rules
from partita.rewrites.rules.compile import FIRED, Environment, load

SIZES = {"a": 4, "b": 4, "c": 2}


def even(n: int) -> bool:
    return n % 2 == 0


ENV: Environment = {"size": SIZES.__getitem__, "even": even}


@pytest.mark.parametrize(
    ("law", "term", "result"),
    [
        ("beta: slice(L, build(L, x)) => x", ("slice", "rows", ("build", "rows", "v")), "v"),
        ("beta: slice(L, build(L, x)) => x", ("slice", "rows", ("build", "columns", "v")), None),
        ("beta: slice(L, build(L, x)) => x", ("slice", "rows", "v"), None),
        ("beta: slice(L, build(L, x)) => x", ("build", "rows", ("slice", "rows", "v")), None),
        ("symbol: fold(add, x) => sum(x)", ("fold", "add", "v"), ("sum", "v")),
        ("symbol: fold(add, x) => sum(x)", ("fold", "max", "v"), None),
        ("number: x + 0 * y => x", ("add", "u", ("mul", 0, "v")), "u"),
        ("infix: -(x + y) => -x - y", ("neg", ("add", "u", "v")), ("sub", ("neg", "u"), "v")),
        ("binds: tile(n) => grid(q, 4) where q = n / 4", ("tile", 12), ("grid", 3, 4)),
        ("binds: tile(n) => grid(q, 4) where q = n / 4", ("tile", 13), None),
        ("sizes: swap(a, b) => swap(b, a) where a != b and size(a) = size(b)", ("swap", "a", "b"), ("swap", "b", "a")),
        ("sizes: swap(a, b) => swap(b, a) where a != b and size(a) = size(b)", ("swap", "a", "c"), None),
        ("sizes: swap(a, b) => swap(b, a) where a != b and size(a) = size(b)", ("swap", "a", "a"), None),
        ("either: f(m, n) => n where m = add or even(n)", ("f", "max", 2), 2),
        ("either: f(m, n) => n where m = add or even(n)", ("f", "add", 3), 3),
        ("either: f(m, n) => n where m = add or even(n)", ("f", "max", 3), None),
        ("other: f(n) => n where not even(n)", ("f", 3), 3),
        ("other: f(n) => n where not even(n)", ("f", 2), None),
    ],
)
def test_a_rule_rewrites(law: str, term: object, result: object) -> None:
    ruleset = load(law)
    found = ruleset.rewrite_root(term, ENV)
    assert (found and found[0]) == result
    assert found is None or found[1] is next(iter(ruleset))


@pytest.mark.parametrize("file", rules.FILES)
def test_a_rule_file_prints_as_it_reads(file: str) -> None:
    printed = str(rules.rules(file))
    assert str(load(printed)) == printed


@pytest.mark.parametrize("file", rules.FILES)
def test_a_rule_file_states_one_law_a_line(file: str) -> None:
    text = Path(rules.__file__).with_name(f"{file}.rules").read_text()
    assert text.count("=>") == len({rule.rule.line for rule in rules.rules(file)}) == len(list(rules.rules(file)))


def test_brackets_and_signs_bind_as_in_arithmetic() -> None:
    (rule,) = load("law: (x + y) * -z - x / (y * z) => x")
    assert str(rule.rule) == "law: ((x + y) * (-z)) - (x / (y * z)) => x"


def test_rules_are_tried_in_the_order_of_the_file() -> None:
    ruleset = load("first: f(x) => g(x)\nsecond: f(x) => h(x)")
    assert [rule.name for _, rule in ruleset.rewrites(("f", "v"), {})] == ["first", "second"]
    assert [rule.name for rule in ruleset.without("first").by_root["f"]] == ["second"]


def test_a_rule_set_is_loaded_once() -> None:
    assert rules.rules("builders") is rules.all_rules()["builders"]


def test_firings_are_counted() -> None:
    FIRED.clear()
    ruleset = load("up: f(x) => g(x)\ndown: g(x) => f(x)")
    for _ in range(3):
        ruleset.rewrite_root(("f", "v"), {})
    assert FIRED == {"up": 3}
