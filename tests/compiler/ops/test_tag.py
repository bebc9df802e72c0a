"""Tags survive every transformation, and change nothing."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lowered import lowers_from_its_text

import partita as pt
from partita.compiler.trace.trace import Traced
from partita.dialects.lax import LaxOp


def tags(traced: Traced) -> list[str]:
    return [str(op.params["name"]) for op in traced.main.walk() if isinstance(op, LaxOp) and op.name == "lax.tag"]


def square(x: jax.Array) -> jax.Array:
    return jnp.sum(pt.tag(jnp.sin(x), "h") ** 2)


X = jnp.linspace(0.0, 1.0, 4)


@pytest.mark.parametrize(
    "transform, expected",
    [
        (lambda f: f, ["h"]),
        (jax.grad, ["h", "grad(h)"]),
        (lambda f: lambda x: jax.jvp(f, (x,), (x,)), ["h", "tangent(h)"]),
        (lambda f: jax.vmap(lambda x: f(x[None])), ["h"]),
        (jax.jit, ["h"]),
        (lambda f: jax.grad(jax.checkpoint(f)), ["h", "grad(h)"]),
    ],
)
def test_a_tag_names_the_value_and_its_derivatives(
    transform: Callable[[Callable[..., Any]], Callable[..., Any]], expected: list[str]
):
    assert sorted(tags(pt.trace(transform(square), X))) == sorted(expected)


def test_a_tag_changes_no_value():
    def plain(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(x) ** 2)

    for transform in (jax.value_and_grad, jax.jit):
        jax.tree.map(np.testing.assert_array_equal, transform(square)(X), transform(plain)(X))


def test_the_second_derivative_has_a_name_too():
    assert "grad(grad(h))" in tags(pt.trace(jax.grad(lambda x: jax.grad(square)(x).sum()), X))


def test_the_leaves_of_a_tree_are_tagged_by_path():
    traced = pt.trace(lambda x: pt.tag({"a": x, "b": (x,)}, "state"), X)
    assert tags(traced) == ["state/a", "state/b/0"]


def test_keys_can_be_tagged():
    assert tags(pt.trace(lambda k: pt.tag(k, "key"), jax.random.key(0))) == ["key"]


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_tag_needs_a_name(name: Any):
    with pytest.raises(pt.Error, match="`name` takes a non-empty string"):
        pt.tag(X, name)


def summed(rows: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda total, row: (total + row, None), jnp.float32(0), rows)[0]


TAGGED: dict[str, Callable[[jax.Array, jax.Array], Any]] = {
    "an argument": lambda x, w: pt.tag(x, "h"),
    "an argument, twice, beside itself": lambda x, w: (pt.tag(x, "h"), pt.tag(pt.tag(x, "g"), "k"), x),
    "a constant": lambda x, w: pt.tag(jnp.float32(3), "h"),
    "what a collective makes": lambda x, w: pt.tag(x @ w, "logits"),
    "what a loop is given": lambda x, w: summed(pt.tag(x.sum(1), "h")),
    "what a loop returns": lambda x, w: pt.tag(summed(x.sum(1)), "h"),
    "what a branch returns": lambda x, w: pt.tag(jax.lax.cond(x[0, 0] > 1, lambda: pt.tag(x, "i"), lambda: x * 2), "h"),
    "what a while carries": lambda x, w: pt.tag(
        jax.lax.while_loop(lambda c: pt.tag(c, "c").sum() < 99, lambda c: pt.tag(c + pt.tag(x, "d"), "e"), pt.tag(x, "f")), "g"
    ),
}


@pytest.mark.parametrize("tile", [None, ("x", 0), ("x", 1), ("w", 0), ("w", 1)])
@pytest.mark.parametrize("what", TAGGED)
def test_a_tagged_value_goes_wherever_the_value_goes(what: str, tile: tuple[str, int] | None) -> None:
    x = np.linspace(0, 2, 32, dtype=np.float32).reshape(4, 8)
    args = jnp.asarray(x), jnp.asarray(x.T)
    plan = pt.plan(TAGGED[what], pt.Mesh(a=2), *args)
    plan = plan if tile is None else plan.tile(*tile, "a")
    for run in (plan.compile(), plan.lower("collective").run):
        for ours, theirs in zip(jax.tree.leaves(run(*args)), jax.tree.leaves(TAGGED[what](*args)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    lowers_from_its_text(plan)
