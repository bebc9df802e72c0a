"""What a device receives and computes in a call, in parts that can be taken away and added; and about how long that takes.

4,500,000 bytes over data, and as many over pod, which is slow   -->   0.1 ms + 0.72 ms

Where two plans of one program differ in few places, the cost of one is that of the other, less these places, and with them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...rewrites.decide.decide import Move
from ...rewrites.redistribute.steps import Bytes
from ..plan.state import State
from .counts import most
from .flops import of_each_op

FLOPS_PER_SECOND = 197e12
BYTES_PER_SECOND = 45e9
"""Of one TPU v5e: what it computes, and what it receives over one link. They say how many flops are worth a byte."""

SLOW_BYTES_PER_SECOND = 25e9 / 4
"""What each of the four chips of a host receives over the network between pods, which they share."""

Axes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes by the axes over which they come, and flops; both by the branch or loop in which they are."""

    received: Mapping[tuple[Axes, str], Bytes]
    computed: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """What a device receives in a call, as `bytes_per_device` has it."""
        return round(most((size, where) for (_, where), size in self.received.items()))

    @property
    def flops(self) -> int:
        """What is known of what a device computes in a call, as `flops_per_device` has it."""
        return int(most((flops, where) for where, flops in self.computed.items()))

    def instead(self, less: "Cost", more: "Cost") -> "Cost":
        """This cost without a part of it, and with another part."""
        received, computed = dict(self.received), dict(self.computed)
        for sign, part in ((-1, less), (1, more)):
            for over, size in part.received.items():
                received[over] = received.get(over, 0) + sign * size
            for where, flops in part.computed.items():
                computed[where] = computed.get(where, 0) + sign * flops
        return Cost(received, computed)


def cost(plan: State) -> Cost:
    """What a call of the plan costs."""
    return plan.once(_whole)


def _whole(plan: State) -> Cost:
    return cost_of(plan, plan.decisions.moves, range(len(plan.source.program.nodes)))


def cost_of(plan: State, moves: Iterable[Move], nodes: Iterable[int]) -> Cost:
    """What some redistributions and some ops of a plan cost."""
    program, flops = plan.source.program, plan.once(of_each_op)
    received, computed = dict[tuple[Axes, str], Bytes](), dict[str, int]()
    for move in moves:
        where = program.where(move.region)
        for step in move.path.steps:
            for part in step.parts:
                received[step.names, where] = received.get((step.names, where), 0) + part * move.trips
    for number in nodes:
        if count := flops[number]:
            region = program.nodes[number].region
            where = program.where(region)
            computed[where] = computed.get(where, 0) + count * program.trips(region)
    return Cost(received, computed)


def seconds(plan: State, of: Cost | None = None) -> float:
    """About how long a TPU v5e receives and computes in a call; bytes over slow axes of the mesh take longer."""
    of = cost(plan) if of is None else of
    over: dict[Axes, list[tuple[Bytes, str]]] = {}
    for (axes, where), size in of.received.items():
        over.setdefault(axes, []).append((size, where))
    # In one order, so that equal costs take equally long.
    received = sum(
        round(most(sizes)) / (SLOW_BYTES_PER_SECOND if plan.mesh.is_slow(axes) else BYTES_PER_SECOND)
        for axes, sizes in sorted(over.items())
    )
    return received + of.flops / FLOPS_PER_SECOND
