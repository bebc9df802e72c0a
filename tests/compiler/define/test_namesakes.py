"""Users' primitives with the names of other primitives: each computes its own function."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

import partita as pt

MESH = pt.Mesh(data=4)
X = jnp.arange(1, 9, dtype=jnp.float32)


def primitive(name: str, function: Callable[[Any], Any], known: bool) -> Any:
    """A primitive of one operand; `known`: JAX can lower it to other primitives."""
    made: Any = Primitive(name)
    lowered: Any = mlir.lower_fun(function, multiple_results=False)
    made.def_impl(function if known else lambda x: function(np.asarray(x)))
    made.def_abstract_eval(lambda aval: aval)
    mlir.register_lowering(made, lowered if known else lambda ctx, x: lowered(ctx, x))
    return made


NAMES = "neg mul sort copy stack while call pvary psum axis_index log2 relayout polynomial checkpoint".split()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_primitive_with_the_name_of_one_of_jaxs_is_not_that_one(name: str, known: bool):
    own = primitive(name, lambda x: x * 10, known)
    plan = pt.plan(lambda x: (own.bind(x), -x), MESH, X).tile("x", 0, "data")
    found, negative = plan.compile()(X)
    np.testing.assert_allclose(found, X * 10)
    np.testing.assert_allclose(negative, -X)


def test_two_primitives_of_one_name_are_two():
    one, other = (primitive("mine", function, known=False) for function in (lambda x: x + 1, lambda x: x * 10))
    plan = pt.plan(lambda x: (one.bind(x), other.bind(x)), MESH, X)
    assert [each.primitive for each in plan.whole] == ["mine", "mine#2"]
    for found, wanted in zip(plan.compile()(X), (X + 1, X * 10), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_a_primitive_that_was_seen_before_keeps_its_name():
    met = primitive("met_before", lambda x: x + 1, known=False)
    plan = pt.plan(lambda x: met.bind(x), MESH, X)
    own = pt.define("met_before(x)   out[i..] = @(x[i..])", lambda x: x * 10)
    assert own.op.name == "test_a_primitive_that_was_seen_before_keeps_its_name.met_before"
    np.testing.assert_allclose(pt.plan(own, MESH, X).compile()(X), X * 10)
    np.testing.assert_allclose(plan.compile()(X), X + 1)
    pt.define("met_before(x)   out[i..] = @(x[i..])", primitive=met)
    assert not pt.plan(lambda x: met.bind(x), MESH, X).tile("x", 0, "data").whole


def test_equal_equations_in_different_contexts_are_different_programs():
    def drawn(key: Any) -> Any:
        with jax.threefry_partitionable(True):
            one = jax.random.bits(key, (8,))
        with jax.threefry_partitionable(False):
            return one, jax.random.bits(key, (8,))

    key = jax.random.key(0)
    found, wanted = pt.plan(drawn, MESH, key).compile()(key), jax.jit(drawn)(key)
    assert not np.array_equal(*wanted)
    for each, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(each, other)
