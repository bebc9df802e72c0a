"""What frees memory is computed before a loop: which values a barrier ties to the start of which loop."""

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from everywhere import agrees
from jax import lax

import partita as pt
from partita.rewrites.lower import before_loops

Step = Callable[[jax.Array, jax.Array, jax.Array], object]


def backward(x: jax.Array, w: jax.Array, layers: jax.Array) -> jax.Array:
    """A loop that goes through the layers."""
    return lax.scan(lambda x, layer: (jnp.tanh(x @ layer), None), x @ w.T, layers)[0]


def head(x: jax.Array, w: jax.Array, layers: jax.Array) -> object:
    """The head's gradient is a product of two large arrays, and is read behind the loop."""
    wide = jnp.sin(x) @ w
    return jnp.sin(wide).T @ wide + 1, backward(wide, w, layers)


def read_in_the_loop(x: jax.Array, w: jax.Array, layers: jax.Array) -> object:
    wide = jnp.sin(x) @ w
    small = jnp.sin(wide).T @ wide
    return backward(wide, w, layers + small[None, :256, :256]), small + 1


def kept_anyway(x: jax.Array, w: jax.Array, layers: jax.Array) -> object:
    """The loop frees nothing of what is read: one is an argument, and the other a result."""
    wide = jnp.sin(x) @ w
    return x.T @ wide + 1, backward(wide, w, layers), wide


def grows(x: jax.Array, w: jax.Array, layers: jax.Array) -> object:
    """What is made is larger than what is read."""
    column = jnp.sin(x).sum(1)
    return jnp.outer(column, column) + 1, backward(jnp.sin(x) @ w, w, layers)


def chained(x: jax.Array, w: jax.Array, layers: jax.Array) -> object:
    """Two products in a chain: the last one is tied, and the first one with it."""
    wide = jnp.sin(x) @ w
    return (jnp.sin(wide).T @ wide)[:4] @ w.T[:, :4] + 1, backward(wide, w, layers)


def until(x: jax.Array, w: jax.Array, layers: jax.Array) -> object:
    """A loop of unknown trips, and one behind it, which the value passes too."""
    wide = jnp.sin(x) @ w
    small = jnp.sin(wide).T @ wide
    first = lax.while_loop(lambda x: x.sum() < 0, lambda x: jnp.sin(x) + 1, wide @ w.T)
    return small + 1, backward(first @ w, w, layers)


def without_a_loop(x: jax.Array, w: jax.Array, layers: jax.Array) -> object:
    wide = jnp.sin(x) @ w
    return jnp.sin(wide).T @ wide + 1, wide @ w.T


def tied(plan: pt.Plan) -> list[tuple[str, int]]:
    """The type of each tied value, and the number of the loop."""
    text = str(plan.spmd())
    found: list[tuple[str, int]] = []
    for barrier in re.finditer(r"spmd\.barrier .* -> (.*)\n", text):
        loop = len(re.findall(r"= lax\.(?:scan|while) ", text[: barrier.start()]))
        found += [(tied, loop) for tied in re.findall(r"\w+\[.*?\]", barrier[1])[:-1]]
    return found


def placed(function: Step, width: int = 256, rows: int = 65536) -> pt.Plan:
    shapes = (rows, width), (width, width), (3, width, width)
    x, w, layers = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)
    return pt.plan(function, pt.Mesh(data=8), x, w, layers).tile("x", 0, "data")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (head, [("f32[256, 256]", 0)]),
        (read_in_the_loop, []),
        (kept_anyway, []),
        (grows, []),
        (chained, [("f32[4, 4]", 0)]),
        (until, [("f32[256, 256]", 0)]),
        (without_a_loop, []),
    ],
)
def test_what_is_tied_to_a_loop(function: Step, expected: list[tuple[str, int]]) -> None:
    assert tied(placed(function)) == expected


def test_what_saves_little_is_not_tied() -> None:
    assert tied(placed(head, rows=8)) == []


@pytest.mark.parametrize("function", [head, chained, until])
def test_a_step_with_ties_gives_the_same(function: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(before_loops, "MUCH", 0)
    draw = np.random.default_rng(0).normal
    args = [(draw(size=shape) / 8).astype(np.float32) for shape in [(64, 8), (8, 8), (3, 8, 8)]]
    plan = pt.plan(function, pt.Mesh(data=8), *args).tile("x", 0, "data")
    assert "spmd.barrier" in str(plan.spmd())
    agrees(plan, function, *args, derived=function is not until)
