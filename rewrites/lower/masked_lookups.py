"""Looked-up indices on one device: counted from the first element of its block, and for reads with a mask of those inside.

Index vectors are in the general form of their op (`GatherForm`). Starts that the op clamps are clamped to the bounds of the
whole array. A window on a placed dim is split into rows. Then the offset of the block is subtracted from the component.

    [start] of 3 rows, a block from 8 on   -->   [[start - 8], [start + 1 - 8], [start + 2 - 8]]

A user-defined op, whose indices are the elements of an array, gets only ids inside the block. The other ids become 0, and the
elements that they read or write become zero. An op that defines what ids outside do gets -1 for them.

    ids [9, 2], a block from 8 on   -->   ids [1, 0], mask [true, false]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from ...dialects.definitions.front_ends.gather import DROPS
from ...dialects.definitions.front_ends.gather_form import GatherForm, rows
from ..emit import IDS, Emitter, Shape, type_at
from ..program.program import Node, Position


class Vectors:
    """The index vectors of one op, changed one component after another; `window` is the local shape of the windows' array."""

    def __init__(self, form: GatherForm, ids: Sequence[SSAValue], array: Shape, window: Shape, emit: Emitter) -> None:
        """`array` is the global shape of the array that is looked up in or written to."""
        self.form = form
        self.emit = emit
        self.window = window
        self.extents = tuple(array[dim] for dim in form.numbers.moved)
        self.ids = self.stacked([emit.narrow(each) for each in ids])
        if form.mode != DROPS:
            self.clamp()

    def stacked(self, ids: list[SSAValue]) -> SSAValue:
        """Emits scalar starts as one vector."""
        if type_at(ids[0]).shape:
            return ids[0]
        parts = [self.emit.reshape(each, (1,)) for each in ids]
        return self.emit.concatenate(parts, 0)

    def clamp(self) -> None:
        """Moves every window inside the whole array, as the unpartitioned op does."""
        last = [extent - width for extent, width in zip(self.extents, self.form.widths, strict=True)]
        if len(set(last)) == 1:
            self.ids = self.within(last[0])
            return
        for component, most in enumerate(last):
            self.only(self.within(most), component)

    def within(self, most: int) -> SSAValue:
        low, high = self.emit.number(0, IDS), self.emit.number(most, IDS)
        return self.emit.make("clamp", (low, self.ids, high), IDS, self.shape)

    @property
    def shape(self) -> Shape:
        return type_at(self.ids).shape

    def rows(self, component: int) -> None:
        """Splits the windows of a component into rows. All rows of a window that leaves the array stay outside."""
        emit, width, before = self.emit, self.form.widths[component], self.form.batch
        if self.form.mode == DROPS:
            fits = emit.between(self.ids, self.extents[component] - width + 1)
            self.only(emit.select(fits, self.ids, -width), component)
        self.form = rows(self.form, component, len(self.window))
        batch = self.form.batch
        shape = (*(self.window[dim] for dim in batch), self.shape[-1])
        kept = (*(batch.index(dim) for dim in before), len(batch))
        (row,) = (at for at, dim in enumerate(batch) if dim not in before)
        self.ids = emit.spread(self.ids, shape, kept)
        self.only(emit.apply("add", self.ids, emit.iota(shape, row)), component)
        unique = self.form.params["unique_indices"] is True and not before
        self.form = self.form.with_params(indices_are_sorted=False, unique_indices=unique)

    def drop(self, component: int, offset: SSAValue) -> None:
        """Drops updates outside the block, for writes. Unique ids stay unique."""
        self.only(self.emit.apply("sub", self.ids, offset), component)
        self.form = self.form.with_params(indices_are_sorted=False, mode=DROPS)

    def keep(self, component: int, block: int, offset: SSAValue, first: SSAValue | None, is_padded: bool) -> SSAValue:
        """Returns the mask of rows in the block, for reads; on the `first` device with rows outside the array: the op fills
        these."""
        emit, all_ids = self.emit, self.ids
        here = emit.apply("sub", all_ids, offset)
        inside = emit.between(here, block)
        if is_padded:
            inside = emit.both(inside, emit.between(all_ids, self.extents[component]))
        kept = emit.select(inside, here)
        if first is not None:
            outside = emit.apply("not", emit.between(all_ids, self.extents[component]))
            mine = emit.both(outside, first)
            kept = emit.apply("select_n", mine, kept, -1)
            inside = emit.both(inside, mine, "or")
        self.only(kept, component)
        # Rows of other devices are all looked up at one position, so promises about the ids no longer hold.
        self.form = self.form.with_params(indices_are_sorted=False, unique_indices=False)
        return self.component(inside, component)

    def only(self, changed: SSAValue, component: int) -> None:
        """Sets one component to the changed one, and leaves the others."""
        if self.shape[-1] > 1:
            this = self.emit.equals(self.emit.iota(self.shape, len(self.shape) - 1), component)
            changed = self.emit.apply("select_n", this, self.ids, changed)
        self.ids = changed

    def component(self, mask: SSAValue, component: int) -> SSAValue:
        """One component of a mask, broadcast to the windows' array."""
        *batch, width = self.shape
        if width > 1:
            mask = self.emit.part(mask, len(batch), component)
        return self.emit.spread(self.emit.reshape(mask, tuple(batch)), self.window, self.form.batch)


def shifted(
    ids: SSAValue, offset: SSAValue, block: int, emit: Emitter, most: int | None = None, outside: int | None = None
) -> tuple[SSAValue, SSAValue]:
    """The ids in the block, counted from its start, others as `outside`; and the mask of ids in the block and below `most`."""
    narrow = emit.narrow(ids)
    here = emit.apply("sub", narrow, offset)
    inside = emit.between(here, block)
    if most is not None:
        inside = emit.both(inside, emit.between(narrow, most))
    kept = emit.select(inside, here, outside)
    return emit.cast(kept, type_at(ids).dtype), inside


def masked(value: SSAValue, mask: SSAValue, ids: int, at: Mapping[int, Position], node: Node, emit: Emitter) -> SSAValue:
    """Zeroes a value where the mask is false. The mask's dims are found in the value by the indices that `ids` has on them."""
    dims = [(dim, digits[0].at) for dim, digits in enumerate(node.signature.operand_dims[ids]) if digits]
    narrow = emit.reshape(mask, tuple(type_at(mask).shape[dim] for dim, _ in dims))
    into = tuple(at[index].dim for _, index in dims)
    return emit.select(emit.spread(narrow, type_at(value).shape, into), value)
