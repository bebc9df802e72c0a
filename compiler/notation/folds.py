"""Code for folds: a sum of a product is an einsum or a convolution, every other fold is a reduction.

sum(k) x[b, k] * w[k, j]   -->   jnp.einsum("ab,bc->ac", x, w)          sum(d) x[b, d] / D   -->   jnp.sum(x, 1) / D
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dialects.definitions.tree import Apply, Fold, Number
from .code import Code
from .segments import segments
from .terms import Index, Mask, Term, at, free
from .value import Value, Walker, alongside, fit, squeezed, transposed
from .windows import convolution, guarded, pooling


def fold(values: Walker, term: Fold[Index, Term]) -> Value:
    if term.monoid != "sum":
        return pooling(term) or reduction(values, guarded(term))
    body, behind = outside(term.body, term.indices)
    made = product(values, term, body)
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


def product(values: Walker, term: Fold[Index, Term], body: Term) -> Value:
    code, parts = Code(at(term)), multiplied(body)
    if (found := convolution(values, term, parts)) is not None:
        return found
    if (found := pooling(replace(term, body=body))) is not None:
        return found
    if (inside := guarded(replace(term, body=body))).body is not body:
        return reduction(values, inside)
    if (found := segments(values, term, parts)) is not None:
        return found
    numbers = [part for part in parts if isinstance(part, Number)]
    arrays = [part for part in parts if not isinstance(part, Number | Mask)]
    masks = [part for part in parts if isinstance(part, Mask)]
    if len(arrays) < 2 or any(not free(part) for part in arrays):
        return reduction(values, replace(term, body=body))
    if masks:
        first: Term = arrays[0]
        for mask in masks:
            first = Apply("mul", (mask, first), "", term.span)
        arrays[0] = first
    given = [squeezed(code, values.term(part)) for part in arrays]
    made = einsum(code, values, given, term.indices)
    for number in numbers:
        made = Value(code.sign("mul", made.code, code.value(number.value)), made.dims)
    return made


def einsum(code: Code, values: Walker, given: Sequence[Value], folded: Sequence[Index]) -> Value:
    """The sum of a product of arrays; for two a `dot_general`, as in `jnp.einsum` but without its name scope."""
    if len(given) == 2 and all(set(folded) <= set(value.dims) for value in given) and not _twice(given):
        return dot(code, values, given[0], given[1], folded)
    every = list(dict.fromkeys(index for value in given for index in value.indices))
    letters = subscripts(every)
    left = [index for index in values.order if index in every and index not in folded]
    left += [index for index in every if index not in left and index not in folded]
    inputs = ",".join("".join(letters[index] for index in value.indices) for value in given)
    text = f"{inputs}->{''.join(letters[index] for index in left)}"
    return _times(code, Value(code.call("jnp.einsum", text, *(value.code for value in given)), tuple(left)), folded, every)


def _twice(given: Sequence[Value]) -> bool:
    return any(len(set(value.dims)) < len(value.dims) for value in given)


def dot(code: Code, values: Walker, left: Value, right: Value, folded: Sequence[Index]) -> Value:
    batch = [index for index in values.order if index in left.dims and index in right.dims and index not in folded]
    batch += [index for index in left.indices if index in right.dims and index not in (*folded, *batch)]
    own = [[index for index in value.indices if index not in (*folded, *batch)] for value in (left, right)]
    wanted = [index for index in values.order if index in (*batch, *own[0], *own[1])]
    if wanted != [*batch, *own[0], *own[1]]:
        left, right, own = right, left, own[::-1]
    contracted, batched = (
        tuple(tuple(map(value.dims.index, indices)) for value in (left, right)) for indices in (folded, batch)
    )
    made = Value(code.call("lax.dot_general", left.code, right.code, (contracted, batched)), (*batch, *own[0], *own[1]))
    return transposed(code, made, wanted) if len(wanted) == len(made.dims) else made


def subscripts(indices: Sequence[Index]) -> dict[Index, str]:
    """A letter for each index: its name, if all names are distinct letters."""
    names = [index.name for index in indices]
    if any(len(name) > 1 or not name.isascii() for name in names) or len(set(names)) < len(names):
        names = [chr(ord("a") + number) for number in range(len(names))]
    return dict(zip(indices, names, strict=True))


def _times(code: Code, value: Value, folded: Sequence[Index], seen: Sequence[Index]) -> Value:
    """Multiplies by the extent of each summed index on which no factor depends."""
    for index in folded:
        if index not in seen:
            value = Value(code.sign("mul", value.code, code.value(index.extent)), value.dims)
    return value


def reduction(values: Walker, term: Fold[Index, Term]) -> Value:
    code, value = Code(at(term)), values.term(term.body)
    if value.number:
        value = Value(code.call("jnp.asarray", value.code), ())
    unused = [index for index in term.indices if index not in value.dims]
    if unused:
        value = fit(code, value, (*unused, *value.dims)) if value.dims else value
        shape = tuple(index.extent for index in unused) + tuple(1 if i is None else i.extent for i in value.dims[len(unused) :])
        value = Value(code.call("jnp.broadcast_to", value.code, shape), (*unused, *value.dims[len(unused) :]))
    axes = tuple(sorted(value.dims.index(index) for index in term.indices))
    kept = tuple(index for dim, index in enumerate(value.dims) if dim not in axes)
    # The position of an extreme is along one dim.
    along = axes[0] if term.monoid in ("argmax", "argmin") else axes
    return Value(code.call(f"jnp.{term.monoid}", value.code, along), kept)
