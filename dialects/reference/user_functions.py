"""The functions of ops that are defined at run time: what `@` in their definitions stands for.

A definition says where an op may be cut; what it computes, its author wrote in JAX, which this room does not know. So whoever
adds the definition adds a function on NumPy arrays, and the interpreter calls it with whole or with local arrays alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..dtypes import Array
from ..params import ParamsAttr

Function: TypeAlias = Callable[[Sequence[Array], ParamsAttr, "Sequence[tuple[str, tuple[int, ...]]]"], list[Array]]
"""(operands, parameters, dtype and shape of each result) -> results."""

FUNCTIONS: dict[str, Function] = {}
