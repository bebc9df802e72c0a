"""Ends of a path among many axes: axes that only come are sliced or scattered first, and axes that only leave gathered last.

    [a*2, b*2, 4] to [4, c*2, b*2]   -->   gather a last: [a*2, b*2, 4] to [a*2, c*2, b*2], then on to [4, c*2, b*2]

So all steps in between move the smallest parts, and axes that only come or only leave take no part in the search.
"""

from __future__ import annotations

from ...dialects.ground.monoids import MONOIDS
from ...dialects.layouts import Layout
from ...dialects.ranges.algebra import Place
from ...dialects.ranges.factor import Factor, fit
from .kinds.all_gather import AllGather
from .search_space import Run, homeward, neighbours
from .steps import Path, Step


def changed(layout: Layout, dim: int, factors: list[Factor]) -> Layout:
    """Returns the layout with exactly these factors on a dim."""
    rest = [each for each in layout.factors if each[0] != dim]
    return Layout.of(layout.global_shape, [*rest, *((dim, factor) for factor in factors)])


def with_all(few: Layout, many: Layout, *, apart: bool) -> Layout:
    """Adds to `few` those factors of `many` that fit and whose axes `few` does not use.

    Without `apart`, only on dims on which `many` has all factors that `few` has, and the rest of its factors are all new.
    """
    named, shape, found = few.named, few.global_shape, [*few.factors]
    for dim in range(few.rank):
        less, more = few.at(dim), many.at(dim)
        new = [factor for factor in more if factor.axis not in named]
        if apart or (all(factor in more for factor in less) and len(less) + len(new) == len(more)):
            for factor in new:
                beside = [each for on, each in found if on == dim]
                found += [(dim, factor)] if fit(shape[dim], [*beside, factor]) else []
    return few if len(found) == len(few.factors) else Layout.of(shape, found, few.pending)


def places(layout: Layout) -> dict[tuple[int, int, int], Place]:
    """The axis at each place: a dim, a stride, and the size of the axis."""
    return {(dim, each.stride, each.size): each.axis for dim, each in layout.factors}


def with_rest(few: Layout, many: Layout) -> Layout | None:
    """Adds the axes that only `many` places, each where `many` has an axis of its size and `few` has none.

    None unless the axes of both layouts then lie at the same places.
    """
    here, every = places(few), places(many)
    if not here.keys() <= every.keys() or not set(few.axes) <= set(many.axes):
        return None
    taken = homeward({axis: here.get(place) for place, axis in every.items()}, ())
    return Layout.of(few.global_shape, [(dim, Factor(taken[each.axis], each.stride)) for dim, each in many.factors])


def with_sums(few: Layout, many: Layout) -> Layout:
    """Scatters pending sums of `few`: their axes are placed where `many` has them, as far as they fit."""
    kinds = {each.monoid for each in few.pending}
    if len(kinds) != 1 or not MONOIDS[kinds.pop()].linear:
        return few
    placed = with_all(few.with_pending(()), many, apart=True)
    return placed.with_pending(tuple(each for each in few.pending if each.axis not in placed.axes))


def steps_along(before: Layout, after: Layout, itemsize: int, kind: type[Step], *monoid: str) -> Path:
    """The steps of one kind from one layout to another: one for each run of neighbouring axes that only one of them places."""
    few, many = sorted((before, after), key=lambda layout: len(layout.factors))
    steps, now = list[Step](), before.with_pending(())
    for dim in reversed(range(many.rank)):
        more = [factor for factor in many.at(dim) if factor not in few.at(dim)]
        for run in neighbours([Run((each.axis,), dim, each.stride, each.span) for each in more], longest=True):
            on = now.at(dim)
            then = changed(now, dim, [each for each in many.at(dim) if (each in on) != (each.axis in run.axes)])
            steps.append(kind.of(*monoid, *run[:3]).placed(now, then, itemsize))
            now = then
    return Path.of(*steps)


def without_gathers(way: Path) -> Path:
    """The path without the gathers at its end."""
    steps = list(way.steps)
    while steps and isinstance(steps[-1], AllGather):
        steps.pop()
    return Path.of(*steps)
