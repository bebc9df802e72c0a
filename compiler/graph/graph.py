"""The dataflow graph of a plan: kernels, the redistributions between them, and the values that flow along its edges.

    graph = plan.lower("collective")
    print(graph)                       the text; Graph.parse(text) reads it back
    graph.kernels                      {"main_0": its function, ...}
    graph.edges                        the values that one node produces and another reads
    graph.run(x, w1, w2)               node by node, on the plan's devices

The graph is its module in the flow dialect; nodes, edges, JSON and Graphviz text are read off it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError, VerifyException

from ...dialects import context
from ...dialects.flow import GraphOp, KernelOp, TransferOp
from ...dialects.ground.errors import Error, did_you_mean
from ...dialects.ground.validation import checked
from ...dialects.program_text import error_of, read_module
from ...rewrites.lower.materialise import Start
from ...rewrites.lower.to_flow import cut_at
from ...rewrites.program.run_counts import Marks, executions
from ..cost.counts import CountedCollective, Counts, bytes_received, count_collectives
from ..gc_pause import without_collector
from ..inputs.names import Patterns
from ..ops.shard_map import on_devices, own_collectives
from ..page.page import Page, written
from ..plan.lowering import lowered
from ..plan.state import State
from ..run.compare import Run
from .dataflow import html
from .module import GraphModule, foreign_of
from .nodes import Edge, Node, edges, nodes
from .run import CompiledGraph, Placed, stablehlo
from .saved.save import save
from .text import to_dot, to_json


@dataclass(frozen=True, eq=False)
class Graph(GraphModule):
    """A graph of kernels, made by `plan.lower` or read by `Graph.parse`. Immutable.

    `traced` is the function that it came from. A graph that was read from text has none; its `run` takes and returns the
    arrays of the graph's own arguments and results.
    """

    def __repr__(self) -> str:
        return f"<graph of {len(self.kernels)} kernel{'s' if len(self.kernels) != 1 else ''}>"

    @staticmethod
    @checked
    def parse(text: str) -> Graph:
        """Read the graph that `text()` printed. Raises Error, with the line, if the text is not a graph."""
        if not text.strip():
            raise Error("the text is not a graph: it is empty")
        try:
            module = read_module(context(), text, "graph")
            module.verify()
        except (ParseError, VerifyException) as error:
            raise error_of(error, "the text is not a graph: ") from error
        graph = Graph(module)
        if not isinstance(module.body.block.first_op, GraphOp):
            raise Error("the text is not a graph: its module does not begin with `flow.graph`")
        return graph

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The arguments, kernels, redistributions, barriers and results, in order of issue."""
        return nodes(self)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """One edge for each value that a node reads, from the node that produces it."""
        return edges(self.nodes)

    def counts(self) -> Counts:
        """Executions of each kind of collective in one run, equal to the plan's."""
        maps = ((name, each) for name, each in self._executions() if on_devices(each[0]))
        own = (found for name, each in maps for found in own_collectives([each], foreign_of(self, name)))
        return count_collectives(self._exchanges(), own)

    def bytes_per_device(self) -> int:
        """Bytes that one device receives in one run, summed over all collectives; of several device sets, the most."""
        found = dict[tuple[str, ...], list[CountedCollective]]()
        for node in self.nodes:
            found.setdefault(node.sets, []).extend(node.collectives)
        return max(map(bytes_received, found.values()), default=0)

    def transferred(self) -> dict[tuple[str, str], int]:
        """The bytes that cross from one device set to another in one run, by the names of both: all devices together."""
        found = dict[tuple[str, str], int]()
        for op in self.op.body.block.ops:
            if isinstance(op, TransferOp):
                source, target = op.ends
                ends = source.on, target.on
                found[ends] = found.get(ends, 0) + target.local.nbytes * self.sets[target.on].size
        return found

    def _exchanges(self) -> Iterator[CountedCollective]:
        return (each for node in self.nodes for each in node.collectives)

    def executions(self) -> Iterator[tuple[Operation, int, str]]:
        """Yields the ops of all kernels, in order of issue, with how often each runs and in which branches and loops."""
        return (each for _, each in self._executions())

    def _executions(self) -> Iterator[tuple[str, tuple[Operation, int, str]]]:
        """The same, each with the name of its kernel."""
        marks = Marks()
        for op in self.op.body.block.ops:
            if isinstance(op, KernelOp):
                name = op.name_of_kernel
                yield from ((name, each) for each in executions(self.kernels[name].body.block, marks))

    def text(self) -> str:
        """The text of the graph and of its kernels; `Graph.parse` and `partita-opt` read it."""
        return str(self.module) + "\n"

    def __str__(self) -> str:
        return self.text()

    def to_json(self) -> str:
        """Nodes and edges as JSON: `{"name": ..., "mesh": {...}, "nodes": [...], "edges": [...]}`."""
        return to_json(self, self.nodes, self.edges)

    def to_dot(self) -> str:
        """Nodes and edges as Graphviz text, for `dot -Tsvg`."""
        return to_dot(self, self.nodes, self.edges)

    def html(self, path: str | Path) -> None:
        """Write the graph as one page for a browser, which needs no network: what runs on which device set, and waits for what.

        It has a lane for each device set, with kernels, redistributions and transfers in the order in which they are issued.
        A click on one shows what it waits for, and in which layouts that crosses. Raises Error for a path that cannot be
        written, or that does not end in `.html`.

            html("graph.html")
        """
        written(path, self._page, "graph")

    @checked
    def show(self, height: int = 720) -> Page:
        """The page of `graph.html` inside a notebook, so many pixels high: the value of a cell's last line.

        show()   -->   the graph below the cell
        """
        return Page(self._page(), height, "graph")

    def _page(self) -> str:
        with without_collector():
            return html(self, self.nodes)

    @checked
    def kernel(self, name: str) -> FuncOp:
        """The function of a kernel. Raises Error, with the nearest names, for an unknown name."""
        found = self.kernels.get(name.removeprefix("@"))
        if found is None:
            known = ", ".join(f"`{each}`" for each in self.kernels) or "none"
            raise Error(f"the graph has no kernel `{name}`", helps=[*did_you_mean(name, self.kernels), f"its kernels: {known}"])
        return found

    @checked
    def stablehlo(self, kernel: str) -> str:
        """The StableHLO text of one kernel, on the arrays of one device; no devices are needed.

        Raises Error, with the nearest names, for an unknown name.
        """
        return stablehlo(self, self.kernel(kernel))

    @checked
    def compile(self, devices: Placed = None, donate: Patterns = ()) -> CompiledGraph:
        """A callable that runs the graph node by node; every kernel is compiled before it returns.

        `devices` are those of its device set or, by name, those of several: `{"left": jax.devices()[:2]}`. The results of the
        kernels that read them last take the buffers of the arguments in `donate`, where one is as large and lies so. Raises
        Error for a donated argument that does not exist or is static.
        """
        return CompiledGraph(self, devices, donate)

    @checked
    def save(self, path: str | Path, platforms: Sequence[str] | None = None, donate: Patterns = ()) -> None:
        """Write the graph to a file that `pt.load_compiled` runs, in a process that has none of the model's code.

        Kernels are exported by JAX, for all `platforms` (`cpu`, `tpu`, `cuda`, `rocm`; by default that of this process), and
        for any devices of these; no devices are needed to save. Large arrays that the function closes over are in a folder
        beside the file. Calls overwrite the arguments in `donate`. Raises Error for a program that calls Python, with the line.
        """
        save(self, path, platforms, donate)

    @cached_property
    def _compiled(self) -> CompiledGraph:
        return self.compile()

    # Any: the results have the tree structure that the traced function returns, which a graph does not know.
    def run(self, *args: object, **kwargs: object) -> Any:
        """Run on the first available devices; arguments and results are the function's. Returns before the devices are done."""
        return self._compiled(*args, **kwargs)


def lower(plan: State, granularity: str) -> Graph:
    """Lowers a plan to a graph, once for each granularity. Raises Error for an unknown one."""
    helps = "the program of each device is `plan.spmd()`, and what JAX makes of it `plan.compile().lower(*args)`"
    return plan.once(_lowering(cut_at(granularity, helps)))


def runner(plan: State) -> Callable[[], Run] | None:
    """What makes a plan on several device sets run, as a graph. None for a plan on one: it is one program."""
    return None if plan.table.sets is None else lower(plan, "whole").compile


@cache
def _lowering(constructor: Start) -> Callable[[State], Graph]:
    def lowering(plan: State) -> Graph:
        with without_collector():
            traced = plan.source.traced
            made = Graph(lowered(plan, constructor), traced)
            return replace(made, own=dict.fromkeys(made.kernels, traced.foreign)) if made.is_joined else made

    return lowering
