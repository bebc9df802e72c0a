"""Dims that belong together: all dims that the definitions identify form one class.

A class is a label, never a constraint: a named class lets a tactic use `B` for every batch dim. Two dims are in one class if
an op has a single index for both, so a class ends at a reshape that merges dims.
"""

from __future__ import annotations

from dataclasses import dataclass

from .program import Program


@dataclass(slots=True)
class Classes:
    """A forest over all dims of all values; `first[v]` is the number of value v's dim 0."""

    first: list[int]
    parents: list[int]
    iterated: set[int]

    def of(self, value: int, dim: int) -> int:
        """The class of a dim: the root of its tree."""
        return self.root(self.first[value] + dim)

    def root(self, number: int) -> int:
        parents = self.parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def join(self, left: int, right: int) -> None:
        left, right = self.root(left), self.root(right)
        if left != right:
            self.parents[max(left, right)] = min(left, right)

    def is_iterated(self, value: int, dim: int) -> bool:
        """Whether a loop iterates over this class of dims, one element in each trip."""
        return self.of(value, dim) in self.iterated


def classes(program: Program) -> Classes:
    """Join, op by op, the dims in which one index stands alone."""
    first: list[int] = []
    total = 0
    for type in program.types:
        first.append(total)
        total += len(type.shape)
    found = Classes(first, list(range(total)), set())
    stacked: list[int] = []
    for node in program.nodes:
        seen: dict[int, int] = {}
        values = (*node.operands, *node.results)
        for value, dims in zip(values, (*node.signature.operand_dims, *node.signature.result_dims), strict=True):
            for dim, digits in enumerate(dims):
                if len(digits) == 1 and digits[0].minor == 1:
                    number = first[value] + dim
                    found.join(number, seen.setdefault(digits[0].at, number))
                elif node.is_border and not digits:
                    # A border passes on every dim except the one over which the loop iterates.
                    stacked.append(first[value] + dim)
    found.iterated = {found.root(number) for number in stacked}
    return found
