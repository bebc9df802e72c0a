"""Turns reads and updates at each row's own number into those of a batch.

JAX writes `x[jnp.arange(16), n]` as a gather by pairs: a row's number, which follows from literals, and what is looked up in
that row. A plan would look both up, in all rows. Along a batch dim each row is read where it is.

    x[arange(16), n]   gather %x, (concatenate %rows, %n)   -->   gather %x, %n {operand_batching_dims = (0,)}
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from jax import Array
from jax.extend.core import JaxprEqn
from xdsl.ir import SSAValue

from ...dialects.definitions.front_ends.gather import FIELDS, DimensionNumbers
from ...dialects.lax import LaxOp
from ...dialects.types import ArrayType
from ..jax_private import lax
from ..ops.prng_keys import is_key
from .constant_folding import Constants, Positions


class Counted(NamedTuple):
    """A component of index vectors that is each vector's number along a dim of the vectors."""

    component: int
    dim: int


def counted(constants: Constants, vectors: SSAValue) -> Iterator[Counted]:
    """The components of these vectors that count them. Vectors are often concatenated of their components."""
    op, last, component = vectors.owner, len(cast(ArrayType, vectors.type).shape) - 1, 0
    if last < 1:
        return
    is_made = isinstance(op, LaxOp) and op.primitive() == "concatenate" and op.params["dimension"] == last
    for part in op.operands if is_made and isinstance(op, LaxOp) else [vectors]:
        width, known = cast(ArrayType, part.type).shape[last], constants.of(part)
        columns = [] if known is None else [known[..., at] for at in range(width)]
        yield from (Counted(component + at, dim) for at, column in enumerate(columns) for dim in _dims(column))
        component += width


def _dims(known: Positions) -> Iterator[int]:
    """The dims along which an array counts from 0, and is the same along all others."""
    for dim, extent in enumerate(known.shape):
        count: Positions = np.arange(extent, dtype=np.int64).reshape(-1, *[1] * (known.ndim - dim - 1))
        if extent > 1 and np.equal(known, count).all():
            yield dim


def as_batch(eqn: JaxprEqn, found: Sequence[Counted]) -> Callable[..., Array] | None:
    """A function that reads or updates an array along batch dims, in place of components that count; None if there are none."""
    said = eqn.params.get("dimension_numbers")
    if type(said).__name__ not in FIELDS or any(is_key(atom.aval) for atom in eqn.invars):
        return None
    fields = FIELDS[type(said).__name__]
    old = DimensionNumbers(*(getattr(said, each) for each in fields))
    shape, vectors = (cast(Any, atom.aval).shape for atom in eqn.invars[:2])
    pairs = dict(zip(old.batching, old.shared, strict=True))
    for component, dim in found:
        of = old.moved[component]
        if of in old.collapsed and shape[of] == vectors[dim] and of not in pairs and dim not in pairs.values():
            pairs[of] = dim
    kept = [component for component, of in enumerate(old.moved) if of not in pairs]
    if len(kept) in (0, len(old.moved)):
        return None
    batching = tuple(sorted(pairs))
    new = DimensionNumbers(
        old.window,
        tuple(dim for dim in old.collapsed if dim not in pairs),
        tuple(old.moved[component] for component in kept),
        batching,
        tuple(pairs[dim] for dim in batching),
    )
    params = {**eqn.params, "dimension_numbers": cast(Any, said)._replace(**dict(zip(fields, new, strict=True)))}

    def function(x: Array, vectors: Array, *rest: Array) -> Array:
        last = vectors.ndim - 1
        columns = [lax.slice_in_dim(vectors, component, component + 1, axis=last) for component in kept]
        left = lax.concatenate(columns, last) if len(columns) > 1 else columns[0]
        return cast(Any, eqn.primitive).bind(x, left, *rest, **params | {"indices_are_sorted": False})

    return function
