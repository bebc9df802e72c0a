"""What a function of whole dims gets, and how one of a single matrix works on a stack of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..dtypes import Array, dtype_of
from ..params import ParamsAttr

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """What a function gets: operands, the parameters, and the dtype and shape of each result."""

    args: Sequence[Array]
    params: ParamsAttr
    outs: Sequence[tuple[str, Shape]]

    def flag(self, name: str) -> bool:
        return self.params.get(name) is True

    def number(self, name: str) -> int:
        value = self.params[name]
        assert isinstance(value, int)
        return value


Function = Callable[..., Sequence[Array]]


def each(task: Task, ranks: Sequence[int], function: Function) -> list[Array]:
    """The function of the last `ranks` dims of each operand, at every place of the dims before them."""
    leads = [array.shape[: array.ndim - rank] for array, rank in zip(task.args, ranks, strict=True)]
    lead = np.broadcast_shapes(*leads)
    args = [np.broadcast_to(a, (*lead, *a.shape[a.ndim - rank :])) for a, rank in zip(task.args, ranks, strict=True)]
    found = [function(*(arg[at] for arg in args)) for at in np.ndindex(*lead)]
    if not found:
        return [np.zeros((*lead, *shape[len(lead) :]), dtype_of(dtype)) for dtype, shape in task.outs]
    return [np.stack(arrays).reshape(*lead, *arrays[0].shape) for arrays in zip(*found, strict=True)]
