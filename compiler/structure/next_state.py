"""Checks that the result taken for an argument's successor is computed from that argument, element by element.

step(params, m) -> (m, params), both trees alike   -->   result/0/w is computed from `m/w` alone: it is not the new `params/w`
"""

from ...rewrites.program.breadth_first import reached
from ...rewrites.program.program import ValueId
from ..plan.state import State


def mistaken(plan: State, argument: str, result: str) -> str | None:
    """The result that is computed from the argument element by element, if the one taken for its successor is not."""
    value, results = plan.source.addresses.arguments[argument], plan.source.addresses.results
    if argument_of(plan, results[result], value):
        return None
    alike = [name for name, other in results.items() if plan.source.program.types[other] is plan.source.program.types[value]]
    return next((name for name in alike if argument_of(plan, results[name], value)), None)


def argument_of(plan: State, result: ValueId, argument: ValueId) -> bool:
    """Whether a value is computed from an argument by ops that keep all of its dims."""
    made_of, dims = plan.source.program.made_of, plan.source.classes.dims
    return argument in reached([result], lambda value: made_of(value) if dims(value) == dims(argument) else ())
