"""The dataflow graph as a page draws it, and as a page of its own.

A plan's page merges nodes that are alike: equal kernels, and redistributions between the same ends. So a graph of 96 layers has
as many nodes there as one of 2. In the page of a graph all kernels, redistributions and transfers stay apart. Barriers, which
only order nodes, are passed through.

    main_0, all_gather, main_1, all_gather, main_1, ...   -->   main_0, all_gather x 96, main_1 x 96
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import cast

from xdsl.dialects.func import FuncOp

from ...dialects.array import mesh_of
from ...dialects.types import ArrayType
from ...rewrites.lower.loop_schedule import flops_of
from ..inputs.lines import SourceLine
from ..inputs.names import name_parts
from ..page.page import filled
from ..page.string_table import Json, Pools
from ..run.device_sets import root_of
from ..views.listing import starred
from .module import GraphModule
from .nodes import Node

ISSUED = ("kernel", "redistribute", "transfer")
"""The kinds of nodes that the controller issues, one after another."""


@dataclass(slots=True)
class Alike:
    """A group of nodes that are shown as one."""

    number: int
    kind: str
    name: str
    detail: str
    on: tuple[str, ...]
    nodes: list[Node] = field(default_factory=list[Node])


def html(graph: GraphModule, nodes: Sequence[Node]) -> str:
    """The HTML text of a graph's page. Equal graphs give equal texts."""
    pools = Pools()
    axes = {axis: size for mesh in graph.sets.values() for axis, size in mesh.axes.items()}
    drawn = kernels_json(graph, nodes, pools, apart=True)
    found = {"name": graph.name, "mesh": [list(pair) for pair in axes.items()], "whole": True, "graph": drawn}
    found |= {"programs": [], "steps": [], "layouts": [], "texts": pools.texts.items, "lines": pools.lines.items}
    return filled(f"{graph.name}, a graph on {' and '.join(map(str, graph.sets.values()))}", found)


def kernels_json(graph: GraphModule, nodes: Sequence[Node], pools: Pools, apart: bool = False) -> Json:
    """The merged nodes, the edges between them, and all nodes in order of issue; with `apart`, each issued node by itself."""
    makers, sets = _makers(nodes), _sets(graph, nodes)
    found, of = _alike(graph, nodes, makers, sets, apart)
    flops = {name: _flops(kernel) for name, kernel in graph.kernels.items()}
    edges: dict[tuple[int, int], tuple[list[int], dict[str, None]]] = {}
    for node in nodes:
        for value in dict.fromkeys(node.operands) if node.kind != "barrier" else ():
            source, target = of[makers[value.name]], of[node.number]
            if source != target:
                flow, types = edges.setdefault((source, target), ([0, 0], {}))
                flow[0] += 1
                flow[1] += value.bytes
                types[value.type] = None
    return {
        "nodes": [_node(each, flops.get(each.name), graph.lines.get(each.nodes[0].number), pools) for each in found],
        "edges": [[*ends, *flow, pools.text(_some(types))] for ends, (flow, types) in edges.items()],
        "issue": [of[node.number] for node in nodes if node.kind in ISSUED],
        "before": [list(pair) for pair in dict.fromkeys((of[one], of[other]) for one, other in _before(graph, nodes, sets))],
        "sets": [name for name in graph.sets if name],
        "meshes": [", ".join(f"{axis}={size}" for axis, size in mesh.axes.items()) for mesh in graph.sets.values()],
        "barriers": sum(node.kind == "barrier" for node in nodes),
    }


def _before(graph: GraphModule, nodes: Sequence[Node], sets: Sequence[tuple[str, ...]]) -> Iterable[tuple[int, int]]:
    """Each issued node with those that its devices run, or are sent by, just before it. Sets may share devices."""
    roots = {name: root_of(mesh) for name, mesh in graph.sets.items()}
    devices = {name: [(root.devices, number) for number in numbers] for name, (root, numbers) in roots.items()}
    last = dict[tuple[str, int], int]()
    for node in nodes:
        if node.kind in ISSUED:
            own = [*chain(*(devices[name] for name in sets[node.number] or graph.sets))]
            yield from ((number, node.number) for number in dict.fromkeys(last[each] for each in own if each in last))
            last.update(dict.fromkeys(own, node.number))


def _alike(
    graph: GraphModule, nodes: Sequence[Node], makers: Mapping[str, int], sets: Sequence[tuple[str, ...]], apart: bool
) -> tuple[list[Alike], dict[int, int]]:
    """Groups nodes that are alike. Returns the groups, and for each node the number of its group.

    The detail of a kernel is what it computes, that of a redistribution what it sends.
    """
    groups: dict[object, Alike] = {}
    of: dict[int, int] = {}
    details: dict[str, str] = {}
    for node in nodes:
        if node.kind == "barrier":
            continue
        name, detail, before = _name(node), "", tuple[int, ...]()
        if node.kind == "kernel":
            if name not in details:
                details[name] = _computes(graph.kernels[name])
            detail = details[name]
        elif node.kind in ISSUED:
            detail = ", ".join([_without_set(starred(str(each))) for each in node.collectives])
            before = tuple([of[makers[value.name]] for value in node.operands])
        key = node.kind, name, detail, before, sets[node.number], node.number if apart and node.kind in ISSUED else None
        group = groups.get(key)
        if group is None:
            group = groups[key] = Alike(len(groups), node.kind, name, detail, sets[node.number])
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


def _sets(graph: GraphModule, nodes: Sequence[Node]) -> list[tuple[str, ...]]:
    """The device sets of each node, also of arguments and results, and of kernels without any values."""
    type = graph.op.function_type
    ends = iter(cast("Sequence[ArrayType]", (*type.inputs, *type.outputs)))

    def on(node: Node) -> str:
        if node.kind == "kernel" and graph.is_joined:
            return mesh_of(graph.kernels[node.name]).devices
        return next(ends).on if node.kind in ("argument", "result") else ""

    return [node.sets or tuple(filter(None, [on(node)])) for node in nodes]


def _node(each: Alike, flops: int | None, source: SourceLine | None, pools: Pools) -> Json:
    """The data of a group: its kind, name, detail, number of nodes, and the bytes that a device receives in all of them.

    The bytes that it reads and makes, its collectives, its flops and its source line are those of the first node.
    """
    first = each.nodes[0]
    sent = Counter(_without_set(f"{one.kind} over {', '.join(one.axes)}, {one.sent}") for one in first.collectives)
    return {
        "kind": each.kind,
        "name": pools.text(each.name),
        "detail": pools.text(each.detail),
        "count": len(each.nodes),
        "bytes": sum(node.bytes for node in each.nodes if node.collectives or node.kind == "transfer"),
        "on": each.on,
        "axes": list(dict.fromkeys(axis for exchange in first.collectives for axis in map(_without_set, exchange.axes))),
        "type": pools.text(_some(value.type for value in (first.results if each.kind != "result" else first.operands))),
        "reads": sum(value.bytes for value in dict.fromkeys(first.operands)),
        "makes": sum(value.bytes for value in first.results),
        "flops": flops if each.kind == "kernel" else None,
        "sent": [pools.text(f"{count} times {said}" if count > 1 else said) for said, count in sent.items()],
        "line": pools.line(source),
        "scope": pools.text("" if source is None else source.scope),
    }


def _flops(kernel: FuncOp) -> int | None:
    """The arithmetic of a device in one run, of the ops of which it is known; None if it is known of none."""
    known = [found for op in kernel.body.block.ops if (found := flops_of(op)) is not None]
    return sum(known) if known else None


def _some(types: Iterable[str]) -> str:
    """The first three types."""
    shown = [*islice(types, 4)]
    return ", ".join(shown[:3]) + (", …" if len(shown) > 3 else "")
