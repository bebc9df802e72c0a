"""Data parallelism: each device computes its part of the batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....dialects.ground.errors import Error
from ....rewrites.program.program import ValueId
from ...advice.tactic_checks import batch_in_parts
from ...inputs.checks import Axes, axes_of
from ...inputs.message_language import step
from ...inputs.names import Patterns, as_patterns, trees
from ...plan.range_names import BATCH
from ...plan.seeds import Seed
from ..plan import Plan
from .base import Strategy


@dataclass(frozen=True, repr=False)
class DataParallel(Strategy):
    """Tile the leading dim (or `dim`) of the inputs on one axis, or on several, major to minor.

    Without `inputs`, these are the arguments that lead with the range `batch` (`plan.ranges()`). For P parameters it costs
    `P + 1` all_reduces: of the gradients and of the loss.

    With `padded`, a batch that the axes do not divide is padded, and the padding counts for nothing. Raises Error if
    nothing is computed of the inputs in parts, and without `inputs` if no range is the batch.

    DataParallel("data", inputs="batch/*"):   x: f32[512, 256]   -->   x: f32[data*128, 256], gradients all_reduced
    """

    axis: Axes
    inputs: Patterns = ()
    dim: int = 0

    def problem(self, plan: Plan, placed: Plan) -> Error | None:
        return batch_in_parts(placed, self.dim, axes_of(self.axis), "DataParallel")

    def claims(self, plan: Plan) -> Iterator[Seed]:
        shape, axes = plan.source.shape, axes_of(self.axis)
        for axis in axes:
            plan.mesh.parts(axis)
        found = plan.source.addresses.inputs(self.inputs) if as_patterns(self.inputs) else batches(plan)
        if not any(map(shape, found.values())):
            names = ", ".join(f"`{name}`" for name in list(found)[:3])
            raise Error(f"`DataParallel` has nothing to tile: {names} are scalars", helps=["give inputs that have a batch dim"])
        for name, value in found.items():
            if shape(value):
                dim = plan.dim_of(value, self.dim, name)
                seed = Seed(value, dim, "", name, blocks(plan, value, dim, axes), is_batch=True)
                yield from seed.over(axes, plan.mesh)


def batches(plan: Plan) -> dict[str, ValueId]:
    """The arguments whose leading dim is the batch, by name. Raises Error if no range is the batch."""
    named, source = plan.range_roots.get(BATCH), plan.source
    roots = source.batches if named is None else {named}
    arguments, shape = source.addresses.arguments, source.program.shape
    if found := {name: value for name, value in arguments.items() if shape(value) and source.classes.of(value, 0) in roots}:
        return found
    if roots and source.addresses.chosen:
        helps = ["name the inputs among them that it tiles: inputs=..."]
        raise Error("`DataParallel` finds no input that leads with the batch among these values", helps=helps)
    raise no_batch(plan)


def no_batch(plan: Plan) -> Error:
    """The error if no range is the batch. It lists the ranges that inputs lead with, or else the arguments."""
    source, names = plan.source, plan.source.addresses.names
    first = {source.classes.of(value, 0): value for value in reversed(source.inputs.values)}
    title = "`DataParallel` finds no batch"
    if not first:
        helps = [f"name the inputs that lead with it, inputs=...: the arguments are {trees(plan.arguments())}"]
        return Error(f"{title}: nothing says which arguments are inputs", helps=helps)
    several = [names[value] for value in sorted(first.values())]
    shown = " and ".join(f"`{names[value]}` {list(source.program.shape(value))}" for value in sorted(first.values())[:2])
    helps = [
        f'name one input of each range that it tiles: inputs="{several[0]}", or inputs={several!r}',
        "or name the range that is the batch: " + step(f'name("{several[0]}", 0, "batch")'),
    ]
    return Error(f"{title}: {shown} do not lead with the same range", helps=helps)


def blocks(plan: Plan, value: ValueId, dim: int, axes: Sequence[str]) -> int:
    """The number of blocks of a dim when it is also tiled on these axes."""
    own = {factor.axis for factor in plan.table.on_dim(value, dim)}
    return math.prod(axis.size for axis in own.union(*map(plan.mesh.named, axes)))
