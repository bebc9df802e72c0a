"""One run of code over numbers that stand for any: its questions, and what they were taken to say.

A run of which the beginning is known goes through it by what was answered there, without asking again.

    n >= 4 ?    -->    yes, in this run; no, in a run that is left to be made
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, cast

from ..values import Number
from .facts import Facts
from .given import Given
from .polynomial import Polynomial, constant, variable
from .symbol import UNREACHED, Symbol, Undecided, polynomial_of

MOST_DECISIONS = 60

_T = TypeVar("_T")
Question: TypeAlias = tuple[str, frozenset[tuple[tuple[str, ...], int]], frozenset[tuple[tuple[str, ...], int]]]
Outcomes: TypeAlias = tuple[bool, ...]


@dataclass(eq=False)
class Path(Given):
    """One run of a law."""

    facts: Facts
    left: list[Path]
    """Where runs that are still to be made are put."""
    answers: dict[Question, object] = field(default_factory=dict[Question, object])
    """What has been answered."""
    ahead: tuple[Question | None, Outcomes] = (None, ())
    """The question with which this run leaves another one, and how its comparisons come out."""
    depth: int = 0
    fresh: int = 0
    names: dict[str, Polynomial] = field(default_factory=dict[str, Polynomial])
    """The numbers of the law, each with its least value or what it is below."""

    # Numbers.

    def number(self, name: str, least: int = 0) -> Number:
        return Symbol(self.made(name, least), self)

    def made(self, name: str, least: int) -> Polynomial:
        if self.is_new(name, constant(least)) and least:
            self.facts.add(variable(name) - constant(least))
        return variable(name)

    def is_new(self, name: str, bound: Polynomial) -> bool:
        """Whether a name is given for the first time. It has one bound, or the law would say less than it seems to say."""
        is_new = name not in self.names
        assert self.names.setdefault(name, bound) == bound, f"{name} is given twice, with other bounds"
        return is_new

    def integer(self, name: str) -> Number:
        return Symbol(self.made(name, 0) - self.made(f"-{name}", 0), self)

    def below(self, name: str, end: Number) -> Number:
        if self.is_new(name, polynomial_of(end)):
            self.facts.end(name, polynomial_of(end))
        return Symbol(variable(name), self)

    # Questions.

    def at_least_zero(self, asked: Polynomial) -> bool:
        return asked.value >= 0 if asked.value is not None else self.answered("is natural", self.decided_sign, asked)

    def is_zero(self, asked: Polynomial) -> bool:
        return not asked.value if asked.value is not None else self.answered("is zero", self.decided_zero, asked)

    def digits(self, number: Polynomial, block: Polynomial) -> tuple[Symbol, Symbol]:
        """The quotient and the remainder by a positive number."""
        more, left = self.answered("digits", self.decided_digits, number, block)
        return Symbol(more, self), Symbol(left, self)

    def value(self, number: Polynomial) -> int:
        if (known := self.facts.reduced(number).value) is None:
            raise Undecided(f"{number} has to be known")
        return known

    def answered(self, kind: str, answer: Callable[..., _T], *asked: Polynomial) -> _T:
        """The answer to a question; new comparisons on its way are decided, and their other outcomes left to other runs."""
        first, second = (frozenset(each.terms.items()) for each in (*asked, *asked)[:2])
        question = kind, first, second
        if question not in self.answers:
            self.before, self.question, self.taken = copy(self.facts), question, list[bool]()
            self.before_fresh = self.fresh
            found = answer(*map(self.facts.reduced, asked))
            self.answers[question] = found
        return cast("_T", self.answers[question])

    def decided_sign(self, asked: Polynomial) -> bool:
        facts, asked = self.facts, self.facts.reduced(asked)
        below = constant(-1) - asked
        if abs(asked.terms.get((), 0)) >= UNREACHED:
            return asked.terms[()] > 0
        if (known := facts.surely(asked)) or facts.surely(below):
            return known
        return self.decide(asked, below, lambda: facts.add(asked), lambda: facts.add(below))

    def decided_zero(self, asked: Polynomial) -> bool:
        facts, asked = self.facts, self.facts.reduced(asked)
        minus = asked.times(-1)
        if asked.value is not None:
            return asked.value == 0
        if any(facts.surely(each - constant(1)) for each in (asked, minus)):
            return False
        if (shared := asked.common()) and len(asked.terms) > 1:
            # A product is 0 if one of its factors is.
            rest = asked.over(Polynomial({shared: 1}))
            return any(self.decided_zero(variable(name)) for name in shared) or self.decided_zero(rest)
        if (is_natural := facts.surely(asked)) or facts.surely(minus):
            more = (asked if is_natural else minus) - constant(1)
            return self.decide(constant(-1) - more, more, lambda: facts.equate(asked), lambda: facts.add(more))
        if equal := self.decided_sign(asked) and self.decided_sign(minus):
            facts.equate(asked)
        return equal

    def decide(self, yes: Polynomial, no: Polynomial, take: Callable[[], None], leave: Callable[[], None]) -> bool:
        """Takes an outcome that is possible; if both are, another run is left to take the other one."""
        question, outcomes = self.ahead
        if self.question == question and len(self.taken) < len(outcomes):
            outcome = outcomes[len(self.taken)]
        else:
            outcome = self.facts.may(yes)
            if outcome and self.facts.may(no):
                self.leave_other()
        self.taken.append(outcome)
        (take if outcome else leave)()
        return outcome

    def leave_other(self) -> None:
        self.depth += 1
        if self.depth > MOST_DECISIONS:
            raise Undecided(f"a run has {MOST_DECISIONS} comparisons of which both outcomes are possible")
        ahead = self.question, (*self.taken, False)
        self.left.append(Path(copy(self.before), self.left, dict(self.answers), ahead, self.depth, self.before_fresh))

    def decided_digits(self, number: Polynomial, block: Polynomial) -> tuple[Polynomial, Polynomial]:
        facts = self.facts
        quotient = number.over(block)
        for tried in (constant(0), quotient):
            rest = number - tried * block
            if facts.surely(rest) and facts.surely(block - rest - constant(1)):
                return tried, rest
        if len(block.terms) > 1 and not facts.surely(number - quotient * block):
            quotient = constant(0)
        rest = number - quotient * block
        if rest.value is not None and block.value is not None:
            more, left = divmod(rest.value, block.value)
            return quotient + constant(more), constant(left)
        more_, left_ = self.split(rest, block)
        return quotient + more_, left_

    def split(self, rest: Polynomial, block: Polynomial) -> tuple[Polynomial, Polynomial]:
        facts = self.facts
        is_natural = self.decided_sign(rest)
        if is_natural and self.decided_sign(block - rest - constant(1)):
            return constant(0), rest
        self.fresh += 1
        more, left = variable(f"%q{self.fresh}"), variable(f"%r{self.fresh}")
        facts.add(more - constant(1))
        more = more if is_natural else more.times(-1)
        facts.equate(rest - more * block - left)
        facts.end(f"%r{self.fresh}", block)
        return more, left
