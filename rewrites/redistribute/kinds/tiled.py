"""Steps that place an axis on a dim, or remove it: where it is, and when two of them are one over two axes.

slice a@64, then slice b@32, both of dim 0, b=2   -->   slice over (a, b) 0@32
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from ....dialects.mesh import Mesh
from ....dialects.ranges.factor import Factor
from ..steps import Spots, Step, devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiled(Step):
    """A step of a dim; `stride` is the number of elements between neighbours along the minor one of its axes."""

    dim: int
    stride: int

    @classmethod
    def of(cls, *args: object) -> Step:
        axis, dim, stride = cast(tuple[str, int, int], args)
        return cls(axes=(axis,), dim=dim, stride=stride)

    def block(self, mesh: Mesh) -> int:
        """How many consecutive local elements stay together inward of the axes."""
        return self.before.inner(self.dim, self.stride, mesh)

    def is_outside(self, minor: Tiled, mesh: Mesh) -> bool:
        """Whether these axes are directly outside those of another step, on the same dim."""
        return self.dim == minor.dim and self.stride == minor.stride * devices(minor.axes, mesh)

    def __str__(self) -> str:
        return f"{Step.__str__(self)} {self.dim}@{self.stride}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing(Tiled):
    """A step after which a dim is placed on the axes."""

    def place(self, at: Spots, mesh: Mesh) -> int | None:
        (axis,) = self.axes
        at[axis] = self.dim, Factor.of(axis, self.stride, mesh)
        return self.dim

    def after_step(self, first: Step, mesh: Mesh) -> Step | None:
        fits = isinstance(first, Tiled) and type(first) is type(self) and first.is_outside(self, mesh)
        return replace(self, axes=first.axes + self.axes) if fits else None
