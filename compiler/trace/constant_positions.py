"""Reads and updates at positions that are known when the program is traced: they become slices, and updates of slices.

JAX writes `x.at[1:-1].set(y)` as a scatter, and `lax.dynamic_slice(x, (3, 0), ...)` with the starts as operands. A position that
is looked up is unknown to a plan. These ops read their operands through windows instead, so a plan knows what is where.

    x.at[1:-1].set(y)   scatter %x, [1], %y                     -->   update_slice %x, %y {padding_config = ((1, 1, 0))}
    x.at[::2].add(y)    scatter_add %x, [[0], [2], ...], %y     -->   update_slice %x, (slice %x) + %y
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np
from jax import Array
from jax.extend.core import JaxprEqn
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.definitions.gather_form import Form, general
from ...dialects.definitions.gathers import CLAMPS, DROPS
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.tree import Otherwise
from ...dialects.lax import LaxOp
from ...dialects.reference.evaluate import evaluate
from ...dialects.types import ArrayType
from ..jax_private import lax
from ..ops.params import Foreign, encode, op_name
from ..ops.positions import Combine, combiner
from ..ops.primitives import name_of
from ..ops.prng_keys import is_key
from ..ops.update_slice import update_slice_p

EXACT = ("bool", "int", "uint")
MOST = 1 << 20
"""The largest number of elements of an array of positions whose values are computed."""


class Constants:
    """The integers and booleans that a program computes from its literals, by the definitions of its ops."""

    def __init__(self) -> None:
        self.fixed: set[SSAValue] = set()
        """Those that follow from literals. Their values are computed when they are asked for."""
        self.known: dict[SSAValue, np.ndarray] = {}

    def made(self, op: Operation) -> None:
        """Takes note of an op that has been made."""
        if self.fixed.issuperset(op.operands) and not op.regions and op.name.removeprefix("lax.") in definitions:
            types = cast("Sequence[ArrayType]", op.result_types)
            if op.name != "lax.whole" and all(each.dtype.startswith(EXACT) and prod(each.shape) <= MOST for each in types):
                self.fixed.update(op.results)

    def enter(self, arguments: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """Takes note of the values that the arguments of a region have on every trip."""
        for argument, value in zip(arguments, values, strict=True):
            if (known := self.of(value)) is not None:
                self.fixed.add(argument)
                self.known[argument] = known

    def of(self, value: SSAValue) -> np.ndarray | None:
        """The value, if it follows from literals alone."""
        if value not in self.fixed:
            return None
        waiting = [value]
        while waiting:
            op = cast(LaxOp, waiting[-1].owner)
            inputs = () if waiting[-1] in self.known else op.operands
            if before := [each for each in inputs if each not in self.known]:
                waiting += before
            elif waiting.pop() not in self.known:
                self.compute(op)
        return self.known[value]

    def compute(self, op: LaxOp) -> None:
        types = [(each.dtype, each.shape) for each in cast("Sequence[ArrayType]", op.result_types)]
        inputs = [self.known[each] for each in op.operands]
        results = evaluate(op.primitive(), op.params, inputs, types)
        self.known.update(zip(op.results, results, strict=True))

    def erase_unread(self, block: Block) -> list[Operation]:
        """Erases the ops that have only made positions, which no op reads any more. Returns them."""
        erased: list[Operation] = []
        for op in reversed(list(block.ops)):
            if self.known.keys() & set(op.results) and not any(result.uses for result in op.results):
                erased.append(op)
                op.detach()
                op.erase()
        return erased


class Slices(NamedTuple):
    """The windows of an op as one slice of its array: along each dim the first position, the number of them and their step.

    `order` has the dims of the array in the order in which the array of windows has them; dims of extent 1 may be anywhere.
    """

    firsts: tuple[int, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]
    order: tuple[int, ...]

    def taken(self, x: Array) -> Array:
        """The slice."""
        return lax.slice(x, self.firsts, self.ends, self.steps)

    @property
    def ends(self) -> list[int]:
        return [first + (n - 1) * step + 1 for first, n, step in zip(self.firsts, self.counts, self.steps, strict=True)]

    def is_local(self, shape: Sequence[int], reads: bool) -> bool:
        """Whether devices that hold blocks of the array need little of what others hold, and not more than a lookup sends.

        A step that does not divide the extent gives them different windows. A read of a few rows is sent to all devices once.
        """
        dims = list(zip(self.counts, self.steps, shape, strict=True))
        return all(not n % step for _, step, n in dims) and not (reads and any(2 * count * step < n for count, step, n in dims))

    def read(self, x: Array, shape: Sequence[int]) -> Array:
        """The array of windows, of this shape."""
        return lax.reshape(lax.transpose(self.taken(x), self.order), shape)

    def write(self, x: Array, windows: Array, combine: Combine | None) -> Array:
        """The array with the windows in their place, or combined with what is there."""
        part = lax.reshape(windows, [self.counts[dim] for dim in self.order])
        part = lax.transpose(part, tuple(np.argsort(self.order).tolist()))
        part = part if combine is None else combine(self.taken(x), part)
        highs = [extent - end for extent, end in zip(x.shape, self.ends, strict=True)]
        config = tuple(zip(self.firsts, highs, (step - 1 for step in self.steps), strict=True))
        return update_slice_p.bind(x, part, padding_config=config)


def sliced(eqn: JaxprEqn, ids: Sequence[np.ndarray]) -> Callable[..., Array] | None:
    """The function that does the same as a read or an update at these positions; None if they are not those of one slice."""
    name = op_name(name_of(eqn.primitive))
    avals = [cast(Any, atom.aval) for atom in eqn.invars]
    definition = definitions[name].with_arity(len(avals), 1)
    if any(map(is_key, avals)) or (name == "scatter" and eqn.params["update_jaxpr"] is not None):
        return None
    reads = definition.looks_up(definition.guards[0])
    at = next((at for at in range(1, len(avals)) if at not in definition.starts), None)
    shape, windows = avals[0].shape, (cast(Any, eqn.outvars[0].aval) if at is None else avals[at]).shape
    form = general(definition, encode(eqn.params, Foreign(), definition), shape, windows)
    if form.numbers.batching or 0 in windows:
        return None
    vectors = ids[0] if "dimension_numbers" in eqn.params else np.stack(ids, -1)
    most = [shape[dim] - width for dim, width in zip(form.numbers.moved, form.widths, strict=True)]
    clamps = form.mode == CLAMPS or (reads and form.mode != DROPS)
    vectors = (np.clip(vectors, 0, most) if clamps else vectors).astype(np.int64)
    inside = ((vectors >= 0) & (vectors <= most)).all(-1)
    if at is not None and not inside.any():
        return lambda x, *_: x
    slices = _slices(form, vectors, shape, windows) if inside.all() else None
    combine = None if isinstance(definition.body, Otherwise) else combiner(name)
    if slices is None or not slices.is_local(shape, at is None or combine is not None):
        return None
    if at is None:
        return lambda x, *_: slices.read(x, windows)
    return lambda *xs: slices.write(xs[0], xs[at], combine)


def _slices(form: Form, vectors: np.ndarray, shape: Sequence[int], windows: Sequence[int]) -> Slices | None:
    """The one slice that all windows together are, if each one begins a step after the one before."""
    spans = form.numbers.spans(len(shape))
    counts = [1 if (dim := spans[each]) is None else windows[dim] for each in range(len(shape))]
    firsts, steps, origin = [0] * len(shape), [1] * len(shape), {dim: each for each, dim in spans.items() if dim is not None}
    line = np.zeros(vectors.shape, np.int64)
    for component, dim in enumerate(form.numbers.moved):
        firsts[dim] = int(vectors[..., component].flat[0])
        line[..., component] = firsts[dim]
    for number, (extent, out) in enumerate(zip(vectors.shape[:-1], form.batch, strict=True)):
        if extent == 1:
            continue
        along = np.moveaxis(vectors, number, 0)
        by = along[1].reshape(-1, vectors.shape[-1])[0] - along[0].reshape(-1, vectors.shape[-1])[0]
        moved = np.flatnonzero(by)
        dim = form.numbers.moved[moved[0]] if len(moved) == 1 else None
        if dim is None or by[moved[0]] < 0 or counts[dim] != 1:
            return None
        counts[dim], steps[dim], origin[out] = extent, int(by[moved[0]]), dim
        line += by * np.arange(extent).reshape(-1, *(1,) * (vectors.ndim - 1 - number))
    if not np.array_equal(line, vectors):
        return None
    ordered = [origin[out] for out in sorted(origin) if windows[out] != 1]
    order = (*ordered, *(dim for dim in range(len(shape)) if dim not in ordered))
    return Slices(tuple(firsts), tuple(counts), tuple(steps), order)
