"""What one device computes in a call: the arithmetic of its ops on their local shapes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from ...dialects.definitions.flops import flops
from ...dialects.params import NO_PARAMS, ParamsAttr
from ...rewrites.program.program import Node
from .counts import most
from .state import State


@dataclass(frozen=True, slots=True)
class Flops:
    """Arithmetic operations; `unknown` names the ops whose number is not known, and which `known` leaves out."""

    known: int
    unknown: tuple[str, ...] = ()

    def text(self, parts: str = "") -> str:
        """As a text, with `parts` after the number that is known."""
        names = ", ".join(f"`{name}`" for name in self.unknown)
        known = f"{self.known:,} flops{parts}"
        return (
            f"{known}, and those of {names}, which are unknown" if names and self.known else "unknown flops" if names else known
        )

    __str__ = text


def flops_per_device(plan: State) -> Flops:
    return work(plan, plan.source.program.nodes)


def work(plan: State, nodes: Iterable[Node]) -> Flops:
    """What one device computes in these ops in a call; of branches, the one that computes most."""
    program = plan.source.program
    counts = [(node, on_device(plan, node)) for node in nodes]
    known = [(count * program.trips(node.region), program.where(node.region)) for node, count in counts if count]
    return Flops(int(most(known)), tuple(dict.fromkeys(op_name(node) for node, count in counts if count is None)))


def on_device(plan: State, node: Node) -> int | None:
    """What one device computes each time that it runs an op; None if that is unknown."""
    placed, mesh = plan.decisions.placements.nodes[node.number], plan.mesh
    ins, outs = (tuple(layout.local_shape(mesh) for layout in side) for side in (placed.wanted, placed.produced))
    # The parameters of a border are those of its loop or branch.
    params = NO_PARAMS if node.is_border else node.op.properties.get("params", NO_PARAMS)
    return flops(node.kind, cast(ParamsAttr, params), ins, outs)


def op_name(node: Node) -> str:
    """The name of an op's primitive, or the name that a user gave it."""
    if node.kind == "whole":
        return str(cast(ParamsAttr, node.op.properties["params"])["primitive"])
    return node.signature.instance.definition.title
