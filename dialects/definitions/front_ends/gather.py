"""The front end of the ops with windows: gather, the scatters, dynamic_slice and dynamic_update_slice.

Their definitions say what the ops compute. The dims of each group depend on dimension numbers in ways that `at` cannot express.
This file only reads these dims from the dimension numbers, as if the definition had more `at` clauses.

    t..  batch dims of both the array and the index vectors        v..  the other dims of the array that is taken apart
    b..  the other dims of the index vectors                       w..  the window on v.., one for one; collapsed: extent 1
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from ...params import ParamsAttr, Record
from ..ground_form import DimNumbers, Dims
from ..syntax_tree import Definition, Group, Shape

Ints = tuple[int, ...]


class DimensionNumbers(NamedTuple):
    """The dimension numbers of a gather or a scatter, in JAX's order.

    `window` are the dims of a window in the array of windows (the result of a gather, the updates of a scatter). Along
    `collapsed` dims of the other array a window has one element, and no dim. Component `c` of the index vectors moves a window
    along dim `moved[c]`. `batching` and `shared` are the batch dims of the array and of the index vectors.
    """

    window: Ints
    collapsed: Ints
    moved: Ints
    batching: Ints
    shared: Ints

    def spans(self, rank: int) -> dict[int, int | None]:
        """For each dim of the array, apart from batch dims, the dim of the window along it; None where it is collapsed."""
        dims = iter(self.window)
        return {dim: None if dim in self.collapsed else next(dims) for dim in range(rank) if dim not in self.batching}

    def batch(self, rank: int) -> Ints:
        """The dims of the array of windows that come from the array of index vectors: those that are not a window's."""
        return tuple(dim for dim in range(rank) if dim not in self.window)

    def widths(self, rank: int, windows: Shape) -> Ints:
        """The extent of a window along every dim of the array."""
        spans = self.spans(rank)
        return tuple(1 if (dim := spans.get(each)) is None else windows[dim] for each in range(rank))


GATHER = "GatherDimensionNumbers"
FIELDS: Mapping[str, Sequence[str]] = {
    GATHER: """
        offset_dims collapsed_slice_dims start_index_map operand_batching_dims start_indices_batching_dims
        """.split(),
    "ScatterDimensionNumbers": """
        update_window_dims inserted_window_dims scatter_dims_to_operand_dims operand_batching_dims scatter_indices_batching_dims
        """.split(),
}
"""JAX's names of the dimension numbers."""

CLAMPS = Record("GatherScatterMode", (("name", "CLIP"),))
"""The mode in which every window is moved inside the array."""
DROPS = Record("GatherScatterMode", (("name", "FILL_OR_DROP"),))
"""The mode in which a window outside the array is not written, or is read as the op's fill."""


def numbers(params: ParamsAttr, rank: int) -> DimensionNumbers:
    """The dimension numbers of an op on an array of this rank. Without any, one vector moves one window along every dim."""
    said = params.get("dimension_numbers")
    if not isinstance(said, Record):
        every = tuple(range(rank))
        return DimensionNumbers(every, (), every, (), ())
    return DimensionNumbers(*(cast(Ints, said[field]) for field in FIELDS[said.name]))


def dim_numbers(definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]) -> DimNumbers:
    """The dims of each group. The array that is read from or written to is the first operand."""
    (guard,) = definition.guards
    start, rank = guard.start, len(ins[0])
    found = numbers(params, rank)
    spans = found.spans(rank)
    # The array of windows has the dims of the index vectors, in order, and those of the window.
    vectors = 0 if start.spread else len(ins[definition.starts[0]]) - 1
    free = tuple(dim for dim in range(vectors) if dim not in found.shared)
    batch = found.batch(len(found.window) + vectors)
    looked = {"t": found.batching, "v": tuple(spans)}
    starts = {"t": found.shared, "b": free}
    window = {**{name: tuple(batch[dim] for dim in dims) for name, dims in starts.items()}, "w": tuple(spans.values())}
    dims: dict[tuple[str, str], Dims] = {
        (read.array, name): each
        for read in (*definition.reads(), *definition.targets)
        for name, each in (starts if read == start else window if Group((guard.window,)) in read.dims else looked).items()
    }
    components = tuple(found.moved.index(dim) if dim in found.moved else None for dim in spans)
    # Under `promise_in_bounds` XLA clamps a read that is out of bounds, and drops such an update. An op without a mode clamps.
    mode = cast(Record, params.get("mode", CLAMPS))["name"]
    return DimNumbers(dims, components, clamps=mode == "CLIP" or (definition.looks_up(guard) and mode == "PROMISE_IN_BOUNDS"))
