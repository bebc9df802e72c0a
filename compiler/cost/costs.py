"""The cost of a call, in bytes and flops, as parts that can be added and subtracted; and its price, to compare plans.

4,500,000 bytes over data, and as many over pod, which is slow   -->   0.1 ms + 0.72 ms on a v5e

If two plans of one program differ in few places, the cost of one follows from the other's: the cost of these places in the
other plan is subtracted, and their cost in this plan is added.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto

from ...rewrites.decide.decide import Move
from ...rewrites.decide.price import Price, charged, computed, seconds
from ...rewrites.program.program import Node, Program
from ...rewrites.redistribute.steps import Bytes
from ..plan.state import State
from .as_lowered import sent, trips_around
from .counts import most
from .device_sets import crossing_by_axes, made_again
from .flops import flops_per_device, of_each_op

Axes = tuple[str, ...]


class Amount(Enum):
    """What is counted beside the bytes over each axis. Of an op whose flops are unknown, each element that it reads counts.

    Flops that a device only saves because an op was moved to an axis that no claim reaches are counted apart (`charged`).
    """

    COLLECTIVES = auto()
    FLOPS = auto()
    UNKNOWN_FLOPS = auto()
    SPARED_FLOPS = auto()
    HELD = auto()


@dataclass(frozen=True, slots=True)
class Cost:
    """What one device receives, by axes, computes and holds in one run of each region."""

    program: Program
    amounts: Mapping[tuple[Axes | Amount, int], Bytes]

    @property
    def bytes(self) -> int:
        """The bytes that a device receives in a call, as in `bytes_per_device`."""
        return round(self._most((size, region) for (_, region), size in self.received()))

    @property
    def flops(self) -> int:
        """The known flops of a device in a call, without those that several loops over one range compute again."""
        return int(self._most((flops, region) for (what, region), flops in self.amounts.items() if what is Amount.FLOPS))

    def received(self) -> Iterator[tuple[tuple[Axes, int], Bytes]]:
        """Yields the bytes received, each with its axes and region."""
        return (((what, region), size) for (what, region), size in self.amounts.items() if isinstance(what, tuple))

    def over(self, axes: Collection[str]) -> int:
        """The bytes of `bytes` that are received over some axes alone."""
        return round(self._most((size, region) for (each, region), size in self.received() if {*each} <= {*axes}))

    def likely(self, *of: Amount) -> int:
        """An amount of a call, with the trips that loops are taken to have."""
        trips = self.program.likely_trips
        return int(sum(each * trips(region) for (what, region), each in self.amounts.items() if what in of))

    def instead(self, less: "Cost", more: "Cost") -> "Cost":
        """Returns this cost with the part `less` subtracted and the part `more` added."""
        amounts = dict(self.amounts)
        for sign, part in ((-1, less), (1, more)):
            for key, each in part.amounts.items():
                amounts[key] = amounts.get(key, 0) + sign * each
        return Cost(self.program, amounts)

    def _most(self, parts: Iterable[tuple[Bytes, int]]) -> Bytes:
        program = self.program
        return most((each * program.trips(region), program.where(region)) for each, region in parts)


def cost(plan: State) -> Cost:
    """The cost of a call of the plan. What crosses between device sets is received over the axes along which it crosses.

    What a set makes again, it computes too.
    """
    return plan.once(_whole)


def _whole(plan: State) -> Cost:
    made = cost_of(plan, plan.decisions.moves, [*plan.source.program.nodes, *(each.node for each in made_again(plan))])
    if plan.table.sets is None:
        return made
    crossing = {(axes, 0): size for axes, size in crossing_by_axes(plan).items()}
    return replace(made, amounts={**made.amounts, **crossing})


def cost_of(plan: State, moves: Iterable[Move], nodes: Iterable[Node]) -> Cost:
    """The cost of some redistributions and some ops of a plan."""
    program, placements, flops = plan.source.program, plan.decisions.placements, plan.once(of_each_op)
    amounts, held = defaultdict[tuple[Axes | Amount, int], Bytes](int), 0
    for move in moves:
        for step, part, often in sent(plan, move):
            amounts[step.names, move.region] += part * often
            amounts[Amount.COLLECTIVES, move.region] += often
    for node in nodes:
        placed, known = placements.nodes[node.number], flops[node.number]
        if known is None:
            amounts[Amount.UNKNOWN_FLOPS, node.region] += computed(node, placed)
        elif known:
            amounts[Amount.FLOPS, node.region] += known * trips_around(plan, node)
        if node.number in placements.elsewhere:
            amounts[Amount.SPARED_FLOPS, node.region] += charged(placements, node, placed) - computed(node, placed)
        for value, layout in zip(node.results, placed.produced, strict=True):
            held += placements.local_bytes(value, layout)
    return Cost(program, {**amounts, (Amount.HELD, 0): held})


def price(plan: State, of: Cost | None = None) -> Price:
    """The price of a call, by which plans are compared. Bytes over slow axes take longer.

    Of a plan, it counts what its loops compute again.
    """
    again = 0
    if of is None:
        of = cost(plan)
        again = flops_per_device(plan).known - of.flops if plan.mesh.loops else 0
    over: dict[Axes, Bytes] = {}
    for (axes, region), size in of.received():
        over[axes] = over.get(axes, 0) + size * of.program.likely_trips(region)
    made = price_over(plan, over, again + of.likely(Amount.FLOPS, Amount.UNKNOWN_FLOPS, Amount.SPARED_FLOPS))
    return made._replace(collectives=of.likely(Amount.COLLECTIVES), held=of.likely(Amount.HELD))


def price_over(plan: State, over: Mapping[Axes, Bytes], computed: int) -> Price:
    """The price of bytes over axes, and of flops."""
    slow = sum(size for axes, size in over.items() if plan.decided.mesh.is_slow(axes))
    received = sum(over.values())
    return Price(seconds(plan.mesh, received, slow, computed), 0, 0, received)
