"""What a plan does on several devices at once, although one would do: what is replicated, computed by all, or not partitioned.

Nothing of it is wrong, and much of it is small. But none of it shows as a collective.

    params/norm (f32[64])                  stored in full by each device along `data` and `model`
    dot_general#7 (logits) at lm.py:40     computed in full by both devices along `model`
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from ...rewrites.decide.op_layouts import boundary
from ...rewrites.program.program import Node
from ..inputs.lines import Source
from ..views.listing import Listing, Shape
from ..views.view import Cell
from .collectives import line_of
from .conflicts import BYTES_PER_SECOND, FLOPS_PER_SECOND
from .state import State
from .stops import wholes
from .work import flops_per_device, on_device, op_name

REPLICATED, REDUNDANT, UNPARTITIONED = "replicated", "computed by all", "unpartitioned"


@dataclass(frozen=True, slots=True)
class Silent:
    """One array or op of which devices along `axes` all have, or do, the same.

    `bytes` is what a device stores in excess, or, for an unpartitioned op, receives; `flops` is what it computes in excess in a
    call. Both are zero if the devices shared the array or the work.
    """

    what: str
    """`replicated`, `computed by all` or `unpartitioned`."""
    value: str
    op: str
    axes: tuple[str, ...]
    bytes: int
    flops: int
    source: Source | None

    @property
    def seconds(self) -> float:
        """About how long the excess takes a TPU v5e: what the entries are ordered by."""
        return self.bytes / BYTES_PER_SECOND + self.flops / FLOPS_PER_SECOND

    def __str__(self) -> str:
        where = f" at {self.source}" if self.source is not None else ""
        of = f" by `{self.op}`" if self.op else ""
        cost = ", ".join(f"{each:,} {unit}" for each, unit in ((self.bytes, "bytes"), (self.flops, "flops")) if each)
        return f"`{self.value}`{of}{where}: {self.what} along {', '.join(self.axes)}, {cost or 'nothing'} in excess on a device"

    __repr__ = __str__


def silent(plan: State) -> Listing[Silent]:
    """All of it, the most expensive first."""
    found = [*_replicated(plan), *_redundant(plan), *_unpartitioned(plan)]
    found = sorted((each for each in found if each.bytes or each.flops), key=lambda each: -each.seconds)
    return Listing(found, Shape("replicated values or redundant ops", _COLUMNS, _row, partial(_notes, plan)))


def redundant_flops(plan: State) -> tuple[int, int]:
    """The flops of a device in a call that other devices compute too, beyond its share of them; and all of its flops."""
    return sum(each.flops for each in _redundant(plan)), flops_per_device(plan).known


_COLUMNS = ("value", "op", "what", "along", "bytes", "flops", "at")


def _row(each: Silent) -> Sequence[Cell]:
    at = "" if each.source is None else each.source.place
    return each.value, each.op, each.what, ", ".join(each.axes), each.bytes, each.flops, at


def _notes(plan: State, found: Sequence[Silent]) -> list[str]:
    stored, computed = sum(each.bytes for each in found if each.what == REPLICATED), sum(each.flops for each in found)
    total = flops_per_device(plan).known
    said = [f"{stored:,} bytes of a device are stored by others too" if stored else ""]
    said.append(f"{computed / total:.1%} of its {total:,} flops are in excess of its share" if computed and total else "")
    return ["; ".join(filter(None, said))]


def _whole_on(plan: State, placed: set[str]) -> tuple[str, ...]:
    """The axes of more than one device that are not among these."""
    return tuple(axis for axis, size in plan.mesh.axes.items() if size > 1 and axis not in placed)


def _excess(plan: State, size: int, axes: Sequence[str]) -> int:
    """What is more than a device's share, if all devices of these axes have so much."""
    return size - -(-size // prod(plan.mesh[axis] for axis in axes))


def _replicated(plan: State) -> Iterator[Silent]:
    program, placements, names = plan.source.program, plan.decisions.placements, plan.source.addresses.names
    for value in dict.fromkeys((*program.arguments, *program.returned)):
        layout = boundary(placements, value)
        axes = _whole_on(plan, {factor.name for _, factor in layout.factors(plan.mesh)})
        excess = _excess(plan, placements.local_bytes(value, layout), axes)
        yield Silent(REPLICATED, names[value], "", axes, excess, 0, None)


def _redundant(plan: State) -> Iterator[Silent]:
    program, placements = plan.source.program, plan.decisions.placements
    for node in program.nodes:
        if node.kind == "whole" or not node.results or not (flops := on_device(plan, node)):
            continue
        axes = _whole_on(plan, placements.axes(node))
        excess = _excess(plan, flops, axes) * program.trips(node.region)
        if excess:
            yield _of_node(plan, node, REDUNDANT, axes, 0, excess)


def _of_node(plan: State, node: Node, what: str, axes: tuple[str, ...], bytes: int, flops: int) -> Silent:
    value = node.results[0]
    name, source = plan.source.addresses.names[value], line_of(plan, value, node)
    return Silent(what, name, op_name(node), axes, bytes, flops, source)


def _unpartitioned(plan: State) -> Iterator[Silent]:
    for each in wholes(plan):
        if not each.own and not each.once:
            yield Silent(UNPARTITIONED, each.value, each.primitive, _whole_on(plan, set()), each.bytes, 0, each.source)
