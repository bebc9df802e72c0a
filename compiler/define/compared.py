"""Two arrays that should be equal, and arrays as errors write them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax import Array

from ...dialects.definitions.tree import Formal
from ...dialects.dtypes import short
from ..jax_private import Shaped
from .samples import Type

_TOLERANCE = {8: 1e-9, 4: 2e-4, 2: 3e-2, 1: 0.3}
"""The tolerance for sums in another order, relative to the largest element, by the bytes of the floating dtype."""


def first_difference(one: Array | np.ndarray, other: Array | np.ndarray) -> tuple[int, ...] | None:
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


def told_apart(
    name: str, at: tuple[int, ...], one: Array | np.ndarray, how: str, other: Array | np.ndarray, otherwise: str
) -> str:
    """The elements of two arrays: `out[0, 0] is 1 at once, and 2 in blocks`."""
    return f"{name}[{', '.join(map(str, at))}] is {_number(one[at])} {how}, and {_number(other[at])} {otherwise}"


def _number(value: object) -> str:
    found = np.asarray(value)
    return f"{found.item():.6g}" if found.dtype.kind in "fV" else f"{found.item()}"


def types_of(arrays: Sequence[Shaped]) -> list[Type]:
    """The types of arrays or avals."""
    return [(each.dtype.name, tuple(map(int, each.shape))) for each in arrays]


def shown(types: Sequence[Type]) -> str:
    """Types as errors write them: `f32[4, 8], i32[4]`."""
    return ", ".join(f"{short(dtype)}[{', '.join(map(str, shape))}]" for dtype, shape in types)


def listed(formals: Sequence[Formal], arrays: Sequence[Array]) -> str:
    """Operands with their types: `x f32[4, 8], ids i32[4]`."""
    return ", ".join(
        f"{name} {shown([type])}" for name, type in zip(spelled(formals, len(arrays)), types_of(arrays), strict=True)
    )


def spelled(formals: Sequence[Formal], count: int) -> list[str]:
    """Names of `count` arrays: those of a variadic operand are numbered."""
    variadic = sum(each.variadic for each in formals)
    many = (count - len(formals)) // max(1, variadic) + 1
    return [name for each in formals for name in ([f"{each.name}{k}" for k in range(many)] if each.variadic else [each.name])]
