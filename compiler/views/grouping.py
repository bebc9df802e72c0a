"""Groups items that have something in common, such as ops of layers that are alike."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)


def grouped(items: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    """Groups items by key, in order: `a1`, `b1`, `a2`   -->   `{a: [a1, a2], b: [b1]}`."""
    found: dict[Key, list[T]] = {}
    for each in items:
        found.setdefault(key(each), []).append(each)
    return found


def alike(items: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Groups items with equal keys, in the order of the first item of each group."""
    return list(grouped(items, key).values())
