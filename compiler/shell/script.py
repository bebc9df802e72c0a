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


def run(
    session: Session, lines: Iterable[str], file: str, write: Write, typed_in: Callable[[str, str], None] | None = None
) -> Session:
    """The session after all lines. Raises Error, with a caret into its line, for the first one that fails.

    `typed_in` writes a prompt and what is typed behind it, if that is to look otherwise than an answer.
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
