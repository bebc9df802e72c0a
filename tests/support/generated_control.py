"""Control flow in generated programs: calls, loops and choices around a body, which is a chain of small steps.

A body is data, names and dims, and keeps the shape of its value; it closes over `w`.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

Array: TypeAlias = Any
Body: TypeAlias = tuple[tuple[str, int], ...]
"""(name in `LINKS`, dim) of each link of a chain."""


def mixed(x: Array, w: Array, dim: int) -> Array:
    """A matrix product with a part of `w` of the dim's size, or an elementwise product."""
    if w.ndim == 2 and w.shape[0] == w.shape[1] == x.shape[dim]:
        return jnp.moveaxis(jnp.moveaxis(x, dim, -1) @ (w * (0.5 / w.shape[0])).astype(x.dtype), -1, dim)
    return x * w if w.shape == x.shape else x + jnp.mean(jnp.tanh(w)).astype(x.dtype)


# Every link keeps the shape of the value, and no link makes differences grow.
LINKS: Mapping[str, Callable[[Array, Array, int], Array]] = {
    "tanh": lambda x, w, dim: jnp.tanh(x),
    "sin": lambda x, w, dim: jnp.sin(x),
    "mixed": lambda x, w, dim: jnp.tanh(mixed(x, w, dim)),
    "plus": lambda x, w, dim: 0.5 * x + jnp.mean(w).astype(x.dtype),
    "softmax": lambda x, w, dim: jax.nn.softmax(x, dim),
    "mean": lambda x, w, dim: x - jnp.mean(x, dim, keepdims=True),
    "cumsum": lambda x, w, dim: jnp.cumsum(x, dim) / x.shape[dim],
    "rev": lambda x, w, dim: jnp.flip(x, dim),
    "counted": lambda x, w, dim: 0.5 * x + (0.125 * lax.broadcasted_iota(jnp.float32, x.shape, dim)).astype(x.dtype),
    "residual": lambda x, w, dim: 0.5 * x + 0.25 * jnp.cos(x),
}


def chain(x: Array, w: Array, body: Body) -> Array:
    for name, dim in body:
        x = LINKS[name](x, w, dim)
    return x


def called(x: Array, w: Array, body: Body) -> Array:
    return jax.jit(lambda x, w: chain(x, w, body))(x, w)


def remat(x: Array, w: Array, body: Body) -> Array:
    return jax.checkpoint(lambda x, w: chain(x, w, body))(x, w)


def custom_vjp(x: Array, w: Array, body: Body) -> Array:
    """A rule that is not the derivative, so that a program that used another rule would be noticed."""

    @jax.custom_vjp
    def function(x: Array, w: Array) -> Array:
        return chain(x, w, body)

    def forward(x: Array, w: Array) -> tuple[Array, tuple[Array, Array]]:
        return chain(x, w, body), (x, w)

    def backward(kept: tuple[Array, Array], ct: Array) -> tuple[Array, Array]:
        return 0.5 * ct * jnp.tanh(kept[0]), jnp.zeros_like(kept[1])

    function.defvjp(forward, backward)
    return function(x, w)


def custom_jvp(x: Array, w: Array, body: Body) -> Array:
    @jax.custom_jvp
    def function(x: Array, w: Array) -> Array:
        return chain(x, w, body)

    def tangent(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
        return function(*primals), 0.25 * tangents[0]

    function.defjvp(tangent)
    return function(x, w)


def mapped(x: Array, w: Array, body: Body) -> Array:
    """The chain on each row by itself."""
    return jax.vmap(lambda row: chain(row, w, tuple((name, max(dim - 1, 0)) for name, dim in body)))(x)


def loop(x: Array, w: Array, body: Body, reverse: bool) -> Array:
    """A carry, a constant and stacked results; the first dim is the trip."""
    inner = tuple((name, max(dim - 1, 0)) for name, dim in body)

    def trip(carry: Array, each: Array) -> tuple[Array, Array]:
        carry = jnp.tanh(chain(carry * 0.5 + each, w, inner))
        return carry, carry * each

    carry, ys = lax.scan(trip, jnp.zeros_like(x[0]), x, reverse=reverse)
    return ys + carry[None]


def repeated(x: Array, w: Array, body: Body, trips: int) -> Array:
    return lax.fori_loop(0, trips, lambda _, x: chain(x, w, body), x)


def layers(x: Array, w: Array) -> Array:
    """Layers in a loop: `w` is a stack of square matrices, so small that no difference grows from layer to layer."""
    return lax.scan(lambda x, w: (jnp.tanh(x @ (0.1 * w)) + x, None), x, w)[0]


def while_loop(x: Array, w: Array, ids: Array, body: Body) -> Array:
    """The trip count is the first of the ids, at most three."""

    def more(carry: tuple[Array, Array]) -> Array:
        return carry[0] < jnp.clip(ids[0], 0, 3)

    def trip(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        return carry[0] + 1, chain(carry[1], w, body)

    return lax.while_loop(more, trip, (jnp.int32(0), x))[1]


def cond(x: Array, w: Array, ids: Array, body: Body, other: Body) -> Array:
    return lax.cond(ids[0] > 2, lambda x, w: chain(x, w, body), lambda x, w: chain(x, w, other), x, w)


def switch(x: Array, w: Array, ids: Array, body: Body, other: Body) -> Array:
    branches = [lambda x, w: chain(x, w, body), lambda x, w: chain(x, w, other), lambda x, w: x]
    return lax.switch(ids[0], branches, x, w)


CALLS: Mapping[str, Callable[..., Array]] = {
    "called": called,
    "remat": remat,
    "custom_vjp": custom_vjp,
    "custom_jvp": custom_jvp,
}
ROWS: Mapping[str, Callable[..., Array]] = {"mapped": mapped}
CHOICES: Mapping[str, Callable[..., Array]] = {"cond": cond, "switch": switch}
CONTROL: Mapping[str, Callable[..., Array]] = {
    **CALLS,
    **ROWS,
    **CHOICES,
    "loop": loop,
    "repeated": repeated,
    "layers": layers,
    "while": while_loop,
}
