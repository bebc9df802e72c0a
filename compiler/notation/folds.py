"""Code for folds: a sum of a product is an einsum, a convolution or a scatter-add, every other fold is a reduction.

sum(k) x[b, k] * w[k, j]                     -->   jnp.einsum("ab,bc->ac", x, w)
y[n: N, d] = sum(e) [ids[e] = n] * m[e, d]   -->   jax.ops.segment_sum(m, ids, N), without a one-hot table
sum(d) x[b, d] / D                           -->   jnp.sum(x, 1) / D
"""

from collections.abc import Sequence
from dataclasses import replace

from ...dialects.definitions.tree import Apply, Fold, Group, Number
from .code import Code
from .terms import Index, Mask, Term, at, dtype, free, repeats, settled
from .value import Value, Walker, alongside, broadcast, fit, ordered, squeezed, transposed
from .windows import convolution, convolved, guarded, pooling


def fold(values: Walker, term: Fold[Index, Term]) -> Value:
    if term.monoid != "sum":
        return pooling(term) or reduction(values, guarded(term))
    body, behind = outside(term.body, term.indices)
    made = product(values, replace(term, body=body))
    for sign, other in behind:
        code = Code(at(term))
        args, dims = alongside(code, [made, values.term(other)], values.order)
        made = Value(code.sign(sign, args[0].code, args[1].code), dims)
    return made


def outside(body: Term, indices: Sequence[Index]) -> tuple[Term, list[tuple[str, Term]]]:
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


def product(values: Walker, term: Fold[Index, Term]) -> Value:
    code, parts = Code(at(term)), multiplied(term.body)
    if (layout := convolved(term, parts)) is not None:
        return convolution(values, term, layout)
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
        made = Value(code.sign("mul", made.code, code.value(number)), made.dims)
    return made


def segments(values: Walker, term: Fold[Index, Term], parts: Sequence[Term]) -> Value | None:
    """The sum as a scatter-add, if one factor equates an index of the result with a looked-up one."""
    asked = {part: found for part in parts if isinstance(part, Mask) and (found := placed(part, term.indices))}
    indices = [index for index, _ in asked.values()]
    rest = [part for part in parts if not (isinstance(part, Mask) and part in asked)]
    if not asked or repeats(indices) or all(isinstance(part, Mask) or not free(part) for part in rest):
        return None
    if any(index in free(part) for part in rest for index in indices):
        return None
    code, added = Code(at(term)), rest[0]
    for part in rest[1:]:
        added = Apply("mul", (added, part), settled(dtype(part if isinstance(added, Mask) else added)), term.span)
    along = list(dict.fromkeys(each for _, ids in asked.values() for each in free(ids)))
    within = tuple(each for each in term.indices if each not in along)
    data = squeezed(code, values.term(Fold("sum", within, added, span=term.span) if within else added))
    kept = ordered((each for each in data.indices if each not in along), values.order)
    data = broadcast(code, data, (*along, *kept))
    positions = [fit(code, squeezed(code, values.term(ids)), along).code for _, ids in asked.values()]
    extents = tuple(index.extent for index in indices)
    return Value(code.call("notation.scatter_sum", data.code, extents, *positions), (*indices, *kept))


def placed(mask: Mask, folded: Sequence[Index]) -> tuple[Index, Term] | None:
    """The index of the result and the looked-up index that a mask equates."""
    match mask.condition:
        case Apply("eq", (Group((index,)), ids)) | Apply("eq", (ids, Group((index,)))) if index not in folded:
            looked_up = free(ids) and set(free(ids)) <= set(folded) and not isinstance(ids, Group)
            return (index, ids) if looked_up else None
        case _:
            return None


def einsum(code: Code, values: Walker, given: Sequence[Value], folded: Sequence[Index]) -> Value:
    """The sum of a product of arrays; for two a `dot_general`, as in `jnp.einsum` but without its name scope."""
    if len(given) == 2 and all(set(folded) <= set(value.dims) and not repeats(value.dims) for value in given):
        return dot(code, values, given[0], given[1], folded)
    return contracted(code, given, ordered((i for value in given for i in value.indices if i not in folded), values.order))


def contracted(code: Code, given: Sequence[Value], left: Sequence[Index]) -> Value:
    """`jnp.einsum` with these indices on the left."""
    letters = subscripts(list(dict.fromkeys(index for value in given for index in value.indices)))
    *inputs, result = ("".join(letters[index] for index in side) for side in (*(value.indices for value in given), left))
    return Value(code.call("jnp.einsum", f"{','.join(inputs)}->{result}", *(value.code for value in given)), tuple(left))


def dot(code: Code, values: Walker, left: Value, right: Value, folded: Sequence[Index]) -> Value:
    batch = ordered((index for index in left.indices if index in right.dims and index not in folded), values.order)
    own = [[index for index in value.indices if index not in (*folded, *batch)] for value in (left, right)]
    wanted = [index for index in values.order if index in (*batch, *own[0], *own[1])]
    if wanted != [*batch, *own[0], *own[1]]:
        left, right, own = right, left, own[::-1]
    dims = tuple(tuple(tuple(map(value.dims.index, some)) for value in (left, right)) for some in (folded, batch))
    made = Value(code.call("lax.dot_general", left.code, right.code, dims), (*batch, *own[0], *own[1]))
    return transposed(code, made, wanted) if len(wanted) == len(made.dims) else made


def subscripts(indices: Sequence[Index]) -> dict[Index, str]:
    """A letter for each index: its name, if all names are distinct letters."""
    names = [index.name for index in indices]
    if any(len(name) > 1 or not name.isascii() for name in names) or len(set(names)) < len(names):
        names = [chr(ord("a") + number) for number in range(len(names))]
    return dict(zip(indices, names, strict=True))


def reduction(values: Walker, term: Fold[Index, Term]) -> Value:
    code, value = Code(at(term)), values.term(term.body)
    if value.number:
        value = Value(code.call("jnp.asarray", value.code), ())
    value = broadcast(code, value, (*(index for index in term.indices if index not in value.dims), *value.dims))
    axes = tuple(sorted(value.dims.index(index) for index in term.indices))
    kept = tuple(index for dim, index in enumerate(value.dims) if dim not in axes)
    # The position of an extreme is along one dim.
    along = axes[0] if term.monoid in ("argmax", "argmin") else axes
    return Value(code.call(f"jnp.{term.monoid}", value.code, along), kept)
