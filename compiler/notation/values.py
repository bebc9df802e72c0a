"""The walk over terms: makes the code of each, by its kind."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dialects.definitions.signs import SIGNS
from ...dialects.definitions.tree import Apply, Fold, Group, Number, Read
from ...dialects.dtypes import dtype_of
from .code import Code
from .folds import fold
from .reads import read
from .terms import Index, Mask, Term, at, dtype, settled
from .value import Value, alongside, chosen

DEEPEST = 100
"""The most applications in one Python expression."""
NATURAL = {"max": "jnp.maximum", "min": "jnp.minimum", "where": "notation.choose"}
"""The functions that a JAX user would call; all others are the primitives of their names."""


@dataclass(frozen=True, slots=True)
class Values:
    """The `Walker`. `before` collects parts of long expressions as statements before them: Python compiles no deep nesting."""

    order: Sequence[Index]
    before: list[ast.stmt]

    def term(self, term: Term) -> Value:
        code = Code(at(term))
        match term:
            case Number(value):
                return Value(code.value(value), (), number=True)
            case Group((index,)):
                return Value(code.call("lax.iota", "int32", index.extent), (index,))
            case Read():
                return read(self, term)
            case Apply("cast", (arg,), wanted):
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
            case Group():
                raise TypeError(term)

    def apply(self, term: Apply[Term]) -> Value:
        """A chain of applications of any length, from its first argument on."""
        chain = [term]
        while isinstance(first := chain[-1].args[0], Apply) and first.function != "cast":
            chain.append(first)
        made = self.term(first)
        for number, each in enumerate(reversed(chain), start=1):
            made = self.applied(each, [made, *map(self.term, each.args[1:])])
            if number % DEEPEST == 0:
                code, name = Code(at(each)), f"_{len(self.before)}"
                self.before.append(code.assign([name], made.code))
                made = replace(made, code=code.name(name))
        return made

    def applied(self, term: Apply[Term], given: Sequence[Value]) -> Value:
        code = Code(at(term))
        if term.function == "mul" and any(isinstance(arg, Mask) for arg in term.args):
            return self.masked(term, given)
        args, dims = chosen(code, given, self.order) if term.function == "where" else alongside(code, given, self.order)
        number = all(arg.number for arg in args)
        codes = [arg.code for arg in args]
        match term.function:
            # Python's `/` divides floats.
            case name if name in SIGNS and not (name == "div" and dtype_of(term.dtype).kind in "iu"):
                made = code.sign(name, *codes)
            case name if name in NATURAL:
                made, number = code.call(NATURAL[name], *codes), False
            case name:
                kinds = [settled(dtype(arg)) for arg in term.args if not isinstance(arg, Number)]
                made = code.call("notation.apply", name, term.params, (kinds or [term.dtype])[0], *codes)
        return Value(made, dims, number)

    def masked(self, term: Apply[Term], given: Sequence[Value]) -> Value:
        """`[condition] * x`: `x` where the condition holds, and 0 elsewhere."""
        code = Code(at(term))
        first = isinstance(term.args[0], Mask)
        other, given = term.args[first], given if first else given[::-1]
        zero = False if isinstance(other, Mask) else 0.0 if dtype(other) == "float32" else 0
        args, dims = chosen(code, [*given, Value(code.value(zero), (), number=True)], self.order)
        return Value(code.call("notation.choose", *(arg.code for arg in args)), dims)
