"""The public functions, derived: what `partita.__all__` names, and the methods of the classes in it or that these return.

A function or a parameter that is added later is found here without a change.
"""

# A public function is of any kind.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

import inspect
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import partita as pt
from partita.compiler.views.view import View

MADE = (pt.Plan, pt.Notation)
"""Classes that only Partita makes an object of: their constructors are not public."""


@dataclass(frozen=True, slots=True)
class Public:
    """A public function; of a method, `owner` is its class."""

    name: str
    function: Callable[..., Any]
    owner: type | None

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What a caller gives; not `self`."""
        found = dict(inspect.signature(self.function).parameters)
        if self.owner is not None and not self.is_bound:
            found.pop(next(iter(found)))
        return found

    @property
    def is_bound(self) -> bool:
        """Whether it needs no object of its class."""
        return self.owner is None or isinstance(
            inspect.getattr_static(self.owner, self.name.split(".")[-1]), staticmethod | classmethod
        )


@cache
def public() -> dict[str, Public]:
    """All public functions by name: `plan`, `Tile`, `Plan.tile`, `Graph.parse`."""
    found: dict[str, Public] = {}
    left = [(name, getattr(pt, name)) for name in pt.__all__]
    seen: set[object] = set()
    while left:
        name, each = left.pop(0)
        if each in seen or (isinstance(each, type) and issubclass(each, Warning)):
            continue
        seen.add(each)
        functions = [Public(name, each, None)] if is_called(each) else []
        functions += [*methods(name, each)] if isinstance(each, type) else []
        for function in functions:
            found[function.name] = function
            left += [(its.__name__, its) for its in returned(function.function)]
    return found


def is_called(each: object) -> bool:
    return not isinstance(each, type) or ((each.__module__ == "partita" or hasattr(pt, each.__name__)) and each not in MADE)


def methods(name: str, owner: type) -> Iterator[Public]:
    """Those that the class, or a public class above it, defines for callers; a tactic's own steps are not."""
    classes = [*owner.__mro__[:2]] if owner is pt.Tactic else [owner]
    for each in classes:
        for attribute, method in vars(each).items():
            function = method.__func__ if isinstance(method, staticmethod | classmethod) else method
            own = not issubclass(owner, pt.Tactic) or owner is pt.Tactic or attribute == "__call__"
            public = attribute == "__call__" or not attribute.startswith("_")
            if own and public and isinstance(inspect.unwrap(function), types.FunctionType):
                yield Public(f"{name}.{attribute}", getattr(owner, attribute), owner)


def returned(function: Callable[..., Any]) -> list[type]:
    """The classes of ours whose objects a function returns; answers that only show themselves take nothing."""
    try:
        hint = typing.get_type_hints(function).get("return")
    except (NameError, TypeError):
        return []
    return [each for each in _classes(hint) if each.__module__.startswith("partita.") and not issubclass(each, View)]


def _classes(hint: object) -> Iterator[type]:
    origin = typing.get_origin(hint)
    if isinstance(origin or hint, type):
        yield typing.cast(type, origin or hint)
    for each in typing.get_args(hint):
        yield from _classes(each)
