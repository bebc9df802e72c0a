"""Walks along a program: what is reached from some values, step by step."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def reached(starts: Iterable[T], after: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """The starts and all that comes after them, each once, the nearest first. It asks what comes after one when it goes on."""
    found = dict.fromkeys(starts)
    ahead = [*found]
    for each in ahead:
        yield each
        new = dict.fromkeys(item for item in after(each) if item not in found)
        ahead += new
        found |= new
