"""Builds a side of a rule from ops. Each array is first aligned with the indices of the others.

x[i, k] * c[k]   -->   %b = broadcast_in_dim %c {dims = (1,)}; %y = mul %x, %b
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ..emit import Emitter, type_at
from .interpret_rule import IndexMaker, Indices, NoTerm, summed
from .rule_ops import PRODUCT, TELLS, fold_param

At = tuple[SSAValue, Indices]
"""An array, with the index of each of its dims."""


@dataclass(frozen=True, slots=True)
class TermOps:
    """Makes terms by appending ops. All arrays have the dtype `dtype`, except truth values."""

    emit: Emitter
    extents: Mapping[int, int]
    dtype: str

    def ids(self, term: At) -> Indices:
        return term[1]

    def number(self, value: int) -> At:
        return self.emit.number(value, self.dtype), ()

    def each(self, kind: str, args: Sequence[At]) -> At:
        out = IndexMaker().each(kind, [ids for _, ids in args])
        arrays = [self.aligned(arg, out) for arg in args]
        dtype = "bool" if kind in TELLS else type_at(arrays[-1]).dtype
        return self.emit.make(kind, arrays, dtype, self.shape(out)), out

    def fold(self, kind: str, arg: At, keep: Collection[int]) -> At:
        array, ids = arg
        axes = tuple(dim for dim, index in enumerate(ids) if index not in keep)
        out = tuple(index for index in ids if index in keep)
        param = fold_param(kind)
        if not axes or param is None:
            return array, ids
        return self.emit.make(kind, (array,), type_at(array).dtype, self.shape(out), **{param: axes}), out

    def product(self, left: At, right: At, keep: Collection[int]) -> At:
        (lhs, mine), (rhs, other) = left, right
        sums = summed(mine, other, keep)
        batch = [index for index in mine if index in other and index in keep]
        out = (*batch, *(each for ids in (mine, other) for each in ids if each not in (*batch, *sums)))
        sides = (tuple(tuple(ids.index(each) for each in some) for ids in (mine, other)) for some in (sums, batch))
        return self.emit.make(PRODUCT, (lhs, rhs), self.dtype, self.shape(out), dimension_numbers=tuple(sides)), out

    def plain(self, array: SSAValue, ids: Sequence[int | None]) -> At:
        """Removes an array's dims of extent 1."""
        out = tuple(index for index in ids if index is not None)
        return self.emit.reshape(array, self.shape(out)), out

    def aligned(self, term: At, out: Indices) -> SSAValue:
        """The array with its dims in the order of `out`, with extent 1 for indices that it lacks; a scalar stays a scalar."""
        array, ids = term
        if not ids or ids == out:
            return array
        array = self.ordered(term, tuple(index for index in out if index in ids))
        dims = tuple(dim for dim, index in enumerate(out) if index in ids)
        return self.emit.spread(array, tuple(self.extents[index] if index in ids else 1 for index in out), dims)

    def ordered(self, term: At, out: Indices) -> SSAValue:
        array, ids = term
        return self.emit.transpose(array, [ids.index(index) for index in out])

    def whole(self, term: At, ids: Sequence[int | None]) -> SSAValue:
        """The array in the shape of the result that it replaces. Raises NoTerm if it has an index that the result lacks."""
        array, own = term
        if not set(own) <= set(ids):
            raise NoTerm
        array = self.ordered(term, tuple(index for index in ids if index in own))
        shape = tuple(1 if index is None else self.extents[index] for index in ids)
        if len(own) == len([index for index in ids if index is not None]):
            return self.emit.reshape(array, shape)
        return self.emit.spread(array, shape, tuple(dim for dim, index in enumerate(ids) if index in own))

    def shape(self, ids: Indices) -> tuple[int, ...]:
        return tuple(self.extents[index] for index in ids)
