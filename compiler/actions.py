"""Actions: the claims that a tactic seeds, all checked before one of them is made, then propagated.

A tactic changes a plan or fails with a reason; it never half-applies, because it works on a copy of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..dialects.errors import Error
from ..rewrites.placement import WHOLE, Claim, Table, natural
from ..rewrites.propagate import propagate as carry

if TYPE_CHECKING:
    from .plan import Plan


@dataclass(frozen=True, slots=True)
class Action:
    """One line of a plan's trace."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Seed:
    """A claim to be made: this value's dim on this axis; dim None keeps it whole; value -1 only propagates the axis."""

    value: int
    dim: int | None
    axis: str
    name: str


def place_seeds(plan: Plan, seeds: Sequence[Seed], number: int, propagate: bool) -> Table:
    """The plan's table with these claims, and what follows from them."""
    table = plan.table.copy()
    for axis in dict.fromkeys(seed.axis for seed in seeds):
        if plan.mesh[axis] == 1:
            continue
        claims = table.touch(axis)
        changed: list[int] = []
        for seed in seeds:
            if seed.axis != axis:
                continue
            if seed.value < 0:
                changed += [value for value in range(len(claims.values)) if table.claim(value, axis) is not None]
            elif (claim := _claim(plan, table, seed, number)) is not None:
                claims.values[seed.value] = claim
                changed.append(seed.value)
        if propagate:
            carry(table, axis, changed, number)
    return table


def _claim(plan: Plan, table: Table, seed: Seed, number: int) -> Claim | None:
    """The claim of a seed; None where it says what already holds."""
    have = table.claim(seed.value, seed.axis)
    own = table.axes[seed.axis].values[seed.value]
    if seed.dim is None:
        if own is not None and own.at == WHOLE:
            return None
        if own is not None:
            raise _taken(plan, seed, own)
        return Claim(WHOLE, 0, number)
    if have is None:
        return Claim(seed.dim, _stride(plan, table, seed), number)
    if have.at != seed.dim:
        raise _taken(plan, seed, have)
    return None


def _stride(plan: Plan, table: Table, seed: Seed) -> int:
    assert seed.dim is not None
    stride = natural(table, seed.value, seed.dim, seed.axis)
    if stride is None:
        raise _uneven(plan, table, seed)
    return stride


def _taken(plan: Plan, seed: Seed, have: Claim) -> Error:
    text = plan.layout_text(seed.value)
    by = plan.actions[have.tactic].text if have.tactic < len(plan.actions) else "this tactic"
    if have.at == WHOLE:
        title = f"`{seed.name}` cannot be tiled: it is kept whole along `{seed.axis}` by {by}"
        return Error(title, helps=["tile it before it is replicated, or on another axis"])
    what = "kept whole" if seed.dim is None else f"tiled on dim {seed.dim}"
    title = f"`{seed.name}` cannot be {what}: axis `{seed.axis}` is already on its dim {have.at} ({text}), by {by}"
    return Error(title, helps=["use another axis, or apply this tactic before that one"])


def _uneven(plan: Plan, table: Table, seed: Seed) -> Error:
    shape = plan.source.program.shape(seed.value)
    assert seed.dim is not None
    size, extent = plan.mesh[seed.axis], shape[seed.dim]
    here = [(axis, plan.mesh[axis]) for axis, dim, _ in table.tiles(seed.value) if dim == seed.dim]
    left = f" (each part of {' * '.join(f'`{a}` ({n})' for a, n in here)})" if here else ""
    used = {axis for axis, _, _ in table.tiles(seed.value)} | {seed.axis}
    others = [(axis, n) for axis, n in plan.mesh.axes.items() if axis not in used and n > 1]
    fits = [f"dim {d} ({n})" for d, n in enumerate(shape) if n % size == 0 and n]
    axes = [f"`{axis}` ({n} devices)" for axis, n in others if extent % n == 0]
    helps = [f"tile {' or '.join(fits)} instead"] if fits else []
    helps += [f"use {' or '.join(axes)}"] if axes else []
    return Error(
        f"`{seed.name}` cannot be tiled: dim {seed.dim} has {extent} elements{left}, which do not divide over "
        f"`{seed.axis}` ({size} devices)",
        notes=[f"its shape is {list(shape)}"],
        helps=helps,
    )
