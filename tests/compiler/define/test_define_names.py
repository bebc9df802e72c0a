"""User-defined ops are named by function and module, so two libraries may use one name."""

# JAX annotates its functions only in part.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

import sys
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import partita as pt
from partita.compiler.graph.graph import Graph

MESH = pt.Mesh(a=2)
X = jnp.arange(24.0).reshape(4, 6) / 10
LIBRARY = """
import jax, partita as pt

@pt.define("{op}(x)   out[b.., d:] = @(x[b.., d:])")
def {op}(x):
    return {body}
"""
BODIES = {"one": "jax.nn.softmax(x, -1)", "other": "x - x.max(-1, keepdims=True)"}


def library(name: str, body: str, op: str = "normalised") -> Any:
    """A module that defines an op."""
    module = ModuleType(name)
    exec(compile(LIBRARY.format(body=body, op=op), f"{name}.py", "exec"), vars(module))
    return module


def test_two_libraries_that_call_their_ops_alike_are_used_together():
    one, other = (library(f"library_{name}.nets", body, "centred") for name, body in BODIES.items())

    def both(x: Any) -> Any:
        return one.centred(x) + other.centred(x)

    plan = pt.plan(both, MESH, X).tile("x", 0, "a")
    assert (one.centred.op.name, other.centred.op.name) == ("centred", "nets.centred")
    assert "lax.centred " in str(plan.spmd())
    assert "lax.nets.centred " in str(plan.spmd())
    assert plan.whole == []
    wanted = jax.nn.softmax(X, -1) + X - X.max(-1, keepdims=True)
    assert jnp.allclose(plan.compile()(X), wanted)
    graph = plan.lower("collective")
    assert Graph.parse(graph.text()).text() == graph.text()
    assert jnp.allclose(graph.run(X), wanted)


def test_an_op_with_its_module_in_its_name_is_mapped_and_differentiated():
    library("library_first.maps", BODIES["one"])
    op = library("library_second.maps", BODIES["other"]).normalised

    def total(x: Any) -> Any:
        return jnp.sum(jax.vmap(op)(x) ** 2)

    plan = pt.plan(jax.grad(total), MESH, X).tile("x", 0, "a")
    assert jnp.allclose(plan.compile()(X), jax.grad(total)(X))
    assert " vmap_normalised " in str(jax.make_jaxpr(jax.vmap(op))(X))


def test_an_op_with_its_module_in_its_name_is_printed_in_notation():
    library("library_third.says", BODIES["one"])
    op = library("library_fourth.says", BODIES["other"]).normalised
    text = pt.plan(op, pt.Mesh(), X).notation()
    (found,) = pt.parse(text).functions.values()
    assert jnp.allclose(found(X), op(X))


def test_a_module_that_is_run_again_replaces_its_own_op():
    first = library("library_again", BODIES["one"]).normalised
    plan = pt.plan(first, MESH, X)
    second = library("library_again", BODIES["other"]).normalised
    assert second.op.name == f"{first.op.name}.2"
    assert jnp.allclose(plan.compile()(X), jax.nn.softmax(X, -1))
    assert jnp.allclose(pt.plan(second, MESH, X).compile()(X), X - X.max(-1, keepdims=True))


def test_two_functions_of_one_module_may_call_their_ops_alike():
    def turn(x: Any) -> Any:
        return -x

    def rotate(x: Any) -> Any:
        return x

    text = "turned_or_not(x)   out[i..] = @(x[i..])"
    one, other = pt.define(text, turn), pt.define(text, rotate)
    assert (one.op.name, other.op.name) == ("turned_or_not", "rotate.turned_or_not")
    assert (one(X) == -X).all()
    assert (other(X) == X).all()


def test_a_wrong_definition_is_called_by_the_name_that_its_author_wrote():
    def same(x: Any) -> Any:
        return x

    pt.define("shared_name(x)   out[i..] = @(x[i..])", same)

    def wrong(x: Any) -> Any:
        return jax.nn.softmax(x, -1)

    with pytest.raises(pt.Error, match="`shared_name` does not match its definition"):
        pt.define("shared_name(x)   out[i, j] = @(x[i, j])", wrong, example=(X,))


def test_the_caller_owns_the_op_of_another_modules_function():
    op = pt.define("callers_softmax(x)   out[b.., d:] = @(x[b.., d:])", jax.nn.softmax)
    assert "jax" not in sys.modules[type(op).__module__].__name__
    again = pt.define("callers_softmax(x)   out[b.., d:] = @(x[b.., d:])", jax.nn.softmax)
    assert again.op.name == "callers_softmax.2"
