"""The front end of the ops with windows: gather, the scatters, dynamic_slice and dynamic_update_slice.

Their definitions say *what* they do. The dims of each group depend on dimension numbers in ways that `at` cannot express. This
file only reads these dims from the dimension numbers: the same `Definition` is bound, with more `at`.

    t..  batch dims of both the array and the index vectors        v..  the other dims of the array that is taken apart
    b..  the other dims of the index vectors                       w..  the window on v.., one for one; collapsed: extent 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..params import ParamsAttr, Record
from .ground_form import DimNumbers, Dims
from .tree import Definition, Shape


def windows(definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]) -> DimNumbers:
    """The dims of each group for the op called `definition.name`."""
    if definition.name.startswith("dynamic"):
        return _dynamic(definition, ins, outs)
    gathers = definition.name == "gather"
    numbers = params["dimension_numbers"]
    mode = params.get("mode")
    assert isinstance(numbers, Record)
    operand, ids = len(ins[0]), len(ins[1]) - 1
    window = len(outs[0]) if gathers else len(ins[2])
    names = GATHER_FIELDS if gathers else SCATTER_FIELDS
    offset, collapsed, start_map, batching, ids_batching = (_ints(numbers, name) for name in names)
    array, windowed = ("src", "out") if gathers else ("acc", "updates")
    # The dims of the array, without the batch dims; those of the window, in the same order, without the collapsed.
    looked = tuple(dim for dim in range(operand) if dim not in batching)
    remaining = iter(offset)
    spans = tuple(None if dim in collapsed else next(remaining) for dim in looked)
    # The window array's other dims are those of the index vectors, in order.
    batch = [dim for dim in range(window) if dim not in offset]
    free = [dim for dim in range(ids) if dim not in ids_batching]
    dims: dict[tuple[str, str], Dims] = {
        ("ids", "t"): ids_batching,
        ("ids", "b"): tuple(free),
        (windowed, "t"): tuple(batch[dim] for dim in ids_batching),
        (windowed, "b"): tuple(batch[dim] for dim in free),
        (windowed, "w"): spans,
        (array, "t"): batching,
        (array, "v"): looked,
    }
    if not gathers:
        dims |= {("out", "t"): batching, ("out", "v"): looked}
    starts = tuple(start_map.index(dim) if dim in start_map else None for dim in looked)
    how = mode["name"] if isinstance(mode, Record) else ""
    # Under `promise_in_bounds` XLA clamps a read that is out of bounds, and drops such an update.
    return DimNumbers(dims, starts, clamps=how == "CLIP" or (gathers and how == "PROMISE_IN_BOUNDS"))


GATHER_FIELDS = (
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "operand_batching_dims",
    "start_indices_batching_dims",
)
"""The dimension numbers of a gather: the window's dims, collapsed dims, the dims of the vectors' components, batch dims."""
SCATTER_FIELDS = (
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "operand_batching_dims",
    "scatter_indices_batching_dims",
)
"""The same for a scatter, in the same order."""


def _ints(numbers: Record, name: str) -> tuple[int, ...]:
    return cast(tuple[int, ...], numbers[name])


def _dynamic(definition: Definition, ins: Sequence[Shape], outs: Sequence[Shape]) -> DimNumbers:
    every = tuple(range(len(ins[0])))
    windowed = "out" if definition.name == "dynamic_slice" else "update"
    dims: dict[tuple[str, str], Dims] = {("src", "v"): every, (windowed, "w"): every}
    if windowed == "update":
        dims["out", "v"] = every
    return DimNumbers(dims, every, clamps=True)
