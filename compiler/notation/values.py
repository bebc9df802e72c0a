"""The walk over terms: the code of each, by the kind of term that it is."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...dialects.dtypes import dtype_of
from .code import Code
from .folds import fold
from .reads import read
from .terms import Apply, Cast, Fold, Index, Mask, Number, Position, Read, Term, dtype, settled
from .value import Value, alongside, chosen

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
                return read(self, term)
            case Cast(arg, wanted):
                value = self.term(arg)
                if isinstance(arg, Number) and not -(2**31) <= arg.value < 2**31:
                    return Value(code.call("notation.literal", arg.value, wanted), ())
                return replace(value, code=code.call("lax.convert_element_type", value.code, wanted), number=False)
            case Mask(condition):
                return self.term(condition)
            case Fold():
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
