"""Keys and values: finds, from structure, what attention reads at all positions.

scores = q @ k    a product of computed values with the range of positions twice: once from each
max over k        the first op that folds one of the two says which is that of the keys
out = scores @ v  what is summed over it are the values
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ...rewrites.program.program import Node, ValueId
from ..plan.state import State
from .products import Passes, is_product, sums

Spot = tuple[ValueId, int, int]
"""A value, its dim of query positions, and its dim of key positions."""


def keys(plan: State, root: int) -> list[ValueId]:
    """The keys and values of attention, in every pass, each where it is smallest. `root` is the class of positions."""
    found = _Attention(Passes(plan), root)
    return list(dict.fromkeys(_smallest(plan, value, root) for node in found.scores() for value in found.read_by(node)))


@dataclass(frozen=True)
class _Attention:
    """The products of a program whose results have the range of positions twice, and the ops that follow them."""

    passes: Passes
    root: int

    def scores(self) -> Iterator[Node]:
        """Yields the products of two computed values, each of which gives the result positions of its own."""
        for node in self.passes.plan.source.program.nodes:
            computed = is_product(node) and all(self.passes.parameter(value) is None for value in node.operands)
            if computed and len(self.own(node, 0)) == len(self.own(node, 1)) == 1:
                yield node

    def own(self, node: Node, position: int) -> list[int]:
        """The indices of positions that the result has from this operand alone."""
        value, other, of = node.operands[position], node.signature.operand_at[1 - position], self.passes.plan.source.classes.of
        digits = enumerate(node.signature.operand_dims[position])
        single = [its[0].at for dim, its in digits if len(its) == 1 and of(value, dim) == self.root]
        return [at for at in single if at not in other and at in node.signature.result_at[0]]

    def read_by(self, node: Node) -> list[ValueId]:
        """The keys of a product of scores, and the values that the scores are multiplied by."""
        dims = [node.signature.result_at[0][self.own(node, position)[0]].dim for position in (0, 1)]
        first, reached = self.followed((node.results[0], dims[0], dims[1]))
        if first is None:
            return []
        return [node.operands[first], *self.values(reached, first)]

    def followed(self, start: Spot) -> tuple[int | None, list[Spot]]:
        """Which of the two dims is folded first, if possible by an op that is no product; and the values with both dims."""
        ahead, seen, folded = [start], {start[0]}, list[tuple[bool, int]]()
        for spot in ahead:
            for node, after in self.after(spot):
                missing = [which for which, dim in enumerate(after[1:]) if dim is None]
                if len(missing) == 1:
                    folded.append((is_product(node), missing[0]))
                elif not missing and after[0] not in seen:
                    seen.add(after[0])
                    ahead.append((after[0], after[1] or 0, after[2] or 0))
        folded.sort(key=lambda each: each[0])
        return (folded[0][1] if folded else None), ahead

    def after(self, spot: Spot) -> Iterator[tuple[Node, tuple[ValueId, int | None, int | None]]]:
        """Yields the ops that read a value, each with a result and the places of the two dims in it."""
        for node, position in self.passes.plan.source.program.reads(spot[0]):
            digits = node.signature.operand_dims[position]
            if any(len(digits[dim]) != 1 for dim in spot[1:]):
                continue
            for value, at in zip(node.results, node.signature.result_at, strict=True):
                query, key = (at.get(digits[dim][0].at) for dim in spot[1:])
                yield node, (value, None if query is None else query.dim, None if key is None else key.dim)

    def values(self, reached: list[Spot], key: int) -> Iterator[ValueId]:
        """Yields the values: the operands that products sum with scores over the dim of the keys."""
        for spot in reached:
            for node, position in self.passes.plan.source.program.reads(spot[0]):
                digits = node.signature.operand_dims[position][spot[1 + key]]
                if is_product(node) and len(digits) == 1 and sums(node, digits[0].at):
                    yield node.operands[1 - position]


def _smallest(plan: State, value: ValueId, root: int) -> ValueId:
    """The smallest of a value and its sources, back through ops of one operand that keep its positions.

    keys of 2 heads, repeated for 8 heads of queries   -->   the keys of 2 heads
    """
    program, best = plan.source.program, value
    while (number := program.producer[value]) >= 0 and len(program.nodes[number].operands) == 1:
        (value,) = program.nodes[number].operands
        if program.nodes[number].is_border or root not in plan.source.classes.dims(value):
            break
        best = min(best, value, key=lambda each: program.types[each].nbytes)
    return best
