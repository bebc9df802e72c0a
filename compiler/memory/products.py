"""The order of dims in which XLA:CPU multiplies, and which operands and results of a product are copied for it.

Of a product it takes `lhs[batch.., m.., k..]` and `rhs[batch.., k.., n..]`; of a convolution images `[n, p.., c]`, kernels
`[q.., c, o]`, and it makes `[n, p.., o]`. A matrix that is transposed as a whole needs no copy.

    dot lhs[b, t, d] rhs[b, t, f] over b, t   -->   lhs is copied to [d, b, t]; rhs is [b, t, f] as it is
"""

from __future__ import annotations

from typing import NamedTuple, cast

from ...dialects.layouts import Layout
from ...dialects.params import ParamsAttr, Record
from ...rewrites.decide.op_layouts import Placed
from ...rewrites.program.program import Digits, Node

Order = tuple[int, ...]
"""Dims in the order of the copy; empty without one."""


class Copies(NamedTuple):
    """The copies of a product's operands, and whether its result is copied."""

    operands: tuple[Order, ...]
    result: bool


def copied(node: Node, placed: Placed, swapped: bool) -> Copies | None:
    """The copies that an op needs; None if it is not a product. `swapped` if it is lowered with its operands exchanged."""
    params = cast(ParamsAttr, node.op.properties["params"]) if "params" in node.op.properties else None
    if node.kind == "conv_general_dilated" and params is not None:
        return _of_convolution(cast(Record, params["dimension_numbers"]), placed)
    if node.kind != "dot_general":
        return None
    lhs, rhs = (_indices(*each) for each in zip(node.signature.operand_dims, placed.wanted, strict=True))
    out = _indices(node.signature.result_dims[0], placed.produced[0])
    batch = [index for index in out if index in lhs and index in rhs]
    folded = [index for index in lhs if index not in out]
    left, right = (rhs, lhs) if swapped else (lhs, rhs)
    rows = [index for index in out if index in left and index not in right]
    columns = [index for index in out if index in right and index not in left]
    orders = _order(left, [*batch, *rows, *folded], batch), _order(right, [*batch, *folded, *columns], batch)
    return Copies(orders[::-1] if swapped else orders, False)


def _indices(dims: Digits, layout: Layout) -> list[int]:
    """The major index of each dim of more than one element, on one device."""
    return [digits[0].at for digits, extent in zip(dims, layout.local_shape, strict=True) if digits and extent != 1]


def _order(has: list[int], wanted: list[int], batch: list[int]) -> Order:
    if has == wanted or (len(has) == 2 and not batch):
        return ()
    return tuple(has.index(index) for index in wanted if index in has)


def _of_convolution(numbers: Record, placed: Placed) -> Copies:
    (n, c, *p), (o, i, *q), (m, f, *r) = (
        cast("tuple[int, ...]", numbers[name]) for name in ("lhs_spec", "rhs_spec", "out_spec")
    )
    orders = [(n, *p, c), (*q, i, o), (m, *r, f)]
    layouts = (*placed.wanted, placed.produced[0])
    image, kernel, result = (_sorted(*each) for each in zip(orders, layouts, strict=True))
    return Copies((image, kernel), bool(result))


def _sorted(order: Order, layout: Layout) -> Order:
    """The order; empty if no dim of more than one element changes its place."""
    shape = layout.local_shape
    moved = [dim for dim in order if shape[dim] != 1]
    return () if moved == sorted(moved) else order
