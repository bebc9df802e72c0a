"""Plans another program, in which some scopes see one micro-batch at a time, by the same tactics.

batch_norm folds over x: f32[32, 8]   -->   over each of f32[4, 8, 8], and the tactics so far are applied again
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from ...dialects.ground.errors import Error
from ...rewrites.program.program import ValueId
from ..inputs.checks import patterns_of
from ..inputs.lines import at_line
from ..inputs.names import Patterns
from ..trace.micro_batched import SPLIT
from .claims import Some, of_program, place
from .named_laws import check_scopes
from .state import State


def split_otherwise(plan: State, loop: str) -> Error | None:
    """The error if what the scopes read, or make, is not split into the micro-batches that the loop runs over; else None."""
    place, program = plan.mesh.place(loop), plan.source.program
    for node in program.nodes:
        scope = plan.source.traced.sources.written(node.op).parts
        if scope[-1:] != (SPLIT,) or plan.placed_on(place, node.number):
            continue
        within, at = "/".join(scope[:-1]), at_line(plan.source.traced.sources.get(node.op))
        shape = list(program.shape(node.operands[0]))
        return Error(
            f"the micro-batches of `{within}` are not those of the inputs: {shape}{at} has the examples in another order",
            helps=["name a scope that also holds what brings them in that order, or leave this one out"],
        )
    return None


def in_micro_batches(plan: Some, inputs: Mapping[ValueId, int], trips: int, each: Patterns) -> Some:
    """The plan of the program in which the scopes see one of so many micro-batches at a time.

    `inputs` has the dim of each input that is the batch. Raises Error if a pattern matches no scope, if nothing in the scopes
    reads the batch, and for a program that is another one already.
    """
    source = plan.source
    check_scopes(plan, each)
    if source.traced.changes:
        helps = ["name all scopes in one `each=`"]
        raise Error("the program sees one micro-batch at a time in other scopes already", helps=helps)
    numbers = {value: number for number, value in enumerate(source.program.arguments)}
    for value, dim in inputs.items():
        if (extent := source.program.shape(value)[dim]) % trips:
            name = source.addresses.names[value]
            helps = ["take a number of micro-batches that divides them; `padded=True` would be another program in each"]
            raise Error(f"the {extent} examples of `{name}` are not {trips} micro-batches of one size", helps=helps)
    dims = {numbers[value]: dim for value, dim in inputs.items()}
    traced = source.root.in_micro_batches(dims, trips, patterns_of(each))
    if not traced.changes:
        raise Error(
            f"nothing in {', '.join(f'`{glob}`' for glob in patterns_of(each))} reads the batch", helps=["leave `each` out"]
        )
    made = of_program(plan, traced, source.mesh)
    for number, action in enumerate(plan.actions[plan.own :], plan.own):
        _check_action(plan, made, number)
        made = cast(Some, cast("Callable[[State], State]", action.redo)(made))
    return made


def _check_action(plan: State, made: State, number: int) -> None:
    """Raises Error for a tactic that knows the values of the first program alone, or places one that has other dims now."""
    action, there = plan.actions[number], {name: value for value, name in made.source.addresses.names.items()}
    redo: object = action.redo
    if redo is None or (isinstance(redo, partial) and cast("partial[State]", redo).func is place):
        helps = ["apply it after `Microbatch`", "or write it as a `pt.Tactic`, which looks its values up"]
        raise Error(f"{plan.cited(number)} cannot be applied to another program", helps=helps)
    for value in () if action.is_said else action.values:
        name = plan.source.addresses.names[value]
        if (now := there.get(name)) is not None and made.source.shape(now) != plan.source.shape(value):
            text = f"{made.source.program.types[now].dtype}{list(made.source.shape(now))}"
            raise Error(
                f"{plan.cited(number)} places `{name}`, which is in the scopes of `each`: with all micro-batches it is {text}",
                helps=["apply it after `Microbatch`, to the dim that it then is", "or place an argument that it comes from"],
            )
