"""`plan.expect`: the collectives, bytes, memory and flops that a test expects of a plan, or an error that shows what differs.

plan.expect(all_gather=0, bytes_per_device="<2MiB", memory="<16GiB", replicated_flops="<1%")
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...dialects.errors import Error, did_you_mean
from ..inputs.budgets import BYTES, FLOPS, NUMBER, SHARE, Budget, budget
from ..inputs.checks import count_of
from .collectives import Collective, bytes_per_device, collectives, counts
from .counts import Counts
from .memory import memory, peak_bytes
from .silent import redundant_flops, silent
from .state import State
from .work import flops_per_device

MOST = 20
"""The most collectives that one error shows."""
MOST_PARTS = 3
"""The most parts of another quantity that an error shows."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something of a plan that has a budget: its units, its number, that number as text, and what it is made of."""

    units: Mapping[str, float]
    of: Callable[[State], float]
    shown: Callable[[float], str]
    largest: Callable[[State], Sequence[object]]


QUANTITIES: Mapping[str, Quantity] = {
    "bytes_per_device": Quantity(BYTES, bytes_per_device, "{:,} bytes".format, lambda plan: _heaviest(plan)),
    "memory": Quantity(BYTES, peak_bytes, "{:,} bytes".format, lambda plan: memory(plan).arrays),
    "flops_per_device": Quantity(FLOPS, lambda plan: _flops(plan), "{:,} flops".format, lambda plan: ()),
    "replicated_flops": Quantity(
        SHARE, lambda plan: _share(plan), "{:.2%}".format, lambda plan: [each for each in silent(plan) if each.flops]
    ),
}


def expect(plan: State, wanted: Mapping[str, int | str]) -> None:
    """Raises Error if the plan's counts or quantities differ from the wanted ones, with what they consist of.

    Branches count too: of each `cond` the branch with the most.
    """
    kinds = counts(plan)
    budgets = {name: _budget(name, given, kinds) for name, given in wanted.items()}
    wrong, notes = dict[str, str](), list[str]()
    for name, limit in budgets.items():
        have = _have(plan, name, kinds)
        if not limit.holds(have):
            wrong[name] = f"{name}: {_said(name, have, kinds)}, expected {limit}"
            notes += [str(each) for each in _parts(plan, name)]
    if wrong:
        more = [f"and {len(notes) - MOST} more"] if len(notes) > MOST else []
        title = f"the plan differs from what is expected: {'; '.join(wrong.values())}"
        raise Error(title, notes=[*notes[:MOST], *more], helps=["`plan.explain(value)` says which tactic decided"])


def _budget(name: str, given: int | str, kinds: Counts) -> Budget:
    if name in QUANTITIES:
        return budget(name, given, QUANTITIES[name].units)
    if name not in kinds:
        known = (*kinds, *QUANTITIES)
        raise Error(f"`{name}` is not something to expect", helps=did_you_mean(name, known, f"choose among {', '.join(known)}"))
    return budget(name, given, NUMBER) if isinstance(given, str) else Budget("", count_of(name, given), f"{given}")


def _have(plan: State, name: str, kinds: Counts) -> float:
    return QUANTITIES[name].of(plan) if name in QUANTITIES else kinds[name] + kinds.in_branches.get(name, 0)


def _said(name: str, have: float, kinds: Counts) -> str:
    return QUANTITIES[name].shown(have) if name in QUANTITIES else _had(kinds, name)


def _parts(plan: State, name: str) -> Iterator[object]:
    """What a number consists of: the collectives of a kind, or the largest parts of a quantity."""
    if name in QUANTITIES:
        yield from QUANTITIES[name].largest(plan)[:MOST_PARTS]
    else:
        yield from (each for each in collectives(plan) if each.kind == name)


def _heaviest(plan: State) -> Sequence[Collective]:
    return sorted(collectives(plan), key=lambda each: each.times * each.received, reverse=True)


def _flops(plan: State) -> float:
    """The known flops; infinite if none are known, so that no budget is kept by an op of unknown cost alone."""
    found = flops_per_device(plan)
    return found.known if found.known or not found.unknown else float("inf")


def _share(plan: State) -> float:
    excess, total = redundant_flops(plan)
    return excess / total if total else 0.0 if _flops(plan) == 0 else float("inf")


def _had(have: Counts, kind: str) -> str:
    """The count of a kind: `3, 1 of them in a branch of cond#0`."""
    added = have.in_branches.get(kind, 0)
    inside = f", {added} of them in a branch of {' and '.join(have.choices(kind))}" if added else ""
    return f"{have[kind] + added}{inside}"
