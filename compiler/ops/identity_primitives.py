"""Primitives that return their operand. They compute nothing; their name and parameters carry information."""

from typing import Any, TypeVar

from jax.extend.core import Primitive

from ..jax_private import mlir

T = TypeVar("T")


# Any: JAX's primitives have no types.
def identity(name: str) -> Any:
    """Makes a new primitive that returns its operand on every platform."""
    primitive: Any = Primitive(name)
    primitive.def_impl(_operand)
    primitive.def_abstract_eval(_operand)
    mlir.register_lowering(primitive, _lower)
    return primitive


def _operand(x: T, **_: object) -> T:
    return x


def _lower(_: object, x: T, **__: object) -> list[T]:
    return [x]
