"""Colours for a terminal: each mesh axis has its own everywhere, in layouts, in prompts and in what is typed.

f32[data*128, model*512]     `data` in cyan, `model` in magenta, as in `@data`, `over model` and `data=4`
"""

import re
from collections.abc import Iterator, Mapping

from ...dialects.mesh import Mesh
from ..views.colours import axes_in

PALETTE = ("cyan", "magenta", "yellow", "green", "blue", "red")
"""The colours of axes, in the order of the mesh; `ansicyan` is prompt_toolkit's name of the first."""

MARKS: Mapping[str, str] = {"error": "bold red", "warning": "bold yellow", "note": "bold", "help": "bold green"}
"""The words that begin the parts of an error."""


def axis_colours(mesh: Mesh) -> dict[str, str]:
    """The colour of each axis of the unrefined mesh."""
    return {axis: PALETTE[number % len(PALETTE)] for number, axis in enumerate(mesh.whole())}


_PART = re.compile(rf"^(?P<mark>{'|'.join(MARKS)}):|^\s*\|\s+(?P<caret>\^+)", re.MULTILINE)


def styles(text: str, mesh: Mesh) -> Iterator[tuple[int, int, str]]:
    """The stretches of a text that have a colour, with that colour."""
    of = axis_colours(mesh)
    for start, end, which in axes_in(text, tuple(of)):
        yield start, end, [*of.values()][which]
    for found in _PART.finditer(text):
        group = "mark" if found["mark"] else "caret"
        yield *found.span(group), MARKS[found["mark"]] if found["mark"] else "red"
