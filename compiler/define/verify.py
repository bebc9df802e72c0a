"""Tries, on random arrays, whether an op can be partitioned as its definition says, before a program relies on it.

For each kind of call (ranks, dtypes, static parameters) every index that can be placed is placed over 2 and over 4 devices.
The op is lowered as in any program and run on one device in lockstep, and the result is compared with the unpartitioned
function. A difference is the counter-example:

    error: `softmax` does not match its definition: `d` cannot be placed
    note: over 2 blocks: x f32[8, 12] in parts of f32[8, 6]; the parts of `out` are concatenated
    note: out[0, 0] is 0.0421 at once, and 0.0817 in blocks
    help: write `d:` for a dim that cannot be partitioned
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import lcm
from typing import NoReturn

from ...dialects.params import ParamsAttr
from ..jax_private import Shaped, eval_context, jax
from ..ops.params import Foreign, encode
from .candidate import DefinitionCandidate, Unfit
from .definition_trial import Trial
from .samples import MOST_ELEMENTS, Type, array_types, candidates

Params = Mapping[str, object]

_accepted: dict[object, Trial] = {}
CANDIDATES: dict[str, DefinitionCandidate] = {}
"""Name of an op -> its accepted definition."""


def accept(candidate: DefinitionCandidate, params: Params, ins: Sequence[Shaped], outs: Sequence[Shaped]) -> None:
    """Raises Error unless the function agrees with its definition on calls of this kind: avals and static parameters."""
    _tried_on(candidate, params, array_types(ins), array_types(outs))


def accept_blocks(
    candidate: DefinitionCandidate, params: Params, ins: list[Type], outs: list[Type], sizes: Mapping[int, int]
) -> None:
    """Raises Error unless the function agrees with its definition on blocks of these sizes of the indices.

    A multiple of a size that agreed needs no trial, such as 6 after 2. A kernel with its own step size may not take smaller
    blocks.
    """
    trial = _tried_on(candidate, params, ins, outs)
    for index, size in sizes.items():
        known = trial.sizes.get(index, set[int]())
        if known and not any(size % each == 0 for each in known):
            _try_block(trial, index, size)
            known.add(size)


def _try_block(tried: Trial, index: int, size: int) -> None:
    """Tries blocks of one size, on arrays that are large enough for a block size that the function takes."""
    extent = min(lcm(size, each) for each in tried.sizes[index])
    ins, outs = tried.resized(index, extent)
    trial = replace(tried, ins=ins, outs=outs, larger=min(tried.sizes[index]))
    with eval_context(), jax.default_matmul_precision("highest"):
        try:
            trial.compare(index, extent // size)
        except Unfit as problem:
            trial.candidate.refuse(trial.variable(index), (str(problem),), size=size, larger=trial.larger)


def _tried_on(candidate: DefinitionCandidate, params: Params, ins: list[Type], outs: list[Type]) -> Trial:
    """The trial of the definition for calls of this kind, run once for each kind."""
    values = Foreign()
    stored = encode(params, values, candidate.definition)
    foreign = tuple(values.values)
    kind = tuple((dtype, tuple(n == 1 for n in shape)) for side in (ins, outs) for dtype, shape in side)
    key = (candidate.definition.name, stored, foreign, kind)
    if key in _accepted:
        return _accepted[key]
    unfit: Unfit | None = None
    with eval_context(), jax.default_matmul_precision("highest"):
        for small in candidates(candidate.definition, stored, ins, outs):
            trial = Trial(candidate, stored, foreign, *small)
            try:
                trial.run()
            except Unfit as problem:
                unfit = problem
            else:
                CANDIDATES[candidate.definition.name] = candidate
                # The accepted trial does not need its arrays any more.
                del trial.at_once
                return _accepted.setdefault(key, trial)
    return _untried(candidate, stored, unfit)


def _untried(candidate: DefinitionCandidate, stored: ParamsAttr, unfit: Unfit | None) -> NoReturn:
    """Raises Error with the reason why the definition could not be tried."""
    if unfit is not None and unfit.variable:
        numbers = (name for name, value in stored.items() if isinstance(value, int) and not isinstance(value, bool))
        extents = (f"or say which parameter is its extent: `extents {name} = |{unfit.variable}|`" for name in numbers)
        candidate.refuse(unfit.variable, (str(unfit),), extents)
    notes = (str(unfit),) if unfit else (f"its arrays have more than {MOST_ELEMENTS:,} elements",)
    helps = ("`example=` gives other shapes to try it on", "`check=False` skips the trial")
    title = f"the definition of `{candidate.title}` could not be tried"
    candidate.written.fail(candidate.title, title, *helps, notes=notes)
