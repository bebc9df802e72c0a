"""Finds mesh axes in texts, so that each axis has one colour everywhere: in a terminal and in a notebook.

f32[data*128, model*512]     -->   `data` in the first colour, `model` in the second, as in `@data`, `over model` and `data=4`
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape

PALETTE = ("#3477e0", "#c25f0a", "#1a8740", "#a052d6", "#0b8494", "#cf4480")
"""The colours of axes in a notebook, in the order of the mesh. Each has a contrast of at least 4 on white and on black."""


def axes_in(text: str, axes: tuple[str, ...]) -> Iterator[tuple[int, int, int]]:
    """Finds the axes that a text names. Yields (start, end, index of the axis)."""
    for found in _pattern(axes).finditer(text):
        yield found.start(), found.end(), axes.index(found["axis"])


@cache
def _pattern(axes: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, axes)) or r"(?!)"
    return re.compile(rf"(?<![\w/.])(?P<axis>{names})(?:\.\d+(?::\d+)?)?(?![\w/(])(?!\.\w)")


def coloured_pieces(text: str, coloured: Iterable[tuple[int, int, str]]) -> Iterator[tuple[str, str]]:
    """Splits a text into pieces with their colours. The colour is empty for the text between coloured pieces."""
    at = 0
    for start, end, style in sorted(coloured):
        if start >= at:
            yield from ((text[at:start], ""), (text[start:end], style))
            at = end
    yield text[at:], ""


def coloured_html(text: str, axes: tuple[str, ...]) -> str:
    """Escapes a text as HTML, with each axis in its colour."""
    coloured = ((start, end, PALETTE[which % len(PALETTE)]) for start, end, which in axes_in(text, axes))
    return "".join(
        f'<b style="color: {colour}">{escape(piece)}</b>' if colour else escape(piece)
        for piece, colour in coloured_pieces(text, coloured)
    )


def paragraph(text: str, axes: tuple[str, ...]) -> str:
    """An HTML paragraph of a text's lines, which keep their indentation and wrap."""
    return f'<pre style="white-space: pre-wrap">{coloured_html(text, axes)}</pre>'
