"""Tries user-defined ops on blocks as small as those of a plan.

A kernel with its own step size may agree on 4 rows and on 2, but compute wrong results on one:

    x: f32[8, 16] on data=8    -->    softmax is tried on blocks of one row, before the plan is lowered
"""

from collections.abc import Sequence
from math import prod

from ...dialects.lax import params_of
from ...dialects.ranges.factor import padded
from ...rewrites.decide.placements import Placements
from ...rewrites.program.program import Node
from ..ops.params import decode
from .verify import CANDIDATES, accept_blocks


def try_block_sizes(placements: Placements, foreign: Sequence[object]) -> None:
    """Raises Error, with a counter-example, if a plan cuts a user's op into blocks for which its function is wrong."""
    for node in placements.program.nodes:
        if node.op_name in CANDIDATES and (sizes := _sizes(placements, node)):
            types = placements.program.types
            ins, outs = ([(types[at].dtype, types[at].shape) for at in values] for values in (node.operands, node.results))
            stored = params_of(node.op)
            params = decode(node.op_name, stored, tuple(shape for _, shape in ins), tuple(outs), foreign)
            accept_blocks(CANDIDATES[node.op_name], params, ins, outs, sizes)


def _sizes(placements: Placements, node: Node) -> dict[int, int]:
    """Each placed index -> how many of its values one device has."""
    sizes: dict[int, int] = {}
    placement = placements.nodes[node.number].placement
    for index in {index for index, _ in placement}:
        here = [factor for at, factor in placement if at == index]
        sizes[index] = padded(node.signature.indices[index].extent, here) // prod(factor.size for factor in here)
    return sizes
