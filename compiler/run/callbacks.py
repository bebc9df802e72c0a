"""Host callbacks whose exceptions are kept until the program ends.

If a callback raises on one device, the others wait for it in the next collective, and XLA ends the process. So the exception is
kept, NaNs or zeros are returned in place of the results, and the call raises once all devices are done. Where JAX issues the
program, as within an outer `jax.jit` or `jax.grad`, the next call that the controller issues raises, or the end of the process.

A callback cannot call a program over several devices: these wait for the callback. Such a call raises at once.

    jax.pure_callback(f, type, x)   -->   f(x), or NaNs if it raises; the call then raises an Error that shows what f raised
"""

from __future__ import annotations

import atexit
import linecache
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from traceback import walk_tb
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ...dialects.array import mesh_of
from ...dialects.ground.errors import Error, Location
from ...dialects.op_text import array_types
from ...dialects.params import ParamsAttr
from ..inputs.lines import is_own_file
from ..jax_private import jnp, tree

PRIMITIVES = frozenset({"pure_callback", "io_callback", "debug_callback"})
PRINTS = frozenset({"debug_print"})
RETURN = frozenset({"pure_callback", "io_callback"})


@dataclass(eq=False)
class Noted:
    """A program, and what its trace has found: whether results depend on a callback, so that a call has to await it."""

    name: str
    waits: bool = False


_NOTED: ContextVar[Noted | None] = ContextVar("noted", default=None)
_OUTER: ContextVar[str] = ContextVar("outer", default="")
"""The program whose callback runs in this thread; empty if none does."""
_RAISED: list[tuple[str, BaseException]] = []
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
    return _primitive(op) in PRIMITIVES


def needs_python(op: Operation) -> bool:
    """Whether an op runs Python on the host: a function of the user, or one that prints."""
    return _primitive(op) in PRIMITIVES | PRINTS


def _primitive(op: Operation) -> object:
    params = op.properties.get("params")
    return params.get("primitive") if isinstance(params, ParamsAttr) else None


def kept(op: Operation, foreign: Sequence[object]) -> list[object]:
    """The parameters without text of an op that is a callback, in which the user's function does not raise.

    On one device nothing waits, so JAX reports what it raises.
    """
    noted = _NOTED.get()
    if noted is None and mesh_of(op).size == 1:
        return [*foreign]
    results = tuple((type.shape, type.dtype) for type in array_types(op.results))
    if noted is not None:
        noted.waits |= cast(ParamsAttr, op.properties["params"]).get("primitive") in RETURN
    name = "a program" if noted is None else f"`{noted.name}`"
    return [_Kept(name, each, results) if callable(each) else each for each in foreign]


@dataclass(frozen=True)
class _Kept:
    """A callback that keeps its exceptions. Equal ones are one to JAX, as the functions are."""

    name: str
    function: Callable[..., object]
    results: tuple[tuple[tuple[int, ...], str], ...]

    def __call__(self, *args: object) -> object:
        before = _OUTER.set(self.name)
        try:
            return self.checked(self.function(*args))
        except BaseException as error:
            _RAISED.append((self.name, error))
            empty = [np.zeros(shape, jnp.dtype(dtype)) for shape, dtype in self.results]
            return [np.full_like(each, np.nan) if jnp.issubdtype(each.dtype, jnp.inexact) else each for each in empty]
        finally:
            _OUTER.reset(before)

    def checked(self, found: object) -> object:
        """Raises TypeError for results of other shapes, for which JAX would not return to the program."""
        shapes = [np.shape(each) for each in tree.tree_leaves(found)]
        if self.results and shapes != (wanted := [shape for shape, _ in self.results]):
            raise TypeError(f"it returns arrays of the shapes {shapes}, and has said {wanted}")
        return found


def check_outside(name: str) -> None:
    """Raises Error within a host callback: its devices wait for it, and so would what is called on them."""
    if outer := _OUTER.get():
        helps = ["call it before, and give its result to the callback", "or compute it with NumPy"]
        raise Error(f"`{name}` is called in a host callback of {outer}, whose devices wait for the callback", helps=helps)


def raised() -> Error | None:
    """The error for what callbacks have raised since the last time; None if they have not."""
    if not _RAISED:
        return None
    (name, first), more = _RAISED[0], len(_RAISED) - 1
    _RAISED.clear()
    times = [f"so have {more} more, on other devices or in other calls"] if more else []
    said, helps = (first.title, first.helps) if isinstance(first, Error) else (first, ())
    title = f"a host callback of {name} has raised {type(first).__name__}: {said}"
    error = Error(title, location=_where(first), notes=times, helps=helps)
    error.__cause__ = first
    return error


def _where(error: BaseException) -> Location | None:
    """The line that raised, or that called what of Partita has raised."""
    users = [each for each in walk_tb(error.__traceback__) if not is_own_file(each[0].f_code.co_filename)]
    if not users:
        return None
    frame, line = users[-1]
    file = frame.f_code.co_filename
    text = linecache.getline(file, line).rstrip("\n")
    start = len(text) - len(text.lstrip()) + 1
    return Location(file, line, start, max(len(text) + 1, start + 1), text)


@atexit.register
def _at_exit() -> None:
    """Says what callbacks have raised, if no call has."""
    if (problem := raised()) is not None:
        print(problem, file=sys.stderr)
