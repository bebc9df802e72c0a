"""Vocabulary parallelism: the rows of the embedding and the columns of the logits over devices, the loss without a gather."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ....dialects.ground.errors import Error
from ....rewrites.program.program import ValueId
from ...plan.seeds import Seed
from ...structure.vocabulary import vocabulary
from ..plan import Plan
from .base import DimsByName, Structural


@dataclass(frozen=True, repr=False)
class VocabularyParallel(Structural):
    """Tile the vocabulary of embedding, logits and loss on an axis (arXiv 1909.08053, section 3).

    A device looks up the rows that it holds, and one all_reduce of `[batch, length, width]` adds the results. It makes the
    logits of its own rows, which are never gathered: the largest logit, the sum of exponentials and the logit of the right
    token are one all_reduce of `[batch, length]` each. The gradient of what the head reads is one more: 5 in all, for any
    number of layers. (A loss by `log_softmax` has 6: its gradient has a sum of its own.)

    The tables that inputs look up, and the parameters that make logits as long as a table, are found from structure.
    `embedding` and `head` name them instead: embeddings by dim 0, heads by the last dim, or by a mapping from pattern to dim.
    A vocabulary that the axis does not divide, such as 50,257, is padded, unless `padded` is False.

    Raises Error if no table is found.

        VocabularyParallel("model"):   embed: f32[model*12568 pad 50257, 512], logits: f32[8, 1024, model*12568 pad 50257]
    """

    embedding: DimsByName = ()
    head: DimsByName = ()
    padded: bool = field(default=True, kw_only=True)

    named: ClassVar[Mapping[str, int]] = {"embedding": 0, "head": -1}

    def found(self, plan: Plan) -> Iterable[tuple[ValueId, int]]:
        spots = vocabulary(plan)
        if not spots:
            notes = ["a table is a parameter of which an input looks up rows"]
            helps = ['name the parameters: embedding="params/embed", head={"params/head": 1}']
            raise Error("`VocabularyParallel` finds no table of a vocabulary", notes=notes, helps=helps)
        return spots

    def pads(self, plan: Plan, seed: Seed) -> bool:
        """Pads only a vocabulary that the axis does not divide. Other dims, and what follows from them, are not padded."""
        return self.padded and seed.dim is not None and plan.source.shape(seed.value)[seed.dim] % plan.mesh[self.axis] != 0
