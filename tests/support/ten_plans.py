"""Ten plans of one model, to be ranked by what they store: the batch, Megatron, and the stages of ZeRO, in all combinations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from example_plans import SMALL_LLAMA, Made, planned, training

import partita as pt
from partita.examples import demo, gpt, llama


@dataclass(frozen=True, slots=True)
class Model:
    """A training step, and the tactics that its plans are made of; `zero` has the fields of a ZeRO but its stage."""

    step: Callable[..., Any]
    mesh: pt.Mesh
    args: Callable[[], Sequence[Any]]
    batch: pt.Tactic
    megatron: pt.Tactic
    zero: Callable[[int], pt.Tactic]

    def ten(self) -> dict[str, Callable[[], Made]]:
        """The plans by name, each made when asked for."""
        stages = {f"ZeRO-{stage}": self.zero(stage) for stage in (1, 2, 3)}
        bases = {"batch": [self.batch], "batch, Megatron": [self.batch, self.megatron]}
        sharded = {f"{name}, {stage}": [*base, zero] for name, base in bases.items() for stage, zero in stages.items()}
        ways = {"plain": [], "Megatron": [self.megatron], **bases, **sharded}
        return {name: partial(planned, self.step, self.mesh, self.args, tactics) for name, tactics in ways.items()}


def transformer(config: gpt.Config) -> Model:
    """The model of the demo."""
    batch, megatron, zero = demo.TACTICS.values()
    assert isinstance(zero, pt.ZeRO)

    def staged(stage: int) -> pt.Tactic:
        return pt.ZeRO(stage, "data", params=zero.params, optimizer=zero.optimizer)

    return Model(gpt.train_step, demo.MESH, lambda: training(config), batch, megatron, staged)


def small_llama() -> Model:
    batch, megatron, _ = llama.TACTICS

    def staged(stage: int) -> pt.Tactic:
        return pt.ZeRO(stage, "data", params="params", optimizer="opt")

    return Model(llama.train_step, llama.MESH, lambda: llama.arguments(SMALL_LLAMA), batch, megatron, staged)
