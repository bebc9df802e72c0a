"""One run of code over numbers that stand for any: what its comparisons were taken to say, and what follows from that.

A fact is a polynomial that is 0 or more. The solver is asked whether facts can hold as if each product of variables were a
number of its own, with the products of facts by variables: what cannot hold then, cannot hold.

    c < p, j < n   -->   c·n + j < p·n, for (p - c - 1)·n and n - j - 1 are 0 or more
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from random import Random
from typing import Any

from ..solver import EFFORT, answer, z3
from ..verdict import suppose
from .natural import Polynomial, constant, variable
from .symbol import Symbol, TooLong

MOST_DECISIONS = 60
UNREACHED = 2**62
"""What no number is compared with: the limits of integers in files."""
POINTS = 200
"""How many numbers are drawn before the solver is asked."""
LARGEST = 12
"""The largest number in a counter-example."""


def another(name: str, names: Container[str]) -> str:
    """A name that is not among some."""
    return another(f"{name}'", names) if name in names else name


class Point(dict[str, int]):
    """A small number for each variable, drawn when it is asked for."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random

    def __missing__(self, name: str) -> int:
        return self.setdefault(name, self.random.randrange(7))


@dataclass(eq=False)
class Path:
    """One run of a law: what its comparisons were taken to say, and what follows for its numbers."""

    script: list[tuple[bool, bool]]
    """The outcomes to take first, each with whether the opposite is still to be taken."""
    asked: dict[str, bool]
    """What the solver was asked on all paths, and whether it can be."""
    taken: list[tuple[bool, bool]] = field(default_factory=list[tuple[bool, bool]])
    names: list[str] = field(default_factory=list[str])
    facts: list[Polynomial] = field(default_factory=list[Polynomial])
    """What is 0 or more, besides each variable."""
    zeros: list[Polynomial] = field(default_factory=list[Polynomial])
    """What is 0, and says of no variable what it is."""
    least: dict[str, int] = field(default_factory=dict[str, int])
    """What variables are at least."""
    known: dict[str, Polynomial] = field(default_factory=dict[str, Polynomial])
    """What variables are equal to."""
    points: list[Point] = field(default_factory=lambda: [Point(Random(seed)) for seed in range(POINTS)])
    """Numbers for which all facts hold, among some that are drawn: what holds for one of them is possible."""
    splits: dict[tuple[str, str], tuple[Symbol, Symbol]] = field(default_factory=dict[tuple[str, str], tuple[Symbol, Symbol]])
    fresh: int = 0

    # Numbers.

    def number(self, name: str, least: int = 0) -> Symbol:
        made = variable(self.named(name))
        if least:
            self.add(made - constant(least))
        return Symbol(made, self)

    def named(self, name: str) -> str:
        self.names.append(another(name, self.names))
        return self.names[-1]

    def integer(self, name: str) -> Symbol:
        name = self.named(name)
        return Symbol(variable(name) - variable(f"-{name}"), self)

    def index(self, name: str, size: Symbol | int) -> Symbol:
        made = self.number(name)
        suppose(made < size)
        return made

    # Questions.

    def at_least_zero(self, asked: Polynomial) -> bool:
        asked = self.reduced(asked)
        below = constant(-1) - asked
        if abs(asked.terms.get((), 0)) >= UNREACHED:
            return asked.terms[()] > 0
        if (known := self.surely(asked)) or self.surely(below):
            return known
        return self.decide(asked, below, lambda: self.add(asked), lambda: self.add(below))

    def is_zero(self, asked: Polynomial) -> bool:
        asked = self.reduced(asked)
        minus = asked.times(-1)
        if asked.value is not None:
            return asked.value == 0
        if any(self.surely(each - constant(1)) for each in (asked, minus)):
            return False
        if (shared := asked.common()) and len(asked.terms) > 1:
            # A product is 0 if one of its factors is.
            rest = asked.over(Polynomial({shared: 1}))
            return any(self.is_zero(variable(name)) for name in shared) or self.is_zero(rest)
        if self.surely(asked) or self.surely(minus):
            more = (asked if self.surely(asked) else minus) - constant(1)
            return self.decide(constant(-1) - more, more, lambda: self.equate(asked), lambda: self.add(more))
        if equal := self.at_least_zero(asked) and self.at_least_zero(minus):
            self.equate(asked)
        return equal

    def surely(self, asked: Polynomial) -> bool:
        """Whether it is seen at once that something is 0 or more: by the least that each variable is, and one fact."""
        if any(asked.at(each) < 0 for each in self.points[:8]):
            return False
        return self.is_natural(asked) or any(self.is_natural(asked - each) for each in self.facts)

    def is_natural(self, each: Polynomial) -> bool:
        top = each.degree
        return all(n > 0 or len(some) < top for some, n in each.terms.items()) and self.shifted(each).is_natural

    def shifted(self, each: Polynomial) -> Polynomial:
        """In terms of by how much variables are more than their least."""
        for name in sorted(each.variables):
            if least := self.least.get(name, 0):
                each = each.replaced(name, variable(name) + constant(least))
        return each

    def decide(self, yes: Polynomial, no: Polynomial, take: Callable[[], None], leave: Callable[[], None]) -> bool:
        """Takes an outcome that is possible: the one that the script says, or the first."""
        number = len(self.taken)
        if number >= MOST_DECISIONS:
            raise TooLong(f"a path has {MOST_DECISIONS} comparisons")
        if number < len(self.script):
            outcome, other = self.script[number]
        else:
            outcome = self.holds_somewhere(yes) or self.may(yes)
            other = outcome and (self.holds_somewhere(no) or self.may(no))
        self.taken.append((outcome, other))
        (take if outcome else leave)()
        return outcome

    def holds_somewhere(self, fact: Polynomial) -> bool:
        return any(fact.at(point) >= 0 for point in self.points)

    def may(self, *new: Polynomial, pairs: bool = False) -> bool:
        """Whether facts can hold, where each product of variables is taken for a number of its own: always, if not sure."""
        facts = [*self.facts, *(sign for each in self.zeros for sign in (each, each.times(-1))), *new]
        least = [variable(name) - constant(least) for name, least in self.least.items() if least]
        if not self.can([*facts, *least]):
            return False
        top = max((each.degree for each in facts), default=0)
        names = sorted({name for each in facts if each.degree > 1 for name in each.variables})
        many = [each * variable(name) for each in facts for name in names if each.degree < top]
        if not pairs:
            # Only products of which every part occurs: others say little.
            occur = {some for each in facts for some in each.terms}
            many = [each for each in many if all(some in occur or len(some) < 2 for some in each.terms)]
        else:
            many += [x * y for x, y in combinations_with_replacement(facts, 2) if x.degree + y.degree <= top]
        return not many or self.can([*facts, *least, *many])

    def can(self, facts: list[Polynomial]) -> bool:
        if (text := linear(facts)) not in self.asked:
            solver = z3.SimpleSolver()
            solver.set("rlimit", EFFORT)
            solver.from_string(text)
            self.asked[text] = solver.check() != z3.unsat
        return self.asked[text]

    # Facts.

    def reduced(self, each: Polynomial) -> Polynomial:
        for name in sorted(each.variables & self.known.keys()):
            each = each.replaced(name, self.known[name])
        return each

    def add(self, fact: Polynomial) -> None:
        """Takes note that something is 0 or more."""
        fact = self.reduced(fact)
        self.points = [each for each in self.points if fact.at(each) >= 0]
        if self.surely(fact):
            return
        if self.is_natural(fact.times(-1)):
            self.equate(fact)
            return
        names, number = fact - constant(fact.terms.get((), 0)), fact.terms.get((), 0)
        if (shared := names.common()) and number <= 0 and len(names.terms) == 1 and names.is_natural:
            for name in shared:
                self.least[name] = max(self.least.get(name, 0), -number if len(shared) == 1 and names.terms[shared] == 1 else 1)
        elif shared and (number < 0 or (number == 0 and all(self.least.get(name, 0) for name in shared))):
            # What a positive number times something is positive for is positive.
            self.add(names.over(Polynomial({shared: 1})) - constant(int(number < 0)))
            for name in shared if number < 0 else ():
                self.add(variable(name) - constant(1))
        if not self.surely(fact):
            self.facts = [*(each for each in self.facts if not self.is_natural(each - fact)), fact]

    def equate(self, zero: Polynomial) -> None:
        """Takes note that something is 0, and puts what follows for a variable in its place everywhere."""
        zero = self.without_positive(self.reduced(zero))
        shifted = self.shifted(zero)
        if any(each.is_natural for each in (shifted, shifted.times(-1))):
            # A sum of natural numbers is 0 if each of them is.
            for name in [name for name in shifted.variables if (name,) in shifted.terms]:
                self.replace(name, constant(self.least.get(name, 0)))
            zero = self.reduced(zero)
        for name in sorted(zero.variables, key=lambda name: (name.startswith("%"), name)):
            if (value := zero.solved(name)) is not None:
                self.replace(name, value)
                return
        if zero.value is None:
            self.zeros.append(zero)
            self.points = [each for each in self.points if zero.at(each) == 0]

    def replace(self, name: str, value: Polynomial) -> None:
        self.known = {other: each.replaced(name, value) for other, each in self.known.items()}
        self.known[name] = value
        facts, self.facts = [*self.facts, value - constant(self.least.pop(name, 0))], []
        for each in facts:
            self.add(each)
        zeros, self.zeros = self.zeros, []
        for each in zeros:
            self.equate(each)

    def without_positive(self, zero: Polynomial) -> Polynomial:
        """The other factor of a product with variables that are not 0."""
        positive = tuple(name for name in zero.common() if self.least.get(name, 0) > 0)
        return zero.over(Polynomial({positive: 1}))

    def digits(self, number: Polynomial, block: Polynomial) -> tuple[Symbol, Symbol]:
        """The quotient and the remainder by a positive number."""
        number, block = self.reduced(number), self.reduced(block)
        quotient = number.over(block)
        for tried in (constant(0), quotient):
            rest = number - tried * block
            if self.surely(rest) and self.surely(block - rest - constant(1)):
                return Symbol(tried, self), Symbol(rest, self)
        if len(block.terms) > 1 and not self.surely(number - quotient * block):
            quotient = constant(0)
        rest = number - quotient * block
        if rest.value is not None and block.value is not None:
            more, left = divmod(rest.value, block.value)
            return Symbol(quotient + constant(more), self), Symbol(constant(left), self)
        key = str(rest), str(block)
        if key not in self.splits:
            self.splits[key] = self.split(rest, block)
        more_, left_ = self.splits[key]
        return Symbol(quotient + more_.polynomial, self), left_

    def split(self, rest: Polynomial, block: Polynomial) -> tuple[Symbol, Symbol]:
        is_natural = self.at_least_zero(rest)
        if is_natural and self.at_least_zero(block - rest - constant(1)):
            return Symbol(constant(0), self), Symbol(rest, self)
        self.fresh += 1
        more, left = variable(f"%q{self.fresh}"), variable(f"%r{self.fresh}")
        self.add(more - constant(1))
        more = more if is_natural else more.times(-1)
        self.equate(rest - more * block - left)
        self.add(block - left - constant(1))
        return Symbol(more, self), Symbol(left, self)

    # A path that ends with false.

    def numbers(self, effort: int) -> Mapping[str, int] | None:
        """Numbers for which the path is taken; None if there are none. Raises TooLong if that is not found out."""
        every = [*self.facts, *self.zeros, *self.known.values(), *map(variable, self.least)]
        names = {name: z3.Int(name) for name in sorted({name for each in every for name in each.variables})}

        def term(one: Polynomial) -> Any:
            return z3.Sum(
                [z3.IntVal(0), *(z3.Product([z3.IntVal(n), *map(names.__getitem__, each)]) for each, n in one.terms.items())]
            )

        facts = [*(each >= 0 for each in names.values()), *(term(each) >= 0 for each in self.facts)]
        facts += [term(each) == 0 for each in self.zeros]
        facts += [names[each] >= least for each, least in self.least.items()]
        small = [each <= LARGEST for each in (*names.values(), *map(term, self.known.values()))]
        for tried in ([*facts, *small], facts):
            found, model = answer(tried, effort)
            if found == "sat":
                terms = {**names, **{name: term(each) for name, each in self.known.items()}}
                return {name: model.eval(each, model_completion=True).as_long() for name, each in terms.items()}
        if found == "unsat":
            return None
        raise TooLong("the solver does not know whether a path can be")


def linear(facts: list[Polynomial]) -> str:
    """Facts as text for the solver, each product as one number."""
    names = {each: f"|{'·'.join(each)}|" for each in sorted({each for one in facts for each in one.terms if each})}
    lines = [f"(declare-const {name} Int)(assert (>= {name} 0))" for name in names.values()]
    for each in names:
        # A product grows with its factors.
        for name in sorted(set(each)) if len(each) == 2 else ():
            other = names.get((each[0] if name == each[1] else each[1],))
            if other is not None and (name,) in names:
                lines.append(f"(assert (or (and (= {names[name,]} 0) (= {names[each]} 0)) (>= {names[each]} {other})))")
    for one in facts:
        terms = " ".join(_number(n) if not each else f"(* {_number(n)} {names[each]})" for each, n in one.terms.items())
        lines.append(f"(assert (>= (+ 0 {terms}) 0))")
    return "\n".join(lines)


def _number(n: int) -> str:
    return str(n) if n >= 0 else f"(- {-n})"
