"""Minimum cuts: where a pending sum costs the fewest bytes to resolve.

Of all minimum cuts the one nearest the source is returned, so that ties resolve earlier. Most graphs are tiny (a gradient's
transpose and cast, two gradients that meet in an add) and a training step has hundreds of them, so a graph library's set-up
would cost more than the cut. A few are large: a table that is looked up a thousand times, or the ops around a residual stream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from ..program.breadth_first import reached
from .preflow import Preflow, Residual

Edge = tuple[Hashable, Hashable, int]
"""An edge of a network, and its capacity."""

ENDLESS = 1 << 90
"""The capacity of an edge that no cut may take."""


@dataclass(slots=True)
class Network:
    """A directed graph with integer capacities."""

    residual: Residual = field(default_factory=lambda: defaultdict[Hashable, dict[Hashable, int]](dict))

    def edge(self, start: Hashable, end: Hashable, capacity: int = ENDLESS) -> None:
        """Adds capacity from start to end. With the default, `end` is on the source's side if `start` is."""
        self.edges([(start, end, capacity)])

    def edges(self, edges: Iterable[Edge]) -> None:
        """Adds the capacities of edges."""
        residual = self.residual
        for start, end, capacity in edges:
            out = residual[start]
            if end in out:
                out[end] += capacity
            else:
                out[end] = capacity
                residual[end].setdefault(start, 0)

    def source_side(self, source: Hashable, sink: Hashable, least: int = 0) -> set[Hashable]:
        """The nodes on the source's side of the minimum cut nearest the source: those that more flow could still reach.

        None but the source if the cut is cheaper by less than `least` than to cut all edges from the source.
        """
        if source in self.residual and sink in self.residual:
            Preflow(self.residual, source, sink).push()
        if sum(self.residual.get(source, {}).values()) < least:
            return {source}
        return {*reached([source], lambda node: (end for end, left in self.residual.get(node, {}).items() if left > 0))}
