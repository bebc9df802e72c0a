"""Values: code for a whole array, with the index that runs along each of its dims.

x[b, d] - m[b]   -->   x: (b, d), m: (b)   -->   _x - jnp.expand_dims(_m, (1,)): (b, d)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from .code import Code, Expr
from .terms import Index, Term

Dims: TypeAlias = "tuple[Index | None, ...]"
"""For each dim the index that runs along it; None for a dim of extent 1 without an index."""


@dataclass(frozen=True, slots=True)
class Value:
    """Code for an array. A `number` is a Python number, which combines with arrays of every rank."""

    code: Expr
    dims: Dims
    number: bool = False

    @property
    def indices(self) -> tuple[Index, ...]:
        return tuple(index for index in self.dims if index is not None)


class Walker(Protocol):
    """The interface of the walk over terms to the code for one kind of term: it makes the code of the terms inside.

    `order` is the order of the indices on the left, which decides if nothing else does.
    """

    order: Sequence[Index]

    def term(self, term: Term) -> Value: ...


def fit(code: Code, value: Value, order: Sequence[Index | None]) -> Value:
    """The value with dims in this order; missing ones become dims of extent 1."""
    wanted = tuple(index if index in value.dims else None for index in order)
    if value.number or value.dims == wanted or not value.dims:
        return value
    value = transposed(code, squeezed(code, value), [index for index in wanted if index is not None])
    missing = tuple(dim for dim, index in enumerate(wanted) if index is None)
    if missing:
        value = Value(code.call("jnp.expand_dims", value.code, missing), wanted)
    return value


def squeezed(code: Code, value: Value) -> Value:
    """The value without the dims along which no index runs."""
    units = tuple(dim for dim, index in enumerate(value.dims) if index is None)
    return Value(code.call("jnp.squeeze", value.code, units), value.indices) if units else value


def transposed(code: Code, value: Value, order: Sequence[Index]) -> Value:
    permutation = tuple(value.dims.index(index) for index in order)
    if permutation == tuple(range(len(order))):
        return value
    return Value(code.call("jnp.transpose", value.code, permutation), tuple(order))


def alongside(code: Code, values: Sequence[Value], order: Sequence[Index]) -> tuple[list[Value], Dims]:
    """The values with their dims in one order: that of a value with all indices if the others agree with it."""
    dims = common([value.dims for value in values if value.dims and not value.number], order)
    return [fit(code, value, dims) for value in values], dims


def chosen(code: Code, values: Sequence[Value], order: Sequence[Index]) -> tuple[list[Value], Dims]:
    """As `alongside`, for `where`, whose operands JAX brings to one shape: JAX adds leading dims that an operand lacks."""
    dims = common([value.dims for value in values if value.dims and not value.number], order)
    made: list[Value] = []
    for value in values:
        if value.dims and None not in value.dims:
            value = transposed(code, value, _order(value, dims))
        trailing = value.dims == dims[len(dims) - len(value.dims) :]
        made.append(value if trailing else fit(code, value, dims))
    return made, dims


def _order(value: Value, dims: Dims) -> list[Index]:
    return [index for index in dims if index is not None and index in value.dims]


def common(all_dims: Sequence[Dims], order: Sequence[Index]) -> Dims:
    if not all_dims:
        return ()
    longest = max(all_dims, key=len)
    if all(_over(dims, longest) for dims in all_dims):
        merged = [next((d[dim] for d in all_dims if len(d) == len(longest) and d[dim]), None) for dim in range(len(longest))]
        if len({index for index in merged if index}) == sum(index is not None for index in merged):
            return tuple(merged)
    every = list(dict.fromkeys(index for dims in all_dims for index in dims if index is not None))
    first = next((dims for dims in all_dims if set(every) <= set(dims)), None)
    if first is not None and all(_follows(dims, first) for dims in all_dims):
        return tuple(index for index in first if index is not None)
    known = [index for index in order if index in every]
    return (*known, *(index for index in every if index not in known))


def _over(dims: Dims, longest: Dims) -> bool:
    """Whether the dims match those of the longest, one for one."""
    return len(dims) == len(longest) and all(a is b or a is None or b is None for a, b in zip(dims, longest, strict=True))


def _follows(dims: Dims, first: Dims) -> bool:
    order = [first.index(index) for index in dims if index is not None]
    return order == sorted(order)
