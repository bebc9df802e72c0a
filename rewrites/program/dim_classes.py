"""Dim classes: all dims that the definitions identify form one class.

A class is a label, never a constraint: a named class lets a tactic use `B` for every batch dim. Two dims are in one class if
an op has a single index for both, so a class ends at a reshape that merges dims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from .program import Node, Program, Signature, ValueId
from .union_find import UnionFind


@dataclass(slots=True)
class Classes(UnionFind):
    """Sets of all dims of all values. Dim d of value v has the number `first[v] + d`."""

    first: list[int]
    iterated: set[int] = field(default_factory=set[int])
    trips: dict[int, int] = field(default_factory=dict[int, int])
    """Class of a dim that is split into the trips of a loop -> how many of its elements each trip has; of several loops, the
    fewest."""

    def __repr__(self) -> str:
        return f"Classes({len(self.parents):,} dims)"

    def of(self, value: ValueId, dim: int) -> int:
        """The class of a dim, by the number of its root."""
        return self.root(self.first[value] + dim)

    def dims(self, value: ValueId) -> tuple[int, ...]:
        """The class of each dim of a value."""
        return tuple(map(self.root, range(self.first[value], self.first[value + 1])))

    def is_iterated(self, value: ValueId, dim: int) -> bool:
        """Whether a loop iterates over this class of dims, one element in each trip."""
        return self.of(value, dim) in self.iterated

    def in_a_trip(self, value: ValueId, dim: int) -> int | None:
        """The number of elements of a dim in each trip of a loop; None if the program does not split the dim into trips.

        x: f32[256], reshaped to [4, 64] and iterated over   -->   64
        """
        return self.trips.get(self.of(value, dim))


def classes(program: Program) -> Classes:
    """Builds the classes: for each op, joins all dims that consist of one and the same index."""
    first: list[int] = []
    total = 0
    for type in program.types:
        first.append(total)
        total += len(type.shape)
    found = Classes([*range(total)], [*first, total])
    stacked: list[int] = []
    same: dict[Signature, list[tuple[int, int, int, int]]] = {}
    for node in program.nodes:
        signature, values = node.signature, (*node.operands, *node.results)
        if (pairs := same.get(signature)) is None:
            pairs = same[signature] = list(_pairs(signature))
        for one, dim, other, at in pairs:
            found.join(first[values[one]] + dim, first[values[other]] + at)
        if node.is_border:
            # A border passes on every dim except the one over which the loop iterates.
            of_values = zip(values, (*signature.operand_dims, *signature.result_dims), strict=True)
            stacked += [first[value] + dim for value, dims in of_values for dim, digits in enumerate(dims) if not digits]
    found.iterated = {found.root(number) for number in stacked}
    for number, major, minor in chain.from_iterable(_splits(node, first) for node in program.nodes if found.iterated):
        if found.root(major) in found.iterated:
            root = found.root(number)
            found.trips[root] = min(minor, found.trips.get(root, minor))
    return found


def _pairs(signature: Signature) -> Iterator[tuple[int, int, int, int]]:
    """Pairs of dims that consist of one and the same index: (position of a value, its dim, position of another, its dim)."""
    seen: dict[int, tuple[int, int]] = {}
    for position, dims in enumerate((*signature.operand_dims, *signature.result_dims)):
        for dim, digits in enumerate(dims):
            if len(digits) == 1 and digits[0].minor == 1:
                before = seen.setdefault(digits[0].at, (position, dim))
                if before != (position, dim):
                    yield position, dim, *before


def _splits(node: Node, first: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Dims that an op splits, each with the result dim of its major index, and the number of elements for one value of it."""
    for value, dims in zip(node.operands, node.signature.operand_dims, strict=True):
        for dim, (major, *minors) in ((dim, digits) for dim, digits in enumerate(dims) if len(digits) > 1):
            at = node.signature.result_at[0].get(major.at)
            if minors and major.reach is None and at is not None and at.minor == 1:
                yield first[value] + dim, first[node.results[0]] + at.dim, major.minor
