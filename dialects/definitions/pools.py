"""The front end of ops that slide one window over several arrays: it finds the dims along which the window moves.

A window of one element, with stride 1 and no padding, does not change a dim, which is then an index like any other.

    select_and_scatter_add {window_dimensions = (1, 1, 2, 2), ...}     -->     i..: dims 0, 1     w..: dims 2, 3
"""

from __future__ import annotations

from collections.abc import Sequence

from ..params import Literal, ParamsAttr
from .ground_form import DimNumbers
from .tree import Definition, Shape


def pools(definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]) -> DimNumbers:
    """The dims of `i..`, plain dims, and `w..`, dims under a window, in every array."""
    windowed = moving(params)
    plain = tuple(dim for dim in range(len(outs[0])) if dim not in windowed)
    arrays = [formal.name for formal in (*definition.operands, *definition.results)]
    return DimNumbers({(array, name): dims for array in arrays for name, dims in (("i", plain), ("w", windowed))})


def moving(params: ParamsAttr) -> tuple[int, ...]:
    """The dims along which the window has more than one element, a stride above 1, or padding."""
    sizes, strides, padding = (_tuple(params[name]) for name in ("window_dimensions", "window_strides", "padding"))
    return tuple(dim for dim, window in enumerate(zip(sizes, strides, padding, strict=True)) if window != (1, 1, (0, 0)))


def _tuple(value: Literal) -> tuple[Literal, ...]:
    assert isinstance(value, tuple)
    return value
