"""What the ops of a step do to local arrays, as functions of one device and one index.

    slice(x, [2], [3])    Local((3,), at=lambda here, index: x.at(here, [index + 2]))

`symbolic_ops` runs the code that emits a step, with these functions in place of its ops. Numbers are Python's, or any that
behave like them. An element is what it is of the whole array: its position in each dim; `ZERO`; `ANY`, in padding; or a fold.
"""

# What ops do is said of numbers of any kind.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any, TypeAlias
from unittest.mock import patch

from xdsl.ir import SSAValue

from ....dialects import spmd
from ....dialects.ranges import terms
from ....dialects.ranges.algebra import Place
from ...emit import Emitter
from ...redistribute.kinds import pieces
from ...redistribute.kinds.exchange import Along
from ..symbolic.polynomial import Polynomial
from ..symbolic.symbol import Symbol, Undecided
from ..values import Number

Here: TypeAlias = Mapping[Place, Number]
"""The coordinates of a device."""
Index: TypeAlias = tuple[Number, ...]
Element: TypeAlias = Any
"""A tuple of positions, a number, a truth, or one of the classes of this file."""

ZERO, ANY = 0, "any"


@dataclass(frozen=True, slots=True)
class Folded:
    """The fold of the elements `of(0)`, `of(1)`, ... `of(count - 1)`."""

    monoid: str
    count: Number
    of: Callable[[Number], Element]


@dataclass(frozen=True, slots=True)
class Type:
    """What code that emits ops asks of a type."""

    shape: tuple[Number, ...]
    dtype: str

    @property
    def text(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True, eq=False)
class Local:
    """A local array on every device, in the place of a value of a program."""

    shape: tuple[Number, ...]
    at: Callable[[Here, Index], Element]
    dtype: str = "float32"

    @property
    def type(self) -> Type:
        return Type(self.shape, self.dtype)

    def moved(self, shape: Sequence[Number], index: Callable[[Here, Index], Sequence[Number]]) -> Local:
        """The array of this shape that has at each index what this one has at another."""
        return Local(tuple(shape), lambda here, at: self.at(here, tuple(index(here, at))), self.dtype)


SSAValue.register(Local)


def rank(axes: Sequence[Place], here: Here) -> Number:
    """The number of a device in its group: its coordinates along the axes, counted major to minor."""
    number: Number = 0
    for axis in axes:
        number = number * axis.size + here[axis]
    return number


def member(axes: Sequence[Place], here: Here, number: Number) -> Here:
    """The device of the same group that has this number."""
    found = dict(here)
    for axis in reversed(axes):
        number, found[axis] = divmod(number, axis.size)
    return found


def put(index: Sequence[Number], dim: int, number: Number) -> Index:
    return (*index[:dim], number, *index[dim + 1 :])


# Collectives.


def exchange(kind: type[spmd.Collective], axes: Sequence[Place], given: Mapping[str, Any], x: Local) -> Local:
    """What a collective leaves on each device: see `Collective.exchange`."""
    if issubclass(kind, spmd.PermuteOp):
        return permute(axes, given["pairs"], x)
    if issubclass(kind, spmd.PickOp):
        rows, dim = given["rows"], given["dim"]
        if not all(row >= 0 and row < x.shape[dim] for each in rows for row in each):
            raise ValueError(f"rows {rows} of {x.shape[dim]}")
        shape = put(x.shape, dim, len(rows[0]))
        return x.moved(shape, lambda here, at: put(at, dim, listed(rows[rank(axes, here)], at[dim])))
    count = prod(axis.size for axis in axes)

    def own(here: Here, index: Index) -> Element:
        if "monoid" not in given:
            return x.at(here, index)
        return Folded(given["monoid"], count, lambda number: x.at(member(axes, here, number), index))

    def part(sender: Here, number: Number, index: Index) -> Element:
        """What a device has for the one with this number."""
        if kind.SPLITS is None:
            return own(sender, index)
        dim, block = (given[name] for name in kind.SPLITS)
        row, rest = divmod(index[dim], block)
        return own(sender, put(index, dim, (row * count + number) * block + rest))

    def element(here: Here, index: Index) -> Element:
        if kind.JOINS is None:
            return part(here, rank(axes, here), index)
        dim, block = (given[name] for name in kind.JOINS)
        row, rest = divmod(index[dim], block)
        row, sender = divmod(row, count)
        return part(member(axes, here, sender), rank(axes, here), put(index, dim, row * block + rest))

    return Local(shape_after(kind, given, count, x.shape), element, x.dtype)


def shape_after(kind: type[spmd.Collective], given: Mapping[str, Any], count: Number, shape: Index) -> Index:
    """The shape of what a collective leaves; `ValueError` if blocks do not divide a dim."""
    for names, unit in ((kind.SPLITS, count), (kind.JOINS, 1)):
        if names is not None:
            dim, block = (given[name] for name in names)
            if block < 1 or shape[dim] % (unit * block) != 0:
                raise ValueError(f"blocks of {block} do not divide {shape[dim]}")
            shape = put(shape, dim, shape[dim] // count if names is kind.SPLITS else shape[dim] * count)
    return shape


def permute(axes: Sequence[Place], pairs: Sequence[tuple[int, int]], x: Local) -> Local:
    """A device gets the array of the one that sends to it; without one, zeros."""
    senders = {receiver: sender for sender, receiver in pairs}
    if len(senders) < len(pairs) or len({*senders.values()}) < len(pairs):
        raise ValueError(f"a device sends or receives twice in {pairs}")

    def element(here: Here, index: Index) -> Element:
        sender = senders.get(rank(axes, here))
        return ZERO if sender is None else x.at(member(axes, here, sender), index)

    return Local(x.shape, element, x.dtype)


def listed(numbers: Sequence[Number], at: Number) -> Number:
    """The number that stands at a place, which may be known by its bounds alone."""
    return next(number for place, number in enumerate(numbers) if at == place)


def common(*numbers: Number) -> Number:
    """The greatest common divisor of numbers, which are multiples of one product of variables."""
    symbols = [each for each in numbers if type(each) is Symbol]
    if not symbols:
        return gcd(*numbers)
    products = {each for symbol in symbols for each in symbol.polynomial.terms}
    if len(products) > 1 or len(symbols) < len(numbers):
        raise Undecided(f"the greatest common divisor of {', '.join(map(str, numbers))}")
    (product,) = products
    return symbols[0].made(Polynomial({product: gcd(*(each.polynomial.terms[product] for each in symbols))}))


# Local ops, by their names in `lax`. Each has the operands, the shape of the result, and its parameters.

OPS: dict[str, Callable[..., Local]] = {}


def op(function: Callable[..., Local]) -> Callable[..., Local]:
    OPS[function.__name__.rstrip("_")] = function
    return function


def moves(function: Callable[..., Callable[[Here, Index], Sequence[Number]]]) -> None:
    """Registers an op that moves the elements of one array: the function says where each comes from."""

    def moved(shape: Index, x: Local, *ins: Local, **params: Any) -> Local:
        return x.moved(shape, function(x, *ins, shape=shape, **params))

    OPS[function.__name__] = moved


@op
def constant(shape: Index, value: Any) -> Local:
    return Local((), lambda here, at: value)


@op
def iota(shape: Index, dimension: int, dtype: Any) -> Local:
    return Local(shape, lambda here, at: at[dimension])


@moves
def broadcast_in_dim(x: Local, *, shape: Index, broadcast_dimensions: Sequence[int]) -> Any:
    return lambda here, at: [at[dim] for dim in broadcast_dimensions]


@moves
def transpose(x: Local, *, shape: Index, permutation: Sequence[int]) -> Any:
    return lambda here, at: [at[permutation.index(dim)] for dim in range(len(at))]


@moves
def slice_of(x: Local, *, shape: Index, start_indices: Index, strides: None) -> Any:
    for size, first, length in zip(shape, start_indices, x.shape, strict=True):
        if first < 0 or first + size > length:
            raise ValueError(f"rows {first} to {first + size} of {length}")
    return lambda here, at: [first + i for first, i in zip(start_indices, at, strict=True)]


OPS["slice"] = OPS.pop("slice_of")


@moves
def dynamic_slice(x: Local, *starts: Local, shape: Index) -> Any:
    return lambda here, at: [first + i for first, i in zip(clamped(here, starts, shape, x.shape), at, strict=True)]


def clamped(here: Here, starts: Sequence[Local], shape: Index, length: Index) -> list[Number]:
    """Where a part of an array begins: further in front than it is told if it has too few rows behind it."""
    return [max(0, min(each.at(here, ()), n - size)) for each, size, n in zip(starts, shape, length, strict=True)]


@op
def dynamic_update_slice(shape: Index, x: Local, y: Local, *starts: Local) -> Local:
    def element(here: Here, at: Index) -> Element:
        inner = tuple(i - first for first, i in zip(clamped(here, starts, y.shape, x.shape), at, strict=True))
        inside = all(i >= 0 and i < n for i, n in zip(inner, y.shape, strict=True))
        return y.at(here, inner) if inside else x.at(here, at)

    return Local(shape, element, x.dtype)


@op
def pad(shape: Index, x: Local, filling: Local, padding_config: Sequence[tuple[Number, Number, int]]) -> Local:
    def element(here: Here, at: Index) -> Element:
        inner = tuple(i - low for i, (low, *_) in zip(at, padding_config, strict=True))
        inside = all(i >= 0 and i < n for i, n in zip(inner, x.shape, strict=True))
        return x.at(here, inner) if inside else filling.at(here, ())

    return Local(shape, element, x.dtype)


@op
def concatenate(shape: Index, *parts: Local, dimension: int) -> Local:
    def element(here: Here, at: Index) -> Element:
        row = at[dimension]
        for part in parts[:-1]:
            if row < part.shape[dimension]:
                return part.at(here, put(at, dimension, row))
            row = row - part.shape[dimension]
        return parts[-1].at(here, put(at, dimension, row))

    return Local(shape, element, parts[0].dtype)


@op
def select_n(shape: Index, which: Local, other: Local, x: Local) -> Local:
    def element(here: Here, at: Index) -> Element:
        return (x if which.at(here, at if which.shape else ()) else other).at(here, at)

    return Local(shape, element, x.dtype)


@moves
def reshape(x: Local, *, shape: Index) -> Any:
    def index(here: Here, at: Index) -> list[Number]:
        number: Number = 0
        for size, i in zip(shape, at, strict=True):
            number = number * size + i
        found = list[Number]()
        for size in reversed(x.shape[1:]):
            number, i = divmod(number, size)
            found.append(i)
        return [number, *reversed(found)][: len(x.shape)]

    return index


def elementwise(name: str, function: Callable[..., Element]) -> None:
    OPS[name] = lambda shape, *ins: Local(shape, lambda here, at: function(*(x.at(here, at if x.shape else ()) for x in ins)))


for name, function in {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "ge": lambda x, y: x >= y,
    "lt": lambda x, y: x < y,
    "eq": lambda x, y: x == y,
    "and": lambda x, y: x and y,
}.items():
    elementwise(name, function)


# The code of the kinds, on such arrays.


@contextmanager
def as_functions() -> Generator[None]:
    """While it lasts, code that emits ops makes local arrays, and ranges take numbers of any kind."""

    def make(self: Emitter, kind: str, ins: Sequence[Any], dtype: str, shape: Index, /, **params: Any) -> Any:
        return appended(self, replace(OPS[kind](tuple(shape), *ins, **params), dtype=dtype))

    def apply(self: Emitter, kind: str, *operands: Any) -> Any:
        shape = max((each.shape for each in operands if isinstance(each, Local)), key=len)
        return appended(self, OPS[kind](shape, *map(whole, operands)))

    def collective(kind: type[spmd.Collective], x: Any, axes: Sequence[Place], **given: Any) -> Any:
        return exchange(kind, axes, {name: getattr(each, "data", each) for name, each in given.items()}, x)

    def add(self: Along, op: Any) -> Any:
        is_rank = isinstance(op, spmd.CoordinateOp)
        return appended(self, Local((), lambda here, at: rank(self.axes, here), "int32") if is_rank else op)

    with ExitStack() as patches:
        for of, name, function in (
            (Emitter, "make", make),
            (Emitter, "apply", apply),
            (Along, "add", add),
            (spmd.Collective, "make", classmethod(collective)),
            (pieces, "gcd", common),
        ):
            patches.enter_context(patch.object(of, name, function))
        patches.enter_context(patch.object(terms, "int", lambda number: number, create=True))
        yield


def appended(emitter: Emitter, made: Any) -> Any:
    emitter.into.append(made)
    return made


def whole(operand: Any) -> Local:
    return operand if isinstance(operand, Local) else Local((), lambda here, at: operand)
