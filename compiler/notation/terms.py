"""A checked program: every index has one range, every value one type, and names are replaced by the objects they refer to.

Its terms are the tree of the definitions, over `Index`es and `Array`s; a cast is the function `cast`.

y[b] = max(sum(k) x[b, k] * w[k], 0)   -->   Equation(y: f32[8], (b), Apply(max, Fold(sum, (k), ...), Number(0)))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from ...dialects.definitions.syntax_tree import Affine, Apply, Fold, Group, Number, Read, subtrees
from ...dialects.ground.dtypes import short
from ...dialects.ground.errors import Span


@dataclass(eq=False, slots=True)
class CheckedIndex:
    """An index. Its extent becomes known while the equation is read; `why` says from which phrase."""

    name: str
    span: Span
    extent: int = -1
    why: str = ""

    @property
    def known(self) -> bool:
        return self.extent >= 0


@dataclass(frozen=True, slots=True)
class Array:
    """A value of a function. `extents` are the names of its dims' extents, `places` the mesh axes of each that says any."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    span: Span
    extents: tuple[str | None, ...] = ()
    places: tuple[tuple[str, ...], ...] = ()

    @property
    def type(self) -> str:
        return type_text(self.dtype, self.shape)


def type_text(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{short(dtype)}[{', '.join(map(str, shape))}]"


@dataclass(frozen=True, slots=True)
class Mask:
    """`[condition]`: a boolean. As a factor it keeps the product where the condition holds, and makes it 0 elsewhere."""

    condition: Term
    span: Span | None = field(default=None, compare=False, repr=False)


Constant: TypeAlias = "Number[int | float | bool]"
Reading: TypeAlias = "Read[Array, Dim]"
Term: TypeAlias = "Constant | Group[CheckedIndex] | Reading | Apply[Term] | Fold[CheckedIndex, Term] | Mask"
Dim: TypeAlias = "Affine[CheckedIndex] | Term"
"""A dim of a read: a group of indices; a window, which without indices is a fixed position; or a computed position."""


def span_in_text(term: Term) -> Span:
    """The span of a term in the text."""
    assert term.span is not None
    return term.span


def alone(term: Dim) -> CheckedIndex | None:
    """The index, if the term is a single index; otherwise None."""
    return term.indices[0] if isinstance(term, Group) and len(term.indices) == 1 else None


def computed(dim: Dim) -> bool:
    """Whether the position is looked up."""
    return not isinstance(dim, Group | Affine)


def sliding(dim: Dim) -> tuple[Term, CheckedIndex] | None:
    """The start and the index of `start + i`, if the start depends on no index: a window as wide as the range of `i`."""
    match dim:
        case Apply("add", (Group((index,)), start)) | Apply("add", (start, Group((index,)))) if not free(start):
            return start, index
        case _:
            return None


def leaves(window: Affine[CheckedIndex], extent: int) -> tuple[int, int] | None:
    """The first and the last position of a window, if it leaves a dim of this extent; otherwise None."""
    reach = [factor * (index.extent - 1) for index, factor in window.factors]
    low, high = window.offset + sum(min(0, each) for each in reach), window.offset + sum(max(0, each) for each in reach)
    return None if low >= 0 and high < extent else (low, high)


def dtype(term: Term) -> str:
    """The dtype of a term; for numbers, which take the dtype of the other operand, `int`, `float` or `truth`."""
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
            return "int32" if monoid in ("argmax", "argmin") else dtype_alone(body)
        case Mask():
            return "bool"


SETTLED = {"int": "int32", "float": "float32", "truth": "bool"}
"""The dtype of a number, or of a truth value, that has no other operand beside it."""


def dtype_alone(term: Term) -> str:
    """The dtype of a term that has no other operand beside it."""
    found = dtype(term)
    return SETTLED.get(found, found)


def direct_subterms(term: Dim) -> tuple[Dim, ...]:
    """The terms directly inside this one, including the dims of a read."""
    return (term.condition,) if isinstance(term, Mask) else cast("tuple[Dim, ...]", subtrees(term))


def direct_indices(dim: Dim) -> tuple[CheckedIndex, ...]:
    """The indices of a dim, except those inside a computed position."""
    match dim:
        case Group(indices):
            return indices
        case Affine(_, factors):
            return tuple(index for index, _ in factors)
        case _:
            return ()


def free(term: Dim) -> tuple[CheckedIndex, ...]:
    """The indices that a term depends on, in the order of the text."""
    found: dict[CheckedIndex, None] = {}
    # A list instead of recursion, because a sum of a thousand terms is a thousand deep.
    waiting: list[tuple[Dim, tuple[CheckedIndex, ...]]] = [(term, ())]
    while waiting:
        term, bound = waiting.pop()
        found |= dict.fromkeys(each for each in direct_indices(term) if each not in bound)
        bound = (*bound, *term.indices) if isinstance(term, Fold) else bound
        waiting += [(each, bound) for each in reversed(direct_subterms(term))]
    return tuple(found)


def repeats(indices: Iterable[CheckedIndex | None]) -> bool:
    """Whether an index occurs twice."""
    every = list(indices)
    return len(set(every)) < len(every)


@dataclass(frozen=True, slots=True)
class Left:
    """The left side of an equation: a dim is an index, or a product of several."""

    array: Array
    dims: tuple[Group[CheckedIndex], ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class CheckedEquation:
    """`left = pieces`; several pieces are concatenated along the dim `along`."""

    left: Left
    pieces: tuple[Term, ...]
    along: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class Calling:
    """`lefts = function(arguments)`: a function of this file or, with `params`, a JAX primitive, which also takes numbers."""

    lefts: tuple[Left, ...]
    function: str
    arguments: tuple[Array | Apply[Term], ...]
    params: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class CheckedFunction:
    """A checked function."""

    name: str
    arguments: tuple[Array, ...]
    results: tuple[Array, ...]
    statements: tuple[CheckedEquation | Calling, ...]
    returned: tuple[str, ...]
    span: Span
    depth: int
    """How deeply its calls are nested."""
    count: int
    """How many equations it has when its calls are inlined."""
