"""The general form of the ops with windows: index vectors that start windows, and windows split into rows.

A `dynamic_slice` is a gather by one vector, and a `dynamic_update_slice` is a scatter that sets. A window of `w` elements along
a dim is `w` rows of that dim, each with its own vector. A device that holds a block of the dim can then take the rows inside
its block.

    out[w, j] = src[start + w, j]   -->   out[w, j] = src[ids[w], j]     ids[w] = start + w
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from ..params import Literal, ParamsAttr, Record
from .gathers import GATHER_FIELDS, SCATTER_FIELDS
from .tree import Shape

Dims = tuple[int, ...]

DROP = "FILL_OR_DROP"
"""The mode in which a window outside the array is not written, or is read as the op's fill."""


@dataclass(frozen=True, slots=True)
class Form:
    """A gather or a scatter, and the effect of each component of its index vectors.

    Component `c` moves windows of `widths[c]` along dim `dims[c]` of the array. `batch` maps the dims of the array of
    vectors, in order, to dims of the windows' array (the result of a gather, the updates of a scatter).
    """

    kind: str
    params: ParamsAttr
    dims: Dims
    widths: Dims
    batch: Dims

    @property
    def fields(self) -> tuple[str, ...]:
        """JAX's names of the window dims, the collapsed dims, the dims of the components, and the batch dims of both."""
        return GATHER_FIELDS if self.kind == "gather" else SCATTER_FIELDS

    @property
    def numbers(self) -> tuple[Dims, ...]:
        """The dimension numbers, in the order of `fields`."""
        record = cast(Record, self.params["dimension_numbers"])
        return tuple(cast(Dims, record[name]) for name in self.fields)

    @property
    def mode(self) -> str:
        """The treatment of windows that leave the array."""
        return cast(str, cast(Record, self.params["mode"])["name"])

    def with_params(self, **changed: Literal) -> Form:
        """The same with other parameters."""
        return replace(self, params=ParamsAttr.of(**{**dict(self.params.items()), **changed}))


def general(kind: str, params: ParamsAttr, array: Shape, window: Shape) -> Form:
    """The general form of an op with windows on an array of this shape."""
    if kind.startswith("dynamic"):
        return _dynamic("gather" if kind == "dynamic_slice" else "scatter", len(array), window)
    form = Form(kind, params, (), (), ())
    if kind != "gather" and form.mode != "CLIP":
        # An update that violates `promise_in_bounds` is dropped like any other.
        form = form.with_params(mode=named(DROP))
    offset, collapsed, moved, batching, _ = form.numbers
    spans = iter(offset)
    widths = {dim: 1 if dim in collapsed else window[next(spans)] for dim in range(len(array)) if dim not in batching}
    batch = tuple(dim for dim in range(len(window)) if dim not in offset)
    return replace(form, dims=moved, widths=tuple(widths[dim] for dim in moved), batch=batch)


def _dynamic(kind: str, rank: int, window: Shape) -> Form:
    every = tuple(range(rank))
    params: dict[str, Literal] = {"mode": named("CLIP"), "indices_are_sorted": True, "unique_indices": True}
    if kind == "gather":
        params["fill_value"] = None
    form = Form(kind, ParamsAttr.of(**params), every, tuple(window), ())
    return _numbered(form, (every, (), every, (), ()))


def named(mode: str) -> Record:
    """A mode as a parameter."""
    return Record("GatherScatterMode", (("name", mode),))


def _numbered(form: Form, numbers: Iterable[Dims]) -> Form:
    kind = "GatherDimensionNumbers" if form.kind == "gather" else "ScatterDimensionNumbers"
    return form.with_params(dimension_numbers=Record(kind, tuple(zip(form.fields, numbers, strict=True))))


def rows(form: Form, component: int, rank: int) -> Form:
    """The form in which the windows of one component are rows; `rank` is that of the windows' array.

    The rows are a new dim of the vectors. In `batch` it takes the position that the window's dim had among the others.
    """
    offset, collapsed, moved, batching, shared = form.numbers
    dim = form.dims[component]
    # The window's dims are those of the array that are neither collapsed nor batch dims, in order.
    before = sum(each not in collapsed and each not in batching for each in range(dim))
    left = (*offset[:before], *offset[before + 1 :])
    batch = tuple(each for each in range(rank) if each not in left)
    again = tuple(batch.index(form.batch[each]) for each in shared)
    widths = tuple(1 if each == component else width for each, width in enumerate(form.widths))
    return replace(
        _numbered(form, (left, tuple(sorted((*collapsed, dim))), moved, batching, again)), widths=widths, batch=batch
    )
