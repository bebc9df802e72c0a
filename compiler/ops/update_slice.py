"""`update_slice`: an array with a part of it replaced by another array, at positions that are known when the program is traced.

    update_slice(f32[512] %x, f32[510] %part, padding_config=((1, 1, 0),))     -->     x.at[1:-1].set(part)

JAX writes an update at positions that are operands, wherever these come from. The positions of this op are parameters, in the
form of a pad's: `low` elements before the part, `high` after it, and `interior` between two elements of it.
"""

from collections.abc import Sequence
from typing import Any

from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive

from ..jax_private import batching, jnp, lax, mlir

Padding = tuple[tuple[int, int, int], ...]

update_slice_p: Any = Primitive("update_slice")


def update_slice(x: Array, part: Array, *, padding_config: Padding) -> Array:
    """`x` with the elements at the part's positions replaced. A part without gaps is written in place, if XLA can."""
    if x.shape == part.shape:
        return part
    if not any(interior for _, _, interior in padding_config):
        return lax.dynamic_update_slice(x, part, [low for low, _, _ in padding_config])
    ends = (extent - high for extent, (_, high, _) in zip(x.shape, padding_config, strict=True))
    where = (slice(low, end, interior + 1) for (low, _, interior), end in zip(padding_config, ends, strict=True))
    return jnp.asarray(x).at[tuple(where)].set(part)


def _same_type(x: ShapedArray, part: ShapedArray, *, padding_config: Padding) -> ShapedArray:
    del part, padding_config
    return x


def _batch(args: Sequence[Array], dims: Sequence[int | None], *, padding_config: Padding) -> tuple[Array, int]:
    size = next(x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None)
    x, part = (batching.bdim_at_front(each, dim, size) for each, dim in zip(args, dims, strict=True))
    return update_slice_p.bind(x, part, padding_config=((0, 0, 0), *padding_config)), 0


update_slice_p.def_impl(update_slice)
update_slice_p.def_abstract_eval(_same_type)
batching.primitive_batchers[update_slice_p] = _batch
mlir.register_lowering(update_slice_p, mlir.lower_fun(update_slice, multiple_results=False))
