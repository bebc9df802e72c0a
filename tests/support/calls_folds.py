"""Calls of ragged products and of pooling's derivatives."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from call import RANDOM, Array, Call, ints, prim, signed
from jax import lax

# Contracting dims of both, batch dims of both; the ragged dim; the dims of groups.
RAGGED: dict[str, tuple[Any, int, list[int], tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "rows": ((([1], [1]), ([], [])), 0, [0], (6, 8), (4, 8, 16), (4,)),
    "rows of a batch": ((([2], [2]), ([0], [1])), 1, [0], (8, 6, 16), (4, 8, 16, 8), (8, 4)),
    "inner rows": ((([2], [0]), ([], [])), 1, [1], (8, 6, 16), (16, 4, 8), (8, 4)),
    "shared sizes": ((([2], [2]), ([0], [1])), 1, [0], (8, 6, 16), (4, 8, 16, 8), (4,)),
    "folded": ((([0], [0]), ([], [])), 0, [], (6, 8), (6, 16), (4,)),
    "folded in a batch": ((([2, 1], [0, 2]), ([0], [1])), 1, [], (8, 6, 16, 8), (16, 8, 6, 8), (8, 16, 4)),
    "a batch": ((([2], [1]), ([0], [0])), 0, [], (8, 4, 16), (8, 16, 8), (3,)),
}


def sizes_of(*shape: int, total: int) -> Array:
    """Group sizes that add up to `total`, or to one less, so that a row is in no group."""
    cuts = np.sort(RANDOM.integers(0, total, (*shape[:-1], shape[-1] - 1)), axis=-1)
    ends = np.concatenate([cuts, np.full((*shape[:-1], 1), total - 1)], -1)
    return np.diff(ends, axis=-1, prepend=0).astype(np.int32)


def ragged() -> Iterator[Call]:
    """Ragged products, which are expanded."""
    for what, (dims, cut, groups, left, right, sizes) in RAGGED.items():
        numbers = lax.RaggedDotDimensionNumbers(dims, [cut], groups)
        yield Call(
            "ragged_dot_general",
            lambda x, y, s, n=numbers: lax.ragged_dot_general(x, y, s, n),
            (signed(*left), signed(*right), sizes_of(*sizes, total=left[cut])),
            what.replace(" ", "-"),
        )


def grouped() -> Iterator[Call]:
    """Products by the group of each row, with groups in any order, and rows that are in none."""
    for what, (dims, cut, groups, left, right, sizes) in RAGGED.items():
        if what != "a batch":
            params: dict[str, Any] = {
                "ragged_dot_dimension_numbers": lax.RaggedDotDimensionNumbers(dims, [cut], groups),
                "precision": None,
                "preferred_element_type": np.dtype(np.float32),
                "groups": sizes[-1],
                "indices_are_sorted": False,
            }
            name, ids = "grouped_dot" if groups else "grouped_outer", ints(*sizes[:-1], left[cut], low=-1, high=sizes[-1] + 1)
            yield Call(name, prim(name, **params), (signed(*left), signed(*right), ids), what.replace(" ", "-"))


def pooling() -> Iterator[Call]:
    """The derivatives of a maximum and a minimum over overlapping windows, too large to be expanded."""
    width = 17
    for what, chosen, stride, padding in (("", lax.ge_p, 2, (0, 0)), ("overlapping", lax.le_p, 1, (1, 1))):
        params: dict[str, Any] = {
            "select_prim": chosen,
            "window_dimensions": (1, width, 1),
            "window_strides": (1, stride, 1),
            "padding": ((0, 0), padding, (0, 0)),
        }
        x = signed(8, width + 4, 8)
        rows = (4 + sum(padding)) // stride + 1
        yield Call("select_and_scatter_add", prim("select_and_scatter_add", **params), (signed(8, rows, 8), x), what)


def several() -> Iterator[Call]:
    """Folds with a user's combiner, which are expanded; the op is one of the expansion."""
    x, at = signed(8, 5, 16), jnp.broadcast_to(jnp.arange(5)[:, None], (8, 5, 16)).astype(np.int32)

    def larger(left: Any, right: Any) -> Any:
        keep = left[0] >= right[0]
        return lax.select(keep, left[0], right[0]), lax.select(keep, left[1], right[1])

    units = np.float32(-np.inf), np.int32(9)
    yield Call("reduce", lambda x, i: lax.reduce((x, i), units, larger, (1,)), (x, at))
    yield Call("reduce", lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + 0 * a, (1, 2)), (x,), "two")
    yield Call("reduce", lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + 0 * a, (1,)), (x[:, :0],), "none")
    for what, width, stride, dilation, base in (("", 2, 2, 1, 1), ("wide", 11, 1, 1, 3), ("dilated", 9, 2, 2, 4)):
        yield Call(
            "reduce_window",
            lambda x, i, w=width, s=stride, d=dilation, b=base: lax.reduce_window(
                (x, i), units, larger, (1, w, 1), (1, s, 1), ((0, 0), (2, 1), (0, 0)), (1, b, 1), (1, d, 1)
            ),
            (x, at),
            what,
        )
    yield Call(
        "select_and_gather_add",
        prim(
            "select_and_gather_add",
            select_prim=lax.ge_p,
            window_dimensions=(1, 2, 1),
            window_strides=(1, 2, 1),
            padding=((0, 0), (0, 0), (0, 0)),
            base_dilation=(1, 1, 1),
            window_dilation=(1, 1, 1),
        ),
        (signed(8, 6, 8), signed(8, 6, 8)),
    )
