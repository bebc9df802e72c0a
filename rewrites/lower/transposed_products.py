"""Replaces a transposed product by the product with exchanged operands, if nothing else reads the product.

JAX differentiates `x @ w` this way: the gradient of `w` is the transpose of a product. XLA:CPU takes up to twice as long for
that.

    %p = lax.dot_general %g, %x over b, t; %t = lax.transpose %p   -->   %t = lax.dot_general %x, %g over b, t
"""

from __future__ import annotations

from typing import cast

from xdsl.ir import Block, Operation

from ...dialects.lax import OPS, params_of
from ...dialects.params import ParamsAttr
from ...dialects.types import ArrayType
from ..rewire import rewire_users

TRANSPOSE = "lax.transpose"

Dims = tuple[int, ...]
DimPairs = tuple[Dims, Dims]


def swap_products(block: Block) -> None:
    """Replaces the transposes of products in a finished block."""
    for op in [op for op in block.ops if op.name == TRANSPOSE]:
        if (product := product_of(op)) is not None:
            made = swapped(op, product)
            block.insert_op_before(made, op)
            rewire_users(dict(zip(op.results, made.results, strict=True)))
            op.detach()
            op.erase()
            product.detach()
            product.erase()


def product_of(op: Operation) -> Operation | None:
    """The product under a transpose that exchanges its rows and columns; None if there is none, or if another op reads it."""
    if not op.operands[0].has_one_use():
        return None
    product = op.operands[0].owner
    if not isinstance(product, Operation) or product.name != "lax.dot_general":
        return None
    (contracted, _), (batch, _) = _numbers(product)
    lhs, rhs = (len(cast(ArrayType, each.type).shape) - len(contracted) for each in product.operands)
    order = (*range(len(batch)), *range(lhs, lhs + rhs - len(batch)), *range(len(batch), lhs))
    is_plain = params_of(product).get("precision") is None
    return product if is_plain and params_of(op)["permutation"] == order else None


def swapped(op: Operation, product: Operation) -> Operation:
    """The product with its operands exchanged, with the results of the transpose."""
    contracted, batch = _numbers(product)
    params = dict(params_of(product).items()) | {"dimension_numbers": (contracted[::-1], batch[::-1])}
    return OPS["dot_general"].of(product.operands[::-1], cast("list[ArrayType]", [*op.result_types]), ParamsAttr.of(**params))


def _numbers(product: Operation) -> tuple[DimPairs, DimPairs]:
    """The dims of both operands over which a product sums, and those that are batch dims."""
    return cast("tuple[DimPairs, DimPairs]", params_of(product)["dimension_numbers"])
