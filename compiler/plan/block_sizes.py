"""Whether the ops that a user defined have been tried on blocks as small as a plan cuts them to.

A definition is tried on blocks of some sizes, and believed of blocks that are made of such. A kernel with steps of its own may
agree on 4 rows and on 2, and make nothing of one:

    x: f32[8, 16] on data=8    -->    softmax is tried on blocks of one row, before the plan is lowered
"""

from __future__ import annotations

from typing import cast

from ...dialects.params import ParamsAttr
from ...rewrites.program.program import Node
from ..define.samples import Type
from ..define.verify import CANDIDATES, accept_blocks
from ..ops.params import decode
from .state import State


def try_cuts(plan: State) -> None:
    """Raises Error, with a counter-example, if an op of the user's is cut into blocks that its function does not take."""
    placed = plan.decisions.placements.nodes
    for node in plan.source.program.nodes:
        if node.kind in CANDIDATES and (sizes := _sizes(plan, node, placed[node.number].placement)):
            types: list[list[Type]] = [_types(plan, values) for values in (node.operands, node.results)]
            ins, outs = types
            stored = cast(ParamsAttr, node.op.properties["params"])
            params = decode(node.kind, stored, tuple(shape for _, shape in ins), tuple(outs), plan.source.traced.foreign)
            accept_blocks(CANDIDATES[node.kind], params, ins, outs, sizes)


def _types(plan: State, values: tuple[int, ...]) -> list[Type]:
    types = plan.source.program.types
    return [(types[value].dtype, types[value].shape) for value in values]


def _sizes(plan: State, node: Node, placement: tuple[tuple[str, int, int], ...]) -> dict[int, int]:
    """How many values of each index that is placed one device has."""
    sizes: dict[int, int] = {}
    for axis, index, _ in placement:
        extent = sizes.get(index, node.signature.instance.indices[index].extent)
        sizes[index] = extent // plan.mesh[axis]
    return sizes
