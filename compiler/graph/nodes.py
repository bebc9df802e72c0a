"""The nodes and edges of a graph, for people and other tools. They are read off the flow dialect, never stored."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...dialects import flow, spmd
from ...dialects.op_text import array_types
from ...dialects.types import ArrayType
from ...rewrites.lower.to_flow import change
from ...rewrites.program.run_counts import Marks, executions
from ...rewrites.redistribute.steps import Step
from ..cost.counts import CountedCollective, bytes_received as total
from .module import GraphModule


class Value(NamedTuple):
    """A value of the graph: its name in the text, its layout, and its bytes on one device."""

    name: str
    type: str
    bytes: int


class Node(NamedTuple):
    """A node: its kind (`argument`, `kernel`, `redistribute`, `transfer`, `barrier`, `result`), its operands and its results.

    `name` is the kernel's function, or the path of an argument or a result.
    """

    number: int
    kind: str
    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    collectives: tuple[CountedCollective, ...] = ()
    sets: tuple[str, ...] = ()
    """The names of its device sets, of a transfer both; none in a graph on one set."""

    @property
    def bytes(self) -> int:
        """The bytes that one device receives in one run: in the node's collectives, or from another device set.

        Of the branches of a `cond`, the most expensive counts.
        """
        return self.results[0].bytes if self.kind == "transfer" else total(self.collectives)


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that flows from the node that produces it to a node that reads it. The ends are numbers of nodes."""

    source: int
    target: int
    value: Value


def nodes(graph: GraphModule) -> tuple[Node, ...]:
    """The nodes of a graph in order of issue; arguments first, results last."""
    block = graph.op.body.block
    # The values, numbered as in the text.
    numbered: list[SSAValue] = [*block.args, *(result for op in block.ops for result in op.results)]
    values = {
        value: Value(f"%{number}", type.text, type.local.nbytes)
        for number, (value, type) in enumerate(zip(numbered, array_types(numbered), strict=True))
    }
    # They name the loops and choices of all nodes before a node.
    marks = Marks()
    found = [
        Node(number, "argument", name, (), (values[arg],))
        for number, (name, arg) in enumerate(zip(graph.arguments, block.args, strict=True))
    ]
    *ops, end = block.ops
    for op in ops:
        ins, outs = (tuple(values[each] for each in side) for side in (op.operands, op.results))
        kind = name = op.name.removeprefix("flow.")
        sent: Iterator[CountedCollective] = iter(())
        if isinstance(op, flow.KernelOp):
            name = op.name_of_kernel
            sent = counted_collectives(graph.kernels[name], marks)
        elif isinstance(op, flow.RedistributeOp):
            sent = counted_collectives(change(op), marks)
        sets = dict.fromkeys(type.on for type in array_types((*op.operands, *op.results)) if type.on)
        found.append(Node(len(found), kind, name, ins, outs, tuple(sent), tuple(sets)))
    for name, value in zip(graph.results, end.operands, strict=True):
        found.append(Node(len(found), "result", name, (values[value],), ()))
    return tuple(found)


def edges(nodes: Sequence[Node]) -> tuple[Edge, ...]:
    """One edge for each value that a node reads."""
    makers = {value.name: node.number for node in nodes for value in node.results}
    return tuple(Edge(makers[value.name], node.number, value) for node in nodes for value in dict.fromkeys(node.operands))


def counted_collectives(kernel: FuncOp, marks: Marks) -> Iterator[CountedCollective]:
    """Yields the collectives of a device-local function. Those in a loop body count once for each trip."""
    for op, times, where in executions(kernel.body.block, marks):
        if spmd.sends(type(op)):
            op = cast(spmd.Collective, op)
            kind, group = op.name.removeprefix("spmd."), op.over.size
            larger = max(cast(ArrayType, value.type).nbytes for value in (op.x, op.out))
            yield CountedCollective(kind, op.over.names, Step.known[kind].received(larger, group), times, where)
