"""The walk over terms, which makes the code of each term by its kind.

Positions in brackets become reshapes, slices and lookups, in this order. A sum of a product is an einsum, a convolution or a
scatter-add; every other fold is a reduction.

x[b, (h d)]      --> reshape        x[i, 0], x[2*i + 1] --> slice       emb[ids[b], d] --> emb[ids]
logp[b, y[b]]    --> take_along_axis                    x[i, i]         --> the diagonal
sum(k) x[b, k] * w[k, j]                     -->   jnp.einsum("ab,bc->ac", x, w)
y[n: N, d] = sum(e) [ids[e] = n] * m[e, d]   -->   jax.ops.segment_sum(m, ids, N), without a one-hot table
sum(d) x[b, d] / D                           -->   jnp.sum(x, 1) / D
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dialects.definitions.operators import SIGNS
from ...dialects.definitions.syntax_tree import Affine, Apply, Fold, Group, Number, Read
from ...dialects.ground.dtypes import dtype_of
from .codegen_windows import clipped_window, convolution, convolved, guarded, pooling
from .python_code import ArrayCode, Code, Dims, Expr, alongside, broadcast, fitted, ordered, squeezed, transposed
from .terms import (
    CheckedIndex,
    Dim,
    Mask,
    Reading,
    Term,
    alone,
    computed,
    dtype,
    dtype_alone,
    free,
    repeats,
    sliding,
    span_in_text,
)

MOST_APPLICATIONS = 100
"""The most applications in one Python expression."""
NATURAL = {"max": "jnp.maximum", "min": "jnp.minimum", "where": "notation.choose"}
"""The functions that a JAX user would call; all others are the primitives of their names."""


@dataclass(frozen=True, slots=True)
class Values:
    """The walk. `before` collects parts of long expressions as earlier statements, because Python compiles no deep nesting."""

    order: Sequence[CheckedIndex]
    before: list[ast.stmt]

    def term(self, term: Term) -> ArrayCode:
        code = Code(span_in_text(term))
        match term:
            case Number(value):
                return ArrayCode(code.value(value), (), number=True)
            case Group((index,)):
                return ArrayCode(code.call("lax.iota", "int32", index.extent), (index,))
            case Read():
                return read_code(self, term)
            case Apply("cast", (arg,), wanted):
                value = self.term(arg)
                if isinstance(arg, Number) and not -(2**31) <= arg.value < 2**31:
                    return ArrayCode(code.call("notation.literal", arg.value, wanted), ())
                return replace(value, code=code.call("lax.convert_element_type", value.code, wanted), number=False)
            case Mask(condition):
                return self.term(condition)
            case Fold():
                return fold(self, term)
            case Apply():
                return self.apply(term)
            case Group():
                raise TypeError(term)

    def apply(self, term: Apply[Term]) -> ArrayCode:
        """The code of a chain of applications, built from its first argument on, so that its length does not matter."""
        chain = [term]
        while isinstance(first := chain[-1].args[0], Apply) and first.function != "cast":
            chain.append(first)
        made = self.term(first)
        for number, each in enumerate(reversed(chain), start=1):
            made = self.applied(each, [made, *map(self.term, each.args[1:])])
            if number % MOST_APPLICATIONS == 0:
                code, name = Code(span_in_text(each)), f"_{len(self.before)}"
                self.before.append(code.assign([name], made.code))
                made = replace(made, code=code.name(name))
        return made

    def applied(self, term: Apply[Term], given: Sequence[ArrayCode]) -> ArrayCode:
        code = Code(span_in_text(term))
        if term.function == "mul" and any(isinstance(arg, Mask) for arg in term.args):
            return self.masked(term, given)
        args, dims = alongside(code, given, self.order, led=term.function == "where")
        number = all(arg.number for arg in args)
        codes = [arg.code for arg in args]
        match term.function:
            # Python's `/` divides floats.
            case name if name in SIGNS and not (name == "div" and dtype_of(term.dtype).kind in "iu"):
                made = code.sign(name, *codes)
            case name if name in NATURAL:
                made, number = code.call(NATURAL[name], *codes), False
            case name:
                kinds = [dtype_alone(arg) for arg in term.args if not isinstance(arg, Number)]
                made = code.call("notation.apply", name, term.params, (kinds or [term.dtype])[0], *codes)
        return ArrayCode(made, dims, number)

    def masked(self, term: Apply[Term], given: Sequence[ArrayCode]) -> ArrayCode:
        """The code of `[condition] * x`: `x` where the condition holds, and 0 elsewhere."""
        code = Code(span_in_text(term))
        first = isinstance(term.args[0], Mask)
        other, given = term.args[first], given if first else given[::-1]
        zero = False if isinstance(other, Mask) else 0.0 if dtype(other) == "float32" else 0
        args, dims = alongside(code, [*given, ArrayCode(code.value(zero), (), number=True)], self.order, led=True)
        return ArrayCode(code.call("notation.choose", *(arg.code for arg in args)), dims)


def read_code(values: Values, term: Reading) -> ArrayCode:
    code = Code(span_in_text(term))
    array, dims = sliced(code, values, term)
    if any(map(computed, dims)):
        return looked_up(code, values, array, dims)
    value = ArrayCode(array, tuple(map(alone, dims)))
    # Each index once: `x[i, i]` is the diagonal.
    return contracted(code, [squeezed(code, value)], ordered(value.indices, ())) if repeats(value.indices) else value


def split_dims(code: Code, term: Reading) -> tuple[Expr, list[tuple[Dim, int]]]:
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


def sliced(code: Code, values: Values, term: Reading) -> tuple[Expr, list[Dim]]:
    """Slices at fixed positions, strided windows of one index and computed starts; returns the array and the dims left."""
    kept, parts, whole = list[Dim](), list[object](), slice(None)
    array, dims = split_dims(code, term)
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
                dim = clipped_window(dim, extent, span_in_text(term))
            case _ if (slides := sliding(dim)) is not None:
                start, index = slides
                array = code.call("lax.dynamic_slice_in_dim", array, values.term(start).code, index.extent, len(parts))
                dim = Group((index,))
            case _:
                pass
        parts.append(part)
        kept.append(dim)
    return (array if all(part == whole for part in parts) else code.index(array, tuple(parts))), kept


def looked_up(code: Code, values: Values, array: Expr, dims: Sequence[Dim]) -> ArrayCode:
    """The code of looked-up indices, as JAX indexes arrays by arrays."""
    plain = [index for dim in dims if (index := alone(dim)) is not None]
    looks = [dim for dim in dims if not isinstance(dim, Group | Affine)]
    depends = list(dict.fromkeys(index for look in looks for index in free(look)))
    shared = [index for index in plain if index in depends]
    units = any(isinstance(dim, Affine) for dim in dims)
    if len(looks) == 1 and shared and set(depends) <= set(plain) and len(set(plain)) == len(plain) and not units:
        return along_axis(code, values, array, dims, looks[0])
    parts = [_subscript(dim, shared) for dim in dims]
    given = [values.term(part) for part in parts if not isinstance(part, slice | int)]
    positions, known = alongside(code, given, values.order)
    found = iter(positions)
    items = [part if isinstance(part, slice | int) else next(found).code for part in parts]
    rest = [index for index in plain if index not in shared]
    return ArrayCode(code.index(array, tuple(items)), _dims_after_lookup(parts, known, rest))


def _subscript(dim: Dim, shared: Sequence[CheckedIndex]) -> Term | slice | int:
    match dim:
        case Affine(position, _):
            return position
        case Group((index,)) if index in shared:
            return Group((index,), index.span)
        case Group():
            return slice(None)
        case _:
            return dim


def _dims_after_lookup(parts: Sequence[object], dims: Dims, rest: Sequence[CheckedIndex]) -> Dims:
    """Where JAX puts the dims of the positions: in place if they are adjacent, otherwise first."""
    slices = [isinstance(part, slice) for part in parts]
    first, last = slices.index(False), len(slices) - 1 - slices[::-1].index(False)
    before = 0 if any(slices[first:last]) else first
    return (*rest[:before], *dims, *rest[before:])


def along_axis(code: Code, values: Values, array: Expr, dims: Sequence[Dim], look: Term) -> ArrayCode:
    """The code of `logp[b, y[b]]`: the position along one dim depends on the indices of the others."""
    axis = next(number for number, dim in enumerate(dims) if computed(dim))
    known = tuple(map(alone, dims))
    positions = fitted(code, values.term(look), known)
    taken = code.call("jnp.take_along_axis", array, positions.code, axis)
    return ArrayCode(code.call("jnp.squeeze", taken, (axis,)), known[:axis] + known[axis + 1 :])


def fold(values: Values, term: Fold[CheckedIndex, Term]) -> ArrayCode:
    if term.monoid != "sum":
        return pooling(term) or reduction(values, guarded(term))
    body, behind = outside(term.body, term.indices)
    made = product(values, replace(term, body=body))
    for sign, other in behind:
        code = Code(span_in_text(term))
        args, dims = alongside(code, [made, values.term(other)], values.order)
        made = ArrayCode(code.sign(sign, args[0].code, args[1].code), dims)
    return made


def outside(body: Term, indices: Sequence[CheckedIndex]) -> tuple[Term, list[tuple[str, Term]]]:
    """Splits off factors and divisors that do not depend on the sum's indices: they can be applied after the sum."""
    behind: list[tuple[str, Term]] = []
    while isinstance(body, Apply) and body.function in ("div", "mul") and not set(free(body.args[1])) & set(indices):
        if isinstance(body.args[1], Mask) or (body.function == "mul" and not isinstance(body.args[1], Number)):
            break
        behind.insert(0, (body.function, body.args[1]))
        body = body.args[0]
    return body, behind


def multiplied(body: Term) -> list[Term]:
    """The factors of a product. A conjunction in a mask is split too: `[a and b]` is `[a] * [b]`."""
    found, waiting = list[Term](), [body]
    while waiting:
        match waiting.pop():
            case Apply("mul", args):
                waiting += reversed(args)
            case Mask(Apply("and", args), where):
                waiting += [Mask(arg, where) for arg in reversed(args)]
            case factor:
                found.append(factor)
    return found


def product(values: Values, term: Fold[CheckedIndex, Term]) -> ArrayCode:
    code, parts = Code(span_in_text(term)), multiplied(term.body)
    if (layout := convolved(term, parts)) is not None:
        return convolution(values.order, term, layout)
    if (found := pooling(term)) is not None:
        return found
    if (inside := guarded(term)) is not term:
        return reduction(values, inside)
    if (found := segments(values, term, parts)) is not None:
        return found
    arrays = [part for part in parts if not isinstance(part, Number | Mask)]
    if len(arrays) < 2 or any(not free(part) for part in arrays):
        return reduction(values, term)
    for mask in parts:
        if isinstance(mask, Mask):
            arrays[0] = Apply("mul", (mask, arrays[0]), "", term.span)
    given = [squeezed(code, values.term(part)) for part in arrays]
    made = einsum(code, values, given, term.indices)
    # A sum over an index on which no factor depends multiplies by its extent.
    unread = [index.extent for index in term.indices if all(index not in value.dims for value in given)]
    for number in (*unread, *(part.value for part in parts if isinstance(part, Number))):
        made = ArrayCode(code.sign("mul", made.code, code.value(number)), made.dims)
    return made


def segments(values: Values, term: Fold[CheckedIndex, Term], parts: Sequence[Term]) -> ArrayCode | None:
    """The sum as a scatter-add, if one factor equates an index of the result with a looked-up one; otherwise None."""
    asked = {part: found for part in parts if isinstance(part, Mask) and (found := equated(part, term.indices))}
    indices = [index for index, _ in asked.values()]
    rest = [part for part in parts if not (isinstance(part, Mask) and part in asked)]
    if not asked or repeats(indices) or all(isinstance(part, Mask) or not free(part) for part in rest):
        return None
    if any(index in free(part) for part in rest for index in indices):
        return None
    code, added = Code(span_in_text(term)), rest[0]
    for part in rest[1:]:
        added = Apply("mul", (added, part), dtype_alone(part if isinstance(added, Mask) else added), term.span)
    along = list(dict.fromkeys(each for _, ids in asked.values() for each in free(ids)))
    within = tuple(each for each in term.indices if each not in along)
    data = squeezed(code, values.term(Fold("sum", within, added, span=term.span) if within else added))
    kept = ordered((each for each in data.indices if each not in along), values.order)
    data = broadcast(code, data, (*along, *kept))
    positions = [fitted(code, squeezed(code, values.term(ids)), along).code for _, ids in asked.values()]
    extents = tuple(index.extent for index in indices)
    return ArrayCode(code.call("notation.scatter_sum", data.code, extents, *positions), (*indices, *kept))


def equated(mask: Mask, folded: Sequence[CheckedIndex]) -> tuple[CheckedIndex, Term] | None:
    """The index of the result and the looked-up index that a mask equates; None if it does not."""
    match mask.condition:
        case Apply("eq", (Group((index,)), ids)) | Apply("eq", (ids, Group((index,)))) if index not in folded:
            looked_up = free(ids) and set(free(ids)) <= set(folded) and not isinstance(ids, Group)
            return (index, ids) if looked_up else None
        case _:
            return None


def einsum(code: Code, values: Values, given: Sequence[ArrayCode], folded: Sequence[CheckedIndex]) -> ArrayCode:
    """The sum of a product of arrays; for two a `dot_general`, as in `jnp.einsum` but without its name scope."""
    if len(given) == 2 and all(set(folded) <= set(value.dims) and not repeats(value.dims) for value in given):
        return dot(code, values, given[0], given[1], folded)
    return contracted(code, given, ordered((i for value in given for i in value.indices if i not in folded), values.order))


def contracted(code: Code, given: Sequence[ArrayCode], left: Sequence[CheckedIndex]) -> ArrayCode:
    """`jnp.einsum` with these indices on the left. Its letters are the indices' names, if these are distinct letters."""
    indices = list(dict.fromkeys(index for value in given for index in value.indices))
    names = [index.name for index in indices]
    if any(len(name) > 1 or not name.isascii() for name in names) or len(set(names)) < len(names):
        names = [chr(ord("a") + number) for number in range(len(names))]
    letters = dict(zip(indices, names, strict=True))
    *inputs, result = ("".join(letters[index] for index in side) for side in (*(value.indices for value in given), left))
    return ArrayCode(code.call("jnp.einsum", f"{','.join(inputs)}->{result}", *(value.code for value in given)), tuple(left))


def dot(code: Code, values: Values, left: ArrayCode, right: ArrayCode, folded: Sequence[CheckedIndex]) -> ArrayCode:
    batch = ordered((index for index in left.indices if index in right.dims and index not in folded), values.order)
    own = [[index for index in value.indices if index not in (*folded, *batch)] for value in (left, right)]
    wanted = [index for index in values.order if index in (*batch, *own[0], *own[1])]
    if wanted != [*batch, *own[0], *own[1]]:
        left, right, own = right, left, own[::-1]
    dims = tuple(tuple(tuple(map(value.dims.index, some)) for value in (left, right)) for some in (folded, batch))
    made = ArrayCode(code.call("lax.dot_general", left.code, right.code, dims), (*batch, *own[0], *own[1]))
    return transposed(code, made, wanted) if len(wanted) == len(made.dims) else made


def reduction(values: Values, term: Fold[CheckedIndex, Term]) -> ArrayCode:
    code, value = Code(span_in_text(term)), values.term(term.body)
    if value.number:
        value = ArrayCode(code.call("jnp.asarray", value.code), ())
    value = broadcast(code, value, (*(index for index in term.indices if index not in value.dims), *value.dims))
    axes = tuple(sorted(value.dims.index(index) for index in term.indices))
    kept = tuple(index for dim, index in enumerate(value.dims) if dim not in axes)
    # The position of an extreme is along one dim.
    along = axes[0] if term.monoid in ("argmax", "argmin") else axes
    return ArrayCode(code.call(f"jnp.{term.monoid}", value.code, along), kept)
