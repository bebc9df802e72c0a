"""The front end of `ragged_dot_general`, whose ragged dim is split into groups of different sizes.

    a free dim of lhs: each row meets the rhs of its group        [b, m, k], [g, b, k, n]  ->  [b, m, n]
    a contracted dim: each group is summed apart                  [b, m, k], [b, k, n]     ->  [g, b, m, n]
    a batch dim: as if there were no groups                       [b, m, k], [b, k, n]     ->  [b, m, n]

The ragged dim and that of the groups are `w..`, which is unpartitioned; b, m, n and k are those of `dot_general`.
"""

from collections.abc import Sequence
from typing import cast

from ..params import ParamsAttr, Record
from .ground_form import DimNumbers, Dims
from .tree import Definition, Shape

_Ints = tuple[int, ...]


def ragged(definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]) -> DimNumbers:
    """The dims of all groups in both factors, in the sizes and in the result."""
    numbers = cast(Record, params["ragged_dot_dimension_numbers"])
    (left_k, right_k), (left_b, right_b) = cast(
        "tuple[tuple[_Ints, _Ints], tuple[_Ints, _Ints]]", numbers["dot_dimension_numbers"]
    )
    (cut,) = cast(_Ints, numbers["lhs_ragged_dimensions"])
    groups = cast(_Ints, numbers["rhs_group_dimensions"])
    left_m = tuple(dim for dim in range(len(ins[0])) if dim not in left_k + left_b)
    right_n = tuple(dim for dim in range(len(ins[1])) if dim not in right_k + right_b + groups)
    # The result's dims in order, by the dims of lhs and, after them, those of rhs.
    order = [*(("w",) if cut in left_k else ()), *left_b, *left_m, *((dim, "n") for dim in right_n)]
    whole = "w" if cut in left_k else cut
    before = _before(cut, left_b, left_m, left_k) if len(ins[2]) > 1 else ()
    apart = {cut} if cut not in left_b else set[int]()
    partner = dict(zip(left_k + left_b, right_k + right_b, strict=True))
    dims: dict[tuple[str, str], Dims] = {("sizes", "w"): (len(ins[2]) - 1,)}
    for name, group in (("b", left_b), ("m", left_m), ("k", left_k)):
        kept = tuple(dim for dim in group if dim not in apart)
        dims["lhs", name] = kept
        dims["sizes", name] = tuple(before.index(dim) if dim in before else None for dim in kept)
        dims["rhs", name] = tuple(partner[dim] for dim in kept if dim in partner)
        dims["out", name] = tuple(order.index(dim) for dim in kept if dim in order)
    dims["rhs", "n"] = right_n
    dims["out", "n"] = tuple(order.index((dim, "n")) for dim in right_n)
    dims["lhs", "w"] = tuple(apart)
    dims["rhs", "w"] = groups if groups else tuple(partner[dim] for dim in apart)
    dims["out", "w"] = (order.index(whole),) if apart else ()
    return DimNumbers(dims)


def _before(cut: int, batch: _Ints, free: _Ints, folded: _Ints) -> _Ints:
    """The dims of lhs that the sizes have before the dim of the groups."""
    if cut in batch:
        return batch[: batch.index(cut)]
    beside = free if cut in free else folded
    return batch + beside[: beside.index(cut)]


def mode(params: ParamsAttr) -> str:
    """What the ragged dim is: `free`, `folded` or `batch`."""
    numbers = cast(Record, params["ragged_dot_dimension_numbers"])
    (cut,) = cast(_Ints, numbers["lhs_ragged_dimensions"])
    (folded, _), _ = cast("tuple[tuple[_Ints, _Ints], tuple[_Ints, _Ints]]", numbers["dot_dimension_numbers"])
    return "free" if numbers["rhs_group_dimensions"] else "folded" if cut in folded else "batch"
