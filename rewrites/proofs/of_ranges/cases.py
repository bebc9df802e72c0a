"""What laws of ranges are proved for: ranges of each kind, factors and windows, of any sizes, at any coordinates.

Two ranges are equal if they have the same size, lie in the same extent, and each iteration has the same slots, with the same
index and position each: `slots`, the meaning of ranges, runs over numbers that stand for any as it does over ints.

    equal(given, Product((r, Product((s, t)))), product(product(r, s), t), at)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ....dialects.ranges.algebra import Axis, Extent, Pad, Place, Product, Range, Sub, Sum, Window, size, space
from ....dialects.ranges.denotation import defined, slots
from ..symbolic.explore import Law
from ..symbolic.given import Given
from ..verdict import Nothing, suppose


@dataclass(frozen=True, slots=True)
class RangeLaw:
    """A law of ranges: its sentence, its picture, and a predicate for each structure that it is proved for."""

    name: str
    sentence: str
    picture: str
    cases: dict[str, Law]


ALONE: tuple[tuple[()]] = ((),)
"""The cases of a law of one structure."""


def registering(laws: dict[str, RangeLaw]) -> Callable[..., Callable[[Callable[..., Any]], Law]]:
    """Makes the decorator by which predicates become laws, each for some structures."""

    def law(name: str, sentence: str, picture: str, cases: Sequence[tuple[Any, ...]] = ALONE) -> Any:
        def register(predicate: Callable[..., Any]) -> Law:
            bound = {", ".join(map(str, case)): _bound(predicate, case) for case in cases}
            laws[name] = RangeLaw(name, sentence, picture, bound)
            return predicate

        return register

    return law


def _bound(predicate: Callable[..., Any], case: tuple[Any, ...]) -> Law:
    return lambda given: predicate(given, *case)


# Ranges of every kind, and where they are read.

Coordinates: TypeAlias = dict[Place, int]
Maker: TypeAlias = Callable[[Given, str, Coordinates], Range]


def axis(given: Given, name: str, at: Coordinates) -> Axis:
    """A mesh axis of any size, and a coordinate along it."""
    made = Axis(name, given.number(f"size({name})", 1))
    at[made] = given.index(name, made.size)
    return made


def extent(given: Given, name: str, at: Coordinates) -> Range:
    del at
    return Extent(given.number(f"n{name}"))


def block(given: Given, name: str, at: Coordinates) -> Range:
    made = axis(given, name, at)
    return Product((made, Extent(given.number(f"n{name}", 2))))


def cyclic(given: Given, name: str, at: Coordinates) -> Range:
    made = axis(given, name, at)
    return Product((Extent(given.number(f"n{name}", 2)), made))


def concatenation(given: Given, name: str, at: Coordinates) -> Range:
    del at
    return Sum((Extent(given.number(f"n{name}", 1)), Extent(given.number(f"m{name}", 1))))


def tail(given: Given, name: str, at: Coordinates) -> Range:
    made = axis(given, name, at)
    return Sum((made, Extent(given.number(f"n{name}", 1))))


def part(given: Given, name: str, at: Coordinates) -> Range:
    return part_of(given, name, extent(given, name, at))


def padded_block(given: Given, name: str, at: Coordinates) -> Range:
    made = block(given, name, at)
    length = given.number(f"length({name})")
    suppose(length <= size(made))
    return Sub(made, 0, length)


def pad_of_axis(given: Given, name: str, at: Coordinates) -> Range:
    made = axis(given, name, at)
    return Pad(made, given.number(f"lo{name}"), given.number(f"hi{name}"))


def read(given: Given, name: str, at: Coordinates) -> Range:
    made = axis(given, name, at)
    return Window(made, *shape(given, name))


KINDS: dict[str, Maker] = {
    "n": extent,
    "a": axis,
    "a*n": block,
    "n*a": cyclic,
    "n + m": concatenation,
    "a + n": tail,
    "n[o : l : s]": part,
    "a*n pad l": padded_block,
    "pad(a, lo, hi)": pad_of_axis,
    "win<s,k,d,lo>(a)": read,
}
"""A range of each kind, of any sizes, at any coordinates."""
ONE = [(each,) for each in KINDS]
TWO = [*((each, "n") for each in KINDS), *(("a", each) for each in KINDS)]
THREE = [*((each, "a", "n") for each in KINDS), ("n", "n + m", "a"), ("a", "n", "n[o : l : s]")]


def part_of(given: Given, name: str, base: Range) -> Sub:
    """A part of a range, which does not reach beyond it."""
    offset, length, step = given.number(f"o{name}"), given.number(f"l{name}"), given.number(f"s{name}", 1)
    suppose(length == 0 or offset + (length - 1) * step < size(base))
    return Sub(base, offset, length, step)


def shape(given: Given, name: str) -> tuple[int, int, int, int]:
    """Stride, kernel, dilation and padding of a window."""
    stride = given.integer(f"stride{name}")
    return stride, given.number(f"kernel{name}", 1), given.number(f"dilation{name}", 1), given.integer(f"lo{name}")


def ranges(given: Given, kinds: Sequence[str], at: Coordinates) -> list[Range]:
    """A range of each kind, on axes of its own."""
    return [KINDS[kind](given, name, at) for kind, name in zip(kinds, "abc", strict=False)]


def slot(given: Given, r: Range, at: Coordinates, name: str = "j") -> int:
    """Any slot of an iteration, made of one of each part, so that no quotient is left to find."""
    count, _ = slots(r, at)
    match r:
        case Product(parts):
            number = 0
            for order, each in enumerate(parts):
                number = number * slots(each, at)[0] + slot(given, each, at, f"{name}{order}")
            return number
        case Sum(parts):
            which = given.index(f"{name}'", len(parts))
            before = 0
            for order, each in enumerate(parts):
                if which == order:
                    return before + slot(given, each, at, f"{name}{order}")
                before = before + slots(each, at)[0]
            raise Nothing
        case Sub(base):
            return slot(given, base, at, name)
        case _:
            return given.index(name, count)


def equal(given: Given, r: Range, s: Range, at: Coordinates) -> bool:
    """Whether two ranges are equal at these coordinates, and as a whole."""
    (count, left), (other, right) = slots(r, at), slots(s, at)
    if not (count == other and size(r) == size(s) and space(r) == space(s)):
        return False
    try:
        number = slot(given, r, at)
    except Nothing:
        # There is none.
        return True
    return _known(left(number)) == _known(right(number))


def _known(point: tuple[int, int | None] | None) -> tuple[int, int | None] | None:
    return point and (point[0], defined(point[1]))
