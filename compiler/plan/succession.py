"""Whether the result that is taken for an argument's successor is computed from it, element by element.

step(params, m) -> (m, params), both trees alike   -->   result/0/w is computed from `m/w` alone: it is not the new `params/w`
"""

from .state import State


def mistaken(plan: State, argument: str, result: str) -> str | None:
    """The result that is computed from the argument element by element, if the one that is taken for it is not."""
    value, results = plan.source.addresses.arguments[argument], plan.source.addresses.results
    if argument_of(plan, results[result], value):
        return None
    alike = [name for name, other in results.items() if plan.source.program.types[other] is plan.source.program.types[value]]
    return next((name for name in alike if argument_of(plan, results[name], value)), None)


def argument_of(plan: State, result: int, argument: int) -> bool:
    """Whether a value is computed from another by ops that keep all of its dims."""
    program, kind = plan.source.program, _kind(plan, argument)
    ahead = [result]
    for value in ahead:
        if value == argument:
            return True
        number = program.producer[value]
        before = program.nodes[number].operands if number >= 0 and _kind(plan, value) == kind else ()
        ahead += [each for each in before if each not in ahead]
    return False


def _kind(plan: State, value: int) -> list[int]:
    """The classes of the dims of a value, in order."""
    return [plan.source.classes.of(value, dim) for dim in range(len(plan.source.program.shape(value)))]
