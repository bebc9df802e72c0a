"""Computes the integers and booleans that follow from a program's literals.

The positions of `x.at[1:-1]` are literals. Between them and the op that uses them, JAX puts a broadcast, a comparison with 0,
or an `iota` times the step. Their values are computed by the definitions of these ops.

    %i = lax.iota : i32[4];  %j = lax.mul %i, 2 : i32[4]   -->   %j is [0, 2, 4, 6]
"""

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.definitions.registry import definitions
from ...dialects.lax import LaxOp
from ...dialects.reference.evaluate import evaluate
from ...dialects.regions import BORDERS
from ...dialects.types import ArrayType

Positions = np.ndarray[Any, np.dtype[Any]]

EXACT = ("bool", "int", "uint")
"""Prefixes of the dtypes that are computed."""
MOST_ELEMENTS = 1 << 20
"""The most elements of a value that is computed."""


class Constants:
    """The values of one program that follow from literals. They are computed on demand."""

    def __init__(self) -> None:
        # A user's function is not run while a program is traced.
        self.ops = frozenset(definitions) - BORDERS - {"whole"}
        self.fixed: set[SSAValue] = set()
        self.known: dict[SSAValue, Positions] = {}

    def may_follow(self, name: str, types: Sequence[ArrayType]) -> bool:
        """Whether the results of an op can be computed if its operands are known."""
        return name in self.ops and all(each.dtype.startswith(EXACT) and prod(each.shape) <= MOST_ELEMENTS for each in types)

    def made(self, operands: Sequence[SSAValue], results: Sequence[SSAValue]) -> None:
        """Records the results of an op that may follow from literals."""
        if self.fixed.issuperset(operands):
            self.fixed.update(results)

    def enter(self, arguments: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """Records the arguments of a region that have known values whenever it runs."""
        for argument, value in zip(arguments, values, strict=True):
            if (known := self.of(value)) is not None:
                self.fixed.add(argument)
                self.known[argument] = known

    def of(self, value: SSAValue) -> Positions | None:
        """Computes a value that follows from literals alone; None for any other value."""
        if value not in self.fixed:
            return None
        waiting = [value]
        while waiting:
            if waiting[-1] in self.known:
                waiting.pop()
            elif before := [each for each in cast(LaxOp, waiting[-1].owner).operands if each not in self.known]:
                waiting += before
            else:
                self.compute(cast(LaxOp, waiting.pop().owner))
        return self.known[value]

    def compute(self, op: LaxOp) -> None:
        types = [(each.dtype, each.shape) for each in cast("Sequence[ArrayType]", op.result_types)]
        results = evaluate(op.primitive(), op.params, [self.known[each] for each in op.operands], types)
        self.known.update(zip(op.results, results, strict=True))
