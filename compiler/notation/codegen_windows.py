"""Code for windows under a fold: convolutions, pooling, and others elementwise. Nothing is read outside the array.

sum(c, q) x[n, c, 2*p + q - 1] * k[o, c, q]   -->   conv_general_dilated, stride 2, one element of padding before
max(q: 2) x[n, 2*p + q]                       -->   reduce_window
sum(q) x[p + q - 1] * k[q]                    -->   sum(q) where(0 <= p + q - 1 < P, x[clip(p + q - 1)] * k[q], 0)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from ...dialects.definitions.syntax_tree import Affine, Apply, Fold, Group, Number, Read
from ...dialects.ground.dtypes import dtype_of
from ...dialects.ground.errors import Span
from ...dialects.ground.monoids import MONOIDS
from ..ops.monoids import has_windowed_fold
from .python_code import ArrayCode, Code
from .terms import (
    CheckedIndex,
    Dim,
    Reading,
    Term,
    alone,
    direct_indices,
    direct_subterms,
    dtype,
    leaves,
    repeats,
    span_in_text,
)


@dataclass(frozen=True, slots=True)
class WindowDim:
    """A dim read at `stride * out + dilation * within - low`; `padding` is `low` and the padding after the dim's end."""

    dim: int
    out: CheckedIndex
    within: CheckedIndex
    stride: int
    padding: tuple[int, int]
    dilation: int


def window_dims(read: Reading, folded: Sequence[CheckedIndex]) -> list[WindowDim] | None:
    """The windows of a read; None if it has none, or has positions that are not windows.

    Also None if an index moves along two dims, as in `x[i + q, j + q]`: a window moves along each dim separately.
    """
    if repeats(index for sub in read.dims for index in direct_indices(sub)):
        return None
    found: list[WindowDim] = []
    for dim, sub in enumerate(read.dims):
        match sub:
            case Affine(offset, ((one, a), (other, b))) if (one in folded) != (other in folded) and a > 0 and b > 0:
                (out, stride), (within, dilation) = ((one, a), (other, b)) if other in folded else ((other, b), (one, a))
                reach = (out.extent - 1) * stride + (within.extent - 1) * dilation + 1 + offset
                found.append(WindowDim(dim, out, within, stride, (-offset, reach - read.array.shape[dim]), dilation))
            case Group((_,)) | Affine(_, ()):
                pass
            case _:
                return None
    return found or None


@dataclass(frozen=True, slots=True)
class ConvDims:
    """A convolution by its indices: the image's `batch`, the folded `channel`, and the kernel's own index, `weight`."""

    image: Reading
    kernel: Reading
    windows: list[WindowDim]
    batch: CheckedIndex
    channel: CheckedIndex
    weight: CheckedIndex


def convolved(term: Fold[CheckedIndex, Term], parts: Sequence[Term]) -> ConvDims | None:
    """The dims of a convolution, if one factor is read through windows and the other holds their weights; otherwise None."""
    match parts:
        case [Read() as one, Read() as other]:
            image, kernel = (one, other) if window_dims(one, term.indices) else (other, one)
        case _:
            return None
    found, weights = window_dims(image, term.indices), [index for sub in kernel.dims if (index := alone(sub)) is not None]
    if found is None or len(weights) < len(kernel.dims) or repeats(weights):
        return None
    within = {window.within for window in found}
    plain = [index for sub in image.dims if (index := alone(sub)) is not None]
    batch = [index for index in plain if index not in term.indices]
    channels = [index for index in term.indices if index not in within]
    own = [index for index in weights if index not in term.indices]
    if not (len(batch) == len(channels) == len(own) == 1 and all(map(direct_indices, image.dims))):
        return None
    layout = ConvDims(image, kernel, found, batch[0], channels[0], own[0])
    takes_every_weight = set(weights) == {layout.weight, layout.channel, *within}
    folds_channel = layout.channel in plain
    weight_is_new = layout.weight not in (layout.batch, *(window.out for window in found))
    return layout if takes_every_weight and folds_channel and weight_is_new else None


def convolution(order: Sequence[CheckedIndex], term: Fold[CheckedIndex, Term], layout: ConvDims) -> ArrayCode:
    code, wanted = Code(span_in_text(term)), [layout.batch, layout.weight, *(window.out for window in layout.windows)]
    given = [index for index in order if index in wanted]
    result = given if len(given) == len(wanted) else wanted
    image, kernel = ([alone(sub) for sub in read.dims] for read in (layout.image, layout.kernel))
    lhs = (image.index(layout.batch), image.index(layout.channel), *(window.dim for window in layout.windows))
    rhs = tuple(map(kernel.index, (layout.weight, layout.channel, *(window.within for window in layout.windows))))
    out = tuple(map(result.index, wanted))
    how = zip(*((window.stride, window.padding, window.dilation) for window in layout.windows), strict=True)
    arrays = (code.name(read.array.name) for read in (layout.image, layout.kernel))
    return ArrayCode(code.call("notation.convolve", *arrays, *how, (lhs, rhs, out)), tuple(result))


def pooling(term: Fold[CheckedIndex, Term]) -> ArrayCode | None:
    """The code of a fold over a single read through windows; None for another fold."""
    body = term.body
    if not isinstance(body, Read) or not has_windowed_fold(term.monoid):
        return None
    found = window_dims(body, term.indices)
    if found is None or any(isinstance(sub, Affine) and not sub.factors for sub in body.dims):
        return None
    if {window.within for window in found} != set(term.indices):
        return None
    code = Code(span_in_text(term))
    dims = [(1, 1, (0, 0), 1, alone(sub)) for sub in body.dims]
    for window in found:
        dims[window.dim] = window.within.extent, window.stride, window.padding, window.dilation, window.out
    *how, outs = zip(*dims, strict=True)
    return ArrayCode(code.call("notation.pool", term.monoid, code.name(body.array.name), *how), outs)


def guarded(term: Fold[CheckedIndex, Term]) -> Fold[CheckedIndex, Term]:
    """The fold with the unit instead of its body wherever a window of the body is outside the array."""
    asked = [
        _apply(
            "and", "bool", at, _apply("le", "bool", at, Number(0, at), where), _apply("lt", "bool", at, where, Number(n, at))
        )
        for affine, n, at in dict.fromkeys(_hanging(term.body))
        for where in [position(affine, at)]
    ]
    if not asked:
        return term
    condition = reduce(partial(_apply, "and", "bool", span_in_text(term)), asked)
    made = dtype(term)
    unit = MONOIDS[term.monoid].unit(dtype_of(made)).item()
    return replace(term, body=_apply("where", made, span_in_text(term), condition, term.body, Number(unit, term.span)))


def _hanging(term: Dim) -> Iterator[tuple[Affine[CheckedIndex], int, Span]]:
    """The windows that reach outside of their dims, except those under an inner fold."""
    waiting = [term]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Read):
            for sub, extent in zip(term.dims, term.array.shape, strict=True):
                if isinstance(sub, Affine) and len(sub.factors) > 1 and leaves(sub, extent):
                    yield sub, extent, span_in_text(term)
        waiting += reversed(direct_subterms(term)) if not isinstance(term, Fold) else ()


def clipped_window(affine: Affine[CheckedIndex], extent: int, at: Span) -> Term:
    """A window as a computed position, clipped to the array."""
    where = position(affine, at)
    if not leaves(affine, extent):
        return where
    return _apply("min", "int32", at, _apply("max", "int32", at, where, Number(0, at)), Number(extent - 1, at))


def position(affine: Affine[CheckedIndex], at: Span) -> Term:
    steps: list[Term] = [
        Group((index,), at) if factor == 1 else _apply("mul", "int32", at, Group((index,), at), Number(factor, at))
        for index, factor in affine.factors
    ]
    steps += [Number(affine.offset, at)] if affine.offset else []
    return reduce(partial(_apply, "add", "int32", at), steps)


def _apply(function: str, dtype: str, at: Span, *args: Term) -> Term:
    return Apply(function, args, dtype, at)
