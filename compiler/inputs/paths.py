"""Paths of the leaves of a JAX tree, as parts of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .names import escape

_FIELDS = ("key", "idx", "name")


def path(keys: Sequence[Any]) -> list[str]:
    """The parts of a leaf's name that its key path gives: `(DictKey("mlp"), SequenceKey(3))` --> `["mlp", "3"]`."""
    return [escape(_key(key)) for key in keys]


def _key(key: Any) -> object:
    # DictKey and FlattenedIndexKey hold a key, SequenceKey an idx, GetAttrKey a name; a class may register its own kind.
    return next((getattr(key, field) for field in _FIELDS if hasattr(key, field)), key)
