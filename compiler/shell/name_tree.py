"""The names of a program's values as a tree, in which a terminal completes them part by part, like paths of files.

params/  -->  params/blocks/ (24 values), params/embed (f32[512, 64])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...rewrites.program.program import ValueId
from ..inputs.names import name_parts
from ..plan.state import Source, State


@dataclass(slots=True)
class NamePart:
    """A node of the tree of names: the parts that may follow, the value whose name ends here, and how many values are below."""

    inner: dict[str, NamePart] = field(default_factory=dict[str, "NamePart"])
    value: ValueId | None = None
    count: int = 0

    def add(self, path: list[str], value: ValueId) -> None:
        node = self
        for part in path:
            node.count += 1
            node = node.inner.setdefault(part, NamePart())
        node.count += 1
        node.value = value


@dataclass(frozen=True, slots=True, eq=False)
class NameTree:
    """All names of one program: arguments and results first, then tags and scopes."""

    root: NamePart
    source: Source

    @classmethod
    def of(cls, plan: State) -> NameTree:
        root, addresses = NamePart(), plan.source.addresses
        outer = addresses.arguments | addresses.results
        for name, value in outer.items():
            root.add(name_parts(name), value)
        for name, values in addresses.inside.items():
            root.add(name_parts(name), values[0])
        return cls(root, plan.source)

    def under(self, typed: str) -> Iterator[tuple[str, NamePart, bool]]:
        """The names that continue a typed one by one part: each with its node, and whether it can go on."""
        *before, last = typed.split("/")
        node = self.root
        for part in before:
            if part not in node.inner:
                return
            node = node.inner[part]
        for part, inner in node.inner.items():
            if part.startswith(last):
                name = "/".join([*before, part])
                if inner.inner:
                    yield name + "/", inner, True
                if inner.value is not None:
                    yield name, inner, False
