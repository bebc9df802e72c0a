"""Large texts: what JAX accepts works with any number of terms; everything else is refused at once."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import partita as pt

MANY = 1000


def function(body: str, result: str = "f32[4]") -> str:
    left = "y" if result == "f32[]" else "y[i]"
    return f"fn f(x: f32[4]) -> {result} {{\n  {left} = {body}\n  return y\n}}\n"


@pytest.mark.parametrize(
    ("body", "result", "wanted"),
    [
        (" + ".join(["x[i]"] * MANY), "f32[4]", lambda x: MANY * x),
        (" - ".join(["max(x[i], 2) * x[i]"] * MANY), "f32[4]", lambda x: (2 - MANY) * jnp.maximum(x, 2) * x),
        (" * ".join(["x[i]"] * MANY), "f32[4]", lambda x: x**MANY),
        (f"sum(i) ({' + '.join(['x[i]'] * MANY)})", "f32[]", lambda x: jnp.sum(MANY * x)),
        (f"where({' and '.join(['x[i] > 1'] * MANY)}, x[i], 0.0)", "f32[4]", lambda x: jnp.where(x > 1, x, 0.0)),
        (f"where({' or '.join(['x[i] > 1'] * MANY)}, x[i], 0.0)", "f32[4]", lambda x: jnp.where(x > 1, x, 0.0)),
        (f"x[i] + ({' + '.join(['1.0'] * MANY)})", "f32[4]", lambda x: x + MANY),
        ("(" * MANY + "x[i]" + ")" * MANY, "f32[4]", lambda x: x),
    ],
    ids=["sum", "difference", "product", "fold of a sum", "and", "or", "numbers", "parentheses"],
)
def test_a_thousand_terms_are_no_deeper_than_two(body: str, result: str, wanted: Callable[[Any], Any]):
    x = jnp.asarray([0.5, 1.0, 1.0, 1.5])[::-1] if "max" in body else jnp.asarray([1.0, 1.0, 1.0, 1.0])
    found = pt.parse(function(body, result)).functions["f"](x)
    assert jnp.allclose(found, wanted(x), rtol=1e-4)


def test_a_thousand_terms_are_partitioned():
    plan = pt.plan(pt.parse(function(" + ".join(["x[i]"] * MANY))).functions["f"], pt.Mesh(a=2), jnp.ones(4)).tile("x", 0, "a")
    assert plan.layout()["result"] == "f32[a*2]"


def test_an_extent_of_a_thousand_terms():
    text = f"let A={' + '.join(['1'] * MANY)}\nfn f(x: f32[A]) -> f32[A] {{\n  return x\n}}\n"
    assert pt.parse(text).arguments() == {"x": jax.ShapeDtypeStruct((MANY,), "float32")}


def test_a_number_that_is_cast_has_the_range_of_its_dtype():
    found = pt.parse("fn f(x: u32[2]) -> u32[2] {\n  y[i] = min(x[i], u32(4294967295))\n  return y\n}\n").functions["f"]
    x = jnp.asarray([4294967295, 1], jnp.uint32)
    assert (found(x) == x).all()
    assert (jax.jit(found)(x) == x).all()


@pytest.mark.parametrize(
    "body",
    ["x[" * 300 + "i" + "]" * 300, "-" * 5000 + "x[i]", "(x[i] + " * 1000 + "x[i]" + ")" * 1000, "x[i" + " + 0" * 1000 + "]"],
    ids=["lookups", "signs", "parentheses", "position"],
)
def test_an_expression_that_is_nested_too_deeply_is_an_error(body: str):
    with pytest.raises(pt.Error, match="nested too deeply"):
        pt.parse(function(body).replace("f32", "i32"))


@pytest.mark.parametrize("number", ["9" * 10_000, "9" * 400, f"({'9' * 290} * {'9' * 290})", f"f32({'9' * 400})", "4294967296"])
def test_a_number_that_fits_no_dtype_is_an_error(number: str):
    with pytest.raises(pt.Error, match="does not fit") as caught:
        pt.parse(function(f"x[i] * {number}"))
    assert len(caught.value.title) < 300


def test_an_error_shows_a_part_of_a_long_line():
    with pytest.raises(pt.Error) as caught:
        pt.parse(function("z" * 10_000 + "[i]"))
    assert max(map(len, str(caught.value).splitlines())) < 500


@pytest.mark.parametrize("backwards", [False, True])
def test_calls_that_are_nested_a_thousand_deep_are_an_error(backwards: bool):
    calls = [f"fn f{k + 1}(x: f32[4]) -> f32[4] {{\n  y = f{k}(x)\n  return y\n}}\n" for k in range(MANY)]
    first = "fn f0(x: f32[4]) -> f32[4] {\n  y[i] = x[i]\n  return y\n}\n"
    with pytest.raises(pt.Error, match="nested too deeply"):
        pt.parse(first + "".join(calls[::-1] if backwards else calls))
