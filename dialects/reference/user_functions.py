"""The functions of ops that are defined at run time: the meaning of `@` in their definitions.

A definition says how an op may be partitioned. Its author wrote the function itself in JAX, which this room does not import. So
the caller that adds the definition also adds a function on NumPy arrays. The interpreter calls it with whole or local arrays.
"""

from collections.abc import Callable, Sequence

from ..ground.dtypes import Array
from ..params import ParamsAttr

Function = Callable[[Sequence[Array], ParamsAttr, "Sequence[tuple[str, tuple[int, ...]]]"], list[Array]]
"""Takes operands, parameters, and the dtype and shape of each result; returns the results."""

FUNCTIONS: dict[str, Function] = {}
