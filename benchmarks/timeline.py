"""When a compiled program computes, and when it waits for collectives: its schedule, run on a clock.

    start gather | work 3 ms | end gather | work 1 ms        the gather takes 4 ms: 3 are hidden, 1 is exposed, the step is 5

A device computes as fast as XLA estimates. Collectives follow each other on one link, in the order in which they start, and end
no earlier than the schedule says. What a device computes at the same time hides them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from .hlo import Collective, End, Loop, Start, Step, Work

CYCLES_PER_SECOND = 1.5e9
"""The clock of a v5e chip, in which XLA counts."""
BYTES_PER_SECOND = 90e9
"""What a device receives over its links."""
SECONDS_PER_START = 1e-6


@dataclass(slots=True)
class Timeline:
    """The seconds of a step: those in which a device computes, and those in which it only waits."""

    compute: float = 0.0
    exposed: float = 0.0
    communication: float = 0.0
    """What collectives take, hidden or not."""
    link: float = 0.0
    """When the link is free."""
    ends: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def step(self) -> float:
        return self.compute + self.exposed

    @property
    def hidden(self) -> float:
        return max(0.0, self.communication - self.exposed)

    def after(self, steps: Sequence[Step]) -> Self:
        """Runs the steps."""
        for step in steps:
            match step:
                case Work(cycles):
                    self.compute += cycles / CYCLES_PER_SECOND
                case Start(key, collective):
                    self.link = max(self.step, self.link) + seconds(collective)
                    self.communication += seconds(collective)
                    self.ends[key] = self.link
                case End(key):
                    self.exposed += max(0.0, self.ends[key] - self.step)
                case Loop(trips, body):
                    self.repeat(trips, body)
        return self

    def repeat(self, trips: int, body: Sequence[Step]) -> None:
        """Runs a loop. Each trip after the first two takes as long as the second."""
        for _ in range(min(trips, 2)):
            before = self.compute, self.exposed, self.communication
            self.after(body)
        if trips > 2:
            now, ahead = (self.compute, self.exposed, self.communication), self.link - self.step
            self.compute, self.exposed, self.communication = (
                y + (trips - 2) * (y - x) for x, y in zip(before, now, strict=True)
            )
            self.link = self.step + ahead


def timeline(steps: Sequence[Step]) -> Timeline:
    """The timeline of a schedule."""
    return Timeline().after(steps)


def seconds(collective: Collective) -> float:
    """How long a collective takes."""
    return collective.bytes / BYTES_PER_SECOND + SECONDS_PER_START
