"""Which arrays XLA:CPU stores, and which it computes again inside the steps that read them.

%d = sub %x %mean; %s = reduce_sum (mul %d %d); %n = mul %d %r      %d is stored for the fold, %n computes it again
%t = tanh %x; %a = mul %t %y; %b = mul %t %z                        %t is stored, because tanh is costly
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import prod

from ...rewrites.program.program import Program
from .kinds import COMPUTES_OPERANDS, Kind
from .local_arrays import LocalArray, MemoryStep, RegionSteps

NOWHERE: Set[MemoryStep] = frozenset()


def fuse(body: RegionSteps, program: Program) -> None:
    """Decides for each array of a body whether it is stored, and whether its uses compute it again."""
    for result in body.results:
        result.origin.is_result = True
    users: dict[LocalArray, list[MemoryStep]] = {}
    for step in body.steps:
        for read in step.reads:
            array = read if read.same_as is None else read.origin
            if array not in users:
                users[array] = [step]
            elif users[array][-1] is not step:
                users[array].append(step)
    runs_in: dict[MemoryStep, Set[MemoryStep]] = {}
    for step in reversed(body.steps):
        for inner in step.bodies:
            fuse(inner, program)
        found = NOWHERE
        for array in step.makes:
            inside = _settle(array, step, users.get(array, ()), runs_in, program, body.makers)
            if array.recomputed:
                found = found | inside if found else inside
        if step.traits.kind in COMPUTES_OPERANDS and not step.inside_fold:
            runs_in[step] = found | {step} if step.is_stored else found


def _settle(
    array: LocalArray,
    step: MemoryStep,
    users: Sequence[MemoryStep],
    runs_in: Mapping[MemoryStep, Set[MemoryStep]],
    program: Program,
    makers: Mapping[LocalArray, MemoryStep],
) -> Set[MemoryStep]:
    """Decides for one array, after its uses; returns the stored steps in which it could be computed again.

    `runs_in` has for each step that can compute its operands the stored steps in which it does so.
    """
    kind = step.traits.kind
    if kind is Kind.CONSTANT:
        array.recomputed = not array.is_result
        array.stored = array.is_result or any(user.kind in (Kind.CALL, Kind.REGIONS) for user in users)
        return NOWHERE
    if step.traits.with_fold and kind is Kind.MAP and len(users) == 1 and users[0].kind is Kind.FOLD and not array.is_result:
        step.inside_fold = array.recomputed = True
        array.stored = False
        return NOWHERE
    found, outside = NOWHERE, array.is_result
    for user in users:
        inside = runs_in.get(user)
        if inside is None:
            outside = True
        else:
            found = found | inside if found else inside
    if kind is Kind.MAP:
        several = len(found) + outside > 1
        array.recomputed = bool(found) and (
            not several or (not step.traits.costly and _reads_one(step, array, makers, program))
        )
        array.stored = outside or not array.recomputed
    return found


def _reads_one(step: MemoryStep, array: LocalArray, makers: Mapping[LocalArray, MemoryStep], program: Program) -> bool:
    """Whether at most one operand is as large as the result, so that computing it again reads no more than the result."""
    types = program.types
    least = prod(types[array.value].shape) if step.traits.elementwise else 2
    large = [each for each in step.reads if prod(types[each.value].shape) >= least]
    if len(large) <= 1:
        return True
    found = (makers.get(each.origin) for each in large)
    # Constants and broadcasts of a smaller array do not count.
    return sum(not (made and (made.kind is Kind.CONSTANT or made.traits.broadcasts)) for made in found) <= 1


Reads = dict[LocalArray, bool]
"""Stored arrays that are read -> whether each element is read only for the same element of the result."""


class StoredReads:
    """Finds the stored arrays that steps read: their operands, or the arrays from which operands are computed again."""

    def __init__(self, makers: Mapping[LocalArray, MemoryStep]) -> None:
        self.makers = makers
        self.known: dict[LocalArray, Reads] = {}

    def read(self, step: MemoryStep) -> Reads:
        """The stored arrays that a step reads."""
        traits = step.traits
        fuses = traits.kind in COMPUTES_OPERANDS and not step.inside_fold
        in_place = traits.elementwise or traits.kind in (Kind.UPDATE, Kind.REGIONS)
        found: Reads = {}
        for array in step.reads:
            array = array if array.same_as is None else array.origin
            if not array.recomputed or (array.stored and not fuses):
                found[array] = in_place and found.get(array, True)
            elif in_place and not found:
                found = dict(self.computed(array))
            else:
                for each, aligned in self.computed(array).items():
                    found[each] = in_place and aligned and found.get(each, True)
        return found

    def of(self, array: LocalArray, fuses: bool) -> Reads:
        """The stored arrays behind an operand; `fuses`: for a step that can compute its operands."""
        origin = array.origin
        return {origin: True} if not origin.recomputed or (origin.stored and not fuses) else self.computed(origin)

    def computed(self, array: LocalArray) -> Reads:
        """The stored arrays from which an array is computed again."""
        found = self.known.get(array)
        if found is None:
            # Only an array that a step computes is computed again.
            found = self.known[array] = self.read(self.makers[array])
        return found
