"""Flops: the arithmetic that one device does in a call, on the local shapes of its ops."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ...dialects.mesh import Mesh
from ...dialects.ranges.factor import Factor, joined
from ...rewrites.decide.device_sets import DeviceSets
from ...rewrites.decide.placements import place_op
from ...rewrites.decide.price import known_flops
from ...rewrites.program.program import Node
from ..plan.state import State
from ..views.grouping import alike
from .as_lowered import trips_around
from .counts import most
from .device_sets import made_again
from .loops import flops_as_lowered


@dataclass(frozen=True, slots=True)
class Flops:
    """A number of arithmetic operations. `known` leaves out the ops named by `unknown`, whose number is not known."""

    known: int
    unknown: tuple[str, ...] = ()

    def text(self, parts: str = "", number: Callable[[int], str] = "{:,} flops".format) -> str:
        """The number in text, followed by `parts`, and by the names of the ops that are left out."""
        known = f"{number(self.known)}{parts}"
        if not self.unknown:
            return known
        names = ", ".join(f"`{name}`" for name in self.unknown)
        return f"{known}, and those of {names}, which are unknown" if self.known else "unknown flops"

    def __str__(self) -> str:
        return self.text()


def flops_per_device(plan: State) -> Flops:
    return plan.once(_in_a_call)


def _in_a_call(plan: State) -> Flops:
    if (sets := plan.table.sets) is not None:
        return max((computed_on(plan, sets, on) for on in sets.every), key=lambda each: each.known)
    found = _sum(plan, ((some[0], each and each * len(some)) for some, each in plan.once(of_alike_ops)))
    return replace(found, known=flops_as_lowered(plan)) if plan.mesh.loops else found


def computed_on(plan: State, sets: DeviceSets, on: Mesh) -> Flops:
    """What a device of a set computes in a call, with what it makes again."""
    own = (node for node in plan.source.program.nodes if sets.ops[node.number] is on)
    return work(plan, [*own, *(each.node for each in made_again(plan) if each.on is on)])


def on_device(plan: State, node: Node) -> int | None:
    """The flops of one device in one run of an op; None if they are unknown."""
    return plan.once(of_each_op)[node.number]


def of_each_op(plan: State) -> Sequence[int | None]:
    """What one device computes each time that it runs each op."""
    found: list[int | None] = [None] * len(plan.source.program.nodes)
    for some, each in plan.once(of_alike_ops):
        for node in some:
            found[node.number] = each
    return found


def of_alike_ops(plan: State) -> Sequence[tuple[Sequence[Node], int | None]]:
    """The ops that are placed alike in one region, and what one device computes each time that it runs one of them."""
    # Ops that share a placement share a signature, which has their parameters.
    placed = plan.decisions.placements.nodes
    found = alike(plan.source.program.nodes, lambda node: (id(placed[node.number]), node.region))
    return [(some, known_flops(some[0], placed[some[0].number])) for some in found]


def in_blocks(plan: State, node: Node) -> int | None:
    """The flops of one device in one run of an op if it computed only its block of each dim, without the rims of windows."""
    placement = plan.decisions.placements.nodes[node.number].placement
    blocks = {index: _blocks(node, index, [factor for at, factor in placement if at == index]) for index, _ in placement}
    return known_flops(node, place_op(node.signature, tuple((index, blocks[index].pop(0)) for index, _ in placement)))


def _blocks(node: Node, index: int, factors: list[Factor]) -> list[Factor]:
    """The factors of an index without their halos.

    They stay as they are unless blocks cover the index, and the op can read for them.
    """
    extent = node.signature.indices[index].extent
    one = joined(extent, factors)
    if one is None or one.span < extent:
        return factors
    block = one.at(abs(one.stride))
    is_read = all(reach.outward(block) is not None for reach in node.signature.reaches(index))
    return block.parts if is_read else factors


def work(plan: State, nodes: Iterable[Node], of: Callable[[State, Node], int | None] = on_device) -> Flops:
    """The flops of one device in these ops in one call. Of the branches of a `cond`, the most expensive counts."""
    return _sum(plan, ((node, of(plan, node)) for node in nodes))


def _sum(plan: State, counts: Iterable[tuple[Node, int | None]]) -> Flops:
    """The sum of what is computed in the regions of ops."""
    program, every = plan.source.program, [*counts]
    known = [
        (count * trips_around(plan, node) * program.trips(node.region), program.where(node.region))
        for node, count in every
        if count
    ]
    return Flops(int(most(known)), tuple(dict.fromkeys(shown_op_name(node) for node, count in every if count is None)))


def shown_op_name(node: Node) -> str:
    """The name of an op's primitive, or the name that its user gave it."""
    if node.op_name == "whole":
        return str(node.params["primitive"])
    return node.signature.definition.title
