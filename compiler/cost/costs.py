"""The cost of a call, in bytes and flops, as parts that can be added and subtracted; and an estimate of its time.

4,500,000 bytes over data, and as many over pod, which is slow   -->   0.1 ms + 0.72 ms on a v5e

If two plans of one program differ in few places, the cost of one follows from the other's: the cost of these places in the
other plan is subtracted, and their cost in this plan is added.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...dialects.ranges.algebra import MeshAxis
from ...rewrites.decide import price
from ...rewrites.decide.decide import Move
from ...rewrites.program.program import NodeId
from ...rewrites.redistribute.steps import Bytes
from ..plan.state import State
from .counts import most
from .flops import of_each_op

Axes = tuple[MeshAxis, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes received, by axes and by branch or loop; and flops, by branch or loop."""

    received: Mapping[tuple[Axes, str], Bytes]
    computed: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """The bytes that a device receives in a call, as in `bytes_per_device`."""
        return round(most((size, where) for (_, where), size in self.received.items()))

    @property
    def flops(self) -> int:
        """The known flops of a device in a call, as in `flops_per_device`."""
        return int(most((flops, where) for where, flops in self.computed.items()))

    def instead(self, less: "Cost", more: "Cost") -> "Cost":
        """Returns this cost with the part `less` subtracted and the part `more` added."""
        received, computed = dict(self.received), dict(self.computed)
        for sign, part in ((-1, less), (1, more)):
            for over, size in part.received.items():
                received[over] = received.get(over, 0) + sign * size
            for where, flops in part.computed.items():
                computed[where] = computed.get(where, 0) + sign * flops
        return Cost(received, computed)


def cost(plan: State) -> Cost:
    """The cost of a call of the plan."""
    return plan.once(_whole)


def _whole(plan: State) -> Cost:
    return cost_of(plan, plan.decisions.moves, (node.number for node in plan.source.program.nodes))


def cost_of(plan: State, moves: Iterable[Move], nodes: Iterable[NodeId]) -> Cost:
    """The cost of some redistributions and some ops of a plan."""
    program, flops = plan.source.program, plan.once(of_each_op)
    received, computed = dict[tuple[Axes, str], Bytes](), dict[str, int]()
    for move in moves:
        where = program.where(move.region)
        for step in move.path.steps:
            for part in step.parts:
                received[step.axes, where] = received.get((step.axes, where), 0) + part * move.trips
    for number in nodes:
        if count := flops[number]:
            region = program.nodes[number].region
            where = program.where(region)
            computed[where] = computed.get(where, 0) + count * program.trips(region)
    return Cost(received, computed)


def seconds(plan: State, of: Cost | None = None) -> float:
    """An estimate, in seconds, of the time that a chip of the mesh takes for a call. Bytes over slow axes take longer."""
    of = cost(plan) if of is None else of
    over: dict[Axes, list[tuple[Bytes, str]]] = {}
    for (axes, where), size in of.received.items():
        over.setdefault(axes, []).append((size, where))
    received = {axes: round(most(sizes)) for axes, sizes in over.items()}
    slow = sum(size for axes, size in received.items() if price.is_slow(plan.mesh, axes))
    return price.seconds(plan.mesh, sum(received.values()), slow, of.flops)
