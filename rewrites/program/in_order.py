"""Numbers to visit in order, with those that are added on the way."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound="int | tuple[object, ...]")


class InOrder(Generic[T]):
    """What is to be visited, each once: the least comes first, also of what is added during the visits.

    3, 5, and 4 and 7 are added at 3   -->   3, 4, 5, 7
    """

    def __init__(self, items: Iterable[T] = ()) -> None:
        self.waiting = set(items)
        self.heap = [*self.waiting]
        heapq.heapify(self.heap)

    def add(self, item: T) -> None:
        """Lists an item, if it is not listed already."""
        if item not in self.waiting:
            self.waiting.add(item)
            heapq.heappush(self.heap, item)

    def update(self, items: Iterable[T]) -> None:
        """Lists all of these."""
        heap, waiting, push = self.heap, self.waiting, heapq.heappush
        for item in items:
            if item not in waiting:
                waiting.add(item)
                push(heap, item)

    def __iter__(self) -> Iterator[T]:
        heap, waiting, pop = self.heap, self.waiting, heapq.heappop
        while heap:
            item = pop(heap)
            waiting.discard(item)
            yield item

    def __bool__(self) -> bool:
        return bool(self.heap)
