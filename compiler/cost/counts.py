"""How often collectives run: always, in a branch, or in a loop of unknown trip count.

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

MOST_LOOPS = 4
"""The most loops of unknown trip count that a summary names."""

COLLECTIVES: tuple[str, ...] = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "permute")


class Counts(dict[str, int]):
    """How often each of the five kinds of collectives runs in one call. Branches are reported separately."""

    def __init__(self, own: Counts | None = None) -> None:
        super().__init__(dict.fromkeys(COLLECTIVES, 0))
        self.branches: dict[str, dict[str, int]] = {}
        self.unknown: dict[str, dict[str, int]] = {}
        self._own = own

    @property
    def own(self) -> Counts:
        """The collectives of the program's own `shard_map`s, which no plan changes. They are not included in the counts."""
        return Counts() if self._own is None else self._own

    def add(self, kind: str, times: int, where: str) -> None:
        """Adds `times` executions of a kind. `where` is the branch or loop in which they run."""
        if ":" in where:
            _add(self.branches, where, kind, times)
            return
        self[kind] += times
        if where:
            _add(self.unknown, where, kind, times)

    @property
    def in_branches(self) -> dict[str, int]:
        """The most that branches can add to each kind: of each `cond`, the branch with the most counts."""
        found = {kind: int(most((row.get(kind, 0), where) for where, row in self.branches.items())) for kind in self}
        return {kind: times for kind, times in found.items() if times}

    def choices(self, kind: str) -> list[str]:
        """The `cond`s with a branch that runs this kind of collective: `while#0/cond#1`."""
        return list(dict.fromkeys(where.rpartition(":")[0] for where, row in self.branches.items() if kind in row))

    def _repr_html_(self) -> str:
        return _shown(self).html()

    def text(self) -> str:
        """A summary in one line, with what branches and loops add: `5 all_reduce, and in branches at most: 1 all_reduce`."""
        always, inside = _listed(self), _listed(self.in_branches)
        if always:
            said = f"{always}, and in branches at most: {inside}" if inside else always
        else:
            said = f"no collectives but in branches, at most: {inside}" if inside else "no collectives"
        loops = {**self.unknown, **{where: row for where, row in self.branches.items() if "while#" in where}}
        again = [f"and in each further trip of {where}: {_listed(row)}" for where, row in list(loops.items())[:MOST_LOOPS]]
        more = [f"and so in {len(loops) - MOST_LOOPS} more loops"] if len(loops) > MOST_LOOPS else []
        own = [f"and of the program's own shard_maps: {self.own.text()}"] if self._own else []
        return ", ".join([said, *again, *more, *own])


def _shown(counts: Counts) -> Grid:
    rows = {"in one call": counts, **counts.branches}
    rows |= {f"in each further trip of {where}": row for where, row in counts.unknown.items()}
    rows |= {"of the program's own shard_maps": counts.own} if any(counts.own.values()) else {}
    return Grid(
        ("collectives", *COLLECTIVES), [(name, *(row.get(kind, 0) for kind in COLLECTIVES)) for name, row in rows.items()]
    )


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
    """Sums up (kind, times, where), separately from those of the program's own `shard_map`s."""
    inside = list(own)
    counts = Counts(tally(inside) if inside else None)
    for kind, times, where in rows:
        counts.add(kind, times, where)
    return counts


def most(rows: Iterable[tuple[Bytes, str]]) -> Bytes:
    """The greatest sum of (number, where) that one call can execute: of each `cond`, the branch with the most is taken."""
    total: Bytes = 0
    choices: dict[str, dict[str, list[tuple[Bytes, str]]]] = {}
    for size, where in rows:
        if not where:
            total += size
            continue
        first, rest = _split_at_cond(where)
        op, _, branch = first.partition(":")
        if branch:
            choices.setdefault(op, {}).setdefault(branch, []).append((size, rest))
        else:
            total += size
    return total + sum(max(map(most, branches.values())) for branches in choices.values())


def _split_at_cond(where: str) -> tuple[str, str]:
    """Splits a path at its outermost `cond`: that, and the path inside of it."""
    first, _, rest = where.partition("/")
    return (first, rest) if ":" in first or not rest else _split_at_cond(rest)


@dataclass(frozen=True, slots=True)
class CountedCollective:
    """A collective: its kind and axes, the exact bytes that a device receives in one run, and its runs in one call."""

    kind: str
    axes: tuple[str, ...]
    received: Bytes
    times: int
    where: str = ""
    """The branch, `cond#0:1`, or the loop of unknown trip count, `while#0`, around it. Such a loop counts as one trip."""

    @property
    def bytes(self) -> int:
        """The bytes that a device receives in one run, rounded. In a loop, that is one trip."""
        return round(self.received)

    @property
    def total_bytes(self) -> int:
        """The bytes that a device receives in one call, in all `times` runs, rounded once."""
        return round(self.received * self.times)

    @property
    def sent(self) -> str:
        """The bytes in text, with the number of trips: `4,096 bytes`, `4,096 bytes x 12 trips`, `4,096 bytes a trip`."""
        trips = f" x {self.times:,} trips" if self.times != 1 else ""
        return f"{self.bytes:,} bytes{trips}{' a trip' if not trips and 'while#' in self.where else ''}"

    @property
    def often(self) -> str:
        """How often and where it runs, in text; empty if once: ` x 8 in cond#0:1`."""
        return (f" x {self.times}" if self.times != 1 else "") + (f" in {self.where}" if self.where else "")

    def __str__(self) -> str:
        return f"{self.kind} over {', '.join(self.axes)}{self.often}"


def count_collectives(exchanges: Iterable[CountedCollective], own: Iterable[tuple[str, int, str]]) -> Counts:
    """Counts collectives by kind, separately from those of the program's own `shard_map`s."""
    return tally(((each.kind, each.times, each.where) for each in exchanges), own)


def bytes_received(exchanges: Iterable[CountedCollective]) -> int:
    """The bytes that a device receives in these collectives, rounded once.

    Of the branches of a `cond`, the most expensive counts.
    """
    return round(most((each.received * each.times, each.where) for each in exchanges))
