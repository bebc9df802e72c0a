"""The vocabulary, found from structure: the rows of the tables that inputs look up, and the dims of the heads that make logits.

x = params["embed"][tokens]             -->   embed.0: the tokens of the batch look rows up
logits = x @ params["head"]; max of it  -->   head.1: as long as a table, and first folded by an op that is no product
"""

from collections.abc import Iterator

from ...dialects.definitions.requirement_terms import Lookup
from ...dialects.ground.dtypes import is_integer
from ...rewrites.program.breadth_first import reached
from ...rewrites.program.program import Node
from ..plan.state import State
from .products import Passes, Spot, is_product


def vocabulary(plan: State) -> list[Spot]:
    """The parameters that have the vocabulary, each with the dim: first tables, then heads."""
    passes = Passes(plan)
    found = dict.fromkeys(_tables(passes))
    extents = {plan.source.program.shape(value)[dim] for value, dim in found}
    heads = dict.fromkeys(_heads(passes, extents))
    longest = {plan.source.program.shape(value)[dim] for value, dim in heads} or extents
    return list(dict.fromkeys([spot for spot in found if plan.source.program.shape(spot[0])[spot[1]] in longest] + [*heads]))


def _tables(passes: Passes) -> Iterator[Spot]:
    """Yields the parameters in which an input looks up rows, each with the dim."""
    program = passes.plan.source.program
    for node in program.nodes:
        indices = node.signature.indices
        if node.is_border or not any(index.parts(Lookup) for index in indices) or not passes.is_forward(node):
            continue
        table = passes.parameter(node.operands[0])
        for dim, digits in enumerate(node.signature.operand_dims[0]) if table is not None else ():
            looked_up = len(digits) == 1 and indices[digits[0].at].parts(Lookup) and indices[digits[0].at].folds
            if looked_up and _reads_input(passes, node) and (spot := passes.on_parameter(node.operands[0], dim)) is not None:
                yield spot


def _reads_input(passes: Passes, node: Node) -> bool:
    """Whether the ids that an op looks up come from an input, or from integers that a call gives to the next one."""
    program = passes.plan.source.program
    given = (value for value in reached(node.operands[1:], program.made_of) if program.producer[value] < 0)
    return any(value in passes.inputs or (is_integer(program.types[value].dtype) and program.shape(value)) for value in given)


def _heads(passes: Passes, extents: set[int]) -> Iterator[Spot]:
    """Yields parameters by which products make a range of such an extent, if the first op that folds it is not a product."""
    for node in passes.products():
        for position, value in enumerate(node.operands):
            if passes.parameter(value) in (None, *passes.inputs):
                continue
            for dim, digits in enumerate(node.signature.operand_dims[position]):
                at = node.signature.result_at[0].get(digits[0].at) if len(digits) == 1 else None
                if at is None or digits[0].at in node.signature.operand_at[1 - position]:
                    continue
                fold = (
                    passes.first_fold(node.results[0], at.dim)
                    if passes.plan.source.program.shape(value)[dim] in extents
                    else None
                )
                if fold is not None and not is_product(fold) and (spot := passes.on_parameter(value, dim)) is not None:
                    yield spot
