"""Folds across devices for a monoid without a collective: every device gathers the parts of all devices, and folds them.

%y = reduce_prod of a block   -->   %p = reshape %y, one more dim; %ps = all_gather %p; reduce_prod %ps over that dim
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Block, SSAValue

from ...dialects.ground.dtypes import itemsize
from ...dialects.ground.monoids import MONOIDS
from ...dialects.layouts import Layout, Pending
from ..emit import Appending, Emitter, type_at
from ..redistribute.search import parts
from ..redistribute.steps import Step


def fold_parts(
    local: SSAValue,
    layout: Layout,
    folds: tuple[Pending, ...],
    block: Block,
    walk: Callable[[Iterable[Step], SSAValue, Block], SSAValue],
) -> SSAValue:
    """Emits the fold over all devices, from this device's part. `folds` have one monoid: folds by several do not commute."""
    (monoid,) = {each.monoid for each in folds}
    type, emit = type_at(local), Emitter(Appending(block))
    steps = parts(layout, folds, itemsize(type.dtype)).steps
    gathered = walk(steps, emit.reshape(local, (1, *type.shape)), block)
    return emit.make(MONOIDS[monoid].gathered, (gathered,), type.dtype, type.shape, axes=(0,))
