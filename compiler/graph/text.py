"""Writes a graph for other tools: JSON for programs, Graphviz for people."""

import json
from collections.abc import Iterator, Sequence

from ..cost.counts import CountedCollective
from .module import GraphModule
from .nodes import Edge, Node, Value

_SHAPES = {
    "argument": "plain",
    "result": "plain",
    "kernel": "box",
    "redistribute": "ellipse",
    "transfer": "cds",
    "barrier": "point",
}


def to_json(graph: GraphModule, nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    """Writes nodes and edges as JSON. A node has `id`, `kind`, `name`, `operands`, `results`, `bytes` and `collectives`."""
    return json.dumps(
        {
            "name": graph.name,
            "mesh": _meshes(graph),
            "nodes": [
                {
                    "id": node.number,
                    "kind": node.kind,
                    "name": node.name,
                    "operands": [value.name for value in node.operands],
                    "results": [_value(value) for value in node.results],
                    **({"sets": node.sets} if node.sets else {}),
                    "bytes": node.bytes,
                    "collectives": [_collective(each) for each in node.collectives],
                }
                for node in nodes
            ],
            "edges": [{"from": edge.source, "to": edge.target, **_value(edge.value)} for edge in edges],
        },
        indent=1,
    )


def _meshes(graph: GraphModule) -> dict[str, object]:
    """The axes of the mesh, or those of each device set."""
    axes = {name: dict[str, object](mesh.axes) for name, mesh in graph.sets.items()}
    return axes[""] if axes.keys() == {""} else {**axes}


def _value(value: Value) -> dict[str, object]:
    return {"value": value.name, "type": value.type, "bytes": value.bytes}


def _collective(each: CountedCollective) -> dict[str, object]:
    where = {"where": each.where} if each.where else {}
    sizes = {"bytes": each.bytes, "times": each.times, "total_bytes": each.total_bytes}
    return {"kind": each.kind, "axes": list(each.axes), **sizes, **where}


def to_dot(graph: GraphModule, nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    """Writes Graphviz text.

    Kernels are boxes, redistributions are ellipses labelled with their collectives, barriers are points.
    """
    return "\n".join([f"digraph {_quoted(graph.name)} {{", *_lines(nodes, edges), "}", ""])


def _lines(nodes: Sequence[Node], edges: Sequence[Edge]) -> Iterator[str]:
    yield '  node [fontname="monospace"]; edge [fontname="monospace"];'
    for node in nodes:
        # A collective, the bytes of one run, how many runs, and where: `all_gather over data, 512 bytes x 8 trips`.
        said = [
            f"{each.kind} over {', '.join(each.axes)}, {each.sent}{f' in {each.where}' if each.where else ''}"
            for each in node.collectives
        ]
        label = said if node.kind == "redistribute" and said else [node.name, *said]
        yield f"  n{node.number} [shape={_SHAPES[node.kind]}, label={_quoted(*label)}];"
    for edge in edges:
        yield f"  n{edge.source} -> n{edge.target} [label={_quoted(edge.value.type)}];"


def _quoted(*lines: str) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'
