"""Laws of whole programs, whose arrays have indices that are not written: proved for all indices, extents and elements.

An index matters by which variables have it, and by whether the result has it. With one of each such class with which both sides
can be computed, a law says all that it can: fewer indices are extents of 1, and several of a class are one of their product.

A side becomes sums of products over indices. That sums may be reordered and products go into them is what `linearity.rules`
says, whose laws are proved. The solver compares what is under the sums.

    dot(x, y + z)           sum over k of x[i, k] * (y[k, j] + z[k, j])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from ...laws.interpret_rule import IndexMaker, Indices, NoTerm, make_term
from ...laws.rule_check import problem
from ...rules.rule import Rule, Variable, subterms
from ..solver import answer, need, z3
from ..terms import Terms
from ..values import Complex, Number
from ..verdict import Verdict
from ..world import KINDS
from .heads import same
from .statement import NoStatement

Where = Mapping[int, Number]
TESTED = {"integers": "i", "reals": "f", "complex": "c"}
"""The kinds of numbers, as `rule_check` names them."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over some indices of what stands under it."""

    over: frozenset[int]
    body: Callable[[Where], Number]


@dataclass(frozen=True, slots=True)
class Sums:
    """The sum of several sums, with the indices that the result has."""

    ids: Indices
    parts: tuple[Sum, ...]


@dataclass(eq=False, slots=True)
class SumMaker:
    """Makes terms of rules as sums of products."""

    world: Terms
    nonzero: list[Callable[[Where], Number]] = field(default_factory=list[Callable[[Where], Number]])
    """What is divided by: a law says nothing about what is infinite, or no number."""

    def ids(self, term: Sums) -> Indices:
        return term.ids

    def number(self, value: int) -> Sums:
        return Sums((), (Sum(frozenset(), lambda at: value),))

    def each(self, kind: str, args: Sequence[Sums]) -> Sums:
        ids = IndexMaker().each(kind, [arg.ids for arg in args])
        match kind, args:
            case "add" | "add_any", [x, y]:
                return Sums(ids, (*x.parts, *y.parts))
            case "sub", [x, y]:
                return Sums(ids, (*x.parts, *(Sum(part.over, _negative(part.body)) for part in y.parts)))
            case "neg", [x]:
                return Sums(ids, tuple(Sum(part.over, _negative(part.body)) for part in x.parts))
            case "mul", [x, y]:
                return Sums(ids, tuple(self.times(p, q, x.ids, y.ids) for p in x.parts for q in y.parts))
            case "div", [x, Sums(parts=(Sum(over, body),))] if not over:
                self.nonzero.append(body)
                return Sums(ids, tuple(Sum(part.over, self.quotient(part.body, body)) for part in x.parts))
            case _:
                raise NoStatement(f"`{kind}` has no meaning here")

    def times(self, x: Sum, y: Sum, left: Indices, right: Indices) -> Sum:
        if x.over & (y.over | {*right}) or y.over & {*left}:
            raise NoStatement("a product of two sums over one index")
        return Sum(x.over | y.over, lambda at: x.body(at) * y.body(at))

    def quotient(self, x: Callable[[Where], Number], y: Callable[[Where], Number]) -> Callable[[Where], Number]:
        return lambda at: self.world.divide(x(at), y(at))

    def fold(self, kind: str, arg: Sums, keep: Collection[int]) -> Sums:
        if kind != "reduce_sum":
            raise NoStatement(f"`{kind}` has no meaning here")
        over = frozenset(arg.ids).difference(keep)
        return Sums(tuple(index for index in arg.ids if index in keep), tuple(Sum(p.over | over, p.body) for p in arg.parts))

    def product(self, left: Sums, right: Sums, keep: Collection[int]) -> Sums:
        return self.fold("reduce_sum", self.each("mul", (left, right)), keep)


def _negative(body: Callable[[Where], Number]) -> Callable[[Where], Number]:
    return lambda at: -body(at)


def prove_program(rule: Rule) -> Verdict:
    """Proves a law of programs for the kinds of numbers for which it holds."""
    need()
    try:
        bound, keep = indices(rule)
        proved = [kind for kind in KINDS if _holds(rule, kind, bound, keep)]
    except NoStatement as error:
        return Verdict("not proved", str(error))
    others = {kind: problem(rule, TESTED[kind]) for kind in KINDS if kind not in proved}
    if not proved:
        wrong = next((str(each).splitlines()[0] for each in others.values() if each is not None), "")
        return Verdict("refuted", wrong) if wrong else Verdict("not proved", "the solver does not find it")
    if unproved := [kind for kind, each in others.items() if each is None]:
        return Verdict("not proved", f"the solver does not find it for {' and '.join(unproved)}")
    return Verdict("proved", "by sums of products" + (f", for {' and '.join(proved)}" if others else ""))


def indices(rule: Rule) -> tuple[dict[str, Indices], Indices]:
    """An index for each set of variables, kept and not kept, with which both sides can be computed."""
    names = list(dict.fromkeys(each.name for each in subterms(rule.left) if isinstance(each, Variable)))
    bound: dict[str, Indices] = dict.fromkeys(names, ())
    keep, count = list[int](), 0
    for size in range(1, len(names) + 1):
        for chosen in combinations(names, size):
            for kept in (True, False):
                if is_computed(rule, {name: (count,) if name in chosen else () for name in names}, (count,) if kept else ()):
                    bound |= {name: (*bound[name], count) for name in chosen}
                    keep += [count] if kept else []
                    count += 1
    if not count:
        raise NoStatement("no index fits both sides")
    return bound, tuple(keep)


def is_computed(rule: Rule, bound: Mapping[str, Indices], keep: Indices) -> bool:
    """Whether both sides have a meaning if the variables and the result have these indices."""
    try:
        left, right = (make_term(side, bound, keep, IndexMaker()) for side in (rule.left, rule.right))
    except NoTerm:
        return False
    return set(left) == set(keep) >= set(right)


def _holds(rule: Rule, kind: str, bound: Mapping[str, Indices], keep: Indices) -> bool:
    """Whether both sides are sums over the same indices of the same."""
    world = Terms(kind=kind)
    maker = SumMaker(world)
    leaves = {name: Sums(ids, (Sum(frozenset(), _leaf(world, name, ids)),)) for name, ids in bound.items()}
    left, right = (make_term(side, leaves, keep, maker) for side in (rule.left, rule.right))
    every = {index for ids in bound.values() for index in ids}
    at = {index: z3.Int(f"index{index}") for index in every}
    known = [z3.Not(same(world, body(at), 0)) for body in maker.nonzero]
    for over in {part.over for side in (left, right) for part in side.parts}:
        x, y = (_under(side, over, at) for side in (left, right))
        if answer([*known, z3.Not(same(world, x, y))])[0] != "unsat":
            return False
    return True


def _under(side: Sums, over: frozenset[int], at: Where) -> Number:
    """What stands under the sums over these indices."""
    found = [part.body(at) for part in side.parts if part.over == over]
    return sum(found[1:], found[0]) if found else 0


def _leaf(world: Terms, name: str, ids: Indices) -> Callable[[Where], Any]:
    def read(at: Where) -> Any:
        places = [at[index] for index in ids]
        parts = [name] if world.kind != "complex" else [f"{name}.real", f"{name}.imag"]
        found = [
            world.function(each, len(places), world.element)(*places) if places else z3.Const(each, world.element)
            for each in parts
        ]
        return found[0] if len(found) == 1 else Complex(*found)

    return read
