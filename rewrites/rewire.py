"""Replaces operands of ops, all operands of one op at once.

xDSL copies the operands of an op when one of them changes. So a `func.return` of n values would take n copies of n.

    %y = add %x, %x; return %x, %y     with {x: z}   -->   %y = add %z, %z; return %z, %y
"""

from collections.abc import Mapping
from operator import is_not

from xdsl.ir import Operation, SSAValue


def rewire(op: Operation, values: Mapping[SSAValue, SSAValue]) -> None:
    """Replaces the operands of an op that `values` maps to other values."""
    operands = tuple(op.operands)
    found = [values.get(value, value) for value in operands]
    if any(map(is_not, found, operands)):
        op.operands = found


def rewire_users(values: Mapping[SSAValue, SSAValue]) -> None:
    """Replaces values in all ops that use them."""
    for op in dict.fromkeys(use.operation for value in values for use in value.uses):
        rewire(op, values)
