"""Parses ranges and array types from the text that they print as; `ranges.lark` is the grammar."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, cast

from lark import Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.exceptions import VisitError

from .. import grammar
from ..grammar import TooDeep, Word
from ..ground.errors import Error, Location
from ..ground.monoids import MONOIDS_BY_SIGN
from ..mesh import Mesh, axis_of, loop_of
from . import laws as laws
from .terms import Extent, Of, Place, Range

PendingText: TypeAlias = tuple[str, Place] | tuple[str, Place, int, bool]
"""A pending reduction as (monoid, axis); a pending scan as (monoid, axis, dim, whether it is backwards)."""
_GRAMMAR = Path(__file__).with_name("ranges.lark")
_DEEPEST = 50
"""The deepest nesting of ranges in a text."""
ArrayText: TypeAlias = tuple[str, tuple[Range, ...], tuple[PendingText, ...]]
"""A parsed array type: the dtype as written, the dims, and the pending reductions."""


@lru_cache(maxsize=1 << 14)
def parse_range(text: str, *meshes: Mesh) -> Range:
    """Parses a range, in normal form, on the axes of these meshes: `parse_range(str(r), mesh) is r`.

    Raises `Error`, with a caret if the text is not a range, and for an axis that the meshes do not have.
    """
    return cast(Range, _parse(text, "range", meshes))


def parse_array_text(text: str, *meshes: Mesh) -> ArrayText:
    """Parses an array type, such as `f32[data*128, 256]{+model}`, into its parts."""
    return cast(ArrayText, _parse(text, "array", meshes))


@lru_cache(maxsize=1 << 14)
def check_array_text(text: str) -> None:
    """Raises `Error`, with a caret, for a text that is an array type on no mesh."""
    _tree(text, "array")


def _parse(text: str, start: str, meshes: tuple[Mesh, ...]) -> object:
    tree = _tree(text, start)
    try:
        return _Read(meshes).transform(tree)
    except VisitError as problem:
        # A constructor's own error is more precise than lark's.
        if isinstance(problem.orig_exc, ValueError):
            raise Error("an extent cannot be 2**63 or more") from None
        raise problem.orig_exc from None


def _tree(text: str, start: str) -> grammar.SyntaxNode:
    try:
        return grammar.read(_GRAMMAR, text, start, ("range", "array"), deepest=_DEEPEST)
    except TooDeep as problem:
        at = Location(f"<{start}>", 1, problem.span.column, problem.span.column + 1, text)
        raise Error("a range is nested too deeply", location=at) from None
    except UnexpectedInput as problem:
        raise _unread(problem, text, start) from None


def _unread(problem: UnexpectedInput, text: str, start: str) -> Error:
    """The error for text that the grammar does not allow, with a caret where reading stopped."""
    match problem:
        case UnexpectedToken(token=Token(type="$END")):
            column, found = len(text) + 1, ""
        case UnexpectedToken(token=Token() as token):
            column, found = token.column or 1, str(token)
        case UnexpectedCharacters(column=column):
            found = text[column - 1 : column]
        case _:
            column, found = 1, text
    kind, example = ("range", "data*128") if start == "range" else ("array type", "f32[data*128, 256]{+model}")
    label = f"`{found}` is not expected here" if found else "it ends too early"
    location = Location(f"<{kind}>", 1, column, column + len(found), text)
    return Error(f"`{text}` is not a valid {kind}", location=location, label=label, helps=[f"write it as `{example}`"])


class _Read(Transformer[Word, object]):
    """Builds each range with the function that puts it into normal form."""

    def __init__(self, meshes: tuple[Mesh, ...]) -> None:
        super().__init__()
        self.meshes = meshes

    def range(self, terms: list[Range]) -> Range:
        return laws.sum_(*terms)

    def term(self, parts: list[Range | Word | None]) -> Range:
        *factors, length = parts
        r = laws.product(*cast("list[Range]", factors))
        if length is None:
            return r
        n, room = int(cast(Word, length).text), laws.known_size(r)
        if room is not None and n > room:
            raise Error(
                f"`{r} pad {n}` has room for {room} elements", helps=["`pad` is followed by the number without padding"]
            )
        return laws.sub(r, 0, n)

    def of(self, parts: list[Range | Word]) -> Range:
        return _applied(Of, parts)

    def extent(self, parts: list[Word]) -> Range:
        return Extent(int(parts[0].text))

    def axis(self, parts: list[Word]) -> Place:
        return axis_of(parts[0].text, *self.meshes)

    subaxis = place = axis

    def loop(self, parts: list[Word]) -> Range:
        name, size = parts[0].text.split(":")
        return loop_of(name, int(size), *self.meshes)

    def sub(self, parts: list[Range | Word]) -> Range:
        return _applied(laws.sub, parts)

    def pad(self, parts: list[Range | Word]) -> Range:
        return _applied(laws.pad, parts[1:])

    def window(self, parts: list[Range | Word]) -> Range:
        return _applied(laws.window, [parts[-1], *parts[1:-1]])

    def added(self, parts: list[Place]) -> tuple[str, Place]:
        return MONOIDS_BY_SIGN["+"].name, parts[0]

    def folded(self, parts: tuple[Word, Place]) -> tuple[str, Place]:
        return parts[0].text, parts[1]

    def before(self, parts: tuple[tuple[str, Place], Word]) -> PendingText:
        (monoid, axis), dim = parts
        return monoid, axis, int(dim.text), False

    def behind(self, parts: tuple[tuple[str, Place], Word]) -> PendingText:
        (monoid, axis), dim = parts
        return monoid, axis, int(dim.text), True

    def pending(self, parts: list[PendingText]) -> tuple[PendingText, ...]:
        return tuple(parts)

    def array(self, parts: list[object]) -> ArrayText:
        dims = tuple(part for part in parts[1:-1] if isinstance(part, Range))
        pending = cast("tuple[PendingText, ...]", parts[-1] or ())
        return str(parts[0]), dims, pending


def _applied(law: Callable[..., Range], parts: list[Range | Word]) -> Range:
    """Applies a constructor to a range and the numbers written after it."""
    return law(*(part if isinstance(part, Range) else int(part.text) for part in parts))
