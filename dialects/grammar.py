"""Opens the grammar files, one for each language. Those of index notation share `expressions.lark`.

This is the boundary behind which there are no lark tokens. Lark's tokens are strings with positions. Some string methods return
the token itself, so a token that is kept by mistake prints as `Token('AXIS', 'data')` anywhere later. A `Word` is not a string:
code that keeps its text has to take it out, by `word.text`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from lark import Lark, Token, Tree

from .ground.errors import Span
from .ground.monoids import FOLDS, MERGE, SELECTIONS

DEEPEST = 200
"""The deepest nesting of phrases that a text may have, unless its reader has fewer."""


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """A word of a text: the name of its terminal, what it says, and where it stands. Lines and columns count from 1."""

    type: str
    text: str
    span: Span
    start: int
    """The offset of its first character in the text."""

    # A word in a set or a table of names would never be found: this makes the mistake an error.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __str__(self) -> str:
        return self.text


SyntaxNode: TypeAlias = Tree[Word]


class TooDeep(Exception):
    """Raised for a text whose phrases are nested too deeply; `span` is the first phrase beyond the limit."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.span = span


@cache
def grammar(file: Path, starts: tuple[str, ...] = ("start",)) -> Lark:
    """Returns the parser of a grammar file. It reads whole texts, and each phrase in `starts` alone."""
    shared = str(Path(__file__).parent)
    return Lark.open(  # pyright: ignore[reportUnknownMemberType]
        str(file),
        parser="lalr",
        start=list(starts),
        propagate_positions=True,
        maybe_placeholders=True,
        import_paths=[shared, _folds],
    )


def _folds(_: str | None, path: str) -> tuple[str, str]:
    """Resolves the import of the grammar `folds`, which is not a file: its one terminal lists the names of the monoids."""
    if path != "folds.lark":
        raise FileNotFoundError(path)
    return path, rf"FOLD.2: /({'|'.join((*FOLDS, *SELECTIONS, MERGE))})(?=\()/"


def read(
    file: Path,
    text: str,
    start: str = "start",
    starts: tuple[str, ...] = ("start",),
    *,
    chains: Collection[str] = (),
    deepest: int = DEEPEST,
) -> SyntaxNode:
    """Returns the syntax tree of a text, or of one phrase: `start` is one of the grammar's `starts`.

    Raises lark's `UnexpectedInput` for a text that the grammar does not accept, and `TooDeep` for one that is nested too
    deeply. The first part of a phrase in `chains`, such as `a + b + c`, does not count as deeper: its reader walks the chain in
    a loop.

    Lark prefixes the kinds of imported phrases with the name of their file, `expressions__add`. This removes the prefix.
    """
    tree: Tree[Token] = grammar(file, starts).parse(text, start)  # pyright: ignore[reportUnknownMemberType]
    return _ours(tree, chains, deepest)


def _ours(tree: Tree[Token], chains: Collection[str], deepest: int) -> SyntaxNode:
    """Replaces lark's tokens in a tree by our words, and checks how deeply its phrases are nested."""
    left = [(tree, 0)]
    while left:
        phrase, depth = left.pop()
        phrase.data = phrase.data.rpartition("__")[2]
        if depth > deepest:
            raise TooDeep(_span(phrase.meta))
        inside = [child for child in phrase.children if isinstance(child, Tree)]
        for number, child in enumerate(inside):
            kind = child.data.rpartition("__")[2]
            is_chain = number == 0 and len(inside) > 1 and phrase.data in chains and kind in chains
            left.append((child, depth if is_chain else depth + 1))
        phrase.children = [_word(child) if isinstance(child, Token) else child for child in phrase.children]  # pyright: ignore
    return tree  # pyright: ignore[reportReturnType]


def _word(token: Token) -> Word:
    return Word(token.type, str(token), _span(token), token.start_pos or 0)


def _span(at: object) -> Span:
    """The span of one of lark's tokens or phrases. An empty phrase has no position, so it counts as line 1, column 1."""
    line, column = getattr(at, "line", None) or 1, getattr(at, "column", None) or 1
    return Span(line, column, getattr(at, "end_line", None) or line, getattr(at, "end_column", None) or column + 1)


def span_of(where: SyntaxNode | Word) -> Span:
    """The span of a phrase or a word."""
    return where.span if isinstance(where, Word) else _span(where.meta)


def words(node: SyntaxNode) -> list[Word]:
    """The words directly in a phrase."""
    return [child for child in node.children if isinstance(child, Word)]


def phrases(node: SyntaxNode) -> list[SyntaxNode]:
    """The phrases directly in a phrase."""
    return [child for child in node.children if isinstance(child, Tree)]


def phrases_of(node: SyntaxNode, kind: str) -> list[SyntaxNode]:
    """The phrases of one kind directly in a phrase."""
    return [child for child in phrases(node) if child.data == kind]
