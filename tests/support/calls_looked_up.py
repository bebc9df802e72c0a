"""Calls whose indices are looked up: windows that move, in every mode, read and written with every monoid."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from call import RANDOM, Call, bools, ints, signed
from jax import lax

MODES = ("clip", "fill", "promise_in_bounds")
SCATTERS: Mapping[str, Callable[..., Any]] = {
    name: getattr(lax, name) for name in "scatter scatter_add scatter_sub scatter_mul scatter_max scatter_min".split()
}
# Windows of 3 rows, and of 12: they lie in two blocks of four, and in more than two.
WIDTHS = (3, 12)


def looked_up() -> Iterator[Call]:
    yield from reads()
    yield from writes()
    yield from slices()


def reads() -> Iterator[Call]:
    for mode in MODES:
        for width in WIDTHS:
            yield Call(
                "gather", gather_rows(width, mode), (signed(16, 8), ints(8, 1, low=-3, high=19)), f"window-{width}-{mode}"
            )
        yield Call("gather", gather_windows(mode), (signed(16, 8), ints(8, 2, low=-2, high=14)), f"windows-{mode}")
        yield Call("gather", gather_batched(mode), (signed(8, 16, 8), ints(8, 8, 1, low=-2, high=18)), f"batched-{mode}")
    # A window over all rows moves only if the mode drops windows that leave the array.
    yield Call("gather", gather_rows(16, "fill"), (signed(16, 8), ints(8, 1, low=-1, high=2)), "all")
    for dtype in (np.uint8, np.int8, np.uint32):
        far = RANDOM.integers(0, 100, (8, 1)).astype(dtype)
        yield Call("gather", gather_rows(3, "clip"), (signed(16, 8), far), f"ids-{dtype.__name__}")
    edges = np.array([[2**32 - 1], [2**31], [2**31 - 1], [15], [0], [16], [13], [14]], np.uint32)
    yield Call("gather", gather_rows(1, "clip"), (signed(16, 8), edges), "ids-clip")
    yield Call("gather", gather_rows(1, "fill"), (signed(16, 8), edges), "ids-fill")


def gather_rows(width: int, mode: str) -> Callable[..., Any]:
    numbers = lax.GatherDimensionNumbers(offset_dims=(0, 2), collapsed_slice_dims=(), start_index_map=(0,))
    return lambda x, i: lax.gather(x, i, numbers, (width, 8), mode=mode)


def gather_windows(mode: str) -> Callable[..., Any]:
    numbers = lax.GatherDimensionNumbers(offset_dims=(0, 2), collapsed_slice_dims=(), start_index_map=(1, 0))
    return lambda x, i: lax.gather(x, i, numbers, (5, 3), mode=mode)


def gather_batched(mode: str) -> Callable[..., Any]:
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(1, 2),
        collapsed_slice_dims=(),
        start_index_map=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(1,),
    )
    return lambda x, i: lax.gather(x, i, numbers, (1, 3, 8), mode=mode)


def writes() -> Iterator[Call]:
    for name, scatter in SCATTERS.items():
        ids, once = ints(8, 1, low=-3, high=19), RANDOM.permutation(20)[:8, None].astype(np.int32) - 2
        for mode in MODES:
            # The order of two writes to one row is undefined, so every row is set at most once.
            clipped = RANDOM.permutation(16)[:8, None].astype(np.int32)
            rows = ids if name != "scatter" else clipped if mode == "clip" else once
            yield Call(name, scatter_rows(scatter, mode), (signed(16, 8), rows, signed(8, 8)), f"rows-{mode}")
        for width in WIDTHS:
            one = np.array([[16 - width - 1]], np.int32)
            args = signed(16, 8), one if name == "scatter" else ids, signed(1 if name == "scatter" else 8, width, 8)
            for mode in ("clip", "fill"):
                yield Call(name, scatter_windows(scatter, mode), args, f"window-{width}-{mode}")
    for name in ("scatter_add", "scatter_max"):
        args = signed(8, 16, 8), ints(8, 4, 2, low=-2, high=18), signed(8, 4, 3, 2)
        for mode in ("clip", "fill"):
            yield Call(name, scatter_batched(SCATTERS[name], mode), args, f"batched-{mode}")
    flags = bools(16, 8), ints(8, 1, low=-3, high=19), bools(8, 8)
    yield Call("scatter_max", scatter_rows(lax.scatter_max, "fill"), flags, "bools")
    whole = ints(16, 8), ints(8, 1, low=-3, high=19), ints(8, 8)
    yield Call("scatter_min", scatter_rows(lax.scatter_min, "fill"), whole, "ints")


def scatter_rows(scatter: Callable[..., Any], mode: str) -> Callable[..., Any]:
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return lambda x, i, u: scatter(x, i, u, numbers, mode=mode)


def scatter_windows(scatter: Callable[..., Any], mode: str) -> Callable[..., Any]:
    numbers = lax.ScatterDimensionNumbers((1, 2), (), (0,))
    return lambda x, i, u: scatter(x, i, u, numbers, mode=mode)


def scatter_batched(scatter: Callable[..., Any], mode: str) -> Callable[..., Any]:
    """Windows of 3 by 2, moved along both dims, in every array of a batch."""
    numbers = lax.ScatterDimensionNumbers((2, 3), (), (1, 2), (0,), (0,))
    return lambda x, i, u: scatter(x, i, u, numbers, mode=mode)


def slices() -> Iterator[Call]:
    x = signed(8, 16, 8)
    for width in (1, *WIDTHS):
        for start in (-3, 7, 30):
            at = np.int32(start)
            what = f"{width}-at-{start}"
            yield Call("dynamic_slice", lambda x, i, w=width: sliced(x, i, w), (x, at), what)
            yield Call("dynamic_update_slice", lambda x, u, i: updated(x, u, i), (x, signed(8, width, 8), at), what)
    both = signed(16, 16), signed(3, 5), np.int32(13), np.int32(2)
    yield Call("dynamic_update_slice", lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), both, "both")
    yield Call("dynamic_slice", lambda x, u, i, j: lax.dynamic_slice(x, (i, j), u.shape), both, "both")
    cache = signed(8, 4, 16, 8), signed(8, 4, 1, 8), ints(8, low=0, high=16)
    yield Call("scatter", lambda c, u, t: jax.vmap(lambda c, u, t: cached(c, u, t))(c, u, t), cache, "cache")


def sliced(x: Any, i: Any, width: int) -> Any:
    return lax.dynamic_slice(x, (0, i, 0), (8, width, 8), allow_negative_indices=False)


def updated(x: Any, update: Any, i: Any) -> Any:
    return lax.dynamic_update_slice(x, update, (0, i, 0), allow_negative_indices=False)


def cached(cache: Any, update: Any, t: Any) -> Any:
    """A cache of keys [heads, sequence, dim] at each sequence's own position."""
    return lax.dynamic_update_slice(cache, update, (0, t, 0))
