"""Parses the text of definitions (grammar `definitions.lark`) to `Definition`s; mistakes become errors with a caret.

Beyond the grammar, a definition is wrong if it reads a name that is not an operand, uses an unbound index, assigns dims of
an array or an index that it does not have, or has the name of another definition.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import NoReturn, cast

from lark import Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from .. import grammar
from ..grammar import SyntaxNode, TooDeep, Word, phrases, words
from ..ground.errors import Error, Location, did_you_mean
from ..ground.monoids import SELECTIONS
from .from_lark import assign, bare, expr, formal, placing, target
from .front_ends.by_name import FRONT_ENDS
from .syntax_tree import Definition, Formal, Number, Read

_GRAMMAR = File(__file__).with_name("definitions.lark")
_DEEPEST = 50
"""The deepest nesting of phrases. A sum of a thousand terms is as deep as a thousand parentheses."""


def parse_definitions(source: str, file: str = "<definitions>", line: int = 1) -> dict[str, Definition]:
    """Parses all definitions of a text; returns them by op name. Raises Error with the location of a mistake.

    The text may be a part of the file, which begins at `line`.
    """
    reader = _Reader(source, file, line)
    found: dict[str, Definition] = {}
    for tree in phrases(reader.tree()):
        heads = words(phrases(tree)[0])
        for head in heads:
            if str(head) in found:
                reader.fail(head, f"`{head}` is defined twice")
        definition = reader.definition(tree)
        found |= {str(head): replace(definition, name=str(head)) for head in heads}
    return found


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one source text, which begins at `line` of the file; `fail` raises errors with its location."""

    source: str
    file: str
    line: int

    def location(self, line: int, column: int, end_column: int) -> Location:
        location = Location.of(self.file, self.source, line, column, end_column)
        return replace(location, line=location.line + self.line - 1)

    def fail(self, token: Word, title: str, label: str = "", among: Collection[str] = ()) -> NoReturn:
        location = self.location(token.span.line, token.span.column, token.span.end_column)
        raise Error(title, location=location, label=label, helps=did_you_mean(bare(token), among))

    def expect(self, token: Word, among: Collection[str], title: str, label: str = "") -> None:
        if bare(token) not in among:
            self.fail(token, title, label, among)

    def tree(self) -> SyntaxNode:
        try:
            return grammar.read(_GRAMMAR, self.source, deepest=_DEEPEST)
        except TooDeep as error:
            location = self.location(error.span.line, error.span.column, error.span.column + 1)
            raise Error("this definition is nested too deeply", location=location) from None
        except UnexpectedInput as error:
            raise self.unread(error) from None

    def unread(self, error: UnexpectedInput) -> Error:
        word = ""
        if isinstance(error, UnexpectedCharacters):
            word = [*self.source.splitlines(), ""][error.line - 1][error.column - 1 : error.column]
        elif isinstance(error, UnexpectedToken):
            token = cast(Word, error.token)  # pyright: ignore[reportUnknownMemberType]
            word = "" if token.type in ("$END", "_NL") else str(token)
        label = f"`{word}` is not expected here" if word else "the definition ends too early"
        location = self.location(error.line, error.column, error.column + len(word or " "))
        return Error("this definition cannot be read", location=location, label=label)

    def definition(self, tree: SyntaxNode) -> Definition:
        """The definition of a line, under its first name."""
        heads, formals, targets, body = tree.children[:4]
        assert isinstance(heads, Tree) and isinstance(targets, Tree) and isinstance(body, Tree)
        operands = tuple(formal(each) for each in phrases(formals)) if isinstance(formals, Tree) else ()
        bound = set(_bound(tree, targets))
        left = [target(each, bound) for each in phrases(targets)]
        written = [result for result, _ in left]
        definition = Definition(
            str(words(heads)[0]),
            operands,
            tuple(Formal(each.array, each.spread) for each in written),
            tuple(Read(each.array, each.dims) for each in written),
            expr(body, bound),
            partials=tuple(partial for _, partial in left if partial is not None),
            text=self.source[tree.meta.start_pos : tree.meta.end_pos],
        )
        self.check_reads(body, [each.name for each in operands])
        self.check_indices(tree, bound)
        for clause in tree.children[4:]:
            assert isinstance(clause, Tree)
            definition = self.clause(definition, clause, bound)
        self.check_guards(body, definition.front)
        self.check_results(targets, body)
        return definition

    def clause(self, definition: Definition, tree: SyntaxNode, bound: Collection[str]) -> Definition:
        """The definition with one more of `at`, `where`, `size`, `extents`, `default`, `drop`, `by`, `backwards`."""
        match tree.data:
            case "at":
                for each in phrases(tree):
                    self.check_placing(each, definition, bound)
                return replace(definition, at=tuple(at for each in phrases(tree) for at in placing(each)))
            case "ravel":
                left, right = map(bare, words(tree))
                return replace(definition, ravel=(left, right))
            case "sizes":
                return replace(definition, sizes=tuple(map(assign, phrases(tree))))
            case "extents" | "defaults":
                pairs = [assign(each, bound) for each in phrases(tree)]
                if tree.data == "extents":
                    return replace(definition, extents=tuple(pairs))
                values = ((name, each.value) for name, each in pairs if isinstance(each, Number))
                return replace(definition, defaults=tuple(values))
            case "backwards":
                return replace(definition, backwards=str(words(tree)[0]))
            case "drop":
                return replace(definition, forgotten=frozenset(map(str, words(tree))))
            case _:
                (front,) = words(tree)
                self.expect(front, FRONT_ENDS, f"no front end is called `{front}`")
                return replace(definition, front=str(front))

    def check_reads(self, body: SyntaxNode, operands: list[str]) -> None:
        listed = {id(each) for kind in ("arguments", "guard") for phrase in body.find_data(kind) for each in phrases(phrase)}
        for each in body.find_data("read"):
            token = words(each)[0]
            if token.text.endswith("*") and id(each) not in listed:
                self.fail(token, f"`{token}` stands for several operands", f"read each of them as `{bare(token)}`")
            label = "the operands are listed in the parentheses before"
            self.expect(token, operands, f"`{bare(token)}` is not an operand", label)

    def check_guards(self, body: SyntaxNode, front: str | None) -> None:
        """Raises Error for a guard that is not a factor of a fold's operand, or not the only guard there."""
        factors = [list(_factors(phrases(fold)[-1])) for fold in body.find_data("fold")]
        alone = [id(guards[0]) for each in factors if len(guards := [one for one in each if one.data == "guard"]) == 1]
        for guard in body.find_data("guard"):
            if id(guard) not in alone:
                title = "a guard is a factor of what a fold folds, and the only guard there"
                self.fail(words(phrases(guard)[0])[0], title, "write it as in `sum(i) [v = ids[i]] * x[i]`")
            window = words(guard)
            if window and front is None:
                title = f"nothing says where the window `{window[0]}` lies"
                self.fail(window[0], title, "`by windows` does, for ops like `gather`")

    def check_results(self, targets: SyntaxNode, body: SyntaxNode) -> None:
        """Raises Error if anything but an op's own function `@` gives several results, or folds on the left."""
        said = [*body.find_data("fold"), *targets.find_data("partial")]
        if selections := [each for each in said if words(each)[0].text in SELECTIONS]:
            self.check_selection(selections[0], targets, body)
            return
        if body.data == "own" or next(body.find_data("own"), None) is not None:
            return
        for partial in targets.find_data("partial"):
            self.fail(words(partial)[0], "write the fold after `=`; only `@` with several results takes folds on the left")
        if len(phrases(targets)) > 1:
            second = words(phrases(targets)[1])[0]
            self.fail(second, "several results need the op's own function: `= @(...)`")

    def check_selection(self, fold: SyntaxNode, targets: SyntaxNode, body: SyntaxNode) -> None:
        """Raises Error for a fold to the best elements that is not the whole definition, or has a wrong number of results."""
        name, *inside = words(fold)[0], *phrases(fold)
        if fold is not body or len(inside) > 2 or inside[-1].data != "read":
            self.fail(name, f"`{name}` selects elements of one operand", f"write it as `out[i] = {name}(j) x[i, j]`")
        if len(phrases(targets)) != (results := 2 if name.text == "top" else 1):
            what = "the elements and their positions" if results > 1 else "positions"
            self.fail(name, f"`{name}` has {results} result{'s' * (results > 1)}: {what}")

    def check_indices(self, tree: SyntaxNode, bound: Collection[str]) -> None:
        sizes = [phrases(each)[0] for each in tree.find_data("size")]
        for each in (*tree.find_data("group"), *sizes):
            (token,) = words(each)
            self.expect(token, bound, f"`{token}` is not bound", "write an index on the left of `=`, or fold over it")

    def check_placing(self, tree: SyntaxNode, definition: Definition, bound: Collection[str]) -> None:
        known = [each.name for each in (*definition.operands, *definition.results)]
        for token in words(tree):
            self.expect(token, known, f"`{token}` is neither an operand nor a result")
        for each in phrases(tree):
            variable = words(each)[0]
            self.expect(variable, bound, f"`{variable}` is not an index of this definition")


def _factors(product: SyntaxNode) -> Iterator[SyntaxNode]:
    if product.data == "mul":
        for each in phrases(product):
            yield from _factors(each)
    else:
        yield product


def _bound(tree: SyntaxNode, targets: SyntaxNode) -> Iterator[str]:
    """The names bound in a definition: indices on the left and under folds, and unpartitioned, joined or ravelled dims."""
    for phrase in (*targets.find_data("name"), *targets.find_data("group")):
        yield from map(bare, words(phrase))
    for kind in ("fold", "partial"):
        for fold in tree.find_data(kind):
            for variable in phrases(phrases(fold)[0]):
                yield from map(bare, words(variable))
    for kind in ("whole", "concat", "join"):
        for phrase in tree.find_data(kind):
            yield from map(bare, words(phrase))
    for ravel in tree.find_data("ravel"):
        yield from map(bare, words(ravel))
