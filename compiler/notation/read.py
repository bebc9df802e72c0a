"""From a text to lark's tree."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from lark.exceptions import UnexpectedInput

from ...dialects import grammar
from ...dialects.errors import Span
from ...dialects.grammar import Node, phrases
from .diagnostics import Text
from .misread import misread

GRAMMAR = Path(__file__).with_name("program.lark")


def tree(text: Text) -> Node:
    """The tree of a text. Raises `Wrong` if the grammar does not accept it, or if it is empty."""
    try:
        found = grammar.read(GRAMMAR, text.source)
    except UnexpectedInput as error:
        raise misread(text, error) from None
    if not found.children:
        text.fail("empty", Span(1, 1, 1, 1), file=Path(text.file).name)
    return found


def left_spine(node: Node, among: Collection[str]) -> list[Node]:
    """The phrase, its first part, the first part of that, and so on through phrases of these kinds: `a + b + c` is a chain."""
    spine = [node]
    while spine[-1].data in among:
        spine.append(phrases(spine[-1])[0])
    return spine
