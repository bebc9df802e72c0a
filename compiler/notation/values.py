"""Terms as code over whole arrays: each value knows which index runs along each of its dims.

x[b, d] - m[b]   -->   x: (b, d), m: (b)   -->   _x - jnp.expand_dims(_m, (1,)): (b, d)
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ...dialects.scalars import dtype_of
from .code import Code, Expr
from .terms import Apply, Cast, Fold, Index, Mask, Number, Position, Read, Term, dtype, settled

Dims: TypeAlias = "tuple[Index | None, ...]"
"""For each dim the index that runs along it; None for a dim of extent 1 that none does."""


@dataclass(frozen=True, slots=True)
class Value:
    """Code for an array. A `number` is a Python number, which meets arrays of every rank."""

    code: Expr
    dims: Dims
    number: bool = False

    @property
    def indices(self) -> tuple[Index, ...]:
        return tuple(index for index in self.dims if index is not None)


OPERATORS: Mapping[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "div": ast.Div, "and": ast.BitAnd, "or": ast.BitOr,
}  # fmt: skip
COMPARISONS: Mapping[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE,
}  # fmt: skip
DEEPEST = 100
"""How many applications one expression of Python holds at most."""
NATURAL = {"max": "jnp.maximum", "min": "jnp.minimum", "where": "notation.choose"}
"""What a person who writes JAX would call; everything else is the primitive of its name."""


def fit(code: Code, value: Value, order: Sequence[Index | None]) -> Value:
    """The value with dims in this order, those that it does not have as dims of extent 1."""
    wanted = tuple(index if index in value.dims else None for index in order)
    if value.number or value.dims == wanted or not value.dims:
        return value
    value = transposed(code, squeezed(code, value), [index for index in wanted if index is not None])
    missing = tuple(dim for dim, index in enumerate(wanted) if index is None)
    if missing:
        value = Value(code.call("jnp.expand_dims", value.code, missing), wanted)
    return value


def squeezed(code: Code, value: Value) -> Value:
    """Without the dims along which no index runs."""
    units = tuple(dim for dim, index in enumerate(value.dims) if index is None)
    return Value(code.call("jnp.squeeze", value.code, units), value.indices) if units else value


def transposed(code: Code, value: Value, order: Sequence[Index]) -> Value:
    permutation = tuple(value.dims.index(index) for index in order)
    if permutation == tuple(range(len(order))):
        return value
    return Value(code.call("jnp.transpose", value.code, permutation), tuple(order))


def alongside(code: Code, values: Sequence[Value], order: Sequence[Index]) -> tuple[list[Value], Dims]:
    """The values with one order of dims, that of the one which has most if the others follow it."""
    dims = common([value.dims for value in values if value.dims and not value.number], order)
    return [fit(code, value, dims) for value in values], dims


def chosen(code: Code, values: Sequence[Value], order: Sequence[Index]) -> tuple[list[Value], Dims]:
    """As `alongside`, for a choice, whose operands JAX brings to one shape: leading dims that one lacks are left to it."""
    dims = common([value.dims for value in values if value.dims and not value.number], order)
    made: list[Value] = []
    for value in values:
        if value.dims and None not in value.dims:
            value = transposed(code, value, _order(value, dims))
        trailing = value.dims == dims[len(dims) - len(value.dims) :]
        made.append(value if trailing else fit(code, value, dims))
    return made, dims


def _order(value: Value, dims: Dims) -> list[Index]:
    return [index for index in dims if index is not None and index in value.dims]


def common(all_dims: Sequence[Dims], order: Sequence[Index]) -> Dims:
    if not all_dims:
        return ()
    longest = max(all_dims, key=len)
    if all(_over(dims, longest) for dims in all_dims):
        merged = [
            next((d[place] for d in all_dims if len(d) == len(longest) and d[place]), None) for place in range(len(longest))
        ]
        if len({index for index in merged if index}) == sum(index is not None for index in merged):
            return tuple(merged)
    every = list(dict.fromkeys(index for dims in all_dims for index in dims if index is not None))
    first = next((dims for dims in all_dims if set(every) <= set(dims)), None)
    if first is not None and all(_follows(dims, first) for dims in all_dims):
        return tuple(index for index in first if index is not None)
    known = [index for index in order if index in every]
    return (*known, *(index for index in every if index not in known))


def _over(dims: Dims, longest: Dims) -> bool:
    """Do the dims lie over those of the longest, one for one?"""
    return len(dims) == len(longest) and all(a is b or a is None or b is None for a, b in zip(dims, longest, strict=True))


def _follows(dims: Dims, first: Dims) -> bool:
    places = [first.index(index) for index in dims if index is not None]
    return places == sorted(places)


class Values:
    """Makes the code of terms; `order` is that of the indices on the left, which decides where nothing else does.

    `before` takes the parts of a long expression, which stand before it: Python compiles none that is nested deeply.
    """

    def __init__(self, order: Sequence[Index], before: list[ast.stmt]) -> None:
        self.order = order
        self.before = before

    def term(self, term: Term) -> Value:
        code = Code(term.span)
        match term:
            case Number(value):
                return Value(code.value(value), (), number=True)
            case Position(index):
                return Value(code.call("lax.iota", "int32", index.extent), (index,))
            case Read():
                from .reads import read

                return read(self, term)
            case Cast(arg, wanted):
                value = self.term(arg)
                if isinstance(arg, Number) and not -(2**31) <= arg.value < 2**31:
                    return Value(code.call("notation.literal", arg.value, wanted), ())
                return replace(value, code=code.call("lax.convert_element_type", value.code, wanted), number=False)
            case Mask(condition):
                return self.term(condition)
            case Fold():
                from .folds import fold

                return fold(self, term)
            case Apply():
                return self.apply(term)

    def apply(self, term: Apply) -> Value:
        """A chain of applications, from its first argument on, however long it is."""
        chain = [term]
        while isinstance(first := chain[-1].args[0], Apply):
            chain.append(first)
        made = self.term(first)
        for number, each in enumerate(reversed(chain), start=1):
            made = self.applied(each, [made, *map(self.term, each.args[1:])])
            if number % DEEPEST == 0:
                code, name = Code(each.span), f"_{len(self.before)}"
                self.before.append(code.assign([name], made.code))
                made = replace(made, code=code.name(name))
        return made

    def applied(self, term: Apply, given: Sequence[Value]) -> Value:
        code = Code(term.span)
        if term.function == "mul" and any(isinstance(arg, Mask) for arg in term.args):
            return self.masked(term, given)
        args, dims = chosen(code, given, self.order) if term.function == "where" else alongside(code, given, self.order)
        number = all(arg.number for arg in args)
        codes = [arg.code for arg in args]
        match term.function:
            # Python's own division is that of floats.
            case name if name in OPERATORS and not (name == "div" and dtype_of(term.dtype).kind in "iu"):
                made = code.binary(OPERATORS[name](), *codes)
            case name if name in COMPARISONS:
                made = code.compare(COMPARISONS[name](), *codes)
            case "neg":
                made = code.unary(ast.USub(), codes[0])
            case "not":
                made = code.unary(ast.Invert(), codes[0])
            case name if name in NATURAL:
                made, number = code.call(NATURAL[name], *codes), False
            case name:
                kinds = [settled(dtype(arg)) for arg in term.args if not isinstance(arg, Number)]
                made = code.call("notation.apply", name, term.params, (kinds or [term.dtype])[0], *codes)
        return Value(made, dims, number)

    def masked(self, term: Apply, given: Sequence[Value]) -> Value:
        """`[condition] * x`: what the condition keeps, and 0 elsewhere."""
        code = Code(term.span)
        first = isinstance(term.args[0], Mask)
        other, given = term.args[first], given if first else given[::-1]
        if isinstance(other, Mask):
            zero: Value = Value(code.value(False), (), number=True)
        else:
            zero = Value(code.value(0.0 if dtype(other) == "float32" else 0), (), number=True)
        args, dims = chosen(code, [*given, zero], self.order)
        return Value(code.call("notation.choose", *(arg.code for arg in args)), dims)
