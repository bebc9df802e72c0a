"""A call of JAX's, and small arrays to call it on."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from partita.compiler.ops.primitives import find_primitive

Array = Any
RANDOM = np.random.default_rng(7)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call that traces to a program with the op `op` to test."""

    op: str
    function: Callable[..., Any]
    args: tuple[Array, ...]
    what: str = ""

    def __str__(self) -> str:
        return f"{self.op}-{self.what}" if self.what else self.op


def floats(*shape: int, low: float = 0.1, high: float = 0.9) -> Array:
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def signed(*shape: int) -> Array:
    return floats(*shape, low=-2.0, high=2.0)


def ints(*shape: int, low: int = 0, high: int = 8) -> Array:
    return RANDOM.integers(low, high, shape).astype(np.int32)


def words(*shape: int) -> Array:
    return RANDOM.integers(0, 1 << 32, shape, dtype=np.uint32)


def bools(*shape: int) -> Array:
    return RANDOM.integers(0, 2, shape).astype(bool)


def prim(name: str, **params: Any) -> Callable[..., Any]:
    """The primitive itself, if no public JAX function binds it as one op."""
    return lambda *xs: find_primitive(name).bind(*map(jnp.asarray, xs), **params)
