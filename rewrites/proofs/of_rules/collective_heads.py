"""The heads of collectives. A device has the elements of an array whose digits along the placed axes are its coordinates.

slice(a, i, s, x)       a device keeps the elements whose digit on dimension i, with stride s, is its coordinate along a
"""

# What a head asks for is of arguments of any kind.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..values import Axis, Held, Here, Number, Truth
from ..world import World
from .heads import HEADS as HEADS, at, head


def digit(world: World, g: Number, i: Number, s: Number, a: Axis) -> Number:
    """The coordinate along a of the devices that have the element g, if a is on dimension i with stride s."""
    quotient, _ = world.digits(world.along(g, i), s)
    return world.digits(quotient, a.size)[1]


def placed(world: World, a: Axis, i: Number, s: Number, x: Held) -> Sequence[Truth]:
    """That a is on dimension i of x with stride s."""
    on = Implied(x, lambda here, g: digit(world, g, i, s, a) == here[a.name])
    return [a.size > 0, s > 0, on]


@dataclass(frozen=True, slots=True)
class Implied:
    """That a fact holds for each element which a device has."""

    value: Held
    fact: Callable[[Here, Number], Truth]


@head("slice", "axis dim stride free", lambda world, a, i, s, x: [a.size > 0, s > 0])
def slice_device(world: World, a: Axis, i: Number, s: Number, x: Held) -> Held:
    """A device keeps the elements whose digit is its coordinate."""
    return Held(lambda here, g: world.every(x.has(here, g), digit(world, g, i, s, a) == here[a.name]), x.at)


def received(world: World, a: Axis, x: Held, sent: Callable[[Here, Number], Truth]) -> Held:
    """Each device of a group gets an element from one that has it, if that one sends it."""

    def sender(here: Here, g: Number) -> tuple[Truth, Number]:
        return world.choice(a.size, lambda d: x.has(at(here, a, d), g))

    return Held(
        lambda here, g: world.every(sender(here, g)[0], sent(here, g)),
        lambda here, g: x.at(at(here, a, sender(here, g)[1]), g),
    )


@head("all_gather", "axis dim stride held", placed)
def all_gather(world: World, a: Axis, i: Number, s: Number, x: Held) -> Held:
    return received(world, a, x, lambda here, g: True)


def sends(world: World, a: Axis, i: Number, s: Number, j: Number, t: Number, x: Held) -> Sequence[Truth]:
    return [*placed(world, a, i, s, x), t > 0]


@head("all_to_all", "axis dim stride dim stride held", sends)
def all_to_all(world: World, a: Axis, i: Number, s: Number, j: Number, t: Number, x: Held) -> Held:
    """A device sends each element to the one whose coordinate is the element's digit on dimension j."""
    return received(world, a, x, lambda here, g: digit(world, g, j, t, a) == here[a.name])


@head("permute", "axis axis held")
def permute(world: World, a: Axis, b: Axis, x: Held) -> Held:
    """A device gets the whole part of the one that counts along a as it counts along b."""

    def there(here: Here) -> Here:
        return at(here, a, here[b.name])

    return Held(lambda here, g: x.has(there(here), g), lambda here, g: x.at(there(here), g))


def folded(world: World, m: str, a: Axis, x: Held) -> Callable[[Here, Number], Number]:
    return lambda here, g: world.fold(m, a.size, lambda d: x.at(at(here, a, d), g))


@head("all_reduce", "monoid axis held", lambda world, m, a, x: [a.size > 0])
def all_reduce(world: World, m: str, a: Axis, x: Held) -> Held:
    return Held(x.has, folded(world, m, a, x))


@head("reduce_scatter", "monoid axis dim stride held")
def reduce_scatter(world: World, m: str, a: Axis, i: Number, s: Number, x: Held) -> Held:
    """A device sends each element to the one whose coordinate is its digit, which folds what it gets."""

    def has(here: Here, g: Number) -> Truth:
        return world.every(x.has(here, g), digit(world, g, i, s, a) == here[a.name])

    return Held(has, folded(world, m, a, x))
