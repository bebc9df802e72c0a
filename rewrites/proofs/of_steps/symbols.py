"""Numbers of any size, for code that takes ints: the code runs once for each way in which its comparisons can come out.

    max(0, n - 2)   -->   0, where n <= 2;   n - 2, where n > 2

A symbol is a polynomial of variables. Where a comparison may be true or false, by what has been found so far, both are tried,
one run after another. `explored` wants a function to be true in all of them. A run in which it is not gives the numbers of a
counter-example, with which the function is called again: then Python computes with ints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import gcd, prod
from operator import is_
from random import Random
from typing import Any, TypeAlias, cast
from unittest.mock import patch

from ....dialects.ground import interned
from ..solver import EFFORT, z3
from ..values import Number
from ..verdict import Nothing, Verdict

Monomial: TypeAlias = tuple[str, ...]
"""The variables of a product, sorted."""
Polynomial: TypeAlias = Mapping[Monomial, int]


class Undecided(Exception):
    """Raised where a law cannot be run with symbols, or the solver does not know what holds."""


class Pick:
    """Gives the numbers of a law. This one gives ints that it is told, or else draws them, and remembers them."""

    def __init__(self, given: Mapping[str, int] | None = None, random: Random | None = None, spread: int = 3) -> None:
        self.given, self.random, self.spread = given or {}, random, spread
        self.found = dict[str, int]()

    def __call__(self, name: str, least: Number = 0, end: Number | None = None) -> Number:
        """A number from `least` on and, if it is given, below `end`."""
        last = least + self.spread - 1 if end is None else end - 1
        if last < least:
            raise Nothing
        return self.drawn(name, least, last)

    def drawn(self, name: str, least: int, last: int) -> int:
        if name not in self.found:
            drawn = self.random.randint(least, last) if self.random is not None else least
            self.found[name] = self.given.get(name, drawn)
        return self.found[name]

    def integer(self, name: str) -> Number:
        """A number of either sign."""
        return self.drawn(name, -self.spread, self.spread)

    def size(self, name: str) -> Number:
        """A number that is 1 or larger."""
        return self(name, 1)

    def digit(self, name: str, count: Number) -> Number:
        """A number below another one. If that is known, so is this."""
        number = self(name, 0, count)
        return next(each for each in range(count) if number == each) if type(count) is int else number


Law: TypeAlias = Callable[[Pick], bool]
"""Whether a law holds for the numbers that it picks. It raises `Nothing` for numbers of which it says nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has come out of a question, and whether the solver was needed for it."""

    is_true: bool
    is_fact: bool


class Trail:
    """The facts of a run, in their order. Of the next run the first ones are the same, so the solver keeps them."""

    def __init__(self) -> None:
        self.solver, self.length, self.products = z3.Solver(), 0, dict[Monomial, Any]()
        self.solver.set("rlimit", EFFORT)
        self.solver.set("random_seed", 0)

    def add(self, fact: Any) -> None:
        self.solver.push()
        self.solver.add(fact)
        self.length += 1

    def product(self, variables: Monomial) -> Any:
        if variables not in self.products:
            self.products[variables] = prod(map(z3.Int, variables)) if variables else z3.IntVal(1)
        return self.products[variables]

    def back(self, length: int) -> None:
        self.solver.pop(self.length - length)
        self.length = length

    def may(self, *facts: Any) -> bool:
        return str(self.solver.check(*facts)) != "unsat"


@dataclass(eq=False)
class Run(Pick):
    """One run of a law on symbols: the questions whose outcomes are given, and then others, of which both may come out."""

    outcomes: list[Outcome]
    left: list[tuple[list[Outcome], int]]
    """Where runs that are still to be made add themselves: the outcomes, and how many facts are the same."""
    trail: Trail
    same: int
    """How many facts are on the trail that this run would add again."""
    lower: dict[str, Symbol] = field(default_factory=dict["str", "Symbol"])
    upper: dict[str, Symbol] = field(default_factory=dict["str", "Symbol"])
    known: dict[object, bool] = field(default_factory=dict[object, bool])
    """What has been asked."""
    found: dict[str, int] = field(default_factory=dict[str, int])
    at: int = 0

    def __call__(self, name: str, least: Number = 0, end: Number | None = None) -> Number:
        if end is not None and type(end - least) is int and end - least == 1:
            return least
        made = self.variable(name)
        self.lower[name] = Symbol.of(self, least)
        self.fact(lambda: z3.Int(name) >= self.lower[name].term)
        if end is not None:
            self.upper[name] = Symbol.of(self, end)
            self.fact(lambda: z3.Int(name) < self.upper[name].term)
            if not self.upper[name] > least:
                raise Nothing
        return made

    def integer(self, name: str) -> Symbol:
        return self.variable(name)

    def variable(self, name: str) -> Symbol:
        self.found.setdefault(name, 0)
        return Symbol(self, {(name,): 1})

    def rest(self, name: str) -> Symbol:
        """What a variable is more than its least value, or less than its largest: a number that is not negative."""
        return Symbol(self, {(f"{name}'s rest",): 1})

    def fact(self, made: Callable[[], Any]) -> None:
        if self.same:
            self.same -= 1
        else:
            self.trail.add(made())

    def holds(self, kind: str, terms: Polynomial) -> bool:
        """Whether a number `is zero`, or `is natural`, in this run. If both may be, the other is left for another run.

        A table may ask the same twice, or not, by where its keys are in memory.
        """
        key = kind, frozenset(terms.items())
        if key not in self.known:
            if self.at == len(self.outcomes):
                self.outcomes.append(self.asked(kind, terms))
            found = self.outcomes[self.at]
            self.at, self.known[key] = self.at + 1, found.is_true
            if found.is_fact:
                self.fact(lambda: fact_of(kind, Symbol(self, terms).term, found.is_true))
        return self.known[key]

    def asked(self, kind: str, terms: Polynomial) -> Outcome:
        """What comes out of a new question: by the bounds of the variables, or by the solver."""
        more, less = ((Symbol(self, terms) * sign - 1).terms for sign in (1, -1))
        if kind == "is natural":
            if self.is_never_negative(terms):
                return Outcome(True, False)
            if self.is_never_negative(less):
                return Outcome(False, False)
        elif self.is_never_negative(more) or self.is_never_negative(less):
            return Outcome(False, False)
        term = Symbol(self, terms).term
        may = self.trail.may(fact := fact_of(kind, term, True))
        may_not = not may or self.trail.may(z3.Not(fact))
        if may and may_not:
            self.left.append(([*self.outcomes, Outcome(False, True)], self.trail.length))
        return Outcome(may, True)

    def size(self, name: str) -> Number:
        number = self(name, 1)
        if self.holds("is zero", (number - 1).terms):
            return 1
        self.lower[name] = Symbol.of(self, 2)
        return number

    def is_never_negative(self, terms: Polynomial) -> bool:
        """Whether a polynomial is at least 0 by the bounds of its variables alone.

        A variable is its least value and more, or its largest and less. If no coefficient is negative then, it is.
        """
        now = terms
        for name in reversed(self.lower):
            if any(name in each for each in now):
                falls = any(coefficient < 0 and name in each for each, coefficient in now.items())
                is_below = falls and name in self.upper
                by = self.upper[name] - 1 - self.rest(name) if is_below else self.lower[name] + self.rest(name)
                now = replaced(now, name, by.terms)
        return all(coefficient >= 0 and not any(name in self.found for name in each) for each, coefficient in now.items())

    def numbers(self) -> dict[str, int]:
        """Numbers with which a run comes out like this."""
        if str(self.trail.solver.check()) != "sat":
            return {}
        model = self.trail.solver.model()
        return {name: model.eval(z3.Int(name), model_completion=True).as_long() for name in self.found}


def fact_of(kind: str, term: Any, is_true: bool) -> Any:
    fact = term == 0 if kind == "is zero" else term >= 0
    return fact if is_true else z3.Not(fact)


def replaced(terms: Polynomial, name: str, by: Polynomial) -> Polynomial:
    """A polynomial with another one in place of a variable."""
    found: dict[Monomial, int] = {}
    for each, coefficient in terms.items():
        part: dict[Monomial, int] = {tuple(other for other in each if other != name): coefficient}
        for _ in range(each.count(name)):
            part = multiplied(part, by)
        added(found, part)
    return found


def added(found: dict[Monomial, int], terms: Polynomial, times: int = 1) -> dict[Monomial, int]:
    for each, coefficient in terms.items():
        found[each] = found.get(each, 0) + coefficient * times
        if not found[each]:
            del found[each]
    return found


def multiplied(one: Polynomial, other: Polynomial) -> dict[Monomial, int]:
    found: dict[Monomial, int] = {}
    for x, p in one.items():
        added(found, {tuple(sorted(x + y)): q for y, q in other.items()}, p)
    return found


def divided(terms: Polynomial, by: Polynomial) -> tuple[dict[Monomial, int], dict[Monomial, int]]:
    """The terms that one term divides, divided by it, and the others."""
    ((unit, size),) = by.items()
    whole, rest = dict[Monomial, int](), dict[Monomial, int]()
    for each, coefficient in terms.items():
        left = list(each)
        for name in unit:
            if name in left:
                left.remove(name)
        quotient, remainder = divmod(coefficient, size)
        if len(left) + len(unit) != len(each):
            quotient, remainder = 0, coefficient
        added(whole, {tuple(left): quotient} if quotient else {})
        added(rest, {each: remainder} if remainder else {})
    return whole, rest


class Symbol:
    """A number that is a polynomial of variables of a run."""

    __slots__ = ("run", "terms")

    def __init__(self, run: Run, terms: Polynomial) -> None:
        self.run, self.terms = run, terms

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Code that asks whether it has an int takes a symbol for one; Python's own, which needs its digits, does not."""
        return int

    @staticmethod
    def of(run: Run, number: Number) -> Symbol:
        return number if type(number) is Symbol else Symbol(run, {(): number} if number else {})

    @property
    def constant(self) -> int | None:
        return self.terms.get((), 0) if len(self.terms) == (() in self.terms) else None

    @property
    def plain(self) -> Number:
        return self if self.constant is None else self.constant

    @property
    def term(self) -> Any:
        """The number as a term of the solver."""
        return sum(
            (n * self.run.trail.product(each) if n != 1 else self.run.trail.product(each) for each, n in self.terms.items()), 0
        )

    def __add__(self, other: Number) -> Symbol:
        return Symbol(self.run, added(dict(self.terms), Symbol.of(self.run, other).terms))

    def __sub__(self, other: Number) -> Symbol:
        return Symbol(self.run, added(dict(self.terms), Symbol.of(self.run, other).terms, -1))

    def __mul__(self, other: Number) -> Symbol:
        return Symbol(self.run, multiplied(self.terms, Symbol.of(self.run, other).terms))

    def __neg__(self) -> Symbol:
        return self * -1

    def __pos__(self) -> Symbol:
        return self

    def __rsub__(self, other: Number) -> Symbol:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __abs__(self) -> Symbol:
        return self if self >= 0 else -self

    def __divmod__(self, other: Number) -> tuple[Symbol, Symbol]:
        run, by = self.run, Symbol.of(self.run, other)
        if not by > 0:
            raise Undecided("divided by a number that is not positive")
        if len(by.terms) == 1:
            whole, rest = (Symbol(run, terms) for terms in divided(self.terms, by.terms))
            if rest >= 0 and rest < by:
                return whole.plain, rest.plain
        number = len(run.found)
        rest = run(f"rest {number}", 0, by)
        whole = run.variable(f"quotient {number}")
        run.fact(lambda: (self - whole * by - rest).term == 0)
        return whole, rest

    def __rdivmod__(self, other: Number) -> tuple[Symbol, Symbol]:
        return divmod(Symbol.of(self.run, other), self)

    def __floordiv__(self, other: Number) -> Symbol:
        return divmod(self, other)[0]

    def __mod__(self, other: Number) -> Symbol:
        return divmod(self, other)[1]

    def __rfloordiv__(self, other: Number) -> Symbol:
        return divmod(other, self)[0]

    def __rmod__(self, other: Number) -> Symbol:
        return divmod(other, self)[1]

    def is_less(self, other: Number) -> bool:
        if type(other) is int and other > BEYOND:
            return True
        gap = Symbol.of(self.run, other) - self - 1
        if gap.constant is not None:
            return gap.constant >= 0
        return self.run.holds("is natural", gap.terms)

    def __lt__(self, other: Number) -> bool:
        return self.is_less(other)

    def __gt__(self, other: Number) -> bool:
        return Symbol.of(self.run, other).is_less(self)

    def __le__(self, other: Number) -> bool:
        return not self > other

    def __ge__(self, other: Number) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        if (type(other) is Symbol and other.run is not self.run) or not isinstance(other, int):
            return False
        gap = self - other
        if gap.constant is not None:
            return not gap.constant
        return self.run.holds("is zero", gap.terms)

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        """Equal numbers have equal hashes, whatever they turn out to be. Of plain numbers, only 0 is in a set with symbols."""
        return 0

    def __index__(self) -> int:
        if self.constant is None:
            raise Undecided(f"{self} has to be known")
        return self.constant

    def __repr__(self) -> str:
        return " + ".join("*".join([*([str(n)] if n != 1 or not each else []), *each]) for each, n in self.terms.items()) or "0"


BEYOND = 1 << 62
"""Numbers that no size reaches."""
RUNS = 4_000
"""The most runs of one law."""


def explored(law: Law) -> Verdict:
    """Proves a law for all numbers, or finds numbers for which it does not hold."""
    left, count, unsure, trail = list[tuple[list[Outcome], int]]([([], 0)]), 0, "", Trail()
    while left:
        count += 1
        if count > RUNS:
            return Verdict("not proved", f"more than {RUNS} ways")
        outcomes, same = left.pop()
        trail.back(same)
        run = Run(outcomes, left, trail, same)
        try:
            with patch.object(interned, "_made", Apart()), patch.object(interned, "_plain", kept):
                holds = tried(law, run)
        except Nothing:
            continue
        except Undecided as why:
            return Verdict("not proved", str(why))
        if not holds:
            numbers = run.numbers()
            if numbers and (shown := fails(law, Pick(numbers))):
                return Verdict("refuted", shown)
            unsure = f"unknown whether it holds for {numbers}"
    return Verdict("not proved", unsure) if unsure else Verdict("proved", f"{count} ways")


def tried(law: Law, pick: Pick) -> bool:
    """Whether a law holds; ops that cannot be emitted are wrong ones."""
    try:
        return law(pick)
    except (ValueError, IndexError):
        return False


def fails(law: Law, pick: Pick) -> str:
    """The numbers for which a law does not hold, computed with ints; empty if it holds."""
    try:
        return "" if tried(law, pick) else ", ".join(f"{name} = {number}" for name, number in pick.found.items())
    except Nothing:
        return ""


def common(*numbers: Number) -> Number:
    """The greatest common divisor of numbers, which are multiples of one product of variables."""
    symbols = [each for each in numbers if type(each) is Symbol]
    if not symbols:
        return gcd(*numbers)
    products = {each for symbol in symbols for each in symbol.terms}
    if len(products) > 1 or len(symbols) < len(numbers):
        raise Undecided(f"the greatest common divisor of {', '.join(map(str, numbers))}")
    (product,) = products
    return Symbol(symbols[0].run, {product: gcd(*(symbol.terms[product] for symbol in symbols))})


class Apart:
    """The table of terms during a run. Those of symbols are one if they have the same polynomials; they are forgotten."""

    def __init__(self) -> None:
        self.plain: Any = interned._made  # pyright: ignore[reportPrivateUsage]
        self.own = dict[object, Any]()

    def get(self, key: object) -> Any:
        known = named(key)
        return self.plain.get(key) if known is key else self.own.get(known)

    def setdefault(self, key: object, made: Any) -> Any:
        known = named(key)
        return self.plain.setdefault(key, made) if known is key else self.own.setdefault(known, made)


def kept(field: object) -> object:
    """A field of a term, as it is."""
    return field


def named(key: object) -> object:
    """A key with its symbols as they are written; the key itself if it has none."""
    if type(key) is Symbol:
        return "symbol", frozenset(key.terms.items())
    if not isinstance(key, tuple):
        return key
    parts = cast("tuple[object, ...]", key)
    found: tuple[object, ...] = tuple(map(named, parts))
    return parts if all(map(is_, found, parts)) else found
