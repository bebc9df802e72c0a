"""A session from a script: the lines of a file or of the standard input, each with its answer, as a terminal shows them.

data=4 model=2 · no collectives > tile w1.1 @model
layouts: w1: f32[256, 1024] --> f32[256, model*512]; ...
"""

from collections.abc import Callable, Iterable

from .answers import prompt
from .dialogue import do
from .session import Session
from .typed import Typed

Write = Callable[[str], None]


def run(session: Session, lines: Iterable[str], file: str, write: Write) -> Session:
    """The session after all lines. Raises Error, with a caret into its line, for the first one that fails."""
    for number, line in enumerate(lines, 1):
        typed = Typed(line.rstrip("\r\n"), number, file)
        if not typed.words:
            continue
        write(f"{prompt(session)}{typed.text}")
        answer = do(session, typed)
        if text := answer.final():
            write(text)
        session = answer.session
        if answer.ends:
            break
    return session
