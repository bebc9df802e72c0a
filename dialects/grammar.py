"""The grammars of index notation: one file each, with `expressions.lark` as their common part."""

from functools import cache
from pathlib import Path
from typing import TypeAlias

from lark import Lark, Token, Tree

from .monoids import FOLDS, MERGE, SELECTIONS

Node: TypeAlias = Tree[Token]


@cache
def grammar(file: Path, starts: tuple[str, ...] = ("start",)) -> Lark:
    """The parser of a grammar file: of whole texts, and of other phrases that may be read alone."""
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
    """The grammar `folds`, which is not a file: its one terminal lists the words of the table of monoids."""
    if path != "folds.lark":
        raise FileNotFoundError(path)
    return path, rf"FOLD.2: /({'|'.join((*FOLDS, *SELECTIONS, MERGE))})(?=\()/"


def read(file: Path, text: str, start: str = "start", starts: tuple[str, ...] = ("start",)) -> Node:
    """The tree of a text, or of the phrase `start`, one of the `starts` of the grammar; lark's `UnexpectedInput` for one that
    the grammar does not take.

    Lark prefixes the kinds of imported phrases with the name of their file, `expressions__add`. This removes the prefix.
    """
    tree: Node = grammar(file, starts).parse(text, start)  # pyright: ignore[reportUnknownMemberType]
    for phrase in tree.iter_subtrees():
        phrase.data = phrase.data.rpartition("__")[2]
    return tree


def words(node: Node) -> list[Token]:
    """The words directly in a phrase."""
    return [child for child in node.children if isinstance(child, Token)]


def phrases(node: Node) -> list[Node]:
    """The phrases directly in a phrase."""
    return [child for child in node.children if isinstance(child, Tree)]


def kinds(node: Node, kind: str) -> list[Node]:
    """The phrases of one kind directly in a phrase."""
    return [child for child in phrases(node) if child.data == kind]
