"""A GPT-3-shaped training step, shapes only, which `speed` and `shardy` compile.

Unrolled layers, forward, backward and Adam: 96 layers are about 33,000 equations. It is the transformer of the tests,
at GPT-3's sizes. The strategy is that of the closed forms that the tests check.
"""

from partita.tests.support.models import Adam, Transformer, Tree, train_step as train_step

MESH = {"data": 4, "model": 2}


def shapes(layers: int = 96) -> tuple[Tree, Adam, Tree]:
    """The arguments of `train_step` at GPT-3's sizes (the vocabulary rounded up to a multiple of 1024)."""
    return Transformer(layers, width=12288, heads=96, head=128, hidden=49152, vocabulary=51200, length=2048, batch=32).shapes()
