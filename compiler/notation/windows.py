"""Windows under a fold: convolutions, pooling, and the others element by element. Where a window hangs over, nothing is read.

sum(c, q) x[n, c, 2*p + q - 1] * k[o, c, q]   -->   conv_general_dilated, stride 2, one element of padding before
max(q: 2) x[n, 2*p + q]                       -->   reduce_window
sum(q) x[p + q - 1] * k[q]                    -->   sum(q) where(0 <= p + q - 1 < P, x[clip(p + q - 1)] * k[q], 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ...dialects.dtypes import dtype_of
from ...dialects.monoids import MONOIDS
from ..ops.monoids import pools
from .code import Code
from .diagnostics import Span
from .terms import (
    Affine,
    Apply,
    Fixed,
    Fold,
    Index,
    Number,
    Position,
    Read,
    Term,
    dtype,
    inner,
    subscripts,
)
from .value import Value, Walker


@dataclass(frozen=True, slots=True)
class Window:
    """One dim `stride * out + dilation * within - low` of an array, and what has to be padded behind."""

    dim: int
    out: Index
    within: Index
    stride: int
    dilation: int
    low: int
    high: int


def windows(read: Read, folded: Sequence[Index]) -> list[Window] | None:
    """The windows of a read; None where it has none, or other positions that are no windows.

    Nor where an index moves along two dims, as in `x[i + q, j + q]`: a window moves along each dim by itself.
    """
    if repeats(index for sub in read.subs for index in subscripts(sub)):
        return None
    found: list[Window] = []
    for dim, sub in enumerate(read.subs):
        match sub:
            case Affine(offset, ((one, a), (other, b))) if (one in folded) != (other in folded) and a > 0 and b > 0:
                (out, stride), (within, dilation) = ((one, a), (other, b)) if other in folded else ((other, b), (one, a))
                reach = (out.extent - 1) * stride + (within.extent - 1) * dilation + 1 + offset
                found.append(Window(dim, out, within, stride, dilation, -offset, reach - read.array.shape[dim]))
            case Index() | Fixed():
                pass
            case _:
                return None
    return found or None


def repeats(indices: Iterable[Index]) -> bool:
    """Does one of them stand there twice?"""
    every = list(indices)
    return len(set(every)) < len(every)


def convolution(values: Walker, term: Fold, parts: Sequence[Term]) -> Value | None:
    """The sum as a convolution, if one factor is read through windows and the other holds a weight for each place in them."""
    reads = [part for part in parts if isinstance(part, Read)]
    if len(parts) != 2 or len(reads) != 2 or any(not isinstance(sub, Index | Affine) for read in reads for sub in read.subs):
        return None
    image, kernel = reads if windows(reads[0], term.indices) else reads[::-1]
    found = windows(image, term.indices)
    if found is None or any(not isinstance(sub, Index) for sub in kernel.subs):
        return None
    if repeats(sub for sub in kernel.subs if isinstance(sub, Index)):
        return None
    within = [window.within for window in found]
    channels = [index for index in term.indices if index not in within]
    plain = [sub for sub in image.subs if isinstance(sub, Index) and sub not in channels]
    weights = [sub for sub in kernel.subs if isinstance(sub, Index) and sub not in term.indices]
    if len(channels) != 1 or len(plain) != 1 or len(weights) != 1:
        return None
    outs = [window.out for window in found]
    if (
        weights[0] in (plain[0], *outs)
        or not all(index in image.subs for index in channels)
        or set(kernel.subs) != {*weights, *channels, *within}
    ):
        return None
    return _convolved(values, term, image, kernel, found, (plain[0], channels[0], weights[0]), outs)


def _convolved(
    values: Walker,
    term: Fold,
    image: Read,
    kernel: Read,
    found: Sequence[Window],
    names: tuple[Index, Index, Index],
    outs: Sequence[Index],
) -> Value:
    code, (batch, channel, weight) = Code(term.span), names
    given = [index for index in values.order if index in (batch, weight, *outs)]
    result = given if len(given) == 2 + len(outs) else [batch, weight, *outs]
    lhs = (image.subs.index(batch), image.subs.index(channel), *(window.dim for window in found))
    rhs = (kernel.subs.index(weight), kernel.subs.index(channel), *(kernel.subs.index(window.within) for window in found))
    out = (result.index(batch), result.index(weight), *map(result.index, outs))
    made = code.call(
        "notation.convolve",
        code.name(image.array.name),
        code.name(kernel.array.name),
        tuple(window.stride for window in found),
        tuple((window.low, window.high) for window in found),
        tuple(window.dilation for window in found),
        (lhs, rhs, out),
    )
    return Value(made, tuple(result))


def pooling(term: Fold) -> Value | None:
    """The fold of what one read sees through windows."""
    body = term.body
    if not isinstance(body, Read) or not pools(term.monoid):
        return None
    found = windows(body, term.indices)
    if found is None or any(isinstance(sub, Fixed) for sub in body.subs):
        return None
    if {window.within for window in found} != set(term.indices):
        return None
    by_dim = {window.dim: window for window in found}
    dims = range(len(body.subs))
    code = Code(term.span)
    made = code.call(
        "notation.pool",
        term.monoid,
        code.name(body.array.name),
        tuple(by_dim[dim].within.extent if dim in by_dim else 1 for dim in dims),
        tuple(by_dim[dim].stride if dim in by_dim else 1 for dim in dims),
        tuple((by_dim[dim].low, by_dim[dim].high) if dim in by_dim else (0, 0) for dim in dims),
        tuple(by_dim[dim].dilation if dim in by_dim else 1 for dim in dims),
    )
    return Value(made, tuple(by_dim[dim].out if dim in by_dim else _plain(body, dim) for dim in dims))


def _plain(body: Read, dim: int) -> Index:
    sub = body.subs[dim]
    assert isinstance(sub, Index)
    return sub


def guarded(term: Fold) -> Fold:
    """The fold over what is inside: where a window of its body hangs over, it meets the unit."""
    asked = [
        Apply(
            "and",
            (Apply("le", (Number(0, at), place), "bool", at), Apply("lt", (place, Number(extent, at)), "bool", at)),
            "bool",
            at,
        )
        for affine, extent, at in dict.fromkeys(_hanging(term.body))
        for place in [position(affine, at)]
    ]
    if not asked:
        return term
    condition = reduce(lambda one, other: Apply("and", (one, other), "bool", term.span), asked)
    made = dtype(term)
    return replace(
        term, body=Apply("where", (condition, term.body, Number(_unit(term.monoid, made), term.span)), made, term.span)
    )


def _hanging(term: Term) -> Iterator[tuple[Affine, int, Span]]:
    """The windows that leave their dims; those under a further fold are that one's."""
    waiting = [term]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Read):
            for sub, extent in zip(term.subs, term.array.shape, strict=True):
                if isinstance(sub, Affine) and len(sub.factors) > 1 and not _lies(sub, extent):
                    yield sub, extent, term.span
        waiting += reversed(inner(term)) if not isinstance(term, Fold) else ()


def _lies(affine: Affine, extent: int) -> bool:
    low, high = affine.ends
    return low >= 0 and high < extent


def _unit(monoid: str, made: str) -> float:
    return MONOIDS[monoid].unit(dtype_of(made)).item()


def inside(affine: Affine, extent: int, at: Span) -> Term:
    """A window as a position that is computed, and that lies inside."""
    place = position(affine, at)
    if _lies(affine, extent):
        return place
    return Apply("min", (Apply("max", (place, Number(0, at)), "int32", at), Number(extent - 1, at)), "int32", at)


def position(affine: Affine, at: Span) -> Term:
    steps = [
        Position(index, at) if factor == 1 else Apply("mul", (Position(index, at), Number(factor, at)), "int32", at)
        for index, factor in affine.factors
    ]
    made: Term = reduce(lambda one, other: Apply("add", (one, other), "int32", at), steps)
    return Apply("add", (made, Number(affine.offset, at)), "int32", at) if affine.offset else made
