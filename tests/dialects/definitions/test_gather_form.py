"""Windows of random ids, in every mode and with every monoid, equal JAX's: unpartitioned, and in blocks on two devices."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from functools import cache
from typing import Any

import calls_looked_up as calls
import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import partita as pt
from partita.compiler.api.plan import Plan
from partita.dialects.reference.interpret import interpret

Array = np.ndarray[Any, Any]
DEVICES = 4
ROWS, BATCH = 12, 3
NAMES = ("gather", *calls.SCATTERS)

ids_near = st.lists(st.integers(-ROWS, 2 * ROWS), min_size=BATCH, max_size=BATCH)
edges = st.sampled_from([-(2**31), 2**31 - 1, -1, 0, ROWS - 1, ROWS])
ids_far = st.lists(edges, min_size=BATCH, max_size=BATCH)


def call(name: str, mode: str, width: int) -> Callable[..., Any]:
    return calls.gather_rows(width, mode) if name == "gather" else calls.scatter_windows(calls.SCATTERS[name], mode)


@cache
def planned(name: str, mode: str, width: int) -> tuple[Plan, Plan, Callable[..., Any]]:
    """The program whole and with the rows of its array in blocks, and JAX's own."""
    function = call(name, mode, width)
    start = pt.plan(function, pt.Mesh(a=DEVICES), *arrays(name, [0] * BATCH, width))
    return start, start.tile("x", 0, "a"), jax.jit(function)


def arrays(name: str, ids: list[int], width: int) -> tuple[Array, ...]:
    count = 1 if name == "scatter" else BATCH
    table = np.arange(1, ROWS * 8 + 1, dtype=np.float32).reshape(ROWS, 8) % 7 - 2
    vectors = np.array(ids, np.int32)[:count, None]
    updates = np.arange(count * width * 8, dtype=np.float32).reshape(count, width, 8) % 5 - 1
    return (table, vectors) if name == "gather" else (table, vectors, updates)


@pytest.mark.parametrize("mode", calls.MODES)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
@given(ids=ids_near | ids_far, width=st.sampled_from([1, 2, 5, 11]))
def test_a_window_in_blocks_is_the_window(name: str, mode: str, ids: list[int], width: int) -> None:
    whole, blocks, function = planned(name, mode, width)
    args = arrays(name, ids, width)
    assert blocks.layout("x") == {"x": "f32[a*3, 8]"}
    wanted = np.asarray(function(*args))
    for plan in (whole, blocks):
        (found,) = interpret(plan.ir(), list(args))
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("width", [1, 5])
@settings(max_examples=12)
@given(start=st.integers(-3 * ROWS, 3 * ROWS) | edges)
def test_a_slice_that_moves_is_clamped_by_the_whole_array(width: int, start: int) -> None:
    whole, blocks, function = sliced(width)
    args = [np.arange(8 * 16 * 8, dtype=np.float32).reshape(8, 16, 8), np.int32(start)]
    wanted = jax.tree.leaves(function(*args))
    for plan in (whole, blocks):
        for found, expected in zip(interpret(plan.ir(), list(map(np.asarray, args))), wanted, strict=True):
            np.testing.assert_array_equal(found, expected)


@cache
def sliced(width: int) -> tuple[Plan, Plan, Callable[..., Any]]:
    """A window is read, and its negative written back."""

    def both(x: Any, i: Any) -> Any:
        window = calls.sliced(x, i, width)
        return window, calls.updated(x, -window, i)

    start = pt.plan(both, pt.Mesh(a=DEVICES), jax.ShapeDtypeStruct((8, 16, 8), np.float32), np.int32(0))
    return start, start.tile("x", 1, "a"), jax.jit(both)
