"""The program of one device: local values and explicit collectives, inside a `func.func` that every device runs.

A collective runs over the group of devices that differ only along its axes, counted major to minor. `block` is the
number of consecutive local elements that stay together inward of the axes. This one number covers block, cyclic and
block-cyclic placements:

    dim of M·block elements  -- all_gather over p devices -->  dim of M·p·block elements  -- slice -->  M·block again

    %1 = spmd.all_gather %0 dim 0 block 8 over (data) : f32[8, 4] -> f32[32, 4]
    %2 = spmd.all_reduce add %1 over (data, model) : f32[32, 4] -> f32[32, 4]
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import ClassVar, Self, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import AttrParser, Parser
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .array import Barrier, Coordinate, check_axes
from .collective_arrays import fold, join, library, split
from .ground.dtypes import Array
from .ground.errors import Error
from .ground.monoids import MONOID_NAMES
from .op_text import ArrayOp, KeywordProperty, array_types
from .program_text import TextAttr, take_match
from .ranges.algebra import Loop, Place
from .types import ArrayType, AxesAttr

Properties: TypeAlias = Mapping[str, Attribute]

T = TypeVar("T")

_LISTS = re.compile(r"\[[\s(),\d]*\]")


@irdl_attr_definition
class PairsAttr(TextAttr[tuple[tuple[int, int], ...]]):
    """The (sender, receiver) pairs of a group: `[(0, 1), (1, 0)]`."""

    name = "spmd.pairs"

    @cached_property
    def text(self) -> str:
        return str(list(self.data))

    @classmethod
    def read(cls, parser: AttrParser) -> "PairsAttr":
        return PairsAttr(_lists(parser, "pairs of devices, like `[(0, 1), (1, 0)]`", _pair))


@irdl_attr_definition
class RowsAttr(TextAttr[tuple[tuple[int, ...], ...]]):
    """One list of row numbers for each device of a group: `[(0, 1), (2, 3)]`."""

    name = "spmd.rows"

    @staticmethod
    def of(rows: Sequence[Sequence[int]]) -> "RowsAttr":
        return RowsAttr(tuple(map(tuple, rows)))

    @cached_property
    def text(self) -> str:
        return str(list(self.data))

    @classmethod
    def read(cls, parser: AttrParser) -> "RowsAttr":
        return RowsAttr(_lists(parser, "a list of rows for each device, like `[(0, 1), (2, 3)]`", tuple))


def _pair(numbers: tuple[int, ...]) -> tuple[int, int]:
    source, target = numbers
    return source, target


def _lists(parser: AttrParser, what: str, made: Callable[[tuple[int, ...]], T]) -> tuple[T, ...]:
    """Parses a list of tuples of integers, and applies `made` to each tuple."""

    def lists(found: re.Match[str]) -> tuple[T, ...]:
        try:
            return tuple(map(made, ast.literal_eval(found[0])))
        except (ValueError, TypeError, SyntaxError):
            raise Error(f"expected {what}") from None

    return take_match(parser, _LISTS, what, lists)


def _read_monoid(parser: Parser) -> StringAttr:
    return StringAttr(parser.parse_identifier(": the monoid that folds, like `add`"))


def _read_number(parser: Parser) -> IntAttr:
    return IntAttr(parser.parse_integer(allow_boolean=False))


def _numbers(dim: str, block: str) -> tuple[KeywordProperty, KeywordProperty]:
    """The words `dim D block B`, for the properties with these two names."""
    return KeywordProperty(dim, _read_number, dim), KeywordProperty(block, _read_number, "block")


_FOLD = (KeywordProperty("monoid", _read_monoid),)
_OVER = KeywordProperty("over", AxesAttr.read, "over")


class Collective(ArrayOp):
    """A collective from one local array to another, over the devices along `axes`.

    A device splits the dim of `SPLITS` into blocks, and keeps or sends a share of them; it joins the blocks that it receives
    along the dim of `JOINS`. Both name two properties: the dim, and the size of its blocks.

    Constraints of all of them: the axes are distinct axes of the mesh, nothing is placed or pending in the types, blocks hold
    at least one element and divide their dim, and the result has the shape that the operand's shape, the blocks and the
    size of the group give.
    """

    x = operand_def(ArrayType)
    out = result_def(ArrayType)
    over = prop_def(AxesAttr)

    traits = traits_def(NoMemoryEffect())

    SPLITS: ClassVar[tuple[str, str] | None] = None
    JOINS: ClassVar[tuple[str, str] | None] = None

    @property
    def axes(self) -> tuple[Place, ...]:
        return self.over.data

    def number(self, name: str) -> int:
        """A property that is a number: `op.number("block")`."""
        return _number(self.properties, name)

    @classmethod
    def result(cls, array: ArrayType, group: int, properties: Properties) -> ArrayType:
        """Returns the result type for an operand type. Raises VerifyException if the operand does not fit."""
        if cls.SPLITS is not None:
            dim, block = (_number(properties, name) for name in cls.SPLITS)
            _check_dim(cls, array, dim, block, group * block, f"{group} devices with blocks of {block}")
            array = _resized(array, dim, array.shape[dim] // group)
        if cls.JOINS is not None:
            dim, block = (_number(properties, name) for name in cls.JOINS)
            _check_dim(cls, array, dim, block, block, f"blocks of {block}")
            array = _resized(array, dim, array.shape[dim] * group)
        return array

    def exchange(self, held: Sequence[Array]) -> list[Array]:
        """Runs the collective on the arrays of one group of devices, and returns the array of each device."""
        count, own = len(held), list(held)
        if isinstance(monoid := self.properties.get("monoid"), StringAttr):
            own = [fold(monoid.data, held)] * count
        parts = [own] * count
        if self.SPLITS is not None:
            dim, block = map(self.number, self.SPLITS)
            dealt = [split(array, dim, block, count) for array in own]
            parts = [[parts[number] for parts in dealt] for number in range(count)]
        if self.JOINS is None:
            return [part[number] for number, part in enumerate(parts)]
        dim, block = map(self.number, self.JOINS)
        return [join(part, dim, block) for part in parts]

    @classmethod
    def make(cls, x: SSAValue, axes: Sequence[Place], **properties: str | int | PairsAttr | RowsAttr) -> Self:
        """Makes the op, and infers its result type from its operand: `AllGatherOp.make(x, [data], dim=0, block=8)`."""
        over = AxesAttr(tuple(axes))
        all_of_them: dict[str, Attribute] = {"over": over}
        for name, value in properties.items():
            all_of_them[name] = (
                StringAttr(value) if isinstance(value, str) else IntAttr(value) if isinstance(value, int) else value
            )
        result = cls.result(array_types([x])[0], over.size, all_of_them)
        return cls.create(operands=[x], properties=all_of_them, result_types=[result])

    def verify_(self) -> None:
        array, out = array_types([self.x, self.out])
        for each in (array, out):
            if not each.is_whole:
                raise VerifyException(f"`{self.name}` takes local arrays, but {each.text} is placed or pending")
        if isinstance(monoid := self.properties.get("monoid"), StringAttr) and monoid.data not in MONOID_NAMES:
            raise VerifyException(f"`{self.name}`: `{monoid.data}` is not a monoid, take one of {', '.join(MONOID_NAMES)}")
        check_axes(self, self.over)
        group = self.over.size
        wanted = self.result(array, group, self.properties)
        if out is not wanted:
            raise VerifyException(f"`{self.name}` of {array.text} over {group} devices is {wanted.text}, not {out.text}")


def _number(properties: Properties, name: str) -> int:
    return cast(IntAttr, properties[name]).data


def _check_dim(op: type[Collective], array: ArrayType, dim: int, block: int, unit: int, what: str) -> None:
    if not 0 <= dim < len(array.shape):
        raise VerifyException(f"`{op.name}`: {array.text} has no dim {dim}")
    if block < 1:
        raise VerifyException(f"`{op.name}`: a block holds at least one element, not {block}")
    if array.shape[dim] % unit:
        size = array.shape[dim]
        raise VerifyException(f"`{op.name}`: dim {dim} of {array.text} is {size}, which {what} do not divide")


def _resized(array: ArrayType, dim: int, size: int) -> ArrayType:
    return ArrayType.whole(array.dtype, (*array.shape[:dim], size, *array.shape[dim + 1 :]))


@irdl_op_definition
class AllReduceOp(Collective):
    """Folds the operands of all devices of the group: `spmd.all_reduce add %x over (data)`."""

    name = "spmd.all_reduce"
    monoid = prop_def(StringAttr)
    FIRST: ClassVar = _FOLD
    WORDS: ClassVar = (_OVER,)


class Blocked(Collective):
    """A collective that splits or joins one dim."""

    dim = prop_def(IntAttr)
    block = prop_def(IntAttr)
    WORDS: ClassVar = (*_numbers("dim", "block"), _OVER)


@irdl_op_definition
class AllGatherOp(Blocked):
    """Concatenates the operands of all devices of the group, block by block: `spmd.all_gather %x dim 0 block 8 over (data)`."""

    name = "spmd.all_gather"
    JOINS: ClassVar = ("dim", "block")


@irdl_op_definition
class ReduceScatterOp(Blocked):
    """Folds the operands, and leaves each device its own blocks: `spmd.reduce_scatter add %x dim 0 block 8 over (data)`."""

    name = "spmd.reduce_scatter"
    monoid = prop_def(StringAttr)
    FIRST: ClassVar = _FOLD
    SPLITS: ClassVar = ("dim", "block")


@irdl_op_definition
class AllToAllOp(Collective):
    """Splits one dim among the devices and joins another: `spmd.all_to_all %x split 0 block 4 concat 1 block 8 over (data)`.

    The split comes first: if both dims are the same, `concat`'s block counts elements of the split dim.
    """

    name = "spmd.all_to_all"
    split = prop_def(IntAttr)
    split_block = prop_def(IntAttr)
    concat = prop_def(IntAttr)
    concat_block = prop_def(IntAttr)
    WORDS: ClassVar = (*_numbers("split", "split_block"), *_numbers("concat", "concat_block"), _OVER)
    SPLITS: ClassVar = ("split", "split_block")
    JOINS: ClassVar = ("concat", "concat_block")


@irdl_op_definition
class PermuteOp(Collective):
    """Sends operands between devices: `spmd.permute %x over (data) pairs [(0, 1), (1, 0)]`. Each pair is (sender, receiver).

    A device without a sender gets zeros. Constraints: both ends are in the group; a device sends at most once and
    receives at most once.
    """

    name = "spmd.permute"
    pairs = prop_def(PairsAttr)
    WORDS: ClassVar = (_OVER, KeywordProperty("pairs", PairsAttr.read, "pairs"))

    @classmethod
    def result(cls, array: ArrayType, group: int, properties: Properties) -> ArrayType:
        pairs = properties["pairs"]
        ends = list(zip(*pairs.data, strict=True)) if isinstance(pairs, PairsAttr) else []
        for word, side in zip(("sends", "receives"), ends, strict=False):
            if outside := [device for device in side if not 0 <= device < group]:
                raise VerifyException(f"`{cls.name}`: device {outside[0]} {word}, and the group has {group}")
            if again := [device for device, times in Counter(side).items() if times > 1]:
                raise VerifyException(f"`{cls.name}`: device {again[0]} {word} more than once")
        return array

    def exchange(self, held: Sequence[Array]) -> list[Array]:
        received = [library(array).zeros_like(array) for array in held]
        for source, target in self.pairs.data:
            received[target] = held[source]
        return received


@irdl_op_definition
class ExscanOp(Collective):
    """Folds the operands of the trips before this one, or of those behind it: `spmd.exscan add %x backwards 0 over (t:4)`.

    The first trip gets the monoid's unit. Constraint: it runs over one loop; over axes, the parts are gathered and scanned.
    """

    name = "spmd.exscan"
    monoid = prop_def(StringAttr)
    backwards = prop_def(IntAttr)
    FIRST: ClassVar = _FOLD
    WORDS: ClassVar = (KeywordProperty("backwards", _read_number, "backwards"), _OVER)

    @classmethod
    def result(cls, array: ArrayType, group: int, properties: Properties) -> ArrayType:
        (*others, place) = cast(AxesAttr, properties["over"]).data
        if others or not isinstance(place, Loop):
            raise VerifyException(f"`{cls.name}` runs over one loop")
        return array


@irdl_op_definition
class SliceOp(Blocked):
    """Keeps this device's blocks of a replicated dim: the inverse of all_gather, without communication.

    `spmd.slice %x dim 0 block 64 over (data)`.
    """

    name = "spmd.slice"
    SPLITS: ClassVar = ("dim", "block")


@irdl_op_definition
class PickOp(Collective):
    """Keeps some rows of a dim, others on each device: `spmd.pick %x dim 0 over (data) rows [(0, 1), (2, 3)]`.

    Constraints: a list for each device of the group, all of one length, of rows of the dim.
    """

    name = "spmd.pick"
    dim = prop_def(IntAttr)
    rows = prop_def(RowsAttr)
    WORDS: ClassVar = (KeywordProperty("dim", _read_number, "dim"), _OVER, KeywordProperty("rows", RowsAttr.read, "rows"))

    @classmethod
    def result(cls, array: ArrayType, group: int, properties: Properties) -> ArrayType:
        dim, rows = _number(properties, "dim"), cast(RowsAttr, properties["rows"]).data
        _check_dim(cls, array, dim, 1, 1, "rows of 1")
        if len(rows) != group or len(lengths := {*map(len, rows)}) > 1:
            raise VerifyException(f"`{cls.name}`: {group} devices need a list of rows each, all of one length")
        if outside := [row for each in rows for row in each if not 0 <= row < array.shape[dim]]:
            raise VerifyException(f"`{cls.name}`: dim {dim} of {array.text} has no row {outside[0]}")
        return _resized(array, dim, lengths.pop())

    def exchange(self, held: Sequence[Array]) -> list[Array]:
        before = (slice(None),) * self.number("dim")
        return [array[(*before, list(rows))] for array, rows in zip(held, self.rows.data, strict=True)]


@cache
def sends(kind: type[Operation]) -> bool:
    """Whether ops of this type send. Asked once for each type, because a program has thousands of ops."""
    return issubclass(kind, Collective) and not issubclass(kind, SliceOp | PickOp)


@irdl_op_definition
class CoordinateOp(Coordinate):
    """The index of this device along the axes: `spmd.coordinate (data)`."""

    name = "spmd.coordinate"


@irdl_op_definition
class BarrierOp(Barrier):
    """Orders ops on a device: all ops that make its operands run before any op that reads its results.

    It delays a gather until the value that starts its use; otherwise XLA might merge it with another gather. It also ties
    values to a loop, so that they are computed before it, where that frees memory.
    """

    name = "spmd.barrier"


@irdl_op_definition
class PrefetchOp(Barrier):
    """Starts a gather of the next trip of a scan: `%0, %1 = spmd.prefetch %x, %start : ...`, in its body.

    What makes `%x` from rows and constants of the scan is done for the next trip during this one, no sooner than `%start`. On a
    platform that overlaps nothing each trip makes its own.
    """

    name = "spmd.prefetch"


SPMD = Dialect(
    "spmd",
    [
        AllReduceOp,
        AllGatherOp,
        ReduceScatterOp,
        AllToAllOp,
        PermuteOp,
        ExscanOp,
        SliceOp,
        PickOp,
        CoordinateOp,
        BarrierOp,
        PrefetchOp,
    ],
    [PairsAttr, RowsAttr],
)
