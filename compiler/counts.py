"""How often collectives are executed: what always runs, what a branch adds, what a loop of unknown trips repeats.

`where` says what an execution depends on: a path of `while#0` (counted once, though it may run more often) and `cond#1:0`
(branch 0 of that choice, taken or not), and nothing for what always runs.

    counts = plan.counts()      {"all_gather": 2, "all_reduce": 5, ...}
    counts.branches             {"cond#0:1": {"all_reduce": 1}}: beside the five, where that branch is taken
    counts.unknown              {"while#0": {"all_reduce": 4}}: among the five, once for all trips
"""

from __future__ import annotations

from collections.abc import Iterable

from .untyped import tree

KINDS: tuple[str, ...] = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "permute")


class Counts(dict[str, int]):
    """Executions of each kind of collective in one call, as a plain mapping of the five kinds; branches stand apart."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(KINDS, 0))
        self.branches: dict[str, dict[str, int]] = {}
        self.unknown: dict[str, dict[str, int]] = {}

    def add(self, kind: str, times: int, where: str) -> None:
        """Count executions at a place of the program."""
        if ":" in where:
            _add(self.branches, where, kind, times)
            return
        self[kind] += times
        if where:
            _add(self.unknown, where, kind, times)


def _values(counts: Counts) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return tuple(counts.values()), tuple(counts)


def _plain(kinds: tuple[str, ...], times: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(kinds, times, strict=True))


# To JAX it is the mapping that it is equal to.
tree.register_pytree_node(Counts, _values, _plain)


def _add(table: dict[str, dict[str, int]], where: str, kind: str, times: int) -> None:
    row = table.setdefault(where, {})
    row[kind] = row.get(kind, 0) + times


def tally(rows: Iterable[tuple[str, int, str]]) -> Counts:
    """The counts of (kind, times, where)."""
    counts = Counts()
    for kind, times, where in rows:
        counts.add(kind, times, where)
    return counts


def received(rows: Iterable[tuple[int, str]]) -> int:
    """The bytes of all (bytes, where) that one call can execute: of a choice, the branch with the most."""
    total = 0
    choices: dict[str, dict[str, list[tuple[int, str]]]] = {}
    for size, where in rows:
        first, rest = _inside(where)
        op, _, branch = first.partition(":")
        if branch:
            choices.setdefault(op, {}).setdefault(branch, []).append((size, rest))
        else:
            total += size
    return total + sum(max(map(received, branches.values())) for branches in choices.values())


def _inside(where: str) -> tuple[str, str]:
    """The outermost choice of a place, and what is inside it."""
    first, _, rest = where.partition("/")
    return (first, rest) if ":" in first or not rest else _inside(rest)
