"""The heads of the rule language: of each the kinds of its arguments, what it asks of them, and what it means.

A meaning is a function of one iteration and one index. It says what the op does with its own arguments, never what a law makes
of it. The same function runs on ints and on terms of the solver.

    @head("slice", "axis size whole", lambda world, a, m, x: [m > 0, x.size == a.size * m])
    def slice_block(world, a, m, x):
        return Array(m, lambda here, i: x.at(here, here[a.name] * m + i))

Kinds of arguments: `axis`, `size`, `row` (an int), `element` (a scalar), `monoid`, `scheme` (which fold or scan), `layout`,
`dim`, `stride`; and arrays. Of arrays a `local` one depends on the coordinate of the head's axis, a `whole` one does not, a
`value` is as its surroundings, `truths` and `positions` hold these, `held` and `free` ones are on devices: placed on the axis,
or not.

Those of collectives are in `collective_heads`.
"""

# What a head asks for is of arguments of any kind.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..values import Array, Axis, Complex, Here, Number, Pair, Spread, Truth, as_complex
from ..world import NoMeaning, World

Meaning: TypeAlias = Callable[..., Any]
Asks: TypeAlias = Callable[..., Sequence[Truth]]


@dataclass(frozen=True, slots=True)
class Head:
    """A head: the kinds of its arguments, what holds for them wherever the head is asked for, and its meaning."""

    name: str
    kinds: tuple[str, ...]
    asks: Asks
    meaning: Meaning


HEADS: dict[tuple[str, int], Head] = {}
"""The heads by name and number of arguments."""


def nothing(*_: object) -> Sequence[Truth]:
    return ()


def head(name: str, kinds: str, asks: Asks = nothing) -> Callable[[Meaning], Meaning]:
    """Registers the meaning of a head."""

    def register(meaning: Meaning) -> Meaning:
        made = Head(name, tuple(kinds.split()), asks, meaning)
        HEADS[name, len(made.kinds)] = made
        return meaning

    return register


def at(here: Here, axis: Axis | Spread, number: Number) -> Here:
    """Another iteration: the one with this coordinate along the axis."""
    return {**here, axis.name: number}


def each(function: Callable[..., Number], *arrays: Array) -> Array:
    """A function of the elements of several arrays at one index."""
    size = next((x.size for x in arrays if x.size is not None), None)
    return Array(size, lambda here, i: function(*(x.at(here, i) for x in arrays)))


# Elementwise.


def alike(world: World, *arrays: Array) -> Sequence[Truth]:
    """That arrays have as many rows each."""
    sizes = [x.size for x in arrays if x.size is not None]
    return [sizes[0] == size for size in sizes[1:]]


@head("add", "value value", alike)
def add(world: World, x: Array, y: Array) -> Array:
    return each(lambda p, q: p + q, x, y)


@head("sub", "value value", alike)
def sub(world: World, x: Array, y: Array) -> Array:
    return each(lambda p, q: p - q, x, y)


@head("mul", "value value", alike)
def mul(world: World, x: Array, y: Array) -> Array:
    return each(lambda p, q: p * q, x, y)


def no_zero(world: World, x: Array, y: Array) -> Sequence[Truth]:
    """A law says nothing about what is infinite, or no number."""
    return [*alike(world, x, y), everywhere(y, lambda q: world.fails(same(world, q, 0)))]


@head("div", "value value", no_zero)
def div(world: World, x: Array, y: Array) -> Array:
    return each(world.divide, x, y)


@head("neg", "value")
def neg(world: World, x: Array) -> Array:
    return each(lambda p: -p, x)


@head("select", "truths value value", alike)
def select(world: World, c: Array, x: Array, y: Array) -> Array:
    return each(world.where, c, x, y)


@head("either", "value value", alike)
def either(world: World, x: Array, y: Array) -> Array:
    """One of the two, which one is the same for every iteration."""
    return Array(x.size, lambda here, i: world.where(world.tells("either", i), x.at(here, i), y.at(here, i)))


@head("cast", "value")
def cast(world: World, x: Array) -> Array:
    """Rounding is no part of it: a cast keeps every number, or cuts the fractions of reals off."""
    return x if world.cast == "keeps" else each(world.truncated, x)


@head("real", "value")
def real(world: World, x: Array) -> Array:
    return each(lambda p: as_complex(p).real, x)


@head("imag", "value")
def imag(world: World, x: Array) -> Array:
    return each(lambda p: as_complex(p).imag, x)


@head("conj", "value")
def conj(world: World, x: Array) -> Array:
    return each(lambda p: Complex(p.real, -p.imag) if isinstance(p, Complex) else p, x)


@head("complex", "value value", alike)
def complex_of(world: World, x: Array, y: Array) -> Array:
    if world.kind == "complex":
        raise NoMeaning("`complex` takes reals")
    return each(Complex, x, y)


# Folds over axes.


@head("sum", "axis local", lambda world, a, x: [a.size > 0])
def sum_over(world: World, a: Axis, x: Array) -> Array:
    return Array(x.size, lambda here, i: world.fold("add", a.size, lambda c: x.at(at(here, a, c), i)))


@head("mask", "truths value")
def mask(world: World, c: Array, x: Array) -> Array:
    return Array(x.size, lambda here, i: world.where(c.at(here, i), x.at(here, i), 0))


@head("fill", "truths element value")
def fill(world: World, c: Array, u: Array, x: Array) -> Array:
    return Array(x.size, lambda here, i: world.where(c.at(here, i), x.at(here, i), u.at(here, i)))


@head("first", "axis")
def first(world: World, a: Axis) -> Array:
    return Array(None, lambda here, i: here[a.name] == 0)


# Blocks.


@head("build", "axis size local", lambda world, a, m, x: [a.size > 0, m > 0, x.size == m])
def build_blocks(world: World, a: Axis, m: Number, x: Array) -> Array:
    """The whole array: its consecutive blocks of m rows are the parts x of the iterations of a."""

    def row(here: Here, i: Number) -> Number:
        number, rest = world.digits(i, m)
        return x.at(at(here, a, number), rest)

    return Array(a.size * m, row)


@head("slice", "axis size whole", lambda world, a, m, x: [a.size > 0, m > 0, x.size == a.size * m])
def slice_block(world: World, a: Axis, m: Number, x: Array) -> Array:
    return Array(m, lambda here, i: x.at(here, here[a.name] * m + i))


@head("offset", "axis size")
def offset(world: World, a: Axis, m: Number) -> Array:
    return Array(None, lambda here, i: here[a.name] * m)


@head("iota", "size")
def iota(world: World, n: Number) -> Array:
    return Array(n, lambda here, i: i)


@head("part", "row value", lambda world, n, x: [n >= 0, n <= x.size])
def part(world: World, n: Number, x: Array) -> Array:
    return Array(n, x.at)


@head("extend", "element value")
def extend(world: World, u: Array, x: Array) -> Array:
    """x, and u behind its end: as many as anything reads."""
    return Array(None, lambda here, i: world.where(i < x.size, x.at(here, i), u.at(here, i)))


@head("within", "axis size row")
def within(world: World, a: Axis, m: Number, n: Number) -> Array:
    return Array(m, lambda here, i: here[a.name] * m + i < n)


@head("chain", "row whole whole", lambda world, n, x, y: [n >= 0, n <= x.size])
def chain(world: World, n: Number, x: Array, y: Array) -> Array:
    """The first n rows of x, and those of y behind them."""
    return Array(x.size, lambda here, i: world.where(i < n, x.at(here, i), y.at(here, i - n)))


def pushed(n: Number, y: Array) -> Array:
    """y from row n on. Before it, and behind its end, may be anything."""
    return Array(y.size, lambda here, i: y.at(here, i - n))


@head("after", "row whole")
def after(world: World, n: Number, y: Array) -> Array:
    return pushed(n, y)


@head("behind", "axis size row")
def behind(world: World, a: Axis, m: Number, n: Number) -> Array:
    return Array(m, lambda here, i: here[a.name] * m + i >= n)


@head("over", "row value value", lambda world, k, x, y: [k >= 0, k + x.size <= y.size])
def over(world: World, k: Number, x: Array, y: Array) -> Array:
    """y with x in the place of its rows from k on."""

    def row(here: Here, i: Number) -> Number:
        return world.where(world.every(i >= k, i < k + x.size), x.at(here, i - k), y.at(here, i))

    return Array(y.size, row)


@head("among", "axis size row whole")
def among(world: World, a: Axis, m: Number, k: Number, x: Array) -> Array:
    def tells(here: Here, i: Number) -> Truth:
        row = here[a.name] * m + i - k
        return world.every(row >= 0, row < x.size)

    return Array(m, tells)


# Rows at positions.


def everywhere(x: Array, fact: Callable[[Number], Truth]) -> Truth:
    """A fact of each element of an array, which the world that made the array takes note of."""
    return Everywhere(x, lambda here, i, element: fact(element))


@dataclass(frozen=True, slots=True)
class Everywhere:
    """That a fact holds for each element of an array, at its iteration and index."""

    array: Array
    fact: Callable[[Here, Number, Number], Truth]


def bounded(world: World, k: Array, n: Number) -> Truth:
    return everywhere(k, lambda p: world.every(p >= 0, p < n))


@head("take", "positions value", lambda world, k, x: [bounded(world, k, x.size)])
def take(world: World, k: Array, x: Array) -> Array:
    """The rows of x at the positions k. For one outside of x it may be anything."""

    def row(here: Here, j: Number) -> Number:
        position = k.at(here, j)
        inside = world.every(position >= 0, position < x.size)
        return world.where(inside, x.at(here, position), world.unknown("row", position))

    return Array(k.size, row)


@head("find", "positions value")
def find(world: World, k: Array, x: Array) -> Array:
    """The rows of x at the positions k. For one outside of x it is zero."""

    def row(here: Here, j: Number) -> Number:
        position = k.at(here, j)
        return world.where(world.every(position >= 0, position < x.size), x.at(here, position), 0)

    return Array(k.size, row)


@head("put", "size positions value", lambda world, n, k, x: [x.size == k.size])
def put(world: World, n: Number, k: Array, x: Array) -> Array:
    """Row i folds the rows of x whose position is i, with any monoid. Rows that fall outside are in none."""

    def row(here: Here, i: Number) -> Number:
        def here_or_unit(j: Number) -> Number:
            return world.where(k.at(here, j) == i, x.at(here, j), world.unit("put"))

        return world.fold("put", x.size, here_or_unit)

    return Array(n, row)


@head("join", "size positions value", lambda world, n, k, x: [x.size == k.size, bounded(world, k, n)])
def join(world: World, n: Number, k: Array, x: Array) -> Array:
    """Row i adds the rows of x whose position is i. A row that falls outside is added anywhere."""

    def row(here: Here, i: Number) -> Number:
        def here_or_zero(j: Number) -> Number:
            position = k.at(here, j)
            inside = world.every(position >= 0, position < n)
            return world.where(world.where(inside, position, world.unknown("place", position)) == i, x.at(here, j), 0)

        return world.fold("add", x.size, here_or_zero)

    return Array(n, row)


@head("shift", "axis size positions")
def shift(world: World, a: Axis, m: Number, k: Array) -> Array:
    return Array(k.size, lambda here, j: k.at(here, j) - here[a.name] * m)


@head("mine", "axis size positions")
def mine(world: World, a: Axis, m: Number, k: Array) -> Array:
    def tells(here: Here, j: Number) -> Truth:
        start = here[a.name] * m
        return world.every(k.at(here, j) >= start, k.at(here, j) < start + m)

    return Array(k.size, tells)


# Scans.


@head("scan", "scheme value")
def scan(world: World, s: str, x: Array) -> Array:
    return Array(x.size, lambda here, i: world.fold(s, i + 1, lambda j: x.at(here, j)), scheme=s)


@head("across", "axis value")
def across(world: World, a: Axis, x: Array) -> Array:
    """The whole array: each row of a block after the last rows of the blocks before it."""
    block: Number = x.size

    def row(here: Here, i: Number) -> Number:
        number, rest = world.digits(i, block)
        before = world.fold(x.scheme, number, lambda c: x.at(at(here, a, c), block - 1))
        return world.combine(x.scheme, before, x.at(at(here, a, number), rest))

    return Array(a.size * block, row)


# Sorts.


@head("sort", "scheme value")
def sort(world: World, s: str, x: Array) -> Array:
    """The elements in order. s says in which one, here in that of numbers."""
    return Array(x.size, lambda here, i: world.in_order([x.size], lambda j: x.at(here, j), i))


@head("merge", "axis size local", lambda world, a, m, x: [a.size > 0, m > 0, x.size == m])
def merge(world: World, a: Axis, m: Number, x: Array) -> Array:
    """The whole array: the elements of all iterations in order."""
    return Array(a.size * m, lambda here, i: world.in_order([a.size, m], lambda c, j: x.at(at(here, a, c), j), i))


# Windows. Those of iteration c begin `before` rows before row c * stride.


def start(here: Here, a: Axis) -> Number:
    return here[a.name] * a.stride - a.before


@head("windows", "axis whole", lambda world, a, x: [a.stride > 0, a.before >= 0, a.width > 0])
def windows(world: World, a: Axis, x: Array) -> Array:
    return Array(a.width, lambda here, i: x.at(here, start(here, a) + i))


@head("surround", "element value")
def surround(world: World, u: Array, x: Array) -> Array:
    """x with u around it, on both sides, as far as anything reads."""
    return Array(None, lambda here, i: world.where(world.every(i >= 0, i < x.size), x.at(here, i), u.at(here, i)))


def covers(world: World, a: Axis, x: Array) -> Sequence[Truth]:
    """That windows leave no gap, and where they overlap have the same rows: those of one array."""
    one = Everywhere(x, lambda here, i, element: _is_row(world, element, start(here, a) + i))
    return [a.size > 0, a.stride > 0, a.before >= 0, a.width >= a.stride, x.size == a.width, one]


def _is_row(world: World, element: Number, row: Number) -> Truth:
    if isinstance(element, Complex):
        return world.every(_is_row(world, element.real, row), element.imag == world.unknown("covered imag", row))
    return element == world.unknown("covered", row)


@head("cover", "axis local", covers)
def cover(world: World, a: Axis, x: Array) -> Array:
    """The array of which the iterations hold the windows x: a row is that of any window that has it."""

    def row(here: Here, g: Number) -> Number:
        def has(c: Number) -> Truth:
            first = start(at(here, a, c), a)
            return world.every(first <= g, g < first + a.width)

        found, c = world.choice(a.size, has)
        there = at(here, a, c)
        return world.where(found, x.at(there, g - start(there, a)), world.unknown("row", g))

    return Array((a.size - 1) * a.stride - a.before + a.width, row)


@head("own", "axis row")
def own(world: World, a: Axis, n: Number) -> Array:
    """The rows of a window among the first n that are before the next window, if there is one."""

    def tells(here: Here, i: Number) -> Truth:
        row = start(here, a) + i
        is_last = here[a.name] == a.size - 1
        return world.every(row >= 0, row < n, world.some(is_last, row < start(at(here, a, here[a.name] + 1), a)))

    return Array(a.width, tells)


def adds(world: World, u: Array, x: Array) -> Sequence[Truth]:
    """That u is zero, the unit of the sums of the iterations."""
    return [same(world, u.at({}, 0), 0)]


@head("fold", "element value", adds)
def fold(world: World, u: Array, x: Array) -> Array:
    """The sum of all rows. A scan is, at each row, one of those before it."""
    return Array(None, lambda here, _: world.fold("add", x.size, lambda i: x.at(here, i)))


@head("inside", "axis whole")
def inside(world: World, a: Axis, x: Array) -> Array:
    def tells(here: Here, i: Number) -> Truth:
        row = start(here, a) + i
        return world.every(row >= 0, row < x.size)

    return Array(a.width, tells)


@head("read", "value")
def read(world: World, x: Array) -> Array:
    """What an op makes of what it reads: of equal arrays the same, so it may be taken for the array itself."""
    return x


@head("from", "axis row")
def from_row(world: World, a: Axis, k: Number) -> Array:
    """The rows that an op reads of its array, for what iteration c computes: those from c * stride + k on."""
    return Array(a.width, lambda here, i: world.unknown("array", here[a.name] * a.stride + k + i))


@head("held", "axis element")
def held(world: World, a: Axis, k: Array) -> Array:
    """The rows from k on of what the iteration holds, which are those of the array from `start` on."""
    return Array(a.width, lambda here, i: world.unknown("array", start(here, a) + k.at(here, 0) + i))


@head("local", "axis row")
def local(world: World, a: Axis, k: Number) -> Array:
    """Row k is so many rows behind the first one that iteration 0 holds, and its neighbours are as far from theirs."""
    return Array(None, lambda here, i: k + a.before)


# Builders. A layout says which element of which iteration an index of the array is.


def has_parts(world: World, layout: Any, x: Any) -> Sequence[Truth]:
    if isinstance(layout, Pair):
        return [*has_parts(world, layout.first, x.first), *has_parts(world, layout.second, x.second)]
    return [x.size == layout.block]


@head("build", "layout part", has_parts)
def build(world: World, layout: Spread | Pair, x: Array | Pair) -> Array | Pair:
    """The array of the parts of all iterations. A nest with two results runs over the axes of both layouts."""
    if isinstance(layout, Pair) and isinstance(x, Pair):
        both = layout.first, layout.second
        first, second = (_in_nest(world, mine, both, part) for mine, part in zip(both, (x.first, x.second), strict=True))
        return Pair(first, second)
    assert isinstance(layout, Spread)
    return _in_nest(world, layout, (layout,), x)


def _in_nest(world: World, layout: Spread, nest: Sequence[Spread], x: Any) -> Array:
    """An element is taken from an iteration that holds it: any one of those that differ along other axes of the nest."""

    def element(here: Here, index: Number) -> Number:
        some = {other.name: world.unknown("iteration", index) for other in nest}
        return x.at({**here, **some, layout.name: layout.number(index)}, layout.local(index))

    return Array(layout.extent, element)


@head("slice", "layout whole", lambda world, layout, x: [x.size == layout.extent])
def slice_part(world: World, layout: Spread, x: Array) -> Array:
    return Array(layout.block, lambda here, i: x.at(here, layout.whole(here[layout.name], i)))


@head("both", "value value")
def both(world: World, x: Any, y: Any) -> Pair:
    return Pair(x, y)


@head("each", "axis local")
def each_iteration(world: World, a: Axis, x: Any) -> Any:
    """What each iteration has, by its coordinates: their order is no part of it."""
    return x


def same(world: World, x: Number, y: Number) -> Truth:
    if isinstance(x, Complex) or isinstance(y, Complex):
        p, q = as_complex(x), as_complex(y)
        return world.every(p.real == q.real, p.imag == q.imag)
    return x == y
