"""Colours for a terminal: each mesh axis has the same colour everywhere, in layouts, in prompts and in typed text.

f32[data*128, model*512]     `data` in cyan, `model` in magenta, as in `@data`, `over model` and `data=4`
"""

import re
from collections.abc import Iterator, Mapping

from rich.text import Text

from ...dialects.mesh import Mesh
from ..views.colours import axes_in, coloured_pieces

PALETTE = ("cyan", "magenta", "yellow", "green", "blue", "red")
"""The colours of axes, in the order of the mesh; `ansicyan` is prompt_toolkit's name of the first."""

MARKS: Mapping[str, str] = {"error": "bold red", "warning": "bold yellow", "note": "bold", "help": "bold green"}
"""The words that begin the parts of an error -> their style."""


_PART = re.compile(rf"^(?P<mark>{'|'.join(MARKS)}):|^\s*\|\s+(?P<caret>\^+)", re.MULTILINE)


def styles(text: str, mesh: Mesh) -> Iterator[tuple[int, int, str]]:
    """The coloured parts of a text: start, end and colour of each."""
    for start, end, which in axes_in(text, tuple(mesh.whole())):
        yield start, end, PALETTE[which % len(PALETTE)]
    for found in _PART.finditer(text):
        group = "mark" if found["mark"] else "caret"
        yield *found.span(group), MARKS[found["mark"]] if found["mark"] else "red"


def coloured(text: str, mesh: Mesh) -> Text:
    """The text for rich, in its colours."""
    return Text.assemble(*coloured_pieces(text, styles(text, mesh)))
