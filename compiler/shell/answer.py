"""The answer of a command: the session after it, and a text that is the same in a terminal and in a script."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...dialects.ground.amounts import counted, of_bytes
from ..api.plan import Plan
from ..views.columns import shortened
from ..views.view import View
from .session import Session

TYPED = 32
"""The columns that a prompt leaves for typing."""
LEAST = 20
"""The columns that a prompt may take on any screen."""
SIGN = " > "
"""The end of a prompt."""
Text = Callable[[int], str]
"""Takes a number of columns; returns a text of at most this width."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The session after a command, and the answer's text. With `ends`, the session is over.

    The text may be incomplete at first: each of `later`, given a number of columns, returns a text that replaces the one
    before.
    """

    session: Session
    text: str = ""
    ends: bool = False
    clears: bool = False
    """Whether a terminal clears the screen first."""
    later: Iterator[Text] | None = field(default=None, compare=False)

    def final(self) -> str:
        """The answer's last text, after all of `later`."""
        last = deque(self.later or (), maxlen=1)
        return last[0](self.session.width) if last else self.text


def as_text(what: object, width: int) -> str:
    """A view, a table or anything else as a text of at most this width."""
    return what.text(width) if isinstance(what, View) else str(what)


def prompt(session: Session) -> str:
    """The prompt: the branch, and a summary of the plan. The summary is shortened to leave room for typing.

    data=4 model=2 · 12 all_gather 9 all_reduce · 1.50 MiB >     -->     data=4 model=2 · 21 collectives · 1.50 MiB >
                                                                 -->     4x2 · 21 collectives · 1.50 MiB >
    """
    branch = f"{session.here}: " if len(session.branches) > 1 else ""
    room = max(session.width - TYPED, LEAST) - len(SIGN)
    *longer, shortest = (f"{branch}{said}" for said in _standing(session.plan))
    return next((each for each in longer if len(each) <= room), shortened(shortest, room)) + SIGN


def standing(plan: Plan) -> str:
    """A summary of a plan: its mesh, the collectives of a call, and the bytes that a device receives in it."""
    return next(_standing(plan))


def _standing(plan: Plan) -> Iterator[str]:
    """Summaries of a plan, each shorter than the one before."""
    kinds, received = plan.counts(), plan.bytes_per_device()
    counts = " ".join(f"{times} {kind}" for kind, times in kinds.items() if times) or "no collectives"
    mesh, sizes = str(plan.mesh).replace(", ", " "), "x".join(map(str, plan.mesh.axes.values()))
    bytes, total = [of_bytes(received)] if received else [], counted(sum(kinds.values()), "collective")
    yield " · ".join([mesh, counts, *bytes])
    yield " · ".join([mesh, total, *bytes])
    yield " · ".join([sizes, total, *bytes])
    yield " · ".join([sizes, *bytes])
