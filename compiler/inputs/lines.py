"""Finds the line of the user's program that an operation comes from.

JAX records a traceback and a stack of scopes for every equation. Reading a traceback is slow, so the importer keeps only
JAX's record and the enclosing calls. A `Source` is computed on demand.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from xdsl.ir import Operation

from ...dialects.ground.errors import Location
from ..jax_private import Frame, Named, NameStack, SourceInfo, source_info_util
from .names import escape_parts, name_parts

# Frames in these rooms are Partita's own; the examples next to them are user code.
_OURS = tuple(f"{Path(__file__).parents[2] / room}/" for room in ("compiler", "dialects", "rewrites"))
OF_JAX = frozenset({"rematted_computation", "checkpoint"})
"""The scopes that JAX writes, and not the user."""
_TRACERS = frozenset({"trace_to_jaxpr", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an operation, or an inlined call, comes from: JAX's record, and the call that it was inlined from."""

    info: SourceInfo
    outer: Origin | None = None

    @property
    def scope(self) -> NameStack:
        """The name stack, beginning at the program's outermost function."""
        own = self.info.name_stack
        return own if self.outer is None else self.outer.scope + own


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's program, the function it is in, and the path of `jax.named_scope`s around it.

    `mlp.py:12 in block (transpose(jvp(layer0))/attention)`; line 0 if JAX recorded no user frame. Where that line calls an
    installed library, which makes the operation, `inner` is the library's line.
    """

    file: str
    line: int
    column: int
    end_column: int
    function: str
    scope: str
    inner: SourceLine | None = None

    @property
    def direction(self) -> str:
        """`forward`, `recomputed` or `backward`; empty outside of what JAX differentiates."""
        return direction_of(self.scope).name

    @property
    def place(self) -> str:
        """The file and the line: `mlp.py:12`."""
        return f"{_name(self.file)}:{self.line}" if self.line else ""

    def location(self) -> Location | None:
        """The line and its text, as errors show them; None if the line is unknown."""
        if not self.line:
            return None
        text = linecache.getline(self.file, self.line).rstrip("\n")
        return Location(cell_or_file(self.file), self.line, self.column, self.end_column, text)

    def __str__(self) -> str:
        where = f"{self.place} in {self.function}" if self.line else "unknown line"
        where += f", through {self.inner}" if self.inner is not None else ""
        return f"{where} ({self.scope})" if self.scope else where


class Direction(NamedTuple):
    """The pass of a differentiated program in which an operation runs. JAX's transformations leave their names in its scope."""

    name: str = ""
    """`forward`, `recomputed` or `backward`; empty outside of what JAX differentiates."""
    differentiated: bool = False
    transposed: bool = False


@lru_cache(maxsize=1 << 12)
def direction_of(scope: str) -> Direction:
    """The direction of an operation, read off its path of scopes."""
    differentiated, transposed = "jvp(" in scope, "transpose(" in scope
    name = "backward" if transposed else "forward" if differentiated else ""
    return Direction("recomputed" if "rematted_computation" in scope else name, differentiated, transposed)


class ScopePath(NamedTuple):
    """Where an operation is: in the scopes that the user wrote, and for which direction JAX has made it.

    `transpose(jvp(layer0))/attention` is in `layer0`, `attention`, and runs backward.
    """

    parts: tuple[str, ...] = ()
    direction: Direction = Direction()

    def name(self, depth: int | None = None) -> str:
        """How names begin in it, or in as many of its scopes: `layer0/attention`, or `layer0/attention/backward`."""
        last = (self.direction.name,) if self.direction.name in ("recomputed", "backward") else ()
        return "/".join((*self.parts[:depth], *last))


def scope_path(stack: NameStack) -> ScopePath:
    """The scopes of the user in JAX's record, and the direction."""
    return _scope(*stack.stack)


# A scope and a transformation of one name are equal tuples: their types are part of the key.
@lru_cache(maxsize=1 << 14, typed=True)
def _scope(*stack: Named) -> ScopePath:
    """What JAX's record says: it tells scopes from transformations, whatever the user calls a scope."""
    elements = ((isinstance(each, source_info_util.Scope), escape_parts(each.name)) for each in stack)
    return ScopePath(as_written(elements), direction_of(str(source_info_util.NameStack(stack))))


def as_written(elements: Iterable[tuple[bool, str]]) -> tuple[str, ...]:
    """The scopes of the user, of JAX's scopes and transformations: whether each is a scope, and its name.

    JAX says the scopes around a rematerialised function twice for its backward pass, behind another `jvp`:
    `transpose(jvp(layer0))/jvp(layer0)/attention`.
    """
    found, more = list[str](), list[str]()
    for is_scope, name in chain(elements, [(False, "jvp")]):
        if is_scope:
            more += name_parts(name) if name not in OF_JAX else []
        elif name == "jvp":
            found, more = more if more[: len(found)] == found else found + more, []
    return tuple(found)


def cell_or_file(file: str) -> str:
    """The name of a file; for a cell of a notebook, the name that IPython shows, `In[3]`."""
    # Any: IPython is an optional package, without types here.
    shell: Any = import_module("IPython").get_ipython() if "IPython" in sys.modules else None
    cell = shell.compile.format_code_name(file) if shell is not None else None
    return cell[1] if cell else file


@lru_cache(maxsize=256)
def _name(file: str) -> str:
    """The name of a file without its folder."""
    return Path(cell_or_file(file)).name


def at_line(source: SourceLine | None) -> str:
    """A source line as the end of a phrase: ` at mlp.py:12 in block`; empty without a source."""
    return "" if source is None else f" at {source}"


def place_of(source: SourceLine | None) -> str:
    """The file and line of a source, for a table; empty without a source."""
    return "" if source is None else source.place


def source_line_of(origin: Origin) -> SourceLine:
    """Reads a traceback: finds the innermost line of the user's program, and the line of an installed library that it calls.

    Where only a library is traced, it is the library's line.
    """
    scope, library = escape_parts(str(origin.scope)), None
    for frame in _frames(origin):
        if not _is_installed(frame.file_name):
            return _source(frame, scope, None if library is None else _source(library))
        library = library or frame
    return SourceLine("", 0, 0, 0, "", scope) if library is None else _source(library, scope)


def _source(frame: Frame, scope: str = "", inner: SourceLine | None = None) -> SourceLine:
    # JAX's columns count from 0, Partita's from 1. A range over several lines has no end on its first line.
    column = frame.start_column + 1
    end = frame.end_column + 1 if frame.end_line == frame.start_line else column
    return SourceLine(frame.file_name, frame.start_line, column, end, frame.function_name, scope, inner)


def _frames(origin: Origin) -> Iterator[Frame]:
    """Yields the frames that are neither JAX's nor Partita's, innermost first: of the traceback, then of enclosing calls.

    A function that is traced separately and then inlined is traced once, even if it is called several times. The outer
    frames of its tracebacks belong to its first caller. The right caller is the call that it is inlined from.
    """
    while True:
        frames = origin.info.traceback.raw_frames() if origin.info.traceback else ((), ())
        for code, position in zip(*frames, strict=True):
            if origin.outer is not None and code.co_name in _TRACERS:
                break
            name = code.co_filename
            if source_info_util.is_user_filename(name) and not is_own_file(name):
                yield source_info_util.raw_frame_to_frame(code, position)
        if origin.outer is None:
            return
        origin = origin.outer


def raised_at(error: BaseException) -> list[SourceLine]:
    """The lines of the user's program on the way to an exception, outermost first; none if Partita itself raised it."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        column = error.offset or 1
        return [SourceLine(error.filename, error.lineno, column, max(error.end_offset or 0, column + 1), "the module", "")]
    found = list[SourceLine]()
    is_ours = True
    for frame, _ in traceback.walk_tb(error.__traceback__):
        code, name = frame.f_code, frame.f_code.co_filename
        if is_own_file(name):
            is_ours = True
        elif source_info_util.is_user_filename(name) and not _is_installed(name):
            is_ours = False
            found.append(_source(source_info_util.raw_frame_to_frame(code, frame.f_lasti)))
    return [] if is_ours else found


def is_own_file(file: str) -> bool:
    """Whether a file is one of Partita's."""
    return file.startswith(_OURS)


@lru_cache(maxsize=1 << 10)
def _is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package or to Python, and not to the user's program."""
    return file.startswith("<frozen ") or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


@dataclass(eq=False)
class SourceLines(Mapping[Operation, SourceLine]):
    """The source lines of a program's operations, found on demand. Thousands of operations have a few hundred origins."""

    origins: Mapping[Operation, Origin]
    found: dict[Operation, SourceLine] = field(default_factory=dict[Operation, SourceLine], init=False)
    known: dict[object, SourceLine] = field(default_factory=dict[object, SourceLine], init=False)

    def __getitem__(self, op: Operation) -> SourceLine:
        if (found := self.found.get(op)) is None:
            origin = self.origins[op]
            # JAX's records are compared by identity.
            key = origin.info.traceback, origin.info.name_stack, origin.outer
            if (found := self.known.get(key)) is None:
                found = self.known[key] = source_line_of(origin)
            self.found[op] = found
        return found

    def __contains__(self, op: object) -> bool:
        return op in self.origins

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.origins)

    def __len__(self) -> int:
        return len(self.origins)

    def scope(self, op: Operation) -> str:
        """The scopes around an operation. Reads no traceback."""
        return escape_parts(str(self.origins[op].scope))

    def written(self, op: Operation) -> ScopePath:
        """The scopes around an operation as the user wrote them, and its direction. This reads no traceback."""
        return _scope(*self.origins[op].scope.stack) if op in self.origins else ScopePath()

    def direction(self, op: Operation) -> Direction:
        """The direction of an operation: forward, backward or recomputed."""
        return self.written(op).direction
