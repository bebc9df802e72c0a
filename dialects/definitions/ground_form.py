"""Ground form: a definition for operands and results of given shapes, every group spelled out.

Binding reads the tilings off it and the interpreter runs it. Indices are numbers, with one extent each; a dim of an access is
a product of indices, major to minor. An index over extent 1 is the constant 0, so it is no index at all.

    out[i.., k..] = src[i.., k..]   at src k = axes        -->     out[0, 1] = sum(2) src[0, 2, 1]        extents 4, 8, 6
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ..params import Literal
from .tree import Definition

Ids: TypeAlias = tuple[int, ...]


Dims: TypeAlias = tuple[int | None, ...]
"""For each index of a group the dim that it takes in an array; None where it has none there (it has extent 1)."""


@dataclass(frozen=True, slots=True)
class Places:
    """What the dimension numbers say.

    `dims` says where each group of an array goes. `starts` says for each of `v..` which component of the index vector (which
    of the scalar starts) moves the window along it; None: it starts at 0. `clamps` says that a window which would leave the
    array is moved back inside, so that one over the full extent starts at 0; otherwise it is dropped.
    """

    dims: Mapping[tuple[str, str], Dims]
    starts: Dims = ()
    clamps: bool = False


@dataclass(frozen=True, slots=True)
class Affine:
    """A dim at `(offset + sum(index * factor)) / divisor`; where that is no position of the dim, nothing is read."""

    offset: int
    factors: tuple[tuple[int, int], ...]
    divisor: int


@dataclass(frozen=True, slots=True)
class Every:
    """A dim that is taken as a whole, `j:`."""


@dataclass(frozen=True, slots=True)
class Part:
    """One term of a sum of ranges, `+j`: the indices, behind those of the copies of the equation before this one."""

    ids: Ids
    copy: int


ELEMENT = -1
"""The component of a looked-up index that is an element itself, not one of the vectors along a last dim."""

Dim: TypeAlias = Ids | Affine | Every | Part


@dataclass(frozen=True, slots=True)
class Access:
    """An array at indices; operands count 0, 1, ..., results -1, -2, ..."""

    array: int
    dims: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    value: Literal


@dataclass(frozen=True, slots=True)
class Counter:
    """An index used as a value; none at all is 0."""

    ids: Ids


@dataclass(frozen=True, slots=True)
class Binary:
    sign: str
    left: Ground
    right: Ground


@dataclass(frozen=True, slots=True)
class Apply:
    function: str
    args: tuple[Ground, ...]


@dataclass(frozen=True, slots=True)
class Folding:
    """A fold over indices; with `upto` over those values of its one index that are not above that one's, or not below it."""

    monoid: str
    ids: Ids
    body: Ground
    upto: Ids = ()
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Lands:
    """`[v = start + w]` for one dim: the window index `window` of extent `width` lies on `dim` of extent `extent`.

    `start` is where the window starts, component `component` of the index vectors read there (`ELEMENT`: the elements read
    there); None: at 0.
    """

    dim: Ids
    extent: int
    start: Access | None
    component: int
    window: Ids
    width: int


@dataclass(frozen=True, slots=True)
class Guarded:
    """All dims of one guard; they hold together or, where the window does not clamp, none of it does.

    `folded`: the dims are bound by the fold, so the guard looks them up; otherwise they are the result's, and it scatters.
    `vectors` are the index vectors, also those that decide nothing because the window has only one place to be.
    """

    lands: tuple[Lands, ...]
    vectors: tuple[Access, ...]
    clamps: bool
    folded: bool


@dataclass(frozen=True, slots=True)
class Else:
    body: Ground
    default: Ground


Ground: TypeAlias = "Access | Constant | Counter | Binary | Apply | Folding | Guarded | Else"


@dataclass(frozen=True, slots=True)
class Equation:
    """`targets = body`: each result in `targets` at each of its indices.

    `partials` says of each target, if of any, by which monoid it is folded over which indices that the others have.
    """

    targets: tuple[Access, ...]
    body: Ground
    partials: tuple[tuple[str, Ids], ...] = ()


@dataclass(frozen=True, slots=True)
class Grounded:
    """A definition with its shapes.

    `groups` holds the extents of each variable, `("w", copy) -> (1, 8)`; `fixed` are the indices whose extent a parameter
    of the op says, so that the types of a local op could not.
    """

    definition: Definition
    extents: tuple[int, ...]
    equations: tuple[Equation, ...]
    groups: dict[tuple[str, int], tuple[int, ...]]
    fixed: frozenset[int]
    places: Places | None


def inner(body: Ground) -> tuple[Ground, ...]:
    """The expressions directly inside one, without the accesses inside guards."""
    match body:
        case Binary(_, left, right) | Else(left, right):
            return (left, right)
        case Apply(_, args):
            return args
        case Folding(_, _, inside):
            return (inside,)
        case _:
            return ()


def factors_of(body: Ground) -> list[Ground]:
    """The factors of a product, in order; anything else is its own one factor."""
    if isinstance(body, Binary) and body.sign == "*":
        return factors_of(body.left) + factors_of(body.right)
    return [body]
