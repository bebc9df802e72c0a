"""The parameters of a call: keywords in the text, literals in the IR.

lax.argmax(x, axes=(1,), index_dtype=i32)   -->   {axes = (1,), index_dtype = dtype(name="int32")}
round(x[i])                                 -->   {rounding_method = RoundingMethod(name="AWAY_FROM_ZERO")}
"""

from __future__ import annotations

from functools import cache

from ...dialects.definitions.registry import definitions
from ...dialects.dtypes import long
from ...dialects.grammar import Node, kinds, phrases, words
from ...dialects.params import NO_PARAMS, ParamsAttr, read
from ..jax_private import jax, lax
from ..ops.params import Foreign, encode
from .diagnostics import Text


def keywords(text: Text, call: Node) -> str:
    """The keywords of a call in the IR's form, where a dtype is a record; in the text it is a bare name."""
    return ", ".join(f"{words(each)[0]}={_literal(text, phrases(each)[0])}" for each in kinds(call, "keyword"))


def _literal(text: Text, literal: Node) -> str:
    said = text.said(literal)
    known = said == "bool" or (said.isalnum() and long(said) != said)
    return f'dtype(name="{long(said)}")' if known else said


def parameters(said: str) -> ParamsAttr:
    """The parameters from keywords. Raises ValueError or SyntaxError if a value is not a literal."""
    return read(f"{{{said}}}") if said else NO_PARAMS


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
    return params.text[1:-1].replace(" = ", "=")
