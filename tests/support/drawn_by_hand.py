"""Random calls of the ops with parameters other than dims and extents: windows, lookups, reshapes, loops.

`BY_HAND[name]` is the strategy for the op `name`; the others are drawn from their definitions, in `drawn`.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from call import Call
from drawn import DTYPES, LARGEST, Array, Shape, arrays, derivable, derived, extents, restacked
from hypothesis import assume, strategies as st
from jax import lax

from partita.dialects.definitions.registry import definitions

Draw: TypeAlias = st.DrawFn
Strategy: TypeAlias = st.SearchStrategy[Call]

NUMBERS = tuple(each for each in DTYPES if each != "bool")
REALS = tuple(each for each in NUMBERS if each != "complex64")
MODES = ("clip", "fill", "promise_in_bounds")
ranks = st.sampled_from((2, 1, 3, 0, 4))


def shape_of(draw: Draw, least: int = 0, most: int = 4) -> Shape:
    rank = draw(ranks.filter(lambda n: least <= n <= most))
    shape = tuple(draw(extents) for _ in range(rank))
    assume(prod(shape) <= LARGEST)
    return shape


def values(draw: Draw, name: str, shape: Shape, dtype: str) -> Array:
    return draw(arrays(name, 0, shape, dtype))


def some(draw: Draw, rank: int) -> tuple[int, ...]:
    """Some of the dims, in any order."""
    dims = draw(st.permutations(range(rank)))
    return tuple(dims[: draw(st.integers(0, rank))])


def reshape(draw: Draw) -> Call:
    """Dims are split, merged and put between others of extent 1."""
    shape = shape_of(draw)
    factors = [f for extent in shape for f in ((2, extent // 2) if extent % 2 == 0 and draw(st.booleans()) else (extent,))]
    if draw(st.booleans()):
        factors.insert(draw(st.integers(0, len(factors))), 1)
    new: list[int] = []
    for factor in factors:
        if new and draw(st.booleans()):
            new[-1] *= factor
        else:
            new.append(factor)
    dtype = draw(st.sampled_from(DTYPES))
    return Call("reshape", lambda x: lax.reshape(x, tuple(new)), (values(draw, "reshape", shape, dtype),), f"{new}")


def squeeze(draw: Draw) -> Call:
    shape = list(shape_of(draw, most=3))
    dims = sorted({draw(st.integers(0, len(shape))) for _ in range(2)})
    for dim in dims:
        shape.insert(dim, 1)
    x = values(draw, "squeeze", tuple(shape), draw(st.sampled_from(DTYPES)))
    return Call("squeeze", lambda x: lax.squeeze(x, dims), (x,), f"{dims}")


def rev(draw: Draw) -> Call:
    shape = shape_of(draw, least=1)
    dims = some(draw, len(shape))
    x = values(draw, "rev", shape, draw(st.sampled_from(DTYPES)))
    return Call("rev", lambda x: lax.rev(x, dims), (x,), f"{dims}")


def sliced(draw: Draw) -> Call:
    shape = shape_of(draw, least=1)
    starts = [draw(st.sampled_from(sorted({0, n // 3, n - 1}))) for n in shape]
    limits = [draw(st.sampled_from(sorted({low + 1, n}, reverse=True))) for low, n in zip(starts, shape, strict=True)]
    strides = [draw(st.sampled_from((1, 1, 2, 3))) for _ in shape] if draw(st.booleans()) else None
    x = values(draw, "slice", shape, draw(st.sampled_from(DTYPES)))
    return Call("slice", lambda x: lax.slice(x, starts, limits, strides), (x,), f"{starts}, {limits}, {strides}")


def pad(draw: Draw) -> Call:
    shape = shape_of(draw, least=1, most=3)
    dtype = draw(st.sampled_from(DTYPES))
    low, high = st.sampled_from((0, 0, 1, 2, -1)), st.sampled_from((0, 0, 1))
    config = [(draw(low), draw(low), draw(high)) for _ in shape]
    sizes = [n + a + b + (n - 1) * inner for n, (a, b, inner) in zip(shape, config, strict=True)]
    assume(min(sizes) > 0)
    args = values(draw, "pad", shape, dtype), values(draw, "pad", (), dtype)
    return Call("pad", lambda x, v: lax.pad(x, v, config), args, f"{config}")


def select_n(draw: Draw) -> Call:
    shape = shape_of(draw)
    count = draw(st.integers(1, 3))
    which = shape if draw(st.booleans()) else ()
    random = np.random.default_rng(draw(st.integers(0, 3)))
    chosen = random.integers(0, count, which).astype(np.int32 if count > 2 or draw(st.booleans()) else bool)
    dtype = draw(st.sampled_from(DTYPES))
    cases = [values(draw, "select_n", shape, dtype) for _ in range(count)]
    return Call("select_n", lambda w, *xs: lax.select_n(w, *xs), (chosen, *cases))


def clamp(draw: Draw) -> Call:
    shape, dtype = shape_of(draw), draw(st.sampled_from(REALS))
    low, high = (shape if draw(st.booleans()) else () for _ in range(2))
    bounds = [values(draw, "clamp", each, dtype) for each in (low, high)]
    return Call("clamp", lax.clamp, (bounds[0], values(draw, "clamp", shape, dtype), bounds[1]))


def bitcast(draw: Draw) -> Call:
    old, new = (draw(st.sampled_from(("int8", "uint8", "int16", "float16", "bfloat16", "int32", "uint32"))) for _ in range(2))
    shape = shape_of(draw, most=3)
    ratio = jnp.dtype(new).itemsize // jnp.dtype(old).itemsize
    x = values(draw, "bitcast", (*shape, ratio) if ratio > 1 else shape, old)
    return Call("bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, jnp.dtype(new)), (x,), new)


def top_k(draw: Draw) -> Call:
    shape = shape_of(draw, least=1)
    axis = draw(st.integers(0, len(shape) - 1))
    k = draw(st.integers(1, shape[axis]))
    x = values(draw, "top_k", shape, draw(st.sampled_from(REALS)))
    return Call("top_k", lambda x: lax.top_k(x, k, axis=axis), (x,), f"{k}, {axis}")


def broadcast_in_dim(draw: Draw) -> Call:
    """Into new dims, and along dims of extent 1."""
    out = shape_of(draw)
    dims = sorted(some(draw, len(out)))
    shape = tuple(draw(st.sampled_from((out[dim], out[dim], 1))) for dim in dims)
    x = values(draw, "broadcast", shape, draw(st.sampled_from(DTYPES)))
    return Call("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, out, dims), (x,), f"{out}, {dims}")


def dot_general(draw: Draw) -> Call:
    """Batch and contracted dims anywhere, in any order, with another dtype of the result or without."""
    batch, contract, left, right = (tuple(draw(extents) for _ in range(draw(st.sampled_from((1, 0, 2))))) for _ in range(4))
    sides: list[tuple[Shape, tuple[int, ...], tuple[int, ...]]] = []
    for rest in (left, right):
        order = draw(st.permutations(range(len(batch) + len(contract) + len(rest))))
        sizes, shape = (*batch, *contract, *rest), [0] * len(order)
        places = [*order[: len(batch) + len(contract)], *sorted(order[len(batch) + len(contract) :])]
        for place, size in zip(places, sizes, strict=True):
            shape[place] = size
        sides.append((tuple(shape), tuple(places[: len(batch)]), tuple(places[len(batch) : len(batch) + len(contract)])))
    (lhs, lb, lk), (rhs, rb, rk) = sides
    assume(prod((*batch, *contract, *left, *right)) <= 4 * LARGEST)
    dtype = draw(st.sampled_from(NUMBERS))
    wider = {"float32": "float32", "complex64": "complex64"}.get(dtype, "float32" if "float" in dtype else "int32")
    kind = jnp.dtype(draw(st.sampled_from((dtype, wider if dtype != "uint32" else dtype))))
    args = values(draw, "dot", lhs, dtype), values(draw, "dot", rhs, dtype)
    numbers = ((lk, rk), (lb, rb))
    return Call(
        "dot_general", lambda x, y: lax.dot_general(x, y, numbers, preferred_element_type=kind), args, f"{numbers} {kind}"
    )


def reduce_window(name: str, draw: Draw) -> Call:
    shape = shape_of(draw, least=1, most=3)
    window = [draw(st.integers(1, 3)) for _ in shape]
    strides = [draw(st.integers(1, 2)) for _ in shape]
    inner, outer = ([draw(st.sampled_from((1, 1, 2))) for _ in shape] for _ in range(2))
    padding = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape]
    dtype = draw(st.sampled_from(("float32", "float16", "int32", "uint8")))
    params = {
        "window_dimensions": tuple(window),
        "window_strides": tuple(strides),
        "padding": tuple(padding),
        "base_dilation": tuple(inner),
        "window_dilation": tuple(outer),
    }
    function = partial(_bound, name, params)
    x = values(draw, name, shape, dtype)
    assume(min(jax.eval_shape(function, x).shape) > 0)
    return Call(name, function, (x,), f"{params}")


def _bound(name: str, params: Mapping[str, Any], *xs: Array) -> Any:
    from partita.compiler.ops.primitives import find_primitive

    return find_primitive(name).bind(*map(jnp.asarray, xs), **params)


def conv(draw: Draw) -> Call:
    """Any layout of the dims, strides, dilations, and groups of features or of batches."""
    dims = draw(st.sampled_from((1, 2, 0)))
    groups, kind = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from(("none", "features", "batches")))
    features, batches = (groups if kind == each else 1 for each in ("features", "batches"))
    c, o, n = (draw(st.sampled_from((2, 1, 4))) for _ in range(3))
    space = [draw(st.sampled_from((4, 3, 5))) for _ in range(dims)]
    kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
    specs = [draw(st.permutations(range(dims + 2))) for _ in range(3)]
    lhs = _permuted((n * batches, c * features, *space), specs[0])
    rhs = _permuted((o * features * batches, c, *kernel), specs[1])
    params: dict[str, Any] = {
        "window_strides": tuple(draw(st.integers(1, 2)) for _ in range(dims)),
        "padding": tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(dims)),
        "lhs_dilation": tuple(draw(st.sampled_from((1, 1, 2))) for _ in range(dims)),
        "rhs_dilation": tuple(draw(st.sampled_from((1, 1, 2))) for _ in range(dims)),
        "dimension_numbers": lax.ConvDimensionNumbers(*(tuple(spec) for spec in specs)),
        "feature_group_count": features,
        "batch_group_count": batches,
    }

    def function(x: Array, k: Array) -> Array:
        return lax.conv_general_dilated(x, k, **params)

    dtype = draw(st.sampled_from(("float32", "bfloat16")))
    args = values(draw, "conv", lhs, dtype), values(draw, "conv", rhs, dtype)
    assume(min(jax.eval_shape(function, *args).shape) > 0)
    return Call("conv_general_dilated", function, args, f"{params}")


def _permuted(sizes: Sequence[int], spec: Sequence[int]) -> Shape:
    shape = [0] * len(sizes)
    for size, place in zip(sizes, spec, strict=True):
        shape[place] = size
    return tuple(shape)


def dynamic_slice(draw: Draw) -> Call:
    shape = shape_of(draw, least=1)
    window = [draw(st.integers(1, n)) for n in shape]
    starts = [np.int32(draw(st.integers(-2, n + 2))) for n in shape]
    x = values(draw, "dynamic_slice", shape, draw(st.sampled_from(DTYPES)))
    return Call("dynamic_slice", lambda x, *at: lax.dynamic_slice(x, at, window), (x, *starts), f"{window}")


def dynamic_update_slice(draw: Draw) -> Call:
    shape = shape_of(draw, least=1)
    window = tuple(draw(st.integers(1, n)) for n in shape)
    starts = [np.int32(draw(st.integers(-2, n + 2))) for n in shape]
    dtype = draw(st.sampled_from(DTYPES))
    args = values(draw, "dynamic_slice", shape, dtype), values(draw, "dynamic_slice", window, dtype)
    return Call("dynamic_update_slice", lambda x, u, *at: lax.dynamic_update_slice(x, u, at), (*args, *starts), f"{window}")


def _lookup(
    draw: Draw, promised: bool
) -> tuple[Shape, Shape, Array, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], list[int]]:
    """An array, index vectors into some of its dims, with shared batch dims, and a window on the others."""
    rank = draw(st.integers(1, 3))
    dims = [draw(extents) for _ in range(rank)]
    order = draw(st.permutations(range(rank)))
    shared = draw(st.sampled_from((0, 0, 1))) if rank > 1 else 0
    batching, rest = sorted(order[:shared]), order[shared:]
    starts = tuple(rest[: draw(st.integers(1, len(rest)))])
    free = [draw(st.sampled_from((4, 2, 3, 6))) for _ in range(draw(st.integers(0, 2)))]
    ids_dims = [*free]
    ids_batching = tuple(range(len(batching)))
    ids_shape = (*(dims[dim] for dim in batching), *ids_dims, len(starts))
    window = [1 if dim in batching else draw(st.sampled_from(sorted({1, n, (n + 1) // 2}))) for dim, n in enumerate(dims)]
    window = [
        n if dim not in batching and dim not in starts else each for dim, (n, each) in enumerate(zip(dims, window, strict=True))
    ]
    collapsed = tuple(dim for dim in range(rank) if dim not in batching and window[dim] == 1 and draw(st.booleans()))
    offsets = rank - len(batching) - len(collapsed)
    out_rank = offsets + len(ids_shape) - 1
    offset_dims = tuple(sorted(draw(st.permutations(range(out_rank)))[:offsets]))
    random = np.random.default_rng(draw(st.integers(0, 3)))
    columns = [
        random.integers(0, dims[dim] - window[dim] + 1, ids_shape[:-1])
        if promised
        else random.integers(-2, dims[dim] + 2, ids_shape[:-1])
        for dim in starts
    ]
    ids = np.stack(columns, -1).astype(np.int32)
    assume(prod(dims) <= LARGEST and out_rank <= 4)
    spans = [window[dim] for dim in range(rank) if dim not in batching and dim not in collapsed]
    left, out = iter((*ids_shape[:-1],)), [0] * out_rank
    for dim, size in zip(offset_dims, spans, strict=True):
        out[dim] = size
    out = [next(left) if dim not in offset_dims else size for dim, size in enumerate(out)]
    return tuple(dims), tuple(out), ids, offset_dims, collapsed, starts, tuple(batching), ids_batching, window


def gather(draw: Draw) -> Call:
    mode = draw(st.sampled_from(MODES))
    dims, _, ids, offset, collapsed, starts, batching, ids_batching, window = _lookup(draw, mode == "promise_in_bounds")
    numbers = lax.GatherDimensionNumbers(offset, collapsed, starts, batching, ids_batching)
    x = values(draw, "gather", dims, draw(st.sampled_from(DTYPES)))

    def function(x: Array, ids: Array) -> Array:
        return lax.gather(x, ids, numbers, tuple(window), mode=mode)

    return Call("gather", function, (x, ids), f"{numbers} {window} {mode}")


SCATTERS: Mapping[str, Callable[..., Array]] = {
    "scatter": lax.scatter,
    "scatter_add": lax.scatter_add,
    "scatter_sub": lax.scatter_sub,
    "scatter_mul": lax.scatter_mul,
    "scatter_min": lax.scatter_min,
    "scatter_max": lax.scatter_max,
}


def scatter(name: str, draw: Draw) -> Call:
    mode = draw(st.sampled_from(MODES))
    dims, updates, ids, window, inserted, starts, batching, ids_batching, _ = _lookup(draw, mode == "promise_in_bounds")
    numbers = lax.ScatterDimensionNumbers(window, inserted, starts, batching, ids_batching)
    dtype = draw(st.sampled_from(("float32", "int32", "float16", "uint8")))
    # The order of several updates of one element is undefined, so all are equal.
    ups = np.full(updates, 3, jnp.dtype(dtype)) if name == "scatter" else values(draw, name, updates, dtype)

    def function(a: Array, ids: Array, u: Array) -> Array:
        return SCATTERS[name](a, ids, u, numbers, mode=mode)

    return Call(name, function, (values(draw, name, dims, dtype), ids, ups), f"{numbers} {mode}")


def region(name: str, draw: Draw) -> Call:
    """A loop whose constant, carry, scanned input and stacked result share dims, or a cond."""
    shape = shape_of(draw, least=1, most=3)
    dtype = draw(st.sampled_from(("float32", "int32", "bfloat16")))
    if name == "join" or (name in ("enter", "leave") and draw(st.booleans())):
        which = np.int32(draw(st.integers(-1, 3)))

        def chosen(i: Array, x: Array, y: Array) -> Any:
            return lax.switch(i, [lambda x, y: (x + y, y), lambda x, y: (x * 2, x), lambda x, y: (x, y)], x, y)

        return Call(name, chosen, (which, *(values(draw, "scan", shape, dtype) for _ in range(2))), "switch")
    if name in ("enter", "carry", "leave") and draw(st.booleans()):

        def counted(n: Array, x: Array, y: Array) -> Any:
            return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, lax.rev(c[1], (0,)) + y), (jnp.int32(0), x))

        trips = np.int32(draw(st.integers(0, 3)))
        return Call(name, counted, (trips, *(values(draw, "scan", shape, dtype) for _ in range(2))), "while")
    length, reverse = draw(st.sampled_from((3, 1, 4))), draw(st.booleans())

    def looped(a: Array, c: Array, xs: Array) -> Any:
        return lax.scan(lambda carry, x: (carry + a, x + x), c, xs, reverse=reverse)

    args = (values(draw, "scan", each, dtype) for each in (shape, shape, (length, *shape)))
    return Call(name, looped, tuple(args), f"scan, reverse={reverse}")


def _strategy(function: Callable[..., Call], *args: Any) -> Strategy:
    return st.composite(lambda draw: function(*args, draw))()


_PLAIN: Mapping[str, Callable[[Draw], Call]] = {
    "bitcast_convert_type": bitcast,
    "broadcast_in_dim": broadcast_in_dim,
    "clamp": clamp,
    "conv_general_dilated": conv,
    "dot_general": dot_general,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "gather": gather,
    "pad": pad,
    "reshape": reshape,
    "rev": rev,
    "select_n": select_n,
    "slice": sliced,
    "squeeze": squeeze,
    "top_k": top_k,
}
BY_HAND: Mapping[str, Strategy] = {
    **{name: _strategy(each) for name, each in _PLAIN.items()},
    **{name: _strategy(reduce_window, name) for name in ("reduce_window_sum", "reduce_window_max", "reduce_window_min")},
    **{name: _strategy(scatter, name) for name in SCATTERS},
    **{name: _strategy(region, name) for name in ("enter", "trip", "carry", "leave", "collect", "join")},
}


def calls_of(name: str) -> Strategy:
    """Random calls of an op: drawn by hand, from its definition, or from the example calls of `calls`."""
    if name in BY_HAND:
        return BY_HAND[name]
    return derived(name) if derivable(definitions[name]) else restacked(name)
