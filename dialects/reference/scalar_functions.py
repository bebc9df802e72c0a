"""The scalar functions of the definitions, by name, in NumPy: the meaning of `@` in an elementwise op.

They are the reference, so they are plain. Floats narrower than 32 bits are computed in float32 and rounded once, as in XLA.
Rare special functions come from SciPy, which JAX requires, and are imported at their first use.
"""

# NumPy's functions are used as plain callables, whose arguments pyright cannot infer.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ..definitions.operators import COMPARISONS
from ..ground.dtypes import Array, is_float, is_narrow, kind_of, widen_narrow
from ..ground.errors import Error, did_you_mean
from ..params import ParamsAttr, Record

Function = Callable[..., Array]


def cast_to(array: Array, dtype: np.dtype[Any]) -> Array:
    """XLA's conversion: truncating and saturating to integers, the real part of complex numbers."""
    if array.dtype.kind == "c" and dtype.kind != "c":
        return cast_to(np.real(array), dtype)
    if is_narrow(array.dtype):
        return cast_to(widen_narrow(array), dtype)
    if is_float(array.dtype) and kind_of(dtype) in "iu":
        info = ml_dtypes.iinfo(dtype)
        wide = np.nan_to_num(array.astype(np.float64), nan=0.0)
        inside = np.clip(np.trunc(wide), float(info.min), float(info.max))
        # 2**31 - 1 and 2**63 - 1 are not floats, so values at the top are set explicitly.
        bounded = np.where(inside >= float(info.max), 0.0, inside).astype(dtype)
        return np.where(inside >= float(info.max), np.asarray(info.max, dtype), bounded)
    return array.astype(dtype)


def apply(name: str, args: Sequence[Array], params: ParamsAttr, dtype: np.dtype[Any]) -> list[Array]:
    """Applies the function `name` elementwise and returns its results. Raises Error if there is no such function."""
    with np.errstate(all="ignore"):
        if name == "cast":
            return [cast_to(args[0], dtype)]
        if name == "threefry2x32":
            return list(_threefry(*args))
        if name in _WITH_PARAMS:
            return [_WITH_PARAMS[name](params, *map(widen_narrow, args)).astype(dtype)]
        function = _EXACT.get(name)
        if function is not None and is_narrow(args[0].dtype):
            return [_narrow(name, function, args).astype(dtype)]
        if function is not None:
            return [function(*args).astype(dtype)]
        return [_function(name)(*map(widen_narrow, args)).astype(dtype)]


def _narrow(name: str, function: Function, args: Sequence[Array]) -> Array:
    """A function of the bits of an integer of less than a byte, computed on 32 bits."""
    bits = 32 - ml_dtypes.iinfo(args[0].dtype).bits
    first, *rest = map(widen_narrow, args)
    if name in ("clz", "population_count", "shift_right_logical"):
        first = (first.view(np.uint32) << bits >> bits).view(first.dtype)
    if name == "shift_right_arithmetic":
        first = (first.view(np.int32) << bits >> bits).view(first.dtype)
    result = function(first, *rest)
    return result - bits if name == "clz" else result


def _function(name: str) -> Function:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in _SPECIAL:
        import scipy.special  # pyright: ignore[reportMissingTypeStubs]

        return getattr(scipy.special, _SPECIAL[name])
    raise Error(f"no scalar function is called `{name}`", helps=did_you_mean(name, SCALAR_FUNCTIONS))


def divide(left: Array, right: Array) -> Array:
    """XLA's division: integers truncate toward zero, and x / 0 is -1."""
    if left.dtype.kind not in "iu":
        return np.divide(left, right)
    safe = np.where(right == 0, np.ones_like(right), right)
    quotient = (left - _remainder(left, safe)) // safe
    return np.where(right == 0, np.asarray(-1).astype(left.dtype), quotient)


def _remainder(left: Array, right: Array) -> Array:
    if left.dtype.kind not in "iu":
        return np.fmod(left, right)
    return np.where(right == 0, left, np.fmod(left, np.where(right == 0, np.ones_like(right), right)))


def _total(compare: Function) -> Function:
    """A comparison in the total order of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""

    def key(x: Array) -> Array:
        if not is_float(x.dtype):
            return x
        signed = np.dtype(f"i{x.dtype.itemsize}")
        bits = x.view(signed)
        return np.where(bits < 0, np.iinfo(signed).max ^ bits, bits)

    return lambda left, right: compare(key(np.asarray(left)), key(np.asarray(right)))


def _shift(function: Function, over: Callable[[Array], Array]) -> Function:
    """A shift that returns `over` if it shifts by the width of the type or more."""

    def shift(x: Array, by: Array) -> Array:
        bits = x.dtype.itemsize * 8
        inside = (by >= 0) & (by < bits)
        return np.where(inside, function(x, np.where(inside, by, np.zeros_like(by))), over(x))

    return shift


def _logical_right(x: Array, by: Array) -> Array:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return (x.astype(unsigned) >> by.astype(unsigned)).astype(x.dtype)


def _arithmetic_right(x: Array, by: Array) -> Array:
    """A right shift that repeats the first bit, also for unsigned types."""
    signed = x.view(f"i{x.dtype.itemsize}")
    return np.asarray(np.right_shift(signed, by.astype(signed.dtype))).astype(signed.dtype).view(x.dtype)


def _atan2(y: Array, x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.arctan2(y, x)
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


def _leading_zeros(x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    unsigned = x.astype(f"u{x.dtype.itemsize}")
    return np.asarray(np.vectorize(lambda value: bits - int(value).bit_length(), otypes=[np.int64])(unsigned))


def _igamma_grad_a(a: Array, x: Array) -> Array:
    """The derivative of the regularized lower incomplete gamma function by `a`: a five-point difference in double precision."""
    from scipy.special import gammainc  # pyright: ignore[reportMissingTypeStubs]

    a, x = a.astype(np.float64), x.astype(np.float64)
    step = 1e-3 * a
    near, far = gammainc(a + step, x) - gammainc(a - step, x), gammainc(a + 2 * step, x) - gammainc(a - 2 * step, x)
    return (8 * near - far) / (12 * step)


# NumPy has these under the same names.
_NUMPY = """
abs acos acosh asin asinh atan atanh cbrt ceil conj cos cosh exp exp2 expm1 floor imag log log1p
real sign sin sinh sqrt square tan tanh
"""
_FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, name) for name in _NUMPY.split()},
    **{name: sign.function for name, sign in COMPARISONS.items()},
    "atan2": _atan2,
    "complex": lambda real, imag: real + 1j * imag,
    "igamma_grad_a": _igamma_grad_a,
    "is_finite": np.isfinite,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "pow": lambda x, y: np.power(x, y.astype(x.dtype) if x.dtype.kind in "fc" else y),
    "rem": _remainder,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


# These take elements without widening: they read bits, or only choose among elements.
_EXACT: dict[str, Function] = {
    "and": np.bitwise_and,
    "clamp": lambda low, x, high: np.minimum(np.maximum(low, x), high),
    "clz": _leading_zeros,
    "eq_to": _total(np.equal),
    "le_to": _total(np.less_equal),
    "lt_to": _total(np.less),
    "max": np.maximum,
    "maximum": np.maximum,
    "min": np.minimum,
    "minimum": np.minimum,
    "nextafter": np.nextafter,
    "not": np.invert,
    "or": np.bitwise_or,
    "population_count": lambda x: np.bitwise_count(x.astype(f"u{x.dtype.itemsize}")),
    "select": lambda which, *cases: np.select([which == number for number in range(len(cases))], cases),
    "shift_left": _shift(np.left_shift, np.zeros_like),
    "shift_right_arithmetic": _shift(
        _arithmetic_right, lambda x: _arithmetic_right(x, np.full_like(x, 8 * x.dtype.itemsize - 1))
    ),
    "shift_right_logical": _shift(_logical_right, np.zeros_like),
    "xor": np.bitwise_xor,
}

_SPECIAL: dict[str, str] = {
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
    "digamma": "digamma",
    "erf": "erf",
    "erf_inv": "erfinv",
    "erfc": "erfc",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "lgamma": "gammaln",
    "polygamma": "polygamma",
    "regularized_incomplete_beta": "betainc",
    "zeta": "zeta",
}


def _integer_pow(params: ParamsAttr, x: Array) -> Array:
    y = params["y"]
    assert isinstance(y, int)
    return np.power(x, y) if y >= 0 or x.dtype.kind in "fc" else divide(np.ones_like(x), np.power(x, -y))


def _round(params: ParamsAttr, x: Array) -> Array:
    method = params["rounding_method"]
    if isinstance(method, Record) and method["name"] == "TO_NEAREST_EVEN":
        return np.rint(x)
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _reduce_precision(params: ParamsAttr, x: Array) -> Array:
    """Rounds the mantissa, half to even. Numbers outside the range of the exponents become infinite or zero."""
    exponent, mantissa = params["exponent_bits"], params["mantissa_bits"]
    assert isinstance(exponent, int) and isinstance(mantissa, int)
    wide = x.astype(np.float64)
    fraction, power = np.frexp(wide)
    rounded = np.ldexp(np.rint(np.ldexp(fraction, mantissa + 1)), power - mantissa - 1)
    largest = 2.0 ** (2 ** (exponent - 1) - 1) * (2 - 2.0**-mantissa)
    least = 2.0 ** (2 - 2 ** (exponent - 1))
    rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, wide), rounded)
    rounded = np.where(np.abs(rounded) < least, np.copysign(0.0, wide), rounded)
    return np.where(np.isfinite(wide), rounded, wide).astype(x.dtype)


_WITH_PARAMS: dict[str, Callable[..., Array]] = {
    "integer_pow": _integer_pow,
    "reduce_precision": _reduce_precision,
    "round": _round,
}

SCALAR_FUNCTIONS = [*_FUNCTIONS, *_SPECIAL, *_EXACT, *_WITH_PARAMS, "cast", "threefry2x32"]
"""Every scalar function."""

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _threefry(k1: Array, k2: Array, x1: Array, x2: Array) -> tuple[Array, Array]:
    """Threefry-2x32, 20 rounds (Salmon et al., SC 2011): JAX's random bits from a key and counters."""
    keys = (k1, k2, k1 ^ k2 ^ np.uint32(0x1BD11BDA))
    x1, x2 = x1 + keys[0], x2 + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x1 = x1 + x2
            x2 = x1 ^ ((x2 << np.uint32(rotation)) | (x2 >> np.uint32(32 - rotation)))
        x1 = x1 + keys[(group + 1) % 3]
        x2 = x2 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x1, x2
