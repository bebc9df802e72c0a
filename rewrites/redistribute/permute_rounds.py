"""Rounds: permutes that exchange pieces between devices and together take no longer than the busiest device needs.

In a permute a device sends one piece and receives one. Pieces may be cut, so by Birkhoff and König there are rounds whose
lengths add up to the most that one device sends or receives in all:

    0 -> 1: 2 units, 0 -> 2: 1, 1 -> 2: 1   -->   1 unit: 0 -> 1 and 1 -> 2;  1 unit: 0 -> 1;  1 unit: 0 -> 2
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple, TypeAlias

Pair: TypeAlias = tuple[int, int]
"""(sender, receiver)."""


class Round(NamedTuple):
    """A permute in which no device sends or receives more than `units`.

    Each pair comes with the number of units that it exchanges.
    """

    units: int
    pairs: tuple[tuple[Pair, int], ...]


def ends(pair: Pair) -> tuple[int, int]:
    """The two ends of a pair, as numbers that differ: that of the sender, and the complement of that of the receiver."""
    return pair[0], ~pair[1]


def shift(pairs: Iterable[Pair], count: int) -> int:
    """1 if each of so many devices sends to the next one, -1 if each sends to the one before it; otherwise 0."""
    found, onward = {*pairs}, {*pairwise(range(count))}
    return 1 if found == onward else -1 if {pair[::-1] for pair in found} == onward else 0


def busiest(weights: Mapping[Pair, int]) -> int:
    """The most units that one device sends or receives: a lower bound for the length of all rounds."""
    return max(_loads(weights).values(), default=0)


def rounds(weights: Mapping[Pair, int]) -> list[Round]:
    """The rounds that exchange these pieces. Their units add up to `busiest`."""
    left, found = dict(weights), list[Round]()
    while left:
        matching, units = _widest(left)
        found.append(Round(units, tuple(sorted((pair, min(units, left[pair])) for pair in matching))))
        for pair in matching:
            left[pair] -= units
        left = {pair: units for pair, units in left.items() if units > 0}
    return found


def _loads(weights: Mapping[Pair, int]) -> Counter[int]:
    """The number of units at each end."""
    loads = Counter[int]()
    for pair, units in weights.items():
        for end in ends(pair):
            loads[end] += units
    return loads


def _widest(left: Mapping[Pair, int]) -> tuple[list[Pair], int]:
    """A matching for the longest round after which no device is left with more units than the busiest has then."""
    loads = _loads(left)
    most = max(loads.values())
    lengths = sorted({*left.values(), *(most - load for load in loads.values())} - {0})

    def needs(units: int) -> set[int]:
        """The ends that cannot skip a round."""
        return {end for end, load in loads.items() if load > most - units}

    # A bipartite graph has a matching of its busiest vertices.
    units = lengths[bisect_left(lengths, True, 1, key=lambda units: _matching(left, needs(units), units) is None) - 1]
    matching = _matching(left, needs(units), units)
    assert matching is not None, "it was found"
    return matching, units


def _matching(left: Mapping[Pair, int], needs: set[int], units: int) -> list[Pair] | None:
    """Finds disjoint pairs that include each end that cannot skip a round of `units`; None if there are no such pairs."""
    # A pair with an end that cannot skip the round must fill the round.
    edges: dict[int, list[int]] = {}
    for pair, weight in sorted(left.items(), key=lambda item: -item[1]):
        sender, receiver = ends(pair)
        if weight >= units or needs.isdisjoint((sender, receiver)):
            edges.setdefault(sender, []).append(receiver)
            edges.setdefault(receiver, []).append(sender)
    match: dict[int, int] = {}

    def augment(end: int, seen: set[int]) -> bool:
        for other in edges.get(end, ()):
            if other in seen:
                continue
            seen.add(other)
            holder = match.get(other)
            if holder is None or augment(holder, seen) or holder not in needs:
                if holder is not None and match.get(holder) == other:
                    del match[holder]
                match[end], match[other] = other, end
                return True
        return False

    # Senders come first.
    if not all(end in match or augment(end, set()) for end in sorted(needs, key=lambda end: (end < 0, abs(end)))):
        return None
    for sender in (each for each in sorted(edges) if each >= 0 and each not in match):
        if (free := next((other for other in edges[sender] if other not in match), None)) is not None:
            match[sender], match[free] = free, sender
    return [(sender, ~other) for sender, other in match.items() if sender >= 0]
