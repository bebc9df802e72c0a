"""The indices in scope within an equation, and the ranges that the positions of reads give them.

x[i, 0, (h d), 2*i + q - 1, ids[b]]   -->   an index, a number, a product, a window, a computed position
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from ...dialects.definitions.syntax_tree import Affine, Apply, Fold, Group, Number
from ...dialects.grammar import Word
from ...dialects.ground.errors import Span
from ...dialects.ground.monoids import MONOIDS
from ..ops.monoids import WRITTEN
from .diagnostics import Reader, span
from .terms import Array, CheckedIndex, Term, leaves, span_in_text

EXTREMES = (*(fold for fold in WRITTEN if MONOIDS[fold].ordered), "argmax", "argmin")
"""The folds that have no value over zero elements."""


@dataclass(slots=True)
class Scope(Reader):
    """Indices by name, and the products and windows to check once all ranges are known.

    `extents` and `functions` are those of the file so far, `arrays` those of the function.
    """

    extents: Mapping[str, int]
    functions: Mapping[str, object]
    arrays: dict[str, Array]
    indices: dict[str, CheckedIndex] = field(default_factory=dict[str, CheckedIndex])
    joins: list[tuple[int, Group[CheckedIndex], Span]] = field(default_factory=list[tuple[int, Group[CheckedIndex], Span]])
    windows: list[tuple[int, Affine[CheckedIndex], Span, bool]] = field(
        default_factory=list[tuple[int, Affine[CheckedIndex], Span, bool]]
    )
    folds: list[Fold[CheckedIndex, Term]] = field(default_factory=list[Fold[CheckedIndex, Term]])
    hanging: bool = False
    positional: bool = False

    def new(self, word: Word) -> CheckedIndex:
        """Makes an index of this name. Raises `Wrong` if the name is taken."""
        if word.text in self.arrays:
            self.fail("index_array", word)
        if word.text in self.indices:
            self.fail("index_shadowed", word)
        return CheckedIndex(str(word), span(word))

    def find(self, word: Word) -> CheckedIndex:
        if word.text not in self.indices:
            self.fail("index_unbound", word, [*self.indices, *self.arrays])
        return self.indices[str(word)]

    def unify(self, index: CheckedIndex, extent: int, where: Span, why: str) -> None:
        """Gives the index this range. Raises `Wrong` if it already has another one."""
        if not index.known:
            index.extent, index.why = extent, why
        elif index.extent != extent:
            notes = [f"over {index.extent}: {index.why}", f"over {extent}: {why}"]
            notes += ["read a dim of extent 1 at `0`"] if 1 in (extent, index.extent) else []
            if index.why.startswith("declared") and extent > index.extent:
                notes.append(f"to read a part of a dim, write its start: `{index.name} + 0` for the dim's beginning")
            self.fail("index_ranges", where, (), notes, name=index.name, one=index.extent, other=extent)

    def settle(self, free: Iterable[CheckedIndex]) -> None:
        """Solves the products and checks windows and folds. Raises `Wrong` for an index, free or folded, without a range."""
        every = [*(index for fold in self.folds for index in fold.indices), *free]
        seen = {index for _, joint, _ in self.joins for index in joint.indices}
        seen |= {index for _, window, _, _ in self.windows for index, _ in window.factors}
        for index in free:
            if not index.known and index not in seen:
                self.fail("left_only", index.span, name=index.name)
        waiting = list(self.joins)
        while waiting:
            ready = [each for each in waiting if sum(not index.known for index in each[1].indices) <= 1]
            if not ready:
                index = next(index for index in waiting[0][1].indices if not index.known)
                self.fail("range_unknown", waiting[0][2], name=index.name)
            for each in ready:
                self.solve(*each)
            waiting = [each for each in waiting if each not in ready]
        for extent, affine, where, hangs in self.windows:
            self.check_window(extent, affine, where, hangs)
        for index in every:
            if not index.known:
                self.fail("range_unknown", index.span, name=index.name)
        for fold in self.folds:
            if fold.monoid in EXTREMES and not all(index.extent for index in fold.indices):
                self.fail("fold_nothing", span_in_text(fold), fold=fold.monoid)

    def solve(self, extent: int, joint: Group[CheckedIndex], where: Span) -> None:
        known = [index for index in joint.indices if index.known]
        missing = next((index for index in joint.indices if not index.known), None)
        product = prod(index.extent for index in known)
        if (extent % product if product else extent) or (missing is None and product != extent):
            names = " and ".join(f"`{index.name}`" for index in joint.indices)
            said = ", ".join(f"{index.name} has {index.extent}" for index in known)
            self.fail("join_uneven", where, extent=extent, names=names, known=said)
        if missing is not None:
            missing.extent, missing.why = extent // max(product, 1), "the remaining factor of a product"

    def check_window(self, extent: int, affine: Affine[CheckedIndex], where: Span, hangs: bool) -> None:
        """Raises `Wrong` for a window that leaves the dim, unless it `hangs`: under some folds a window may."""
        for index, _ in affine.factors:
            if not index.known:
                self.fail("range_unknown", where, name=index.name)
        if not hangs and (outside := leaves(affine, extent)) and all(index.extent for index, _ in affine.factors):
            low, high = outside
            self.fail("window", where, said=self.text.said(where), low=low, high=high, extent=extent, last=extent - 1)


def linearity(term: Term) -> tuple[int, Mapping[CheckedIndex, int]] | None:
    """The term as an offset and factors of indices; None if it is not linear in them."""
    match term:
        case Number(int() as value):
            return value, {}
        case Group((index,)):
            return 0, {index: 1}
        case Apply("neg", (arg,)):
            return _sum((-1, arg))
        case Apply("add" | "sub" as sign, (left, right)):
            return _sum((1, left), (1 if sign == "add" else -1, right))
        case Apply("mul", (Number(int() as by), arg) | (arg, Number(int() as by))):
            return _sum((by, arg))
        case _:
            return None


def _sum(*multiples: tuple[int, Term]) -> tuple[int, Mapping[CheckedIndex, int]] | None:
    total, factors = 0, Counter[CheckedIndex]()
    for by, term in multiples:
        if (linear := linearity(term)) is None:
            return None
        total += by * linear[0]
        factors.update({index: by * factor for index, factor in linear[1].items()})
    return total, {index: factor for index, factor in factors.items() if factor}
