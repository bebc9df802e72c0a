"""Expands primitives into others that have definitions and so can be tiled, by tracing them again.

Random bits are counters under an elementwise hash. A counter is the sum of one number per dim. A primitive that moves the
elements of an array of keys moves the rows of the `uint32` array that holds them.

    random_bits {shape = (4, 8)} %key  -->  %lo = iota(0) * 8 + iota(1);  %a, %b = threefry2x32 %k1, %k2, 0, %lo;  xor %a, %b
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, JaxprEqn

from ...dialects.definitions.registry import definitions
from ..define.self_defining import DERIVED
from ..jax_private import jax, jnp, lax, prng
from ..ops.jax_expansions import unfold
from ..ops.monoids import SPELLED
from ..ops.params import op_name
from ..ops.primitives import name_of
from ..ops.prng_keys import Aval, is_key, key_rank, physical
from ..ops.ragged_products import ragged_dot_general
from .constant_folding import Positions
from .constant_positions import as_slice
from .counted_positions import Counted, as_batch
from .custom_reduce import reduce, reduce_window
from .pool_gradients import select_and_scatter_add
from .why_whole import REASONS

Function = Callable[..., object]
Rule = Callable[[JaxprEqn], "Function | None"]


def expand(eqn: JaxprEqn, positions: Sequence[Positions] | None = None, count: Sequence[Counted] = ()) -> ClosedJaxpr | None:
    """The program that computes the same as this equation on physical arrays; None if the equation stays as it is.

    A primitive stays if it has a definition or derives one, or if it runs unpartitioned for a reason. `positions` are those at
    which it reads or updates an array, where they are constant; `count` are the components of these that count its vectors.
    """
    name = name_of(eqn.primitive)
    rule = _empty if _makes_nothing(eqn) else _RULES.get(name)
    function = rule(eqn) if rule else as_slice(eqn, positions) if positions is not None else as_batch(eqn, count)
    definition = definitions.get(op_name(name))
    moves = name not in _RANDOM if rule else definition is not None and definition.moves
    if moves and rule is not _empty and any(is_key(atom.aval) for atom in eqn.invars):
        function = _mapped(eqn, function or partial(cast(Any, eqn.primitive).bind, **eqn.params))
    with cast(Any, eqn).ctx.manager:
        if function is None:
            return None if definition is not None or name in REASONS or name in DERIVED else unfold(eqn)
        return jax.make_jaxpr(function)(*(physical(atom.aval) for atom in eqn.invars))


def _mapped(eqn: JaxprEqn, function: Function) -> Function:
    """Maps the function over the trailing dims of key operands, because a key is a row of numbers."""
    ranks = [key_rank(atom.aval) for atom in eqn.invars]
    for _ in range(max(ranks)):
        function = jax.vmap(function, in_axes=tuple(-1 if rank else None for rank in ranks), out_axes=-1)
    return function


def _written(function: Function) -> Rule:
    """The rule of a primitive that is a function of its operands and parameters."""
    return lambda eqn: partial(function, **eqn.params)


def _iota_2x32_shape(eqn: JaxprEqn) -> Function | None:
    """Computes counters as two halves. If a count needs the upper half, the primitive stays, and runs unpartitioned."""
    shape = eqn.params["shape"]
    if not 0 < prod(shape) <= 1 << 32:
        return None

    def counts() -> tuple[Array, object]:
        zero = lax.full(shape, 0, jnp.uint32)
        long = (dim for dim, extent in enumerate(shape) if extent > 1)
        pairs = ((lax.broadcasted_iota(jnp.uint32, shape, dim), prod(shape[dim + 1 :])) for dim in long)
        steps = (count if stride == 1 else count * np.uint32(stride) for count, stride in pairs)
        return zero, sum(steps, next(steps, zero))

    return counts


def _reshape(eqn: JaxprEqn) -> Function | None:
    order, sizes = eqn.params["dimensions"], eqn.params["new_sizes"]
    return None if order is None else lambda *xs: lax.reshape(lax.transpose(*xs, order), sizes)


def _convert(eqn: JaxprEqn) -> Function | None:
    """Drops a conversion that only removes a weak type."""
    (x,), (result,) = eqn.invars, eqn.outvars
    return (lambda *xs: xs) if cast(Any, x.aval).dtype == cast(Any, result.aval).dtype else None


def _log2(x: Array, **how: object) -> Array:
    return lax.div(lax.log(x, **how), lax.log(lax.full_like(x, 2, shape=())))


def _stack(*xs: Array, axis: int) -> Array:
    return lax.concatenate([lax.expand_dims(x, (axis,)) for x in xs], axis)


def _unstack(x: Array, *, axis: int, **_: object) -> list[Array]:
    return [lax.index_in_dim(x, k, axis, keepdims=False) for k in range(x.shape[axis])]


def _split(x: Array, *, sizes: Sequence[int], axis: int) -> list[Array]:
    """The parts are slices, each of which is placed by itself."""
    ends = np.cumsum(sizes).tolist()
    return [lax.slice_in_dim(x, end - size, end, axis=axis) for size, end in zip(sizes, ends, strict=True)]


def _tile(x: Array, *, reps: Sequence[int]) -> Array:
    pairs = tuple(extent for pair in zip(reps, x.shape, strict=True) for extent in pair)
    spread = lax.broadcast_in_dim(x, pairs, tuple(range(1, len(pairs), 2)))
    return lax.reshape(spread, tuple(r * n for r, n in zip(reps, x.shape, strict=True)))


def _broadcast_to(x: Array, *, shape: Sequence[int], **_: object) -> Array:
    """Broadcasts a value that is written to a reference to the shape of the part that it replaces."""
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def _fft(eqn: JaxprEqn) -> Function | None:
    """Transforms one dim after another, so that each may run where its dim is whole: the last dim first, an inverse last."""
    kind, lengths = eqn.params["fft_type"], eqn.params["fft_lengths"]
    if len(lengths) < 2:
        return None
    is_inverse = kind.name in ("IFFT", "IRFFT")
    others = "IFFT" if is_inverse else "FFT"

    def along(x: Array, dim: int) -> Array:
        return jnp.moveaxis(lax.fft(jnp.moveaxis(x, dim, -1), others, lengths[dim : dim + 1]), -1, dim)

    def transform(x: Array) -> Array:
        for dim in range(-len(lengths), -1) if is_inverse else ():
            x = along(x, dim)
        x = lax.fft(x, kind, lengths[-1:])
        for dim in () if is_inverse else range(-2, -1 - len(lengths), -1):
            x = along(x, dim)
        return x

    return transform


def _mulhi(*operands: Array, **_: object) -> Array:
    """Computes the upper half of a product from products of halves. XLA does not lower its own op inside of a `shard_map`."""
    dtype, shape = operands[0].dtype, np.broadcast_shapes(*(each.shape for each in operands))
    bits, unsigned = dtype.itemsize * 8, np.dtype(f"u{dtype.itemsize}")
    half, mask = unsigned.type(bits // 2), unsigned.type((1 << bits // 2) - 1)
    # A scalar operand next to an array has no dims.
    x, y = (each if each.shape == shape else lax.broadcast(each, shape) for each in operands)
    (a, b), (c, d) = (((each.astype(unsigned) >> half), each.astype(unsigned) & mask) for each in (x, y))
    carried = (b * d >> half) + (a * d & mask) + b * c
    upper = (a * c + (a * d >> half) + (carried >> half)).astype(dtype)
    if dtype.kind == "u":
        return upper
    zero = jnp.zeros_like(x)
    return upper - lax.select(x < 0, y, zero) - lax.select(y < 0, x, zero)


def _concatenate(eqn: JaxprEqn) -> Function | None:
    """Leaves out operands without elements, so that nothing reads a window of them."""
    axis, kept = eqn.params["dimension"], [at for at, x in enumerate(eqn.invars) if not _is_empty(x.aval)]
    if len(kept) == len(eqn.invars) or not kept:
        return None
    return lambda *xs: lax.concatenate([xs[at] for at in kept], axis) if len(kept) > 1 else xs[kept[0]]


def _pad(eqn: JaxprEqn) -> Function | None:
    """Expands a pad of an empty array to a broadcast of the padding value."""
    shape = cast(Any, eqn.outvars[0].aval).shape
    return (lambda *xs: lax.broadcast(xs[1], shape)) if _is_empty(eqn.invars[0].aval) else None


def _makes_nothing(eqn: JaxprEqn) -> bool:
    """Whether an op with a definition reads arrays, but its results have no elements."""
    name, reads = name_of(eqn.primitive), any(physical(atom.aval).shape for atom in eqn.invars)
    return reads and name != "tag" and op_name(name) in definitions and all(_is_empty(var.aval) for var in eqn.outvars)


def _is_empty(aval: Aval) -> bool:
    return 0 in physical(aval).shape


def _empty(eqn: JaxprEqn) -> Function:
    """Makes zeros for results that are uninitialised, or have no elements, as JAX does."""
    structs = [physical(var.aval) for var in eqn.outvars]
    return lambda *_: [jnp.zeros(struct.shape, struct.dtype) for struct in structs]


def _across(fold: Function) -> Rule:
    """The rule of a collective under `vmap`, where the named axis is a dim that it folds.

    A collective over a mesh axis stays.
    """

    def rule(eqn: JaxprEqn) -> Function | None:
        axes = eqn.params["axes"]
        if not all(isinstance(axis, int) for axis in axes) or eqn.params["axis_index_groups"] is not None:
            return None
        return lambda *xs: [fold(x, axes) for x in xs]

    return rule


def _approx_top_k(eqn: JaxprEqn) -> Function | None:
    """Finds as many of the largest elements as the result holds. The smallest elements are found by their negatives."""
    params, shape = dict(eqn.params), cast(Any, eqn.outvars[0].aval).shape
    sign = 1 if params.pop("is_max_k") else -1
    if params.pop("aggregate_to_topk") and sign > 0:
        return None
    size = shape[params["reduction_dimension"]]

    def best(x: Array) -> tuple[Array, Array]:
        values, indices = lax.approx_max_k(sign * x, **{**params, "k": size})
        return sign * values, indices

    return best


def _random(implementation: Function) -> Rule:
    """The rule of a primitive on keys: the generator's implementation, applied to the array that holds the keys."""

    def rule(eqn: JaxprEqn) -> Function:
        keys = cast(Any, eqn.invars[0].aval)
        return lambda *arrays: implementation(keys.dtype._impl, *arrays, len(keys.shape), **eqn.params)

    return rule


def _fold_in(eqn: JaxprEqn) -> Function:
    keys = cast(Any, eqn.invars[0].aval)
    return lambda *arrays: prng.random_fold_in_impl_base(keys.dtype._impl, *arrays, keys.shape)


_RANDOM: Mapping[str, Rule] = {
    "random_bits": _random(prng.random_bits_impl_base),
    "random_fold_in": _fold_in,
    "random_seed": _written(prng.random_seed_impl_base),
    "random_split": _random(prng.random_split_impl_base),
}
_RULES: Mapping[str, Rule] = {
    **_RANDOM,
    "approx_top_k": _approx_top_k,
    "broadcast_to": _written(_broadcast_to),
    "concatenate": _concatenate,
    "convert_element_type": _convert,
    "empty": _empty,
    "empty2": _empty,
    "fft": _fft,
    "iota_2x32_shape": _iota_2x32_shape,
    "log2": _written(_log2),
    "mulhi": _written(_mulhi),
    "pad": _pad,
    **{each.across: _across(each.reduce) for each in SPELLED.values() if each.across and each.reduce},
    "ragged_dot_general": ragged_dot_general,
    "reduce": reduce,
    "reduce_window": reduce_window,
    "select_and_scatter_add": select_and_scatter_add,
    "split": _written(_split),
    "reshape": _reshape,
    "stack": _written(_stack),
    "tile": _written(_tile),
    "unstack": _written(_unstack),
}

EXPANDED = frozenset(_RULES)
"""The names of the primitives that are expanded here."""
