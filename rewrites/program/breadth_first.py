"""Breadth-first walks along a program."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def reached(starts: Iterable[T], after: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """Yields the starts and all that `after` leads to, each once, nearest first. `after` is called as the walk goes on."""
    found = dict.fromkeys(starts)
    ahead = [*found]
    for each in ahead:
        yield each
        for item in after(each):
            if item not in found:
                found[item] = None
                ahead.append(item)
