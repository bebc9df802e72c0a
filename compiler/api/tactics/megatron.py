"""Tensor parallelism: tiles pairs of products, of which the first makes a range and the second sums over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ....dialects.ground.errors import Error
from ....rewrites.program.program import ValueId
from ...advice.tactic_checks import unpaired
from ...inputs.checks import checked_axis, flag_of, patterns_of
from ...plan.claims import crossing
from ...structure.product_pairs import Pair, has_weights, pairs, used_by, with_stops
from ...views.listing import Listing
from ..plan import Plan
from .base import DimsByName, Structural


@dataclass(frozen=True, repr=False)
class Megatron(Structural):
    """Tensor parallelism: column and row tiling of weights, found from structure or by patterns (arXiv 1909.08053).

    Without patterns, it finds every pair of products: parameters that make a range, parameters that sum over it, and between
    them only ops that keep it apart, as heads in attention and hidden units in a perceptron do. `pairs(plan)` lists them, and
    the candidates that are none, each with the reason. A weight that makes several parts, as of queries, keys and values, is
    left whole, and `plan.blocked` lists it with a cure.

    `column` tiles the output dim of the first matmul (the last dim), `row` the contracted dim of the second (the last but one),
    so a dim of stacked layers in front changes nothing. A mapping from pattern to dim overrides these. One of the two is enough
    if the other follows by propagation.

    Heads that the program puts in groups, for fewer heads of keys than devices, lie on sub-axes if a gather would cost less.

    A pair costs one all_reduce forward and one backward: `4·L` for L layers of attention and a perceptron.

    Raises Error if there is no pair; for a column whose tiled dim is summed over, for a row whose tiled dim is not, and for an
    op between them that needs its input whole.

        Megatron("model"):   w1: f32[256, model*512], w2: f32[model*512, 256], one all_reduce after w2
        Megatron("model", column={"**/wq": -2, "**/wk": -2, "**/wv": -2}, row={"**/wo": 0}):   only attention, by its heads
    """

    column: DimsByName = ()
    row: DimsByName = ()
    named: ClassVar[Mapping[str, int]] = {"column": -1, "row": -2}

    def __call__(self, plan: Plan) -> Plan:
        placed = self.placed(plan, self.holds)
        if problem := self.problem(plan, placed):
            # Heads that are put in groups lie on sub-axes, one for the groups: then the reshape does not need them whole.
            placed = crossing(placed, self.axis)
            if self.problem(plan, placed):
                raise problem
        return placed if self.column or self.row else with_stops(placed, self.pairs(self.restricted(self.split(plan))))

    def problem(self, plan: Plan, placed: Plan) -> Error | None:
        columns, rows = (self.weights(self.restricted(self.split(plan)), given) for given in (self.column, self.row))
        return unpaired(placed, columns, rows, self.axis)

    def pairs(self, plan: Plan) -> Listing[Pair]:
        """The pairs of the program on this axis, and the candidates that are not pairs, each with the reason."""
        return pairs(self.split(plan), checked_axis(self.axis), flag_of("padded", self.padded))

    def weights(self, plan: Plan, given: DimsByName) -> dict[str, ValueId]:
        """The values that the patterns match, by name."""
        patterns = given if isinstance(given, Mapping) else patterns_of(given) if given else ()
        return {name: value for pattern in patterns for name, value in plan.source.addresses.find(pattern).items()}

    def found(self, plan: Plan) -> Iterable[tuple[ValueId, int]]:
        """The parameters of all pairs, each with the dim to tile. Raises Error if there is no pair."""
        listing = self.pairs(plan)
        weights = dict.fromkeys(weight for pair in listing for weight in pair.weights)
        if not weights and plan.mesh[self.axis] > 1:
            # Those first that an op refuses.
            tried = sorted(listing, key=lambda pair: pair.source is None)
            notes = [f"{pair.columns[0]} ({pair.extent} elements): {pair.why_not}" for pair in tried[:4]]
            helps = [pair.cure for pair in tried if pair.cure]
            title = f"`Megatron` finds no pair of products over `{self.axis}`"
            if (used := used_by(plan, self.axis)) is not None:
                notes.append(f"products use `{self.axis}` already, by {plan.cited(used)}")
                cure = "weights are on it: leave `Megatron` out" if has_weights(plan, used) else "apply `Megatron` before it"
                raise Error(title, notes=notes, helps=[f"{cure}, or use another axis"])
            if not listing:
                helps.append(
                    f"no product makes a dim of a parameter that divides over {plan.mesh[self.axis]} devices: padded=True"
                )
            elif any(pair.is_uneven for pair in listing) and not self.padded:
                helps.append("have dims padded that do not divide: padded=True")
            helps.append('name the weights: column="**/w1", row="**/w2"')
            raise Error(title, notes=notes, helps=helps)
        return weights
