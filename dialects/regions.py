"""Ops with regions: how values enter and leave a region, and how the types on both sides must agree.

A region is the body of a loop, its condition, or a branch. Values cross its border as block arguments or as yielded values.
The definitions `enter`, `trip`, `carry`, `leave`, `collect` and `join` say how a dim crosses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.utils.exceptions import VerifyException

from .layouts import Layout
from .params import ParamsAttr
from .ranges.algebra import Extent
from .types import ArrayType

T = TypeVar("T")
Types = tuple[ArrayType, ...]

BORDERS = frozenset({"enter", "trip", "carry", "leave", "collect", "join"})
"""Definitions that are not ops: they say how a dim enters or leaves a region."""
TRIPS = frozenset({"trip", "collect"})
"""The borders of a scanned dim: `trip` splits it into one row a trip, and `collect` stacks the rows again."""


NO_OPERANDS = slice(0, 0)
"""An empty slice: no operands."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Which operands of an op enter which of its regions, and in which role.

    The arguments of region `r` are the operands `consts[r]`, then the carries, then a trip's part of the rows.

        lax.scan  %consts.. %carries.. %rows..          one region:    consts, carries, rows
        lax.while %asked.. %fixed.. %carries..          the condition: asked, carries;   the body: fixed, carries
        lax.cond  %which %given..                       every branch:  given
    """

    consts: tuple[slice, ...]
    carries: slice
    rows: slice

    def arguments(self, region: int, operands: Sequence[T], carries: Sequence[T], rows: Sequence[T] = ()) -> list[T]:
        """The arguments of a region's block, given the carries and the rows of one trip."""
        return [*operands[self.consts[region]], *carries, *rows]


def entries_of(op: str, params: ParamsAttr, regions: int) -> Entry:
    """Returns which operands of an op enter which of its regions. Raises VerifyException for invalid parameters."""
    match op:
        case "lax.scan":
            consts, carries = (count_param(op, params, name) for name in ("num_consts", "num_carry"))
            return Entry((slice(consts),), slice(consts, consts + carries), slice(consts + carries, None))
        case "lax.while":
            asked, fixed = (count_param(op, params, name) for name in ("cond_nconsts", "body_nconsts"))
            return Entry((slice(asked), slice(asked, asked + fixed)), slice(asked + fixed, None), NO_OPERANDS)
        case _:
            return Entry((slice(1, None),) * regions, NO_OPERANDS, NO_OPERANDS)


def count_param(op: str, params: ParamsAttr, name: str) -> int:
    """Returns a parameter that is a count. Raises VerifyException unless it is an integer, 0 or more."""
    value = params.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise VerifyException(f"`{op}`: `{name}` must be an integer, 0 or more")
    return value


def _check_scan(params: ParamsAttr, ins: Types, outs: Types, arguments: Sequence[Types], yields: Sequence[Types]) -> None:
    (args,), (yielded,) = arguments, yields
    entry, length = entries_of("lax.scan", params, 1), count_param("lax.scan", params, "length")
    consts, kept = entry.carries.start, entry.carries.stop
    carries = kept - consts
    _same_number("scan", f"operands, {consts} consts and {carries} carries among them,", ins, "arguments of the body", args)
    _same_number("scan", "results", outs, "values that the body yields", yielded)
    if kept > len(args) or carries > len(yielded):
        raise VerifyException(f"`lax.scan`: {consts} consts and {carries} carries, and a body of {len(args)} arguments")
    for position, (operand, arg) in enumerate(zip(ins, args, strict=True)):
        wanted = arg if position < kept else _stacked(arg, length)
        if operand is not wanted:
            raise VerifyException(
                f"`lax.scan`: operand {position} is {operand.text}, and argument {position} of the body, {arg.text}, "
                f"over {length} trips wants {wanted.text}"
            )
    for position, (result, each) in enumerate(zip(outs, yielded, strict=True)):
        wanted = each if position < carries else _stacked(each, length)
        if result is not wanted:
            raise VerifyException(
                f"`lax.scan`: result {position} is {result.text}, and the body yields {each.text}, which over {length} "
                f"trips gives {wanted.text}"
            )
    for position, (arg, each) in enumerate(zip(args[consts:kept], yielded[:carries], strict=True)):
        if arg is not each:
            raise VerifyException(f"`lax.scan`: carry {position} begins a trip as {arg.text} and ends it as {each.text}")


def _check_while(params: ParamsAttr, ins: Types, outs: Types, args: Sequence[Types], yielded: Sequence[Types]) -> None:
    entry = entries_of("lax.while", params, 2)
    asked, fixed = (len(range(each.start or 0, each.stop)) for each in entry.consts)
    if asked + fixed > len(ins):
        raise VerifyException(f"`lax.while`: {asked} and {fixed} consts, and {len(ins)} operands")
    carries = ins[entry.carries]
    for region, name in enumerate(("condition", "body")):
        _alike(
            "while", f"arguments of the {name}", args[region], "operands for it", tuple(entry.arguments(region, ins, carries))
        )
    _alike("while", "values that the body yields", yielded[1], "carries", carries)
    _alike("while", "results", outs, "carries", carries)
    if yielded[0] != (ArrayType.whole("bool"),):
        raise VerifyException(f"`lax.while`: the condition yields one bool[], not {_text(yielded[0])}")


def _check_cond(params: ParamsAttr, ins: Types, outs: Types, args: Sequence[Types], yielded: Sequence[Types]) -> None:
    if not ins or ins[0] is not ArrayType.whole("int32"):
        raise VerifyException(f"`lax.cond`: the first operand is an i32[], the branch's number, not {_text(ins[:1])}")
    if not args:
        raise VerifyException("`lax.cond` has at least one branch")
    entry = entries_of("lax.cond", params, len(args))
    for branch, (takes, gives) in enumerate(zip(args, yielded, strict=True)):
        _alike("cond", f"arguments of branch {branch}", takes, "operands for it", tuple(entry.arguments(branch, ins, ())))
        _alike("cond", f"values that branch {branch} yields", gives, "results", outs)


def _text(types: Types) -> str:
    return ", ".join(type.text for type in types) or "nothing"


def _same_number(op: str, left: str, lefts: Sequence[object], right: str, rights: Sequence[object]) -> None:
    if len(lefts) != len(rights):
        raise VerifyException(f"`lax.{op}`: {len(lefts)} {left} and {len(rights)} {right}")


def _alike(op: str, left: str, lefts: Types, right: str, rights: Types) -> None:
    _same_number(op, left, lefts, right, rights)
    for position, (one, other) in enumerate(zip(lefts, rights, strict=True)):
        if one is not other:
            raise VerifyException(f"`lax.{op}`: number {position} of the {left} is {one.text}, of the {right} {other.text}")


def _stacked(array: ArrayType, length: int) -> ArrayType:
    return ArrayType.of(array.dtype, Layout((Extent(length), *array.layout.dims), array.layout.pending))


CHECKS: Mapping[str, Callable[[ParamsAttr, Types, Types, Sequence[Types], Sequence[Types]], None]] = {
    "lax.scan": _check_scan,
    "lax.while": _check_while,
    "lax.cond": _check_cond,
}
"""For each op with regions: raises VerifyException if the types outside the regions disagree with those inside."""
