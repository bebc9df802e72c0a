"""Maximum flow of a network by the push-relabel algorithm; a node keeps as excess what it cannot send on yet.

From A. Goldberg and R. Tarjan, "A new approach to the maximum-flow problem", 1988, section 4.2: first in, first out; with exact
heights at the start, and again when many nodes have been lifted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

Residual = dict[Hashable, dict[Hashable, int]]
"""Node -> node -> the capacity that is left; each edge has an entry in both directions."""


class Preflow:
    """A preflow: more may arrive at a node than leaves it."""

    def __init__(self, residual: Residual, source: Hashable, sink: Hashable) -> None:
        self.residual, self.source, self.sink = residual, source, sink
        self.excess = dict.fromkeys(residual, 0)
        """The flow that has arrived at a node and was not sent on yet."""
        self.height: dict[Hashable, int] = {}
        """At most the number of edges to the sink. Above the source: from there, flow can only go back to the source."""
        self.active = deque[Hashable]()
        """The nodes with an excess."""

    def push(self) -> None:
        """Turns the capacities of the network into those that a maximum flow leaves.

        What arrives at each node is sent on, until all of it is at the sink or back at the source.

        a -> b: 5, b -> c: 3   -->   a -> b: 2, b -> a: 3, c -> b: 3
        """
        self.send_direct()
        for end, capacity in self.residual[self.source].items():
            self.send(self.source, end, capacity if end == self.sink else min(capacity, self.room(end)))
        if self.active:
            self.measure()
        lifted = 0
        while self.active:
            lifted += self.discharge(self.active.popleft())
            if lifted > len(self.residual) // 2:
                self.measure()
                lifted = 0

    def send_direct(self) -> None:
        """Sends what can flow over one node alone: most nodes have an edge from the source or to the sink, or both."""
        start, sink = self.residual[self.source], self.residual[self.sink]
        for end in start.keys() & sink.keys():
            out = self.residual[end]
            flow = min(start[end], out[self.sink])
            start[end] -= flow
            out[self.source] += flow
            out[self.sink] -= flow
            sink[end] += flow

    def room(self, node: Hashable) -> int:
        """The flow that can leave a node, except back to the source: more would only come back."""
        return sum(self.residual[node].values()) - self.residual[node][self.source]

    def discharge(self, node: Hashable) -> int:
        """Sends a node's excess on to lower nodes, and lifts the node where needed; returns how often it was lifted."""
        out, height, lifted = self.residual[node], self.height, 0
        while True:
            below = height[node] - 1
            for end, capacity in out.items():
                if capacity > 0 and height.get(end) == below:
                    self.send(node, end, min(capacity, self.excess[node]))
                    if not self.excess[node]:
                        return lifted
            height[node] = min(height[end] for end, capacity in out.items() if capacity > 0 and end in height) + 1
            lifted += 1

    def send(self, start: Hashable, end: Hashable, flow: int) -> None:
        """Sends flow along an edge: its capacity becomes capacity in the other direction."""
        if not flow:
            return
        self.residual[start][end] -= flow
        self.residual[end][start] += flow
        if not self.excess[end] and end not in (self.source, self.sink):
            self.active.append(end)
        self.excess[start] -= flow
        self.excess[end] += flow

    def measure(self) -> None:
        """Sets all heights to exact numbers of edges: to the sink, or else back to the source."""
        self.height = {self.source: len(self.residual), self.sink: 0}
        self.spread(self.sink)
        self.spread(self.source)

    def spread(self, root: Hashable) -> None:
        """Sets the heights of the nodes without one from which flow can get to the root."""
        ahead, residual, height = [root], self.residual, self.height
        for node in ahead:
            above = height[node] + 1
            for start in residual[node]:
                if start not in height and residual[start][node] > 0:
                    height[start] = above
                    ahead.append(start)
