"""Numbers of any size, for code that takes ints: the code runs once for each way in which its comparisons can come out.

    max(0, n - 2)   -->   0, where n <= 2;   n - 2, where n > 2

A symbol is a polynomial of variables. Where a comparison may be true or false, by what has been found so far, both are tried,
one run after another. `explored` wants a function to be true in all of them. A run in which it is not gives the numbers of a
counter-example, with which the function is called again: then Python computes with ints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import is_
from random import Random
from typing import Any, TypeAlias
from unittest.mock import patch

from ...dialects.ground import interned
from .solver import EFFORT, z3
from .values import Number
from .verdict import Verdict

Monomial: TypeAlias = tuple[str, ...]
"""The variables of a product, sorted."""
Polynomial: TypeAlias = Mapping[Monomial, int]


class Nothing(Exception):
    """Raised where a law says nothing about these numbers."""


class Undecided(Exception):
    """Raised where a law cannot be run with symbols, or the solver does not know what holds."""


class Pick:
    """Gives the numbers of a law. This one gives ints that it is told, or else draws them, and remembers them."""

    def __init__(self, given: Mapping[str, int] | None = None, random: Random | None = None, spread: int = 3) -> None:
        self.given, self.random, self.spread = given or {}, random, spread
        self.found = dict[str, int]()

    def __call__(self, name: str, least: Number = 0, end: Number | None = None) -> Number:
        """A number from `least` on and, if it is given, below `end`."""
        if self.random is not None:
            last = least + self.spread - 1 if end is None else end - 1
            if last < least:
                raise Nothing
            number = self.random.randint(least, last)
        else:
            number = self.given.get(name, least)
        self.found[name] = number
        return number

    def size(self, name: str) -> Number:
        return self(name, 1)


Law: TypeAlias = Callable[[Pick], bool]
"""Whether a law holds for the numbers that it picks. It raises `Nothing` for numbers of which it says nothing."""


@dataclass(eq=False)
class Run(Pick):
    """One run of a law on symbols: the comparisons whose outcomes are given, and then others, of which both may come out."""

    outcomes: list[bool]
    left: list[list[bool]]
    """Where runs that are still to be made add themselves: the outcomes up to a comparison that may come out differently."""
    solver: Any = field(default_factory=lambda: made_solver())
    lower: dict[str, Symbol] = field(default_factory=dict["str", "Symbol"])
    upper: dict[str, Symbol] = field(default_factory=dict["str", "Symbol"])
    at: int = 0
    is_sure: bool = True
    """Whether the solver knows that what has come out can come out."""

    def __call__(self, name: str, least: Number = 0, end: Number | None = None) -> Number:
        if end is not None and type(end - least) is int and end - least == 1:
            return least
        made = self.variable(name)
        self.lower[name] = Symbol.of(self, least)
        self.solver.add(z3.Int(name) >= self.lower[name].term)
        if end is not None:
            self.upper[name] = Symbol.of(self, end)
            self.solver.add(z3.Int(name) < self.upper[name].term)
            if not self.upper[name] > least:
                raise Nothing
        return made

    def variable(self, name: str) -> Symbol:
        return Symbol(self, {(name,): 1})

    def holds(self, fact: Any) -> bool:
        """Whether a comparison is true in this run. If both may be, the other one is left for another run."""
        if self.at < len(self.outcomes):
            outcome = self.outcomes[self.at]
        else:
            may, may_not = str(self.solver.check(fact)), str(self.solver.check(z3.Not(fact)))
            if may == may_not == "unsat":
                raise Nothing
            outcome = may != "unsat"
            if outcome and may_not != "unsat":
                self.left.append([*self.outcomes, False])
            self.outcomes.append(outcome)
        self.at += 1
        self.solver.add(fact if outcome else z3.Not(fact))
        return outcome

    def size(self, name: str) -> Number:
        """A number that is 1 or larger, and 1 itself where it is 1."""
        number = self(name, 1)
        if self.holds(z3.Int(name) == 1):
            return 1
        self.lower[name] = Symbol.of(self, 2)
        return number

    def proves(self, fact: Any) -> bool:
        return str(self.solver.check(z3.Not(fact))) == "unsat"

    def is_never_negative(self, terms: Polynomial) -> bool:
        """Whether a polynomial is at least 0 by the bounds of its variables alone.

        A variable is its least value and more, or its largest and less. If all coefficients are then positive, it is.
        """
        now, n = dict(terms), 0
        for name in reversed([*self.lower]):
            if not any(name in each for each in now):
                continue
            falls = any(coefficient < 0 and name in each for each, coefficient in now.items())
            if falls and name in self.upper:
                by = self.upper[name] - 1 - Symbol(self, {(f"{name}-",): 1})
            else:
                by = self.lower[name] + Symbol(self, {(f"{name}+",): 1})
            now, n = dict(replaced(now, name, by.terms)), n + 1
        return all(coefficient >= 0 for coefficient in now.values())

    def numbers(self) -> dict[str, int]:
        """Numbers with which a run comes out like this."""
        if str(self.solver.check()) != "sat":
            return {}
        model = self.solver.model()
        return {name: model.eval(z3.Int(name), model_completion=True).as_long() for name in self.lower}


def made_solver() -> Any:
    solver = z3.Solver()
    solver.set("rlimit", EFFORT)
    solver.set("random_seed", 0)
    return solver


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
    def __class__(self) -> type:
        """Code that asks whether it has an int takes a symbol for one; Python's own code, which would need its digits, does not."""
        return int

    @staticmethod
    def of(run: Run, number: Number) -> Symbol:
        return number if type(number) is Symbol else Symbol(run, {(): number} if number else {})

    @property
    def constant(self) -> int | None:
        return self.terms.get((), 0) if len(self.terms) == (() in self.terms) else None

    @property
    def term(self) -> Any:
        """The number as a term of the solver."""
        products = [coefficient * z3.Product(*map(z3.Int, each)) if each else z3.IntVal(coefficient) for each, coefficient in self.terms.items()]
        return z3.Sum(*products) if products else z3.IntVal(0)

    def __add__(self, other: Number) -> Symbol:
        return Symbol(self.run, added(dict(self.terms), Symbol.of(self.run, other).terms))

    def __sub__(self, other: Number) -> Symbol:
        return Symbol(self.run, added(dict(self.terms), Symbol.of(self.run, other).terms, -1))

    def __mul__(self, other: Number) -> Symbol:
        return Symbol(self.run, multiplied(self.terms, Symbol.of(self.run, other).terms))

    def __neg__(self) -> Symbol:
        return self * -1

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
            if (run.is_never_negative(rest.terms) or run.proves(rest.term >= 0)) and (
                run.is_never_negative((by - rest - 1).terms) or run.proves(rest.term < by.term)
            ):
                return whole, rest
        number = len(run.lower)
        rest = run(f"rest {number}", 0, by)
        run.lower[f"quotient {number}"] = Symbol.of(run, 0) - (1 << 60)
        whole = run.variable(f"quotient {number}")
        run.solver.add((self - whole * by - rest).term == 0)
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
        if self.run.is_never_negative(gap.terms):
            return True
        if self.run.is_never_negative((-gap - 1).terms):
            return False
        return self.run.holds(gap.term >= 0)

    def __lt__(self, other: Number) -> bool:
        return self.is_less(other)

    def __gt__(self, other: Number) -> bool:
        return Symbol.of(self.run, other).is_less(self)

    def __le__(self, other: Number) -> bool:
        return not self > other

    def __ge__(self, other: Number) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int) or (type(other) is Symbol and other.run is not self.run):
            return False
        gap = self - other
        if gap.constant is not None:
            return not gap.constant
        if any(self.run.is_never_negative((each - 1).terms) for each in (gap, -gap)):
            return False
        return self.run.holds(gap.term == 0)

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        """Equal numbers have equal hashes, whatever they turn out to be. Of plain numbers, only 0 is among symbols in one set."""
        return 0

    def __index__(self) -> int:
        if self.constant is None:
            raise Undecided(f"{self} has to be known")
        return self.constant

    def __repr__(self) -> str:
        return " + ".join("*".join([*([str(n)] if n != 1 or not each else []), *each]) for each, n in self.terms.items()) or "0"


BEYOND = 1 << 62
"""Numbers that no size reaches."""
RUNS = 20_000
"""The most runs of one law."""


def explored(law: Law) -> Verdict:
    """Proves a law for all numbers, or finds numbers for which it does not hold."""
    left, count, unsure = list[list[bool]]([[]]), 0, ""
    while left:
        count += 1
        if count > RUNS:
            return Verdict("not proved", f"more than {RUNS} ways")
        run = Run(left.pop(), left)
        try:
            with patch.object(interned, "_made", Apart()):
                holds = law(run)
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


def fails(law: Law, pick: Pick) -> str:
    """The numbers for which a law does not hold, computed with ints; empty if it holds."""
    try:
        return "" if law(pick) else ", ".join(f"{name} = {number}" for name, number in pick.found.items())
    except Nothing:
        return ""


class Apart:
    """The table of terms during a run: terms of symbols are equal if they are made of the same polynomials, and are forgotten."""

    def __init__(self) -> None:
        self.plain, self.own = interned._made, dict[object, Any]()

    def get(self, key: object) -> Any:
        known = named(key)
        return self.plain.get(key) if known is key else self.own.get(known)

    def setdefault(self, key: object, made: Any) -> Any:
        known = named(key)
        return self.plain.setdefault(key, made) if known is key else self.own.setdefault(known, made)


def named(key: object) -> object:
    """A key with its symbols as they are written; the key itself if it has none."""
    if type(key) is Symbol:
        return "symbol", frozenset(key.terms.items())
    if type(key) is tuple:
        parts = tuple(map(named, key))
        return key if all(map(is_, parts, key)) else parts
    return key
