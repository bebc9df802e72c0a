"""A picture of a session: a script, run, as a terminal would show it, in an SVG."""

import re
from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.text import Text

from ...dialects.errors import Error
from ..views.colours import pieces
from .colours import styles
from .screen import folded, greeting
from .script import run
from .session import Session


def picture(session: Session, lines: Iterable[str], file: str, title: str) -> tuple[str, Error | None]:
    """The SVG of a session, and the error of the line at which it ends, if one fails: the picture shows it too."""
    console = Console(record=True, width=session.width, file=StringIO(), force_terminal=True, color_system="truecolor")

    def coloured(text: str) -> Text:
        made = Text()
        for piece, style in pieces(text, styles(text, session.origin.mesh)):
            made.append(piece, style)
        return made

    def write(text: str) -> None:
        console.print(coloured(folded(text, session.width)))

    def typed_in(prompt: str, text: str) -> None:
        line = coloured(folded(f"{prompt}{text}", session.width))
        line.stylize("dim", 0, len(prompt))
        line.stylize("bold", len(prompt))
        console.print(Text(), line, sep="\n")

    failed = None
    write(greeting(session))
    try:
        run(session, lines, file, write, typed_in)
    except Error as error:
        failed = error
        write(f"error: {error}")
    svg = console.export_svg(title=title, unique_id="shell")
    # The fonts of the system: a picture loads nothing.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE), failed
