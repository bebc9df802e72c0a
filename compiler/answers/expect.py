"""`plan.expect`: the collectives, bytes, memory and flops that a test expects of a plan, or an error that shows what differs.

plan.expect(all_gather=0, bytes_per_device="<2MiB", memory="<16GiB", replicated_flops="<1%")
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ...dialects.ground.amounts import at_most
from ...dialects.ground.errors import Error, did_you_mean
from ..advice.redundancy import redundant_flops, silent
from ..cost.collectives import Collective, bytes_per_device, collectives, counts
from ..cost.counts import Counts
from ..cost.flops import flops_per_device
from ..cost.memory import memory, peak_bytes
from ..inputs.budgets import BYTES, FLOPS, NUMBER, SHARE, Budget, budget
from ..inputs.checks import count_of
from ..plan.state import State

MOST_COLLECTIVES = 20
"""The most collectives that an error lists."""
MOST_PARTS = 3
"""The most parts of another quantity that an error lists."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that a test can expect of a plan: its units, how to compute and print it, and its largest parts."""

    units: Mapping[str, float]
    of: Callable[[State], float]
    shown: Callable[[float], str]
    parts: Callable[[State], Sequence[object]]


def expect(plan: State, wanted: Mapping[str, int | str]) -> None:
    """Raises Error if the plan's counts or quantities differ from the wanted ones, with what they consist of.

    Branches count too: of each `cond` the branch with the most.
    """
    kinds = counts(plan)
    asked = [(name, each := _quantity(name, kinds), _limit(name, given, each)) for name, given in wanted.items()]
    wrong, notes = list[str](), list[object]()
    for name, quantity, limit in asked:
        if not limit.holds(have := quantity.of(plan)):
            exact = not limit.sign and name in QUANTITIES
            bound = f"exactly {limit} (a bound is written '<{limit}')" if exact else limit
            wrong.append(f"{name}: {quantity.shown(have)}, expected {bound}")
            notes += quantity.parts(plan)
    if wrong:
        title = f"the plan differs from what is expected: {'; '.join(wrong)}"
        helps = ["`plan.explain(value)` says which tactic decided"]
        raise Error(title, notes=at_most(MOST_COLLECTIVES, notes), helps=helps)


def _quantity(name: str, kinds: Counts) -> Quantity:
    """Finds a quantity by its name, or the count of a kind of collectives. Raises Error for another name."""
    if name in QUANTITIES:
        return QUANTITIES[name]
    if name not in kinds:
        known = (*kinds, *QUANTITIES)
        raise Error(f"`{name}` is not something to expect", helps=did_you_mean(name, known, f"choose among {', '.join(known)}"))
    count = kinds[name] + kinds.in_branches.get(name, 0)
    return Quantity(NUMBER, lambda _: count, lambda _: _had(kinds, name), lambda plan: _of_kind(plan, name))


def _limit(name: str, given: int | str, quantity: Quantity) -> Budget:
    if isinstance(given, str) or name in QUANTITIES:
        return budget(name, given, quantity.units)
    return Budget("", count_of(name, given), f"{given}")


def _of_kind(plan: State, kind: str) -> Sequence[Collective]:
    return [each for each in collectives(plan) if each.kind == kind]


def _heaviest(plan: State) -> Sequence[Collective]:
    return sorted(collectives(plan), key=lambda each: each.times * each.received, reverse=True)[:MOST_PARTS]


def _flops(plan: State) -> float:
    """The known flops. They are infinite if none are known, so that an op of unknown cost alone keeps no budget."""
    found = flops_per_device(plan)
    return found.known if found.known or not found.unknown else inf


def _share(plan: State) -> float:
    total = _flops(plan)
    return redundant_flops(plan) / total if 0 < total < inf else total


def _unknown(plan: State) -> Sequence[str]:
    """The reason why no flops are known; empty if some are."""
    found = flops_per_device(plan)
    return [] if found.known else [f"the flops of {' and '.join(f'`{op}`' for op in found.unknown)} are unknown"]


def _or_unknown(form: str) -> Callable[[float], str]:
    """A format for a quantity that is infinite if it is unknown."""
    return lambda number: "unknown" if number == inf else form.format(number)


def _had(have: Counts, kind: str) -> str:
    """The count of a kind, in text: `3, 1 of them in a branch of cond#0`."""
    added = have.in_branches.get(kind, 0)
    inside = f", {added} of them in a branch of {' and '.join(have.choices(kind))}" if added else ""
    return f"{have[kind] + added}{inside}"


QUANTITIES: Mapping[str, Quantity] = {
    "bytes_per_device": Quantity(BYTES, bytes_per_device, "{:,} bytes".format, _heaviest),
    "memory": Quantity(BYTES, peak_bytes, "{:,} bytes".format, lambda plan: memory(plan).arrays[:MOST_PARTS]),
    "flops_per_device": Quantity(FLOPS, _flops, _or_unknown("{:,} flops"), _unknown),
    "replicated_flops": Quantity(
        SHARE,
        _share,
        _or_unknown("{:.2%}"),
        lambda plan: [*_unknown(plan), *(each for each in silent(plan) if each.flops)][:MOST_PARTS],
    ),
}
