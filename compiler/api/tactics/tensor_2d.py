"""Tensor parallelism in two dimensions: batch x model on weights and activations."""

from __future__ import annotations

from dataclasses import dataclass

from ....dialects.ground.errors import Error
from ...inputs.names import Patterns
from ..plan import Plan
from .base import Strategy
from .data import DataParallel
from .megatron import Megatron
from .sequence import SequenceParallel
from .zero import FSDP


@dataclass(frozen=True, repr=False)
class Tensor2D(Strategy):
    """Weights over both axes, activations too: batch over one, width over the other (GSPMD, arXiv 2105.04663, section 5.1).

    It applies four tactics, which the trace shows: `DataParallel(data)`, `Megatron(model)`, `SequenceParallel(model, dim=-1)`,
    which tiles the width of the activations, and `FSDP(data)`. A weight is gathered over `data` for its products, activations
    over `model` before each part; sums are scattered. For L layers of attention and a perceptron, over `model`: `4·L`
    all_gathers and `4·L` reduce_scatters, and an all_reduce for each sum over the width, as in norms; over `data` those of
    `FSDP`.

    `values` names the parameters, `inputs` the batch.

    Vocabulary parallelism does not go with it: the width of the table is on `model`.

        Tensor2D("data", "model"):   w1: f32[data*64, model*512], x: f32[data*2, 1024, model*128]
    """

    data: str
    model: str
    inputs: Patterns = ()
    smallest: int | None = None

    def __call__(self, plan: Plan) -> Plan:
        if self.data == self.model:
            title = f"`Tensor2D` takes two axes, got `{self.data}` for both"
            raise Error(title, helps=["`data` is the axis of the batch, `model` that of the width of weights"])
        return plan.apply(
            DataParallel(self.data, self.inputs, padded=self.padded),
            Megatron(self.model, values=self.values, padded=self.padded),
            SequenceParallel(self.model, dim=-1, values=self.values, padded=self.padded),
            FSDP(self.data, smallest=self.smallest, values=self.values, padded=self.padded),
        )
