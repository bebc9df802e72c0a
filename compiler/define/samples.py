"""Arrays on which a definition is tried: small if the definition allows it, otherwise of the given shapes.

Dims that share an index share its extent. Indices get different extents that divide by 2 and 4, so that mixing up two dims
is detected. An operand that indexes a lookup holds positions. Two results are compared element by element.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import prod

import numpy as np
from jax import Array

from ...dialects.definitions.dim_terms import Sites
from ...dialects.definitions.indices import Indices
from ...dialects.definitions.syntax_tree import Definition, Formal, Group, Var, Whole
from ...dialects.ground.dtypes import short
from ...dialects.params import ParamsAttr
from ..jax_private import Shaped, jnp

Type = tuple[str, tuple[int, ...]]
"""The dtype and the shape of an array."""
Types = Sequence[Type]
AnArray = Array | np.ndarray
Corner = tuple[object, ...]
"""A dim of an array, `("dim", array, dim)`, or a variable, `("index" or "whole", name, copy, component)`."""
Classes = Mapping[Corner, Corner]
"""Each corner -> the corner that stands for all corners of the same extent."""

MOST_ELEMENTS = 1 << 22
"""The most elements, summed over all arrays, on which a definition is tried."""

_TOLERANCE = {8: 1e-9, 4: 2e-4, 2: 3e-2, 1: 0.3}
"""The tolerance for sums in another order, relative to the largest element, by the bytes of the floating dtype."""


def candidates(definition: Definition, params: ParamsAttr, ins: Types, outs: Types) -> Iterator[tuple[list[Type], list[Type]]]:
    """Types of operands and results to try, small ones first; kernels with fixed tiles may need larger ones."""
    classes = _classes(definition, params, ins, outs)
    tried = [_resized(classes, ins, outs, first, step) for first, step in ((8, 4), (256, 128))] if classes else []
    for found in (*tried, (list(ins), list(outs))):
        if sum(prod(shape) for _, shape in (*found[0], *found[1])) <= MOST_ELEMENTS:
            yield found


def _classes(definition: Definition, params: ParamsAttr, ins: Types, outs: Types) -> Classes | None:
    """Which dims share an extent; None if an extent depends on more than the definition's indices."""
    shapes = [shape for _, shape in ins], [shape for _, shape in outs]
    sites = Sites(definition.with_arity(len(ins), len(outs)), params, *shapes)
    indices, classes = Indices(sites), dict[Corner, Corner]()
    for site in sites.all:
        for number, component, dim in site.placed:
            term = site.terms[number]
            match term:
                case Group((Var(name),)):
                    kind = "index"
                case Whole(name):
                    kind = "whole"
                case _:
                    return None
            corners: tuple[Corner, Corner] = ("dim", site.array, dim), (kind, *indices.key(name, site.copy, component))
            kept, other = (classes.setdefault(each, each) for each in corners)
            # An index stands for its class, so that the class shows whether one of its dims can be placed.
            if other[0] == "index":
                kept, other = other, kept
            classes |= {each: kept for each, root in classes.items() if root == other}
    return classes


def _resized(classes: Classes, ins: Types, outs: Types, first: int, step: int) -> tuple[list[Type], list[Type]]:
    """The types with `first`, `first + step`, ... for their indices. An unpartitioned dim gets at most twice `first`."""
    chosen: dict[Corner, int] = {}
    fresh = count(first, step)

    def extent(array: int, dim: int, given: int) -> int:
        root = classes.get(("dim", array, dim), ("dim", array, dim))
        if given == 1:
            return 1
        if root not in chosen:
            chosen[root] = given if root[0] == "whole" and given <= 2 * first else next(fresh)
        return chosen[root]

    def sized(array: int, type: Type) -> Type:
        return type[0], tuple(extent(array, dim, given) for dim, given in enumerate(type[1]))

    return [sized(at, each) for at, each in enumerate(ins)], [sized(-1 - at, each) for at, each in enumerate(outs)]


def random_arrays(types: Sequence[Type], below: dict[int, int], positive: bool) -> list[np.ndarray]:
    """Random arrays. Operand `at` holds positions smaller than `below[at]`; other integers are smaller than 4."""
    random = np.random.default_rng(0)

    def drawn(at: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        if dtype == np.bool_:
            return random.random(shape) < 0.5
        if dtype.kind in "iu":
            return random.integers(0, below.get(at, 4), shape).astype(dtype)
        found = random.uniform(0.5, 1.5, shape) if positive else random.standard_normal(shape)
        return (found + 1j * random.standard_normal(shape) if dtype.kind == "c" else found).astype(dtype)

    return [drawn(at, jnp.dtype(dtype), shape) for at, (dtype, shape) in enumerate(types)]


def first_difference(one: AnArray, other: AnArray) -> tuple[int, ...] | None:
    """The first element where two arrays differ by more than their precision; None if they agree."""
    exact = one.dtype.kind in "iub"
    left, right = (np.asarray(x).astype(np.int64 if exact else np.complex128) for x in (one, other))
    if exact:
        apart = left != right
    else:
        bytes = one.dtype.itemsize // (2 if one.dtype.kind == "c" else 1)
        largest = np.max(np.abs(left[np.isfinite(left)]), initial=0.0) or 1.0
        with np.errstate(invalid="ignore"):
            near = np.abs(left - right) <= _TOLERANCE[bytes] * largest
        apart = ~(near | (left == right) | (np.isnan(left) & np.isnan(right)))
    found = np.argwhere(apart)
    return tuple(map(int, found[0])) if len(found) else None


def told_apart(name: str, at: tuple[int, ...], one: AnArray, how: str, other: AnArray, otherwise: str) -> str:
    """Says where two arrays differ: `out[0, 0] is 1 at once, and 2 in blocks`."""
    return f"{name}[{', '.join(map(str, at))}] is {_number(one[at])} {how}, and {_number(other[at])} {otherwise}"


def _number(value: object) -> str:
    found = np.asarray(value)
    return f"{found.item():.6g}" if found.dtype.kind in "fV" else f"{found.item()}"


def array_types(arrays: Sequence[Shaped]) -> list[Type]:
    """The types of arrays or avals."""
    return [(each.dtype.name, tuple(map(int, each.shape))) for each in arrays]


def types_text(types: Sequence[Type]) -> str:
    """Types as errors write them: `f32[4, 8], i32[4]`."""
    return ", ".join(f"{short(dtype)}[{', '.join(map(str, shape))}]" for dtype, shape in types)


def spelled(formals: Sequence[Formal], count: int) -> list[str]:
    """The names of `count` arrays; those of a variadic operand are numbered."""
    variadic = sum(each.variadic for each in formals)
    many = (count - len(formals)) // max(1, variadic) + 1
    return [name for each in formals for name in ([f"{each.name}{k}" for k in range(many)] if each.variadic else [each.name])]
