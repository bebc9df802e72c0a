"""A collective that runs: its kind, its axes, the bytes that a device receives, and how often; and sums over many of them.

A plan adds the reason of each (`Collective`), a graph its node. Counts and bytes are sums over exchanges.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ...rewrites.redistribute.steps import Bytes
from .counts import Counts, most, tally


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective: its axes, the exact bytes that a device receives each time, and how often it runs."""

    kind: str
    axes: tuple[str, ...]
    received: Bytes
    times: int
    where: str = ""
    """The branch, `cond#0:1`, or the loop of unknown trip count, `while#0`, that contains it. Such a loop counts once."""

    @property
    def bytes(self) -> int:
        """The bytes that a device receives each time, rounded."""
        return round(self.received)

    @property
    def often(self) -> str:
        """How often it runs, unless it is once: ` x 8 in cond#0:1`."""
        return (f" x {self.times}" if self.times != 1 else "") + (f" in {self.where}" if self.where else "")

    def __str__(self) -> str:
        return f"{self.kind} over {', '.join(self.axes)}{self.often}"


def counted(exchanges: Iterable[Exchange], own: Iterable[tuple[str, int, str]]) -> Counts:
    """Executions of each kind; those of the program's own `shard_map`s are reported separately."""
    return tally(((each.kind, each.times, each.where) for each in exchanges), own)


def received(exchanges: Iterable[Exchange]) -> int:
    """The bytes that a device receives in all of them, rounded once; of branches, those of the most expensive one."""
    return round(most((each.received * each.times, each.where) for each in exchanges))
