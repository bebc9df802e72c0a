"""Reads as code: what stands between the brackets becomes reshapes, slices, lookups, in this order.

x[b, (h d)]      --> reshape        x[i, 0], x[2*i + 1] --> slice       emb[ids[b], d] --> emb[ids]
logp[b, y[b]]    --> take_along_axis                    x[i, i]         --> the diagonal
"""

from __future__ import annotations

from collections.abc import Sequence

from .code import Code, Expr
from .folds import subscripts
from .terms import Affine, Fixed, Index, Joint, Look, Position, Read, Sliding, Sub, Term, free
from .value import Dims, Value, Walker, alongside, fit
from .windows import inside


def read(values: Walker, term: Read) -> Value:
    code = Code(term.span)
    array, subs = split(code, term)
    array, subs = sliced(code, values, array, subs, term)
    if any(isinstance(sub, Look) for sub in subs):
        return looked_up(code, values, array, subs)
    dims = tuple(sub if isinstance(sub, Index) else None for sub in subs)
    return diagonal(code, Value(array, dims))


def split(code: Code, term: Read) -> tuple[Expr, list[Sub]]:
    """Dims that are products, taken apart by one reshape."""
    array, subs = code.name(term.array.name), list[Sub]()
    for sub in term.subs:
        subs += sub.indices if isinstance(sub, Joint) else (sub,)
    if len(subs) > len(term.subs):
        array = code.call("jnp.reshape", array, tuple(_extents(term)))
    return array, subs


def sliced(code: Code, values: Walker, array: Expr, subs: Sequence[Sub], term: Read) -> tuple[Expr, list[Sub]]:
    """Fixed places, strided windows along one index, and windows that slide to a computed start."""
    kept, parts = list[Sub](), list[object]()
    whole = slice(None)
    extents = _extents(term)
    for sub, extent in zip(subs, extents, strict=True):
        match sub:
            case Fixed(place) if extent != 1:
                parts.append(place)
                continue
            case Affine(offset, ((index, step),)):
                last = offset + step * (index.extent - 1)
                stop = last + (1 if step > 0 else -1)
                parts.append(slice(offset, None if stop < 0 else stop, None if step == 1 else step))
                kept.append(index)
            case Affine():
                parts.append(whole)
                kept.append(Look(inside(sub, extent, term.span)))
            case Sliding(start, index):
                begun = values.term(start).code
                array = code.call("lax.dynamic_slice_in_dim", array, begun, index.extent, len(parts))
                parts.append(whole)
                kept.append(index)
            case _:
                parts.append(whole)
                kept.append(sub)
    return (array if all(part == whole for part in parts) else code.index(array, parts)), kept


def _extents(term: Read) -> list[int]:
    """The extents of the dims, those that are products taken apart."""
    found = list[int]()
    for sub, extent in zip(term.subs, term.array.shape, strict=True):
        found += [index.extent for index in sub.indices] if isinstance(sub, Joint) else [extent]
    return found


def diagonal(code: Code, value: Value) -> Value:
    """Each index once: `x[i, i]` is the diagonal."""
    once = tuple(dict.fromkeys(value.indices))
    if len(once) == len(value.indices):
        return value
    letters = subscripts(once)
    units = tuple(dim for dim, index in enumerate(value.dims) if index is None)
    array = code.call("jnp.squeeze", value.code, units) if units else value.code
    said = "".join(letters[index] for index in value.indices)
    return Value(code.call("jnp.einsum", f"{said}->{''.join(letters[index] for index in once)}", array), once)


def looked_up(code: Code, values: Walker, array: Expr, subs: Sequence[Sub]) -> Value:
    """Looked-up indices, as JAX indexes arrays by arrays."""
    plain = [sub for sub in subs if isinstance(sub, Index)]
    looks = [sub.term for sub in subs if isinstance(sub, Look)]
    depends = list(dict.fromkeys(index for look in looks for index in free(look)))
    shared = [index for index in plain if index in depends]
    units = any(isinstance(sub, Fixed) for sub in subs)
    if len(looks) == 1 and shared and set(depends) <= set(plain) and len(set(plain)) == len(plain) and not units:
        return along_axis(code, values, array, subs, looks[0])
    parts = [_part(sub, shared) for sub in subs]
    given = [values.term(part) for part in parts if not isinstance(part, slice | int)]
    positions, dims = alongside(code, given, values.order)
    found = iter(positions)
    items = [part if isinstance(part, slice | int) else next(found).code for part in parts]
    rest = [sub for sub in plain if sub not in shared]
    return Value(code.index(array, items), _placed(parts, dims, rest))


def _part(sub: Sub, shared: Sequence[Index]) -> Term | slice | int:
    match sub:
        case Look(term):
            return term
        case Index() if sub in shared:
            return Position(sub, sub.span)
        case Fixed(place):
            return place
        case _:
            return slice(None)


def _placed(parts: Sequence[object], dims: Dims, rest: Sequence[Index]) -> Dims:
    """Where JAX puts the dims of the positions: in their place if they stand side by side, else first."""
    slices = [isinstance(part, slice) for part in parts]
    first, last = slices.index(False), len(slices) - 1 - slices[::-1].index(False)
    before = 0 if any(slices[first:last]) else first
    return (*rest[:before], *dims, *rest[before:])


def along_axis(code: Code, values: Walker, array: Expr, subs: Sequence[Sub], look: Term) -> Value:
    """`logp[b, y[b]]`: the position along one dim depends on the places in the others."""
    axis = next(dim for dim, sub in enumerate(subs) if isinstance(sub, Look))
    dims = tuple(sub if isinstance(sub, Index) else None for sub in subs)
    positions = fit(code, values.term(look), dims)
    taken = code.call("jnp.take_along_axis", array, positions.code, axis)
    return Value(code.call("jnp.squeeze", taken, (axis,)), dims[:axis] + dims[axis + 1 :])
