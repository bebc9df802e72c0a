"""The errors of `claims`: why a claim cannot be made, and what to do instead."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import isqrt

from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error, Location
from ...dialects.ranges.algebra import Loop, Place
from ...rewrites.decide.device_sets import coordinates
from ...rewrites.decide.table import WHOLE, Claim, Table, next_factor
from ...rewrites.program.program import ValueId
from ..inputs.message_language import Question, question
from .addresses import Within
from .seeds import Seed, SeedOn
from .source_lines import line_of
from .state import State

MOST_VALUES = 4
"""The most values that an error names."""


class Refused(Error):
    """The error for a claim that cannot be made, with the earlier claim that contradicts it, if there is one.

    `among` has all errors of the same tactic, this one first. `advice.advised` tries what else would help.
    """

    def __init__(
        self,
        title: str,
        seed: SeedOn,
        have: Claim | None = None,
        notes: Iterable[str] = (),
        helps: Iterable[str] | Callable[[], Iterable[str]] = (),
        location: Location | None = None,
    ) -> None:
        super().__init__(title, notes=notes, helps=helps, location=location)
        self.seed, self.have = seed, have
        self.among: Sequence[Refused] = (self,)


def claims_elsewhere(plan: State, seeds: Sequence[Seed], text: str) -> Error:
    """The error for a tactic whose claims are all on values other than those to which it is restricted."""
    assert isinstance(plan.source.addresses, Within), "otherwise it may claim all values"
    names, given = plan.source.addresses.names, plan.source.addresses.given
    claimed = dict.fromkeys(names[value] for seed in seeds for value in seed.of or (seed.value,))
    shown = ", ".join(f"`{name}`" for name in list(claimed)[:MOST_VALUES]) + (", ..." if len(claimed) > MOST_VALUES else "")
    helps = [f"name some of what it claims: {shown}", "or apply another tactic there"]
    return Error(f"{text} claims nothing at {given if isinstance(given, str) else [*given]!r}", helps=helps)


def already_claimed(plan: State, seed: SeedOn, have: Claim) -> Error:
    """The error for a claim that an earlier one contradicts: the axis is on another dim, or replicates the value."""
    if have.tactic == len(plan.actions):
        return _twice(seed, have)
    what = "replicated" if seed.dim is None else "tiled" if have.at == WHOLE else f"tiled on dim {seed.dim}"
    where = f"axis `{seed.axis}` is already on its dim {have.at} ({plan.layout_text(seed.value)})"
    if have.at == WHOLE:
        where = f"it is replicated along `{seed.axis}`"
    return Refused(f"`{seed.name}` cannot be {what}: {where}, by {plan.actions[have.tactic].said}", seed, have)


def _twice(seed: Seed, have: Claim) -> Error:
    """The error for a tactic that makes contradictory claims on a value."""
    ways = ["replicated" if at is None or at == WHOLE else f"tiled on dim {at}" for at in (have.at, seed.dim)]
    return Error(
        f"`{seed.name}` cannot be both {ways[0]} and {ways[1]} over `{seed.axis}`",
        notes=["a tactic makes all its claims at once, so none comes before another"],
        helps=[f"match `{seed.name}` by one pattern only"],
    )


def uneven_claim(plan: State, table: Table, seed: SeedOn, dim: int) -> Error:
    shape = plan.source.shape(seed.value)
    source = line_of(plan, seed.value, None) if seed.said else None
    helps = _as_said if seed.said else _batch if seed.is_batch else _instead
    extent = shape[dim]
    on = table.on_dim(seed.value, dim)
    here = " * ".join(f"`{factor.place}` ({factor.size})" for factor in on)
    left = f" ({min(factor.stride for factor in on)} in each part of {here})" if on else ""
    why = f"{'does' if extent == 1 else 'do'} not divide over `{seed.axis}` ({seed.place.amount})"
    if isinstance(seed.place, Loop) and any(factor.has_halo for factor in on):
        why = f"come in windows, which have no parts on a loop such as `{seed.axis}`"
    if seed.padded and extent == 1:
        why = f"cannot be padded: one device of `{seed.axis}` ({seed.place.amount}) would have all of the dim"
    return Refused(
        f"`{seed.name}` cannot be tiled: dim {dim} has {counted(extent, 'element')}{left}, which {why}",
        seed,
        notes=[f"its shape is {list(shape)}"],
        helps=helps(plan, table, seed, dim),
        location=source and source.location(),
    )


def not_in_turn(plan: State, table: Table, seed: SeedOn, dim: int) -> Error:
    """The error for blocks of a length that does not deal the dim to the devices in whole rounds."""
    extent, size, block = plan.source.shape(seed.value)[dim], seed.place.size, seed.block or 1
    here = [f"`{factor}`" for factor in table.on_dim(seed.value, dim)]
    beside = f" beside {', '.join(here)}" if here else ""
    whole, local = table.axes[seed.place].whole, 0 if extent % size else extent // size
    small = [n for n in range(1, isqrt(local) + 1) if local % n == 0]
    near = sorted({*small, *(local // n for n in small)}, key=lambda n: abs(n - block))
    fits = sorted(islice((n for n in near if table.fits_value(seed.value, dim, whole.at(n))), 3))
    helps = [f"take a block of {' or '.join(map(str, fits))}"] if fits else ["tile another dim, or take another axis"]
    return Error(
        f"`{seed.name}` cannot be tiled in blocks of {block}: dim {dim} has {extent} elements, which are no whole number of "
        f"rounds of {size} such blocks{beside}",
        notes=[f"its shape is {list(plan.source.shape(seed.value))}"],
        helps=helps,
    )


def kept_whole(plan: State, axis: Place) -> Error | None:
    """The error for an axis that cannot be split into sub-axes; None if it can."""
    if axis not in plan.source.program.mapped:
        return None
    title = f"`{axis}` cannot be split into sub-axes: a `shard_map` of the program runs on it"
    return Error(title, helps=["use another axis"])


def _instead(plan: State, table: Table, seed: SeedOn, dim: int) -> list[str]:
    """Helps: other dims that the axis divides, and other axes that divide the dim."""
    value, axis = seed.value, seed.place
    shape = plan.source.shape(value)
    fits = [f"dim {d} ({n})" for d, n in enumerate(shape) if n and next_factor(table, value, d, axis) is not None]
    helps = [f"tile {' or '.join(fits)} instead"] if fits else []
    helps += _other_trips(table, value, dim, axis) if isinstance(axis, Loop) else _other_axes(plan, table, value, dim, axis)
    return helps or [f"make it a multiple of {axis.size}, or leave the value replicated"]


def _other_axes(plan: State, table: Table, value: ValueId, dim: int, axis: Place) -> list[str]:
    used = {*table.layout(value).axes, axis}
    others = [each for each in plan.mesh.places if each not in used and each.size > 1]
    axes = [f"`{each}` ({each.amount})" for each in others if next_factor(table, value, dim, each) is not None]
    return [f"use {' or '.join(axes)}"] if axes else []


def _other_trips(table: Table, value: ValueId, dim: int, loop: Loop) -> list[str]:
    """Helps for a loop that does not divide a dim: the nearest numbers of trips that do."""
    on = table.on_dim(value, dim)
    if any(each.has_halo for each in on):
        return []
    rows = min((each.stride for each in on), default=table.program.shape(value)[dim])
    fits = sorted((n for n in range(2, rows + 1) if rows % n == 0), key=lambda n: abs(n - loop.size))[:3]
    return [f"take {' or '.join(f'`{loop.name}:{n}`' for n in sorted(fits))}"] if fits else []


def _as_said(plan: State, table: Table, seed: SeedOn, dim: int) -> list[str]:
    """Helps for a claim of the program itself: only the program can change the dim or the axis."""
    extent, size = plan.source.shape(seed.value)[dim], seed.place.size
    long = extent - extent % size + size
    helps = [f"make the dim {long} long, or take `{seed.axis}` out of the layout that the program gives it"]
    return helps + _other_axes(plan, table, seed.value, dim, seed.place)


def _batch(plan: State, table: Table, seed: SeedOn, dim: int) -> list[str]:
    """Helps for the batch: pad it, or drop its last examples. Another axis is not suggested."""
    del table
    extent, blocks = plan.source.shape(seed.value)[dim], seed.blocks
    over = extent % blocks
    return [f"pad the batch to {extent - over + blocks}" + (f", or drop its last {over}" if over < extent else "")]


def not_widened(name: str, *, is_computed: bool) -> Error:
    """The error for a value that no use would read in larger windows."""
    why = "no op reads it through a window" if is_computed else "it is an argument, or comes out of a loop or branch"
    return Error(
        f"`{name}` cannot be widened: {why}",
        helps=["name a value that the function computes, and that a convolution, a pool or a slice reads"],
    )


def widened_late(plan: State, name: str, value: ValueId, axis: Place, have: Claim) -> Error:
    """The error for widening a value whose op is placed already."""
    return Error(
        f"`{name}` cannot be widened: its dim {have.at} is on `{axis}` already ({plan.layout_text(value)}), "
        f"by {plan.actions[have.tactic].said}",
        helps=["apply `widen` before the tactics that tile it"],
    )


def too_wide(plan: State, table: Table) -> Error | None:
    """The error for widened values whose windows are longer than the range, or go around it; None if all windows fit."""
    if not table.too_wide:
        return None
    (value, axis), (window, goes_around) = next(iter(table.too_wide.items()))
    name = plan.source.addresses.names[value]
    where = line_of(plan, value, None)
    if goes_around:
        return Error(
            f"`{name}` cannot be widened over `{axis}` ({axis.amount}): its uses read both ends of the range, as `jnp.roll` "
            "does, and windows do not go around it",
            location=where and where.location(),
            helps=[
                'wrap the range once, before all steps: jnp.pad(..., mode="wrap"), and read it by slices: these can be widened',
                "or leave it out of `widen`: one step of a roll by 1 is one permute of a row",
            ],
        )
    return Error(
        f"`{name}` cannot be widened over `{axis}` ({axis.amount}): its uses read {window.before} elements before a block of "
        f"{window.stride} and {window.after} after it, which is more than the whole range of {window.span}",
        location=where and where.location(),
        notes=["each value that is widened makes the windows of the values before it wider"],
        helps=["widen fewer values: the others are exchanged", "or tile over fewer devices, which have larger blocks"],
    )


def no_place(plan: State, axes: Sequence[str]) -> Error | None:
    """The error for tactics that place dims on axes along which the plan has device sets; None if these do not."""
    if plan.table.sets is None:
        return None
    taken = plan.mesh.apart
    if (axis := next((each for each in axes if each.partition(".")[0] in taken), None)) is not None:
        title = f"`{axis}` says on which devices ops run, and is no place for dims"
        others = ", ".join(each for each in plan.mesh if each not in taken)
        return Error(title, helps=[f"place dims on the other axes: {others}"])
    if any(":" in axis and "." not in axis for axis in axes):
        return Error("the plan is on several device sets, and a loop runs on one", helps=["leave out tactics that make loops"])
    return None


def not_whole(plan: State, what: str) -> Error | None:
    """The error for what only a plan on its whole mesh has; None if this one is."""
    if plan.table.sets is None:
        return None
    names = " and ".join(map(coordinates, plan.table.sets.every))
    helps = [f"{question(Question.GRAPH)} is a graph of kernels on the sets, which runs by its method `compile`"]
    return Error(f"{what} is of a whole mesh, and the plan is on parts of it: {names}", helps=helps)
