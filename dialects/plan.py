"""The attributes in which a program's text says how it is placed: claims, decisions, and the paths of redistributions.

A claim is what a tactic asks for, and what propagation made of it. Decisions are read off the claims: where each op runs, which
ops a pending sum moves through, and which values change their layout for which uses.

    %0 = lax.dot_general %x, %w {...} attributes {plan.claims = [#plan.claim<0 data*64 by 1>]} : f32[256, 8], f32[8, 16] -> ...

They stand at the op that they are about, at the op that makes the value, or at the argument. An op with regions, or with values
that are placed apart, has several *nodes*; the text then begins with the node, such as `carry 1`, the second carry. Indices are
numbered as in the op's definition, operands and results as in the node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, NamedTuple, Self, TypeVar

from xdsl.ir import Dialect
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser

from .layouts import Layout, Pending, parse_array
from .mesh import Mesh, axis_of
from .program_text import TextAttr, meshes, take_match
from .ranges.algebra import Place, nesting
from .ranges.factor import Factor

T = TypeVar("T")

PREFIX = "plan."
"""What the names of these attributes begin with."""

WHOLE = -1
"""The `at` of a claim that keeps a value whole along an axis."""

ARGUMENT = "argument"
"""The end that is an argument of the program."""

LAYOUT = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\{[^{}]*\})?"
_FACTOR = r"[\w.:@]+\*-?\d+(?: halo -?\d+, -?\d+)?"
_NODE = r"[\w.]+ \d+"
_END = rf"argument|(?:{_NODE} )?(?:operand|result) \d+"
_STEP = rf"(?:[^,;<>\[\]()]|\([^()]*\)|{LAYOUT})+"
_NUMBERS = r"\d+(?: \d+)*"
_PLACED = rf"\d+ {_FACTOR}"
_CLAIM = rf"(?P<at>\d+|whole) (?P<factor>{_FACTOR}) by (?P<by>\d+)(?P<held> held)?"

PATH = rf"{_STEP}(?:; {_STEP})*"
"""The steps of a path in text."""


class Reader(NamedTuple):
    """The parts of a text that matched the pattern of an attribute, and the meshes whose axes it may name."""

    found: re.Match[str]
    known: Sequence[Mesh]

    def text(self, name: str) -> str:
        """The part of this name; empty if the text leaves it out."""
        return self.found[name] or ""

    def numbers(self, name: str) -> tuple[int, ...]:
        return tuple(map(int, self.text(name).split()))

    def number(self, name: str) -> int | None:
        return next(iter(self.numbers(name)), None)

    def axes(self, text: str) -> tuple[Place, ...]:
        """Reads `(data, model)`."""
        return tuple(axis_of(each.strip(), *self.known) for each in text.strip("()").split(","))

    def factor(self, text: str) -> Factor:
        """Reads `data*64`, or `data*64 halo 1, -1`."""
        body, _, halo = text.partition(" halo ")
        axis, _, stride = body.rpartition("*")
        before, after = map(int, halo.split(", ")) if halo else (0, 0)
        return Factor(axis_of(axis, *self.known), int(stride), (before, after) if halo else None)

    def layout(self, text: str) -> Layout:
        """Reads `[data*64, 8]{+model}`."""
        return parse_array(f"f32{text}", *self.known)[1]

    def claim(self, found: re.Match[str]) -> Claimed:
        at = WHOLE if found["at"] == "whole" else int(found["at"])
        return Claimed(at, self.factor(found["factor"]), int(found["by"]), bool(found["held"]))


class Claimed(NamedTuple):
    """A placed factor of an index or of a dim, and the number of the tactic that placed it, counted from 1."""

    at: int
    factor: Factor
    tactic: int
    held: bool = False

    def __str__(self) -> str:
        held = " held" if self.held else ""
        return f"{'whole' if self.at == WHOLE else self.at} {self.factor} by {self.tactic}{held}"


class Said(TextAttr[T]):
    """An attribute that is read by a pattern, and whose data prints as its text."""

    FORM: ClassVar[re.Pattern[str]]
    LIKE: ClassVar[str]

    @cached_property
    def text(self) -> str:
        return str(self.data)

    @classmethod
    def read(cls, parser: AttrParser) -> Self:
        what = f"`#{cls.name}<...>`, like `{cls.LIKE}`"
        return take_match(parser, cls.FORM, what, lambda found: cls(cls.said(Reader(found, meshes(parser)))))

    @classmethod
    def said(cls, of: Reader) -> T:
        """What a text says that matches the pattern."""
        raise NotImplementedError


def _at(where: str, text: str) -> str:
    return f"{where}: {text}" if where else text


class ClaimAt(NamedTuple):
    """A claim on an index of a node, or on a dim of a value."""

    where: str
    claim: Claimed

    def __str__(self) -> str:
        return _at(self.where, str(self.claim))


@irdl_attr_definition
class ClaimAttr(Said[ClaimAt]):
    """A claim on an index of an op: `#plan.claim<0 data*64 by 1>`."""

    name = "plan.claim"
    LIKE = "0 data*64 by 1"
    FORM = re.compile(rf"(?:(?P<node>{_NODE}): )?{_CLAIM}")

    @classmethod
    def said(cls, of: Reader) -> ClaimAt:
        return ClaimAt(of.text("node"), of.claim(of.found))


@irdl_attr_definition
class OwnAttr(Said[ClaimAt]):
    """A value's own claim on a dim, whatever its op says: `#plan.own<result 0: 1 model*8 by 2>`, or `whole data*0 by 2`."""

    name = "plan.own"
    LIKE = "result 0: 1 model*8 by 2"
    FORM = re.compile(rf"(?P<end>{_END}): {_CLAIM}")

    @classmethod
    def said(cls, of: Reader) -> ClaimAt:
        return ClaimAt(of.text("end"), of.claim(of.found))


class ValueMarks(NamedTuple):
    """The dims of a value whose layout the program sets, and how tactics ask for it to be computed or gathered."""

    end: str
    closed: tuple[int, ...] = ()
    widened: bool = False
    each_trip: bool = False

    def __str__(self) -> str:
        closed = f"closed {' '.join(map(str, self.closed))}" if self.closed else ""
        said = filter(None, (closed, self.widened and "widened", self.each_trip and "each trip"))
        return _at(self.end, ", ".join(map(str, said)))


@irdl_attr_definition
class MarkAttr(Said[ValueMarks]):
    """What is said of a value beside its claims: `#plan.mark<result 0: closed 0 1, widened>`."""

    name = "plan.mark"
    LIKE = "result 0: closed 0 1, widened"
    FORM = re.compile(
        rf"(?P<end>{_END}): (?=\w)(?:closed (?P<closed>{_NUMBERS}))?"
        r"(?:(?:, )?(?P<widened>widened))?(?:(?:, )?(?P<trip>each trip))?"
    )

    @classmethod
    def said(cls, of: Reader) -> ValueMarks:
        return ValueMarks(of.text("end"), of.numbers("closed"), bool(of.text("widened")), bool(of.text("trip")))


class OnSet(NamedTuple):
    """The coordinates of a device set, and the number of the tactic that claims it, counted from 1."""

    coordinates: tuple[tuple[str, int], ...]
    tactic: int

    def __str__(self) -> str:
        return f"{', '.join(f'{axis}={at}' for axis, at in self.coordinates)} by {self.tactic}"


@irdl_attr_definition
class OnAttr(Said[OnSet]):
    """On which part of the mesh an op runs, or an argument is: `#plan.on<stage=1 by 4>`."""

    name = "plan.on"
    LIKE = "stage=1 by 4"
    FORM = re.compile(r"(?P<at>[A-Za-z_]\w*=[0-9]{1,9}(?:, [A-Za-z_]\w*=[0-9]{1,9})*) by (?P<by>[0-9]{1,9})")

    @classmethod
    def said(cls, of: Reader) -> OnSet:
        pairs = (each.partition("=") for each in of.text("at").split(", "))
        return OnSet(tuple((axis, int(at)) for axis, _, at in pairs), int(of.text("by")))


class Point(NamedTuple):
    """The axes on which a constraint sets the layout of its result."""

    node: str
    axes: tuple[Place, ...]

    def __str__(self) -> str:
        return _at(self.node, f"({', '.join(map(str, self.axes))})")


@irdl_attr_definition
class PointAttr(Said[Point]):
    """A point of redistribution, which no claim crosses: `#plan.point<(data)>`."""

    name = "plan.point"
    LIKE = "(data)"
    FORM = re.compile(rf"(?:(?P<node>{_NODE}): )?(?P<axes>\([^()]*\))")

    @classmethod
    def said(cls, of: Reader) -> Point:
        return Point(of.text("node"), of.axes(of.text("axes")))


class Stop(NamedTuple):
    """A dim of an operand or a result at which a claim stops, and why."""

    end: str
    dim: int
    extent: int
    factor: Factor
    tactic: int
    reason: str

    def __str__(self) -> str:
        return f"{self.end}: {self.dim} {self.factor} of {self.extent} by {self.tactic} {json.dumps(self.reason)}"


@irdl_attr_definition
class StopAttr(Said[Stop]):
    """Where propagation stopped: `#plan.stop<operand 0: 1 data*4 of 30 by 1 "does not divide">`."""

    name = "plan.stop"
    LIKE = 'operand 0: 1 data*4 of 30 by 1 "does not divide"'
    FORM = re.compile(
        rf"(?P<end>{_END}): (?P<dim>\d+) (?P<factor>{_FACTOR}) of (?P<extent>\d+) by (?P<by>\d+) "
        r'(?P<reason>"(?:[^"\\]|\\.)*")'
    )

    @classmethod
    def said(cls, of: Reader) -> Stop:
        dim, extent, by = (int(of.text(name)) for name in ("dim", "extent", "by"))
        return Stop(of.text("end"), dim, extent, of.factor(of.text("factor")), by, json.loads(of.text("reason")))


class Conflict(NamedTuple):
    """Claims on an axis that cannot all hold at a node, or at an argument; each with the position of its value."""

    where: str
    axis: Place
    claims: tuple[tuple[Claimed, int], ...]

    def __str__(self) -> str:
        every = "; ".join(f"{claim} at {position}" for claim, position in self.claims)
        return _at(self.where, f"{self.axis}: {every}")


_ASKED = re.compile(rf"{_CLAIM} at (?P<position>-?\d+)")
_ASKED_UNNAMED = re.sub(r"\?P<\w+>", "?:", _ASKED.pattern)


@irdl_attr_definition
class ConflictAttr(Said[Conflict]):
    """A conflict: `#plan.conflict<data: 0 data*64 by 1 at 0; 1 data*64 by 1 at 1>`, with the positions of the operands."""

    name = "plan.conflict"
    LIKE = "data: 0 data*64 by 1 at 0; 1 data*64 by 1 at 1"
    FORM = re.compile(
        rf"(?:(?P<where>argument|{_NODE}): )?(?P<axis>[\w.:@]+): (?P<claims>{_ASKED_UNNAMED}(?:; {_ASKED_UNNAMED})*)"
    )

    @classmethod
    def said(cls, of: Reader) -> Conflict:
        every = ((of.claim(each), int(each["position"])) for each in _ASKED.finditer(of.text("claims")))
        return Conflict(of.text("where"), of.axes(of.text("axis"))[0], tuple(every))


class OpPlace(NamedTuple):
    """The placed factors of the indices of a node, major axis first."""

    node: str
    placed: tuple[tuple[int, Factor], ...]

    def __str__(self) -> str:
        return _at(self.node, ", ".join(f"{at} {factor}" for at, factor in self.placed))


@irdl_attr_definition
class PlaceAttr(Said[OpPlace]):
    """Where an op runs: `#plan.place<0 data*64, 2 model*8>`."""

    name = "plan.place"
    LIKE = "0 data*64, 2 model*8"
    FORM = re.compile(rf"(?:(?P<node>{_NODE}): )?(?P<placed>{_PLACED}(?:, {_PLACED})*)")

    @classmethod
    def said(cls, of: Reader) -> OpPlace:
        every = (each.partition(" ") for each in re.findall(_PLACED, of.text("placed")))
        return OpPlace(of.text("node"), tuple((int(at), of.factor(factor)) for at, _, factor in every))


class Home(NamedTuple):
    """A value's own layout."""

    end: str
    layout: Layout

    def __str__(self) -> str:
        return f"{self.end}: {self.layout}"


@irdl_attr_definition
class HomeAttr(Said[Home]):
    """The layout of an argument, or one that a tactic gave a result: `#plan.home<result 0: [data*64, 8]>`."""

    name = "plan.home"
    LIKE = "result 0: [data*64, 8]"
    FORM = re.compile(rf"(?P<end>{_END}): (?P<layout>{LAYOUT})")

    @classmethod
    def said(cls, of: Reader) -> Home:
        return Home(of.text("end"), of.layout(of.text("layout")))


class Carried(NamedTuple):
    """The sum that a node carries, and per operand the axes on which it counts on one device only."""

    node: str
    pending: tuple[Pending, ...]
    once: tuple[tuple[int, tuple[Place, ...]], ...]

    def __str__(self) -> str:
        once = ", ".join(f"{at} ({', '.join(map(str, axes))})" for at, axes in self.once)
        return _at(self.node, f"{{{', '.join(map(str, self.pending))}}}" + (f" once {once}" if once else ""))


_ONCE = r"\d+ \([^()]*\)"


@irdl_attr_definition
class SumAttr(Said[Carried]):
    """A pending sum that an op carries, so that it resolves later: `#plan.sum<{+data}>`, `#plan.sum<{+data} once 1 (data)>`."""

    name = "plan.sum"
    LIKE = "{+data} once 1 (data)"
    FORM = re.compile(rf"(?:(?P<node>{_NODE}): )?(?P<sum>{{[^{{}}]*}})(?: once (?P<once>{_ONCE}(?:, {_ONCE})*))?")

    @classmethod
    def said(cls, of: Reader) -> Carried:
        pending = sorted(of.layout(f"[]{of.text('sum')}").pending, key=lambda each: nesting(each.axis))
        once = (each.partition(" ") for each in re.findall(_ONCE, of.text("once")))
        return Carried(of.text("node"), tuple(pending), tuple((int(at), of.axes(axes)) for at, _, axes in once))


class Moved(NamedTuple):
    """A redistribution of a value. `end` says which: an operand of the op that first reads it, or a result of the op here."""

    number: int
    end: str
    source: Layout
    target: Layout
    path: str
    is_spare: bool = False
    """Whether the operand is not read after this move, but after others that start from it."""
    after: int | None = None
    """The number of the move that it starts from."""
    together: tuple[int, ...] = ()
    """The numbers of the moves with which it shares collectives, its own included."""
    waits: bool = False
    """Whether it waits for the value that starts its use."""
    during: int | None = None
    """The number of the move with whose use it starts: of an earlier one or, in a loop, of one of the trip before."""
    is_alone: bool = False
    """Whether it is for one use, while others move the value again."""
    causes: tuple[int, ...] = ()
    """The numbers of the tactics that cause it."""

    def __str__(self) -> str:
        said = (
            f"{self.number}: {'towards ' if self.is_spare else ''}{self.end}: {self.source} to {self.target} by {self.path}",
            "" if self.after is None else f"after {self.after}",
            self.together and f"with {' '.join(map(str, self.together))}",
            self.waits and "waits",
            "" if self.during is None else f"during {self.during}",
            self.is_alone and "alone",
            self.causes and f"because of {' '.join(map(str, self.causes))}",
        )
        return ", ".join(str(each) for each in said if each)


@irdl_attr_definition
class MoveAttr(Said[Moved]):
    """A redistribution: `#plan.move<0: operand 1: [data*64, 8] to [256, 8] by all_gather over (data) 0@64, because of 1>`."""

    name = "plan.move"
    LIKE = "0: operand 1: [data*64, 8] to [256, 8] by all_gather over (data) 0@64, because of 1"
    FORM = re.compile(
        rf"(?P<number>\d+): (?P<spare>towards )?(?P<end>{_END}): "
        rf"(?P<source>{LAYOUT}) to (?P<target>{LAYOUT}) by (?P<path>{PATH})"
        rf"(?:, after (?P<after>\d+))?(?:, with (?P<together>{_NUMBERS}))?(?P<waits>, waits)?(?:, during (?P<during>\d+))?"
        rf"(?P<alone>, alone)?"
        rf"(?:, because of (?P<causes>{_NUMBERS}))?"
    )

    @classmethod
    def said(cls, of: Reader) -> Moved:
        source, target = (of.layout(of.text(name)) for name in ("source", "target"))
        is_spare, waits, is_alone = (bool(of.text(name)) for name in ("spare", "waits", "alone"))
        number, after, path = int(of.text("number")), of.number("after"), of.text("path")
        return Moved(
            number,
            of.text("end"),
            source,
            target,
            path,
            is_spare,
            after,
            of.numbers("together"),
            waits,
            of.number("during"),
            is_alone,
            of.numbers("causes"),
        )


class Reading(NamedTuple):
    """An operand that is read after a move."""

    end: str
    move: int

    def __str__(self) -> str:
        return f"{self.end} after {self.move}"


@irdl_attr_definition
class ReadAttr(Said[Reading]):
    """An operand that shares a move with an earlier use: `#plan.read<operand 0 after 3>`."""

    name = "plan.read"
    LIKE = "operand 0 after 3"
    FORM = re.compile(rf"(?P<end>{_END}) after (?P<move>\d+)")

    @classmethod
    def said(cls, of: Reader) -> Reading:
        return Reading(of.text("end"), int(of.text("move")))


@irdl_attr_definition
class PathAttr(Said[str]):
    """The path of a redistribution that is not the one of the fewest bytes: `#plan.path<all_gather over (data) 0@64>`."""

    name = "plan.path"
    LIKE = "all_gather over (data) 0@64"
    FORM = re.compile(PATH)

    @classmethod
    def said(cls, of: Reader) -> str:
        return of.found[0]


PLAN = Dialect(
    "plan",
    [],
    [
        ClaimAttr,
        OwnAttr,
        MarkAttr,
        OnAttr,
        PointAttr,
        StopAttr,
        ConflictAttr,
        PlaceAttr,
        HomeAttr,
        SumAttr,
        MoveAttr,
        ReadAttr,
        PathAttr,
    ],
)
