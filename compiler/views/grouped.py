"""Items that have something in common, together: ops of layers that are alike, the moves of one value."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)


def grouped(items: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    """The items by key, in the order in which they come: `a1`, `b1`, `a2`   -->   `{a: [a1, a2], b: [b1]}`."""
    found: dict[Key, list[T]] = {}
    for each in items:
        found.setdefault(key(each), []).append(each)
    return found


def alike(items: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """The items with equal keys together; those of the first item first."""
    return list(grouped(items, key).values())
