"""The operators of expressions: their text, how strongly they bind, and their functions on numbers and arrays.

a + b * c   -->   Apply("add", (a, Apply("mul", (b, c))))
"""

# The types of the functions of `operator` are known only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Sign:
    """The operator of the op `name`. Operators of a higher `level` bind more strongly.

    `function` is Python's, which also takes NumPy and JAX arrays; `node` is the operator in Python's syntax tree.
    """

    name: str
    text: str
    level: int
    function: Function
    node: type[ast.operator | ast.cmpop | ast.unaryop]


LEAST, OR, AND, NOT, COMPARISON, NEGATIVE, SUM, FOLD, PRODUCT, ATOM = range(10)
"""The levels, weakest first. A fold extends to the end of a product."""
SIGNS: Mapping[str, Sign] = {
    each.name: each
    for each in (
        Sign("add", "+", SUM, operator.add, ast.Add),
        Sign("sub", "-", SUM, operator.sub, ast.Sub),
        Sign("mul", "*", PRODUCT, operator.mul, ast.Mult),
        Sign("div", "/", PRODUCT, operator.truediv, ast.Div),
        Sign("neg", "-", NEGATIVE, operator.neg, ast.USub),
        Sign("eq", "==", COMPARISON, operator.eq, ast.Eq),
        Sign("ne", "!=", COMPARISON, operator.ne, ast.NotEq),
        Sign("lt", "<", COMPARISON, operator.lt, ast.Lt),
        Sign("le", "<=", COMPARISON, operator.le, ast.LtE),
        Sign("gt", ">", COMPARISON, operator.gt, ast.Gt),
        Sign("ge", ">=", COMPARISON, operator.ge, ast.GtE),
        Sign("or", "or", OR, operator.or_, ast.BitOr),
        Sign("and", "and", AND, operator.and_, ast.BitAnd),
        Sign("not", "not", NOT, operator.invert, ast.Invert),
    )
}
"""Every operator by the name of its op."""
COMPARISONS = {name: sign for name, sign in SIGNS.items() if sign.level == COMPARISON}
ARITHMETIC = {name: sign for name, sign in SIGNS.items() if sign.level > COMPARISON}
