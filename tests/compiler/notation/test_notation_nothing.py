"""A function without results, or with an empty tuple, is written `-> ()` and `return ()`."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import partita as pt

MESH = pt.Mesh(a=2)
X = jnp.ones(4)


@pytest.mark.parametrize(
    ("function", "args"),
    [(lambda x: None, (X,)), (lambda x: (), (X,)), (lambda x: {}, (X,)), (lambda: (), ()), (lambda: None, ())],
    ids=["none", "tuple", "dict", "nothing at all", "none of nothing"],
)
def test_a_program_without_results_is_said_and_read_again(function: Callable[..., Any], args: tuple[Any, ...]):
    plan = pt.plan(function, MESH, *args)
    text = plan.notation()
    read = pt.parse(text)
    assert read.plan().notation() == text
    (found,) = read.functions.values()
    assert found(*args) == ()
    assert read.plan().layout() == ({"x": "f32[4]"} if args else {})
    assert plan.compile()(*args) == function(*args)


@pytest.mark.parametrize("text", ["fn f(x: f32[4]) -> ( ) {\n  return (  )\n}\n", "fn f() -> () {\n  return ()\n}\n"])
def test_the_empty_tuple_is_read_as_in_python(text: str):
    assert pt.parse(text).functions["f"](*[X] * text.count("x:")) == ()


@pytest.mark.parametrize("text", ["fn f(x: f32[4]) -> () {\n  return x\n}\n", "fn f(x: f32[4]) -> f32[4] {\n  return ()\n}\n"])
def test_an_empty_tuple_and_an_array_are_different_results(text: str):
    with pytest.raises(pt.Error, match=r"`f` returns . values?, but declares . results?"):
        pt.parse(text)
