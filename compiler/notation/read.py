"""From a text to lark's tree, and what a reader of the tree asks of it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from ...dialects import grammar
from ...dialects.grammar import Node
from .diagnostics import Span, Text
from .misread import misread

GRAMMAR = Path(__file__).with_name("program.lark")


def tree(text: Text) -> Node:
    """The tree of a text. Raises `Wrong` for one that the grammar does not take, or that says nothing."""
    try:
        found = grammar.read(GRAMMAR, text.source)
    except UnexpectedInput as error:
        raise misread(text, error) from None
    if not found.children:
        text.fail("empty", Span(1, 1, 1, 1), file=Path(text.file).name)
    return found


def words(node: Node) -> list[Token]:
    """The words that stand directly in a phrase."""
    return [child for child in node.children if isinstance(child, Token)]


def phrases(node: Node) -> list[Node]:
    """The phrases directly in a phrase."""
    return [child for child in node.children if isinstance(child, Tree)]


def left_spine(node: Node, among: Collection[str]) -> list[Node]:
    """The phrase, its first part, the first part of that, and so on through phrases of these kinds: `a + b + c` is a chain."""
    spine = [node]
    while spine[-1].data in among:
        spine.append(phrases(spine[-1])[0])
    return spine


def kinds(node: Node, kind: str) -> list[Node]:
    """The phrases of one kind directly in a phrase."""
    return [child for child in phrases(node) if child.data == kind]
