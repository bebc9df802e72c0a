"""The meaning of terms of collectives, on NumPy, and random instances of the left sides of their rules.

A value is the array of every device, with its layout; a step runs on all devices in lockstep. An instance binds a rule's
variables from the inside out so that every step of the left side is possible. It ignores the right side and the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod
from random import Random
from typing import Any, cast

import numpy as np
from lockstep import Value, run, summands
from tiles import Tile, fits, layout

from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import Place as MeshPlace
from partita.rewrites.redistribute.collective_terms import FACTS
from partita.rewrites.redistribute.search import Step
from partita.rewrites.rules.compile import Environment
from partita.rewrites.rules.rule import Rule, RuleApply, Term, Variable

Bindings = dict[str, Any]
MESHES = [Mesh(a=2, b=2, c=2), Mesh(a=2, b=2, c=2), Mesh(a=2, b=3, c=2), Mesh(a=4, b=2, c=2), Mesh(a=3, b=2, c=3)]
SHAPES = [(24,), (24,), (16, 4), (6, 12)]


class NoLayout(Exception):
    """Placements that do not fit together: a collective law applies only to terms whose values all have valid layouts."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A value on every device of a mesh, and its layout."""

    mesh: Mesh
    shape: tuple[int, ...]
    tiles: tuple[Tile, ...]
    pending: tuple[tuple[str, str], ...]
    value: Value

    def same(self, other: Placed) -> bool:
        layouts = (sorted(self.tiles), sorted(self.pending)) == (sorted(other.tiles), sorted(other.pending))
        return layouts and all(np.array_equal(local, other.value[device]) for device, local in self.value.items())

    def used(self) -> set[str]:
        return {tile[0] for tile in self.tiles} | {axis for _, axis in self.pending}

    def valid(self, tiles: tuple[Tile, ...]) -> bool:
        on = [[(s, self.mesh[a]) for a, dim, s in tiles if dim == d] for d in range(len(self.shape))]
        return all(fits(extent, factors) for extent, factors in zip(self.shape, on, strict=True))

    def beside(self, axes: tuple[str, ...]) -> list[tuple[int, int]]:
        """The dims and strides at which neighbours fit beside the existing tiles."""
        every = ((dim, stride) for dim, extent in enumerate(self.shape) for stride in range(1, extent))
        return [place for place in every if self.valid((*self.tiles, *self.run(axes, *place)))]

    def run(self, axes: tuple[str, ...], dim: int, stride: int) -> tuple[Tile, ...]:
        """The tiles of neighbours, major to minor, the last one at this stride."""
        return tuple((axis, dim, stride * self.size(axes[n + 1 :])) for n, axis in enumerate(axes))

    def size(self, axes: tuple[str, ...]) -> int:
        return prod(self.mesh[axis] for axis in axes)

    def places(self, axes: tuple[str, ...]) -> tuple[MeshPlace, ...]:
        return tuple(map(self.mesh.place, axes))


def groups(axes: Iterable[str]) -> list[tuple[str, ...]]:
    """Axes alone, and pairs of them."""
    every = list(axes)
    return [*((axis,) for axis in every), *permutations(every, 2)]


def choices(head: str, now: Placed) -> list[tuple[object, ...]]:
    """Every way to apply a step of a law's left side to a value, as the step's arguments."""
    free = [axis for axis in now.mesh if axis not in now.used()]
    match head:
        case "slice":
            return [(now.places(axes), *place) for axes in groups(free) for place in now.beside(axes)]
        case "all_gather":
            pairs = ((axes, tile[1:]) for axes in groups(tile[0] for tile in now.tiles) for tile in now.tiles)
            return [(now.places(axes), *place) for axes, place in pairs if {*now.run(axes, *place)} <= {*now.tiles}]
        case "all_reduce":
            (monoid,) = {monoid for monoid, _ in now.pending} or {""}
            return [(monoid, now.places(axes)) for axes in groups(axis for _, axis in now.pending)]
        case _:
            raise AssertionError(head)


def applied(head: str, args: tuple[Any, ...], now: Placed) -> Placed:
    """The value after a step, on all devices in lockstep."""
    if head == "permute":
        return _renumbered(_names(args[0]), _names(args[1]), now)
    over, *place = args[1:] if head in ("all_reduce", "reduce_scatter") else args
    axes = _names(over)
    kept = tuple(tile for tile in now.tiles if tile[0] not in axes)
    put = () if head in ("all_gather", "all_reduce") else now.run(axes, *place[-2:])
    tiles = (*kept, *put)
    if not now.valid(tiles):
        raise NoLayout(f"{head}{args} cannot be done to {now.tiles}")
    before, after = (layout(now.shape, each, now.mesh) for each in (now.tiles, tiles))
    step = replace(Step.known[head].of(*args), before=before, after=after)
    pending = tuple(each for each in now.pending if each[1] not in axes)
    return replace(now, tiles=tiles, pending=pending, value=run(step, now.value, now.mesh))


def _names(axes: Sequence[MeshPlace]) -> tuple[str, ...]:
    return tuple(map(str, axes))


def _renumbered(a: tuple[str, ...], b: tuple[str, ...], now: Placed) -> Placed:
    """The same parts on other devices: a device has the part of the one that counts along `a` as it counts along `b`."""
    value: Value = {}
    for device in now.value:
        source = list(device)
        _count(source, [axis for axis in a if axis not in b], _number(device, [axis for axis in b if axis not in a], now), now)
        _count(source, a, _number(device, b, now), now)
        value[device] = now.value[tuple(source)]
    placed = [(axis, *next(tile[1:] for tile in now.tiles if tile[0] == axis)) for axis in a]
    kept = tuple(tile for tile in now.tiles if tile[0] not in a)
    assert not {axis for axis in b if axis not in a} & now.used()
    return replace(now, tiles=(*kept, *now.run(b, *placed[-1][1:])), value=value)


def _number(device: tuple[int, ...], axes: Sequence[str], now: Placed) -> int:
    """A device's number along axes, major to minor."""
    number = 0
    for axis in axes:
        number = number * now.mesh[axis] + device[list(now.mesh).index(axis)]
    return number


def _count(device: list[int], axes: Sequence[str], number: int, now: Placed) -> None:
    """Gives a device that number along axes."""
    for axis in reversed(axes):
        number, device[list(now.mesh).index(axis)] = divmod(number, now.mesh[axis])


def instance(rule: Rule, random: Random) -> tuple[Bindings, Environment] | None:
    """A random placed value, and arguments for which every step of the left side is possible, from the inside out."""
    spine: list[RuleApply] = []
    term: Term = rule.left
    while isinstance(term, RuleApply):
        spine.append(term)
        term = term.args[-1]
    now = random_placed(random)
    bound: Bindings = {str(term): now}
    for op in reversed(spine):
        options = [args for args in choices(op.head, now) if _agrees(op.args[:-1], args, bound)]
        if not options:
            return None
        args = random.choice(options)
        bound |= {pattern.name: value for pattern, value in zip(op.args, args, strict=False) if isinstance(pattern, Variable)}
        now = applied(op.head, args, now)
    return bound, FACTS


def _agrees(patterns: tuple[Term, ...], args: tuple[object, ...], bound: Bindings) -> bool:
    known = {**bound}
    for pattern, value in zip(patterns, args, strict=True):
        if known.setdefault(str(pattern), value if isinstance(pattern, Variable) else str(pattern)) != value:
            return False
    return True


def random_placed(random: Random) -> Placed:
    mesh, shape = random.choice(MESHES), random.choice(SHAPES)
    monoid = random.choice(["add", "pick", "max", "min"])
    now = Placed(mesh, shape, (), (), {})
    pending: list[tuple[str, str]] = []
    for axis in random.sample(list(mesh), len(mesh)):
        places = now.beside((axis,))
        match random.choice(["tile", "tile", "pending", "free"]):
            case "tile" if places:
                now = replace(now, tiles=(*now.tiles, (axis, *random.choice(places))))
            case "pending":
                pending.append((monoid, axis))
            case _:
                pass
    seed = random.randrange(1 << 16)
    whole = np.random.default_rng(seed).integers(0, 1000, shape)
    return replace(now, pending=tuple(pending), value=summands(whole, now.tiles, pending, mesh, seed))


def evaluate(term: object) -> Placed:
    if isinstance(term, Placed):
        return term
    head, *args, inner = cast("tuple[str, *tuple[object, ...]]", term)
    return applied(head, tuple(args), evaluate(inner))
