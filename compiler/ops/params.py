"""JAX parameters as the IR's, and back.

    {"dimension_numbers": (((1,), (0,)), ((), ())), "precision": None, "out_sharding": None, ...}
    <-->  {dimension_numbers = (((1,), (0,)), ((), ()))}

Enums, dtypes and named tuples become records; a parameter that is None by default is not stored; extents and other
parameters that a definition drops follow from the types. A parameter without a text form, such as a function or the body of
a `while`, stays in a list beside the program, and the text has its index in the list: `foreign(index=0)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np
from jax import lax
from jax.extend.core import Primitive

from ...dialects.definitions.dropped_params import restore
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.tree import Definition
from ...dialects.params import Literal, ParamsAttr, Record
from ..jax_private import GatherScatterMode, jnp
from .monoids import SPELLED
from .primitives import find, name_of

Shape: TypeAlias = tuple[int, ...]
ArrayLike: TypeAlias = tuple[str, Shape]
"""The dtype and shape of an array."""

_ACCURATE = ("cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt", "tan", "tanh")

# Parameters that are stored only if they differ from this.
_DEFAULTS: Mapping[str, Mapping[str, Literal]] = {
    **{name: {"accuracy": None} for name in _ACCURATE},
    "convert_element_type": {"weak_type": False},
    "conv_general_dilated": {"precision": None},
    "dot_general": {"precision": None},
    "mul": {"out_dtype": None},
}
# Parameters that repeat the result's dtype.
_RESULT_DTYPES: Mapping[str, str] = {
    "conv_general_dilated": "preferred_element_type",
    "dot_general": "preferred_element_type",
    "ragged_dot_general": "preferred_element_type",
}
# Primitives that have no `out_sharding`, unlike the other folds, with which they share a line of definitions.
_NO_SHARDING = frozenset(each.reduce.__name__ for each in SPELLED.values() if each.reduce) - {"reduce_sum"}
# The parameters of a `lax.whole` in addition to those of its primitive.
WHOLE = frozenset({"primitive", "in_keys", "out_keys", "once", "placed", "why"})

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
    """The parameters of one program that have no text, each once."""

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
"""The ops of primitives that a user defined under another name than the primitive's."""


def op_name(primitive: str) -> str:
    """The name of the op of a primitive: `scatter-add` --> `scatter_add`."""
    return OP_NAMES.get(primitive) or primitive.replace("-", "_")


def encode(name: str, params: Mapping[str, object], foreign: Foreign, dropped: Collection[str] = ()) -> ParamsAttr:
    """The IR's form of the parameters of the primitive called `name`, without those that are `dropped`."""
    defaults = _DEFAULTS.get(name, {})
    derived = _RESULT_DTYPES.get(name)
    stored: dict[str, Literal] = {}
    for key, value in params.items():
        if key not in dropped and key != derived:
            literal = to_literal(value, foreign)
            if key not in defaults or literal != defaults[key]:
                stored[key] = literal
    return ParamsAttr.of(**stored)


def to_literal(value: object, foreign: Foreign) -> Literal:
    """One parameter in the IR's form."""
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
        case _:
            return _compound(value, foreign)


def _compound(value: object, foreign: Foreign) -> Literal:
    kind = type(value).__name__
    if kind in _TUPLES:
        names: Sequence[str] = [field.name for field in fields(value)] if is_dataclass(value) else cast(Any, value)._fields
        pairs = [(name, getattr(value, name)) for name in names]
        return Record(kind, tuple((field, to_literal(each, foreign)) for field, each in pairs))
    if kind in ("tuple", "list"):
        return tuple(to_literal(each, foreign) for each in cast("Sequence[object]", value))
    return foreign.record(value)


def from_literal(value: Literal, foreign: Sequence[object] = ()) -> object:
    """One parameter in JAX's form."""
    match value:
        case tuple():
            return tuple(from_literal(each, foreign) for each in value)
        case Record("foreign"):
            return foreign[cast(int, value["index"])]
        case Record("primitive"):
            return find(cast(str, value["name"]))
        case Record("dtype"):
            return jnp.dtype(cast(str, value["name"]))
        case Record(name) if name in _ENUMS:
            return _ENUMS[name][cast(str, value["name"])]
        case Record(name, fields):
            return _TUPLES[name](**{field: from_literal(each, foreign) for field, each in fields})
        case _:
            return value


def decode(
    name: str,
    params: ParamsAttr,
    in_shapes: tuple[Shape, ...],
    outs: tuple[ArrayLike, ...],
    foreign: Sequence[object] = (),
) -> dict[str, object]:
    """The JAX parameters of `lax.NAME` for operands and results of these (local) types."""
    if "foreign(" in params.text:
        return _decode(name, params, in_shapes, outs, foreign)
    return dict(_decoded(name, params, in_shapes, outs))


@lru_cache(maxsize=1 << 14)
def _decoded(name: str, params: ParamsAttr, in_shapes: tuple[Shape, ...], outs: tuple[ArrayLike, ...]) -> dict[str, object]:
    return _decode(name, params, in_shapes, outs, ())


def _decode(
    name: str,
    params: ParamsAttr,
    in_shapes: tuple[Shape, ...],
    outs: tuple[ArrayLike, ...],
    foreign: Sequence[object],
) -> dict[str, object]:
    literals: dict[str, Literal] = {**_DEFAULTS.get(name, {}), **dict(params.items())}
    definition: Definition | None = definitions.get(name)
    if definition is not None and name != "whole":
        bound = definition.with_arity(len(in_shapes), len(outs))
        literals |= restore(bound, params, in_shapes, tuple(shape for _, shape in outs))
    decoded = {key: from_literal(each, foreign) for key, each in literals.items()}
    if name in _NO_SHARDING:
        decoded.pop("out_sharding", None)
    if name in _RESULT_DTYPES:
        decoded[_RESULT_DTYPES[name]] = jnp.dtype(outs[0][0])
    return decoded
