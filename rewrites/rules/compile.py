"""Compiles rules to Python closures, indexed by the operation at the root of their left side.

A rule is tried by giving it the root's arguments, before the root itself exists: a constructor that is about to make
`slice(L, x)` asks the rules for `slice` first, and allocates nothing if one of them answers. Variables are numbered
slots of a list, decided when the rule is compiled, so that trying a rule is a handful of calls and no dictionary.
A term is a tuple, `(head, *args)`; anything else is a leaf, which rules do not look into.

    ruleset = load("beta: slice(L, build(L, x)) => x")
    ruleset.rewrite_root(("slice", "rows", ("build", "rows", "y")), {})      -->  ("y", beta)
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from .parse import parse
from .rule import (
    All,
    AnyOf,
    Compare,
    Condition,
    Holds,
    Rule,
    RuleApply,
    RuleNumber,
    Symbol,
    Term,
    Variable,
    subterms,
    terms_of,
)

# The functions that a condition may call on the values of the variables, by name (`size`, `disjoint`, `widening`).
Environment = Mapping[str, Callable[..., object]]

Slots = list[object]
Matcher = Callable[[Slots, object], bool]
SlotMaker = Callable[[Slots], object]
SlotReader = Callable[[Slots, Environment], object]
Test = Callable[[Slots, Environment], bool]

FIRED: Counter[str] = Counter()
"""How often each rule has fired.

A law that no end-to-end test fires is either dead or untested, and the test suite rejects it. `make fuzz` deletes each law
in turn and expects a failure. Counting is one dictionary update, so it is always on.
"""

_UNBOUND = object()


def head_of(term: object) -> str | None:
    """The operation at the root of a term, or None for a leaf."""
    if not isinstance(term, tuple) or not term:
        return None
    head = cast("tuple[object, ...]", term)[0]
    return head if isinstance(head, str) else None


def args_of(term: object) -> tuple[object, ...]:
    """The arguments of the root of a term that is no leaf."""
    return cast("tuple[object, ...]", term)[1:]


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule with the closures that try it: they match the arguments, test the condition, and make the right side."""

    rule: Rule
    matchers: tuple[Matcher, ...]
    test: Test | None
    right: SlotMaker
    slots: int

    @property
    def name(self) -> str:
        return self.rule.name

    def __call__(self, args: tuple[object, ...], env: Environment) -> object | None:
        """Applies the rule to the root's arguments. Returns the result, or None if the rule does not apply."""
        if len(args) != len(self.matchers):
            return None
        slots: Slots = [_UNBOUND] * self.slots
        for matcher, argument in zip(self.matchers, args, strict=True):
            if not matcher(slots, argument):
                return None
        if self.test is not None and not self.test(slots, env):
            return None
        FIRED[self.rule.name] += 1
        return self.right(slots)


class RuleSet:
    """Compiled rules, in the order of their file. `by_root` maps an operation to the rules that may apply to it."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(_compiled(rule) for rule in rules)
        self.by_root: dict[str, list[CompiledRule]] = {}
        for rule in self.rules:
            self.by_root.setdefault(rule.rule.left.head, []).append(rule)

    def rewrite_root(self, term: object, env: Environment) -> tuple[object, CompiledRule] | None:
        """Returns the result of the first rule that applies at the root, with that rule; None if none applies."""
        return next(self.rewrites(term, env), None)

    def rewrites(self, term: object, env: Environment) -> Iterator[tuple[object, CompiledRule]]:
        """Yields the result of each rule that applies at the root, in the order of the file."""
        for rule in self.by_root.get(head_of(term) or "", ()):
            if (made := rule(args_of(term), env)) is not None:
                yield made, rule

    def without(self, *names: str) -> RuleSet:
        """Returns the rules without these, for tests that remove a law."""
        return RuleSet(rule.rule for rule in self.rules if rule.name not in names)

    def __getitem__(self, name: str) -> CompiledRule:
        return next(rule for rule in self.rules if rule.name == name)

    def __iter__(self) -> Iterator[CompiledRule]:
        return iter(self.rules)

    def __str__(self) -> str:
        return "\n".join(str(rule.rule) for rule in self.rules)


def load(source: Path | str) -> RuleSet:
    """Loads rules from a file, given its path, or from a text. Raises `Error` if it is not a rule file."""
    if isinstance(source, Path):
        return RuleSet(parse(source.read_text(encoding="utf-8"), source.name))
    return RuleSet(parse(source))


def _compiled(rule: Rule) -> CompiledRule:
    slots = _slots(rule)
    bound: set[str] = set()
    matchers = tuple(_matcher(argument, slots, bound) for argument in rule.left.args)
    test = _test(rule.where, slots, bound) if rule.where is not None else None
    return CompiledRule(rule, matchers, test, _maker(rule.right, slots), len(slots))


def _slots(rule: Rule) -> dict[str, int]:
    """Numbers the variables of a rule, in order of appearance."""
    terms = [rule.left, *(terms_of(rule.where) if rule.where is not None else ())]
    names = (part.name for term in terms for part in subterms(term) if isinstance(part, Variable))
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _matcher(pattern: Term, slots: dict[str, int], bound: set[str]) -> Matcher:
    """Compiles a pattern to a closure that matches one argument.

    A variable is bound where it first appears, and compared later.
    """
    match pattern:
        case Variable(name):
            slot = slots[name]
            if name in bound:
                return lambda found, term: found[slot] == term
            bound.add(name)
            return _binder(slot)
        case Symbol(value) | RuleNumber(value):
            return lambda found, term: term == value
        case RuleApply(head, args):
            return _root(head, tuple(_matcher(argument, slots, bound) for argument in args))


def _binder(slot: int) -> Matcher:
    def bind(found: Slots, term: object) -> bool:
        found[slot] = term
        return True

    return bind


def _root(head: str, matchers: tuple[Matcher, ...]) -> Matcher:
    count = len(matchers)

    def match_root(found: Slots, term: object) -> bool:
        if head_of(term) != head or len(args := args_of(term)) != count:
            return False
        return all(matcher(found, argument) for matcher, argument in zip(matchers, args, strict=True))

    return match_root


def _maker(term: Term, slots: dict[str, int]) -> SlotMaker:
    """Compiles a term of the right side to a closure that makes it from the values of the variables."""
    match term:
        case Variable(name):
            slot = slots[name]
            return lambda found: found[slot]
        case Symbol(value) | RuleNumber(value):
            return lambda found: value
        case RuleApply(head, args):
            makers = tuple(_maker(argument, slots) for argument in args)
            return lambda found: (head, *(make(found) for make in makers))


def _test(condition: Condition, slots: dict[str, int], bound: set[str]) -> Test:
    match condition:
        case All(parts):
            tests = tuple(_test(part, slots, bound) for part in parts)
            return lambda found, env: all(test(found, env) for test in tests)
        case AnyOf(parts):
            tests = tuple(_test(part, slots, bound) for part in parts)
            return lambda found, env: any(test(found, env) for test in tests)
        case Holds(name, args, negated):
            readers = tuple(_reader(argument, slots) for argument in args)
            return lambda found, env: bool(env[name](*(read(found, env) for read in readers))) != negated
        case Compare("=", Variable(name), right) if name not in bound:
            bound.add(name)
            return _let(slots[name], _reader(right, slots))
        case Compare(sign, left, right):
            return _comparison(sign, _reader(left, slots), _reader(right, slots))


def _let(slot: int, read: SlotReader) -> Test:
    def let(found: Slots, env: Environment) -> bool:
        found[slot] = read(found, env)
        return found[slot] is not None

    return let


def _comparison(sign: str, left: SlotReader, right: SlotReader) -> Test:
    """Compiles a comparison. It fails if a side has no value, such as a quotient that is not an integer."""
    wanted = sign == "="

    def test(found: Slots, env: Environment) -> bool:
        a, b = left(found, env), right(found, env)
        return a is not None and b is not None and (a == b) == wanted

    return test


def _reader(term: Term, slots: dict[str, int]) -> SlotReader:
    """Compiles a term of a condition to a closure. Infix signs are integer arithmetic, names functions in the environment."""
    match term:
        case Variable(name):
            slot = slots[name]
            return lambda found, _: found[slot]
        case Symbol(value) | RuleNumber(value):
            return lambda found, _: value
        case RuleApply(head, args):
            readers = tuple(_reader(argument, slots) for argument in args)
            if head in _ARITHMETIC:
                compute = _ARITHMETIC[head]
                return lambda found, env: compute(*(read(found, env) for read in readers))
            return lambda found, env: env[head](*(read(found, env) for read in readers))


def _exact(numerator: int, denominator: int) -> int | None:
    return numerator // denominator if denominator and numerator % denominator == 0 else None


_ARITHMETIC: dict[str, Callable[..., object]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _exact,
    "neg": operator.neg,
}
