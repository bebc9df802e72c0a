"""The statement of a law, derived from its text: what its variables are, what holds for them, and the two sides.

lookup: take(k, build(a, m, x)) => ...
a: axis, m: size, k: positions, x: an array for each coordinate of a; m > 0, x has m rows, 0 <= k < size(a) * m
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from ....dialects.ground.errors import Error
from ...rules.rule import All, AnyOf, Compare, Condition, Holds, Rule, RuleApply, RuleNumber, Symbol, Term, Variable
from ..values import Array, Axis, Held, Number, Pair, Spread, Truth
from ..world import World
from .collective_heads import HEADS
from .heads import Head, same

ARRAYS = {"local": "array", "whole": "array", "value": "array", "part": "array", "free": "held"}
"""The kinds of variables, by those of arguments that say more."""
OWN_AXIS = ("axis", "layout")


@dataclass(frozen=True, slots=True)
class VariableKind:
    """What a variable is, and for an array along which axes and layouts it may differ."""

    kind: str
    along: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatedCondition:
    """A condition's kind, and its meaning if the law needs it.

    `meaning`: without it the law is false. `lowering`: it says what can be emitted. `order`: in which order.
    """

    kind: str
    holds: Callable[..., Truth] | None = None


def is_field(world: World, x: Any) -> bool:
    """Whether division is exact."""
    return world.kind != "integers"


def widens(world: World, x: Any) -> bool:
    """Whether a cast keeps every number: one to integers cuts fractions off. That others round is no part of the meaning."""
    return world.cast == "keeps"


CONDITIONS = {
    "field": StatedCondition("meaning", is_field),
    "widening": StatedCondition("meaning", widens),
    "size(a) = size(b)": StatedCondition("meaning"),
    "a != b": StatedCondition("lowering"),
    "sums": StatedCondition("lowering"),
    "disjoint": StatedCondition("lowering"),
    "before": StatedCondition("order"),
}
"""The conditions of the laws, by the name of their predicate, or by their text if they compare."""


def conditions(rule: Rule) -> tuple[Condition, ...]:
    """The conditions of a rule that all must hold."""
    if rule.where is None:
        return ()
    return rule.where.parts if isinstance(rule.where, All) else (rule.where,)


def stated(condition: Condition) -> StatedCondition | None:
    """What is stated of a condition; None if nothing is."""
    return CONDITIONS.get(condition.name if isinstance(condition, Holds) else str(condition))


class NoStatement(Exception):
    """Raised for a rule with a head that has no meaning here."""


def head_of(term: RuleApply) -> Head:
    found = HEADS.get((term.head, len(term.args)))
    if found is None:
        raise NoStatement(f"`{term.head}` has no meaning here")
    return found


def variables(rule: Rule) -> dict[str, VariableKind]:
    """The variables of a rule's left side, from the signatures of its heads. Raises Error if one is two things."""
    found: dict[str, VariableKind] = {}

    def note(term: Term, kind: str, along: tuple[str, ...]) -> None:
        match term:
            case Variable(name):
                made = VariableKind(kind, along if kind not in (*OWN_AXIS, "size", "row", "dim", "stride", "element") else ())
                known = found.setdefault(name, made)
                if known.kind != made.kind and {known.kind, made.kind} != {"size", "row"}:
                    raise Error(f"rule `{rule.name}`: `{name}` is `{known.kind}` and `{made.kind}`")
                if len(made.along) < len(known.along):
                    found[name] = made
            case RuleApply(head="both", args=args) if kind in ("layout", "part"):
                for each in args:
                    note(each, kind, along)
            case RuleApply(args=args):
                head = head_of(term)
                own = tuple(str(arg) for arg, kind in zip(args, head.kinds, strict=True) if kind in OWN_AXIS)
                for arg, each in zip(args, head.kinds, strict=True):
                    seen = tuple(dict.fromkeys((*along, *own))) if each in ("local", "part", "held") else along
                    seen = tuple(name for name in seen if name not in own) if each in ("whole", "free") else seen
                    note(arg, ARRAYS.get(each, each), seen)
            case _:
                pass

    note(rule.left, "array", ())
    return found


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of numbers, and one way in which axes are one."""

    kind: str
    cast: str
    same: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a law for some variables, and what is asked of these."""

    bound: Mapping[str, Any]
    left: Any
    right: Any
    asked: tuple[Any, ...]


def sides(rule: Rule, world: World, bound: Mapping[str, Any]) -> Sides:
    """Gives both sides their meaning, and collects what holds wherever the heads of the left side are asked for."""
    asked: list[Any] = []
    left = value(rule.left, world, bound, asked)
    return Sides(bound, left, value(rule.right, world, bound, None), tuple(asked))


def value(term: Term, world: World, bound: Mapping[str, Any], asked: list[Any] | None) -> Any:
    match term:
        case Variable(name):
            return bound[name]
        case RuleNumber(number):
            return number
        case Symbol(name):
            return name
        case RuleApply(args=args):
            head = head_of(term)
            made = [_suited(value(arg, world, bound, asked), kind) for arg, kind in zip(args, head.kinds, strict=True)]
            if asked is not None:
                asked += head.asks(world, *made)
            return head.meaning(world, *made)


def _suited(made: Any, kind: str) -> Any:
    """A number where an array or a scalar is asked for is that number everywhere."""
    if not isinstance(made, Array | Axis | Held | Pair | Spread | str) and kind in ("element", "value", "local", "whole"):
        return Array(None, lambda here, i: made)
    return made


def holds(condition: Condition, world: World, bound: Mapping[str, Any]) -> Truth:
    """A condition's meaning. What only says how a law is used holds for all variables."""
    match condition:
        case All(parts):
            return world.every(*(holds(part, world, bound) for part in parts))
        case AnyOf(parts):
            return world.some(*(holds(part, world, bound) for part in parts))
        case Holds(name, args, negated):
            said = CONDITIONS.get(name)
            if said is None:
                raise NoStatement(f"the condition `{name}` has no meaning here")
            if said.holds is None:
                return True
            found = said.holds(world, *(number(arg, bound) for arg in args))
            return world.fails(found) if negated else found
        case Compare(operator, left, right):
            x, y = number(left, bound), number(right, bound)
            equal = x.name == y.name if isinstance(x, Axis) and isinstance(y, Axis) else x == y
            if operator == "=":
                return equal
            return not equal if isinstance(equal, bool) else world.fails(equal)


def number(term: Term, bound: Mapping[str, Any]) -> Any:
    """A term of a condition: a variable, or arithmetic of ints and sizes."""
    match term:
        case Variable(name):
            return bound[name]
        case RuleNumber(value):
            return value
        case RuleApply("size", (arg,)):
            return number(arg, bound).size
        case RuleApply("add" | "sub" | "mul" as head, (left, right)):
            x, y = number(left, bound), number(right, bound)
            return {"add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y}[head]()
        case _:
            raise NoStatement(f"`{term}` has no meaning in a condition")


def identified(kinds: Mapping[str, VariableKind]) -> Iterator[dict[str, str]]:
    """The ways in which axes may be one axis: for each variable the one whose axis it is."""
    axes = [name for name, kind in kinds.items() if kind.kind == "axis"]
    for which in product(range(len(axes)), repeat=len(axes)):
        if all(first <= at and which[first] == first for at, first in enumerate(which)):
            yield {name: axes[first] for name, first in zip(axes, which, strict=True)}


def names_here(kinds: Mapping[str, VariableKind], same: Mapping[str, str]) -> list[str]:
    """The coordinates that an iteration has."""
    return [name for name, kind in kinds.items() if kind.kind in OWN_AXIS and same.get(name, name) == name]


def compared(world: World, left: Any, right: Any, read: Callable[[Any], Iterator[tuple[Any, Number]]]) -> Iterator[Truth]:
    """The truths that say that two values are equal; `read` gives the places where an array is read, each in an iteration."""
    match left, right:
        case Pair(), Pair():
            yield from compared(world, left.first, right.first, read)
            yield from compared(world, left.second, right.second, read)
        case Held(), Held():
            for here, g in read(left):
                has = left.has(here, g)
                yield has == right.has(here, g)
                yield world.some(world.fails(has), same(world, left.at(here, g), right.at(here, g)))
        case Array(), Array():
            if left.size is not None and right.size is not None:
                yield left.size == right.size
            for here, i in read(left if left.size is not None else right):
                yield same(world, left.at(here, i), right.at(here, i))
        case _:
            yield False
