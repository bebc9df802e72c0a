"""JAX's primitives, by the names that programs use."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jax.extend.core import JaxprEqn, Primitive

from ..jax_private import ABSENT, lax, lowerings, platform_lowerings
from .constrain import constrain_p
from .ragged_products import grouped_dot_p, grouped_outer_p
from .store_once import stored_p
from .tag import tag_p
from .update_slice import update_slice_p

_REMEMBERED: dict[str, Primitive] = {}
_NAMES: dict[Primitive, str] = {}

Accept = Callable[[Mapping[str, Any], Sequence[Any], Sequence[Any]], None]
"""Raises Error if a definition is wrong, given JAX's parameters and the avals of operands and results."""
_ACCEPTS: dict[str, Accept] = {}


def remember(primitive: Primitive, name: str, accept: Accept | None = None) -> None:
    """Registers a user's primitive as the op of this name, for `find_primitive`.

    `accept` checks each kind of its equations before a program can contain one.
    """
    _REMEMBERED[name] = primitive
    _NAMES.setdefault(primitive, name)
    if accept is not None:
        _ACCEPTS[name] = accept


def check_equation(name: str, eqn: JaxprEqn) -> None:
    """Checks an equation of a user's op. Raises Error if its definition is wrong."""
    if name in _ACCEPTS:
        _ACCEPTS[name](eqn.params, [atom.aval for atom in eqn.invars], [var.aval for var in eqn.outvars])


def name_of(primitive: Primitive) -> str:
    """The name of a primitive in a program: its own, or `name#2` if another primitive has that name.

    JAX's primitives have distinct names. A user's primitive can have the name of any other, also of one that only another
    version of JAX has.
    """
    found = _NAMES.get(primitive)
    if found is None:
        found, number = primitive.name, 1
        while (_REMEMBERED.get(found) or _all_primitives().get(found, None if found in ABSENT else primitive)) is not primitive:
            number += 1
            found = f"{primitive.name}#{number}"
        _NAMES[primitive] = found
        _REMEMBERED.setdefault(found, primitive)
    return found


@lru_cache(maxsize=1)
def _all_primitives() -> dict[str, Primitive]:
    """Every primitive that JAX can lower, by its name and by its op's name. JAX has no other complete list."""
    tables = [lowerings, *platform_lowerings.values()]
    found: dict[str, Primitive] = {}
    for primitive in (each for table in tables for each in table):
        # JAX's own come before any that a user has added under the same name.
        found.setdefault(primitive.name, primitive)
    return {
        **{name.replace("-", "_"): each for name, each in found.items()},
        **found,
        **{each.name: each for each in (constrain_p, grouped_dot_p, grouped_outer_p, stored_p, tag_p, update_slice_p)},
    }


def is_primitive(name: str) -> bool:
    """Whether a primitive has this name: one of JAX's, or one that occurred in a program."""
    return name in _all_primitives() or name in _REMEMBERED


def op_names_of_jax() -> list[str]:
    """The op names of the primitives in `jax.lax`."""
    found = (getattr(lax, each) for each in dir(lax) if each.endswith("_p"))
    return [each.name.replace("-", "_") for each in found if isinstance(each, Primitive)]


def find_primitive(name: str) -> Primitive:
    """Finds a primitive by its name or its op's name: `scatter_add` is `scatter-add`. Raises KeyError for an unknown name."""
    return _REMEMBERED.get(name) or _all_primitives()[name]
