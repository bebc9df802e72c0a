"""Paths as text: each step, and the layout after it where the step alone does not say it. A path that is read is checked.

    all_to_all over (data) 0@128 to 1@64; all_gather over (model) 0@64
    permute over (a, b) to [b*64, 8]; pad to [b*64, 16]; pieces over (b) to [8*b*8, 16]

A step that is read begins in the layout in which the one before it ends. It has to lead to a layout, and the last one to the
target; every sum that is pending in the source and not in the target has to be folded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import ge, le
from typing import NamedTuple

from xdsl.ir import Block
from xdsl.utils.exceptions import VerifyException

from ...dialects.ground.errors import Error
from ...dialects.ground.monoids import MONOIDS
from ...dialects.layouts import Layout, Pending, parse_array
from ...dialects.mesh import Mesh, axis_of
from ...dialects.plan import LAYOUT
from ...dialects.ranges.algebra import Place, in_time
from ...dialects.ranges.factor import fit, padded
from ...dialects.types import ArrayType
from .kinds.folds import Fold, ReduceScatter, still_pending
from .kinds.halo import Halo
from .kinds.local import Cut, EachTrip, Pad
from .kinds.permute import Permute
from .kinds.pieces import Pieces
from .path_ends import changed
from .search import path
from .steps import Path, Step

NOTHING = "nothing"
"""The text of the path without steps."""

_STEP = re.compile(
    rf"(?P<kind>\w+)(?: (?P<monoid>\w+))?(?: over \((?P<axes>[^()]*)\))?(?: (?P<dim>\d+)(?:@(?P<stride>\d+))?)?"
    rf"(?: to (?P<to_dim>\d+)@(?P<to_stride>\d+))?(?: to (?P<layout>{LAYOUT}))?"
)
_NAMED: Mapping[type[Step], str] = {Halo: "halo", Pieces: "pieces", Permute: "permute", Pad: "pad", Cut: "cut"}
"""The kinds of which only their layouts tell what they do."""


def path_text(way: Path) -> str:
    """The text of a path: `read_path(path_text(way), ...)` is the same path."""
    return "; ".join(map(_step_text, way.steps)) or NOTHING


def _step_text(step: Step) -> str:
    name = next((name for kind, name in _NAMED.items() if isinstance(step, kind)), None)
    if name is None:
        return str(step) if _after(step, step.before) is step.after else f"{step} to {step.after}"
    over = f" {step.over}" if step.axes else ""
    dim = f" {step.dim}" if isinstance(step, Halo) else ""
    return f"{name}{over}{dim} to {step.after}"


def _after(step: Step, before: Layout) -> Layout:
    """The layout after a step that removes and places factors; dims keep their length, with padding included."""
    gone, new = step.changes()
    if missing := [each for each in gone if each not in before.factors]:
        dim, factor = missing[0]
        raise Error(f"`{step}` begins where dim {dim} is on `{factor}`, but the value is {before} there")
    kept = [each for each in before.factors if each not in gone]
    extents = [*before.global_shape]
    for dim in {dim for dim, _ in (*gone, *new)}:
        if before.windows(dim) is not None:
            raise Error(f"`{step}` changes dim {dim} of {before}, which is in windows", helps=["a halo makes blocks"])
        factors = [factor for at, factor in (*kept, *new) if at == dim]
        if not fit(extents[dim], factors) or padded(extents[dim], factors) != before.padded_shape[dim]:
            extents[dim] = before.padded_shape[dim]
    return Layout.of(extents, [*kept, *new])


class _Given(NamedTuple):
    """A step in text."""

    text: str
    found: re.Match[str]
    known: Sequence[Mesh]
    itemsize: int

    @property
    def axes(self) -> tuple[Place, ...]:
        names = self.found["axes"]
        return tuple(axis_of(each.strip(), *self.known) for each in names.split(",")) if names else ()

    @property
    def layout(self) -> Layout | None:
        return None if self.found["layout"] is None else parse_array(f"f32{self.found['layout']}", *self.known)[1]

    def step(self, before: Layout) -> Step:
        """The step, from the layout in which the step before it ends."""
        kind, after = self.found["kind"], self.layout
        if kind in _NAMED.values():
            if after is None:
                raise Error(f"`{self.text}` does not say where it leads", helps=[f"write `{self.text} to [...]`"])
            return self.between(kind, before, after)
        if (known := Step.known.get(kind)) is None:
            raise Error(f"`{kind}` is no step", helps=[f"the steps are {', '.join(sorted({*Step.known, *_NAMED.values()}))}"])
        given = {name: self.axes if name == "axes" else self.found[name] for name in known.terms}
        if any(not each for each in given.values()):
            raise Error(f"`{self.text}` is not complete", helps=[f"`{kind}` says {', '.join(known.terms)}"])
        step = known.of(*(int(each) if isinstance(each, str) and each.isdigit() else each for each in given.values()))
        lands = _after(step, before)
        if after is not None and (after.factors, after.padded_shape) != (lands.factors, lands.padded_shape):
            raise Error(f"`{self.text}` leads from {before} to {lands}")
        return step.placed(before, after or lands, self.itemsize)

    def between(self, kind: str, before: Layout, after: Layout) -> Step:
        """A step of which only its layouts tell what it does."""
        is_right, step = False, None
        match kind:
            case "halo":
                dim = int(self.found["dim"] or 0)
                is_right = dim < before.rank and changed(before, dim, after.at(dim)) is after
                step = Halo.between(before, after, dim, self.itemsize) if is_right else None
            case "pieces":
                is_right = before.global_shape == after.global_shape and not _has_windows(before, after)
                step = Pieces.between(before, after, self.itemsize) if is_right else None
            case "permute":
                step = Permute.of(self.axes, ()).placed(before, after, self.itemsize)
                is_right = before.global_shape == after.global_shape and step.fits()
            case _:
                grows = ge if kind == "pad" else le
                is_right = before.factors == after.factors and all(map(grows, after.global_shape, before.global_shape))
                step = (Pad if kind == "pad" else Cut)(before=before, after=after)
        if not is_right or step is None:
            raise Error(f"`{kind}` does not lead from {before} to {after}")
        return step


def _has_windows(*layouts: Layout) -> bool:
    return any(layout.windows(dim) is not None for layout in layouts for dim in range(layout.rank))


def read_path(text: str, source: Layout, target: Layout, itemsize: int, *known: Mesh) -> Path:
    """The path that a text says. The text of the cheapest path is that path itself.

    Raises Error for a text that is no path, or one that does not lead from the source to the target.
    """
    cheapest = path(source, target, itemsize)
    if text == path_text(cheapest):
        return cheapest
    helps = [f"the cheapest path is `{path_text(cheapest)}`"]
    left = tuple(each for each in source.pending if each not in target.pending)
    if fixed := [each for each in left if each.scans or each.is_gathered]:
        raise Error(f"`{fixed[0]}` resolves by one path only, but the text says `{text}`", helps=helps)
    now, steps, entered = source.with_pending(()), list[Step](), tuple[Place, ...]()
    try:
        for each in text.split("; ") if text != NOTHING else ():
            found = _STEP.fullmatch(each)
            if found is None:
                raise Error(f"`{each}` is no step of a path")
            step = _Given(each, found, known, itemsize).step(now)
            left = _folded(step, left)
            if isinstance(step, EachTrip):
                entered += step.axes
            elif not step.is_in_time:
                step = replace(step, loops=(*in_time(now.with_pending((*left, *target.pending)).named), *entered))
            now = step.after
            now.with_pending(left).verify()
            _verify_ops(step)
            steps.append(step)
        if left or now is not target.with_pending(()):
            raise Error(f"the path `{text}` leads from {source} to {now.with_pending(left)}, not to {target}")
    except Error as error:
        raise Error(error.title, helps=[*error.helps, *helps]) from None
    return Path.of(*steps)


def _folded(step: Step, left: tuple[Pending, ...]) -> tuple[Pending, ...]:
    """What is still pending after a step, which has to fold what is pending and innermost."""
    if not isinstance(step, Fold):
        return left
    every = {Pending(step.monoid, axis) for axis in step.axes}
    if missing := every.difference(left):
        raise Error(f"`{step}` folds `{min(map(str, missing))}`, which is not pending there")
    if isinstance(step, ReduceScatter) and not MONOIDS[step.monoid].linear:
        raise Error(f"`{step}`: only sums are scattered")
    if any(each.monoid != step.monoid for each in left[left.index(min(every, key=left.index)) :]):
        raise Error(f"`{step}` folds ahead of what is inside of it: {', '.join(map(str, left))}")
    return still_pending(step, left)


def _verify_ops(step: Step) -> None:
    """Raises Error unless the ops of the step make the local array of the layout after it."""
    before, after = (ArrayType.whole("float32", layout.local_shape) for layout in (step.before, step.after))
    block = Block(arg_types=[before])
    made = block.args[0]
    try:
        for op in step.ops(made):
            block.add_op(op)
            op.verify()
            made = op.results[0]
    except VerifyException as error:
        raise Error(f"`{step}` cannot run on {step.before}: {error}") from None
    if made.type is not after:
        raise Error(f"`{step}` does not lead from {step.before} to {step.after}")
