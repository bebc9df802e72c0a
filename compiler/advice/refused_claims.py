"""Finds what helps if a claim is refused. Each way is tried, as the ways out of a conflict are.

a on dim 0 of `y`, so c too; tile('c', 1, 'y') is refused    -->   c on another axis; this tactic first; or c first, without
                                                                  propagation
6 rows over 4 devices                                         -->   padded=True, if that can be
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import cast

from ...dialects.ground.amounts import of_bytes
from ..cost.collectives import bytes_per_device
from ..cost.costs import price
from ..inputs.message_language import option, step
from ..plan.claims import Some, having, place
from ..plan.history import redone
from ..plan.refusals import Refused
from ..plan.seeds import Seed
from ..plan.state import State
from .stops import TRIED
from .tactic_edits import PlanStep, attempted


def advised(plan: Some, act: Callable[[Some], Some]) -> Some:
    """Applies an action to a plan. If it is refused, the error gets helps, which are tried only when the error is shown."""
    try:
        return act(plan)
    except Refused as error:
        ways = _around if error.have is not None else _padded
        helps = partial(_helps, error, partial(ways, plan, error, cast(PlanStep, act)))
        told = Refused(error.title, error.seed, error.have, error.notes, helps)
        told.among = error.among
        raise told from None


def _helps(error: Refused, ways: Callable[[], Iterator[str]]) -> Iterator[str]:
    yield from error.helps
    yield from ways()


# --- a claim in the way -----------------------------------------------------------------------------------------------------


def _around(plan: State, error: Refused, act: PlanStep) -> Iterator[str]:
    """Yields ways around an earlier claim, with the bytes that a device then receives. Each takes a whole plan to try."""
    if len(plan.source.program.nodes) > TRIED:
        yield f"another axis, or this tactic first, may help; in a program of more than {TRIED:,} ops neither is tried"
        return
    found = [*_other_axes(plan, error.seed), *_other_orders(plan, act, error)]
    for text, made in sorted(found, key=lambda each: price(each[1])):
        yield f"{text}; a device then receives {of_bytes(bytes_per_device(made))} in a call"
    if not found and error.have is not None and plan.actions[error.have.tactic].is_own:
        yield f"leave out this tactic: the program itself places `{error.seed.name}`"
    elif not found and error.have is not None:
        yield f"leave out this tactic or tactic {plan.cited(error.have.tactic)}: `{error.seed.name}` cannot have both"


def _other_axes(plan: State, seed: Seed) -> Iterator[tuple[str, State]]:
    """Yields the plans with the value on another axis."""
    axes = [axis for axis in plan.mesh if axis != seed.axis and plan.mesh[axis] > 1] if seed.dim is not None else []
    for axis in axes:
        made = attempted(plan, partial(place, seeds=[replace(seed, axis=axis)], text=""))
        # An axis that the dim is on already changes nothing.
        if made is not None and not made.actions[-1].idle:
            yield f"use the axis `{axis}` ({plan.mesh[axis]} devices)", made


def _other_orders(plan: State, act: PlanStep, error: Refused) -> Iterator[tuple[str, State]]:
    """Yields the plans in which this action comes before the one that placed the value, or in which only its claim does."""
    seed, number = error.seed, error.have.tactic if error.have is not None else -1
    if number < plan.own:
        return
    claim = f"{seed.name!r}, {seed.axis!r}" if seed.dim is None else f"{seed.name!r}, {seed.dim}, {seed.axis!r}"
    text = f"{'replicate' if seed.dim is None else 'tile'}({claim}, propagate=False)"
    first = partial(place, seeds=[seed], text=text, propagate=False)
    for said, before, after in (("apply this tactic", act, []), (f"apply {step(text)}", first, [act])):
        made = attempted(plan, partial(redone, number=number, steps=[before], keeps=True), *after)
        if made is not None:
            yield f"{said} before tactic {number + 1} ({plan.actions[number].said})", made


# --- what does not divide ---------------------------------------------------------------------------------------------------


def _padded(plan: State, error: Refused, act: PlanStep) -> Iterator[str]:
    """Yields a help to pad the dim, if it can be padded. One tactic can pad for all axes that it places on the dim."""
    del act
    seed, dim = error.seed, error.seed.dim
    if dim is None:
        return
    split = having(plan, seed.among or (seed.axis,))
    claims = {str(axis): split.table.claim(seed.value, axis) for axis in split.table.axes}
    before = {axis: claim.tactic for axis, claim in claims.items() if claim is not None and claim.at == dim}
    before.pop(seed.axis, None)
    axes = (*before, *(axis for axis in seed.among or (seed.axis,) if axis not in before))
    pads = replace(seed, axis="", padded=True, multiple=0).over(axes, split.mesh)
    if not before:
        if not seed.padded and attempted(plan, partial(place, seeds=pads, text="")) is not None:
            yield f"or have it padded: add {option('padded')} to this tactic"
        return
    text = f"tile({seed.name!r}, {dim}, {axes!r}, padded=True)"
    number, *more = {*before.values()}
    at_once = partial(redone, number=number, steps=[partial(place, seeds=pads, text=text)], keeps=False)
    if number >= plan.own and not more and attempted(plan, at_once) is not None:
        instead = f"in place of tactic {plan.cited(number)}"
        yield f"place all axes of the dim at once, which pads for all of them: {step(text)}, {instead}"
