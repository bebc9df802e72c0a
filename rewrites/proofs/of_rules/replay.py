"""Puts a counter-example of the solver into the interpreter, and prints it with its sizes if the two sides differ there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from ...rules.rule import Rule
from ..solver import z3
from ..values import Array, Complex, Held, Here, Number
from ..world import Ints
from .heads import same
from .leaves import SymbolicLeaves
from .statement import VariableKind, names_here, sides

DIM = 4
"""The extent of each dim of an array on devices, at small sizes."""


def all_here(kinds: Mapping[str, VariableKind], leaves: SymbolicLeaves) -> Iterator[Here]:
    """Every iteration, at given sizes."""
    names = names_here(kinds, leaves.same)
    counts = [leaves.given[f"size({name})" if kinds[name].kind == "axis" else f"count({name})"] for name in names]
    for at in product(*map(range, counts)):
        yield dict(zip(names, at, strict=True))


def indices(array: Any) -> Iterator[Any]:
    """Every index of an array, or a few if it has no end; and the elements of an array on devices."""
    if isinstance(array, Array):
        yield from range(3 if array.size is None else array.size)
    else:
        yield from product(range(DIM), repeat=2)


@dataclass(eq=False)
class Replay:
    """A model of the solver as values of the interpreter."""

    rule: Rule
    kinds: Mapping[str, VariableKind]
    leaves: SymbolicLeaves
    model: Any
    kind: str
    cast: str

    def differs(self) -> str | None:
        """The counter-example; None if the two sides are equal."""
        world = Ints(self.kind, self.cast, self.guessed)
        bound = {name: self.value(made) for name, made in self.leaves.made.items()}
        made = sides(self.rule, world, bound)
        places = list(self.places())
        try:
            for here, index, left, right in self.read(world, made.left, made.right, places):
                if not same(world, left, right):
                    at = ", ".join(f"{name} = {number}" for name, number in (*here.items(), ("index", index)))
                    return f"{self.text(bound, places)}: at {at}, {_shown(left)} and {_shown(right)}"
        except (ZeroDivisionError, TypeError):
            return None
        return None

    def places(self) -> Iterator[Here]:
        return all_here(self.kinds, self.leaves)

    def read(self, world: Ints, left: Any, right: Any, places: list[Here]) -> Iterator[tuple[Here, Any, Number, Number]]:
        match left, right:
            case Held(), Held():
                for here, g in product(places, indices(left)):
                    has = left.has(here, g)
                    yield here, g, has, right.has(here, g)
                    if has:
                        yield here, g, left.at(here, g), right.at(here, g)
            case Array(), Array():
                if left.size is not None and right.size is not None:
                    yield {}, "size", left.size, right.size
                for here, i in product(places, indices(left if left.size is not None else right)):
                    yield here, i, left.at(here, i), _finite(right, here, i)
            case _:
                for x, y in ((left.first, right.first), (left.second, right.second)):
                    yield from self.read(world, x, y, places)

    def guessed(self, name: str, arguments: tuple[Number, ...]) -> Number:
        function = self.leaves.world.functions.get(f"{name}/{len(arguments)}")
        return 0 if function is None else self.number(function(*arguments))

    def number(self, term: Any) -> Number:
        """The number that a term is in the model."""
        if not z3.is_expr(term):
            return Complex(self.number(term.real), self.number(term.imag)) if isinstance(term, Complex) else term
        found = self.model.eval(term, model_completion=True)
        if z3.is_bool(found):
            return z3.is_true(found)
        if z3.is_int_value(found):
            return found.as_long()
        if z3.is_rational_value(found):
            return Fraction(found.numerator_as_long(), found.denominator_as_long())
        raise TypeError(found)

    def value(self, made: Any) -> Any:
        """The value of a variable."""
        match made:
            case Array(size, at):
                return Array(size, lambda here, i: self.number(at(here, i)))
            case Held(has, at):
                return Held(lambda here, g: self.number(has(here, g)), lambda here, g: self.number(at(here, g)))
            case _:
                return made

    def text(self, bound: Mapping[str, Any], places: list[Here]) -> str:
        """The sizes, and the elements of the arrays."""
        sizes = [f"{name} = {number}" for name, number in self.leaves.given.items() if not name.startswith(UNTOLD)]
        arrays = [f"{name} = {self.elements(name, made, places)}" for name, made in bound.items() if isinstance(made, Array)]
        return ", ".join(sizes) + ("; " if arrays else "") + ", ".join(arrays)

    def elements(self, name: str, array: Array, places: list[Here]) -> str:
        along = [each for each in self.kinds[name].along if each in names_here(self.kinds, self.leaves.same)]
        rows: dict[tuple[Number, ...], str] = {}
        for here in places:
            key = tuple(here[each] for each in along)
            if key not in rows:
                rows[key] = _row(array, here)
        return "; ".join(f"[{row}]" for row in rows.values())


def _finite(array: Array, here: Here, i: Number) -> Number:
    """An element; where there is none, a text, which equals no number."""
    try:
        return array.at(here, i)
    except ZeroDivisionError:
        return "no number"


UNTOLD = ("stride(", "before(", "width(")


def _row(array: Array, here: Here) -> str:
    return ", ".join(_shown(array.at(here, i)) for i in range(1 if array.size is None else array.size))


def _shown(number: Number) -> str:
    if isinstance(number, bool) or number is None:
        return str(number).lower()
    return f"{number.real} + {number.imag}i" if isinstance(number, Complex) else str(number)
