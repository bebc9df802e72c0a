"""Ragged products in terms of the group of each row, so that the groups can be placed like any other index.

JAX gives the sizes of the groups. The group of a row is the number of groups that end before it. A row behind all groups gets
the number of the groups, which is none of them. On a device, JAX's ragged product does the work: the sizes are counted again.
If the groups or padded rows are placed, rows of other devices are in no group here, and are moved behind the others.

    ragged_dot_general %x, %w, sizes [2, 3] of 6 rows   -->   grouped_dot %x, %w, ids [0, 0, 1, 1, 1, 2]
    ids [-1, -1, 0, 0, 0, -1] on the second device      -->   rows 2, 3, 4, 0, 1, 5: ragged_dot_general, sizes [3]
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jax import Array, lax as lax_types
from jax.core import ShapedArray
from jax.extend.core import JaxprEqn, Primitive

from ...dialects.definitions.front_ends.ragged_dot import RaggedNumbers
from ..jax_private import ad, apply_primitive, batching, jax, jnp, lax, lower_fun, mlir

grouped_dot_p: Any = Primitive("grouped_dot")
"""Multiplies each row by the factor of its group."""
grouped_outer_p: Any = Primitive("grouped_outer")
"""Sums the outer products of the rows of each group."""


def ragged_dot_general(eqn: JaxprEqn) -> Callable[..., Array] | None:
    """Rewrites a ragged product in terms of row groups.

    Along a ragged batch dim, it is a plain product, because JAX ignores the groups there.
    """
    params = eqn.params
    said: lax_types.RaggedDotDimensionNumbers = params["ragged_dot_dimension_numbers"]
    how = {name: params[name] for name in ("precision", "preferred_element_type")}
    numbers = _numbers(said)
    (folded, _), (batch, _) = numbers.dot
    if params["group_offset"] is not None:
        return None

    def product(lhs: Array, rhs: Array, sizes: Array) -> Array:
        if numbers.cut in batch:
            return lax.dot_general(lhs, rhs, numbers.dot, **how)
        ends = lax.cumsum(sizes.astype(jnp.int32), axis=sizes.ndim - 1)
        rows = (*sizes.shape[:-1], lhs.shape[numbers.cut], sizes.shape[-1])
        passed = lax.broadcasted_iota(jnp.int32, rows, sizes.ndim - 1) >= jnp.expand_dims(ends, -2)
        ids = jnp.sum(passed, axis=-1, dtype=jnp.int32)
        primitive = grouped_outer_p if numbers.cut in folded else grouped_dot_p
        return primitive.bind(
            lhs, rhs, ids, ragged_dot_dimension_numbers=said, groups=sizes.shape[-1], indices_are_sorted=True, **how
        )

    return product


def _numbers(said: lax_types.RaggedDotDimensionNumbers) -> RaggedNumbers:
    dot: Any = said.dot_dimension_numbers
    return RaggedNumbers(dot, tuple(said.lhs_ragged_dimensions), tuple(said.rhs_group_dimensions))


def _product(
    lhs: Array,
    rhs: Array,
    ids: Array,
    *,
    ragged_dot_dimension_numbers: lax_types.RaggedDotDimensionNumbers,
    groups: int,
    indices_are_sorted: bool,
    **how: object,
) -> Array:
    """Computes the product by JAX's own op."""
    numbers = _numbers(ragged_dot_dimension_numbers)
    (folded, _), (batch, _) = numbers.dot
    multiply = partial(lax.ragged_dot_general, ragged_dot_dimension_numbers=ragged_dot_dimension_numbers, **how)
    among = lax.broadcasted_iota(ids.dtype, (*ids.shape, groups), ids.ndim)
    sizes = jnp.sum(among == jnp.expand_dims(ids, -1), axis=-2, dtype=jnp.int32)
    if indices_are_sorted:
        return multiply(lhs, rhs, sizes)
    rows = (*(numbers.before(lhs.ndim) if ids.ndim > 1 else ()), numbers.cut)
    order = jnp.argsort(jnp.where((ids >= 0) & (ids < groups), ids, groups), axis=-1, stable=True)
    lhs = _taken(lhs, order, rows)
    if numbers.cut in folded:
        return multiply(lhs, _taken(rhs, order, [numbers.partner[dim] for dim in rows]), sizes)
    kept = [*batch, *(dim for dim in range(lhs.ndim) if dim not in folded + batch)]
    return _taken(multiply(lhs, rhs, sizes), jnp.argsort(order, axis=-1), [*map(kept.index, rows)])


def _taken(array: Array, order: Array, dims: Sequence[int]) -> Array:
    """Reorders the rows of an array along the last of these dims. `order` has these dims."""
    shape = [array.shape[dim] if dim in dims else 1 for dim in range(array.ndim)]
    aligned = lax.transpose(order, np.argsort(dims).tolist()).reshape(shape)
    return jnp.take_along_axis(array, aligned, axis=dims[-1], mode="promise_in_bounds")


_by_params: Callable[..., Array] = _product


def _type(*operands: ShapedArray, **params: object) -> ShapedArray:
    found = jax.eval_shape(partial(_by_params, **params), *operands)
    return ShapedArray(found.shape, found.dtype)


def _jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object) -> tuple[Array, Array]:
    *factors, ids = primals
    pushed: list[Array] = [ad.instantiate_zeros(each) for each in tangents[:2]]

    def product(lhs: Array, rhs: Array) -> Array:
        return _by_params(lhs, rhs, ids, **params)

    return jax.jvp(product, factors, pushed)


def _batch(operands: Sequence[Array], dims: Sequence[int | None], **params: object) -> tuple[Array, int]:
    """The rule for `vmap`: the batch becomes the first dim of all operands. JAX maps a ragged product along no other."""
    (size,) = {x.shape[dim] for x, dim in zip(operands, dims, strict=True) if dim is not None}
    fronted = [batching.bdim_at_front(x, dim, size) for x, dim in zip(operands, dims, strict=True)]
    return jax.vmap(partial(_by_params, **params))(*fronted), 0


for primitive in (grouped_dot_p, grouped_outer_p):
    primitive.def_impl(partial(apply_primitive, primitive))
    primitive.def_abstract_eval(_type)
    ad.primitive_jvps[primitive] = _jvp
    batching.primitive_batchers[primitive] = _batch
    mlir.register_lowering(primitive, lower_fun(_product, multiple_results=False))
