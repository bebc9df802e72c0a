"""Minimum cuts: where a pending sum costs the fewest bytes to resolve.

Of all minimum cuts the one nearest the source is returned, so that ties resolve earlier. The graphs are tiny (a
gradient's transpose and cast, two gradients that meet in an add) and there are hundreds of them in a training step, so
the plain augmenting-path algorithm (Ford and Fulkerson, 1956) on dictionaries is enough and a graph library's set-up
would cost more than the cut. A table that is looked up a thousand times is one graph with a thousand long paths; there a
flood does nearly all the work, and a preflow (`preflow.py`) the rest, as in the graph of the ops around a residual stream.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from .preflow import ENDLESS as ENDLESS, Residual, push

FEW = 50
"""The size below which paths are few and are found one by one."""


@dataclass(slots=True)
class Network:
    """A directed graph with integer capacities."""

    residual: Residual = field(default_factory=Residual)
    turns: set[tuple[Hashable, Hashable]] = field(default_factory=set[tuple[Hashable, Hashable]])
    """Edges that only keep nodes together: they lead back, and no sum moves along them."""

    def edge(self, start: Hashable, end: Hashable, capacity: int = ENDLESS) -> None:
        """Add capacity from start to end."""
        out = self.residual.setdefault(start, {})
        out[end] = out.get(end, 0) + capacity
        self.residual.setdefault(end, {}).setdefault(start, 0)

    def follows(self, start: Hashable, end: Hashable) -> None:
        """If `start` is on the source's side, `end` is too."""
        self.residual.setdefault(start, {})[end] = ENDLESS
        out = self.residual.setdefault(end, {})
        out.setdefault(start, 0)
        self.turns.add((start, end))

    def source_side(self, source: Hashable, sink: Hashable) -> set[Hashable]:
        """The nodes on the source's side of the minimum cut nearest the source."""
        if len(self.residual) > FEW:
            if self.turns:
                self.flood(source, sink)
            push(self.residual, source, sink)
        while True:
            parents = self.reach(source, sink)
            if sink not in parents:
                return set(parents)
            self.augment(parents, source, sink)

    def flood(self, source: Hashable, sink: Hashable) -> None:
        """Sends all flow straight ahead, one node at a time, and sends back the flow that cannot go on.

        This handles nearly all flow in one walk, if the graph has no cycles without its turns.
        """
        order = self.order(source)
        rank = {node: at for at, node in enumerate(order)}
        excess = dict.fromkeys(order, 0)
        came: dict[Hashable, list[tuple[Hashable, int]]] = {node: [] for node in order}
        for node in order[: rank.get(sink, 0)]:
            for end, capacity in self.residual[node].items():
                flow = capacity if node == source else min(capacity, excess[node])
                if flow > 0 and rank.get(end, -1) > rank[node]:
                    self.send(node, end, flow)
                    came[end].append((node, flow))
                    excess[node] -= flow
                    excess[end] += flow
        for node in reversed(order):
            while node not in (source, sink) and excess[node] > 0:
                before, flow = came[node].pop()
                back = min(flow, excess[node])
                self.send(node, before, back)
                excess[node] -= back
                excess[before] += back

    def order(self, source: Hashable) -> list[Hashable]:
        """The nodes reachable from the source in topological order, as far as such an order exists."""
        done: list[Hashable] = []
        seen = {source}
        stack = [(source, iter(self.residual.get(source, {})))]
        while stack:
            node, ends = stack[-1]
            for end in ends:
                if end not in seen and self.residual[node][end] > 0 and (node, end) not in self.turns:
                    seen.add(end)
                    stack.append((end, iter(self.residual[end])))
                    break
            else:
                done.append(stack.pop()[0])
        return done[::-1]

    def send(self, start: Hashable, end: Hashable, flow: int) -> None:
        """Uses capacity, which becomes capacity in the other direction."""
        self.residual[start][end] -= flow
        self.residual[end][start] += flow

    def reach(self, source: Hashable, sink: Hashable) -> dict[Hashable, Hashable]:
        """The node before each one that is reached, up to the sink."""
        parents: dict[Hashable, Hashable] = {source: source}
        queue = deque([source])
        while queue:
            node = queue.popleft()
            for end, capacity in self.residual.get(node, {}).items():
                if capacity > 0 and end not in parents:
                    parents[end] = node
                    if end == sink:
                        return parents
                    queue.append(end)
        return parents

    def augment(self, parents: dict[Hashable, Hashable], source: Hashable, sink: Hashable) -> None:
        path: list[tuple[Hashable, Hashable]] = []
        node = sink
        while node != source:
            path.append((parents[node], node))
            node = parents[node]
        flow = min(self.residual[a][b] for a, b in path)
        for a, b in path:
            self.send(a, b, flow)
