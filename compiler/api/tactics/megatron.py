"""Tensor parallelism: pairs of products, of which the first makes a range and the second sums over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....dialects.errors import Error
from ...inputs.checks import patterns_of
from ...plan.claims import Seed
from ...plan.undone import unpaired
from ..plan import Plan
from .base import Dims, Tactic, tiles


@dataclass(frozen=True, repr=False)
class Megatron(Tactic):
    """Tensor parallelism: column and row tiling of weights by patterns, the rest inferred (arXiv 1909.08053).

    `column` tiles the output dim of the first matmul (the last dim), `row` the contracted dim of the second (the last but one),
    so a dim of stacked layers in front changes nothing. A mapping from pattern to dim overrides these. One of the two is enough
    if the other follows by propagation.

    Raises Error for a column whose tiled dim is summed over, for a row whose tiled dim is not, and for an op between them that
    needs its input whole: a pair costs one all_reduce forward and one backward.

        Megatron("model", column="**/w1"):   w1: f32[256, model*512], w2: f32[model*512, 256], one all_reduce after w2
    """

    axis: str
    column: Dims = ()
    row: Dims = ()
    padded: bool = False

    def __call__(self, plan: Plan) -> Plan:
        placed = super().__call__(plan)
        columns, rows = (self.weights(plan, given) for given in (self.column, self.row))
        if problem := unpaired(placed, columns, rows, self.axis):
            raise problem
        return placed

    def weights(self, plan: Plan, given: Dims) -> dict[str, int]:
        """The values that patterns match, by name."""
        patterns = given if isinstance(given, Mapping) else patterns_of(given) if given else ()
        return {name: value for pattern in patterns for name, value in plan.source.addresses.find(pattern).items()}

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        if not self.column and not self.row:
            raise Error("`Megatron` names no weights", helps=['give `column`, `row` or both: column="**/w1"'])
        for given, dim in ((self.column, -1), (self.row, -2)):
            if given:
                yield from tiles(plan, given, dim, self.axis, self.padded)
