"""The positions in the brackets of a read: an index, a number, a product, a window, or a computed position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ...dialects.definitions.tree import Affine, Apply, Group, Number
from ...dialects.dtypes import dtype_of, short
from ...dialects.grammar import Node, words
from .diagnostics import Text, span
from .scope import Scope
from .terms import Array, Dim, Index, Term, alone, dtype


class Reader(Protocol):
    """The reader of the terms of one function, and its scope."""

    text: Text
    scope: Scope

    def term(self, node: Node) -> Term: ...


def position(reader: Reader, array: Array, dim: int, node: Node) -> Dim:
    """The position of a phrase in one dim of an array; an index alone gets its range from the dim."""
    extent, scope, text = array.shape[dim], reader.scope, reader.text
    if node.data == "join":
        joint = Group(tuple(scope.find(word) for word in words(node)))
        scope.joins.append((extent, joint, span(node)))
        return joint
    around, scope.positional = scope.positional, True
    term = reader.term(node)
    scope.positional = around
    if (index := alone(term)) is not None:
        scope.unify(index, extent, span(node), f"dim {dim} of `{array.name}`")
        return term
    kind = dtype(term)
    if kind not in ("int",) and (kind in ("float", "truth") or dtype_of(kind).kind not in "iu"):
        text.fail("index_float", node, said=text.said(node), dtype={"float": "a float"}.get(kind, short(kind)))
    if (linear := linearity(term)) is not None:
        offset, factors = linear
        if not factors:
            window = Affine(offset, ())
            scope.check_window(extent, window, span(node), hangs=False)
            return window
        window = Affine(offset, tuple(factors.items()))
        scope.windows.append((extent, window, span(node), scope.hanging and len(factors) > 1))
        return window
    return term


def linearity(term: Term) -> tuple[int, Mapping[Index, int]] | None:
    """The term as an offset and factors of indices; None if it is not linear in them."""
    match term:
        case Number(int() as value):
            return value, {}
        case Group((index,)):
            return 0, {index: 1}
        case Apply("neg", (arg,)):
            return scaled(linearity(arg), -1)
        case Apply("add" | "sub" as name, (left, right)):
            one, other = linearity(left), scaled(linearity(right), 1 if name == "add" else -1)
            if one is None or other is None:
                return None
            factors = {index: one[1].get(index, 0) + other[1].get(index, 0) for index in (*one[1], *other[1])}
            return one[0] + other[0], {index: factor for index, factor in factors.items() if factor}
        case Apply("mul", (left, right)):
            one, other = linearity(left), linearity(right)
            if one is None or other is None or (one[1] and other[1]):
                return None
            return scaled(one, other[0]) if one[1] else scaled(other, one[0])
        case _:
            return None


def scaled(linear: tuple[int, Mapping[Index, int]] | None, by: int) -> tuple[int, Mapping[Index, int]] | None:
    if linear is None:
        return None
    return linear[0] * by, {index: factor * by for index, factor in linear[1].items()}
