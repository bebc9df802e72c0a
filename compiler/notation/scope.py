"""The indices in scope within an equation, and the ranges that reads give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lark import Token

from ...dialects.definitions.tree import Affine, Fold, Group
from ...dialects.errors import Span
from .diagnostics import Text, span
from .terms import Array, Index, Term, ends


@dataclass(slots=True)
class Scope:
    """Indices by name, and the products and windows to check once all ranges are known."""

    text: Text
    arrays: dict[str, Array]
    indices: dict[str, Index]
    joins: list[tuple[int, Group[Index], Span]] = field(default_factory=list[tuple[int, Group[Index], Span]])
    windows: list[tuple[int, Affine[Index], Span, bool]] = field(default_factory=list[tuple[int, Affine[Index], Span, bool]])
    folds: list[Fold[Index, Term]] = field(default_factory=list[Fold[Index, Term]])
    hanging: bool = False
    positional: bool = False

    def new(self, word: Token) -> Index:
        """A new index."""
        if word in self.arrays:
            self.text.fail("index_array", word, name=word)
        if word in self.indices:
            self.text.fail("index_shadowed", word, name=word)
        return Index(str(word), span(word))

    def find(self, word: Token) -> Index:
        if word not in self.indices:
            self.text.fail("index_unbound", word, [*self.indices, *self.arrays], name=word)
        return self.indices[str(word)]

    def unify(self, index: Index, extent: int, where: Span, why: str) -> None:
        """Unifies the index's range with this extent."""
        if not index.known:
            index.extent, index.why = extent, why
        elif index.extent != extent:
            notes = [f"over {index.extent}: {index.why}", f"over {extent}: {why}"]
            notes += ["read a dim of extent 1 at `0`"] if 1 in (extent, index.extent) else []
            if index.why.startswith("declared") and extent > index.extent:
                notes.append(f"to read a part of a dim, write its start: `{index.name} + 0` for the dim's beginning")
            self.text.fail("index_ranges", where, (), notes, name=index.name, one=index.extent, other=extent)

    def settle(self, known: Sequence[Index]) -> None:
        """Solves the products and checks the windows. Raises `Wrong` for an index without a range."""
        waiting = list(self.joins)
        while waiting:
            ready = [each for each in waiting if sum(not index.known for index in each[1].indices) <= 1]
            if not ready:
                index = next(index for index in waiting[0][1].indices if not index.known)
                self.text.fail("range_unknown", waiting[0][2], name=index.name)
            for each in ready:
                self.solve(*each)
            waiting = [each for each in waiting if each not in ready]
        for extent, affine, where, hangs in self.windows:
            self.check_window(extent, affine, where, hangs)
        for index in known:
            if not index.known:
                self.text.fail("range_unknown", index.span, name=index.name)

    def solve(self, extent: int, joint: Group[Index], where: Span) -> None:
        product = 1
        missing: Index | None = None
        for index in joint.indices:
            product *= index.extent if index.known else 1
            missing = missing if index.known else index
        if (extent % product if product else extent) or (missing is None and product != extent):
            names = " and ".join(f"`{index.name}`" for index in joint.indices)
            known = ", ".join(f"{index.name} has {index.extent}" for index in joint.indices if index.known)
            self.text.fail("join_uneven", where, extent=extent, names=names, known=known)
        if missing is not None:
            missing.extent, missing.why = extent // max(product, 1), "the remaining factor of a product"

    def check_window(self, extent: int, affine: Affine[Index], where: Span, hangs: bool) -> None:
        """Checks that a window that is not folded stays inside the dim."""
        for index, _ in affine.factors:
            if not index.known:
                self.text.fail("range_unknown", where, name=index.name)
        low, high = ends(affine)
        if not hangs and (low < 0 or high >= extent) and all(index.extent for index, _ in affine.factors):
            said, last = self.text.said(where), extent - 1
            self.text.fail("window", where, said=said, low=low, high=high, extent=extent, last=last)
