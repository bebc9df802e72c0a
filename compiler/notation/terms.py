"""A checked program: every index has one range, every value one type, every name is what it stands for.

Its terms are the tree of the definitions, over `Index`es and `Array`s; a cast is the function `cast`.

y[b] = max(sum(k) x[b, k] * w[k], 0)   -->   Equation(y: f32[8], (b), Apply(max, Fold(sum, (k), ...), Number(0)))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from ...dialects.definitions.tree import Affine, Apply, Fold, Group, Number, Read, parts
from ...dialects.dtypes import short
from ...dialects.errors import Span


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
class Mask:
    """`[condition]`: a truth value; as a factor it keeps the product, or makes it 0."""

    condition: Term
    span: Span | None = field(default=None, compare=False, repr=False)


Constant: TypeAlias = "Number[int | float | bool]"
Reading: TypeAlias = "Read[Array, Dim]"
Term: TypeAlias = "Constant | Group[Index] | Reading | Apply[Term] | Fold[Index, Term] | Mask"
Dim: TypeAlias = "Affine[Index] | Term"
"""A dim of a read: a group of indices; a window, which without indices is one place; or else a position that is computed."""


def at(term: Term) -> Span:
    """Where a term stands in the text."""
    assert term.span is not None
    return term.span


def alone(term: Dim) -> Index | None:
    """The index that a term is, if it is one."""
    return term.indices[0] if isinstance(term, Group) and len(term.indices) == 1 else None


def computed(dim: Dim) -> bool:
    """Is the position looked up?"""
    return not isinstance(dim, Group | Affine)


def sliding(dim: Dim) -> tuple[Term, Index] | None:
    """`start + i` with a start that depends on no index: a window as wide as the range of `i`."""
    match dim:
        case Apply("add", (Group((index,)), start)) | Apply("add", (start, Group((index,)))) if not free(start):
            return start, index
        case _:
            return None


def ends(window: Affine[Index]) -> tuple[int, int]:
    """The first and the last position of a window."""
    reach = [factor * (index.extent - 1) for index, factor in window.factors]
    return window.offset + sum(min(0, each) for each in reach), window.offset + sum(max(0, each) for each in reach)


def dtype(term: Term) -> str:
    """The dtype of a term; that of numbers, which take the dtype of what they meet, is `int`, `float` or `truth`."""
    match term:
        case Number(value):
            return "truth" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
        case Group():
            return "int32"
        case Read(array):
            return array.dtype
        case Apply():
            return term.dtype
        case Fold(monoid, _, body):
            return "int32" if monoid in ("argmax", "argmin") else settled(dtype(body))
        case Mask():
            return "bool"


def settled(found: str) -> str:
    """The dtype that a number has where it meets nothing."""
    return {"int": "int32", "float": "float32", "truth": "bool"}.get(found, found)


def inner(term: Dim) -> tuple[Dim, ...]:
    """The terms directly inside one, the dims of a read too."""
    return (term.condition,) if isinstance(term, Mask) else cast("tuple[Dim, ...]", parts(term))


def moved(dim: Dim) -> tuple[Index, ...]:
    """The indices of a dim, those inside a computed position aside."""
    match dim:
        case Group(indices):
            return indices
        case Affine(_, factors):
            return tuple(index for index, _ in factors)
        case _:
            return ()


def free(term: Dim) -> tuple[Index, ...]:
    """The indices that a term depends on, in the order in which they stand."""
    return tuple(dict.fromkeys(_free(term)))


def _free(term: Dim) -> Iterator[Index]:
    # A sum of a thousand terms is a thousand deep, so what is still to be looked at is kept here and not on Python's stack.
    waiting: list[tuple[Dim, tuple[Index, ...]]] = [(term, ())]
    while waiting:
        term, bound = waiting.pop()
        yield from (each for each in moved(term) if each not in bound)
        bound = (*bound, *term.indices) if isinstance(term, Fold) else bound
        waiting += [(each, bound) for each in reversed(inner(term))]


@dataclass(frozen=True, slots=True)
class Left:
    """What stands on the left of an equation: a dim is an index, or a product of several."""

    array: Array
    dims: tuple[Group[Index], ...] | None
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
    arguments: tuple[Array | Apply[Term], ...]
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
    span: Span
    depth: int
    """How deeply its calls are nested."""
    count: int
    """How many equations it has when its calls are inlined."""
