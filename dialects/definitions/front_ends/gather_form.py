"""The general form of the ops with windows: index vectors that start windows, and windows split into rows.

A `dynamic_slice` is a gather by one vector, and a `dynamic_update_slice` is a scatter that sets. A window of `w` elements along
a dim is `w` rows of that dim, each with its own vector. A device that holds a block of the dim can then take the rows inside
its block.

    out[w, j] = src[start + w, j]   -->   out[w, j] = src[ids[w], j]     ids[w] = start + w
"""

from dataclasses import dataclass, replace
from typing import Self, cast

from ...params import Literal, ParamsAttr, Record
from ..syntax_tree import Definition, Shape
from .gather import CLAMPS, DROPS, FIELDS, GATHER, DimensionNumbers, Ints, numbers


@dataclass(frozen=True, slots=True)
class GatherForm:
    """A gather or a scatter, and the effect of each component of its index vectors.

    Component `c` moves windows of `widths[c]` along dim `numbers.moved[c]` of the array. `batch` maps the dims of the array of
    vectors, in order, to dims of the windows' array (the result of a gather, the updates of a scatter).
    """

    kind: str
    params: ParamsAttr
    numbers: DimensionNumbers
    widths: Ints
    batch: Ints

    @property
    def mode(self) -> Record:
        """The mode: how the op treats windows that leave the array."""
        return cast(Record, self.params["mode"])

    def with_params(self, **changed: Literal) -> Self:
        return replace(self, params=self.params.changed(**changed))

    def with_numbers(self, numbers: DimensionNumbers) -> Self:
        kind = GATHER if self.kind == "gather" else "ScatterDimensionNumbers"
        record = Record(kind, tuple(zip(FIELDS[kind], numbers, strict=True)))
        return replace(self.with_params(dimension_numbers=record), numbers=numbers)


def general(definition: Definition, params: ParamsAttr, array: Shape, windows: Shape) -> GatherForm:
    """The general form of an op with windows on an array of this shape."""
    found, rank = numbers(params, len(array)), len(array)
    spans = found.widths(rank, windows)
    widths, batch = tuple(spans[dim] for dim in found.moved), found.batch(len(windows))
    reads = definition.looks_up(definition.guards[0])
    if "dimension_numbers" in params:
        form = GatherForm(definition.name, params, found, widths, batch)
        # An update that violates `promise_in_bounds` is dropped like any other.
        return form if reads or form.mode == CLAMPS else form.with_params(mode=DROPS)
    fill: dict[str, Literal] = {"fill_value": None} if reads else {}
    single = ParamsAttr.of(mode=CLAMPS, indices_are_sorted=True, unique_indices=True, **fill)
    return GatherForm("gather" if reads else "scatter", single, found, widths, batch).with_numbers(found)


def rows(form: GatherForm, component: int, rank: int) -> GatherForm:
    """The form in which the windows of one component are split into rows; `rank` is the rank of the windows' array.

    The rows are a new dim of the vectors. In `batch` it takes the position that the window's dim had among the others.
    """
    window, collapsed, moved, batching, shared = form.numbers
    dim = moved[component]
    # The window's dims are those of the array that are neither collapsed nor batch dims, in order.
    before = sum(each not in collapsed and each not in batching for each in range(dim))
    left = (*window[:before], *window[before + 1 :])
    batch = tuple(each for each in range(rank) if each not in left)
    again = tuple(batch.index(form.batch[each]) for each in shared)
    widths = tuple(1 if each == component else width for each, width in enumerate(form.widths))
    form = replace(form, widths=widths, batch=batch)
    return form.with_numbers(DimensionNumbers(left, tuple(sorted((*collapsed, dim))), moved, batching, again))
