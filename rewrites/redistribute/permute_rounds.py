"""Rounds: permutes that exchange pieces between devices and together take no longer than the busiest device needs.

In a permute a device sends one piece and receives one. Pieces may be cut, so by Birkhoff and König there are rounds whose
lengths add up to the most that one device sends or receives in all:

    0 -> 1: 2 units, 0 -> 2: 1, 1 -> 2: 1   -->   1 unit: 0 -> 1 and 1 -> 2;  1 unit: 0 -> 1;  1 unit: 0 -> 2
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

Pair: TypeAlias = tuple[int, int]
"""(sender, receiver)."""


class Round(NamedTuple):
    """A permute in which no device sends or receives more than `units`.

    Each pair comes with the number of units that it exchanges.
    """

    units: int
    pairs: tuple[tuple[Pair, int], ...]


def busiest(weights: Mapping[Pair, int]) -> int:
    """The most units that one device sends or receives: a lower bound for the length of all rounds."""
    return max([0, *_loads(weights, 0).values(), *_loads(weights, 1).values()])


def rounds(weights: Mapping[Pair, int]) -> list[Round]:
    """The rounds that exchange these pieces. Their units add up to `busiest`."""
    left, found = dict(weights), list[Round]()
    while most := busiest(left):
        matching, units = _widest(left, most)
        found.append(Round(units, tuple(sorted((pair, min(units, left[pair])) for pair in matching))))
        for pair in matching:
            left[pair] -= units
        left = {pair: units for pair, units in left.items() if units > 0}
    return found


def _loads(weights: Mapping[Pair, int], end: int) -> dict[int, int]:
    loads: dict[int, int] = {}
    for pair, units in weights.items():
        loads[pair[end]] = loads.get(pair[end], 0) + units
    return loads


def _widest(left: Mapping[Pair, int], most: int) -> tuple[list[Pair], int]:
    """A matching for the longest round after which no device is left with more units than `most` minus the round's length."""
    loads = _loads(left, 0), _loads(left, 1)
    lengths = sorted({*left.values(), *(most - load for each in loads for load in each.values())} - {0})
    low, high = 0, len(lengths) - 1
    best = _matching(left, loads, most, lengths[0])
    assert best is not None, "a bipartite graph has a matching of its busiest vertices"
    while low < high:
        middle = (low + high + 1) // 2
        if (found := _matching(left, loads, most, lengths[middle])) is not None:
            best, low = found, middle
        else:
            high = middle - 1
    return best, lengths[low]


def _matching(
    left: Mapping[Pair, int], loads: tuple[dict[int, int], dict[int, int]], most: int, units: int
) -> list[Pair] | None:
    """Finds disjoint pairs that include each device that cannot skip a round of `units`; None if there are no such pairs."""
    needs = [{device for device, load in each.items() if load > most - units} for each in loads]
    # A pair with a device that cannot skip the round must fill the round.
    edges: list[dict[int, list[int]]] = [{}, {}]
    for (sender, receiver), weight in sorted(left.items(), key=lambda item: -item[1]):
        if weight >= units or (sender not in needs[0] and receiver not in needs[1]):
            edges[0].setdefault(sender, []).append(receiver)
            edges[1].setdefault(receiver, []).append(sender)
    match: list[dict[int, int]] = [{}, {}]

    def augment(side: int, device: int, seen: set[int]) -> bool:
        for other in edges[side].get(device, ()):
            if other in seen:
                continue
            seen.add(other)
            holder = match[1 - side].get(other)
            if holder is None or augment(side, holder, seen) or holder not in needs[side]:
                if holder is not None and match[side].get(holder) == other:
                    del match[side][holder]
                match[side][device], match[1 - side][other] = other, device
                return True
        return False

    for side in (0, 1):
        for device in sorted(needs[side]):
            if device not in match[side] and not augment(side, device, set()):
                return None
    for device, others in sorted(edges[0].items()):
        free = next((other for other in others if other not in match[1]), None)
        if device not in match[0] and free is not None:
            match[0][device], match[1][free] = free, device
    return list(match[0].items())
