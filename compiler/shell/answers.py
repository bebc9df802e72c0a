"""What a command answers: the session after it, and a text that is the same in a terminal and in a script."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...dialects.ground.english import counted, of_bytes
from ..api.plan import Plan
from ..views.columns import shortened
from ..views.view import View
from .session import Session

TYPED = 32
"""The columns that a prompt leaves for what is typed."""
LEAST = 20
"""The columns that a prompt may take on any screen."""
SIGN = " > "
"""What ends a prompt."""
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


def prompt(session: Session) -> str:
    """The branch, and how the plan stands. It leaves room to type: what is longer is said shorter.

    data=4 model=2 · 12 all_gather 9 all_reduce · 1.50 MiB >     -->     data=4 model=2 · 21 collectives · 1.50 MiB >
                                                                 -->     4x2 · 21 collectives · 1.50 MiB >
    """
    branch = f"{session.here}: " if len(session.branches) > 1 else ""
    room = max(session.width - TYPED, LEAST) - len(SIGN)
    *longer, shortest = (f"{branch}{said}" for said in _standing(session.plan))
    return next((each for each in longer if len(each) <= room), shortened(shortest, room)) + SIGN


def standing(plan: Plan) -> str:
    """The mesh, the collectives of a call, and the bytes that a device receives in it."""
    return next(_standing(plan))


def _standing(plan: Plan) -> Iterator[str]:
    """How a plan stands, each time in fewer words."""
    kinds, received = plan.counts(), plan.bytes_per_device()
    counts = " ".join(f"{times} {kind}" for kind, times in kinds.items() if times) or "no collectives"
    mesh, sizes = str(plan.mesh).replace(", ", " "), "x".join(map(str, plan.mesh.axes.values()))
    bytes, total = [of_bytes(received)] if received else [], counted(sum(kinds.values()), "collective")
    yield " · ".join([mesh, counts, *bytes])
    yield " · ".join([mesh, total, *bytes])
    yield " · ".join([sizes, total, *bytes])
    yield " · ".join([sizes, *bytes])
