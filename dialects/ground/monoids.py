"""The table of monoids: all folds of Partita.

Index notation folds (`sum(k) x[i, k]`). A fold that remains to be done across devices is pending in a layout
(`f32[8]{+model}`), and a collective does it (`spmd.all_reduce add`). To add a monoid, write a line here and JAX's names for it
in `compiler/ops/monoids.py`.

    MONOIDS["sum"] is MONOIDS["add"]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from .dtypes import Array, greatest, largest, last, least, widen_narrow

Unit: TypeAlias = Callable[[np.dtype[Any]], Array]
"""A function from a dtype to the unit of a monoid on numbers of that type."""

# Powers of two have no zero, so folds of them have no unit. Collectives do not take numbers of less than a byte.
_ALONE = frozenset({"float8_e8m0fnu", "float4_e2m1fn", "int2", "int4", "uint2", "uint4"})


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative binary function with a unit.

    * `fold`: its name in index notation; `name`: its name in layouts and collectives, and of the binary op, if there is
      one. A fold without a `name` is never pending; a monoid without a `fold` is only pending.
    * `function`: the NumPy function of two arrays; `unit`: the value of an element that is masked, absent or padded.
    * `sign`: its sign in a layout, instead of its name: `{+model}`.
    * `through`: the functions in definitions that commute with it, so a fold may be pending across them.
    * `idempotent`: an element counts the same once and twice. `ordered`: it compares elements, so it takes no complex numbers.
      `linear`: the fold of sums is the sum of the folds.
    * `collective`: whether devices fold with it. `on_bool`: the monoid with a collective that equals it on booleans.
    * `gathered`: the op that folds dims, for a monoid without a collective: devices gather each other's parts and fold them.
    * `scan`: the op that computes all its prefix folds.
    """

    fold: str
    name: str
    function: Callable[..., Array]
    unit: Unit
    sign: str = ""
    through: tuple[str, ...] = ()
    idempotent: bool = False
    ordered: bool = False
    linear: bool = False
    collective: bool = False
    on_bool: str = ""
    gathered: str = ""
    scan: str = ""

    @property
    def has_unit_zero(self) -> bool:
        """Whether the unit is zero, so that elements set to zero do not change the fold."""
        return not self.unit(np.dtype(np.int32)).any()

    def across_devices(self, dtype: str) -> Monoid | None:
        """The monoid that folds elements of this type across devices; None if neither a collective nor a gather can."""
        found = MONOIDS[self.on_bool] if dtype == "bool" and self.on_bool else self
        if dtype in _ALONE or (found.ordered and dtype.startswith("complex")):
            return None
        return found if found.collective or found.gathered else None

    def along(self, dtype: str) -> Monoid | None:
        """The monoid in which a prefix fold of elements of this type may be pending across devices; None if it may not."""
        return self if self.scan and not (self.ordered and dtype.startswith("complex")) else None

    def reduce(self, array: Array, axes: tuple[int, ...]) -> Array:
        """Folds the array over these axes. The result has a type that NumPy can compute with."""
        return np.asarray(
            cast(np.ufunc, self.function).reduce(
                widen_narrow(array), axis=axes, initial=widen_narrow(self.unit(array.dtype))[()]
            )
        )

    def accumulate(self, array: Array, axis: int) -> Array:
        """Computes the fold of every prefix along an axis."""
        return cast(np.ufunc, self.function).accumulate(array, axis=axis, dtype=array.dtype)

    def put(self, into: Array, at: Array, values: Array) -> None:
        """Folds each value into the element of a flat array at its position, in order."""
        if isinstance(self.function, np.ufunc):
            self.function.at(into, at, values)
        else:
            into[at] = values


def _number(value: int) -> Unit:
    return lambda dtype: np.asarray(value).astype(dtype)


def _negative_zero(dtype: np.dtype[Any]) -> Array:
    zero = np.zeros((), dtype)
    return zero if dtype.kind == "b" else -zero


def _last(_: Array, then: Array) -> Array:
    return then


_TABLE: Sequence[Monoid] = (
    Monoid("sum", "add", np.add, _number(0), "+", ("add", "sub"), linear=True, collective=True, scan="cumsum"),
    Monoid("prod", "mul", np.multiply, _number(1), gathered="reduce_prod", scan="cumprod"),
    Monoid("max", "max", np.maximum, least, "", ("maximum",), idempotent=True, ordered=True, collective=True, scan="cummax"),
    Monoid("min", "min", np.minimum, largest, "", ("minimum",), idempotent=True, ordered=True, collective=True, scan="cummin"),
    Monoid("all", "and", np.bitwise_and, _number(-1), idempotent=True, on_bool="min", gathered="reduce_and"),
    Monoid("any", "or", np.bitwise_or, _number(0), idempotent=True, on_bool="max", gathered="reduce_or"),
    Monoid("xor", "xor", np.bitwise_xor, _number(0), gathered="reduce_xor"),
    Monoid("logsumexp", "logaddexp", np.logaddexp, least, ordered=True, scan="cumlogsumexp"),
    # A sum of which one device has the element and all others have the unit: the element arrives bit by bit.
    Monoid("", "pick", np.add, _negative_zero, linear=True, collective=True),
    Monoid("last", "", _last, _number(0), linear=True),
)

MONOIDS: Mapping[str, Monoid] = {name: each for each in _TABLE for name in (each.fold, each.name) if name}
"""Maps both names of each monoid to it."""

SELECTIONS: Mapping[str, Unit] = {"argmax": least, "argmin": largest, "top": last}
"""The folds that select the best elements, each with the unit: an element that no other is worse than.

The elements are lists, best first, of which the best of both together are chosen. Of equal elements the first one is better, so
the positions of `argmax` are those of the first maximum. `top` orders floats by their bits, as XLA does: `-0.0` before `0.0`.
"""

MERGE = "merge"
"""The fold that merges sorted lists into one. Of equal elements, those of the first list come first."""

FOLDS: Sequence[str] = [each.fold for each in _TABLE if each.fold]
"""The names of folds in index notation."""

MONOID_NAMES: Sequence[str] = [each.name for each in _TABLE if each.name]
"""The names of the monoids in pending folds and in collectives."""

MONOIDS_BY_SIGN: Mapping[str, Monoid] = {each.sign: each for each in _TABLE if each.sign}
"""The monoids that a layout writes by a sign, such as `+`."""

UNITS: Mapping[str, Unit] = {**{name: each.unit for name, each in MONOIDS.items()}, **SELECTIONS, MERGE: greatest}
"""The unit of each monoid and selection: it changes no fold. The unit of a merge sorts behind all other elements."""
