"""Host callbacks whose exceptions are kept until the program ends.

If a callback raises on one device, the others wait for it in the next collective, and XLA ends the process. So the exception is
kept, zeros are returned in place of the results, and the call raises once all devices are done.

    jax.pure_callback(f, type, x)   -->   f(x), or zeros if it raises; the call then raises an Error that shows what f raised
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ...dialects.ground.errors import Error, Location
from ...dialects.op_text import array_types
from ...dialects.params import ParamsAttr
from ..jax_private import jnp

PRIMITIVES = frozenset({"pure_callback", "io_callback", "debug_callback"})
RETURN = frozenset({"pure_callback", "io_callback"})


@dataclass(eq=False)
class Noted:
    """A program, and what its trace has found: whether results depend on a callback, so that a call has to await it."""

    name: str
    waits: bool = False


_NOTED: ContextVar[Noted | None] = ContextVar("noted", default=None)
_RAISED: list[tuple[str, Exception]] = []
"""Program, and what callbacks have raised, and no call has reported yet."""


@contextmanager
def noting(noted: Noted) -> Generator[None]:
    """A context in which traces keep what callbacks raise, and note whether these return something."""
    before = _NOTED.set(noted)
    try:
        yield
    finally:
        _NOTED.reset(before)


def is_callback(op: Operation) -> bool:
    """Whether an op calls a Python function of the user."""
    params = op.properties.get("params")
    return isinstance(params, ParamsAttr) and params.get("primitive") in PRIMITIVES


def kept(op: Operation, foreign: Sequence[object]) -> list[object]:
    """The parameters without text of an op that is a callback. Where traces keep exceptions, its function does not raise."""
    if (noted := _NOTED.get()) is None:
        return [*foreign]
    results = tuple((type.shape, type.dtype) for type in array_types(op.results))
    noted.waits |= cast(ParamsAttr, op.properties["params"]).get("primitive") in RETURN
    return [_Kept(noted.name, each, results) if callable(each) else each for each in foreign]


@dataclass(frozen=True)
class _Kept:
    """A callback that keeps its exceptions. Equal ones are one to JAX, as the functions are."""

    name: str
    function: Callable[..., object]
    results: tuple[tuple[tuple[int, ...], str], ...]

    def __call__(self, *args: object) -> object:
        try:
            return self.function(*args)
        except Exception as error:
            _RAISED.append((self.name, error))
            return [np.zeros(shape, jnp.dtype(dtype)) for shape, dtype in self.results]


def raised() -> Error | None:
    """The error for what callbacks have raised since the last time; None if they have not."""
    if not _RAISED:
        return None
    (name, first), more = _RAISED[0], len(_RAISED) - 1
    _RAISED.clear()
    times = f", and {more} more exceptions on other devices or in other calls" if more else ""
    error = Error(
        f"a host callback of `{name}` has raised {type(first).__name__}: {first}{times}",
        location=_where(first),
        notes=["the program went on with zeros in place of what the callback returns"],
    )
    error.__cause__ = first
    return error


def _where(error: Exception) -> Location | None:
    """The line that raised."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None:
        return None
    file, line = frame.tb_frame.f_code.co_filename, frame.tb_lineno
    text = linecache.getline(file, line).rstrip("\n")
    start = len(text) - len(text.lstrip()) + 1
    return Location(file, line, start, max(len(text) + 1, start + 1), text)
