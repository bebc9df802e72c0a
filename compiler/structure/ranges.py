"""`plan.ranges`: the ranges of a program, each with a name by which it can be tiled, and its dims.

name     extent   dims                            placed on
batch       512   batch/x.0, batch/y.0            data
...
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dialects.regions import TRIPS
from ..plan.state import State
from ..views.listing import Listing, ListingForm, merged
from ..views.view import Cell

MOST_DIMS = 4
"""The most dims of a range that a row shows."""


@dataclass(frozen=True, slots=True)
class Range:
    """Dims that the program identifies with each other: the definitions of its ops give them one index.

    `dims` are those of arguments and results, `NAME.DIM`. `count` is how many dims of all values there are. `axes` are the mesh
    axes that a tactic has placed on them.
    """

    name: str
    extents: tuple[int, ...]
    """Several only if a loop splits the range into trips, or an op takes a part of it."""
    dims: tuple[str, ...]
    count: int
    axes: tuple[str, ...]
    is_stack: bool = False
    """Whether a loop takes the range apart into trips, as it does with the layers of stacked parameters."""
    alike: str = ""
    """For a stack, the first stack of the same extent. Only that one gets a row in the table."""

    @property
    def dims_text(self) -> str:
        """The first of the dims, in text. Layers that are alike are merged."""
        rows = merged([name] for name in self.dims)
        more = f", and {len(rows) - MOST_DIMS} more" if len(rows) > MOST_DIMS else ""
        return ", ".join(str(row[0]) for row in rows[:MOST_DIMS]) + more

    def __str__(self) -> str:
        on = f", on {', '.join(self.axes)}" if self.axes else ""
        return f"`{self.name}` ({', '.join(map(str, self.extents))}): {self.dims_text}, {self.count:,} dims in all{on}"

    __repr__ = __str__


def ranges(plan: State) -> Listing[Range]:
    """The ranges of a program's arguments and results, those with the most dims first."""
    source, root_of = plan.source, plan.source.classes.root
    # A name that a tactic gave to another range is no longer the suggested one.
    names = {root_of(root): f"range {root}" for root in source.range_names.values()}
    names |= {root: name for name, root in plan.range_roots.items()} | {
        root_of(root): name for name, root in plan.labels.items()
    }
    members: dict[int, list[str]] = {root: [] for root in names}
    for name, value in (source.addresses.arguments | source.addresses.results).items():
        for dim, root in enumerate(source.classes.dims(value)):
            members.get(root, []).append(f"{name}.{dim}")
    extents, placed, stacks = _dims(plan), _axes(plan), _stacks(plan)
    found = [
        Range(
            name,
            tuple(extents[root]),
            tuple(members[root]),
            extents[root].total(),
            tuple(placed.get(root, ())),
            root in stacks,
        )
        for root, name in names.items()
    ]
    found.sort(key=lambda each: -each.count)
    # Each stacked array has a range of its own, since no op has a trip as a dim.
    first = {each.extents: each.name for each in reversed(found) if each.is_stack}
    found = [replace(each, alike=first[each.extents]) if each.is_stack else each for each in found]
    return Listing(found, ListingForm("ranges", _COLUMNS, _row, _notes, has_row=_has_row, spare=("dims of all",)))


def _has_row(each: Range) -> bool:
    return each.alike in ("", each.name)


def _notes(found: Sequence[Range]) -> Sequence[str]:
    said = Counter((each.alike, each.extents) for each in found if each.is_stack)
    return [
        f"`{name}` stands for {of} ranges of {extents[0]}: the trips of loops" for (name, extents), of in said.items() if of > 1
    ]


_COLUMNS = ("name", "extent", "dims of arguments and results", "dims of all", "placed on")


def _stacks(plan: State) -> set[int]:
    """The classes of dims that loops take apart into trips, or stack up from trips."""
    nodes = [node for node in plan.source.program.nodes if node.op_name in TRIPS]
    stacked = (node.operands[0] if node.op_name == "trip" else node.results[0] for node in nodes)
    return {plan.source.classes.of(value, 0) for value in stacked}


def _dims(plan: State) -> dict[int, Counter[int]]:
    """For each class of dims, how many dims of all values have which extent."""
    found = defaultdict[int, Counter[int]](Counter)
    for value, type in zip(plan.source.program.values, plan.source.program.types, strict=True):
        for root, extent in zip(plan.source.classes.dims(value), type.shape, strict=True):
            found[root][extent] += 1
    return found


def _axes(plan: State) -> dict[int, dict[str, None]]:
    """For each class of dims, the mesh axes on its dims, in the order of the table."""
    found: dict[int, dict[str, None]] = {}
    for axis in plan.table.axes:
        for value, type in zip(plan.source.program.values, plan.source.program.types, strict=True):
            claim = plan.table.claim(value, axis) if type.shape else None
            if claim is not None and claim.at >= 0:
                found.setdefault(plan.source.classes.of(value, claim.at), {})[str(axis)] = None
    return found


def _row(each: Range) -> Sequence[Cell]:
    return each.name, ", ".join(map(str, each.extents)), each.dims_text, each.count, ", ".join(each.axes)
