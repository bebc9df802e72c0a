"""From a text to lark's tree, or an error that says in plain words what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from lark import Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from ...dialects import grammar
from ...dialects.grammar import Node
from .diagnostics import Span, Text, Wrong

GRAMMAR = Path(__file__).with_name("program.lark")

# What the grammar's words are called when a person is told what was expected; a thing that many words begin stands for them.
SPELLING = {
    "NAME": "a name",
    "UPPER": "an extent",
    "NUMBER": "a number",
    "FOLD": "a fold",
    "OPAQUE": "`lax.`",
    "COMPARE": "a comparison",
    "STRING": "a text",
    "VALUE": "a value's name",
    "DIM": "a dim",
    "CALL": "a tactic",
    "ARROW": "`->`",
    "JOIN": "`++`",
    "LABEL": "`name`",
    "$END": "the end",
}
SIGNS = {
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "LBRACE": "{", "RBRACE": "}", "COMMA": ",", "COLON": ":",
    "EQUAL": "=", "AT": "@", "PLUS": "+", "MINUS": "-", "STAR": "*", "SLASH": "/", "DOT": ".", "SEMICOLON": ";",
}  # fmt: skip
OPERATORS = {"PLUS", "MINUS", "STAR", "SLASH", "COMPARE", "AND", "OR"}
BEGINNINGS = {"NAME", "NUMBER", "LPAR", "LSQB", "MINUS", "FOLD"}
CURES = (
    ("MESH", "a file holds `mesh`, `let`, `fn` and `plan`"),
    ("RETURN", "a function holds equations, `y[i] = x[i]`, and ends with `return y`"),
    ("PROPAGATE", "a plan holds `tile x.0 @data`, `replicate x @data`, `name x.0 as B`, `propagate data`, or a tactic's call"),
)


def tree(text: Text) -> Node:
    """The tree of a text. Raises `Wrong` for one that the grammar does not take, or that says nothing."""
    try:
        found = grammar.read(GRAMMAR, text.source)
    except UnexpectedInput as error:
        raise unread(text, error) from None
    if not found.children:
        text.fail("empty", Span(1, 1, 1, 1), file=Path(text.file).name)
    return found


def unread(text: Text, error: UnexpectedInput) -> Wrong:
    """The error for a text that the grammar does not take."""
    if not isinstance(error, UnexpectedToken):
        here = Span(error.line, error.column, error.line, error.column + 1)
        return text.wrong("no_sign", here, sign=text.source[error.pos_in_stream or 0])
    token, names = cast(Token, error.token), error.expected  # pyright: ignore[reportUnknownMemberType]
    words = {"expected": expected(names), "cure": cure(names)}
    if token.type == "$END":
        lines = text.source.rstrip().splitlines() or [""]
        end = len(lines[-1]) + 1
        return text.wrong("unfinished", Span(len(lines), end, len(lines), end + 1), **words)
    return text.wrong("unexpected", token, found=str(token), **words)


def expected(names: set[str]) -> str:
    """The words that could have stood there, the many that begin or continue an expression as one."""
    left, words = set(names), list[str]()
    if left >= BEGINNINGS:
        left -= {*BEGINNINGS, "UPPER", "OPAQUE", "NOT"}
        words.append("an expression")
    if len(left & OPERATORS) > 2:
        left -= OPERATORS | {"JOIN"}
        words.append("an operator")
    if left - OPERATORS:
        left -= {"AND", "OR"}
    words += sorted(SPELLING.get(each) or f"`{SIGNS.get(each) or each.lower()}`" for each in left)
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def cure(names: set[str]) -> str:
    return next((said for mark, said in CURES if mark in names), "see `docs/notation.md` for what may stand where")


def words(node: Node) -> list[Token]:
    """The words that stand directly in a phrase."""
    return [child for child in node.children if isinstance(child, Token)]


def phrases(node: Node) -> list[Node]:
    """The phrases directly in a phrase."""
    return [child for child in node.children if isinstance(child, Tree)]


def kinds(node: Node, kind: str) -> list[Node]:
    """The phrases of one kind directly in a phrase."""
    return [child for child in phrases(node) if child.data == kind]
