"""What the front end of an op says: which dims of each array a group of indices takes, where `at` cannot say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Dims: TypeAlias = tuple[int | None, ...]
"""For each index of a group the dim that it takes in an array; None where it has none there (it has extent 1)."""


@dataclass(frozen=True, slots=True)
class Places:
    """What the dimension numbers say.

    `dims` says where each group of an array goes. `starts` says for each of `v..` which component of the index vector (which
    of the scalar starts) moves the window along it; None: it starts at 0. `clamps` says that a window which would leave the
    array is moved back inside, so that one over the full extent starts at 0; otherwise it is dropped.
    """

    dims: Mapping[tuple[str, str], Dims]
    starts: Dims = ()
    clamps: bool = False
