"""The dataflow graph of a plan, with nodes merged that are alike: equal kernels, and redistributions between the same ends.

Barriers, which only order nodes, are passed through. So a graph of 96 layers has as many nodes here as one of 2.

    main_0, all_gather, main_1, all_gather, main_1, ...   -->   main_0, all_gather x 96, main_1 x 96
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp

from ..graph.graph import Graph
from ..graph.nodes import Node
from ..inputs.names import name_parts
from ..views.listing import starred
from .string_table import Json, Pools


@dataclass(slots=True)
class Alike:
    """A group of nodes that are shown as one."""

    number: int
    kind: str
    name: str
    detail: str
    nodes: list[Node] = field(default_factory=list[Node])


def kernels_json(graph: Graph, pools: Pools) -> Json:
    """The merged nodes, the edges between them, and all nodes in order of issue."""
    makers = _makers(graph.nodes)
    found, of = _alike(graph, makers)
    edges: dict[tuple[int, int], list[int]] = {}
    for node in graph.nodes:
        for value in dict.fromkeys(node.operands) if node.kind != "barrier" else ():
            source, target = of[makers[value.name]], of[node.number]
            if source != target:
                flow = edges.setdefault((source, target), [0, 0])
                flow[0] += 1
                flow[1] += value.bytes
    return {
        "nodes": [_node(each, pools) for each in found],
        "edges": [[source, target, *flow] for (source, target), flow in edges.items()],
        "issue": [of[node.number] for node in graph.nodes if node.kind in ("kernel", "redistribute", "transfer")],
        "sets": [name for name in graph.sets if name],
        "barriers": sum(node.kind == "barrier" for node in graph.nodes),
    }


def _alike(graph: Graph, makers: Mapping[str, int]) -> tuple[list[Alike], dict[int, int]]:
    """Groups nodes that are alike. Returns the groups, and for each node the number of its group.

    The detail of a kernel is what it computes, that of a redistribution what it sends.
    """
    groups: dict[object, Alike] = {}
    of: dict[int, int] = {}
    details: dict[str, str] = {}
    for node in graph.nodes:
        if node.kind == "barrier":
            continue
        name, detail, before = _name(node), "", tuple[int, ...]()
        if node.kind == "kernel":
            if name not in details:
                details[name] = _computes(graph.kernels[name])
            detail = details[name]
        elif node.kind in ("redistribute", "transfer"):
            detail = ", ".join([_without_set(starred(str(each))) for each in node.collectives])
            before = tuple([of[makers[value.name]] for value in node.operands])
        key = node.kind, name, detail, before, node.sets
        group = groups.get(key)
        if group is None:
            group = groups[key] = Alike(len(groups), node.kind, name, detail)
        group.nodes.append(node)
        of[node.number] = group.number
    return list(groups.values()), of


def _computes(kernel: FuncOp) -> str:
    """The most frequent ops of a kernel: `3 dot_general, tanh`."""
    ops = Counter[str]()
    for name, count in Counter(op.name for op in kernel.body.walk() if op.results).items():
        ops[name.partition(".")[2]] += count
    return ", ".join(name if count == 1 else f"{count} {name}" for name, count in ops.most_common(5))


def _without_set(text: str) -> str:
    """A text in which axes are named without their device set, which the node says."""
    return re.sub(r"@\w+", "", text)


def _makers(nodes: Iterable[Node]) -> dict[str, int]:
    """Maps each value to the node that makes it, seen through barriers."""
    found: dict[str, int] = {}
    for node in nodes:
        for position, value in enumerate(node.results):
            found[value.name] = found[node.operands[position].name] if node.kind == "barrier" else node.number
    return found


def _name(node: Node) -> str:
    """The shown name of a node. Of an argument or a result it is only the start of the path, which many share."""
    if node.kind in ("argument", "result"):
        return "/".join(name_parts(node.name)[: 2 if node.kind == "result" else 1])
    return node.name if node.kind == "kernel" else ""


def _node(each: Alike, pools: Pools) -> Json:
    """The data of a group: its kind, name, detail, number of nodes, and the bytes that a device receives in all of them."""
    first = each.nodes[0]
    types: Sequence[str] = [value.type for value in (first.results if each.kind != "result" else first.operands)]
    return {
        "kind": each.kind,
        "name": pools.text(each.name),
        "detail": pools.text(each.detail),
        "count": len(each.nodes),
        "bytes": sum(node.bytes for node in each.nodes if node.collectives or node.kind == "transfer"),
        "on": first.sets,
        "axes": list(dict.fromkeys(axis for exchange in first.collectives for axis in map(_without_set, exchange.axes))),
        "type": pools.text(", ".join(types[:3]) + (", …" if len(types) > 3 else "")),
    }
