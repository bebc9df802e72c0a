"""One or several small JAX calls for every definition, which the tests of tilings place and run.

Extents are multiples of 8 where an op leaves them free, so that each index can be placed on eight devices.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from call import RANDOM, Array, Call, bools, floats, ints, prim, signed, words
from calls_folds import grouped, pooling
from calls_looked_up import looked_up
from calls_matrices import matrices
from jax import lax
from jax.ad_checkpoint import checkpoint_name

import partita as pt
from partita.compiler.ops.store_once import stored

SHAPE = (8, 16)

UNARY = """abs acos asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 expm1 floor
is_finite lgamma log log1p logistic neg round rsqrt sign sin sinh sqrt square tan tanh""".split()
BINARY = "add sub mul div atan2 eq ge gt igamma igamma_grad_a igammac le lt max min ne nextafter pow rem".split()
TOTAL = "eq_to le_to lt_to add_any".split()
SHIFTS = "shift_left shift_right_arithmetic shift_right_logical".split()
BITS = {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor}
REDUCES = {"reduce_sum": jnp.sum, "reduce_max": jnp.max, "reduce_min": jnp.min, "reduce_prod": jnp.prod}
CUMULATIVE = {name: getattr(lax, name) for name in "cumsum cumprod cummax cummin cumlogsumexp".split()}


def elementwise() -> Iterator[Call]:
    for name in UNARY:
        yield Call(name, getattr(lax, name), (floats(*SHAPE),))
    for name in BINARY:
        yield Call(name, getattr(lax, name), (floats(*SHAPE), floats(*SHAPE, high=3.0)))
    for name in TOTAL:
        yield Call(name, prim(name), (floats(*SHAPE), floats(*SHAPE)))
    for name in SHIFTS:
        yield Call(name, getattr(lax, name), (ints(*SHAPE, high=99), ints(*SHAPE)))
    for name, function in BITS.items():
        yield Call(name, function, (words(*SHAPE), words(*SHAPE)))
        yield Call(name, function, (bools(*SHAPE), bools(*SHAPE)), "bool")
    yield Call("acosh", lax.acosh, (floats(*SHAPE, low=1.1, high=3.0),))
    yield Call("not", lax.bitwise_not, (words(*SHAPE),))
    yield Call("clz", lax.clz, (words(*SHAPE),))
    yield Call("population_count", lax.population_count, (words(*SHAPE),))
    yield Call("integer_pow", lambda x: lax.integer_pow(x, 3), (signed(*SHAPE),))
    yield Call("reduce_precision", lambda x: lax.reduce_precision(x, 5, 7), (signed(*SHAPE),))
    yield Call("polygamma", lax.polygamma, (np.ones(SHAPE, np.float32), floats(*SHAPE, low=1.0, high=2.0)))
    yield Call("zeta", lax.zeta, (floats(*SHAPE, low=2.0, high=3.0), floats(*SHAPE)))
    yield Call("regularized_incomplete_beta", lax.betainc, (floats(*SHAPE), floats(*SHAPE), floats(*SHAPE)))
    yield Call("complex", lax.complex, (signed(*SHAPE), signed(*SHAPE)))
    for name, function in {"real": lax.real, "imag": lax.imag, "conj": lax.conj}.items():
        yield Call(name, function, ((signed(*SHAPE) + 1j * signed(*SHAPE)).astype(np.complex64),))


def choices() -> Iterator[Call]:
    """Elementwise ops of several operands, and casts."""
    yield Call("clamp", lax.clamp, (signed(*SHAPE) - 1, signed(*SHAPE), signed(*SHAPE) + 1))
    yield Call("clamp", lambda x: lax.clamp(-0.5, x, 0.5), (signed(*SHAPE),), "scalars")
    yield Call("select_n", lax.select, (bools(*SHAPE), signed(*SHAPE), signed(*SHAPE)))
    three = (ints(*SHAPE, high=3), *(signed(*SHAPE) for _ in range(3)))
    yield Call("select_n", lambda w, *x: lax.select_n(w, *x), three, "three")
    yield Call("select_n", lambda x, y: lax.select(x[0, 0] > 0, x, y), (signed(*SHAPE), signed(*SHAPE)), "scalar")
    yield Call("threefry2x32", prim("threefry2x32"), tuple(words(*SHAPE) for _ in range(4)))
    yield Call("convert_element_type", lambda x: x.astype(jnp.int32), (4 * signed(*SHAPE),))
    yield Call("convert_element_type", lambda x: x.astype(jnp.bfloat16), (signed(*SHAPE),), "narrow")
    yield Call("copy", prim("copy"), (signed(*SHAPE),))
    yield Call("stop_gradient", prim("stop_gradient"), (signed(*SHAPE),))
    yield Call("stored", lambda x: stored(jnp.sin(x)) + 1, (signed(*SHAPE),))
    yield Call("tag", lambda x: pt.tag(x, "x") + 1, (signed(*SHAPE),))
    yield Call("constrain", lambda x: pt.constrain(x + 1, "data, _"), (signed(*SHAPE),))
    yield Call("name", lambda x: checkpoint_name(x, "x") + 1, (signed(*SHAPE),))
    yield Call("optimization_barrier", lambda x, y: lax.optimization_barrier((x, y)), (signed(*SHAPE), ints(8)))
    yield Call("bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, jnp.int32), (signed(*SHAPE),))
    yield Call("bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, jnp.int16), (signed(*SHAPE),), "narrower")


def moves() -> Iterator[Call]:
    x = signed(8, 16, 8)
    yield Call("transpose", lambda x: lax.transpose(x, (2, 0, 1)), (x,))
    yield Call("reshape", lambda x: lax.reshape(x, (128, 8)), (x,), "merge")
    yield Call("reshape", lambda x: lax.reshape(x, (8, 8, 8)), (signed(64, 8),), "split")
    yield Call("reshape", lambda x: lax.reshape(x, (16, 8, 8)), (signed(8, 16, 8),), "both")
    yield Call("squeeze", lambda x: lax.squeeze(x, (1,)), (signed(8, 1, 16),))
    yield Call("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (16, 8, 8), (1,)), (signed(8),))
    yield Call("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (8, 16), (0, 1)), (signed(8, 1),), "stretch")
    yield Call("iota", lambda: lax.broadcasted_iota(jnp.int32, (16, 8), 0), (), "0")
    yield Call("iota", lambda: lax.broadcasted_iota(jnp.float32, (8, 16), 1), (), "1")
    yield Call("concatenate", lambda x, y: lax.concatenate((x, y), 1), (signed(8, 4, 8), signed(8, 2, 8)))
    yield Call("rev", lambda x: lax.rev(x, (1,)), (x,))
    yield Call("slice", lambda x: lax.slice(x, (0, 3, 0), (8, 14, 8), (1, 2, 1)), (x,))
    yield Call("pad", lambda x, v: lax.pad(x, v, ((0, 0, 0), (2, -1, 1), (0, 0, 0))), (x, np.float32(3)))
    yield Call("update_slice", lambda x, y: jnp.asarray(x).at[:, 3:11, 1:].set(y), (x, signed(8, 8, 7)))
    yield Call("update_slice", lambda x, y: jnp.asarray(x).at[:, 1::2].set(y), (x, signed(8, 8, 8)), "steps")


def folds() -> Iterator[Call]:
    yield Call("dot_general", lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))), (signed(8, 16), signed(16, 8)))
    batched = (((3, 1), (1, 2)), ((0,), (3,)))
    yield Call(
        "dot_general", lambda x, y: lax.dot_general(x, y, batched), (signed(8, 16, 8, 8), signed(8, 8, 16, 8)), "batched"
    )
    yield Call("dot_general", lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))), (ints(8, 16), ints(16, 8)), "ints")
    x = floats(8, 16, 8, low=0.8, high=1.2)
    for name, function in REDUCES.items():
        yield Call(name, lambda x, f=function: f(x, axis=(0, 2)), (x,))
    yield Call("reduce_and", lambda x: jnp.all(x, 1), (bools(8, 8),))
    yield Call("reduce_or", lambda x: jnp.any(x, 1), (bools(8, 8),))
    for name in ("reduce_and", "reduce_or", "reduce_xor"):
        yield Call(name, prim(name, axes=(1,)), (words(8, 16),), "bits")
    for name, unit, fold in (("sum", 0.0, lax.add), ("max", -np.inf, lax.max), ("min", np.inf, lax.min)):
        yield Call(
            f"reduce_window_{name}",
            lambda x, u=unit, f=fold: lax.reduce_window(x, u, f, (1, 3, 1), (1, 2, 1), ((0, 0), (1, 1), (0, 0))),
            (x,),
        )
    lhs, rhs = signed(8, 8, 8), signed(8, 16, 4)
    numbers = lax.conv_dimension_numbers(lhs.shape, (16, 8, 4), ("NCH", "IOH", "NHC"))
    yield Call(
        "conv_general_dilated",
        lambda x, k: lax.conv_general_dilated(x, k, (2,), ((1, 1),), dimension_numbers=numbers),
        (lhs, rhs),
    )
    groups: dict[str, int]
    for what, groups, kernel in (
        ("features", {"feature_group_count": 4}, (16, 2, 4)),
        ("batches", {"batch_group_count": 4}, (16, 8, 4)),
    ):
        yield Call(
            "conv_general_dilated",
            lambda x, k, g=groups: lax.conv_general_dilated(x, k, (1,), "SAME", **g),
            (signed(8, 8, 6), signed(*kernel)),
            what,
        )


def whole_dims() -> Iterator[Call]:
    x = signed(8, 6, 8)
    yield Call("argmax", lambda x: lax.argmax(x, 1, jnp.int32), (x,))
    yield Call("argmin", lambda x: lax.argmin(x, 1, jnp.int32), (x,))
    for name, function in CUMULATIVE.items():
        yield Call(name, lambda x, f=function: f(x, 1), (x,))
        yield Call(name, lambda x, f=function: f(x, 1, reverse=True), (x,), "reverse")
    yield Call("sort", lambda x: lax.sort(x, dimension=1), (x,))
    yield Call("sort", lambda x, y: lax.sort((x, y), dimension=1, num_keys=1), (x, ints(8, 6, 8)), "two")
    yield Call("top_k", lambda x: lax.top_k(x, 2), (signed(8, 16, 6),))


def lookups() -> Iterator[Call]:
    table, ids = signed(16, 8), ints(8, 8, low=-18, high=20)
    for mode in ("clip", "fill", "promise_in_bounds"):
        rows = np.abs(ids) % 16 if mode.startswith("promise") else ids
        yield Call("gather", lambda t, i, m=mode: t.at[i].get(mode=m), (table, rows), mode)
    along = ints(8, 8, high=16)
    yield Call("gather", lambda x, i: jnp.take_along_axis(x, i, 1), (signed(8, 16), along), "along")
    yield Call("gather", lambda x, i: jnp.take(x, i, 1, mode="clip"), (signed(8, 16, 8), ints(8, high=16)), "middle")
    yield Call("gather", lambda x, i, j: x[i, j], (signed(8, 16), ints(8, high=8), ints(8, high=16)), "pairs")
    for mode in ("clip", "fill"):
        far = ints(8, low=-9, high=20), ints(8, low=-17, high=40)
        yield Call("gather", lambda x, i, j, m=mode: x.at[i, j].get(mode=m), (signed(8, 16), *far), f"pairs-{mode}")
    yield Call("gather", lambda x, i: x[i], (ints(16, 8), ints(8, high=16)), "ints")
    # With one row, the ids have no effect, but still determine the number of rows of the result.
    for mode in ("clip", "fill"):
        yield Call("gather", lambda x, i, m=mode: x.at[i].get(mode=m), (signed(1, 8), ints(8, low=-2, high=3)), f"one-{mode}")
    yield Call("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (0, i, 0), (8, 4, 8)), (signed(8, 16, 8), np.int32(9)))
    yield Call("dynamic_slice", lambda x, i: lax.dynamic_index_in_dim(x, i, 1), (signed(8, 16, 8), np.int32(15)), "one")
    yield Call(
        "dynamic_update_slice",
        lambda x, u, i: lax.dynamic_update_slice(x, u, (0, i, 0)),
        (signed(8, 16, 8), signed(8, 4, 8), np.int32(13)),
    )
    yield from scatters()


def scatters() -> Iterator[Call]:
    acc, ids, updates = signed(16, 8), ints(8, low=-18, high=20), signed(8, 8)
    for name in ("add", "subtract", "multiply", "min", "max"):
        op = {"subtract": "scatter_sub", "multiply": "scatter_mul"}.get(name, f"scatter_{name}")
        yield Call(op, lambda a, i, u, n=name: getattr(a.at[i], n)(u, mode="drop"), (acc, ids, updates))
    yield Call("scatter_add", lambda a, i, u: a.at[i].add(u, mode="clip"), (acc, ids, updates), "clip")
    far = ints(8, low=-18, high=20), ints(8, low=-9, high=12)
    for mode in ("clip", "drop"):
        yield Call("scatter_add", lambda a, i, j, u, m=mode: a.at[i, j].add(u, mode=m), (acc, *far, signed(8)), f"pairs-{mode}")
    yield Call("scatter_add", lambda i, u: jnp.zeros((16, 8), u.dtype).at[i].add(u, mode="drop"), (ids, updates), "zeros")
    yield Call("scatter_add", lambda a, i, j, u: a.at[i, j].add(u), (acc, ints(8, high=16), ints(8), signed(8)), "pairs")
    yield Call(
        "scatter_add",
        lambda a, i, u: jax.vmap(lambda a, i, u: a.at[i].add(u))(a, i, u),
        (signed(8, 16), ints(8, 8), signed(8, 8)),
        "batched",
    )
    yield Call("scatter_add", lambda a, i, u: a.at[i].add(u, mode="clip"), (signed(1, 8), ints(8), signed(8, 8)), "one")
    unique = RANDOM.permutation(16)[:8].astype(np.int32)
    yield Call("scatter", lambda a, i, u: a.at[i].set(u, mode="drop", unique_indices=True), (acc, unique, updates))


def loops() -> Iterator[Call]:
    """A dim of a constant, a carry, a scanned input and a stacked result, each of its own extent."""

    def looped(a: Array, c: Array, xs: Array) -> Any:
        def trip(carry: Array, x: Array) -> tuple[Array, Array]:
            return carry * 0.5 + a, x + 1

        return lax.scan(trip, c, xs)

    args = signed(8), signed(8), signed(4, 8)
    for kind in ("enter", "trip", "carry", "leave", "collect"):
        yield Call(kind, looped, args)
    yield Call("join", lambda i, x: lax.switch(i, [lambda x: x + 1, lambda x: x * 2], x), (np.int32(1), signed(8)))


CALLS = [
    *elementwise(),
    *choices(),
    *moves(),
    *folds(),
    *whole_dims(),
    *matrices(),
    *grouped(),
    *pooling(),
    *lookups(),
    *looked_up(),
    *loops(),
]

# Definitions that no JAX call traces to with an index to place, and why.
NO_CALL = {
    "constant": "a literal has rank 0: there is no dim",
    "expand_dims": "JAX writes it as broadcast_in_dim or reshape",
    "whole": "all of its dims are whole",
}
