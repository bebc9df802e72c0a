"""Equations: the left side gets its ranges and its type from the right side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from ...dialects.definitions.syntax_tree import Apply, Group, Number, Value
from ...dialects.grammar import SyntaxNode, Word, phrases, phrases_of, words
from ...dialects.ground.amounts import counted
from ...dialects.ground.dtypes import short
from ..ops.primitives import op_names_of_jax
from . import scalar_functions
from .check_expressions import Expressions, reason
from .diagnostics import Reader, span, word_of
from .extents import check_bytes, extent_of, extent_value
from .runtime import made_of
from .scope import Scope
from .terms import Array, Calling, CheckedEquation, CheckedFunction, CheckedIndex, Left, Term, dtype_alone, type_text

Given: TypeAlias = "Array | Apply[Term]"
"""An argument of a call: an array or, for a primitive, also a number."""


@dataclass(slots=True)
class Equations(Reader):
    """Reads the equations of one function, in order; `arrays` are the values so far.

    `axes` checks the mesh axes of a dim, given the value's name, the dim's extent and the axes of the value so far.
    """

    extents: Mapping[str, int]
    functions: Mapping[str, CheckedFunction]
    arrays: dict[str, Array]
    axes: Callable[[Sequence[Word], str, int, set[str]], tuple[str, ...]]

    def equation(self, node: SyntaxNode) -> CheckedEquation | Calling:
        targets, pieces = phrases(node)[0], phrases(phrases(node)[1])
        for target in phrases(targets):
            if (word := word_of(target)).text in self.arrays:
                self.fail("value_twice", word, line=self.arrays[str(word)].span.line)
        head = word_of(pieces[0]).text if pieces[0].data == "call" else ""
        if head and (head in self.functions or head.startswith("lax.")):
            return self.calling(node, phrases(targets), pieces)
        first, *more = phrases(targets)
        if more:
            wanted = counted(1, "result")
            self.fail("call_results", targets, name=self.text.said(pieces[0]), wanted=wanted, given=1 + len(more))
        return self.pointwise(node, first, pieces)

    def pointwise(self, node: SyntaxNode, target: SyntaxNode, pieces: Sequence[SyntaxNode]) -> CheckedEquation:
        lefts = _lefts(target) or []
        joined = next((dim for dim, left in enumerate(lefts) if left.data == "summed"), None)
        self.check_pieces(target, lefts, len(pieces))
        shared: dict[str, CheckedIndex] = {}
        reader = self.reader(shared)
        for left in lefts:
            for word in words(left) if left.data != "summed" else ():
                self.declare(reader, left, word)
        terms, extents = list[Term](), list[int]()
        for piece in pieces:
            reader.indices = dict(shared)
            part = None if joined is None else reader.new(word_of(lefts[joined]))
            if part is not None:
                reader.indices[part.name] = part
            terms.append(reader.term(piece))
            reader.fits(dtype_alone(terms[-1]), terms[-1])
            if part is not None:
                reader.settle([part])
                extents.append(part.extent)
        reader.settle(shared.values())
        dims = [Group(tuple(shared[word.text] for word in words(left) if word.text in shared)) for left in lefts]
        if joined is not None:
            dims[joined] = Group((CheckedIndex(str(word_of(lefts[joined])), span(lefts[joined]), sum(extents), "joined"),))
        shape = tuple(prod(index.extent for index in dim.indices) for dim in dims)
        word = word_of(target)
        array = Array(str(word), self.dtype(pieces, terms), shape, span(word))
        check_bytes(self.text, word, array)
        return CheckedEquation(self.left(array, target, lefts, tuple(dims)), tuple(terms), joined, span(node))

    def check_pieces(self, target: SyntaxNode, lefts: Sequence[SyntaxNode], count: int) -> None:
        """Raises `Wrong` if several pieces are not joined along exactly one dim, or a single piece is joined."""
        joined = [left for left in lefts if left.data == "summed"]
        if len(joined) == 1 and count == 1:
            self.fail("left_parts", joined[0], name=word_of(joined[0]))
        if len(joined) != (count > 1):
            self.fail("pieces", target, count=len(joined) or "none")

    def declare(self, scope: Scope, left: SyntaxNode, word: Word) -> None:
        """Declares an index on the left, with its range if the text gives one."""
        if word.text in scope.indices:
            self.fail("left_twice", word)
        index = scope.indices[str(word)] = scope.new(word)
        if (declared := extent_of(left)) is not None:
            scope.unify(index, extent_value(self.text, declared, self.extents), span(declared), "declared on the left")

    def reader(self, indices: dict[str, CheckedIndex]) -> Expressions:
        return Expressions(self.text, self.extents, self.functions, self.arrays, indices)

    def dtype(self, pieces: Sequence[SyntaxNode], terms: Sequence[Term]) -> str:
        first = dtype_alone(terms[0])
        for piece, term in zip(pieces, terms, strict=True):
            if (found := dtype_alone(term)) != first:
                self.fail("dtypes", piece, sign="++", one=short(first), other=short(found))
        return first

    def left(
        self, array: Array, target: SyntaxNode, lefts: Sequence[SyntaxNode], dims: tuple[Group[CheckedIndex], ...] | None
    ) -> Left:
        """A left side, which defines the array: with the mesh axes behind its indices."""
        used, given = set[str](), [words(phrases_of(left, "places")[0]) for left in lefts]
        for left, axes in zip(lefts, given, strict=True):
            if left.data == "summed" and axes:
                self.fail("axis_on_parts", left, axis=axes[0], what="a dim that joins pieces")
        places = tuple(self.axes(axes, array.name, extent, used) for axes, extent in zip(given, array.shape, strict=False))
        array = self.arrays[array.name] = replace(array, places=places)
        return Left(array, dims, span(target))

    def calling(self, node: SyntaxNode, targets: Sequence[SyntaxNode], pieces: Sequence[SyntaxNode]) -> Calling:
        if len(pieces) > 1:
            self.fail("call_inside", pieces[0], name=word_of(pieces[0]))
        call = pieces[0]
        name = str(word_of(call))
        primitive = name.removeprefix("lax.")
        arguments = tuple(self.argument(name, each) for each in phrases(call) if each.data != "keyword")
        if name in self.functions:
            results, params = self.called(call, self.functions[name], arguments), None
        else:
            params = scalar_functions.keywords(self.text, call)
            if not params and primitive in scalar_functions.functions():
                params = scalar_functions.defaults(primitive, tuple(each.dtype for each in arguments))
            results = self.primitive(call, primitive, arguments, params, targets)
        if len(results) != len(targets):
            wanted = counted(len(results), "result")
            self.fail("call_results", phrases(node)[0], name=name, wanted=wanted, given=len(targets))
        lefts = tuple(self.named(name, target, *result) for target, result in zip(targets, results, strict=True))
        return Calling(lefts, primitive, arguments, params, span(node))

    def argument(self, name: str, node: SyntaxNode) -> Given:
        """An argument of a primitive: an array, or a number such as `3`, `0.5`, `u32(3)`."""
        if name.startswith("lax.") and node.data in ("number", "neg", "call"):
            reader = self.reader({})
            term = reader.term(node)
            if isinstance(term, Number):
                reader.fits(dtype_alone(term), term, cast=True)
                return Apply("cast", (term,), dtype_alone(term), term.span)
            if isinstance(term, Apply) and term.function == "cast" and isinstance(term.args[0], Number):
                return term
        if node.data != "name":
            self.fail("call_argument", node, name=name, said=self.text.said(node))
        word = word_of(node)
        if word.text not in self.arrays:
            self.fail("value_unknown", word, self.arrays)
        return self.arrays[str(word)]

    def called(self, call: SyntaxNode, function: CheckedFunction, given: Sequence[Given]) -> list[Value]:
        wanted = function.arguments
        signature = f"{function.name}({', '.join(f'{each.name}: {each.type}' for each in wanted)})"
        if len(given) != len(wanted):
            count, name = counted(len(wanted), "argument"), function.name
            self.fail("call_count", call, name=name, wanted=count, given=len(given), signature=signature)
        for node, have, want in zip(phrases(call), given, wanted, strict=True):
            assert isinstance(have, Array)
            if have.type != want.type:
                types = {"wanted": want.type, "given": have.type}
                self.fail("call_type", node, argument=want.name, name=function.name, value=have.name, **types)
        return [(each.dtype, each.shape) for each in function.results]

    def primitive(
        self, call: SyntaxNode, name: str, given: Sequence[Given], params: str, targets: Sequence[SyntaxNode]
    ) -> list[Value]:
        """The types of the results of a primitive, which JAX computes."""
        # The parameters of some primitives contain the shape of the result, which the left side declares.
        declared = [[each for each in map(extent_of, _lefts(target) or ()) if each is not None] for target in targets]
        wanted = tuple(tuple(extent_value(self.text, each, self.extents) for each in dims) for dims in declared)
        types = tuple((each.dtype, each.shape if isinstance(each, Array) else ()) for each in given)
        try:
            return made_of(name, params, wanted, types)
        except KeyError as error:
            if error.args == (name,):
                self.fail("primitive_unknown", word_of(call), op_names_of_jax(), name=name)
            self.fail("primitive", call, name=name, why=f"{error} is missing")
        except Exception as error:
            # The author of the text can fix any error that JAX raises for the parameters.
            self.fail("primitive", call, name=name, why=reason(error))

    def named(self, name: str, target: SyntaxNode, made: str, shape: tuple[int, ...]) -> Left:
        """The left side of a call: a bare name, or an index for each dim."""
        word = word_of(target)
        array = Array(str(word), made, shape, span(word))
        lefts = _lefts(target)
        if lefts is not None and (len(lefts) != len(shape) or any(left.data != "plain" for left in lefts)):
            given, rank = counted(len(lefts), "index", "indices"), len(shape)
            self.fail("call_rank", target, name=name, type=type_text(made, shape), given=given, rank=rank)
        scope = self.reader({})
        for left, extent in zip(lefts or (), shape, strict=False):
            self.declare(scope, left, word_of(left))
            scope.unify(scope.find(word_of(left)), extent, span(left), f"a dim of `{name}`'s result")
        return self.left(array, target, lefts or (), None)


def _lefts(target: SyntaxNode) -> list[SyntaxNode] | None:
    """The indices of a left side; None without brackets."""
    found = phrases_of(target, "lefts")
    return phrases(found[0]) if found else None
