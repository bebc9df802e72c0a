"""JAX's primitives by name, as the text of a program names them."""

from __future__ import annotations

from functools import lru_cache

from jax.extend.core import Primitive

from .tag import tag_p
from .untyped import lowerings, platform_lowerings

_REMEMBERED: dict[str, Primitive] = {}


def remember(primitive: Primitive) -> None:
    """Makes `find` know a primitive that was met in a program, such as a user's own."""
    _REMEMBERED[primitive.name] = primitive


@lru_cache(maxsize=1)
def _known() -> dict[str, Primitive]:
    """Every primitive that JAX can lower: the one complete list of them, by the names of their ops too."""
    tables = [lowerings, *platform_lowerings.values()]
    found: dict[str, Primitive] = {primitive.name: primitive for table in tables for primitive in table}
    return {**{name.replace("-", "_"): each for name, each in found.items()}, **found, "tag": tag_p}


def find(name: str) -> Primitive:
    """The primitive of this name, or of the op of this name: `scatter_add` is `scatter-add`. Raises KeyError."""
    return _REMEMBERED.get(name) or _known()[name]
