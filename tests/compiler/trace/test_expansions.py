"""An expanded primitive computes the same, in NumPy and on eight devices, and no part of it runs unpartitioned."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import disagreement
from call import Call
from calls_expanded import numbers, sparse_arrays
from calls_folds import ragged, several
from jax import lax

import partita as pt
from partita.dialects.reference.interpret import interpret

FOLDS = [*several()]
CALLS = [*FOLDS, *ragged(), *sparse_arrays(), *numbers()]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_an_expanded_primitive_computes_the_same(call: Call) -> None:
    expected = jax.tree.leaves(jax.jit(call.function)(*call.args))
    plan = pt.plan(call.function, pt.Mesh(a=8), *call.args)
    assert plan.whole == []
    args = [np.asarray(each) for each in (*call.args, *plan.source.traced.consts)]
    assert disagreement(interpret(plan.source.traced.main, args), expected) == ""
    assert disagreement(jax.tree.leaves(plan.compile()(*call.args)), expected) == ""


# An array without elements is not tiled.
@pytest.mark.parametrize("call", [call for call in FOLDS if call.what != "none"], ids=str)
def test_a_batch_dim_passes_an_expanded_primitive(call: Call) -> None:
    expected = jax.tree.leaves(jax.jit(call.function)(*call.args))
    plan = pt.plan(call.function, pt.Mesh(a=8), *call.args)
    for name in plan.source.traced.arg_names[: len(call.args)]:
        plan = plan.tile(name, 0, "a")
    plan = plan.propagate("a")
    assert not [each for each in plan.collectives() if each.kind == "all_gather"]
    assert disagreement(jax.tree.leaves(plan.compile()(*call.args)), expected) == ""


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint16"])
@pytest.mark.parametrize("first", [True, False])
def test_the_upper_half_of_a_product_with_a_number(dtype: str, first: bool):
    x = jnp.asarray([-128, -1, 0, 127] if dtype[0] == "i" else [0, 1, 200, 255]).astype(dtype) * jnp.ones((), dtype)

    def product(x: Any) -> Any:
        return jax.lax.mulhi(jnp.asarray(3, dtype), x) if first else jax.lax.mulhi(x, jnp.asarray(3, dtype))

    plan = pt.plan(product, pt.Mesh(a=2), x).tile("x", 0, "a")
    assert (plan.compile()(x) == jax.jit(jax.lax.mulhi)(x, jnp.full(4, 3, dtype))).all()


def test_the_upper_half_of_a_product_with_a_python_number():
    x = jnp.asarray([2**30, -(2**31), 7, -1])
    plan = pt.plan(lambda x: jax.lax.mulhi(x, 3), pt.Mesh(a=2), x).tile("x", 0, "a")
    assert (plan.compile()(x) == jax.lax.mulhi(x, jnp.full(4, 3))).all()


ROWS = np.random.default_rng(0).integers(-4, 5, (4, 6)).astype(np.int32)
TRUTHS = ROWS > 0
COMBINERS: dict[str, tuple[Any, Any, Any]] = {
    "add": (lax.add, np.int32(3), ROWS),
    "mul": (lax.mul, np.int32(2), ROWS),
    "max": (lax.max, np.int32(1), ROWS),
    "min": (lax.min, np.int32(-1), ROWS),
    "and": (lax.bitwise_and, np.bool_(False), TRUTHS),
    "or": (lax.bitwise_or, np.bool_(True), TRUTHS),
    "xor": (lax.bitwise_xor, np.int32(3), ROWS),
    "halves": (lax.add, np.float32(0.5), ROWS.astype(np.float32)),
}
# Window, strides, padding, base dilation, window dilation.
WINDOWS: dict[str, tuple[Any, ...]] = {
    "of 3": ((1, 3), (1, 1), "SAME"),
    "of 2 by 3": ((2, 3), (1, 2), "VALID"),
    "wider than the array": ((1, 16), (1, 1), ((0, 0), (12, 3))),
    "of holes": ((2, 2), (1, 1), ((1, 0), (0, 2)), (1, 2), (1, 2)),
    "beside the array": ((1, 2), (1, 1), ((0, 0), (5, 5))),
    "that there are none of": ((9, 9), (1, 1), "VALID"),
}


def agrees(function: Callable[[Any], Any], x: Any) -> None:
    """Unpartitioned in NumPy, and with each dim tiled on devices, a plan computes what JAX computes."""
    expected = jax.tree.leaves(jax.jit(function)(x))
    plan = pt.plan(function, pt.Mesh(a=2), x)
    assert disagreement(interpret(plan.ir(), (x,)), expected) == ""
    for dim in range(2):
        assert disagreement(jax.tree.leaves(plan.tile("x", dim, "a").compile()(x)), expected) == ""


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("combiner", COMBINERS)
def test_a_fold_counts_its_initial_value_once(combiner: str, dims: tuple[int, ...]) -> None:
    combine, initial, x = COMBINERS[combiner]
    agrees(lambda x: lax.reduce(x, initial, combine, dims), x)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("combiner", COMBINERS)
def test_a_window_counts_its_initial_value_once_and_padding_not_at_all(combiner: str, window: str) -> None:
    combine, initial, x = COMBINERS[combiner]
    agrees(lambda x: lax.reduce_window(x, initial, combine, *WINDOWS[window]), x)


def test_folds_of_several_arrays_and_of_no_elements_begin_with_their_initial_values() -> None:
    def larger(left: Any, right: Any) -> Any:
        (v, i), (w, j) = left, right
        return jnp.where(v > w, v, w), jnp.where((v > w) | ((v == w) & (i < j)), i, jnp.where(v == w, jnp.minimum(i, j), j))

    initial = np.float32(1), np.int32(77)

    def both(x: Any) -> Any:
        pair = x, lax.broadcasted_iota(np.int32, x.shape, 1)
        pooled = lax.reduce_window(pair, initial, larger, (1, 3), (1, 1), "SAME")
        return lax.reduce(pair, initial, larger, (1,)), pooled, lax.reduce(x[:, :0], x[0, 0], lax.add, (1,))

    agrees(both, ROWS.astype(np.float32))


def test_no_keys_have_no_data():
    plan = pt.plan(lambda key: jax.random.key_data(jax.random.split(key, 4)[0:0]), pt.Mesh(a=2), jax.random.key(0))
    assert plan.compile()(jax.random.key(0)).shape == (0, 2)


def test_what_has_no_elements_reads_nothing():
    plan = pt.plan(lambda x: (jnp.sort(x, 0)[:, :0] * 2, x), pt.Mesh(a=2), jnp.ones((4, 4)))
    assert "lax.sort" not in str(plan.ir())
