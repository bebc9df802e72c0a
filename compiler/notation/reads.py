"""Code for reads: the positions in brackets become reshapes, slices and lookups, in this order.

x[b, (h d)]      --> reshape        x[i, 0], x[2*i + 1] --> slice       emb[ids[b], d] --> emb[ids]
logp[b, y[b]]    --> take_along_axis                    x[i, i]         --> the diagonal
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.definitions.tree import Affine, Group
from .code import Code, Expr
from .folds import contracted
from .terms import Dim, Index, Reading, Term, alone, at, computed, free, repeats, sliding
from .value import Dims, Value, Walker, alongside, fit, ordered, squeezed
from .windows import inside


def read(values: Walker, term: Reading) -> Value:
    code = Code(at(term))
    array, dims = sliced(code, values, term)
    if any(map(computed, dims)):
        return looked_up(code, values, array, dims)
    return diagonal(code, Value(array, tuple(map(alone, dims))))


def split(code: Code, term: Reading) -> tuple[Expr, list[tuple[Dim, int]]]:
    """The array, with dims that are products split by one reshape, and each dim with its extent."""
    array, dims = code.name(term.array.name), list[tuple[Dim, int]]()
    for dim, extent in zip(term.dims, term.array.shape, strict=True):
        if isinstance(dim, Group) and len(dim.indices) > 1:
            dims += ((Group((index,)), index.extent) for index in dim.indices)
        else:
            dims.append((dim, extent))
    if len(dims) > len(term.dims):
        array = code.call("jnp.reshape", array, tuple(extent for _, extent in dims))
    return array, dims


def sliced(code: Code, values: Walker, term: Reading) -> tuple[Expr, list[Dim]]:
    """Fixed positions, strided windows along one index, and windows with a computed start."""
    kept, parts, whole = list[Dim](), list[object](), slice(None)
    array, dims = split(code, term)
    for dim, extent in dims:
        part: object = whole
        match dim:
            case Affine(position, ()) if extent != 1:
                parts.append(position)
                continue
            case Affine(offset, ((index, step),)):
                last = offset + step * (index.extent - 1)
                stop = last + (1 if step > 0 else -1)
                part, dim = slice(offset, None if stop < 0 else stop, None if step == 1 else step), Group((index,))
            case Affine(_, (_, *_)):
                dim = inside(dim, extent, at(term))
            case _ if (slides := sliding(dim)) is not None:
                start, index = slides
                array = code.call("lax.dynamic_slice_in_dim", array, values.term(start).code, index.extent, len(parts))
                dim = Group((index,))
            case _:
                pass
        parts.append(part)
        kept.append(dim)
    return (array if all(part == whole for part in parts) else code.index(array, tuple(parts))), kept


def diagonal(code: Code, value: Value) -> Value:
    """Each index once: `x[i, i]` is the diagonal."""
    return contracted(code, [squeezed(code, value)], ordered(value.indices, ())) if repeats(value.indices) else value


def looked_up(code: Code, values: Walker, array: Expr, dims: Sequence[Dim]) -> Value:
    """Looked-up indices, as JAX indexes arrays by arrays."""
    plain = [index for dim in dims if (index := alone(dim)) is not None]
    looks = [dim for dim in dims if not isinstance(dim, Group | Affine)]
    depends = list(dict.fromkeys(index for look in looks for index in free(look)))
    shared = [index for index in plain if index in depends]
    units = any(isinstance(dim, Affine) for dim in dims)
    if len(looks) == 1 and shared and set(depends) <= set(plain) and len(set(plain)) == len(plain) and not units:
        return along_axis(code, values, array, dims, looks[0])
    parts = [_part(dim, shared) for dim in dims]
    given = [values.term(part) for part in parts if not isinstance(part, slice | int)]
    positions, known = alongside(code, given, values.order)
    found = iter(positions)
    items = [part if isinstance(part, slice | int) else next(found).code for part in parts]
    rest = [index for index in plain if index not in shared]
    return Value(code.index(array, tuple(items)), _placed(parts, known, rest))


def _part(dim: Dim, shared: Sequence[Index]) -> Term | slice | int:
    match dim:
        case Affine(position, _):
            return position
        case Group((index,)) if index in shared:
            return Group((index,), index.span)
        case Group():
            return slice(None)
        case _:
            return dim


def _placed(parts: Sequence[object], dims: Dims, rest: Sequence[Index]) -> Dims:
    """Where JAX puts the dims of the positions: in place if they are adjacent, otherwise first."""
    slices = [isinstance(part, slice) for part in parts]
    first, last = slices.index(False), len(slices) - 1 - slices[::-1].index(False)
    before = 0 if any(slices[first:last]) else first
    return (*rest[:before], *dims, *rest[before:])


def along_axis(code: Code, values: Walker, array: Expr, dims: Sequence[Dim], look: Term) -> Value:
    """`logp[b, y[b]]`: the position along one dim depends on the indices of the others."""
    axis = next(number for number, dim in enumerate(dims) if computed(dim))
    known = tuple(map(alone, dims))
    positions = fit(code, values.term(look), known)
    taken = code.call("jnp.take_along_axis", array, positions.code, axis)
    return Value(code.call("jnp.squeeze", taken, (axis,)), known[:axis] + known[axis + 1 :])
