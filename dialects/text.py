"""How our ops read their own text inside xDSL's parser.

Layouts, types and parameters have a grammar of their own (`f32[data*128, 256]{+model}` is not MLIR's), so their
readers take the raw text at the parser's position instead of its tokens; this file is the only one that knows how.
"""

import re

from xdsl.parser import AttrParser


def take(parser: AttrParser, pattern: re.Pattern[str], what: str) -> str:
    """Reads the text that matches `pattern` at the parser's position and moves behind it.

    Raises the parser's error, `expected WHAT`, when nothing matches. The matched text may hold anything: the lexer
    never sees it.
    """
    found = pattern.match(parser.lexer.input.content, parser.pos)
    if found is None:
        parser.raise_error(f"expected {what}")
    go_on(parser, found.end())
    return found.group()


def go_on(parser: AttrParser, position: int) -> None:
    """Lets the parser go on at `position` of its input."""
    parser._resume_from(position)  # pyright: ignore[reportPrivateUsage]  # xDSL has no public way to move a parser


def behind(parser: AttrParser, start: int) -> str:
    """The text from `start` up to the parser's current token, without trailing blanks."""
    return parser.lexer.input.content[start : parser.pos].rstrip()
