"""The functions of expressions: every elementwise op of the definitions by its name, and which dtypes JAX lets it take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...dialects.definition import Definition, Var, definitions
from ...dialects.params import NO_PARAMS, read
from ..evaluate import bind_local
from ..untyped import jax

ALIASES = {"sigmoid": "logistic", "maximum": "max", "minimum": "min"}
SPELT = {"where": ("condition", "then", "otherwise"), "relu": ("x",)}
# What these do is said by the notation itself: casts by the dtype's name, names and barriers by equations.
_APART = frozenset({"convert_element_type", "tag", "name", "eq_to", "le_to", "lt_to"})


@cache
def functions() -> Mapping[str, tuple[str, ...]]:
    """Name --> the names of its operands."""
    found = {name: tuple(each.name for each in definition.operands) for name, definition in _elementwise().items()}
    return {**found, **{alias: found[name] for alias, name in ALIASES.items()}, **SPELT}


def _elementwise() -> dict[str, Definition]:
    return {name: each for name in definitions if name not in _APART and _is_elementwise(each := definitions[name])}


def _is_elementwise(definition: Definition) -> bool:
    """One result, and every operand read at the result's own indices."""
    if definition.front or definition.at or definition.sizes or definition.ravel or len(definition.targets) != 1:
        return False
    if any(formal.variadic for formal in definition.operands) or not definition.operands:
        return False
    reads = [definition.targets[0], *definition.reads()]
    return all(read.terms == (Var("i", many=True),) for read in reads)


def params(text: str) -> Any:
    return read(f"{{{text}}}") if text else NO_PARAMS


@cache
def result(name: str, dtypes: Sequence[str], text: str) -> str:
    """The dtype of the function's result. Raises TypeError, ValueError or KeyError, with JAX's reason, for dtypes or parameters
    that it does not take."""
    given = [jax.ShapeDtypeStruct((), each) for each in dtypes]

    def apply(*args: Any) -> list[Any]:
        return bind_local(name, params(text), args, [(dtypes[0], ())])

    (made,) = jax.eval_shape(apply, *given)
    return str(made.dtype.name)
