"""Data parallelism: each device computes its part of the batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....dialects.errors import Error
from ...inputs.checks import axes_of, flag_of
from ...inputs.names import Patterns, as_patterns
from ...plan.claims import Seed
from ...plan.range_names import BATCH, FEWEST
from ...plan.undone import in_parts
from ..plan import Plan
from .base import Axes, Tactic


@dataclass(frozen=True, repr=False)
class DataParallel(Tactic):
    """Tile the leading dim (or `dim`) of the inputs on one axis, or on several, major to minor.

    Without `inputs`, these are the arguments that lead with the range `batch` (`plan.ranges()`). For P parameters it costs
    `P + 1` all_reduces: of the gradients and of the loss.

    With `padded`, a batch that the axes do not divide is padded, and the padding counts for nothing. Raises Error if no op that
    reads the inputs can run in parts, and without `inputs` if no range is the batch.

    DataParallel("data", inputs="batch/*"):   x: f32[512, 256]   -->   x: f32[data*128, 256], gradients all_reduced
    """

    axis: Axes
    inputs: Patterns = ()
    dim: int = 0
    padded: bool = False

    def __call__(self, plan: Plan) -> Plan:
        placed = super().__call__(plan)
        if problem := in_parts(placed, self.dim, axes_of(self.axis), "DataParallel"):
            raise problem
        return placed

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        shape, axes = plan.source.shape, axes_of(self.axis)
        for axis in axes:
            plan.mesh.parts(axis)
        found = plan.source.addresses.inputs(self.inputs) if as_patterns(self.inputs) else batches(plan)
        if not any(map(shape, found.values())):
            names = ", ".join(f"`{name}`" for name in list(found)[:3])
            raise Error(f"`DataParallel` has nothing to tile: {names} are scalars", helps=["give inputs that have a batch dim"])
        for axis in axes:
            for name, value in found.items():
                if shape(value):
                    dim = plan.dim_of(value, self.dim, name)
                    yield Seed(value, dim, axis, name, blocks(plan, value, dim, axes), flag_of("padded", self.padded))


def batches(plan: Plan) -> dict[str, int]:
    """The arguments that lead with the batch, by name. Raises Error if no range is the batch."""
    root, of, shape = plan.range_roots.get(BATCH), plan.source.classes.of, plan.source.program.shape
    arguments = plan.source.addresses.arguments
    found = {name: value for name, value in arguments.items() if shape(value) and of(value, 0) == root}
    if root is None or not found:
        title = f"`DataParallel` finds no batch: {disagreement(plan)}"
        raise Error(title, helps=['name them: inputs="batch/*"', 'or name their range: plan.name("x", 0, "batch")'])
    return found


def disagreement(plan: Plan) -> str:
    """Which inputs do not lead with the same range."""
    of, program = plan.source.classes.of, plan.source.program
    given = {name: v for name, v in plan.source.addresses.arguments.items() if name not in plan.successors and program.shape(v)}
    integers = {name: value for name, value in given.items() if "int" in program.types[value].dtype}
    given = integers or (given if len(plan.successors) >= FEWEST else {})
    first: dict[int, str] = {}
    for name, value in given.items():
        if program.is_read(value) and value not in plan.source.keys:
            first.setdefault(of(value, 0), f"`{name}` {list(program.shape(value))}")
    shown = " and ".join(list(first.values())[:2])
    return f"{shown} do not lead with the same range" if len(first) > 1 else "the inputs do not all lead with the same range"


def blocks(plan: Plan, value: int, dim: int, axes: Sequence[str]) -> int:
    """The number of blocks of a dim once it is also tiled on these axes."""
    own = {factor.name for factor in plan.table.on_dim(value, dim)}
    return math.prod(plan.mesh[axis] for axis in own.union(*map(plan.mesh.parts, axes)))
