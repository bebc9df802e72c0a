"""How XLA treats the operands and results of an op, read off its definition.

out[i..] = lhs[i..] + rhs[i..]                  MAP: uses can compute it again, so it may never be stored
out[i..] = sum(k..) src[i.., k..]               FOLD: reads a stored array
out[v..] = ... update[w..] else src[v..]        UPDATE: written into the array that it updates
out[m, n] = sum(k) lhs[m, k] * rhs[k, n]        CALL: reads stored arrays, and stores its result
"""

from dataclasses import dataclass
from enum import Enum, auto

from ...dialects.definitions.syntax_tree import (
    Definition,
    Fold,
    Group,
    Otherwise,
    Read,
    Reading,
    Whole,
    names,
    nodes,
)
from ...dialects.ground.monoids import MERGE

COSTLY = frozenset(
    "atan2 cbrt cos div erf erf_inv erfc exp exp2 expm1 log log1p logistic pow rem rsqrt sin sqrt tan tanh threefry2x32".split()
)
"""Ops whose results XLA stores for several uses, because computing them again takes longer than reading them."""
WITH_FOLD = frozenset(["convert_element_type", "integer_pow", "mul", "square"])
"""Ops that XLA:CPU runs together with the fold of their result, and with no op before them."""
STORED = "stored"
"""The op that computes nothing, and stores its operand for several uses."""


class Kind(Enum):
    """How a step treats its operands and results."""

    SAME = auto()
    """The result is the operand: no bytes change."""
    CONSTANT = auto()
    """Nothing is read."""
    MAP = auto()
    """Each element of the result is computed from few elements of the operands."""
    FOLD = auto()
    UPDATE = auto()
    CALL = auto()
    REGIONS = auto()
    """A loop or the branches of a `cond`."""


COMPUTES_OPERANDS = Kind.MAP, Kind.UPDATE
"""The kinds of steps that can compute an operand themselves, so that it is not stored."""


@dataclass(frozen=True, slots=True)
class Traits:
    """The kind of an op, and the facts that decide whether its result is stored for several uses."""

    kind: Kind
    costly: bool = False
    with_fold: bool = False
    elementwise: bool = False
    """Whether it reads every operand at the index of the result, so that a smaller operand is broadcast."""
    broadcasts: bool = False
    """Whether elements of its operand are repeated."""


def traits(definition: Definition) -> Traits:
    """How XLA treats an op of this definition."""
    (target, *_), reads = definition.targets, list(definition.reads())
    spread = isinstance(definition.body, Read) and not set(_names(target)) <= set(_names(definition.body))
    return Traits(
        _kind(definition),
        definition.name in COSTLY or any(each.start.dims and definition.looks_up(each) for each in definition.guards),
        definition.name in WITH_FOLD,
        not definition.at and all(read.dims == target.dims for read in reads),
        spread,
    )


def _names(read: Reading) -> list[str]:
    return [name for dim in read.dims for name in names(dim)]


def _kind(definition: Definition) -> Kind:
    if definition.name == STORED:
        return Kind.CALL
    body, target = definition.body, definition.targets[0]
    terms = [*nodes(body), *(dim for each in definition.targets for dim in each.dims)]
    if isinstance(body, Read) and (definition.ravel is not None or (body.dims == target.dims and not definition.at)):
        return Kind.SAME
    if not definition.operands:
        return Kind.CONSTANT
    if any(isinstance(each, Whole) or (isinstance(each, Fold) and each.upto) for each in terms):
        return Kind.CALL
    # Elements that the op does not define keep the operand's values: an update.
    keeps = (each.default for each in terms if isinstance(each, Otherwise))
    if any(isinstance(each, Read) and each.dims == target.dims for each in keeps) or not all(
        map(definition.looks_up, definition.guards)
    ):
        return Kind.UPDATE
    if definition.maps:
        return Kind.MAP
    folds = [each for each in terms if isinstance(each, Fold)]
    plain = len(list(definition.reads())) == 1 and all(
        isinstance(dim, Group) for each in definition.reads() for dim in each.dims
    )
    return Kind.FOLD if plain and folds[0].monoid != MERGE else Kind.CALL
