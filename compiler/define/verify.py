"""Tries, on random arrays, whether an op can be partitioned as its definition says, before a program relies on it.

For each kind of call (ranks, dtypes, static parameters) every index that can be placed is placed over 2 and over 4 devices.
The op is lowered as in any program and run on one device in lockstep, and the result is compared with the unpartitioned
function. A difference is the counter-example:

    error: `softmax` does not match its definition: `d` cannot be placed
    note: over 2 blocks: x f32[8, 12] in parts of f32[8, 6]; the parts of `out` are concatenated
    note: out[0, 0] is 0.0421 at once, and 0.0817 in blocks
    help: write `d:` for a dim that cannot be partitioned
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lcm
from typing import NoReturn

from ...dialects.params import ParamsAttr
from ..jax_private import Shaped, eval_context, jax
from ..ops.params import Foreign, encode
from .candidate import Candidate, Unfit
from .compared import types_of
from .samples import LARGEST, Type, candidates
from .trial import Trial


@dataclass(frozen=True, slots=True)
class Tried:
    """A successful trial: types of operands and results, and per index the sizes of the blocks that agreed."""

    ins: list[Type]
    outs: list[Type]
    sizes: dict[int, set[int]]


_accepted: dict[object, Tried] = {}
CANDIDATES: dict[str, Candidate] = {}
"""The definitions that were accepted, by the op's name."""


def accept(candidate: Candidate, params: Mapping[str, object], ins: Sequence[Shaped], outs: Sequence[Shaped]) -> None:
    """Raises Error unless the function agrees with its definition on calls of this kind: avals and static parameters."""
    _tried_on(candidate, params, types_of(ins), types_of(outs))


def accept_blocks(
    candidate: Candidate, params: Mapping[str, object], ins: list[Type], outs: list[Type], sizes: Mapping[int, int]
) -> None:
    """Raises Error unless the function agrees with its definition on blocks of these sizes of the indices.

    A multiple of a size that agreed needs no trial: 6 after 2. A kernel with its own step size may not take smaller blocks.
    """
    tried = _tried_on(candidate, params, ins, outs)
    for index, size in sizes.items():
        known = tried.sizes.get(index, set[int]())
        if known and not any(size % each == 0 for each in known):
            _try_block(candidate, params, tried, index, size)
            known.add(size)


def _try_block(candidate: Candidate, params: Mapping[str, object], tried: Tried, index: int, size: int) -> None:
    """Tries blocks of one size, on arrays that consist of blocks of a size that the function takes."""
    stored, foreign = _stored(candidate, params)
    base = Trial(candidate, stored, foreign, tried.ins, tried.outs)
    extent = min(lcm(size, each) for each in tried.sizes[index])
    trial = Trial(candidate, stored, foreign, *base.resized(index, extent), larger=min(tried.sizes[index]))
    with eval_context(), jax.default_matmul_precision("highest"):
        try:
            trial.compare(index, extent // size)
        except Unfit as problem:
            candidate.refuse(trial.variable(index), (str(problem),), size=size, larger=trial.larger)


def _tried_on(candidate: Candidate, params: Mapping[str, object], ins: list[Type], outs: list[Type]) -> Tried:
    """The trial of the definition for calls of this kind; run once."""
    stored, foreign = _stored(candidate, params)
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
                return _accepted.setdefault(key, Tried(*small, trial.sizes))
    return _untried(candidate, stored, unfit)


def _stored(candidate: Candidate, params: Mapping[str, object]) -> tuple[ParamsAttr, tuple[object, ...]]:
    """The parameters in the IR, and those that cannot be printed."""
    foreign = Foreign()
    stored = encode(params, foreign, candidate.definition)
    return stored, tuple(foreign.values)


def _untried(candidate: Candidate, stored: ParamsAttr, unfit: Unfit | None) -> NoReturn:
    """Raises the reason why the definition could not be tried."""
    if unfit is not None and unfit.variable:
        extents = (f"or say which parameter is its extent: `extents {name} = |{unfit.variable}|`" for name in _numbers(stored))
        candidate.refuse(unfit.variable, (str(unfit),), extents)
    notes = (str(unfit),) if unfit else (f"its arrays have more than {LARGEST:,} elements",)
    helps = ("`example=` gives other shapes to try it on", "`check=False` skips the trial")
    candidate.written.fail(
        candidate.title, f"the definition of `{candidate.title}` could not be tried", notes=notes, helps=helps
    )


def _numbers(params: ParamsAttr) -> Iterator[str]:
    """The static parameters that could be extents."""
    return (name for name, value in params.items() if isinstance(value, int) and not isinstance(value, bool))
