"""Converts JAX parameters to the IR's, and back.

    {"dimension_numbers": (((1,), (0,)), ((), ())), "precision": None, "out_sharding": None, ...}
    <-->  {dimension_numbers = (((1,), (0,)), ((), ()))}

Enums, dtypes and named tuples become records. A definition says which parameters have a default, and which ones follow from
the types: extents, and the result's dtype. A parameter without a text form, such as a function or the body of
a `while`, stays in a list beside the program, and the text has its index in the list: `foreign(index=0)`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, cast

import numpy as np
from jax import lax
from jax.extend.core import Primitive

from ...dialects.definitions.local_params import restore
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Definition
from ...dialects.ground.errors import Error
from ...dialects.params import Literal, ParamsAttr, Record
from ..jax_private import GatherScatterMode, jnp
from .primitives import find_primitive, name_of

Shape = tuple[int, ...]
ArrayLike = tuple[str, Shape]
"""The dtype and shape of an array."""

# The parameters of a `lax.whole` in addition to those of its primitive.
PARAMS_OF_WHOLE = frozenset({"primitive", "in_keys", "out_keys", "once", "placed", "why"})

_ENUMS: Mapping[str, type[Enum]] = {
    kind.__name__: kind
    for kind in (
        GatherScatterMode,
        lax.AccuracyMode,
        lax.DotAlgorithmPreset,
        lax.FftType,
        lax.Precision,
        lax.RandomAlgorithm,
        lax.RoundingMethod,
    )
}
_TUPLES: Mapping[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (
        lax.ConvDimensionNumbers,
        lax.DotAlgorithm,
        lax.GatherDimensionNumbers,
        lax.RaggedDotDimensionNumbers,
        lax.ScatterDimensionNumbers,
    )
}


class Foreign:
    """The parameters of a program that have no text form, each stored once."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._index: dict[int, int] = {}

    def record(self, value: object) -> Record:
        """The record that stands for `value`: `foreign(index=0)`."""
        index = self._index.setdefault(id(value), len(self.values))
        if index == len(self.values):
            self.values.append(value)
        return Record("foreign", (("index", index),))


OP_NAMES: dict[str, str] = {}
"""The names of ops whose primitives are called otherwise, because a user has defined them under another name."""


def op_name(primitive: str) -> str:
    """The op name of a primitive: `scatter-add` --> `scatter_add`."""
    return OP_NAMES.get(primitive) or primitive.replace("-", "_")


def encode(params: Mapping[str, object], foreign: Foreign, definition: Definition | None = None) -> ParamsAttr:
    """Converts a primitive's parameters to the IR's, without those that its definition implies."""
    dropped, defaults = ((), ()) if definition is None else (definition.dropped, definition.defaults)
    stored = {key: to_literal(value, foreign) for key, value in params.items() if key not in dropped}
    return ParamsAttr.of(**dict(each for each in stored.items() if each not in defaults))


def to_literal(value: object, foreign: Foreign) -> Literal:
    """Converts one parameter to the IR's form."""
    match value:
        case None | bool() | str():
            return value
        case Enum() if type(value).__name__ in _ENUMS:
            return Record(type(value).__name__, (("name", value.name),))
        case np.bool():
            return bool(cast(int, value))
        case int() | np.integer():
            return int(cast(int, value))
        case float() | np.floating():
            return float(cast(float, value))
        case Primitive():
            return Record("primitive", (("name", name_of(value)),))
        case np.dtype() if value.isbuiltin or value.kind in "Vf":
            return Record("dtype", (("name", cast("np.dtype[Any]", value).name),))
        case _ if (kind := type(value).__name__) in _TUPLES:
            names: Sequence[str] = [field.name for field in fields(value)] if is_dataclass(value) else cast(Any, value)._fields
            return Record(kind, tuple((name, to_literal(getattr(value, name), foreign)) for name in names))
        case _ if type(value) in (tuple, list):
            return tuple(to_literal(each, foreign) for each in cast("Sequence[object]", value))
        case _:
            return foreign.record(value)


def foreign_at(record: Record, foreign: Sequence[object]) -> object:
    """The parameter for which a record stands. Raises Error in a program that was read from text, which has none of them."""
    number = cast(int, record["index"])
    if number < len(foreign):
        return foreign[number]
    title = "the program has a parameter that has no text, such as the function of a callback, so its text cannot be run"
    raise Error(title, helps=["run the plan, or the graph, that has printed the text"])


def from_literal(value: Literal, foreign: Sequence[object] = ()) -> object:
    """Converts one parameter to JAX's form."""
    match value:
        case tuple():
            return tuple(from_literal(each, foreign) for each in value)
        case Record("foreign"):
            return foreign_at(value, foreign)
        case Record("primitive"):
            return find_primitive(cast(str, value["name"]))
        case Record("dtype"):
            return jnp.dtype(cast(str, value["name"]))
        case Record(name) if name in _ENUMS:
            return _ENUMS[name][cast(str, value["name"])]
        case Record(name, fields):
            return _TUPLES[name](**{field: from_literal(each, foreign) for field, each in fields})
        case _:
            return value


def decode(
    name: str, params: ParamsAttr, in_shapes: tuple[Shape, ...], outs: tuple[ArrayLike, ...], foreign: Sequence[object] = ()
) -> dict[str, object]:
    """Returns the JAX parameters of `lax.NAME` for operands and results of these (local) types."""
    return {key: from_literal(each, foreign) for key, each in _every(name, params, in_shapes, outs)}


@lru_cache(maxsize=1 << 14)
def _every(
    name: str, params: ParamsAttr, in_shapes: tuple[Shape, ...], outs: tuple[ArrayLike, ...]
) -> tuple[tuple[str, Literal], ...]:
    """The parameters, including those that the definition implies."""
    definition = definitions.get(name)
    if definition is None:
        return params.items()
    every = {**dict(definition.defaults), **dict(params.items()), **restore(definition, params, in_shapes, outs)}
    return tuple(every.items())
