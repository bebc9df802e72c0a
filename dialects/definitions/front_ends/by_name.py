"""The front ends, by their name after `by` in a definition. A front end reads an op's own dimension numbers.

`pool_dims` is the front end of ops that slide one window over several arrays: it finds the dims along which the window moves. A
window of one element, with stride 1 and no padding, does not change a dim, which is then an index like any other.

    select_and_scatter_add {window_dimensions = (1, 1, 2, 2), ...}     -->     i..: dims 0, 1     w..: dims 2, 3
"""

from collections.abc import Callable, Mapping, Sequence

from ...params import ParamsAttr
from ..ground_form import DimNumbers
from ..syntax_tree import Definition, Shape
from .gather import dim_numbers
from .ragged_dot import ragged


def pool_dims(definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]) -> DimNumbers:
    """The dims of `i..`, plain dims, and of `w..`, dims under a window, in every array."""
    windowed = moving(params)
    plain = tuple(dim for dim in range(len(outs[0])) if dim not in windowed)
    arrays = [formal.name for formal in (*definition.operands, *definition.results)]
    return DimNumbers({(array, name): dims for array in arrays for name, dims in (("i", plain), ("w", windowed))})


def moving(params: ParamsAttr) -> tuple[int, ...]:
    """The dims along which the window has more than one element, a stride above 1, or padding."""
    said = (params[name] for name in ("window_dimensions", "window_strides", "padding"))
    return tuple(dim for dim, window in enumerate(zip(*said, strict=True)) if window != (1, 1, (0, 0)))


FRONT_ENDS: Mapping[str, Callable[[Definition, ParamsAttr, Sequence[Shape], Sequence[Shape]], DimNumbers]] = {
    "pools": pool_dims,
    "ragged": ragged,
    "windows": dim_numbers,
}
