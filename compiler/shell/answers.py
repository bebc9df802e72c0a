"""What a command answers: the session after it, and a text that is the same in a terminal and in a script."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rich.console import RenderableType

from ...dialects.english import of_bytes
from ..views.view import View, rendered
from .session import Session

Text = Callable[[int], str]
"""A text of so many columns."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The session after a command, and what it says. With `ends`, the session is over.

    What it says may be known in part at first: each of `later`, a text of so many columns, takes the place of what was said
    before.
    """

    session: Session
    text: str = ""
    ends: bool = False
    clears: bool = False
    """Whether a terminal shows nothing above it."""
    later: Iterator[Text] | None = field(default=None, compare=False)

    def final(self) -> str:
        """What it says in the end."""
        last = deque(self.later or (), maxlen=1)
        return last[0](self.session.width) if last else self.text


def shown(what: object, width: int) -> str:
    """A view, a table or anything else as text that is at most so wide."""
    return what.text(width) if isinstance(what, View) else str(what)


def wide(what: RenderableType, width: int) -> str:
    return rendered(what, width)


def prompt(session: Session) -> str:
    """The mesh, the collectives of a call, and the bytes that a device receives in it."""
    plan = session.plan
    counts = " ".join(f"{times} {kind}" for kind, times in plan.counts().items() if times) or "no collectives"
    mesh = str(plan.mesh).replace(", ", " ")
    received = plan.bytes_per_device()
    branch = f"{session.here}: " if len(session.branches) > 1 else ""
    return " · ".join([f"{branch}{mesh}", counts, *([of_bytes(received)] if received else [])]) + " > "
