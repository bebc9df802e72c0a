"""A program computes what its equations define, element by element."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import numpy as np
import pytest
from drawn_equations import texts
from generated import examples
from hypothesis import given
from pointwise import run
from twins import TWINS, Twin

import partita as pt
from partita.compiler.api.notation import Notation
from partita.compiler.notation.terms import CheckedEquation
from partita.dialects.reference.interpret import interpret


def agree(text: str, read: Notation | None = None) -> None:
    """The traced program, and its equations evaluated element by element, compute the same."""
    read = read or pt.parse(text)
    random = np.random.default_rng(0)
    name, structs = list(read.functions)[-1], read.arguments()
    values = [
        np.asarray(random.integers(0, 3, each.shape), each.dtype)
        if each.dtype.kind in "iu"
        else random.uniform(0.2, 1, each.shape).astype(each.dtype)
        for each in structs.values()
    ]
    wanted = run(read.program.functions[name], values)
    found = interpret(pt.trace(read.functions[name], *structs.values()).main, values)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.float64(ours), np.float64(theirs), rtol=0.02 if "bf16" in text else 2e-4, atol=1e-5)


@given(text=texts())
@examples(40)
def test_drawn_equations_compute_what_they_say(text: str):
    agree(text)


SMALL = [
    twin
    for twin in TWINS
    for function in (list(twin.read.program.functions.values())[-1],)
    if all(isinstance(each, CheckedEquation) for each in function.statements) and twin.name != "activations"
]


@pytest.mark.parametrize("twin", SMALL, ids=lambda twin: twin.name)
def test_a_twin_computes_what_its_equations_say(twin: Twin):
    agree(twin.text, twin.read)


@pytest.mark.parametrize(
    "equation",
    [
        "y[p: 4] = sum(q) x[p + q - 1] * w[q]",
        "y[p: 4] = sum(q) x[p - q + 1] * w[q]",
        "y[p: 4] = sum(q: 3) (x[p + q - 1] * 2 + 1)",
        "y[p: 4] = sum(q) exp(x[p + q - 1]) * x[p + q - 1] * w[q] / 3",
        "y[p: 4] = max(q: 3) -x[p + q - 1]",
        "y[p: 4] = min(q: 3) (x[2*p + q - 1] - 9)",
        "y[p: 4] = sum(q) w[q] * max(r: 2) x[p + q + r - 3]",
        "y[n: 4] = sum(e) x[e] * [n = ids[e]] * [e < 2] / 2",
        "y[n: 4] = sum(e, k) [ids[e] = n] * w[k] * x[e]",
        "y[n: 4] = sum(e) [ids[e] = n] * w[ids[e]]",
        "y[n: 4] = sum(e) [ids[e] = n] * [e < 3] * [ids[e] > 0] * x[e]",
        "y[n: 4] = sum(e, k) [ids[e] = n] * [ids[k] = n] * x[e] * x[k]",
        "z[m: 4, n: 4] = sum(e, k) [ids[e] = n] * [ids[k] = m] * x[e] * x[k]  y[n] = sum(m) z[m, n] * f32(m + 1)",
        "z[m: 4, n: 4] = sum(e) [ids[e] = n] * [n = m] * x[e]  y[n] = sum(m) z[m, n] * f32(m + 1)",
    ],
)
def test_nothing_is_read_where_a_window_leaves_the_array_or_a_position_is_missing(equation: str):
    agree(f"fn f(x: f32[5], w: f32[3], ids: i32[5]) -> f32[4] {{ {equation} return y }}")


@pytest.mark.parametrize(
    ("equation", "result"),
    [
        ("y[i: 3] = max(q: 2) x[i + q, i + q]", "3"),
        ("y[i: 3] = sum(q: 2) x[i + q, i + 0]", "3"),
        ("y[i: 3, j: 3] = max(q: 2) x[i + q, j + q]", "3, 3"),
        ("y[i: 3] = max(q: 2, r: 2) x[i + q, i + r]", "3"),
        ("y[n, o, i: 3] = sum(c, q) z[n, c, i + q, i + q] * k[o, c, q]", "3, 3, 3"),
        ("y[n, o, i: 3, j: 3] = sum(c, q) z[n, c, i + q, j + q] * k[o, c, q]", "3, 3, 3, 3"),
        ("y[i: 3, o] = sum(c, q) z[i, c, i + q, 0] * k[o, c, q]", "3, 3"),
        ("y[n, i: 3] = sum(c, q) z[n, c, i + q, 0] * k[i, c, q]", "3, 3"),
        ("w[n, c, i] = z[n, c, i, 0]  y[n, i: 3] = sum(c, q) w[n, c, i + q] * k[i, c, q]", "3, 3"),
        ("w[n, c, i] = z[n, c, i, 0]  y[i: 3, o] = sum(c, q) w[i, c, i + q] * k[o, c, q]", "3, 3"),
        ("w[n, c, i] = z[n, c, i, 0]  y[n, o, i: 3] = sum(c, q) w[n, c, i + q] * h[o, c, q, q]", "3, 5, 3"),
    ],
)
def test_an_index_that_moves_along_two_dims_is_not_a_window(equation: str, result: str):
    arguments = "x: f32[4, 4], z: f32[3, 2, 4, 4], k: f32[3, 2, 2], h: f32[5, 2, 2, 2]"
    agree(f"fn f({arguments}) -> f32[{result}] {{ {equation} return y }}")


def test_integer_division_drops_the_remainder():
    agree("fn f(x: i32[5], y: i32[5]) -> i32[5] { z[i] = div(x[i] - 2, y[i] + 1) + rem(x[i], 2)  return z }")


@pytest.mark.parametrize(
    "function", ["fn f(x: f32[4]) -> f32[4] { g = g(x)  return g }", "fn f(g: f32[4]) -> f32[4] { y = g(g)  return y }"]
)
def test_a_value_may_have_the_name_of_a_function(function: str):
    text = f"fn g(x: f32[4]) -> f32[4] {{ y[i] = 2 * x[i]  return y }} {function}"
    np.testing.assert_array_equal(pt.parse(text).functions["f"](np.ones(4, np.float32)), np.full(4, 2, np.float32))


def test_operands_with_different_indices_may_follow_one_without_an_index():
    choice = "where(x[0, j] > 1, y[i, j], z[k, j])"
    agree(f"fn f(x: f32[1, 3], y: f32[2, 3], z: f32[4, 3]) -> f32[2, 4, 3] {{ r[i, k, j] = {choice}  return r }}")


def test_a_position_with_a_factor_of_zero_is_fixed():
    agree("fn f(x: f32[5]) -> f32[4] { y[i: 4] = x[0*i + 1] * x[0*i]  return y }")
