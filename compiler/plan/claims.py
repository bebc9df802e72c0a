"""Actions: the claims that a tactic seeds, all checked before one of them is made, then propagated.

A tactic changes a plan or fails with a reason; it never half-applies, because it works on a copy of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...dialects.errors import Error
from ...rewrites.decide.propagate import propagate as carry
from ...rewrites.decide.table import WHOLE, Claim, Table, natural
from ...rewrites.program.program import Node
from ..inputs.checks import axis_of

if TYPE_CHECKING:
    from ..api.plan import Plan


@dataclass(frozen=True, slots=True)
class Action:
    """One line of a plan's trace, with the claims that it made and how far they were carried."""

    text: str
    kind: str
    seeds: tuple[Seed, ...] = ()
    propagate: bool = True
    held: bool = False


@dataclass(frozen=True, slots=True)
class Seed:
    """A claim to be made: this value's dim on this axis; dim None keeps it whole; value -1 only propagates the axis."""

    value: int
    dim: int | None
    axis: str
    name: str
    multiple: int = 0
    """Of a dim of examples, which may be padded: what their number must be a multiple of."""


def place_seeds(plan: Plan, seeds: Sequence[Seed], number: int, propagate: bool, held: bool) -> Table:
    """The plan's table with these claims, and what follows from them."""
    table = plan.table.copy()
    for axis in dict.fromkeys(axis_of(seed.axis) for seed in seeds):
        if plan.mesh[axis] == 1:
            continue
        claims = table.touch(axis)
        changed: list[int] = []
        for seed in seeds:
            if seed.axis != axis:
                continue
            if seed.value < 0:
                changed += [value for value in range(len(claims.values)) if table.claim(value, axis) is not None]
                continue
            claim = _claim(plan, table, seed, number, held)
            if claim is not None:
                claims.values[seed.value] = claim
            # Also where it says what already holds: an earlier action may have left that where it stood.
            changed.append(seed.value)
        if propagate:
            carry(table, axis, changed, number, held)
    return table


def place_own(table: Table, claims: Mapping[str, Sequence[tuple[Node, int]]]) -> Table:
    """The table with the claims of ops that have mesh axes of their own, by a first action, and what follows from them."""
    made = table.copy()
    for axis, nodes in claims.items():
        touched = made.touch(axis)
        for node, index in nodes:
            touched.nodes[node.number] = Claim(index, 1, 0)
        carry(made, axis, [value for node, _ in nodes for value in (*node.operands, *node.results)], 0)
    return made


def _claim(plan: Plan, table: Table, seed: Seed, number: int, held: bool) -> Claim | None:
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
        return Claim(seed.dim, _stride(plan, table, seed), number, held)
    if have.at != seed.dim:
        raise _taken(plan, seed, have)
    return None


def _stride(plan: Plan, table: Table, seed: Seed) -> int:
    assert seed.dim is not None
    shape = plan.source.program.shape(seed.value)
    if 0 in shape:
        title = f"`{seed.name}` cannot be tiled: its dim {shape.index(0)} has no elements"
        raise Error(title, notes=[f"its shape is {list(shape)}"], helps=["leave it whole"])
    stride = natural(table, seed.value, seed.dim, seed.axis)
    if stride is None:
        raise _uneven(plan, table, seed)
    return stride


def _taken(plan: Plan, seed: Seed, have: Claim) -> Error:
    """The axis is on another dim of the value, or the value is kept whole along it."""
    if have.tactic == len(plan.actions):
        return _twice(seed, have)
    by = plan.actions[have.tactic].text
    if have.at == WHOLE:
        title = f"`{seed.name}` cannot be tiled: it is kept whole along `{seed.axis}` by {by}"
        return Error(title, helps=["tile it before it is replicated, or on another axis"])
    what = "kept whole" if seed.dim is None else f"tiled on dim {seed.dim}"
    where = f"axis `{seed.axis}` is already on its dim {have.at} ({plan.layout_text(seed.value)})"
    helps = ["use another axis, or apply this tactic before that one"]
    return Error(f"`{seed.name}` cannot be {what}: {where}, by {by}", helps=helps)


def _twice(seed: Seed, have: Claim) -> Error:
    """One tactic that wants a value in two ways."""
    ways = ["whole" if at is None or at == WHOLE else f"tiled on dim {at}" for at in (have.at, seed.dim)]
    return Error(
        f"`{seed.name}` cannot be both {ways[0]} and {ways[1]} over `{seed.axis}`",
        notes=["a tactic makes all its claims at once, so none goes before another"],
        helps=["let one pattern alone take it, or split this into two tactics: the first of them decides"],
    )


def _uneven(plan: Plan, table: Table, seed: Seed) -> Error:
    shape = plan.source.shape(seed.value)
    assert seed.dim is not None
    size, extent = plan.mesh[seed.axis], shape[seed.dim]
    here = [(axis, plan.mesh[axis]) for axis, dim, _ in table.tiles(seed.value) if dim == seed.dim]
    left = f" (each part of {' * '.join(f'`{a}` ({n})' for a, n in here)})" if here else ""
    return Error(
        f"`{seed.name}` cannot be tiled: dim {seed.dim} has {extent} elements{left}, which do not divide over "
        f"`{seed.axis}` ({size} devices)",
        notes=[f"its shape is {list(shape)}"],
        helps=_padded(plan, table, seed) if seed.multiple else _instead(plan, table, seed.value, seed.dim, seed.axis),
    )


def _instead(plan: Plan, table: Table, value: int, dim: int, axis: str) -> list[str]:
    """Other dims that the axis divides, and other axes that divide the dim."""
    shape = plan.source.shape(value)
    fits = [f"dim {d} ({n})" for d, n in enumerate(shape) if n and natural(table, value, d, axis) is not None]
    helps = [f"tile {' or '.join(fits)} instead"] if fits else []
    helps += _other_axes(plan, table, value, dim, axis)
    return helps or [f"make it a multiple of {plan.mesh[axis]}, or leave the value whole"]


def _other_axes(plan: Plan, table: Table, value: int, dim: int, axis: str) -> list[str]:
    used = {each for each, _, _ in table.tiles(value)} | {axis}
    others = [each for each, size in plan.mesh.axes.items() if each not in used and size > 1]
    axes = [f"`{each}` ({plan.mesh[each]} devices)" for each in others if natural(table, value, dim, each) is not None]
    return [f"use {' or '.join(axes)}"] if axes else []


def _padded(plan: Plan, table: Table, seed: Seed) -> list[str]:
    """More examples, or fewer."""
    assert seed.dim is not None
    extent = plan.source.shape(seed.value)[seed.dim]
    over = extent % seed.multiple
    pad = f"pad the batch to {extent - over + seed.multiple}" + (f", or drop its last {over}" if over < extent else "")
    return [pad, *_other_axes(plan, table, seed.value, seed.dim, seed.axis)]
