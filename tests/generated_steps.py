"""The steps of generated programs: what each does with JAX, and how hypothesis draws one that fits the shapes at hand."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

Array: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its name in `FUNCTIONS`, the numbers of the values that it takes, and its other arguments."""

    name: str
    operands: tuple[int, ...]
    params: tuple[Any, ...] = ()

    def run(self, ids: Array, values: Sequence[Array]) -> Array:
        arrays = [values[operand] for operand in self.operands]
        if self.name in LOOKUPS:
            return LOOKUPS[self.name](ids, *arrays, *self.params)
        return FUNCTIONS[self.name](*arrays, *self.params)


def dot(x: Array, y: Array, contract: tuple[int, int], batch: tuple[int, int] | None) -> Array:
    batches = ((), ()) if batch is None else ((batch[0],), (batch[1],))
    scale = np.float32(x.shape[contract[0]] ** -0.5)
    return lax.dot_general(x, y, (((contract[0],), (contract[1],)), batches)) * scale


def bias(x: Array, y: Array, dim: int) -> Array:
    return x + lax.broadcast_in_dim(y, x.shape, (dim,))


def split(x: Array, dim: int, factor: int) -> Array:
    return x.reshape(*x.shape[:dim], factor, x.shape[dim] // factor, *x.shape[dim + 1 :])


def merge(x: Array, dim: int) -> Array:
    return x.reshape(*x.shape[:dim], x.shape[dim] * x.shape[dim + 1], *x.shape[dim + 2 :])


def counted(x: Array, dim: int) -> Array:
    return x + 0.125 * lax.broadcasted_iota(jnp.float32, x.shape, dim)


def causal(x: Array, dim: int, other: int) -> Array:
    one, two = (lax.broadcasted_iota(jnp.int32, x.shape, each) for each in (dim, other))
    return jnp.where(one >= two, x, 0.5)


def padded(x: Array, dim: int) -> Array:
    return jnp.pad(x, [(1, 2) if each == dim else (0, 0) for each in range(x.ndim)], constant_values=0.5)


def middle(x: Array, dim: int) -> Array:
    return lax.slice_in_dim(x, 1, x.shape[dim] - 1, axis=dim)


def halves(x: Array, dim: int) -> Array:
    first, second = jnp.split(x, 2, dim)
    return first * second


def loop(x: Array, w: Array) -> Array:
    """A carry, a constant and stacked results; the first dim is the trip."""

    def trip(carry: Array, each: Array) -> tuple[Array, Array]:
        carry = jnp.tanh(carry * 0.5 + each) + w
        return carry, carry * each

    carry, ys = lax.scan(trip, jnp.zeros_like(x[0]), x)
    return ys + carry[None]


def layers(x: Array, w: Array) -> Array:
    """Layers in a loop: `w` is a stack of square matrices, made small so that no difference grows from layer to layer."""
    return lax.scan(lambda x, w: (jnp.tanh(x @ (0.1 * w)) + x, None), x, w)[0]


def dropout(x: Array) -> Array:
    return x * jax.random.uniform(jax.random.key(3), x.shape)


UNARY: dict[str, Callable[..., Array]] = {
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "neg": jnp.negative,
    "logistic": jax.nn.sigmoid,
    "affine": lambda x: x * 0.5 + 1.0,
    "positive": lambda x: (x > 0).astype(jnp.float32) * x,
    "barrier": lax.optimization_barrier,
    "remat": lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.tanh(x)))(x),
    "dropout": dropout,
}
BINARY: dict[str, Callable[..., Array]] = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "max": jnp.maximum,
    "choose": lambda x, y: jnp.where(x < 0.1, x, y),
}
ALONG: dict[str, Callable[..., Array]] = {
    "sum": lambda x, dim: jnp.sum(x, dim) * np.float32(x.shape[dim] ** -0.5),
    "largest": jnp.max,
    "softmax": jax.nn.softmax,
    "cumsum": lambda x, dim: jnp.cumsum(x, dim) * 0.25,
    "sort": jnp.sort,
    "rev": jnp.flip,
    "argmax": lambda x, dim: lax.argmax(x, dim, jnp.int32).astype(jnp.float32) * 0.25,
    "counted": counted,
    "padded": padded,
    "spread": lambda x, dim: jnp.broadcast_to(jnp.expand_dims(x, dim), (*x.shape[:dim], 4, *x.shape[dim:])),
}
LOOKUPS: dict[str, Callable[..., Array]] = {
    "take": lambda ids, x, dim, mode: jnp.take(x, ids, dim, mode=mode, fill_value=0.25),
    "put": lambda ids, x, mode: x.at[ids].add(0.5 * jnp.take(x, ids, 0, mode="clip"), mode=mode),
    "window": lambda ids, x, dim: lax.dynamic_slice_in_dim(x, ids[0], x.shape[dim] // 2, dim),
    "update": lambda ids, x, dim: lax.dynamic_update_slice_in_dim(
        x, 0.5 * lax.slice_in_dim(x, 0, x.shape[dim] // 2, axis=dim), ids[0], dim
    ),
}
FUNCTIONS: dict[str, Callable[..., Array]] = {
    **UNARY,
    **BINARY,
    **ALONG,
    "dot": dot,
    "bias": bias,
    "split": split,
    "merge": merge,
    "transpose": jnp.transpose,
    "causal": causal,
    "middle": middle,
    "halves": halves,
    "concat": lambda x, y, dim: jnp.concatenate((x, y), dim),
    "loop": loop,
    "layers": layers,
}


def steps(shapes: Sequence[Shape]) -> st.SearchStrategy[Step]:
    """A step on values of these shapes: first which family, then which of those that fit."""
    options = [
        (unary, 2),
        (binary, 3),
        (along, 4),
        (dots, 5),
        (biases, 1),
        (reshapes, 2),
        (pairs, 1),
        (lookups, 2),
        (loops, 1),
    ]
    found = [(each, weight) for family, weight in options if (each := family(shapes))]
    return st.sampled_from([each for each, weight in found for _ in range(weight)]).flatmap(st.sampled_from)


# Later values first: a program is a chain rather than a bush, and hypothesis shrinks towards the first.
def _numbered(shapes: Sequence[Shape]) -> list[tuple[int, Shape]]:
    return list(enumerate(shapes))[::-1]


def unary(shapes: Sequence[Shape]) -> list[Step]:
    return [Step(name, (n,)) for n, _ in _numbered(shapes) for name in UNARY]


def binary(shapes: Sequence[Shape]) -> list[Step]:
    alike = [(n, m) for n, x in _numbered(shapes) for m, y in _numbered(shapes) if x == y and n != m]
    return [Step(name, both) for both in alike for name in BINARY]


def along(shapes: Sequence[Shape]) -> list[Step]:
    dims = [(n, dim) for n, shape in _numbered(shapes) for dim in range(len(shape))]
    found = [Step(name, (n,), (dim,)) for n, dim in dims for name in ALONG]
    found += [Step("middle", (n,), (dim,)) for n, dim in dims if shapes[n][dim] > 2]
    return found + [Step("halves", (n,), (dim,)) for n, dim in dims if shapes[n][dim] % 2 == 0]


def dots(shapes: Sequence[Shape]) -> list[Step]:
    found: list[Step] = []
    for n, x in _numbered(shapes):
        for m, y in _numbered(shapes):
            equal = [(i, j) for i, a in enumerate(x) for j, b in enumerate(y) if a == b]
            found += [Step("dot", (n, m), (one, None)) for one in equal]
            found += [
                Step("dot", (n, m), (one, two)) for one in equal for two in equal if one[0] != two[0] and one[1] != two[1]
            ]
    return found


def biases(shapes: Sequence[Shape]) -> list[Step]:
    vectors = [(n, shape[0]) for n, shape in _numbered(shapes) if len(shape) == 1]
    matrices = [(n, shape) for n, shape in _numbered(shapes) if len(shape) > 1]
    fits = [(n, v, dim) for n, shape in matrices for v, size in vectors for dim, each in enumerate(shape) if each == size]
    return [Step("bias", (n, v), (dim,)) for n, v, dim in fits]


def reshapes(shapes: Sequence[Shape]) -> list[Step]:
    found: list[Step] = []
    for n, shape in _numbered(shapes):
        if len(shape) > 1:
            found += [Step("transpose", (n,), (tuple(np.roll(range(len(shape)), k).tolist()),)) for k in range(1, len(shape))]
        found += [Step("merge", (n,), (dim,)) for dim in range(len(shape) - 1)]
        found += [Step("split", (n,), (dim, k)) for dim, size in enumerate(shape) for k in (2, 4, 3) if size % k == 0]
    return found


def pairs(shapes: Sequence[Shape]) -> list[Step]:
    ranks = [(n, len(shape)) for n, shape in _numbered(shapes)]
    found = [Step("causal", (n,), (i, j)) for n, rank in ranks for i in range(rank) for j in range(rank) if i != j]
    return found + [Step("concat", (n, n), (dim,)) for n, rank in ranks for dim in range(rank)]


def lookups(shapes: Sequence[Shape]) -> list[Step]:
    found: list[Step] = []
    for n, shape in _numbered(shapes):
        for dim, size in enumerate(shape):
            found += [Step("take", (n,), (dim, mode)) for mode in ("clip", "fill")]
            found += [Step(name, (n,), (dim,)) for name in ("window", "update") if size > 1]
        found += [Step("put", (n,), (mode,)) for mode in ("clip", "drop") if shape]
    return found


def loops(shapes: Sequence[Shape]) -> list[Step]:
    found: list[Step] = []
    for n, x in _numbered(shapes):
        for m, w in _numbered(shapes):
            if len(x) > 1 and w == x[1:]:
                found.append(Step("loop", (n, m)))
            if len(x) > 0 and len(w) == 3 and w[1] == w[2] == x[-1]:
                found.append(Step("layers", (n, m)))
    return found
