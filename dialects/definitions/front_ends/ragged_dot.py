"""The front end of `grouped_dot` and `grouped_outer`: JAX's `ragged_dot_general`, by the group of each row.

    a free dim of lhs: each row meets the rhs of its group        [b, m, r, k], [g, b, k, n]     ->  [b, m, r, n]
    a contracted dim: each group is summed apart                  [b, m, r, k], [b, r, k, n]     ->  [g, b, m, n]

`r` is the ragged dim and `g` the dim of the groups; b, m, n and k are those of `dot_general`. Rows may have different groups
along the dims before the ragged one: the batch dims, and the earlier dims of the ragged dim's kind.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

from ...params import ParamsAttr, Record
from ..ground_form import DimNumbers, Dims
from ..syntax_tree import Definition, Shape

_Ints = tuple[int, ...]


class RaggedNumbers(NamedTuple):
    """The fields of JAX's `RaggedDotDimensionNumbers`, in its order. `ragged` is one dim of lhs."""

    dot: tuple[tuple[_Ints, _Ints], tuple[_Ints, _Ints]]
    ragged: _Ints
    groups: _Ints

    @property
    def cut(self) -> int:
        """The ragged dim of lhs."""
        return self.ragged[0]

    @property
    def partner(self) -> dict[int, int]:
        """Dims of lhs -> the dims of rhs that they meet."""
        return {left: right for lefts, rights in self.dot for left, right in zip(lefts, rights, strict=True)}

    def before(self, rank: int) -> _Ints:
        """The dims of lhs along which the groups of the rows may differ, in the order that they have in the sizes."""
        (folded, _), (batch, _) = self.dot
        free = tuple(dim for dim in range(rank) if dim not in folded + batch)
        if self.cut in batch:
            return batch[: batch.index(self.cut)]
        beside = free if self.cut in free else folded
        return batch + beside[: beside.index(self.cut)]


def ragged(definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]) -> DimNumbers:
    """The dims of all groups in both factors, in the groups of the rows and in the result."""
    record = cast(Record, params["ragged_dot_dimension_numbers"])
    numbers = RaggedNumbers(*cast(RaggedNumbers, tuple(value for _, value in record.fields)))
    (left_k, right_k), (left_b, right_b) = numbers.dot
    cut, partner = numbers.cut, numbers.partner
    left_m = tuple(dim for dim in range(len(ins[0])) if dim not in left_k + left_b)
    right_n = tuple(dim for dim in range(len(ins[1])) if dim not in right_k + right_b + numbers.groups)
    # The result's dims in order: those that come from lhs, by their dim there, and after them those from rhs.
    order = [*(("g",) if cut in left_k else ()), *left_b, *left_m, *((dim, "n") for dim in right_n)]
    # The groups are the same for all dims before the ragged one, if they have no such dims.
    rows = (*(numbers.before(len(ins[0])) if len(ins[2]) > 1 else ()), cut)
    dims: dict[tuple[str, str], Dims] = {}
    for name, group in (("b", left_b), ("m", left_m), ("k", left_k), ("r", (cut,))):
        kept = tuple(dim for dim in group if dim != cut or name == "r")
        dims["lhs", name] = kept
        dims["ids", name] = tuple(rows.index(dim) if dim in rows else None for dim in kept)
        dims["rhs", name] = tuple(partner[dim] for dim in kept if dim in partner)
        dims["out", name] = tuple(order.index(dim) for dim in kept if dim in order)
    dims["rhs", "n"] = right_n
    dims["out", "n"] = tuple(order.index((dim, "n")) for dim in right_n)
    dims["rhs", "g"], dims["out", "g"] = numbers.groups, (0,)
    return DimNumbers(dims)
