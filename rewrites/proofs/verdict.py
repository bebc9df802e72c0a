"""What is known of a law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter


class Nothing(Exception):
    """Raised by a law for numbers of which it says nothing."""


def suppose(truth: object) -> None:
    """A law says nothing about numbers for which this is false. Raises Nothing then."""
    if not truth:
        raise Nothing


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a law: `proved`, `refuted` or `not proved`; and how, by which counter-example, or why not."""

    state: str
    how: str = ""
    paths: int = 0
    """On how many paths of its code it was proved, for a law that is code."""
    seconds: float = field(default=0, compare=False)
    """What the proof has taken."""

    def __str__(self) -> str:
        return f"{self.state}: {self.how}" if self.how else self.state


def timed(prove: Callable[[], Verdict]) -> Verdict:
    """A verdict, with what the proof has taken."""
    start = perf_counter()
    found = prove()
    return replace(found, seconds=perf_counter() - start)
