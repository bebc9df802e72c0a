"""Turns reads and updates at positions that are known at tracing into slices, and updates of slices.

JAX writes `x.at[1:-1].set(y)` as a scatter, and `lax.dynamic_slice(x, (3, 0), ...)` with the starts as operands. A plan does
not know which elements are looked up. Slices are read through windows, so it knows what is where.

    x.at[1:-1].set(y)   scatter %x, [1], %y                     -->   update_slice %x, %y {padding_config = ((1, 1, 0))}
    x.at[::2].add(y)    scatter_add %x, [[0], [2], ...], %y     -->   update_slice %x, (slice %x) + %y
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from jax import Array
from jax.extend.core import JaxprEqn

from ...dialects.definitions.front_ends.gather import CLAMPS, DROPS
from ...dialects.definitions.front_ends.gather_form import GatherForm, general
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Otherwise
from ..jax_private import lax
from ..ops.index_operands import Combine, combiner
from ..ops.params import Foreign, encode, op_name
from ..ops.primitives import name_of
from ..ops.prng_keys import is_key
from ..ops.update_slice import update_slice_p
from .constant_folding import Positions

Shape = tuple[int, ...]
SliceFunction = Callable[..., Array]


class Slices(NamedTuple):
    """The windows of an op as one slice: for each dim of the array the first position, the number of positions, and their step.

    `order` has the dims of the array in the order in which the array of windows has them; dims of extent 1 may be anywhere.
    """

    firsts: tuple[int, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]
    order: tuple[int, ...]

    def taken(self, x: Array) -> Array:
        """Takes the slice of an array."""
        return lax.slice(x, self.firsts, self.ends, self.steps)

    @property
    def ends(self) -> list[int]:
        return [first + (n - 1) * step + 1 for first, n, step in zip(self.firsts, self.counts, self.steps, strict=True)]

    def is_local(self, shape: Shape, reads: bool) -> bool:
        """Whether devices that hold blocks of the array need little of what others hold, and no more than a lookup sends.

        A step that does not divide the extent gives them different windows. A read of a few rows is sent to all devices once.
        """
        dims = list(zip(self.counts, self.steps, shape, strict=True))
        return all(not n % step for _, step, n in dims) and not (reads and any(2 * count * step < n for count, step, n in dims))

    def read(self, x: Array, shape: Shape) -> Array:
        """Reads the array of windows, in this shape."""
        return lax.reshape(lax.transpose(self.taken(x), self.order), shape)

    def write(self, x: Array, windows: Array, combine: Combine | None) -> Array:
        """Writes the windows into the array or, with `combine`, combines them with what is there."""
        part = lax.reshape(windows, [self.counts[dim] for dim in self.order])
        part = lax.transpose(part, tuple(np.argsort(self.order).tolist()))
        part = part if combine is None else combine(self.taken(x), part)
        highs = [extent - end for extent, end in zip(x.shape, self.ends, strict=True)]
        config = tuple(zip(self.firsts, highs, (step - 1 for step in self.steps), strict=True))
        return update_slice_p.bind(x, part, padding_config=config)


def as_slice(eqn: JaxprEqn, positions: Sequence[Positions]) -> SliceFunction | None:
    """A function that does a read or an update as one slice; None if its positions are not those of one slice."""
    name, avals = op_name(name_of(eqn.primitive)), [cast(Any, atom.aval) for atom in eqn.invars]
    definition = definitions[name].with_arity(len(avals), 1)
    if any(map(is_key, avals)) or (name == "scatter" and eqn.params["update_jaxpr"] is not None):
        return None
    at = next((at for at in range(1, len(avals)) if at not in definition.starts), None)
    shape, windows = avals[0].shape, (cast(Any, eqn.outvars[0].aval) if at is None else avals[at]).shape
    form = general(definition, encode(eqn.params, Foreign(), definition), shape, windows)
    if form.numbers.batching or 0 in windows:
        return None
    vectors = positions[0] if "dimension_numbers" in eqn.params else np.stack(positions, -1)
    most = [extent - width for extent, width in zip((shape[dim] for dim in form.numbers.moved), form.widths, strict=True)]
    if form.mode == CLAMPS or (at is None and form.mode != DROPS):
        vectors = np.clip(vectors, 0, most)
    inside = ((vectors >= 0) & (vectors <= most)).all(-1)
    if at is not None and not inside.any():
        return lambda *operands: operands[0]
    slices = _slices(form, vectors.astype(np.int64), shape, windows) if inside.all() else None
    combine = None if isinstance(definition.body, Otherwise) else combiner(name)
    if slices is None or not slices.is_local(shape, at is None or combine is not None):
        return None

    def function(*operands: Array) -> Array:
        return slices.read(operands[0], windows) if at is None else slices.write(operands[0], operands[at], combine)

    return function


def _slices(form: GatherForm, vectors: Positions, shape: Shape, windows: Shape) -> Slices | None:
    """The slice that all windows together are, if each one begins a fixed step after the one before; otherwise None."""
    numbers, rank = form.numbers, len(shape)
    spans = numbers.spans(rank)
    origin = {out: dim for dim, out in spans.items() if out is not None}
    counts, firsts, steps = list(numbers.widths(rank, windows)), [0] * rank, [1] * rank
    for component, dim in enumerate(numbers.moved):
        firsts[dim] = int(vectors[..., component].flat[0])
    line: Positions = np.broadcast_to([firsts[dim] for dim in numbers.moved], vectors.shape)
    for number, (extent, out) in enumerate(zip(vectors.shape[:-1], form.batch, strict=True)):
        if extent == 1:
            continue
        # The vectors of the second windows along this dim, less those of the first.
        by = np.diff(np.moveaxis(vectors, number, 0)[:2], axis=0).reshape(-1, len(numbers.moved))[0]
        dims = [dim for dim, step in zip(numbers.moved, by, strict=True) if step]
        if len(dims) != 1 or by.sum() < 1 or counts[dims[0]] != 1:
            return None
        counts[dims[0]], steps[dims[0]], origin[out] = extent, int(by.sum()), dims[0]
        # Along this dim of the vectors, and the same along those after it.
        along = np.expand_dims(np.arange(extent, dtype=np.int64), tuple(range(1, vectors.ndim - number)))
        line = np.add(line, by * along)
    ordered = [origin[out] for out in sorted(origin) if windows[out] != 1]
    order = (*ordered, *(dim for dim in range(rank) if dim not in ordered))
    return Slices(tuple(firsts), tuple(counts), tuple(steps), order) if np.array_equal(line, vectors) else None
