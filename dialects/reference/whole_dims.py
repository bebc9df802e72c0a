"""The functions of selections, of sorts, and of ops that need unpartitioned dims, in NumPy.

Each takes a `Task`, whose arrays have their unpartitioned dims last, and returns a list of results of the same form.
"""

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ..definitions.front_ends.by_name import moving
from ..ground.dtypes import Array, descending, dtype_of, widen_narrow
from ..params import Record
from . import linalg
from .linalg import Task, each


def _arg(choose: Callable[..., Array], task: Task) -> list[Array]:
    # NaN wins, as in XLA; NumPy does the same only for its own floats.
    return [np.asarray(choose(widen_narrow(task.args[0]), axis=-1)).astype(dtype_of(task.outs[0][0]))]


def _sort(task: Task) -> list[Array]:
    """Sorts all arrays by the first `num_keys` of them, or by their parts; NumPy's last key is the primary one."""
    keys = [widen_narrow(key) for key in task.args[: task.number("num_keys")]]
    parts = [part for key in keys for part in ((np.real(key), np.imag(key)) if key.dtype.kind == "c" else (key,))]
    order = np.lexsort(parts[::-1], axis=-1)
    return [np.take_along_axis(each, order, axis=-1) for each in task.args]


def _best(task: Task) -> list[Array]:
    """The largest elements, best first, and their positions; of equal elements the first comes first."""
    (x,) = task.args
    keys = descending(x)
    count = math.prod(task.outs[0][1]) // max(1, math.prod(x.shape[:-1]))
    order = np.argsort(keys, axis=-1, stable=True)[..., :count]
    return [np.take_along_axis(x, order, axis=-1), order.astype(dtype_of(task.outs[1][0]))]


def _bitcast(task: Task) -> list[Array]:
    """Reinterprets the bytes; another width adds or removes a last dim.

    Dims before it may lack those of extent 1 in the result.
    """
    x, to = task.args[0], dtype_of(task.outs[0][0])
    old, new = x.dtype.itemsize, to.itemsize
    shape = (*x.shape, old // new) if old > new else x.shape[: x.ndim - (new > old)]
    return [np.frombuffer(np.ascontiguousarray(x).tobytes(), to).reshape(shape)]


def _scatter_add(task: Task) -> list[Array]:
    """Pooling's gradient: the element that each window chose, its first maximum or minimum, receives the window's value."""
    windowed = moving(task.params)
    size, stride, padding = (
        [np.asarray(task.params[name])[dim] for dim in windowed] for name in ("window_dimensions", "window_strides", "padding")
    )
    first = np.greater_equal if task.params["select_prim"] == Record("primitive", (("name", "ge"),)) else np.less_equal

    def one(task: Task, source: Array, x: Array) -> list[Array]:
        out = np.zeros_like(x)
        for position in np.ndindex(*source.shape):
            starts = [at * step - lo for at, step, (lo, _) in zip(position, stride, padding, strict=True)]
            ranges = [
                range(max(0, start), min(start + length, extent))
                for start, length, extent in zip(starts, size, x.shape, strict=True)
            ]
            chosen: tuple[int, ...] | None = None
            for at in itertools.product(*ranges):
                chosen = at if chosen is None or not first(x[chosen], x[at]) else chosen
            if chosen is not None:
                out[chosen] += source[position]
        return [out]

    return each(task, one)


def _fft(task: Task) -> list[Array]:
    x, lengths = task.args[0], task.params["fft_lengths"]
    kind = task.params["fft_type"]
    assert isinstance(lengths, tuple) and isinstance(kind, Record)
    axes = range(-len(lengths), 0)
    # `RFFT` is NumPy's `rfftn`.
    function = getattr(np.fft, f"{kind['name']}n".lower())
    return [np.asarray(function(x, s=lengths, axes=axes)).astype(dtype_of(task.outs[0][0]))]


FUNCTIONS: dict[str, Callable[[Task], list[Array]]] = {
    **{name: partial(each, function=function) for name, function in linalg.FUNCTIONS.items()},
    # Exact, because the quality of the approximation depends on the device.
    "argmax": partial(_arg, np.argmax),
    "argmin": partial(_arg, np.argmin),
    "bitcast_convert_type": _bitcast,
    "fft": _fft,
    "select_and_scatter_add": _scatter_add,
    "sort": _sort,
    "top": _best,
}
