"""Expressions: from the tree to checked terms, with a function for each kind of phrase."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes

from ...dialects.definitions.operators import ARITHMETIC, COMPARISONS, SIGNS
from ...dialects.definitions.syntax_tree import Affine, Apply, Fold, Group, Number, Read
from ...dialects.grammar import SyntaxNode, Word, phrases, words
from ...dialects.ground.amounts import counted
from ...dialects.ground.dtypes import dtype_of, long, short
from ...dialects.ground.monoids import MONOIDS
from ..jax_private import jax
from ..ops.monoids import WRITTEN, has_windowed_fold
from . import scalar_functions
from .diagnostics import Text, span, word_of
from .extents import extent_value, named_extent
from .parse import left_spine
from .scope import Scope, linearity
from .terms import Array, CheckedIndex, Constant, Dim, Mask, Reading, Term, alone, dtype, dtype_alone, free, span_in_text

BINARY = frozenset(ARITHMETIC) - {"neg"}
COMPARE = {sign.text: name for name, sign in COMPARISONS.items()}
LOGIC = {"either": "or", "both": "and", "negated": "not"}
TRUTHS = {"True": True, "False": False}
CONSTANTS = {"inf": float("inf"), "nan": float("nan")}
DIGITS = 300
"""The most digits of an integer: more than any dtype can hold."""
FLOATING = "write it as a float: `1e10`"
NATURAL = ("max", "min")
NUMERIC = {"int", "float", "truth"}


@dataclass(slots=True)
class Expressions(Scope):
    """Reads the expressions of one equation."""

    def term(self, node: SyntaxNode) -> Term:
        match node.data:
            case "number":
                return self.literal(node)
            case "extent":
                word = word_of(node)
                return Number(
                    TRUTHS[word.text] if word.text in TRUTHS else named_extent(self.text, word, self.extents), span(node)
                )
            case "name":
                return self.name(word_of(node))
            case "read":
                return self.read(node)
            case "neg":
                return self.negative(node)
            case "add" | "sub" | "mul" | "div":
                return self.arithmetic(node)
            case "compared" | "equal":
                return self.comparison(node)
            case "either" | "both" | "negated":
                return self.logic(node)
            case "mask":
                return Mask(self.truth(phrases(node)[0], "[...]"), span(node))
            case "fold":
                return self.fold(node)
            case _:
                return self.call(node)

    def name(self, word: Word) -> Term:
        """The term of a name: an index used as a value, an array of rank 0, or one of the constants."""
        if word.text in self.indices:
            return Group((self.indices[str(word)],), span(word))
        array = self.arrays.get(str(word))
        if array is None and word.text in CONSTANTS:
            return Number(CONSTANTS[str(word)], span(word))
        if array is None:
            self.fail("index_unbound", word, [*self.indices, *self.arrays])
        if array.shape:
            indices = ", ".join("ijklmnop"[: len(array.shape)])
            self.fail("not_scalar", word, type=array.type, indices=indices)
        return Read(array, (), span=span(word))

    def read(self, node: SyntaxNode) -> Reading:
        word, given = word_of(node), phrases(node)
        if word.text not in self.arrays:
            self.fail("value_unknown", word, self.arrays)
        array = self.arrays[str(word)]
        if len(given) != len(array.shape):
            rank, count = counted(len(array.shape), "dim"), counted(len(given), "index", "indices")
            self.fail("rank", node, name=word, rank=rank, given=count, type=array.type)
        dims = tuple(self.position(array, dim, each) for dim, each in enumerate(given))
        return Read(array, dims, span=span(node))

    def position(self, array: Array, dim: int, node: SyntaxNode) -> Dim:
        """The position of a phrase in one dim of an array; an index alone gets its range from the dim."""
        extent = array.shape[dim]
        if node.data == "join":
            joint = Group(tuple(self.find(word) for word in words(node)))
            self.joins.append((extent, joint, span(node)))
            return joint
        around, self.positional = self.positional, True
        term = self.term(node)
        self.positional = around
        if (index := alone(term)) is not None:
            self.unify(index, extent, span(node), f"dim {dim} of `{array.name}`")
            return term
        kind = dtype(term)
        if kind in ("float", "truth") or (kind != "int" and dtype_of(kind).kind not in "iu"):
            self.fail("index_float", node, said=self.text.said(node), dtype={"float": "a float"}.get(kind, short(kind)))
        if (linear := linearity(term)) is None:
            return term
        offset, factors = linear
        window = Affine(offset, tuple(factors.items()))
        if factors:
            self.windows.append((extent, window, span(node), self.hanging and len(factors) > 1))
        else:
            self.check_window(extent, window, span(node), hangs=False)
        return window

    def literal(self, node: SyntaxNode) -> Constant:
        word = word_of(node)
        if word.text.isdecimal() and len(word.text.lstrip("0")) > DIGITS:
            self.fail("number_large", node, number=word, low=f"-1e{DIGITS}", high=f"1e{DIGITS}", cure=FLOATING)
        return Number(int(word.text) if word.text.isdecimal() else float(word.text), span(node))

    def fits(self, made: str, *args: Term, cast: bool = False) -> None:
        """Raises `Wrong` for an integer among the arguments that JAX cannot represent next to this dtype.

        JAX first converts integers to its default integer dtype, whatever the other operand is, unless they are cast.
        """
        low, high = -(10**DIGITS), 10**DIGITS
        if not cast or dtype_of(made).kind in "iu":
            info = ml_dtypes.iinfo(dtype_of(made) if cast else jax.dtypes.canonicalize_dtype(int))
            low, high = int(info.min), int(info.max)
        for each in args:
            if isinstance(each, Number) and isinstance(each.value, int) and not low <= each.value <= high:
                cure = FLOATING if dtype_of(made).kind in "fV" else "use a wider dtype"
                self.fail("number_large", span_in_text(each), number=each.value, low=low, high=high, cure=cure)

    def negative(self, node: SyntaxNode) -> Term:
        arg = self.term(phrases(node)[0])
        self.no_truth(node, "-", arg)
        if isinstance(arg, Number):
            return Number(-arg.value, span(node))
        return Apply("neg", (arg,), dtype(arg), span(node))

    def arithmetic(self, node: SyntaxNode) -> Term:
        """The term of a chain of operators, built from its first operand on, so that its length does not matter."""
        *operators, first = left_spine(node, BINARY)
        made = self.term(first)
        for each in reversed(operators):
            made = self.combined(each, made, self.term(phrases(each)[1]))
        return made

    def combined(self, node: SyntaxNode, left: Term, right: Term) -> Term:
        sign = SIGNS[node.data].text
        self.no_truth(node, sign, *(each for each in (left, right) if isinstance(each, Number)))
        if isinstance(left, Number) and isinstance(right, Number):
            known = self.number(node, lambda: scalar_functions.arithmetic(node.data, [left.value, right.value]))
            assert known is not None
            # Positions are integers, and so are exact quotients in them.
            exact = self.positional and isinstance(known.value, float) and known.value.is_integer()
            return Number(int(known.value), known.span) if exact else known
        if node.data == "mul" and isinstance(left, Mask) and isinstance(right, Mask):
            return Mask(Apply("and", (left.condition, right.condition), "bool", span(node)), span(node))
        if node.data == "mul" and (isinstance(left, Mask) or isinstance(right, Mask)):
            other = right if isinstance(left, Mask) else left
            self.fits(dtype_alone(other), other)
            return Apply("mul", (left, right), dtype_alone(other), span(node))
        made = self.same(node, sign, left, right)
        self.no_truth(node, sign, left, right)
        if node.data == "div" and dtype_of(made).kind in "iu":
            self.fail("divide", node, dtype=short(made))
        return Apply(node.data, (left, right), made, span(node))

    def same(self, node: SyntaxNode, sign: str, *args: Term) -> str:
        """The common dtype of the arguments; numbers take the dtype of the others."""
        kinds = {dtype(arg) for arg in args}
        strong = sorted(kinds - NUMERIC, key=[dtype(arg) for arg in args].index)
        if len(strong) > 1:
            self.fail("dtypes", node, sign=sign, one=short(strong[0]), other=short(strong[1]))
        if not strong:
            return "float32" if "float" in kinds else "int32" if "int" in kinds else "bool"
        self.fits(strong[0], *args)
        number = next((arg for arg in args if isinstance(arg, Number) and dtype(arg) == "float"), None)
        if number is not None and dtype_of(strong[0]).kind in "iub":
            self.fail("number", span_in_text(number), number=f"{number.value:g}", dtype=short(strong[0]))
        return strong[0]

    def no_truth(self, node: SyntaxNode, sign: str, *args: Term) -> None:
        if any(dtype_alone(arg) == "bool" for arg in args):
            cure = "cast the booleans: `f32(...)`, or use `where(...)`"
            self.fail("fold_dtype", node, fold=sign, dtype="bool", cure=cure)

    def comparison(self, node: SyntaxNode) -> Term:
        left, right = map(self.term, phrases(node))
        sign = str(word_of(node)) if words(node) else "=="
        self.same(node, sign, left, right)
        made = Apply(COMPARE[sign], (left, right), "bool", span(node))
        return Mask(made, span(node)) if node.data == "equal" else made

    def logic(self, node: SyntaxNode) -> Term:
        *operators, first = left_spine(node, LOGIC)
        made = self.truth(first, LOGIC[operators[-1].data])
        for each in reversed(operators):
            sign = LOGIC[each.data]
            made = Apply(sign, (made, *(self.truth(right, sign) for right in phrases(each)[1:])), "bool", span(each))
        return made

    def truth(self, node: SyntaxNode, what: str) -> Term:
        term = self.term(node)
        if dtype_alone(term) != "bool":
            self.fail("truth", node, what=what, dtype=short(dtype_alone(term)))
        return term.condition if isinstance(term, Mask) else term

    def number(self, node: SyntaxNode, compute: Callable[[], float | None]) -> Constant | None:
        """The number that `compute` returns, or None. Raises `Wrong` if it is undefined."""
        try:
            value = compute()
            return None if value is None else Number(value, span(node))
        except (ArithmeticError, ValueError) as error:
            self.fail("undefined", node, said=self.text.said(node), why=str(error))

    def fold(self, node: SyntaxNode) -> Term:
        word, variables, body = word_of(node), phrases(phrases(node)[0]), phrases(node)[1]
        around, hanging = dict(self.indices), self.hanging
        indices = tuple(self.variable(each) for each in variables)
        self.hanging = has_windowed_fold(word.text)
        term = self.term(body)
        self.fits(dtype_alone(term), term)
        self.indices, self.hanging = around, hanging
        used = free(term)
        for index in indices:
            if index not in used and not index.known:
                self.fail("index_unused", index.span, name=index.name, fold=word)
        made, takes_bool = dtype_alone(term), word.text in MONOIDS and MONOIDS[word.text].on_bool != ""
        if takes_bool != (made == "bool"):
            compare = f"compare the operand, in parentheses: `{word}(...) (... != 0)`"
            cure = compare if takes_bool else "cast to count, `i32(...)`, or use `any(...)`"
            self.fail("fold_dtype", node, fold=word, dtype=short(made), cure=cure)
        if word.text in ("argmax", "argmin") and len(indices) > 1:
            self.fail("fold_position", indices[1].span, fold=word)
        fold = Fold(str(word), indices, term, span=span(node))
        self.folds.append(fold)
        return fold

    def variable(self, node: SyntaxNode) -> CheckedIndex:
        """Declares an index of a fold, which is now in scope."""
        word, declared = word_of(node), phrases(node)
        index = self.new(word)
        if declared:
            self.unify(index, extent_value(self.text, declared[0], self.extents), span(declared[0]), "declared in the fold")
        self.indices[index.name] = index
        return index

    def call(self, node: SyntaxNode) -> Term:
        word = word_of(node)
        name = str(word)
        given = [each for each in phrases(node) if each.data != "keyword"]
        if name in self.functions or name.startswith("lax."):
            self.fail("call_inside", node, name=name)
        if (cast := long(name)) != name or name == "bool":
            return self.cast(node, cast, given)
        known = scalar_functions.functions()
        if name not in known:
            self.fail("function_unknown", word, [*known, *self.functions, "f32", "i32", *WRITTEN], name=name)
        if name in WRITTEN and len(given) == 1:
            self.fail("fold_sign", node, name=name, said=self.text.said(node))
        if len(given) != len(known[name]):
            wanted = counted(len(known[name]), "argument")
            operands = ", ".join(known[name])
            self.fail("function_count", node, name=name, wanted=wanted, given=len(given), operands=operands)
        return self.apply(
            node, scalar_functions.ALIASES.get(name, name), [*map(self.term, given)], scalar_functions.keywords(self.text, node)
        )

    def cast(self, node: SyntaxNode, wanted: str, given: list[SyntaxNode]) -> Term:
        word = word_of(node)
        check_dtype(self.text, word, wanted)
        if len(given) != 1:
            self.fail("function_count", node, name=word, wanted="1 argument", given=len(given), operands="x")
        term = self.term(given[0])
        self.fits(wanted, term, cast=True)
        return Apply("cast", (term,), wanted, span(node))

    def apply(self, node: SyntaxNode, name: str, args: list[Term], params: str) -> Term:
        if name == "where":
            return self.where(node, args)
        numbers = [arg.value for arg in args if isinstance(arg, Number)]
        if (
            len(numbers) == len(args)
            and not params
            and (known := self.number(node, lambda: scalar_functions.constant_value(name, numbers)))
        ):
            return known
        # Numbers take the dtype of the other operands. JAX checks dtypes that differ; we check them where JAX would cast.
        made = self.same(node, name, *args)
        if dtype_of(made).kind in "iu" and name not in NATURAL:
            self.fits(made, *args, cast=True)
        dtypes = (made,) * len(args)
        params = params or scalar_functions.defaults(name, dtypes)
        try:
            return Apply(name, tuple(args), scalar_functions.result(name, dtypes, params), span(node), params)
        except (TypeError, ValueError, KeyError, AttributeError, SyntaxError) as error:
            why = reason(error)
            if isinstance(error, TypeError) and not params and "missing" not in why and "argument" not in why.split("dtype")[0]:
                cast = "i32" if dtype_of(made).kind in "fV" else "f32"
                self.fail("function_dtype", node, name=name, dtypes=short(made), why=why, cast=cast)
            cure = f"write `{name}(x, parameter=2)`, with the IR's names"
            self.fail("function_keyword", node, name=name, why=why, cure=cure)

    def where(self, node: SyntaxNode, args: list[Term]) -> Term:
        condition, *branches = args
        if dtype(condition) != "bool":
            self.fail("truth", phrases(node)[0], what="where", dtype=short(dtype_alone(condition)))
        condition = condition.condition if isinstance(condition, Mask) else condition
        return Apply("where", (condition, *branches), self.same(node, "where", *branches), span(node))


def check_dtype(text: Text, word: Word, wanted: str) -> None:
    """Raises `Wrong` for an unknown dtype, or for one that JAX would narrow."""
    try:
        taken = jax.dtypes.canonicalize_dtype(dtype_of(wanted)).name
    except TypeError:
        text.fail("dtype_unknown", word, ["f32", "f16", "bf16", "f64", "i32", "i8", "i64", "u32", "u8", "bool"])
    if taken != wanted:
        text.fail("dtype_wide", word, short=short(taken))


def reason(error: Exception) -> str:
    """The first line of JAX's message, without the name of the JAX function."""
    if isinstance(error, AssertionError):
        return "JAX does not take these parameters for these arrays"
    said = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    # A verifier's message has a heading above it.
    first = said[1] if said[0].endswith("verifier errors:") and len(said) > 1 else said[0]
    return re.sub(r"^\w+\(\) ", "", first)[:100]
