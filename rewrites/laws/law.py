"""The interface of all laws of programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..program.program import Program, ValueId
from .module_copy import Draft


@dataclass(frozen=True, slots=True)
class Site:
    """A place where a law applies: the value that is made in another way, and all values that are not needed any more."""

    value: ValueId
    inside: tuple[ValueId, ...] = ()
    flops: int = 0
    """The flops that are saved there, if nothing is partitioned."""
    elements: int = 0
    """The number of elements by which fewer are computed there."""


class Law(Protocol):
    """Knows where a program may be rewritten, and rewrites it there."""

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str:
        """What the law says: its rule, or its name and a description."""
        ...

    def sites(self, program: Program) -> Iterator[Site]:
        """Yields the places where the law applies, in program order."""
        ...

    def apply(self, program: Program, draft: Draft, sites: Sequence[Site]) -> None:
        """Rewrites these places in a draft of the program."""
        ...
