"""Vocabulary parallelism: the rows of the embedding and the columns of the logits over devices, the loss without a gather."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....dialects.errors import Error
from ...inputs.checks import axis_of, flag_of
from ...plan.claims import Seed
from ...plan.vocabulary import vocabulary
from ..plan import Plan
from .base import Dims, Tactic, tiles


@dataclass(frozen=True, repr=False)
class VocabularyParallel(Tactic):
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

    axis: str
    embedding: Dims = ()
    head: Dims = ()
    padded: bool = True

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        padded = flag_of("padded", self.padded)
        plan.mesh.parts(axis_of(self.axis))
        for given, dim in ((self.embedding, 0), (self.head, -1)):
            if given:
                yield from tiles(plan, given, dim, self.axis, padded)
        if not self.embedding and not self.head:
            yield from self.found(plan, padded)

    def found(self, plan: Plan, padded: bool) -> Iterator[Seed]:
        spots, names = vocabulary(plan), plan.source.addresses.names
        if not spots:
            notes = ["a table is a parameter of which an input looks up rows"]
            helps = ['name the parameters: embedding="params/embed", head={"params/head": 1}']
            raise Error("`VocabularyParallel` finds no table of a vocabulary", notes=notes, helps=helps)
        for value, dim in spots:
            divides = plan.source.shape(value)[dim] % plan.mesh[axis_of(self.axis)] == 0
            yield Seed(value, dim, self.axis, names[value], padded=padded and not divides)
