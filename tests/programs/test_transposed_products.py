"""A product that only its transpose reads becomes one product, with its operands the other way round."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from everywhere import agrees
from jax import lax

import partita as pt

A, B = jnp.linspace(-1, 1, 8 * 6 * 4).reshape(8, 6, 4), jnp.linspace(0, 1, 8 * 6 * 6).reshape(8, 6, 6)
SUMS = (((0, 1), (0, 1)), ((), ()))
ROWS = (((1,), (1,)), ((0,), (0,)))


@pytest.mark.parametrize(
    ("function", "left"),
    [
        pytest.param(lambda a, b: lax.dot_general(a, b, SUMS).T, 0, id="over two indices"),
        pytest.param(lambda a, b: lax.dot_general(a, b, ROWS).swapaxes(1, 2), 0, id="with a batch"),
        pytest.param(lambda a, b: lax.dot_general(a, b, (((0,), (0,)), ((), ()))).transpose(2, 3, 0, 1), 0, id="two of each"),
        pytest.param(lambda a, b: (p := lax.dot_general(a, b, SUMS)).T @ p, 1, id="the product is read too"),
        pytest.param(lambda a, b: lax.dot_general(a, b, ROWS).transpose(2, 0, 1), 1, id="the batch moves"),
        pytest.param(lambda a, b: lax.dot_general(a, b, (((0,), (0,)), ((), ()))).transpose(2, 3, 1, 0), 1, id="rows move"),
        pytest.param(lambda a, b: lax.dot_general(a, b, SUMS, precision="highest").T, 1, id="in a precision"),
    ],
)  # fmt: skip
def test_a_product_and_its_transpose_are_one_product(function: Callable[..., Any], left: int) -> None:
    plan = pt.plan(function, pt.Mesh(data=2), A, B).tile(["a", "b"], 0, "data")
    agrees(plan, function, A, B, derived=True)
    assert str(plan.spmd()).count("lax.transpose") == left


def test_the_gradient_of_a_weight_is_one_product() -> None:
    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.einsum("btm,mhd->bthd", x, w) ** 2)

    plan = pt.plan(jax.grad(loss), pt.Mesh(data=2), jnp.ones((6, 2, 3)), B).tile("x", 0, "data")
    assert "lax.transpose" not in str(plan.spmd())


def test_a_transpose_of_a_transpose_keeps_what_else_is_read() -> None:
    def function(a: Any) -> Any:
        product = (a[0] @ a[0].T).T
        return product.T, jnp.sin(product), product.T * 2

    agrees(pt.plan(function, pt.Mesh(data=2), A).tile("a", 1, "data"), function, A, derived=True)
