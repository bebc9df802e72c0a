"""The front ends, by their name after `by` in a definition. A front end reads an op's own dimension numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..params import ParamsAttr
from .gathers import windows
from .ground_form import DimNumbers
from .pools import pools
from .ragged import ragged
from .tree import Definition, Shape

FRONT_ENDS: Mapping[str, Callable[[Definition, ParamsAttr, Sequence[Shape], Sequence[Shape]], DimNumbers]] = {
    "pools": pools,
    "ragged": ragged,
    "windows": windows,
}
