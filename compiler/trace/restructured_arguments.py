"""Finds objects to which a function gives other attributes: None for an array, one attribute less, another number.

A module is a tree for JAX, and its structure is a part of that tree. What a function makes of it is lost, as an array is,
unless the function returns the object.

    net.up.bias = None         -->   `net/up/bias`
    del net.norm.mean          -->   `net/norm/mean`
    net.calls = net.calls + 1  -->   `net/calls`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import is_not

from ..inputs.names import escape, join, path_parts
from ..jax_private import jax, tree


@dataclass(frozen=True, slots=True)
class Held:
    """What an argument holds under a name: an array, a node of the tree or, if `static`, a part of the structure."""

    value: object
    within: tuple[str, ...]
    """The names of the nodes around it, from the argument inwards."""
    static: bool = False


def restructured(was: Mapping[str, Held], now: Mapping[str, Held], returned: object) -> list[str]:
    """The names of attributes that a call has removed or changed, except in objects that it returns.

    What is new and has arrays is left to the comparison of arrays: it is not lost if they are returned. Attributes whose names
    begin with `_`, and those that a `cached_property` fills, are an object's own matter. What is written into a dict or a list
    is too: a function has its own copy of these.
    """
    kept, others, found = _nodes(returned), set[str](), list[str]()
    for name in {**was, **now}:
        around = (was.get(name) or now[name]).within
        if not _differs(was.get(name), now.get(name)) or not all(
            each in was and each in now and each not in others for each in around
        ):
            continue
        others.add(name)
        nodes = [now[each].value for each in around]
        if not (nodes and isinstance(nodes[-1], (dict, list, tuple))) and kept.isdisjoint(map(id, nodes)):
            found.append(name)
    return found


def _differs(was: Held | None, now: Held | None) -> bool:
    if was is None or now is None:
        return now is None or now.static or not tree.tree_leaves(now.value)
    return was.static != now.static or (was.static and not equal(was.value, now.value))


def equal(one: object, other: object) -> bool:
    """Whether two values are equal. Those that cannot be compared, such as arrays in a structure, count as equal."""
    try:
        return one is other or bool(one == other)
    except Exception:
        return True


def held(names: Sequence[str], values: Sequence[object]) -> dict[str, Held]:
    """What the arguments hold now, by name."""
    return {at: each for name, value in zip(names, values, strict=True) for at, each in _walk(escape(name), value, ())}


def _walk(name: str, node: object, within: tuple[str, ...]) -> Iterator[tuple[str, Held]]:
    children: list[tuple[Sequence[object], object]] = tree.tree_flatten_with_path(node, is_leaf=partial(is_not, node))[0]
    if node is None or (len(children) == 1 and not children[0][0]):
        yield name, Held(node, within, static=node is None)
        return
    yield name, Held(node, within)
    inside = (*within, name)
    for keys, child in children:
        if not (isinstance(keys[-1], jax.tree_util.GetAttrKey) and path_parts(keys)[-1].startswith("_")):
            yield from _walk(join(name, *path_parts(keys)), child, inside)
    for attribute, value in _statics(node, [keys[-1] for keys, _ in children]).items():
        yield join(name, escape(attribute)), Held(value, inside, static=True)


def _statics(node: object, keys: Sequence[object]) -> dict[str, object]:
    """The attributes of an object that JAX does not see as children."""
    if not hasattr(node, "__dict__") or not any(isinstance(key, jax.tree_util.GetAttrKey) for key in keys):
        return {}
    children = set(path_parts(keys))
    return {
        name: value
        for name, value in vars(node).items()
        if name not in children
        and not name.startswith("_")
        and not isinstance(getattr(type(node), name, None), cached_property)
    }


def _nodes(returned: object) -> set[int]:
    """The ids of all objects in what a function returns. Changes of these are not lost."""
    found = set[int]()

    def seen(node: object) -> bool:
        found.add(id(node))
        return False

    tree.tree_leaves(returned, is_leaf=seen)
    return found
