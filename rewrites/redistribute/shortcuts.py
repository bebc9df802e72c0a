"""Shortcuts: replaces consecutive steps by one exchange of pieces, if that receives fewer bytes or needs less memory.

all_to_all over (a) 0@3 to 0@6; all_to_all over (a) 0@6 to 0@1   -->   pieces over (a): [2*a*3] to [6*a]
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from ...dialects.layouts import Layout
from .kinds.folds import Fold
from .kinds.local import Resized
from .kinds.pieces import Pieces
from .steps import Bytes, Path, Step


class _Paid(NamedTuple):
    """The cost of a way: how many of its layouts are larger than both ends, its bytes, exchanges and steps."""

    larger: int = 0
    bytes: Bytes = 0
    exchanges: int = 0
    steps: int = 0

    def then(self, larger: int, bytes: Bytes) -> _Paid:
        """The cost after one more exchange."""
        return _Paid(self.larger + larger, self.bytes + bytes, self.exchanges + 1, self.steps + 1)


def with_shortcuts(way: Path, itemsize: int) -> Path:
    """Replaces steps of a path by exchanges of pieces where that pays.

    At equal bytes the steps stay, because they move whole parts.
    """
    steps = way.steps
    if not way.bytes:
        return way
    breaks = [0, *(at for at, (one, then) in enumerate(pairwise(steps), 1) if not _meet(one, then)), len(steps)]
    return Path.of(*(step for first, last in pairwise(breaks) for step in _row(steps[first:last], itemsize)))


def _meet(one: Step, then: Step) -> bool:
    """Whether the second step begins in the layout in which the first one ends, and neither of them folds."""
    return one.after is then.before and not isinstance(one, Fold) and not isinstance(then, Fold)


def moves(step: Step) -> bool:
    """Whether a step moves elements between devices without folding them."""
    return step.communicates and not isinstance(step, Fold)


def _row(steps: Sequence[Step], itemsize: int) -> tuple[Step, ...]:
    """The best way through some of the layouts between these steps."""
    if len(steps) < 2:
        return tuple(steps)
    layouts = [steps[0].before, *(step.after for step in steps)]
    # What is padded first, or cut last, counts with its padding.
    ends = [0, isinstance(steps[0], Resized), -1, -1 - isinstance(steps[-1], Resized)]
    limit = max(prod(layouts[at].local_shape) for at in ends)
    found: list[tuple[_Paid, tuple[Step, ...]]] = [(_Paid(), ())]
    for step, layout in zip(steps, layouts[1:], strict=True):
        larger = int(prod(layout.local_shape) > limit)
        last, before = found[-1]
        ways = [(_Paid(last.larger + larger, last.bytes + step.bytes, last.exchanges, last.steps + 1), (*before, step))]
        for (paid, before), start in zip(found[:-1], layouts, strict=False):
            # An exchange can only gain by needing less memory, or by receiving less.
            least, best = paid.then(larger, _least(start, layout, itemsize)), min(ways, key=lambda way: way[0])[0]
            if paid[:2] < best[:2] and least < best and (direct := _direct(start, layout, itemsize)) is not None:
                ways.append((paid.then(larger, direct.bytes), (*before, direct)))
        found.append(min(ways, key=lambda way: way[0]))
    return found[-1][1]


def _direct(before: Layout, after: Layout, itemsize: int) -> Step | None:
    halos = any(layout.windows(dim) is not None for layout in (before, after) for dim in range(layout.rank))
    same = before.global_shape == after.global_shape
    return Pieces.between(before, after, itemsize) if same and not halos else None


def _least(before: Layout, after: Layout, itemsize: int) -> int:
    """A lower bound of the bytes that a device receives: what it has more afterwards, unless that may be padding."""
    return 0 if after.is_padded else max(0, prod(after.local_shape) - prod(before.local_shape)) * itemsize
