"""The steps of generated programs, each as a JAX function. `generated_choice` draws them.

A step takes values and returns one. Each table below has other requirements on the operands: a discontinuous function
(`floor`, `argmax`, a comparison) takes only values that all ways of running a program compute to the last bit.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from calls import CALLS
from generated_control import CONTROL
from jax import lax

Array: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]
Function: TypeAlias = Callable[..., Array]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its name in `FUNCTIONS`, the numbers of the values that it takes, and its other arguments.

    `squash` limits a result that could grow from step to step.
    """

    name: str
    operands: tuple[int, ...]
    params: tuple[Any, ...] = ()
    squash: bool = False

    def run(self, values: Sequence[Array]) -> Array:
        result = FUNCTIONS[self.name](*(values[operand] for operand in self.operands), *self.params)
        return squashed(result) if self.squash else result


def squashed(x: Array) -> Array:
    """Of absolute value at most 1, smoothly."""
    return x / (1 + jnp.square(jnp.abs(x))).astype(x.dtype) if jnp.iscomplexobj(x) else jnp.tanh(x)


def inside(function: Function) -> Function:
    """The function on values between 0.25 and 0.75, where all of them are defined and smooth."""
    return lambda x, *more: function(0.5 + 0.25 * jnp.tanh(x), *more)


def scale(x: Array, count: int) -> Array:
    """Divides floats by the square root of the number of added elements."""
    return x * jnp.asarray(max(count, 1) ** -0.5, x.dtype) if jnp.issubdtype(x.dtype, jnp.inexact) else x


def dot(x: Array, y: Array, contract: tuple[int, int], batch: tuple[int, int] | None) -> Array:
    batches = ((), ()) if batch is None else ((batch[0],), (batch[1],))
    return scale(lax.dot_general(x, y, (((contract[0],), (contract[1],)), batches)), x.shape[contract[0]])


def bias(x: Array, y: Array, dim: int) -> Array:
    return x + lax.broadcast_in_dim(y, x.shape, (dim,))


def split(x: Array, dim: int, factor: int) -> Array:
    return x.reshape(*x.shape[:dim], factor, x.shape[dim] // factor, *x.shape[dim + 1 :])


def merge(x: Array, dim: int) -> Array:
    return x.reshape(*x.shape[:dim], x.shape[dim] * x.shape[dim + 1], *x.shape[dim + 2 :])


def counted(x: Array, dim: int) -> Array:
    return x + (0.125 * lax.broadcasted_iota(jnp.float32, x.shape, dim)).astype(x.dtype)


def causal(x: Array, dim: int, other: int) -> Array:
    one, two = (lax.broadcasted_iota(jnp.int32, x.shape, each) for each in (dim, other))
    return jnp.where(one >= two, x, jnp.asarray(1, x.dtype))


def padded(x: Array, dim: int, config: tuple[int, int, int]) -> Array:
    return lax.pad(x, jnp.asarray(1, x.dtype), [config if each == dim else (0, 0, 0) for each in range(x.ndim)])


def strided(x: Array, dim: int, start: int, stride: int) -> Array:
    return lax.slice_in_dim(x, start, x.shape[dim], stride, axis=dim)


def halves(x: Array, dim: int) -> Array:
    first, second = jnp.split(x, 2, dim)
    return jnp.maximum(first, second) if jnp.issubdtype(x.dtype, jnp.integer) else first * second


def spread(x: Array, dim: int, count: int) -> Array:
    return jnp.broadcast_to(jnp.expand_dims(x, dim), (*x.shape[:dim], count, *x.shape[dim:]))


def normalised(x: Array, dim: int) -> Array:
    centred = x - jnp.mean(x, dim, keepdims=True)
    return centred * lax.rsqrt(jnp.mean(jnp.square(centred), dim, keepdims=True) + 0.5)


def pooled(x: Array, dim: int, monoid: str) -> Array:
    window = [2 if each == dim else 1 for each in range(x.ndim)]
    unit, fold = {"sum": (0.0, lax.add), "max": (-np.inf, lax.max)}[monoid]
    return lax.reduce_window(x, np.asarray(unit, x.dtype), fold, window, window, "VALID")


def clipped(x: Array) -> Array:
    low, high = (jnp.asarray(bound, x.dtype) for bound in (-0.5, 0.75))
    return lax.clamp(low, x, high)


def convolved(x: Array, k: Array, same: bool) -> Array:
    """The last dim is space, the one before it features, of both."""
    kernel = k.reshape(1, *k.shape) if k.ndim == 2 else k
    out = lax.conv_general_dilated(x, kernel[..., : min(3, x.shape[-1])], (1,), "SAME" if same else "VALID")
    return scale(out, kernel.shape[1] * 3)


def put(x: Array, ids: Array, monoid: str, mode: str) -> Array:
    rows = jnp.take(x, jnp.arange(ids.shape[0]) % x.shape[0], 0, mode="clip")
    return getattr(x.at[ids], monoid)(rows, mode=mode)


def window(x: Array, ids: Array, dim: int) -> Array:
    return lax.dynamic_slice_in_dim(x, ids[0], (x.shape[dim] + 1) // 2, dim)


def update(x: Array, ids: Array, dim: int) -> Array:
    # The last part, because XLA:CPU updates in place and may read an earlier one after overwriting it.
    part = lax.slice_in_dim(x, x.shape[dim] // 2, x.shape[dim], axis=dim)
    return lax.dynamic_update_slice_in_dim(x, part, ids[0], dim)


def cast(x: Array, dtype: str) -> Array:
    """Integers stay small, or the difference to the next one is lost."""
    small = lax.rem(x, jnp.asarray(7, x.dtype)) if jnp.issubdtype(x.dtype, jnp.integer) else x
    return small.astype(dtype)


# Float functions by name: on any value, on values in (0.25, 0.75), and discontinuous ones.
SMOOTH: dict[str, Function] = {
    **{name: getattr(lax, name) for name in "asinh atan cos erf erfc expm1 logistic neg sin square tanh".split()},
    **{name: getattr(lax, name) for name in "bessel_i0e bessel_i1e".split()},
    "exp": lambda x: jnp.exp(jnp.tanh(x)),
    "exp2": lambda x: jnp.exp2(jnp.tanh(x)),
    "sinh": lambda x: jnp.sinh(jnp.tanh(x)),
    "cosh": lambda x: jnp.cosh(jnp.tanh(x)),
    "tan": lambda x: jnp.tan(jnp.tanh(x)),
    "integer_pow": lambda x: lax.integer_pow(x, 3),
    "affine": lambda x: x * 0.5 + 1.0,
    "barrier": lax.optimization_barrier,
    "dropout": lambda x: x * jax.random.uniform(jax.random.key(3), x.shape, x.dtype),
    "acosh": inside(lambda x: lax.acosh(x + 1)),
    **{name: inside(getattr(lax, name)) for name in "acos asin atanh cbrt digamma erf_inv lgamma log log1p rsqrt sqrt".split()},
}
KINKED: dict[str, Function] = {"abs": jnp.abs, "relu": jax.nn.relu, "clip": clipped}
JUMPING: dict[str, Function] = {
    **{name: getattr(lax, name) for name in "ceil floor sign round".split()},
    "is_finite": lax.is_finite,
    "bits": lambda x: lax.bitcast_convert_type(x, {2: jnp.int16, 4: jnp.int32}[x.dtype.itemsize]),
    "precision": lambda x: lax.reduce_precision(x, 5, 10),
}
SMOOTH_BINARY: dict[str, Function] = {
    **{name: getattr(lax, name) for name in "add sub mul".split()},
    "div": lambda x, y: x / (1 + jnp.square(y)),
    "atan2": lambda x, y: lax.atan2(x, 1 + jnp.square(y)),
    "pow": lambda x, y: inside(lax.pow)(x, jnp.tanh(y)),
}
KINKED_BINARY: dict[str, Function] = {"max": jnp.maximum, "min": jnp.minimum}
COMPARISONS: dict[str, Function] = {name: getattr(lax, name) for name in "eq ne lt le gt ge".split()}
WHOLE_UNARY: dict[str, Function] = {
    **{name: getattr(lax, name) for name in "neg abs sign clz population_count".split()},
    "not": lax.bitwise_not,
    "square": lax.square,
}
WHOLE_BINARY: dict[str, Function] = {
    **{name: getattr(lax, name) for name in "add sub mul div rem max min".split()},
    **{name: getattr(lax, f"bitwise_{name}") for name in "and or xor".split()},
    "shift_left": lambda x, y: lax.shift_left(x, y & jnp.asarray(3, y.dtype)),
    "shift_right_logical": lambda x, y: lax.shift_right_logical(x, y & jnp.asarray(3, y.dtype)),
    "shift_right_arithmetic": lambda x, y: lax.shift_right_arithmetic(x, y & jnp.asarray(3, y.dtype)),
}
TRUTH_BINARY: dict[str, Function] = {name: getattr(lax, f"bitwise_{name}") for name in "and or xor".split()}
COMPLEX_UNARY: dict[str, Function] = {"real": jnp.real, "imag": jnp.imag, "conj": jnp.conj, "neg": jnp.negative}
# Along a dim: floats, any ordered number, and functions for exact values only.
SMOOTH_ALONG: dict[str, Function] = {
    "sum": lambda x, dim: scale(jnp.sum(x, dim, dtype=x.dtype), x.shape[dim]),
    "mean": lambda x, dim: jnp.mean(x, dim, keepdims=True),
    "prod": lambda x, dim: jnp.prod(1 + 0.25 * jnp.tanh(x), dim),
    "softmax": jax.nn.softmax,
    "logsumexp": jax.nn.logsumexp,
    "normalised": normalised,
    "cumsum": lambda x, dim: scale(lax.cumsum(x, dim), x.shape[dim]),
    "cumsum back": lambda x, dim: scale(lax.cumsum(x, dim, reverse=True), x.shape[dim]),
    "cumprod": lambda x, dim: lax.cumprod(jnp.tanh(x), dim),
    "cumlogsumexp": lax.cumlogsumexp,
    "counted": counted,
}
ORDERED_ALONG: dict[str, Function] = {
    "largest": jnp.max,
    "least": jnp.min,
    "sort": lambda x, dim: lax.sort(x, dim),
    "cummax": lax.cummax,
    "cummin": lax.cummin,
}
EXACT_ALONG: dict[str, Function] = {
    "argmax": lambda x, dim: lax.argmax(x, dim, jnp.int32),
    "argmin": lambda x, dim: lax.argmin(x, dim, jnp.int32),
    "top": lambda x, dim: lax.top_k(x, min(2, x.shape[dim]), axis=dim)[0],
    "top places": lambda x, dim: lax.top_k(x, min(2, x.shape[dim]), axis=dim)[1],
    "order": lambda x, dim: lax.sort((x, lax.broadcasted_iota(jnp.int32, x.shape, dim)), dimension=dim, num_keys=1)[1],
}
WHOLE_ALONG: dict[str, Function] = {
    "whole sum": lambda x, dim: jnp.sum(x, dim, dtype=x.dtype),
    "whole prod": lambda x, dim: jnp.prod(x, dim, dtype=x.dtype),
    "whole cumsum": lax.cumsum,
}
TRUTH_ALONG: dict[str, Function] = {
    "all": lambda x, dim: jnp.all(x, dim),
    "any": lambda x, dim: jnp.any(x, dim),
    "parity": lambda x, dim: lax.reduce_xor(x, (dim,)),
}
MOVES: dict[str, Function] = {
    "transpose": jnp.transpose,
    "split": split,
    "merge": merge,
    "rev": jnp.flip,
    "spread": spread,
    "row": lambda x, dim: jnp.expand_dims(x, dim),
    "only": lambda x, dim: jnp.squeeze(x, dim),
    "padded": padded,
    "strided": strided,
    "roll": lambda x, dim: jnp.roll(x, 1, dim),
    "tile": lambda x, dim: jnp.tile(x, [2 if each == dim else 1 for each in range(x.ndim)]),
    "causal": causal,
    "concat": lambda x, y, dim: jnp.concatenate((x, y), dim),
    "stack": lambda x, y, dim: jnp.stack((x, y), dim),
    "choose": lambda which, x, y: jnp.where(which, x, y),
}
LOOKUPS: dict[str, Function] = {
    "take": lambda x, ids, dim, mode: jnp.take(x, ids, dim, mode=mode, fill_value=1),
    "along": lambda x, ids, dim: jnp.take_along_axis(x, spread_ids(ids, x, dim), dim, mode="clip"),
    "put": put,
    "window": window,
    "update": update,
    "one hot": lambda ids, count: jax.nn.one_hot(ids, count),
}


def spread_ids(ids: Array, x: Array, dim: int) -> Array:
    return lax.broadcast_in_dim(ids, tuple(ids.shape[0] if each == dim else n for each, n in enumerate(x.shape)), (dim,))


# Examples that take seconds to compile.
SLOW = {"igamma", "igammac", "igamma_grad_a", "polygamma", "regularized_incomplete_beta", "zeta"}
EXAMPLES = {str(call): call for call in CALLS if call.op not in SLOW}


def example(x: Array, name: str) -> Array:
    """An example call of any primitive, with its floats changed a little by the value, so that they stay in the domain."""
    call = EXAMPLES[name]
    by = 1 + 0.125 * jnp.tanh(jnp.mean(x))
    moved = [jnp.asarray(arg) * by.astype(arg.dtype) if arg.dtype.kind in "fc" else arg for arg in map(np.asarray, call.args)]
    return jax.tree.leaves(call.function(*moved))[0]


FUNCTIONS: dict[str, Function] = {
    "example": example,
    **SMOOTH,
    **KINKED,
    **JUMPING,
    **SMOOTH_BINARY,
    **KINKED_BINARY,
    **COMPARISONS,
    **{f"whole {name}": each for name, each in {**WHOLE_UNARY, **WHOLE_BINARY}.items()},
    **{f"truth {name}": each for name, each in TRUTH_BINARY.items()},
    **COMPLEX_UNARY,
    **SMOOTH_ALONG,
    **ORDERED_ALONG,
    **EXACT_ALONG,
    **WHOLE_ALONG,
    **TRUTH_ALONG,
    **MOVES,
    **LOOKUPS,
    **CONTROL,
    "truth not": lax.bitwise_not,
    "complex": lax.complex,
    "cast": cast,
    "dot": dot,
    "bias": bias,
    "halves": halves,
    "pooled": pooled,
    "convolved": convolved,
}
