"""A checked program: every index has one range, every value one type, every name is what it stands for.

y[b] = max(sum(k) x[b, k] * w[k], 0)   -->   Equation(y: f32[8], (b), Apply(max, Fold(sum, (k), ...), Number(0)))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ...dialects.dtypes import short
from .diagnostics import Span


@dataclass(eq=False, slots=True)
class Index:
    """An index; its extent is found as the equation is read, and `why` says by what."""

    name: str
    span: Span
    extent: int = -1
    why: str = ""

    @property
    def known(self) -> bool:
        return self.extent >= 0


@dataclass(frozen=True, slots=True)
class Array:
    """A value of a function. `extents` are the names that its dims were given."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    span: Span
    extents: tuple[str | None, ...] = ()

    @property
    def type(self) -> str:
        return type_text(self.dtype, self.shape)


def type_text(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{short(dtype)}[{', '.join(map(str, shape))}]"


@dataclass(frozen=True, slots=True)
class Fixed:
    """A dim at one place."""

    place: int


@dataclass(frozen=True, slots=True)
class Joint:
    """A dim that is a product of indices, major to minor: `(h d)`."""

    indices: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Affine:
    """A dim at `offset + sum(index * factor)`: a slice, or with several indices a window."""

    offset: int
    factors: tuple[tuple[Index, int], ...]

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last position."""
        reach = [factor * (index.extent - 1) for index, factor in self.factors]
        return self.offset + sum(min(0, each) for each in reach), self.offset + sum(max(0, each) for each in reach)


@dataclass(frozen=True, slots=True)
class Sliding:
    """A dim at `start + index`, where the start is computed: a window as wide as the index's range."""

    start: Term
    index: Index


@dataclass(frozen=True, slots=True)
class Look:
    """A dim at a position that is computed: a looked-up index."""

    term: Term


Sub: TypeAlias = "Index | Fixed | Joint | Affine | Sliding | Look"


@dataclass(frozen=True, slots=True)
class Number:
    value: int | float | bool
    span: Span


@dataclass(frozen=True, slots=True)
class Position:
    """An index used as a value."""

    index: Index
    span: Span


@dataclass(frozen=True, slots=True)
class Read:
    array: Array
    subs: tuple[Sub, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Apply:
    """An op by its name in the definitions, elementwise; `params` is the text of its parameters."""

    function: str
    args: tuple[Term, ...]
    dtype: str
    span: Span
    params: str = ""


@dataclass(frozen=True, slots=True)
class Cast:
    arg: Term
    dtype: str
    span: Span


@dataclass(frozen=True, slots=True)
class Fold:
    monoid: str
    indices: tuple[Index, ...]
    body: Term
    span: Span


@dataclass(frozen=True, slots=True)
class Mask:
    """`[condition]`: a truth value; as a factor it keeps the product, or makes it 0."""

    condition: Term
    span: Span


Term: TypeAlias = "Number | Position | Read | Apply | Cast | Fold | Mask"


def dtype(term: Term) -> str:
    """The dtype of a term; that of numbers, which take the dtype of what they meet, is `int`, `float` or `truth`."""
    match term:
        case Number(value):
            return "truth" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
        case Position():
            return "int32"
        case Read(array):
            return array.dtype
        case Apply(dtype=found) | Cast(dtype=found):
            return found
        case Fold(monoid, _, body):
            return "int32" if monoid in ("argmax", "argmin") else settled(dtype(body))
        case Mask():
            return "bool"


def settled(found: str) -> str:
    """The dtype that a number has where it meets nothing."""
    return {"int": "int32", "float": "float32", "truth": "bool"}.get(found, found)


def inner(term: Term) -> tuple[Term, ...]:
    """The terms directly inside one, those in positions too."""
    match term:
        case Apply(_, args):
            return args
        case Cast(arg):
            return (arg,)
        case Fold(_, _, body):
            return (body,)
        case Mask(condition):
            return (condition,)
        case Read(_, subs):
            return tuple(s.term if isinstance(s, Look) else s.start for s in subs if isinstance(s, Look | Sliding))
        case _:
            return ()


def subscripts(sub: Sub) -> tuple[Index, ...]:
    """The indices of a position, those in computed ones aside."""
    match sub:
        case Index():
            return (sub,)
        case Joint(indices):
            return indices
        case Affine(_, factors):
            return tuple(index for index, _ in factors)
        case Sliding(_, index):
            return (index,)
        case _:
            return ()


def free(term: Term) -> tuple[Index, ...]:
    """The indices that a term depends on, in the order in which they stand."""
    return tuple(dict.fromkeys(_free(term)))


def _free(term: Term) -> Iterator[Index]:
    # A sum of a thousand terms is a thousand deep, so what is still to be looked at is kept here and not on Python's stack.
    waiting: list[tuple[Term, tuple[Index, ...]]] = [(term, ())]
    while waiting:
        term, bound = waiting.pop()
        match term:
            case Position(index):
                yield from (each for each in (index,) if each not in bound)
            case Fold(_, indices, body):
                waiting.append((body, (*bound, *indices)))
            case Read(_, subs):
                for sub in subs:
                    found = free(sub.term) if isinstance(sub, Look) else subscripts(sub)
                    yield from (each for each in found if each not in bound)
            case _:
                waiting += [(each, bound) for each in reversed(inner(term))]


@dataclass(frozen=True, slots=True)
class Left:
    """What stands on the left of an equation: a dim is an index, or a product of several."""

    array: Array
    dims: tuple[Index | Joint, ...] | None
    places: tuple[tuple[str, ...], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Equation:
    """`left = pieces`; several pieces lie behind one another along the dim `along`."""

    left: Left
    pieces: tuple[Term, ...]
    along: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class Calling:
    """`lefts = function(arguments)`, a function of this file or, with `params`, a primitive of JAX, which takes numbers too."""

    lefts: tuple[Left, ...]
    function: str
    arguments: tuple[Array | Cast, ...]
    params: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Function:
    """A checked function."""

    name: str
    arguments: tuple[Array, ...]
    places: tuple[tuple[tuple[str, ...], ...], ...]
    results: tuple[Array, ...]
    result_places: tuple[tuple[tuple[str, ...], ...], ...]
    statements: tuple[Equation | Calling, ...]
    returned: tuple[str, ...]
    values: Mapping[str, Array]
    span: Span
    extents: Mapping[str, int] = field(default_factory=dict[str, int])
    depth: int = 1
    """How deeply its calls are nested."""
    count: int = 0
    """How many equations it has when its calls are inlined."""
