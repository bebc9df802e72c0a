"""Finds the left side of a rule in a program.

dot(x, y + z)   in   %s = add %w, %v; %y = dot_general %h, %s   -->   x = %h at i, k; y = %w at k, j; z = %v at k, j
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import cast

from ..program.program import Node, NodeId, Program
from ..rules.rule import RuleApply, RuleNumber, Term, Variable
from .interpret_rule import IndexMaker, Indices, NoTerm, make_term
from .rule_ops import ALIASES, COMMUTES, SAME, TELLS, IndexForm, form
from .through_moves import Seen, at_operand, single, through_moves


@dataclass(frozen=True, slots=True)
class Match:
    """What the variables of a rule stand for at one place of a program, and the ops that match its left side."""

    root: Node
    ids: tuple[int | None, ...]
    """The index of each dim of the root's result; None for extent 1."""
    extents: Mapping[int, int]
    bound: Mapping[str, Seen] = field(default_factory=dict[str, Seen])
    nodes: tuple[NodeId, ...] = ()
    sums: tuple[frozenset[int], ...] = ()
    """The indices that each sum is over."""
    same: Mapping[int, int] = field(default_factory=dict[int, int])
    """The indices that turned out to equal others, because one value is read at both."""

    @property
    def keep(self) -> tuple[int, ...]:
        """The indices of the result."""
        return tuple(each for each in self.ids if each is not None)

    def indices(self, side: Term, maker: IndexMaker) -> Indices:
        """The indices of a side of the rule. Raises NoTerm if it has no meaning here."""
        return make_term(side, {name: seen.indices for name, seen in self.bound.items()}, self.keep, maker)

    def has(self, side: Term, maker: IndexMaker) -> bool:
        """Whether a side of the rule has a meaning here, and no other indices than the result."""
        try:
            return set(self.indices(side, maker)) <= set(self.keep)
        except NoTerm:
            return False


def is_root(left: RuleApply, node: Node) -> bool:
    """Whether an op is of the kind at the root of a left side."""
    return (
        SAME.get(node.op_name, node.op_name) == ALIASES.get(left.head, left.head)
        and not node.is_border
        and len(node.results) == 1
    )


def matches(program: Program, left: RuleApply, root: Node) -> Iterator[Match]:
    """Yields every match of a left side whose root is this op."""
    if not is_root(left, root):
        return
    shape, numbers = program.shape(root.results[0]), count()
    ids = tuple(None if extent == 1 else next(numbers) for extent in shape)
    extents = {index: extent for index, extent in zip(ids, shape, strict=True) if index is not None}
    matcher = _Matcher(program, root, numbers, extents)
    for found in matcher.term(left, Seen(root.results[0], ids), Match(root, ids, extents)):
        if _sums_as_written(left, found):
            yield found


def _sums_as_written(left: RuleApply, found: Match) -> bool:
    """Whether the ops sum over exactly the indices that the rule's left side sums over."""
    maker = IndexMaker()
    return found.has(left, maker) and sorted(map(sorted, maker.sums)) == sorted(map(sorted, found.sums))


@dataclass(frozen=True, slots=True)
class _Matcher:
    program: Program
    root: Node
    numbers: Iterator[int]
    extents: dict[int, int]

    def term(self, term: Term, seen: Seen, found: Match) -> Iterator[Match]:
        """Yields the ways to continue a match so that `seen` matches a term."""
        seen = through_moves(self.program, _renamed(seen, found.same))
        match term:
            case Variable(name):
                yield from self.variable(name, seen, found)
            case RuleNumber(number):
                node = self.node(seen)
                if node is not None and node.op_name == "constant" and node.params.get("value") == number:
                    yield found
            case RuleApply(head, args):
                node = self.node(seen)
                kind = ALIASES.get(head, head)
                if node is not None and SAME.get(node.op_name, node.op_name) == kind and len(node.operands) == len(args):
                    yield from self.op(node, kind, args, seen, found)
            case _:
                return

    def node(self, seen: Seen) -> Node | None:
        """The op that makes a value, if it is in the region of the root."""
        number = self.program.producer[seen.value]
        node = self.program.nodes[number] if number >= 0 else None
        return node if node is not None and not node.is_border and node.region == self.root.region else None

    def variable(self, name: str, seen: Seen, found: Match) -> Iterator[Match]:
        if self.program.types[seen.value].dtype not in (self.dtype, "bool"):
            return
        before = found.bound.get(name)
        if before is None:
            yield replace(found, bound={**found.bound, name: seen})
        elif before.value == seen.value and (joined := self.joined(found, before, seen)) is not None:
            yield joined

    @property
    def dtype(self) -> str:
        return dtype_at(self.program, self.root)

    def joined(self, found: Match, before: Seen, seen: Seen) -> Match | None:
        """The match in which two uses of a value have the same indices; None if that would equate two indices of the result."""
        for kept, other in zip(before.ids, seen.ids, strict=True):
            kept, other = (each if each is None else found.same.get(each, each) for each in (kept, other))
            if kept == other:
                continue
            if kept is None or other is None or {kept, other} <= set(found.keep):
                return None
            found = (
                _with_index_replaced(found, kept, other) if other in found.keep else _with_index_replaced(found, other, kept)
            )
        return found

    def op(self, node: Node, kind: str, args: Sequence[Term], seen: Seen, found: Match) -> Iterator[Match]:
        """Yields the ways to match an op's operands with a term's arguments, in both orders if the op commutes."""
        ids = self.operand_ids(node, kind, seen)
        if ids is None or not self.is_plain(node, kind):
            return
        operands = [Seen(value, each) for value, each in zip(node.operands, ids, strict=True)]
        sums = frozenset(index for each in operands for index in each.indices).difference(seen.indices)
        found = replace(found, nodes=(*found.nodes, node.number))
        if form(kind) is not IndexForm.EACH:
            found = replace(found, sums=(*found.sums, sums))
        for order in (operands, operands[::-1]) if kind in COMMUTES else (operands,):
            yield from self.all(list(zip(args, order, strict=True)), found)

    def all(self, pairs: Sequence[tuple[Term, Seen]], found: Match) -> Iterator[Match]:
        if not pairs:
            yield found
            return
        (term, seen), *rest = pairs
        for each in self.term(term, seen, found):
            yield from self.all(rest, each)

    def is_plain(self, node: Node, kind: str) -> bool:
        """Whether an op has one dtype throughout, and no parameters besides dims that its indices imply."""
        dtypes = {self.program.types[each].dtype for each in (*node.operands, *node.results)}
        params = {name for name, _ in node.params.items()}
        return dtypes <= {self.dtype, "bool"} and (form(kind) is not IndexForm.EACH or not params) and "precision" not in params

    def operand_ids(self, node: Node, kind: str, seen: Seen) -> list[tuple[int | None, ...]] | None:
        """The indices of each operand: those of the result, and new ones for dims that the op folds."""
        if form(kind) is IndexForm.EACH:
            ids = [at_operand(node, position, seen) for position in range(len(node.operands))]
            return None if None in ids else cast("list[tuple[int | None, ...]]", ids)
        out = single(node.signature.result_dims[0])
        sides = [single(dims) for dims in node.signature.operand_dims]
        if out is None or None in sides:
            return None
        named: dict[int, int | None] = {mine: each for mine, each in zip(out, seen.ids, strict=True) if mine is not None}
        for index in (index for side in sides for index in side or () if index is not None):
            if index not in named:
                named[index] = fresh = next(self.numbers)
                self.extents[fresh] = node.signature.indices[index].extent
        return [tuple(None if index is None else named[index] for index in side or ()) for side in sides]


def dtype_at(program: Program, node: Node) -> str:
    """The dtype that an op computes with. For a comparison, it is that of its operands."""
    value = node.operands[-1] if SAME.get(node.op_name, node.op_name) in TELLS else node.results[0]
    return program.types[value].dtype


def _renamed(seen: Seen, same: Mapping[int, int]) -> Seen:
    return Seen(seen.value, tuple(each if each is None else same.get(each, each) for each in seen.ids))


def _with_index_replaced(found: Match, old: int, new: int) -> Match:
    """The match in which one index is replaced by another, everywhere."""
    same = {**{each: new if to == old else to for each, to in found.same.items()}, old: new}
    bound = {name: _renamed(seen, same) for name, seen in found.bound.items()}
    return replace(
        found, bound=bound, sums=tuple(frozenset(same.get(each, each) for each in some) for some in found.sums), same=same
    )
