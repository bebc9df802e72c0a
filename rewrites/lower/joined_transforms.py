"""Joins Fourier transforms along one dim after another to one of several dims, where nothing comes between them.

A program has one transform a dim, so that each runs where its dim is whole. Where a device has all of them whole, XLA computes
one of several dims faster: twice as fast on a CPU.

    %1 = lax.fft %x over 64; %2 = lax.transpose %1; %3 = lax.fft %2 over 32; lax.transpose %3   -->   lax.fft %x over 32, 64
"""

from __future__ import annotations

from typing import NamedTuple, cast

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.lax import OPS, params_of
from ...dialects.params import ParamsAttr, Record
from ...dialects.types import ArrayType
from ..rewire import rewire_users

FFT, TRANSPOSE = "lax.fft", "lax.transpose"

MOST_DIMS = 3
"""XLA transforms at most so many dims at once."""

OTHERS = {"FFT": "FFT", "IFFT": "IFFT", "RFFT": "FFT", "IRFFT": "IFFT"}
"""The kind of a transform -> the kind along its other dims: those of real numbers are real along the last dim only."""

INVERSE = ("IFFT", "IRFFT")


class Along(NamedTuple):
    """A transform of `value` along one dim that is not the last, between two transposes."""

    value: SSAValue
    dim: int
    transform: Operation


def join_transforms(block: Block) -> None:
    """Joins the transforms in a finished block."""
    for op in [op for op in block.ops if op.name in (FFT, TRANSPOSE)]:
        made: Operation | None = op
        while made is not None:
            op, made = made, joined(made)


def joined(op: Operation) -> Operation | None:
    """The transform that replaces an op and the transform before it; None if they cannot be one.

    One along another dim comes after a transform along the last dims, or before an inverse one.
    """
    if op.name == FFT:
        other, transform = _along(op.operands[0]), op
        value = None if other is None or _kind(op) not in INVERSE else other.value
    else:
        other = _along(op.results[0])
        transform = None if other is None else _maker(other.value, FFT)
        value = None if transform is None or _kind(transform) in INVERSE else transform.operands[0]
    if other is None or transform is None or value is None:
        return None
    lengths, (length,) = _lengths(transform), _lengths(other.transform)
    is_next = other.dim == len(cast(ArrayType, value.type).shape) - 1 - len(lengths)
    if not is_next or len(lengths) == MOST_DIMS or _kind(other.transform) != OTHERS[_kind(transform)]:
        return None
    params = ParamsAttr.of(**dict(params_of(transform).items()) | {"fft_lengths": (length, *lengths)})
    made = OPS["fft"].of([value], [cast(ArrayType, op.results[0].type)], params)
    cast(Block, op.parent).insert_op_before(made, op)
    rewire_users(dict(zip(op.results, made.results, strict=True)))
    _erase(op)
    return made


def _along(value: SSAValue) -> Along | None:
    """The transform along another dim that makes a value, if nothing else reads what lies between."""
    back = value.owner
    transform = _maker(back.operands[0], FFT) if isinstance(back, Operation) and back.name == TRANSPOSE else None
    there = None if transform is None else _maker(transform.operands[0], TRANSPOSE)
    if not isinstance(back, Operation) or there is None or transform is None or len(_lengths(transform)) > 1:
        return None
    before, after = (cast("tuple[int, ...]", params_of(each)["permutation"]) for each in (there, back))
    dim, dims = before[-1], range(len(before))
    is_back = before == (*(each for each in dims if each != dim), dim) and [before[each] for each in after] == [*dims]
    return Along(there.operands[0], dim, transform) if is_back else None


def _maker(value: SSAValue, name: str) -> Operation | None:
    """The op of this name that makes a value, if nothing else reads the value."""
    op = value.owner
    return op if isinstance(op, Operation) and op.name == name and value.has_one_use() else None


def _erase(op: Operation) -> None:
    """Erases an op that nothing reads, and the ops before it of which nothing else reads the results, up to four."""
    value = op.operands[0]
    op.detach()
    op.erase()
    before = value.owner
    if isinstance(before, Operation) and before.name in (FFT, TRANSPOSE) and not value.uses:
        _erase(before)


def _lengths(op: Operation) -> tuple[int, ...]:
    return cast("tuple[int, ...]", params_of(op)["fft_lengths"])


def _kind(op: Operation) -> str:
    return cast(str, cast(Record, params_of(op)["fft_type"])["name"])
