"""Steps that place axes on a dim, or remove them: `all_gather over (a, b) 0@32` is of neighbours on dim 0, `b` at stride 32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from ....dialects.ranges.algebra import Place
from ..steps import DimPart, Factors, Step, side_by_side


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiled(Step):
    """A step on one dim. `stride` is the number of elements between neighbouring devices along its minor axis."""

    dim: int
    stride: int
    terms = ("axes", "dim", "stride")

    def renamed(self, axes: tuple[Place, ...], parts: Sequence[DimPart]) -> Self:
        part = parts[self.dim]
        return replace(self, axes=axes, dim=part.dim, stride=self.stride * part.minor)

    def on(self, dim: int, stride: int) -> Factors:
        """The factors of the axes on a dim."""
        return [(dim, factor) for factor in side_by_side(self.axes, stride)]

    @property
    def block(self) -> int:
        """The number of consecutive local elements that stay together inward of the axes."""
        return self.before.inner(self.dim, self.stride)

    def __str__(self) -> str:
        return f"{Step.__str__(self)} {self.dim}@{self.stride}"
