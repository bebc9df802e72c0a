"""Data parallelism: each device computes its part of the batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
        axes = axes_of(self.axis)
        for axis in axes:
            plan.mesh.parts(axis)
        yield from of_batch(plan, inputs_of(plan, self.inputs, "DataParallel"), self.dim, axes)


def inputs_of(plan: Plan, inputs: Patterns, what: str) -> dict[str, ValueId]:
    """The inputs that a tactic tiles: these or, if none are given, those that lead with the batch. Scalars are left out."""
    found = plan.source.addresses.inputs(inputs) if as_patterns(inputs) else batches(plan, what)
    if arrays := {name: value for name, value in found.items() if plan.source.shape(value)}:
        return arrays
    names = ", ".join(f"`{name}`" for name in list(found)[:3])
    raise Error(f"`{what}` has nothing to tile: {names} are scalars", helps=["give inputs that have a batch dim"])


def of_batch(plan: Plan, inputs: Mapping[str, ValueId], dim: int, axes: Sequence[str]) -> Iterator[Seed]:
    """The claims that tile a dim of inputs on these places."""
    for name, value in inputs.items():
        at = plan.dim_of(value, dim, name)
        yield from Seed(value, at, "", name, blocks(plan, value, at, axes), is_batch=True).over(axes, plan.mesh)


def batches(plan: Plan, what: str = "DataParallel") -> dict[str, ValueId]:
    """The arguments whose leading dim is the batch, by name. Raises Error if no range is the batch."""
    named, source = plan.range_roots.get(BATCH), plan.source
    roots = source.batches if named is None else {named}
    arguments, shape = source.addresses.arguments, source.program.shape
    if found := {name: value for name, value in arguments.items() if shape(value) and source.classes.of(value, 0) in roots}:
        return found
    if roots and source.addresses.chosen:
        helps = ["name the inputs among them that it tiles: inputs=..."]
        raise Error(f"`{what}` finds no input that leads with the batch among these values", helps=helps)
    raise no_batch(plan, what)


def no_batch(plan: Plan, what: str = "DataParallel") -> Error:
    """The error if no range is the batch. It lists the ranges that inputs lead with, or else the arguments."""
    source, names = plan.source, plan.source.addresses.names
    first = {source.classes.of(value, 0): value for value in reversed(source.inputs.values)}
    title = f"`{what}` finds no batch"
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
