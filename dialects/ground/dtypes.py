"""Element types: their names in NumPy and in text, their sizes, and which casts between them are exact.

A pending sum may cross a widening cast, never a narrowing one.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SHORT = (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "i"))


@cache
def short(dtype: str) -> str:
    """Shortens a dtype's name, as texts write it: `float32 --> f32`, `float8_e4m3fn --> f8_e4m3fn`; `bool` and others stay."""
    return _renamed(dtype, _SHORT)


@cache
def long(text: str) -> str:
    """Returns the NumPy name for a short name: `bf16 --> bfloat16`."""
    return _renamed(text, ((brief, name) for name, brief in _SHORT))


def _renamed(text: str, names: Iterable[tuple[str, str]]) -> str:
    for name, other in names:
        if text.startswith(name) and text[len(name) :][:1].isdecimal():
            return other + text[len(name) :]
    return text


@cache
def dtype_of(name: str) -> np.dtype[Any]:
    """Returns the dtype of a NumPy name, including the types of ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


@cache
def kind_of(dtype: np.dtype[Any]) -> str:
    """NumPy's letter for the kind of a dtype: `f`, `i`, `u`, `c` or `b`, also for the types of ml_dtypes."""
    return {"i": "i", "u": "u"}.get(dtype.name[0], "f") if dtype.kind == "V" else dtype.kind


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is floating-point, including the types of ml_dtypes."""
    return kind_of(dtype) == "f"


def is_integer(dtype: str) -> bool:
    """Whether a dtype, by its name, is one of integers: no boolean, and no float."""
    return dtype.startswith(("int", "uint"))


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is an integer of less than a byte, which NumPy can store but not compute with."""
    return dtype.kind == "V" and not is_float(dtype)


def widen_narrow(array: Array) -> Array:
    """Converts narrow floats to float32 and integers of less than a byte to 32 bits; other arrays are returned as they are."""
    if is_float(array.dtype):
        return array.astype(np.float32) if array.dtype.itemsize < 4 else array
    return array.astype(f"{kind_of(array.dtype)}4") if is_narrow(array.dtype) else array


@cache
def itemsize(dtype: str) -> int:
    """The number of bytes of one element."""
    return np.dtype(dtype).itemsize


@cache
def divides(dtype: str) -> bool:
    """Whether every number but zero has an inverse, up to rounding: true of floats, false of integers."""
    return is_float(_part_dtype(dtype))


@cache
def widens(source: str, target: str) -> bool:
    """Whether `target` represents every value of `source` in the same kind of number: float32 -> float64, not -> bfloat16.

    A complex number counts as wide as its parts, so extracting or combining the parts does not narrow.
    """
    if source == target:
        return True
    before, after = _part_dtype(source), _part_dtype(target)
    # Integers of different widths wrap around at different values.
    if not is_float(before) or not is_float(after):
        return False
    (digits, range_), (more, wider) = _float(before), _float(after)
    return more >= digits and wider >= range_


def least(dtype: np.dtype[Any]) -> Array:
    """The least number of a dtype: minus infinity, if it has one."""
    return _end(dtype, "min", -np.inf)


def largest(dtype: np.dtype[Any]) -> Array:
    """The largest number of a dtype: infinity, if it has one."""
    return _end(dtype, "max", np.inf)


def last(dtype: np.dtype[Any]) -> Array:
    """The last number in the order of `descending`: for floats the NaN whose bits are all ones, otherwise the least integer."""
    return np.asarray(-1, f"i{dtype.itemsize}").view(dtype) if is_float(dtype) else least(dtype)


def greatest(dtype: np.dtype[Any]) -> Array:
    """The last number in ascending order: NaN, if the dtype has one."""
    with np.errstate(invalid="ignore"):
        nan = np.asarray(np.nan).astype(dtype) if is_float(dtype) else largest(dtype)
    return nan if nan != nan else largest(dtype)


def descending(array: Array) -> Array:
    """Keys that sort an array as XLA does, largest first: positive NaN, infinity, ..., 0.0, -0.0, ..., negative NaN."""
    if not is_float(array.dtype):
        return ~widen_narrow(array)
    bits = array.view(f"i{array.dtype.itemsize}")
    return np.where(bits < 0, bits & np.iinfo(bits.dtype).max, ~bits)


def _end(dtype: np.dtype[Any], end: str, infinite: float) -> Array:
    match kind_of(dtype):
        case "f":
            found = np.asarray(infinite, dtype)
            return found if np.isinf(found) else np.asarray(getattr(cast(Any, ml_dtypes).finfo(dtype), end), dtype)
        case "c":
            return np.asarray(complex(infinite, infinite), dtype)
        case "b":
            return np.asarray(end == "max")
        case _:
            return np.asarray(getattr(ml_dtypes.iinfo(dtype), end), dtype)


def _float(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The number of mantissa bits of a float, and its largest exponent."""
    info: Any = cast(Any, ml_dtypes).finfo(dtype)
    return int(info.nmant), int(info.maxexp)


def _part_dtype(dtype: str) -> np.dtype[Any]:
    """The dtype itself, or for a complex type that of its parts."""
    return np.dtype({"complex64": "float32", "complex128": "float64"}.get(dtype, dtype))
