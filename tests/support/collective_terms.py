"""The meaning of terms of collectives, on NumPy, and random instances of the left sides of their rules.

A value is the array of every device, with its layout; a step runs on all devices in lockstep. An instance binds a rule's
variables from the inside out so that every step of the left side is possible. It ignores the right side and the condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

import numpy as np
from lockstep import SUMS, Value, run, summands
from tiles import Tile, fits, layout

from partita.dialects.mesh import Mesh
from partita.rewrites.redistribute.collective_terms import facts
from partita.rewrites.redistribute.search import Step
from partita.rewrites.rules.compile import Environment
from partita.rewrites.rules.rule import Apply, Rule, Term, Variable

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

    def places(self, axis: str, without: tuple[Tile, ...] = ()) -> Iterator[tuple[int, int]]:
        """The dims and strides at which an axis fits beside the existing tiles."""
        there = tuple(tile for tile in self.tiles if tile not in without)
        for dim, extent in enumerate(self.shape):
            for stride in range(1, extent):
                if self.valid((*there, (axis, dim, stride))):
                    yield dim, stride


def choices(head: str, now: Placed) -> list[tuple[object, ...]]:
    """Every way to apply a step to a value, as the step's arguments."""
    axes = list(now.mesh)
    free = [axis for axis in axes if axis not in now.used()]
    match head:
        case "slice":
            return [(axis, *place) for axis in free for place in now.places(axis)]
        case "all_gather":
            return [*now.tiles]
        case "all_reduce":
            return [*now.pending]
        case "reduce_scatter":
            sums = [(monoid, axis) for monoid, axis in now.pending if monoid in SUMS]
            return [(monoid, axis, *place) for monoid, axis in sums for place in now.places(axis)]
        case "all_to_all":
            here = [(tile, now.places(tile[0])) for tile in now.tiles]
            return [(*tile, *place) for tile, places in here for place in places]
        case "permute":
            pairs = [(a, b) for a, _, _ in now.tiles for b in axes if b not in {tile[0] for tile in now.tiles}]
            return [(a, b) for a, b in pairs if now.mesh[a] == now.mesh[b]]
        case "reorder":
            tiles = [(major, minor) for major in now.tiles for minor in now.tiles if major[1] == minor[1]]
            return [(a, b, d, s) for (a, _, t), (b, d, s) in tiles if t == s * now.mesh[b]]
        case _:
            raise AssertionError(head)


def applied(head: str, args: tuple[Any, ...], now: Placed) -> Placed:
    """The value after a step, on all devices in lockstep."""
    if head in ("permute", "reorder"):
        return _renumbered(head, args, now)
    axis, *place = args[1:] if head in ("all_reduce", "reduce_scatter") else args
    kept = tuple(tile for tile in now.tiles if tile[0] != axis)
    put = () if head in ("all_gather", "all_reduce") else ((axis, *place[-2:]),)
    tiles = cast("tuple[Tile, ...]", (*kept, *put))
    if not now.valid(tiles):
        raise NoLayout(f"{head}{args} cannot be done to {now.tiles}")
    before, after = (layout(now.shape, each, now.mesh) for each in (now.tiles, tiles))
    step = replace(Step.known[head].of(*args), before=before, after=after)
    pending = tuple(each for each in now.pending if each[1] != axis)
    return replace(now, tiles=tiles, pending=pending, value=run(step, now.value, now.mesh))


def _renumbered(head: str, args: tuple[Any, ...], now: Placed) -> Placed:
    """The same parts on other devices: two coordinates exchanged, or the pair of them counted the other way round."""
    a, b, *_ = args
    names = list(now.mesh)
    at_a, at_b = names.index(a), names.index(b)
    value: Value = {}
    for device in now.value:
        source = list(device)
        if head == "permute":
            source[at_a], source[at_b] = device[at_b], device[at_a]
        else:
            source[at_a], source[at_b] = divmod(device[at_b] * now.mesh[a] + device[at_a], now.mesh[b])
        value[device] = now.value[tuple(source)]
    if head == "permute":
        other = {a: b, b: a}
        tiles = tuple((other.get(axis, axis), dim, stride) for axis, dim, stride in now.tiles)
        pending = tuple((monoid, other.get(axis, axis)) for monoid, axis in now.pending)
        return replace(now, tiles=tiles, pending=pending, value=value)
    dim, stride = args[2:]
    kept = tuple(tile for tile in now.tiles if tile[0] not in (a, b))
    return replace(now, tiles=(*kept, (b, dim, stride * now.mesh[a]), (a, dim, stride)), value=value)


def instance(rule: Rule, random: Random) -> tuple[Bindings, Environment] | None:
    """A random placed value, and arguments for which every step of the left side is possible, from the inside out."""
    spine: list[Apply] = []
    term: Term = rule.left
    while isinstance(term, Apply):
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
    return bound, facts(now.mesh)


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
        places = list(now.places(axis))
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
