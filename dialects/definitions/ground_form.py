"""Ground form: a definition for operands and results of given shapes, with every group expanded.

Binding derives the tilings from it, and the interpreter runs it. Indices are numbers with one extent each. A dim of an access
is a product of indices, major to minor. An index of extent 1 is the constant 0 and is omitted.

    out[i.., k..] = src[i.., k..]   at src k = axes        -->     out[0, 1] = sum(2) src[0, 2, 1]        extents 4, 8, 6
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from ..params import Literal
from .syntax_tree import Affine, Apply, Concat, Definition, Fold, Group, Number, Otherwise, Read, Whole, subtrees

Ids = tuple[int, ...]


Dims = tuple[int | None, ...]
"""For each index of a group its dim in an array; None for an index of extent 1, which has no dim there."""


@dataclass(frozen=True, slots=True)
class DimNumbers:
    """The dimension numbers of an op, as dims of the groups of its definition.

    `dims` assigns dims to each group of each array. `starts` has for each of `v..` the component of the index vector (or the
    number of the scalar start) that moves the window along it; None if the window starts at 0. With `clamps`, a window that
    would leave the array is moved back inside, so a window over the full extent starts at 0; otherwise it is dropped.
    """

    dims: Mapping[tuple[str, str], Dims]
    starts: Dims = ()
    clamps: bool = False


ELEMENT = -1
"""The component for looked-up indices that are elements themselves, not components of vectors along a last dim."""

Dim: TypeAlias = "Group[int] | Affine[int] | Whole | Concat[int]"
Access: TypeAlias = "Read[int, Dim]"
"""An array at indices; operands count 0, 1, ..., results -1, -2, ..."""


@dataclass(frozen=True, slots=True)
class Lands:
    """`[v = start + w]` for one dim: the window index `window` of extent `width` lies on `dim` of extent `extent`.

    `start` reads where the window starts: component `component` of the index vectors read there or, for `ELEMENT`, the elements
    read there. None: the window starts at 0.
    """

    dim: Ids
    extent: int
    start: Access | None
    component: int
    window: Ids
    width: int


@dataclass(frozen=True, slots=True)
class Guarded:
    """All dims of one guard. Unless the window clamps, it is dropped if it leaves any of the dims.

    `folded`: the fold binds the dims, so the guard looks them up; otherwise they belong to the result, and the guard scatters.
    `vectors` are the index vectors, including those without effect because the window has only one possible position.
    """

    lands: tuple[Lands, ...]
    vectors: tuple[Access, ...]
    clamps: bool
    folded: bool


Ground: TypeAlias = "Number[Literal] | Group[int] | Access | Apply[Ground] | Fold[int, Ground] | Guarded | Otherwise[Ground]"


@dataclass(frozen=True, slots=True)
class Equation:
    """`targets = body`: each result in `targets` at each of its indices.

    `partials` gives, for each folded target, the monoid and the indices of the other targets over which it is folded.
    """

    targets: tuple[Access, ...]
    body: Ground
    partials: tuple[tuple[str, Ids], ...] = ()


@dataclass(frozen=True, slots=True)
class Grounded:
    """A definition with its shapes.

    `groups` holds the extents of each variable, `("w", copy) -> (1, 8)`. `fixed` are the indices whose extent a parameter of
    the op fixes, so that the types of a local op cannot change it.
    """

    definition: Definition
    extents: tuple[int, ...]
    equations: tuple[Equation, ...]
    groups: dict[tuple[str, int], tuple[int, ...]]
    fixed: frozenset[int]
    numbers: DimNumbers | None


def subexpressions(body: Ground) -> tuple[Ground, ...]:
    """The expressions directly inside this one, without the accesses inside guards."""
    return () if isinstance(body, Read) else cast("tuple[Ground, ...]", subtrees(body))


def along(*dims: Dim) -> Ids:
    """The indices that move along these dims."""
    return tuple(index for dim in dims for index in dim.indices)
