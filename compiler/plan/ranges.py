"""`plan.ranges`: the ranges of a program, each with a name by which it can be tiled, and the dims that it stands for.

name     extent   dims                            placed on
batch       512   batch/x.0, batch/y.0            data
...
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..views.listing import Listing, Shape, merged
from ..views.view import Cell
from .state import State

MOST = 4
"""The most dims of a range that a row shows."""


@dataclass(frozen=True, slots=True)
class Range:
    """Dims that the program identifies with each other: what the definitions of its ops give one index.

    `dims` are those of arguments and results, `NAME.DIM`. `count` is how many dims of all values there are. `axes` are the mesh
    axes that a tactic has placed on them.
    """

    name: str
    extents: tuple[int, ...]
    """More than one only if a loop splits the range into trips, or a part is taken of it."""
    dims: tuple[str, ...]
    count: int
    axes: tuple[str, ...]

    @property
    def dims_text(self) -> str:
        """The first of its dims, those of layers that are alike together."""
        rows = merged([name] for name in self.dims)
        more = f", and {len(rows) - MOST} more" if len(rows) > MOST else ""
        return ", ".join(str(row[0]) for row in rows[:MOST]) + more

    def __str__(self) -> str:
        on = f", on {', '.join(self.axes)}" if self.axes else ""
        return f"`{self.name}` ({', '.join(map(str, self.extents))}): {self.dims_text}, {self.count:,} dims in all{on}"

    __repr__ = __str__


def ranges(plan: State) -> Listing[Range]:
    """The ranges that arguments have, those of most dims first."""
    source, labels = plan.source, plan.all_labels()
    # A name that a tactic gave to another range is no longer the suggested one.
    suggested = {root: name for name, root in plan.source.range_names.items() if labels.get(name, root) == root}
    unnamed = {root: f"range {root}" for root in plan.source.range_names.values()}
    names = {**unnamed, **suggested, **{root: name for name, root in labels.items()}}
    members: dict[int, list[str]] = {root: [] for root in names}
    extents: dict[int, list[int]] = {root: [] for root in names}
    axes: dict[int, list[str]] = {root: [] for root in names}
    outer = source.addresses.arguments | source.addresses.results
    for value, type in enumerate(source.program.types):
        for dim, extent in enumerate(type.shape):
            if (root := source.classes.of(value, dim)) in names:
                extents[root].append(extent)
                axes[root] += [axis for axis in plan.table.axes if _is_on(plan, value, dim, axis)]
    for name, value in outer.items():
        for dim in range(len(source.program.shape(value))):
            if (root := source.classes.of(value, dim)) in names:
                members[root].append(f"{name}.{dim}")
    found = [
        Range(
            name,
            tuple(dict.fromkeys(extents[root])),
            tuple(members[root]),
            len(extents[root]),
            tuple(dict.fromkeys(axes[root])),
        )
        for root, name in names.items()
    ]
    found.sort(key=lambda each: -each.count)
    return Listing(
        found, Shape("ranges", ("name", "extent", "dims of arguments and results", "dims of all", "placed on"), _row)
    )


def _row(each: Range) -> Sequence[Cell]:
    return each.name, ", ".join(map(str, each.extents)), each.dims_text, each.count, ", ".join(each.axes)


def _is_on(plan: State, value: int, dim: int, axis: str) -> bool:
    claim = plan.table.claim(value, axis)
    return claim is not None and claim.at == dim
