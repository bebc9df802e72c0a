"""User-defined ops for the tests of `pt.define`, each with its definition and a call."""

# JAX annotates its functions only in part, and kernels not at all.
# pyright: basic

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.extend.core import Primitive
from jax.interpreters import mlir

import partita as pt

Array = Any


def normal(*shape: int, seed: int = 0) -> Array:
    return jnp.asarray(np.random.default_rng([seed, *shape]).standard_normal(shape), jnp.float32)


def ids(below: int, *shape: int) -> Array:
    return jnp.asarray(np.random.default_rng([below, *shape]).integers(0, below, shape), jnp.int32)


# A custom_vjp whose backward pass is an op too: one of its results is a sum over the rows.


def _normed(x: Array, w: Array) -> Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * w.reshape((1,) * (x.ndim - 1) + w.shape)


@pt.define("norm_of_rows(x, w)   out[b.., d:] = @(x[b.., d:], w[d:])")
@jax.custom_vjp
def norm_of_rows(x: Array, w: Array) -> Array:
    return _normed(x, w)


@pt.define("norm_of_rows_bwd(x, w, g)   dx[b.., d:], sum(b..) dw[d:] = @(x[b.., d:], w[d:], g[b.., d:])")
def norm_of_rows_bwd(x: Array, w: Array, g: Array) -> tuple[Array, Array]:
    return jax.vjp(_normed, x, w)[1](g)


norm_of_rows.defvjp(lambda x, w: (norm_of_rows(x, w), (x, w)), lambda kept, g: norm_of_rows_bwd(*kept, g))

# An attention in one pass over the keys: the keys' sequence is unpartitioned, and one result does not depend on `e`.


@pt.define("flash(q, k, v)   out[b.., s, e], top[b.., s] = @(q[b.., s, d:], k[b.., t:, d:], v[b.., t:, e])")
def flash(q: Array, k: Array, v: Array, *, scale: float = 1.0, blocks: int = 2) -> tuple[Array, Array]:
    def one(carry: Any, part: Any) -> tuple[Any, None]:
        top, total, out = carry
        k, v = part
        scores = scale * jnp.einsum("...sd,...td->...st", q, k)
        higher = jnp.maximum(top, scores.max(-1))
        weights, kept = jnp.exp(scores - higher[..., None]), jnp.exp(top - higher)
        out = out * kept[..., None] + jnp.einsum("...st,...te->...se", weights, v)
        return (higher, total * kept + weights.sum(-1), out), None

    def parts(x: Array) -> Array:
        return jnp.moveaxis(x.reshape(*x.shape[:-2], blocks, -1, x.shape[-1]), -3, 0)

    shape = q.shape[:-1]
    start = jnp.full(shape, -1e30), jnp.zeros(shape), jnp.zeros((*shape, v.shape[-1]))
    (top, total, out), _ = jax.lax.scan(one, start, (parts(k), parts(v)))
    return out / total[..., None], top + jnp.log(total)


# A Pallas kernel with a contracted index, and a derivative of two more calls.


def _matmul_kernel(x: Any, w: Any, out: Any) -> None:
    out[...] = x[...] @ w[...]


@pt.define("pallas_matmul(x, w)   out[i, j] = sum(k) x[i, k] * w[k, j]")
@jax.custom_vjp
def pallas_matmul(x: Array, w: Array) -> Array:
    struct = jax.ShapeDtypeStruct((x.shape[0], w.shape[1]), x.dtype)
    return pl.pallas_call(_matmul_kernel, struct, interpret=True)(x, w)


pallas_matmul.defvjp(
    lambda x, w: (pallas_matmul(x, w), (x, w)),
    lambda kept, g: (pallas_matmul(g, kept[1].T), pallas_matmul(kept[0].T, g)),
)

# A sum by looked-up segments, and the rows that belong to them; the number of segments is a static parameter.


@pt.define(
    """
    sums_by_id(x, ids)   out[v, j..] = sum(i) [v = ids[i]] * x[i, j..]
                          extents num_segments = |v|
    """
)
def sums_by_id(x: Array, ids: Array, num_segments: int) -> Array:
    return jnp.zeros((num_segments, *x.shape[1:]), x.dtype).at[ids].add(x)


@pt.define("rows_of(table, ids)   out[i.., j] = sum(v) [v = ids[i..]] * table[v, j]")
def rows_of(table: Array, ids: Array) -> Array:
    return table[ids]


# The parts of a cross entropy over a vocabulary that is placed: the sum of the exponentials, and the logit of the label.


@pt.define("exp_sum(h, w, top)   out[b] = sum(v) @(h[b, k:], w[k:, v], top[b])")
def exp_sum(h: Array, w: Array, top: Array) -> Array:
    return jnp.exp(h @ w - top[:, None]).sum(-1)


@pt.define("top_logit(h, w)   out[b] = max(v) @(h[b, k:], w[k:, v])")
def top_logit(h: Array, w: Array) -> Array:
    return (h @ w).max(-1)


@pt.define("label_logit(h, w, labels)   out[b] = sum(v) [v = labels[b]] * @(h[b, k:], w[k:, v])")
def label_logit(h: Array, w: Array, labels: Array) -> Array:
    return jnp.einsum("bk,bk->b", h, w.T[labels])


def cross_entropy(h: Array, w: Array, labels: Array) -> Array:
    top = jax.lax.stop_gradient(top_logit(h, w))
    return jnp.mean(top + jnp.log(exp_sum(h, w, top)) - label_logit(h, w, labels))


# Blocks of numbers that share a scale, and so stay together.


@pt.define("quantised_rows(x)   out[i.., (j b)], scale[i.., j] = @(x[i.., (j b)])   size b = 4")
def quantised_rows(x: Array) -> tuple[Array, Array]:
    blocks = x.reshape(*x.shape[:-1], -1, 4)
    scale = jnp.max(jnp.abs(blocks), -1)
    return jnp.round(blocks / scale[..., None] * 127).astype(jnp.int8).reshape(x.shape), scale


# A callback, a variadic op, and a primitive of a third party.


@pt.define("host_sort(x)   out[i.., j:] = @(x[i.., j:])")
def host_sort(x: Array) -> Array:
    return jax.pure_callback(partial(np.sort, axis=-1), jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@pt.define("total(xs*)   out[i..] = @(xs*[i..])")
def total(*xs: Array) -> Array:
    return jnp.tanh(sum(xs))


rotate_p: Any = Primitive("rotate-half")


def _rotate(x: Array, *, by: int) -> Array:
    return jnp.roll(x, by, -1)


rotate_p.def_impl(_rotate)
rotate_p.def_abstract_eval(lambda x, by: x)
mlir.register_lowering(rotate_p, mlir.lower_fun(_rotate, multiple_results=False))
pt.define("rotate_half(x)   out[i.., j:] = @(x[i.., j:])", primitive=rotate_p)


def rotate(x: Array) -> Array:
    return rotate_p.bind(2 * x, by=2)


@dataclass(frozen=True)
class Use:
    """A program with a defined op in it; the tiles of two strategies; whether it has a gradient."""

    name: str
    op: str
    function: Callable[..., Any]
    args: tuple[Array, ...]
    strategies: tuple[dict[str, int], ...]
    differentiable: bool = True

    def __str__(self) -> str:
        return self.name


USES = [
    Use("norm", "norm_of_rows", norm_of_rows, (normal(8, 4, 6), normal(6)), ({"x": 0}, {"x": 1})),
    Use(
        "attention",
        "flash",
        partial(flash, scale=0.5),
        (normal(4, 8, 6), normal(4, 8, 6, seed=1), normal(4, 8, 4)),
        ({"q": 0}, {"q": 1}, {"v": 2}),
    ),
    Use("matmul", "pallas_matmul", pallas_matmul, (normal(8, 16), normal(16, 4)), ({"x": 0}, {"x": 1}, {"w": 1})),
    Use(
        "segments",
        "sums_by_id",
        partial(sums_by_id, num_segments=8),
        (normal(16, 4), ids(8, 16)),
        ({"x": 0}, {"x": 1}, {"result": 0}),
    ),
    Use("rows", "rows_of", rows_of, (normal(16, 4), ids(16, 8)), ({"table": 0}, {"table": 1}, {"ids": 0})),
    Use(
        "loss",
        "exp_sum",
        cross_entropy,
        (normal(8, 6), normal(6, 16), ids(16, 8)),
        ({"h": 0}, {"w": 1}),
    ),
    Use("blocks", "quantised_rows", quantised_rows, (normal(8, 16),), ({"x": 0}, {"x": 1}), differentiable=False),
    Use("sort", "host_sort", host_sort, (normal(8, 4, 6),), ({"x": 0}, {"x": 1}), differentiable=False),
    Use("sum", "total", total, (normal(8, 4), normal(8, 4, seed=1)), ({"xs/0": 0}, {"xs/1": 1})),
    Use("rotation", "rotate_half", rotate, (normal(8, 4, 6),), ({"x": 0}, {"x": 1}), differentiable=False),
]
