"""What all laws of programs have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..program.program import Program
from .module_copy import Draft


@dataclass(frozen=True, slots=True)
class Site:
    """A place of a program where a law applies: the value that is made otherwise, and all values that are not needed then."""

    value: int
    inside: tuple[int, ...] = ()
    flops: int = 0
    """The arithmetic that is saved there, if nothing is partitioned."""
    elements: int = 0
    """How many elements fewer are computed on the way."""


class Law(Protocol):
    """Says where a program may be written otherwise, and writes it so."""

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str:
        """What the law says, which also names it: its rule, or its name."""
        ...

    def sites(self, program: Program) -> Iterator[Site]:
        """Where it applies, in program order."""
        ...

    def apply(self, program: Program, draft: Draft, sites: Sequence[Site]) -> None:
        """Write these places of a draft of the program otherwise."""
        ...
