"""A session from a script: the lines of a file or of the standard input, each with its answer, as a terminal shows them.

data=4 model=2 · no collectives > tile w1.1 @model
layouts: w1: f32[256, 1024] --> f32[256, model*512]; ...
"""

import re
from collections.abc import Callable, Iterable
from io import StringIO

from rich.console import Console
from rich.text import Text

from ...dialects.ground.errors import Error
from .answer import prompt
from .run_line import do
from .screen import folded, greeting
from .session import Session
from .terminal_colours import coloured
from .typed_line import Typed

Write = Callable[[str], None]


def run_script(
    session: Session, lines: Iterable[str], file: str, write: Write, typed_in: Callable[[str, str], None] | None = None
) -> Session:
    """Runs all lines; returns the session after them. Raises Error, with a caret into its line, for the first one that fails.

    `typed_in` writes a prompt and the line typed at it, if these should look different from answers.
    """
    for number, line in enumerate(lines, 1):
        typed = Typed(line.rstrip("\r\n"), number, file)
        if not typed.words:
            continue
        if typed_in is None:
            write(f"{prompt(session)}{typed.text}")
        else:
            typed_in(prompt(session), typed.text)
        answer = do(session, typed)
        if text := answer.final():
            write(text)
        session = answer.session
        if answer.ends:
            break
    return session


def picture(session: Session, lines: Iterable[str], file: str, title: str) -> tuple[str, Error | None]:
    """Returns the SVG of a session, and the error of the line at which it ends, if one fails: the picture shows it too."""
    console = Console(record=True, width=session.width, file=StringIO(), force_terminal=True, color_system="truecolor")

    def made(text: str) -> Text:
        return coloured(folded(text, session.width), session.origin.mesh)

    def write(text: str) -> None:
        console.print(made(text))

    def typed_in(prompt: str, text: str) -> None:
        line = made(f"{prompt}{text}")
        line.stylize("dim", 0, len(prompt))
        line.stylize("bold", len(prompt))
        console.print(Text(), line, sep="\n")

    failed = None
    write(greeting(session))
    try:
        run_script(session, lines, file, write, typed_in)
    except Error as error:
        failed = error
        write(f"error: {error}")
    svg = console.export_svg(title=title, unique_id="shell")
    # Uses the system's fonts, so that a picture loads nothing.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE), failed
