"""The table of monoids is correct, and the grammars and JAX's names agree with it."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import random

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from lark.exceptions import UnexpectedInput

import partita as pt
from partita.compiler.ops.monoids import SPELLED, WRITTEN
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.definitions.syntax_tree import Fold
from partita.dialects.ground.dtypes import descending, dtype_of
from partita.dialects.ground.monoids import FOLDS, MONOID_NAMES, MONOIDS, UNITS, Monoid
from partita.dialects.layouts import Layout, Pending, parse_array
from partita.dialects.ranges.algebra import parse_range

TABLE = [MONOIDS[fold] for fold in FOLDS]
RANDOM = random.Random(0)


def numbers(monoid: Monoid, dtype: str = "int32") -> list[np.ndarray]:
    kind = "float32" if monoid.fold == "logsumexp" else dtype
    return [np.asarray(RANDOM.randrange(-9, 9), kind) for _ in range(3)]


@pytest.mark.parametrize("monoid", TABLE, ids=lambda monoid: monoid.fold)
def test_it_is_associative_and_its_unit_changes_nothing(monoid: Monoid) -> None:
    for _ in range(20):
        x, y, z = numbers(monoid)
        left, right = monoid.function(monoid.function(x, y), z), monoid.function(x, monoid.function(y, z))
        np.testing.assert_allclose(left, right, rtol=1e-6)
        np.testing.assert_array_equal(monoid.function(monoid.unit(x.dtype), x), x)
        assert not monoid.idempotent or monoid.function(x, x) == x


@pytest.mark.parametrize("monoid", [each for each in TABLE if each.linear], ids=lambda monoid: monoid.fold)
def test_a_linear_fold_of_sums_is_the_sum_of_folds(monoid: Monoid) -> None:
    a, b, c = numbers(monoid)
    x, y, _ = numbers(monoid)
    assert monoid.function(a + x, b + y) == monoid.function(a, b) + monoid.function(x, y)
    assert monoid.function(c * a, c * b) == c * monoid.function(a, b)


@pytest.mark.parametrize("fold", SPELLED)
def test_jax_combines_as_numpy_does(fold: str) -> None:
    x, y, _ = numbers(MONOIDS[fold])
    np.testing.assert_allclose(SPELLED[fold].combine(x, y), MONOIDS[fold].function(x, y), rtol=1e-6)  # pyright: ignore[reportArgumentType]


def test_jax_has_a_collective_for_each_monoid_that_claims_one() -> None:
    assert {fold for fold, each in SPELLED.items() if each.across} == {each.fold for each in TABLE if each.collective}


@pytest.mark.parametrize("fold", [*FOLDS, "argmax", "argmin"])
def test_the_grammar_of_definitions_reads_its_fold(fold: str) -> None:
    (definition,) = parse_definitions(f"own(x)  out[i] = {fold}(k) x[i, k]\n").values()
    assert isinstance(definition.body, Fold) and definition.body.monoid == fold


@pytest.mark.parametrize("fold", FOLDS)
def test_the_notation_reads_the_folds_that_jax_numpy_has(fold: str) -> None:
    dtype = "bool" if MONOIDS[fold].on_bool else "f32"
    text = f"fn f(x: {dtype}[I=4, K=3]) -> {dtype}[I] {{\n  y[i] = {fold}(k) x[i, k]\n  return y\n}}\n"
    if fold in WRITTEN:
        x = np.arange(12).reshape(4, 3) % 2 == 0 if dtype == "bool" else np.arange(12, dtype="float32").reshape(4, 3)
        np.testing.assert_array_equal(pt.parse(text).functions["f"](x), MONOIDS[fold].reduce(x, (1,)))
    else:
        with pytest.raises((pt.Error, UnexpectedInput)):
            pt.parse(text)


@pytest.mark.parametrize("name", MONOID_NAMES)
def test_a_layout_reads_back_what_it_prints_of_it(name: str) -> None:
    mesh = pt.Mesh(data=2)
    layout = Layout((parse_range("8"),), (Pending(name, mesh.place("data")),))
    assert parse_array(layout.text("float32"), mesh) == ("float32", layout)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8", "uint8", "int32", "bool"])
def test_the_keys_of_a_selection_order_numbers_as_xla_does(dtype: str) -> None:
    """Also a NaN with a sign, which comes after minus infinity; nothing comes after the unit of `top`."""
    numbers = [np.nan, -np.nan, -np.inf, np.inf, 0.0, -0.0, 1.0, -1.0] if "float" in dtype else [3, 0, 1, 2]
    x = np.asarray([*numbers, 0], dtype_of(dtype))
    x[-1] = UNITS["top"](x.dtype)
    order = np.argsort(descending(x), stable=True)
    np.testing.assert_array_equal(order, lax.top_k(jnp.asarray(x), len(x))[1])
    assert descending(x)[-1] == descending(x).max()
