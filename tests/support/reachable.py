"""All objects that a value holds: in fields, containers, slots and attributes."""

# An object of any kind has parts of any kind.
# pyright: reportUnknownArgumentType=false

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import FunctionType, ModuleType
from typing import Any, cast


def reachable(start: object) -> Iterator[object]:
    """Each object once. Classes, functions and modules are not entered."""
    left, seen = [start], set[int]()
    kept: list[object] = []
    while left:
        found = left.pop()
        if id(found) in seen or isinstance(found, type | FunctionType | ModuleType):
            continue
        seen.add(id(found))
        # What is made on the way must live on, or another object gets its number.
        kept.append(found)
        yield found
        left.extend(_inside(found))


def _inside(found: object) -> Iterator[object]:
    if isinstance(found, Mapping):
        for pair in cast("Mapping[object, object]", found).items():
            yield from pair
    elif isinstance(found, tuple | list | set | frozenset):
        yield from cast("set[object]", found)
    if is_dataclass(found):
        # Any: `found` is not the class, as `reachable` sees to.
        names = [each.name for each in fields(cast(Any, found))]
        yield from (cast(object, getattr(found, name, None)) for name in names)
    yield from cast("dict[str, object]", getattr(found, "__dict__", {})).values()
