"""How often collectives are executed: always, in a branch, or in a loop of unknown trip count.

`where` is the condition of an execution: a path of `while#0` (counted once, though it may run more often) and `cond#1:0`
(branch 0 of that `cond`, which may be taken). It is empty for a collective that always runs.

    counts = plan.counts()      {"all_gather": 2, "all_reduce": 5, ...}
    counts.branches             {"cond#0:1": {"all_reduce": 1}}: in addition to the five, if that branch is taken
    counts.unknown              {"while#0": {"all_reduce": 4}}: included in the five, once for all trips
    counts.in_branches          {"all_reduce": 1}: the most that all branches together add
    counts.own                  {"all_reduce": 2, ...}: in addition, in the program's own `shard_map`s
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...rewrites.redistribute.steps import Bytes
from ..jax_private import tree
from ..views.view import Grid

MOST = 4
"""The most loops of unknown trip count that a summary names."""

KINDS: tuple[str, ...] = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "permute")


class Counts(dict[str, int]):
    """Executions of each kind of collective in one call, as a mapping of the five kinds; branches are reported separately."""

    def __init__(self, own: Counts | None = None) -> None:
        super().__init__(dict.fromkeys(KINDS, 0))
        self.branches: dict[str, dict[str, int]] = {}
        self.unknown: dict[str, dict[str, int]] = {}
        self._own = own

    @property
    def own(self) -> Counts:
        """The collectives of the program's own `shard_map`s. No plan moves them, and the counts do not include them."""
        return Counts() if self._own is None else self._own

    def add(self, kind: str, times: int, where: str) -> None:
        """Counts executions under a condition."""
        if ":" in where:
            _add(self.branches, where, kind, times)
            return
        self[kind] += times
        if where:
            _add(self.unknown, where, kind, times)

    @property
    def in_branches(self) -> dict[str, int]:
        """The most of each kind that branches can add to the counts: of each `cond`, the branch with the most."""
        found = {kind: int(most((row.get(kind, 0), where) for where, row in self.branches.items())) for kind in self}
        return {kind: times for kind, times in found.items() if times}

    def choices(self, kind: str) -> list[str]:
        """The `cond`s that have a branch which runs a kind: `while#0/cond#1`."""
        return list(dict.fromkeys(where.rpartition(":")[0] for where, row in self.branches.items() if kind in row))

    def _repr_html_(self) -> str:
        return _shown(self).html()

    def text(self) -> str:
        """A summary in one line: `5 all_reduce, and in branches at most: 1 all_reduce`, and the counts that loops repeat."""
        always, inside = _listed(self), _listed(self.in_branches)
        if always:
            said = f"{always}, and in branches at most: {inside}" if inside else always
        else:
            said = f"no collectives but in branches, at most: {inside}" if inside else "no collectives"
        loops = {**self.unknown, **{where: row for where, row in self.branches.items() if "while#" in where}}
        again = [f"and in each further trip of {where}: {_listed(row)}" for where, row in list(loops.items())[:MOST]]
        more = [f"and so in {len(loops) - MOST} more loops"] if len(loops) > MOST else []
        own = [f"and of the program's own shard_maps: {self.own.text()}"] if self._own else []
        return ", ".join([said, *again, *more, *own])


def _shown(counts: Counts) -> Grid:
    rows = {"in one call": counts, **counts.branches}
    rows |= {f"in each further trip of {where}": row for where, row in counts.unknown.items()}
    rows |= {"of the program's own shard_maps": counts.own} if any(counts.own.values()) else {}
    return Grid(("collectives", *KINDS), [(name, *(row.get(kind, 0) for kind in KINDS)) for name, row in rows.items()])


def _listed(row: Mapping[str, int]) -> str:
    return ", ".join(f"{times} {kind}" for kind, times in row.items() if times)


def _values(counts: Counts) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return tuple(counts.values()), tuple(counts)


def _plain(kinds: tuple[str, ...], times: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(kinds, times, strict=True))


# JAX sees it as the equal plain mapping.
tree.register_pytree_node(Counts, _values, _plain)


def _add(table: dict[str, dict[str, int]], where: str, kind: str, times: int) -> None:
    row = table.setdefault(where, {})
    row[kind] = row.get(kind, 0) + times


def tally(rows: Iterable[tuple[str, int, str]], own: Iterable[tuple[str, int, str]] = ()) -> Counts:
    """The counts of (kind, times, where), and those of the program's own `shard_map`s."""
    inside = list(own)
    counts = Counts(tally(inside) if inside else None)
    for kind, times, where in rows:
        counts.add(kind, times, where)
    return counts


def most(rows: Iterable[tuple[Bytes, str]]) -> Bytes:
    """The sum of all (number, where) that one call can execute: of each `cond`, the branch with the most."""
    total: Bytes = 0
    choices: dict[str, dict[str, list[tuple[Bytes, str]]]] = {}
    for size, where in rows:
        if not where:
            total += size
            continue
        first, rest = _inside(where)
        op, _, branch = first.partition(":")
        if branch:
            choices.setdefault(op, {}).setdefault(branch, []).append((size, rest))
        else:
            total += size
    return total + sum(max(map(most, branches.values())) for branches in choices.values())


def _inside(where: str) -> tuple[str, str]:
    """The outermost `cond` of a path, and the path inside it."""
    first, _, rest = where.partition("/")
    return (first, rest) if ":" in first or not rest else _inside(rest)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective: its axes, the exact bytes that a device receives each time it runs, and how often that is in one call."""

    kind: str
    axes: tuple[str, ...]
    received: Bytes
    times: int
    where: str = ""
    """The branch, `cond#0:1`, or the loop of unknown trip count, `while#0`, that contains it. Such a loop counts once."""

    @property
    def bytes(self) -> int:
        """The bytes that a device receives each time it runs, rounded: in a loop, in one trip."""
        return round(self.received)

    @property
    def total_bytes(self) -> int:
        """The bytes that a device receives in one call, `times` runs of it, rounded once."""
        return round(self.received * self.times)

    @property
    def sent(self) -> str:
        """The bytes as a text that says of how many trips: `4,096 bytes`, `4,096 bytes x 12 trips`, `4,096 bytes a trip`."""
        trips = f" x {self.times:,} trips" if self.times != 1 else ""
        return f"{self.bytes:,} bytes{trips}{' a trip' if not trips and 'while#' in self.where else ''}"

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
