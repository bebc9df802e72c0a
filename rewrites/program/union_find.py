"""Numbers that are joined into sets; the least number of a set stands for it.

join(1, 4), join(4, 2)   -->   root(4) = 1
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class UnionFind:
    """A forest over the numbers from 0 on: each has a parent in its set, and the root, which is the least, has itself."""

    parents: list[int]

    def root(self, number: int) -> int:
        parents = self.parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def roots(self) -> list[int]:
        """The root of each number."""
        found = self.parents
        for number, parent in enumerate(found):
            # A parent is less than its number, so its own root is known.
            found[number] = found[parent]
        return found

    def join(self, left: int, right: int) -> None:
        parents = self.parents
        if left != parents[left]:
            left = self.root(left)
        if right != parents[right]:
            right = self.root(right)
        if left < right:
            parents[right] = left
        elif right < left:
            parents[left] = right
