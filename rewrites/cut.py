"""Minimum cuts: where a pending sum costs the fewest bytes to resolve.

Of all minimum cuts the one nearest the source is returned, so that ties resolve earlier. The graphs are tiny (a
gradient's transpose and cast, two gradients that meet in an add) and there are hundreds of them in a training step, so
the plain augmenting-path algorithm (Ford and Fulkerson, 1956) on dictionaries is enough and a graph library's set-up
would cost more than the cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

ENDLESS = 1 << 90
"""The capacity of an edge that no cut may take."""


@dataclass(slots=True)
class Network:
    """A directed graph with integer capacities."""

    residual: dict[Hashable, dict[Hashable, int]] = field(default_factory=dict[Hashable, dict[Hashable, int]])

    def edge(self, start: Hashable, end: Hashable, capacity: int = ENDLESS) -> None:
        """Add capacity from start to end."""
        out = self.residual.setdefault(start, {})
        out[end] = out.get(end, 0) + capacity
        self.residual.setdefault(end, {}).setdefault(start, 0)

    def source_side(self, source: Hashable, sink: Hashable) -> set[Hashable]:
        """The nodes on the source's side of the minimum cut nearest the source."""
        while True:
            parents = self.reach(source)
            if sink not in parents:
                return set(parents)
            self.augment(parents, source, sink)

    def reach(self, source: Hashable) -> dict[Hashable, Hashable]:
        parents: dict[Hashable, Hashable] = {source: source}
        queue = deque([source])
        while queue:
            node = queue.popleft()
            for end, capacity in self.residual.get(node, {}).items():
                if capacity > 0 and end not in parents:
                    parents[end] = node
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
            self.residual[a][b] -= flow
            self.residual[b][a] += flow
