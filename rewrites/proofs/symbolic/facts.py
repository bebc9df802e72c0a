"""What is known of numbers that stand for any, and what follows from that.

A fact is a polynomial that is 0 or more. The solver is asked whether facts can hold as if each product of variables were a
number of its own, with the products of facts by variables: what cannot hold then, cannot hold.

    c < p, j < n   -->   c·n + j < p·n, for (p - c - 1)·n and n - j - 1 are 0 or more
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from random import Random
from typing import Any

from ..solver import EFFORT, answer, z3
from .polynomial import Polynomial, constant, variable
from .symbol import Undecided

POINTS = 200
"""How many numbers are drawn before the solver is asked."""
LARGEST = 12
"""The largest number in a counter-example."""


class Point(dict[str, int]):
    """A small number for each variable, drawn when it is asked for."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random

    def __missing__(self, name: str) -> int:
        return self.setdefault(name, self.random.randrange(7))


@dataclass(eq=False)
class Facts:
    """What holds at one place of a run. A copy goes on by itself: no field is changed in its place."""

    asked: dict[str, bool]
    """What the solver was asked in all runs, and whether it can be."""
    facts: tuple[Polynomial, ...] = ()
    """What is 0 or more, besides each variable."""
    zeros: tuple[Polynomial, ...] = ()
    """What is 0, and says of no variable what it is."""
    least: Mapping[str, int] = field(default_factory=dict[str, int])
    """What variables are at least."""
    ends: Mapping[str, Polynomial] = field(default_factory=dict[str, Polynomial])
    """What variables are below."""
    known: Mapping[str, Polynomial] = field(default_factory=dict[str, Polynomial])
    """What variables are equal to."""
    points: list[Point] = field(default_factory=lambda: [Point(Random(seed)) for seed in range(POINTS)])
    """Numbers for which all facts hold, among some that are drawn: what holds for one of them is possible."""

    # What follows.

    def reduced(self, each: Polynomial) -> Polynomial:
        for name in sorted(each.variables & self.known.keys()):
            each = each.replaced(name, self.known[name])
        return each

    def surely(self, asked: Polynomial) -> bool:
        """Whether it is seen at once that something is 0 or more: from the facts, or by the ends of variables."""
        return self.follows(asked) or (self.may_follow(asked) and self.is_within_ends(asked))

    def follows(self, asked: Polynomial) -> bool:
        """Whether something is 0 or more by the least that each variable is, and one fact."""
        return self.may_follow(asked) and (self.is_natural(asked) or any(self.is_natural(asked - each) for each in self.facts))

    def may_follow(self, asked: Polynomial) -> bool:
        return all(asked.at(each) >= 0 for each in self.points[:8])

    def is_natural(self, each: Polynomial) -> bool:
        top = each.degree
        return all(n > 0 or len(some) < top for some, n in each.terms.items()) and self.shifted(each).is_natural

    def is_within_ends(self, each: Polynomial) -> bool:
        """Whether something is 0 or more where each variable that it falls with is the last one before its end."""
        for name in reversed([*self.ends]):
            if any(n < 0 and name in some for some, n in each.terms.items()):
                last = self.reduced(self.ends[name]) - constant(1)
                each = each.replaced(name, last - variable(f"{name} from its end"))
        return self.shifted(each).is_natural

    def shifted(self, each: Polynomial) -> Polynomial:
        """In terms of by how much variables are more than their least."""
        for name in sorted(each.variables):
            if least := self.least.get(name, 0):
                each = each.replaced(name, variable(name) + constant(least))
        return each

    def may(self, *new: Polynomial, pairs: bool = False) -> bool:
        """Whether facts can hold, where each product of variables is taken for a number of its own: always, if not sure."""
        if new and any(all(each.at(point) >= 0 for each in new) for point in self.points):
            return True
        facts = [*self.facts, *(sign for each in self.zeros for sign in (each, each.times(-1))), *new]
        facts = connected(facts, new) if new else facts
        names = {name for each in facts for name in each.variables}
        least = [variable(name) - constant(least) for name, least in self.least.items() if least and name in names]
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

    # What is added.

    def add(self, fact: Polynomial) -> None:
        """Takes note that something is 0 or more."""
        fact = self.reduced(fact)
        self.points = [each for each in self.points if fact.at(each) >= 0]
        if self.follows(fact):
            return
        if self.is_natural(fact.times(-1)):
            self.equate(fact)
            return
        names, number = fact - constant(fact.terms.get((), 0)), fact.terms.get((), 0)
        if (shared := names.common()) and number <= 0 and len(names.terms) == 1 and names.is_natural:
            alone = len(shared) == 1 and names.terms[shared] == 1
            self.least = {**self.least, **{each: max(self.least.get(each, 0), -number if alone else 1) for each in shared}}
        elif shared and (number < 0 or (number == 0 and all(self.least.get(name, 0) for name in shared))):
            # What a positive number times something is positive for is positive.
            self.add(names.over(Polynomial({shared: 1})) - constant(int(number < 0)))
            for name in shared if number < 0 else ():
                self.add(variable(name) - constant(1))
        if not self.follows(fact):
            self.facts = (*(each for each in self.facts if not self.is_natural(each - fact)), fact)

    def end(self, name: str, end: Polynomial) -> None:
        """Takes note of what a variable is below."""
        self.add(end - variable(name) - constant(1))
        self.ends = {**self.ends, name: end}

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
            self.zeros = (*self.zeros, zero)
            self.points = [each for each in self.points if zero.at(each) == 0]

    def replace(self, name: str, value: Polynomial) -> None:
        self.known = {**{other: each.replaced(name, value) for other, each in self.known.items()}, name: value}
        facts, self.facts = [*self.facts, value - constant(self.least.get(name, 0))], ()
        self.least = {other: each for other, each in self.least.items() if other != name}
        for each in facts:
            self.add(each)
        zeros, self.zeros = self.zeros, ()
        for each in zeros:
            self.equate(each)

    def without_positive(self, zero: Polynomial) -> Polynomial:
        """The other factor of a product with variables that are not 0."""
        positive = tuple(name for name in zero.common() if self.least.get(name, 0) > 0)
        return zero.over(Polynomial({positive: 1}))

    def numbers(self, effort: int) -> Mapping[str, int] | None:
        """Numbers for which all holds; None if there are none. Raises Undecided if that is not found out."""
        if not self.may(pairs=True):
            return None
        every = [*self.facts, *self.zeros, *self.known.values(), *map(variable, self.least)]
        names = {name: z3.Int(name) for name in sorted({name for each in every for name in each.variables})}

        def term(one: Polynomial) -> Any:
            products = (z3.Product([z3.IntVal(n), *map(names.__getitem__, each)]) for each, n in one.terms.items())
            return z3.Sum([z3.IntVal(0), *products])

        facts = [*(each >= 0 for each in names.values()), *(term(each) >= 0 for each in self.facts)]
        facts += [term(each) == 0 for each in self.zeros]
        facts += [names[each] >= least for each, least in self.least.items()]
        small = [each <= LARGEST for each in (*names.values(), *map(term, self.known.values()))]
        found, model = answer(facts, effort)
        if found == "unsat":
            return None
        is_small, smaller = answer([*facts, *small], effort)
        if (model := smaller if is_small == "sat" else model) is None:
            raise Undecided("the solver does not know whether a run can be")
        terms = {**names, **{name: term(each) for name, each in self.known.items()}}
        return {name: model.eval(each, model_completion=True).as_long() for name, each in terms.items()}


def connected(facts: Sequence[Polynomial], new: Sequence[Polynomial]) -> list[Polynomial]:
    """The facts that have a variable in common with new ones, or with others that have: all others can hold as they did."""
    found, left = list(new), [each for each in facts if each not in new]
    names = {name for each in new for name in each.variables}
    while more := [each for each in left if names & each.variables]:
        found, left = found + more, [each for each in left if each not in more]
        names |= {name for each in more for name in each.variables}
    return found


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
