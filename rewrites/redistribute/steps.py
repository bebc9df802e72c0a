"""The steps of a redistribution: what one collective does to a layout, and how many bytes each device receives.

A step adds, removes or moves placed factors of dims. Their strides count elements of the whole array, so steps on different
axes commute without renumbering.

    f32[data*128, 256]   -- all_to_all over data: from dim 0 stride 128 to dim 1 stride 64 -->   f32[512, data*64]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh

Bytes = int | Fraction
"""Exact bytes, rounded only for display: one of three devices receives 2/3 of each byte twice in an all_reduce."""


ALONE = ("slice", "pad", "cut")
"""The kinds of steps without communication."""


@dataclass(frozen=True, slots=True)
class Step:
    """One collective, or what every device does alone: `slice`, `pad` a dim to what its axes divide, `cut` the padding off.

    `axes` are the mesh axes it runs over, major to minor. `dim` and `stride` are where they are placed (slice,
    reduce_scatter) or taken from (all_gather, all_to_all); `to_dim` and `to_stride` where an all_to_all puts them.
    `bytes` is what one device receives: with V the larger side's local size and n devices in the group, V(n-1)/n for
    all_gather, reduce_scatter and all_to_all, twice that for all_reduce, V for permute, none for slice. `before` and
    `after` are the layouts around it, what is pending left out.
    """

    kind: str
    axes: tuple[str, ...]
    bytes: Bytes
    before: Layout
    after: Layout
    monoid: str = ""
    dim: int = -1
    stride: int = 0
    to_dim: int = -1
    to_stride: int = 0

    @property
    def communicates(self) -> bool:
        """Whether it is a collective."""
        return self.kind not in ALONE

    def block(self, mesh: Mesh) -> int:
        """How many consecutive local elements stay together inward of the axes, where they are placed or taken from."""
        layout = self.after if self.kind == "all_to_all" else self.before
        return layout.inner(self.dim, self.stride, mesh)

    def to_block(self, mesh: Mesh) -> int:
        """The same for the dim that an all_to_all splits. The split comes first, so this counts elements of the operand."""
        return self.before.inner(self.to_dim, self.to_stride, mesh)

    def __str__(self) -> str:
        over = ", ".join(self.axes)
        kind = f"{self.kind} {self.monoid}" if self.monoid else self.kind
        match self.kind:
            case "pad" | "cut":
                return f"{kind} {self.before} to {self.after}"
            case "all_reduce" | "permute":
                return f"{kind} over ({over})"
            case "all_to_all":
                return f"{kind} over ({over}) {self.dim}@{self.stride} to {self.to_dim}@{self.to_stride}"
            case _:
                return f"{kind} over ({over}) {self.dim}@{self.stride}"


@dataclass(frozen=True, slots=True)
class Path:
    """The steps of a redistribution, the first one first, and the bytes that one device receives in all."""

    steps: tuple[Step, ...]
    bytes: Bytes

    @property
    def collectives(self) -> int:
        """The number of steps that communicate."""
        return sum(step.communicates for step in self.steps)

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps)) or "nothing"


def received(kind: str, larger: int, group: int) -> Bytes:
    """The bytes that one device of a group receives, exactly; `larger` is the larger side's local size in bytes."""
    match kind:
        case "slice":
            return 0
        case "permute":
            return larger
        case _:
            shares = (2 if kind == "all_reduce" else 1) * larger * (group - 1)
            return Fraction(shares, group) if shares % group else shares // group


def merged(steps: Sequence[Step], local: Sequence[int], mesh: Mesh) -> tuple[Step, ...]:
    """The steps with neighbours of one kind merged over several axes; `local` is each step's larger side in bytes."""
    result: list[Step] = []
    sizes: list[int] = []
    for step, size in zip(steps, local, strict=True):
        while result and (one := _one(result[-1], step, mesh)) is not None:
            size = max(size, sizes.pop())
            result.pop()
            step = replace(one, bytes=received(one.kind, size, prod(mesh[axis] for axis in one.axes)))
        if step.kind == "permute" and step.before == step.after:
            continue
        result.append(step)
        sizes.append(size)
    return tuple(result)


def _one(first: Step, then: Step, mesh: Mesh) -> Step | None:
    """Two steps as one over the axes of both; None unless these are adjacent and in order."""
    if first.kind != then.kind or first.monoid != then.monoid:
        return None
    both = replace(then, before=first.before)
    match then.kind:
        case "all_reduce":
            return replace(both, axes=_in_order(first.axes + then.axes, mesh))
        case "permute":
            return replace(both, axes=_in_order(first.axes + then.axes, mesh))
        case "all_gather" if _outside(then, first, mesh):
            return replace(both, axes=then.axes + first.axes, stride=first.stride)
        case "slice" | "reduce_scatter" if _outside(first, then, mesh):
            return replace(both, axes=first.axes + then.axes)
        case "all_to_all" if _outside(first, then, mesh) and _lands_outside(first, then, mesh) and _parts(first, then, mesh):
            return replace(both, axes=first.axes + then.axes)
        case _:
            return None


def _outside(major: Step, minor: Step, mesh: Mesh) -> bool:
    """Whether `major`'s axes are directly outside `minor`'s on the same dimension."""
    return major.dim == minor.dim and major.stride == minor.stride * prod(mesh[axis] for axis in minor.axes)


def _lands_outside(major: Step, minor: Step, mesh: Mesh) -> bool:
    width = prod(mesh[axis] for axis in minor.axes)
    return major.to_dim == minor.to_dim and major.to_stride == minor.to_stride * width


def _parts(major: Step, minor: Step, mesh: Mesh) -> bool:
    """Whether each device has a part for every other one. Within a dim it has only the elements between old and new stride.

    [2*b*a] -> [b*2*a] -> [b*a*2] stays two steps: with two elements each, four devices cannot exchange all at once.
    """
    if major.dim != major.to_dim:
        return True
    low, high = sorted((major.stride, major.to_stride))
    axes = (*major.axes, *minor.axes)
    here = major.before.at(major.dim, mesh)
    others = prod(factor.size for factor in here if low < factor.stride <= high and factor.name not in axes)
    return high // low // others % prod(mesh[axis] for axis in axes) == 0


def _in_order(axes: tuple[str, ...], mesh: Mesh) -> tuple[str, ...]:
    return tuple(axis for axis in mesh if axis in axes)


def pairs(step: Step, mesh: Mesh) -> tuple[tuple[int, int], ...]:
    """For a permute: which device sends to which, numbered along `step.axes` with the last axis fastest.

    Each device sends to one and receives from one; where several hold the same piece, one that already has what it
    wants keeps it.
    """
    devices = [dict(zip(step.axes, at, strict=True)) for at in product(*(range(mesh[axis]) for axis in step.axes))]
    have = [_piece(step.before, at, mesh) for at in devices]
    want = [_piece(step.after, at, mesh) for at in devices]
    free: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for device, piece in enumerate(have):
        if piece != want[device]:
            free.setdefault(piece, []).append(device)
    sources = [device if have[device] == piece else free[piece].pop(0) for device, piece in enumerate(want)]
    return tuple((source, device) for device, source in enumerate(sources))


def _piece(layout: Layout, at: dict[str, int], mesh: Mesh) -> tuple[tuple[int, int], ...]:
    """The first element of a device's part in each dimension, which identifies the part among those that are exchanged."""
    begins: dict[int, int] = {}
    for dim, factor in layout.factors(mesh):
        if factor.name in at:
            begins[dim] = begins.get(dim, 0) + at[factor.name] * factor.stride
    return tuple(sorted(begins.items()))
