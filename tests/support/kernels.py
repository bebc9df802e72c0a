"""Pallas calls, each with the definition that follows from its grid and BlockSpecs, or why it runs unpartitioned."""

# Pallas annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.gpu import attention as mha

Array = Any


def normal(*shape: int, seed: int = 0) -> Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def call(kernel: Callable[..., None], out: Any, grid: Any = (), **how: Any) -> Callable[..., Any]:
    return pl.pallas_call(kernel, out, grid=grid, interpret=True, **how)


def spec(shape: Any, *at: Any, index: Callable[..., Any] | None = None) -> pl.BlockSpec:
    """Blocks at the grid indices of these numbers; None is the first block."""
    return pl.BlockSpec(shape, index or (lambda *grid: tuple(0 if axis is None else grid[axis] for axis in at)))


def product(x: Any, w: Any, out: Any) -> None:
    out[...] = jnp.tanh(x[...] @ w[...])


def matmul(x: Array, w: Array) -> Array:
    """Blocks of the result; the contracted dim is unpartitioned."""
    m, n, k = x.shape[0], w.shape[1], x.shape[1]
    specs = [spec((4, k), 0, None), spec((k, 8), None, 1)]
    return call(product, f32(m, n), (m // 4, n // 8), in_specs=specs, out_specs=spec((4, 8), 0, 1))(x, w)


def added(x: Any, w: Any, out: Any) -> None:
    @pl.when(pl.program_id(2) == 0)
    def _():
        out[...] = jnp.zeros_like(out)

    out[...] += x[...] @ w[...]


def matmul_k(x: Array, w: Array) -> Array:
    """The contracted dim is the last of the grid, and the result's block is added to."""
    (m, k), n = x.shape, w.shape[1]
    specs = [spec((4, 4), 0, 2), spec((4, 8), 2, 1)]
    return call(added, f32(m, n), (m // 4, n // 8, k // 4), in_specs=specs, out_specs=spec((4, 8), 0, 1))(x, w)


def gathered(x: Any, w: Any, out: Any, total: Any) -> None:
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += x[...] @ w[...]

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        out[...] = jax.nn.relu(total[...])


def matmul_scratch(x: Array, w: Array) -> Array:
    """Likewise, with the sum in scratch."""
    (m, k), n = x.shape, w.shape[1]
    specs = [spec((4, 4), 0, 2), spec((4, 8), 2, 1)]
    how: Any = {"scratch_shapes": [pltpu.VMEM((4, 8), jnp.float32)]}
    grid = (m // 4, n // 8, k // 4)
    return call(gathered, f32(m, n), grid, in_specs=specs, out_specs=spec((4, 8), 0, 1), **how)(x, w)


def doubled(x: Any, out: Any) -> None:
    out[...] = x[...] * 2


def elementwise(x: Array) -> Array:
    m, n = x.shape
    blocks = spec((2, 4), 0, 1)
    return call(doubled, f32(m, n), (m // 2, n // 4), in_specs=[blocks], out_specs=blocks)(x)


def shifted(x: Any, out: Any) -> None:
    out[...] = x[...] * 2 + pl.program_id(0)


def by_place(x: Array) -> Array:
    m, n = x.shape
    return call(shifted, f32(m, n), (m // 2,), in_specs=[spec((2, n), 0, None)], out_specs=spec((2, n), 0, None))(x)


def by_place_inside(x: Array) -> Array:
    """The kernel reads its position in a branch of a loop."""

    def kernel(x: Any, out: Any) -> None:
        def trip(row: Array, count: Array) -> Array:
            @pl.when(x[0, 0] > 0)
            def _() -> None:
                out[row, :] = x[row, :] + pl.program_id(0)

            return count

        out[...] = x[...]
        lax.fori_loop(0, 2, trip, 0)

    rows = spec((2, x.shape[1]), 0, None)
    return call(kernel, f32(*x.shape), (x.shape[0] // 2,), in_specs=[rows], out_specs=rows)(x)


def by_row_place(x: Array) -> Array:
    """The kernel reads its position along one axis only."""
    m, n = x.shape
    blocks = spec((2, 4), 0, 1)
    return call(shifted, f32(m, n), (m // 2, n // 4), in_specs=[blocks], out_specs=blocks)(x)


def summed(x: Any, out: Any) -> None:
    out[...] = jnp.sum(x[...], 1)


def sums(x: Array) -> Array:
    """A block that loses a dim, and one that is squeezed."""
    b, m, n = x.shape
    ins, outs = spec((None, 2, n), 0, 1, None), spec((None, 2), 0, 1)
    return call(summed, f32(b, m), (b, m // 2), in_specs=[ins], out_specs=outs)(x)


def both(x: Any, out: Any, top: Any) -> None:
    out[...] = x[...] * 2
    top[...] = jnp.max(x[...], axis=1)


def two_results(x: Array) -> Any:
    m, n = x.shape
    rows = spec((2, n), 0, None)
    return call(both, (f32(m, n), f32(m)), (m // 2,), in_specs=[rows], out_specs=(rows, spec((2,), 0)))(x)


def looked_up(ids: Any, x: Any, out: Any) -> None:
    out[...] = x[...] * 2


def pages(ids: Array, x: Array) -> Array:
    """Blocks of rows in the order that an operand gives."""
    m, n = x.shape
    scalars: Any = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(m // 2, n // 4),
        in_specs=[pl.BlockSpec((2, 4), lambda i, j, ids: (ids[i], j))],
        out_specs=pl.BlockSpec((2, 4), lambda i, j, ids: (i, j)),
    )
    return pl.pallas_call(looked_up, f32(m, n), grid_spec=scalars, interpret=True)(ids, x)


def kept(x: Any, out: Any, total: Any) -> None:
    @pl.when(pl.program_id(0) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += x[...]
    out[...] = total[...]


def carried(x: Array) -> Array:
    """Scratch that is kept along an axis inside the one whose position the kernel reads."""
    m, n = x.shape
    blocks = spec((2, 4), 0, 1)
    how: Any = {"scratch_shapes": [pltpu.VMEM((2, 4), jnp.float32)]}
    return call(kept, f32(m, n), (m // 2, n // 4), in_specs=[blocks], out_specs=blocks, **how)(x)


def one_block(x: Array) -> Array:
    """All steps add to the one result."""

    def kernel(x: Any, out: Any) -> None:
        out[...] += x[...]

    how: Any = {"in_specs": [spec((2, x.shape[1]), 0, None)], "out_specs": spec((2, x.shape[1]), None, None)}
    return call(kernel, f32(2, x.shape[1]), (x.shape[0] // 2,), **how)(x)


def reversed_rows(x: Array) -> Array:
    m, n = x.shape
    back = spec((2, n), index=lambda i: (m // 2 - 1 - i, 0))
    return call(doubled, f32(m, n), (m // 2,), in_specs=[back], out_specs=spec((2, n), 0, None))(x)


def ragged(x: Array) -> Array:
    m, n = x.shape
    rows = spec((3, n), 0, None)
    return call(doubled, f32(m, n), (-(-m // 3),), in_specs=[rows], out_specs=rows)(x)


def diagonal(x: Array) -> Array:
    m = x.shape[0]
    return call(doubled, f32(m, 2), (m // 2,), in_specs=[spec((2, 2), 0, 0)], out_specs=spec((2, 2), 0, None))(x)


def aliased(x: Array) -> Array:
    m, n = x.shape
    rows = spec((2, n), 0, None)
    return call(doubled, f32(m, n), (m // 2,), in_specs=[rows], out_specs=rows, input_output_aliases={0: 0})(x)


def overwrites(x: Array) -> Array:
    def kernel(x: Any, out: Any) -> None:
        out[...] = x[...] * 2
        x[...] = jnp.zeros_like(x)

    rows = spec((2, x.shape[1]), 0, None)
    return call(kernel, f32(*x.shape), (x.shape[0] // 2,), in_specs=[rows], out_specs=rows)(x)


def prints(x: Array) -> Array:
    def kernel(x: Any, out: Any) -> None:
        jax.debug.callback(lambda _: None, x[0, 0])
        out[...] = x[...] * 2

    rows = spec((2, x.shape[1]), 0, None)
    return call(kernel, f32(*x.shape), (x.shape[0] // 2,), in_specs=[rows], out_specs=rows)(x)


def dynamic(x: Array, steps: Array) -> Array:
    rows = spec((2, x.shape[1]), 0, None)
    return call(doubled, f32(*x.shape), (steps,), in_specs=[rows], out_specs=rows)(x)


def at_once(x: Array) -> Array:
    return call(doubled, f32(*x.shape))(x)


@jax.custom_vjp
def learned(x: Array, w: Array) -> Array:
    return matmul_k(x, w)


learned.defvjp(lambda x, w: (matmul_k(x, w), (x, w)), lambda kept, g: (matmul_k(g, kept[1].T), matmul_k(kept[0].T, g)))


def training(x: Array, w: Array) -> Any:
    return jax.grad(lambda x, w: jnp.sum(jnp.sin(learned(x, w))), (0, 1))(x, w)


def loop(x: Array, w: Array) -> Array:
    def step(c: Array, _: None) -> tuple[Array, Array]:
        c = jnp.tanh(matmul_scratch(c, w))
        return c, elementwise(c)

    return lax.scan(step, x, None, length=3)


def attention(q: Array, k: Array, v: Array) -> Any:
    """JAX's own flash attention, and its gradient: calls over a grid of blocks of queries, batch and heads."""
    sizes = mha.BlockSizes(**{each.name: 8 for each in fields(mha.BlockSizes) if each.name.startswith("block")})

    def flash(q: Array, k: Array, v: Array) -> Array:
        return mha.mha(q, k, v, None, causal=True, block_sizes=sizes, interpret=True)

    out, pull = jax.vjp(flash, q, k, v)
    return out, pull(jnp.sin(out))


@dataclass(frozen=True)
class Kernel:
    """A program with Pallas calls, their definitions from the first result on, and why the others run unpartitioned."""

    name: str
    function: Callable[..., Any]
    args: Sequence[Array]
    said: Sequence[str] = ()
    whole: str = ""

    def __str__(self) -> str:
        return self.name


X, W, SQUARE = normal(16, 8), normal(8, 16, seed=1), normal(16, 16, seed=2)
IDS = jnp.asarray([5, 0, 3, 7, 1, 1, 2, 6], jnp.int32)
PRODUCT = "y0[(i b4), (j b8)] = @(x0[(i b4), d0:], x1[d1:, (j b8)])   size b4 = 4, b8 = 8"
ROWS = "y0[(i b4), d3:] = @(x0[(i b4), d0:], x1[d1:, d2:])   size b4 = 4"
BLOCKS = "y0[(i b2), (j b4)] = @(x0[(i b2), (j b4)])   size b2 = 2, b4 = 4"

KERNELS = [
    Kernel("matmul", matmul, (X, W), [PRODUCT]),
    Kernel("a contracted grid axis", matmul_k, (X, W), [PRODUCT]),
    Kernel("a sum in scratch", matmul_scratch, (X, W), [PRODUCT]),
    Kernel("elementwise", elementwise, (X,), [BLOCKS]),
    Kernel("squeezed blocks", sums, (normal(8, 8, 6),), ["y0[i, (j b2)] = @(x0[i, (j b2), d0:])   size b2 = 2"]),
    Kernel("two results", two_results, (X,), ["y0[(i b2), d1:], y1[(i b2)] = @(x0[(i b2), d0:])   size b2 = 2"]),
    Kernel("columns by place of row", by_row_place, (X,), ["y0[d1:, (j b4)] = @(x0[d0:, (j b4)])   size b4 = 4"]),
    Kernel("rows looked up", pages, (IDS, X), ["y0[d2:, (j b4)] = @(x0[d0:], x1[d1:, (j b4)])   size b4 = 4"]),
    Kernel("gradient", training, (X, W), [PRODUCT, ROWS, PRODUCT]),
    Kernel("loop", loop, (SQUARE, SQUARE), [PRODUCT, BLOCKS]),
    Kernel(
        "mapped",
        jax.vmap(matmul_scratch, (0, None)),
        (normal(8, 16, 8), W),
        ["y0[i, (j b4), (k b8)] = @(x0[i, (j b4), d0:], x1[d1:, (k b8)])   size b4 = 4, b8 = 8"],
    ),
    Kernel("mapped by place", jax.vmap(by_place, 1), (normal(16, 8, 8),), ["y0[i, d2:, d3:] = @(x0[d0:, i, d1:])"]),
    Kernel("mapped, scratch inside", jax.vmap(carried), (normal(8, 16, 8),), ["y0[i, d2:, d3:] = @(x0[i, d0:, d1:])"]),
    Kernel("mapped twice", jax.vmap(jax.vmap(at_once)), (normal(8, 8, 4, 8),), ["y0[i, j, d2:, d3:] = @(x0[i, j, d0:, d1:])"]),
    Kernel("by place", by_place, (X,), whole="along grid axis 0 its kernel asks for `program_id(0)`"),
    Kernel("by place, inside", by_place_inside, (X,), whole="along grid axis 0 its kernel asks for `program_id(0)`"),
    Kernel("scratch inside", carried, (X,), whole="along grid axis 1 scratch may be kept for `program_id(0)`"),
    Kernel("one block", one_block, (X,), whole="along grid axis 0 all steps write into one block of `outputs`"),
    Kernel("reversed", reversed_rows, (X,), whole="along grid axis 0 the blocks of `args[0]` are where it computes"),
    Kernel("ragged", ragged, (X,), whole="along grid axis 0 the blocks of `outputs` do not fill its 16 elements"),
    Kernel("diagonal", diagonal, (SQUARE,), whole="along grid axis 0 the blocks of `args[0]` move along two dims"),
    Kernel("aliased", aliased, (X,), whole="it writes into its operands"),
    Kernel("overwrites", overwrites, (X,), whole="it writes into its operands"),
    Kernel("prints", prints, (X,), whole="its kernel has an effect (`DebugEffect`)"),
    Kernel("dynamic", dynamic, (X, jnp.int32(8)), whole="its grid is known only when it runs"),
    Kernel("at once", at_once, (X,), whole="its kernel runs once, without a grid"),
]
