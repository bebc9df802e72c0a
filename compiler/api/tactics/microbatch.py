"""Micro-batches: each device computes its part of the batch in several trips, and adds up what they make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ....dialects.ground.amounts import counted
from ....dialects.ground.errors import Error
from ....dialects.ranges.algebra import Loop
from ....rewrites.decide.decide import Move
from ....rewrites.program.program import ValueId
from ...advice.tactic_checks import batch_in_parts
from ...answers.loops import why_ended
from ...cost.loops import chain, main_loops
from ...inputs.checks import shown
from ...inputs.message_language import step
from ...inputs.names import Patterns, as_patterns
from ...plan.claims import having
from ...plan.each_micro_batch import in_micro_batches, split_otherwise
from ...plan.named_laws import made_by, scope_of
from ...plan.seeds import Seed
from ..plan import Plan
from .base import Strategy
from .data import inputs_of, of_batch

_NUMBER = re.compile(r"\d+$")
MOST_FOLDS = 3
"""The most folds that an error names."""


@dataclass(frozen=True, repr=False)
class Microbatch(Strategy):
    """Compute the batch in `m` parts, one after another; or in as many as have `size` examples each. Give one of the two.

    Each device runs one loop over its part of the batch. Gradients are added up in it, and means stay means, so the results are
    those of the whole batch; what it stores for the backward pass is that of one part. It needs no devices, and may come before
    or after other tactics. `inputs` and `dim` are as in `DataParallel`. `name` is the name of the loop, in layouts `micro:8`.

    Something that folds over the batch in the middle, as batch norm does, ends the loop, and another one follows it. Raises
    Error if more than `loops` loops one after another would compute a good part of the program.

    What is in the `jax.named_scope`s of `each` sees one micro-batch at a time, as it does where gradients are accumulated by
    hand: that is another program, with every `m`-th example in one micro-batch. What leaves such a scope without a batch, as
    the running mean of a batch norm, is the mean of all micro-batches. `print(plan)` says which values are.

    (It is not `optax.MultiSteps`, which adds up the gradients of several calls.)

    Microbatch(8):   x: f32[512, 256]   -->   x: f32[micro:8*64, 256], gradients in a carry
    """

    m: int = 0
    size: int = 0
    inputs: Patterns = ()
    dim: int = 0
    name: str = "micro"
    loops: int = 2
    each: Patterns = ()

    def __call__(self, plan: Plan) -> Plan:
        self.loop(plan)
        if as_patterns(self.each) and (count := self.count(plan)) > 1:
            found = inputs_of(self.restricted(plan), self.inputs, "Microbatch")
            dims = {value: plan.dim_of(value, self.dim, name) for name, value in found.items()}
            plan = in_micro_batches(plan, dims, count, self.each)
        return super().__call__(plan)

    def split(self, plan: Plan) -> Plan:
        return having(plan, [self.loop(plan)])

    def claims(self, plan: Plan) -> Iterator[Seed]:
        loop = self.loop(plan)
        for seed in of_batch(having(plan, [loop]), inputs_of(plan, self.inputs, "Microbatch"), self.dim, [loop]):
            if as_patterns(self.each) and seed.dim is not None:
                if problem := few_examples(plan, seed.value, seed.dim, self.count(plan)):
                    raise problem
                # The micro-batches of another program are the same on any mesh.
                seed = replace(seed, block=1)
            yield seed

    def loop(self, plan: Plan) -> str:
        """The loop: `micro:8`."""
        if (self.m > 0) is (self.size > 0) or min(self.m, self.size) < 0:
            helps = [f"{step('Microbatch(8)')} makes 8 parts, {step('Microbatch(size=64)')} parts of 64 examples"]
            raise Error(f"`Microbatch` takes the number of parts or their size, got m={self.m}, size={self.size}", helps=helps)
        return f"{self.name}:{self.count(plan)}"

    def count(self, plan: Plan) -> int:
        """The number of parts."""
        return self.m or self.parts(plan)

    def parts(self, plan: Plan) -> int:
        """The number of parts that have `size` examples."""
        plan = self.restricted(plan)
        found = inputs_of(plan, self.inputs, "Microbatch")
        extents = {plan.source.shape(value)[plan.dim_of(value, self.dim, name)]: name for name, value in found.items()}
        if len(extents) != 1:
            helps = ["give the number of parts: " + step("Microbatch(8)")]
            raise Error(f"the inputs have {shown(sorted(extents))} examples, not one number of them", helps=helps)
        ((extent, name),) = extents.items()
        if extent % self.size and not self.padded:
            fits = [str(size) for size in range(1, extent + 1) if extent % size == 0][-4:]
            helps = [f"sizes that do: {', '.join(fits)}", f"or pad the last part: size={self.size}, padded=True"]
            raise Error(f"parts of {self.size} examples do not divide the {extent} of `{name}`", helps=helps)
        return -(-extent // self.size)

    def problem(self, plan: Plan, placed: Plan) -> Error | None:
        loop = self.loop(plan)
        if as_patterns(self.each) and (other := split_otherwise(placed, loop)) is not None:
            return other
        ends = chain(placed, loop)
        # Each loop but the last one ends for a reason. Without as many reasons, the plan is not lowered to count the loops.
        found = main_loops(placed, loop) if len(ends) >= self.loops else 1
        if found <= self.loops:
            return batch_in_parts(placed, self.dim, [loop], "Microbatch")
        folds = [why_ended(placed, move, loop) for move in ends]
        more = [f"and {counted(len(folds) - MOST_FOLDS, 'other')}"] if len(folds) > MOST_FOLDS else []
        return Error(
            f"`Microbatch` would run {found} loops one after another over the batch, and takes at most {self.loops}",
            notes=[*folds[:MOST_FOLDS], *more],
            helps=[
                f"allow as many, which is exact: {step(f'Microbatch({self.count(plan)}, loops={found})')}",
                *self.by_each(plan, placed, ends),
            ],
        )

    def by_each(self, plan: Plan, placed: Plan, ends: Sequence[Move]) -> list[str]:
        """The help that names the scopes of all folds, if they are in some."""
        scopes = [scope_of(placed, made_by(placed, move.value)) for move in ends]
        if not all(scopes):
            return []
        parts = [scope.rpartition("/") for scope in scopes]
        named = {f"{'**/' if around else ''}{re.sub(_NUMBER, '*', last)}" for around, _, last in parts}
        every = sorted({*as_patterns(self.each), *named})
        text = step(f"Microbatch({self.count(plan)}, each={every!r})")
        return [f"or let these scopes see one micro-batch at a time, which is another program: {text}"]


def few_examples(plan: Plan, value: ValueId, dim: int, trips: int) -> Error | None:
    """The error if the examples of a micro-batch do not divide over the devices that have the batch; else None."""
    own, (extent, name) = plan.table.on_dim(value, dim), (plan.source.shape(value)[dim], plan.source.addresses.names[value])
    axes = {factor.axis: factor.axis.size for factor in own if not isinstance(factor.axis, Loop)}
    devices = prod(axes.values())
    if extent % (trips * devices) == 0:
        return None
    on = ", ".join(f"`{axis}`" for axis in axes)
    most = max(count for count in range(1, trips + 1) if extent % (count * devices) == 0) if extent % devices == 0 else 0
    helps = [f"at most {most} micro-batches: {step(f'Microbatch({most})')}"] if most > 1 else ["take fewer micro-batches"]
    title = f"a micro-batch of `{name}` has {extent // trips} examples, which do not divide over {on} ({devices} devices)"
    return Error(title, helps=helps)
