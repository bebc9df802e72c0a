"""JAX's primitives by name, as the text of a program names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from jax.extend.core import JaxprEqn, Primitive

from .tag import tag_p
from .untyped import lowerings, platform_lowerings

_REMEMBERED: dict[str, Primitive] = {}


Accept: TypeAlias = Callable[[Mapping[str, Any], Sequence[Any], Sequence[Any]], None]
"""(JAX parameters, avals of the operands, avals of the results): raises Error if a definition is wrong."""
_ACCEPTS: dict[str, Accept] = {}


def remember(primitive: Primitive, name: str = "", accept: Accept | None = None) -> None:
    """Makes `find` know a primitive that was met in a program, such as a user's own, as the op of a name.

    `accept` looks at each kind of its equations before a program may hold one.
    """
    _REMEMBERED[name or primitive.name] = primitive
    if accept is not None:
        _ACCEPTS[name] = accept


def check(name: str, eqn: JaxprEqn) -> None:
    """Raises Error if the op of this name is a user's and its definition is wrong."""
    if name in _ACCEPTS:
        _ACCEPTS[name](eqn.params, [atom.aval for atom in eqn.invars], [var.aval for var in eqn.outvars])


@lru_cache(maxsize=1)
def _known() -> dict[str, Primitive]:
    """Every primitive that JAX can lower: the one complete list of them, by the names of their ops too."""
    tables = [lowerings, *platform_lowerings.values()]
    found: dict[str, Primitive] = {primitive.name: primitive for table in tables for primitive in table}
    return {**{name.replace("-", "_"): each for name, each in found.items()}, **found, "tag": tag_p}


def known(name: str) -> bool:
    """Whether JAX has a primitive of this name."""
    return name in _known()


def find(name: str) -> Primitive:
    """The primitive of this name, or of the op of this name: `scatter_add` is `scatter-add`. Raises KeyError."""
    return _REMEMBERED.get(name) or _known()[name]
