"""An op run block by block on one device, as its definition says that it may be: what a checker compares with the whole.

k of `out[i, j] = sum(k) x[i, k] * w[k, j]` over 2 blocks:   f(x[:, :8], w[:8]) + f(x[:, 8:], w[8:])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from jax import Array

from ...dialects.definitions.tilings import Index, Scan
from ...dialects.monoids import MONOIDS
from ...rewrites.program.program import Position, Signature
from ..jax_private import jnp
from ..ops.monoids import SPELLED

Run: TypeAlias = Callable[[Sequence[Array], Sequence[tuple[str, tuple[int, ...]]]], Sequence[Array]]
"""(operands, dtype and shape of each result) -> results."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """One index of an op over so many blocks."""

    signature: Signature
    outs: tuple[tuple[str, tuple[int, ...]], ...]
    index: int
    count: int

    @property
    def info(self) -> Index:
        return self.signature.instance.indices[self.index]

    @property
    def size(self) -> int:
        """How many of the index's values are in one block."""
        return self.info.extent // self.count

    def run(self, function: Run, operands: Sequence[Array]) -> list[list[Array]]:
        """For each result what the blocks make of it: one array, put together, or one of each if all should be equal."""
        made = [self.block(function, operands, number) for number in range(self.count)]
        return [self.together(position, parts) for position, parts in enumerate(zip(*made, strict=True))]

    def local(self, shape: tuple[int, ...], at: Position | None) -> tuple[int, ...]:
        """The shape of a block's part of an array."""
        return tuple(n // self.count if at is not None and dim == at[0] else n for dim, n in enumerate(shape))

    def block(self, function: Run, operands: Sequence[Array], number: int) -> list[Array]:
        """The results of one block, from its parts of the operands."""
        parts = [self.part(x, at.get(self.index), number) for x, at in zip(operands, self.signature.operand_at, strict=True)]
        if number:
            parts = [jnp.zeros_like(x) if at in self.info.once else x for at, x in enumerate(parts)]
        results_mask: list[tuple[Array, int]] = []
        for ids, _, _ in self.info.lookups:
            inside, parts[ids] = self.shifted(parts[ids], number)
            # A read leaves zero where the row is another block's; a write adds nothing there.
            if self.info.monoid is not None:
                results_mask.append((inside, ids))
            for array in (each for each in self.info.masked if each >= 0):
                parts[array] = self.masked(parts[array], inside, ids, self.signature.operand_at[array])
        outs = [
            (dtype, self.local(shape, at.get(self.index)))
            for (dtype, shape), at in zip(self.outs, self.signature.result_at, strict=True)
        ]
        results = list(function(parts, outs))
        for inside, ids in results_mask:
            results[0] = self.masked(results[0], inside, ids, self.signature.result_at[0])
        return [x + number * self.size if self.info.value else x for x in results]

    def part(self, x: Array, at: Position | None, number: int) -> Array:
        if at is None:
            return x
        dim, minor, extent = at
        shape = x.shape
        whole = x.reshape(*shape[:dim], -1, extent, minor, *shape[dim + 1 :])
        start = number * self.size
        cut = whole[(slice(None),) * (dim + 1) + (slice(start, start + self.size),)]
        return cut.reshape(*shape[:dim], shape[dim] // self.count, *shape[dim + 1 :])

    def shifted(self, ids: Array, number: int) -> tuple[Array, Array]:
        """Which ids are this block's, and all of them counted from its first; another's are 0."""
        here = ids - number * self.size
        inside = (here >= 0) & (here < self.size)
        return inside, jnp.where(inside, here, 0)

    def masked(self, x: Array, inside: Array, ids: int, at: dict[int, Position]) -> Array:
        """Zero where the mask, which lies along the dims of the ids, is false."""
        own = [row[0][0] if row else None for row in self.signature.operand_dims[ids]]
        shape = [1] * x.ndim
        order: list[int] = []
        for dim, index in enumerate(own):
            if index is not None:
                shape[at[index][0]] = inside.shape[dim]
                order.append(at[index][0])
        narrow = inside.reshape([n for n, index in zip(inside.shape, own, strict=True) if index is not None])
        spread = narrow.transpose(sorted(range(len(order)), key=lambda k: order[k])).reshape(shape)
        return jnp.where(spread, x, jnp.zeros((), x.dtype))

    def together(self, position: int, parts: Sequence[Array]) -> list[Array]:
        at = self.signature.result_at[position].get(self.index)
        if at is not None:
            dim, minor, _ = at
            parts = parts if self.info.scan is None else _scanned(parts, dim, self.info.scan)
            shape = parts[0].shape
            rows = [x.reshape(*shape[:dim], -1, self.size, minor, *shape[dim + 1 :]) for x in parts]
            whole = jnp.concatenate(rows, axis=dim + 1)
            return [whole.reshape(*shape[:dim], shape[dim] * self.count, *shape[dim + 1 :])]
        if self.info.monoid is not None:
            return [reduce(_combine(self.info.monoid), parts)]
        return list(parts)

    def says(self, position: int) -> str:
        """How a result comes from the blocks."""
        if self.signature.result_at[position].get(self.index) is not None:
            return "side by side" if self.info.scan is None else "side by side, each with what stands before it"
        return "one like the other" if self.info.monoid is None else f"combined by `{MONOIDS[self.info.monoid].fold}`"


def _combine(monoid: str) -> Callable[[Array, Array], Array]:
    return SPELLED[MONOIDS[monoid].fold].combine


def _scanned(parts: Sequence[Array], dim: int, how: Scan) -> list[Array]:
    """The blocks of a scan from scans of the blocks: each takes over the last element of what stands before it."""
    made: list[Array] = []
    for part in reversed(parts) if how.backwards else parts:
        if made:
            before = jnp.take(made[-1], jnp.array([0 if how.backwards else -1]), dim)
            part = _combine(how.monoid)(jnp.broadcast_to(before, part.shape), part)
        made.append(part)
    return made[::-1] if how.backwards else made
