"""A session in a terminal: prompt_toolkit reads lines, with completion, history and Ctrl-R; rich shows the answers.

The answers are those of a script; a terminal adds colours, and shows when a command takes long.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import Output
from rich.console import Console
from rich.status import Status

from ...dialects.ground.errors import Error
from ..notation.tactic_statements import statement
from ..views.colours import coloured_pieces
from . import completion
from .answer import Answer, prompt
from .command_table import TABLE
from .run_line import do
from .screen import folded, greeting
from .session import WIDEST, Session
from .terminal_colours import coloured, styles
from .typed_line import Typed

SIGN = 3
"""The columns of the spinner."""


class Terminal(Completer, Lexer):
    """Reads the lines of a session and shows its answers. `keyboard` and `screen` replace those of the terminal."""

    def __init__(self, session: Session, console: Console, keyboard: Input | None = None, screen: Output | None = None) -> None:
        self.session, self.console, self.number = session, console, 0
        self.reader: PromptSession[str] = PromptSession(
            history=_history() if keyboard is None else InMemoryHistory(),
            completer=self,
            lexer=self,
            complete_while_typing=False,
            enable_history_search=True,
            input=keyboard,
            output=screen,
        )

    def run(self) -> Session:
        """Reads lines until `quit` or the end of the input. An error leaves the session unchanged.

        An exception, from a defect of Partita or from the user's own code, ends the session; its tactics are then shown, so
        that they are not lost.
        """
        self.measure()
        self.show(greeting(self.session))
        with ExitStack() as if_it_raises:
            if_it_raises.callback(self.rescue)
            while not self.ends():
                pass
            if_it_raises.pop_all()
        return self.session

    def ends(self) -> bool:
        """Reads a line and answers it; returns whether it was the last one."""
        self.measure()
        try:
            line = self.reader.prompt([("", "\n"), *self._coloured(prompt(self.session), "fg:ansibrightblack")])
        except KeyboardInterrupt:
            return False
        except EOFError:
            return True
        self.number += 1
        return self.answer(Typed(line, self.number)).ends

    def measure(self) -> None:
        """Takes the width of the terminal, which may have become wider or narrower."""
        self.session = replace(self.session, width=min(self.console.width, WIDEST))

    def rescue(self) -> None:
        """Shows the tactics of a session that ends by an exception."""
        tactics = [statement(action.text) for action in self.session.plan.actions]
        self.show("\n".join(["the session ends by an exception; its tactics were:", *tactics]))

    def answer(self, typed: Typed) -> Answer:
        """Runs a line and shows the answer, or the error."""
        try:
            with self._patience(typed) as status:
                answer = do(self.session, typed)
                text = self._followed(answer, typed, status)
        except Error as error:
            answer, text = Answer(self.session), f"error: {error}"
        except KeyboardInterrupt:
            answer, text = Answer(self.session), "stopped; the plan is as it was"
        self.session = answer.session
        if answer.clears:
            self.console.clear()
        if text:
            self.show(text)
        return answer

    def show(self, text: str) -> None:
        """Writes a text in its colours."""
        self.console.print(coloured(folded(text, self.session.width), self.session.plan.mesh), soft_wrap=True)

    def _followed(self, answer: Answer, typed: Typed, status: Status | None) -> str:
        """The final text of an answer, or the text at Ctrl-C; earlier texts are shown beside the spinner."""
        text, width = answer.text, answer.session.width
        try:
            for later in answer.later or ():
                if status is not None:
                    status.update(coloured(later(width - SIGN), self.session.plan.mesh))
                text = later(width)
        except KeyboardInterrupt:
            return f"{text}\nstopped: `{typed.text.strip()}` goes on from here"
        return text

    def _patience(self, typed: Typed) -> AbstractContextManager[Status | None]:
        """Shows a spinner while a slow command runs."""
        first = (each.words[0].text for each in typed.commands() if each.words)
        slow = next((TABLE[word].slow for word in first if word in TABLE and TABLE[word].slow), "")
        return self.console.status(slow) if slow and self.console.is_terminal else nullcontext()

    def _coloured(self, text: str, otherwise: str) -> StyleAndTextTuples:
        """A text with the colours of axes; the rest in another style."""
        found = coloured_pieces(text, styles(text, self.session.plan.mesh))
        return [(f"fg:ansi{style}" if style.isalpha() else otherwise, piece) for piece, style in found]

    # --- what prompt_toolkit asks ----------------------------------------------------------------------------------

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        for each in completion.completions(self.session, before):
            yield Completion(each.text, each.start - len(before), display_meta=each.meta)

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = [self._coloured(line, "bold") for line in document.lines]
        return lines.__getitem__


def _history() -> History:
    """The history of typed lines: in a file for all sessions, or in memory if there is no place for the file."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(base) / "partita"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(folder / "history"))
