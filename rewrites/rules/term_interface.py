"""How rules see terms: an interface that reads a term's head and arguments, and makes terms.

The same compiled rules rewrite nested tuples (the redistribution search, the constructors before they allocate an op)
and xDSL values (`partita-opt`). A rule uses only `head`, `args` and `make`, so each kind of term is one small class.

    ("slice", "data", 0, 64, x)        TUPLES        head "slice", args ("data", 0, 64, x)
    %1 = array.slice %x to ...         OpTerms(...)  head and args as the registry reads them off the op
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from xdsl.ir import Operation, OpResult, SSAValue


class Terms(Protocol):
    """A representation of terms: how to read one and how to make one."""

    def head(self, term: object) -> str | None:
        """The operation at the root, or None for a leaf: a value that rules do not look into."""
        ...

    def args(self, term: object) -> tuple[object, ...]:
        """The arguments of the root."""
        ...

    def make(self, head: str, args: tuple[object, ...]) -> object:
        """Makes the term with this root and these arguments."""
        ...


class TupleTerms:
    """Terms that are tuples `(head, *args)`. Anything else is a leaf."""

    def head(self, term: object) -> str | None:
        if not isinstance(term, tuple) or not term:
            return None
        head = cast("tuple[object, ...]", term)[0]
        return head if isinstance(head, str) else None

    def args(self, term: object) -> tuple[object, ...]:
        return cast("tuple[object, ...]", term)[1:]

    def make(self, head: str, args: tuple[object, ...]) -> object:
        return (head, *args)


TUPLES = TupleTerms()

TermReader = Callable[[Operation], tuple[str, tuple[object, ...]] | None]
OpMaker = Callable[[str, tuple[object, ...]], SSAValue]


@dataclass(frozen=True, slots=True)
class OpTerms:
    """Terms that are SSA values. The op that makes a value gives its head and arguments.

    `readers` maps each class of op to the function that reads it as a term, or returns None for an instance that is a leaf.
    Block arguments and the results of other ops are leaves. `make` builds the op for a term on a rule's right side and
    returns its result. The caller gives it an insertion point, so that rules need not know about blocks.
    """

    readers: Mapping[type[Operation], TermReader]
    maker: OpMaker
    seen: dict[SSAValue, tuple[str, tuple[object, ...]] | None] = field(
        default_factory=dict[SSAValue, tuple[str, tuple[object, ...]] | None]
    )

    def read(self, term: object) -> tuple[str, tuple[object, ...]] | None:
        if not isinstance(term, OpResult):
            return None
        if term not in self.seen:
            reader = self.readers.get(type(term.op))
            self.seen[term] = reader(term.op) if reader is not None else None
        return self.seen[term]

    def head(self, term: object) -> str | None:
        found = self.read(term)
        return found[0] if found is not None else None

    def args(self, term: object) -> tuple[object, ...]:
        found = self.read(term)
        return found[1] if found is not None else ()

    def make(self, head: str, args: tuple[object, ...]) -> object:
        return self.maker(head, args)
