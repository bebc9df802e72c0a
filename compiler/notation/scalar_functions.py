"""The functions of expressions (every elementwise op of the definitions, by its name), and the parameters of calls.

Parameters are keywords in the text and literals in the IR.

lax.argmax(x, axes=(1,), index_dtype=i32)   -->   {axes = (1,), index_dtype = dtype(name="int32")}
round(x[i])                                 -->   {rounding_method = RoundingMethod(name="AWAY_FROM_ZERO")}
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from jax import Array

from ...dialects.definitions.operators import ARITHMETIC
from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Definition, Group, Var
from ...dialects.grammar import SyntaxNode, phrases, phrases_of
from ...dialects.ground.dtypes import long
from ...dialects.ground.errors import Error
from ...dialects.params import NO_PARAMS, ParamsAttr, literal_text, parse_params
from ...dialects.reference import scalar_functions
from ..jax_private import jax, lax
from ..ops.bind import bind_local
from ..ops.params import Foreign, encode
from .diagnostics import Text, word_of

ALIASES = {"sigmoid": "logistic", "maximum": "max", "minimum": "min"}
ACTIVATIONS = frozenset({"relu", "gelu", "silu", "softplus", "elu", "selu", "leaky_relu", "log_sigmoid"})
"""Functions of `jax.nn`."""
SPELT = {"where": ("condition", "then", "otherwise"), **dict.fromkeys(sorted(ACTIVATIONS), ("x",))}
# Ops that the notation writes in another way (casts, names, logic), or that are not JAX primitives.
_APART = frozenset("convert_element_type tag name eq_to le_to lt_to and or not enter carry leave".split())


@cache
def functions() -> Mapping[str, tuple[str, ...]]:
    """Name of a function -> the names of its operands."""
    known = (name for name in definitions if name not in _APART and _is_elementwise(definitions[name]))
    found = {name: tuple(each.name for each in definitions[name].operands) for name in known}
    return {**found, **{alias: found[name] for alias, name in ALIASES.items()}, **SPELT}


def _is_elementwise(definition: Definition) -> bool:
    """Whether there is one result and every operand is read at the result's indices."""
    if definition.front or definition.at or definition.sizes or definition.ravel or len(definition.targets) != 1:
        return False
    if any(formal.variadic for formal in definition.operands) or not definition.operands:
        return False
    reads = [definition.targets[0], *definition.reads()]
    return all(read.dims == (Group((Var("i", many=True),)),) for read in reads)


@cache
def result(name: str, dtypes: Sequence[str], text: str) -> str:
    """The dtype of the function's result. Raises TypeError, ValueError or KeyError, with JAX's reason, if it has none."""
    given = [jax.ShapeDtypeStruct((), each) for each in dtypes]

    def called(*args: Array) -> Array:
        return compute(name, text, dtypes[0], args)

    return str(jax.eval_shape(called, *given).dtype.name)


def compute(name: str, text: str, dtype: str, args: Sequence[Array]) -> Array:
    """Computes the function on arrays of one shape."""
    if name in ACTIVATIONS:
        return getattr(jax.nn, name)(*args, **dict(parameters(text).items()))
    return bind_local(name, parameters(text), args, [(dtype, ())])[0]


def arithmetic(name: str, values: Sequence[float]) -> float | None:
    """Computes the function in Python's arithmetic, where `/` is exact; None for a function that Python does not have."""
    function = ARITHMETIC[name].function if name in ARITHMETIC else {"abs": abs, "max": max, "min": min}.get(name)
    return None if function is None else function(*values)


def constant_value(name: str, values: Sequence[float]) -> float | None:
    """Computes the function on numbers, in double precision; None if only JAX can. Raises ValueError or ArithmeticError."""
    if (known := arithmetic(name, values)) is not None:
        return int(known) if all(isinstance(value, int) for value in values) else known
    if name not in definitions or not _is_real(name, len(values)):
        return None
    try:
        made = scalar_functions.apply(name, [np.asarray(value, np.float64) for value in values], NO_PARAMS, np.dtype("float64"))
    except (Error, KeyError, TypeError):
        return None
    value = float(made[0])
    if np.isnan(value) and not any(np.isnan(values)):
        raise ValueError(f"{name} is not defined there")
    return value


def _is_real(name: str, operands: int) -> bool:
    """Whether the function takes floats and returns one."""
    try:
        return result(name, ("float32",) * operands, "") == "float32"
    except (TypeError, ValueError, KeyError):
        return False


def keywords(text: Text, call: SyntaxNode) -> str:
    """The keywords of a call in the IR's form, where a dtype is a record; in the text a dtype is a bare name."""
    found: list[str] = []
    for each in phrases_of(call, "keyword"):
        said = text.said(phrases(each)[0])
        is_dtype = said == "bool" or (said.isalnum() and long(said) != said)
        value = f'dtype(name="{long(said)}")' if is_dtype else said
        found.append(f"{word_of(each)}={value}")
    return ", ".join(found)


def parameters(said: str) -> ParamsAttr:
    """Reads parameters from keywords. Raises ValueError or SyntaxError if a value is not a literal."""
    return parse_params(f"{{{said}}}") if said else NO_PARAMS


@cache
def defaults(name: str, dtypes: tuple[str, ...]) -> str:
    """The keywords of an elementwise op that is called without any: the defaults of `jax.lax`."""
    function = getattr(lax, name, None)
    try:
        jaxpr = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct((), each) for each in dtypes))
    except TypeError:
        return ""
    found = [each for each in jaxpr.jaxpr.eqns if each.primitive.name == name]
    params = encode(found[0].params, Foreign(), definitions[name]) if len(jaxpr.jaxpr.eqns) == len(found) == 1 else NO_PARAMS
    return ", ".join(keyword_texts(params))


def keyword_texts(params: ParamsAttr) -> list[str]:
    """The parameters as keywords."""
    return [f"{key}={literal_text(value)}" for key, value in params.items()]
