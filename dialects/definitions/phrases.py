"""From lark's tree of a definition to the tree of `definition`: one function for each kind of phrase."""

from __future__ import annotations

from collections.abc import Collection

from lark import Token

from ..grammar import Node, phrases, words
from .signs import ARITHMETIC
from .tree import (
    Apply,
    At,
    Concat,
    Expr,
    Fold,
    Formal,
    Group,
    Guard,
    Number,
    Otherwise,
    Param,
    Partial,
    Read,
    Reading,
    Size,
    Source,
    Term,
    Var,
    Whole,
)


def bare(token: Token) -> str:
    """The name in `i..`, `j:`, `k..:` and `cases*`."""
    return token.rstrip(".:*")


def formal(tree: Node) -> Formal:
    """An operand in the head: `lhs`, `cases*`."""
    return Formal(bare(words(tree)[0]), tree.data == "many")


def source(tree: Node) -> Source:
    """The right side of `at k = axes`."""
    match tree.data, *words(tree):
        case "behind", name, number:
            return Apply("sub", (Param(str(name)), Number(int(number))))
        case "last", number:
            return Number(-int(number))
        case "number", number:
            return Number(int(number))
        case _, token:
            name, *steps = token.split(".")
            return Param(name, tuple(steps))
        case _:
            raise TypeError(tree)


def assign(tree: Node) -> tuple[str, Source]:
    return str(words(tree)[0]), source(phrases(tree)[0])


def placing(tree: Node) -> list[At]:
    """`rhs b = axes, k = dims`, or without `rhs` for all arrays."""
    array = tree.children[0]
    return [At(str(array) if isinstance(array, Token) else None, *assign(each)) for each in phrases(tree)]


def read(tree: Node, bound: Collection[str]) -> Reading:
    """`x[i.., j]`."""
    token = words(tree)[0]
    terms = [each for part in phrases(tree) for each in phrases(part)]
    return Read(bare(token), tuple(term(each, bound) for each in terms), token.endswith("*"))


def target(tree: Node, bound: Collection[str]) -> tuple[Reading, Partial | None]:
    """A result on the left of `=`, and its fold: `dx[b.., d:]`, `sum(b..) dw[d:]`."""
    if tree.data == "read":
        return read(tree, bound), None
    groups, result = phrases(tree)
    made = read(result, bound)
    return made, Partial(made.array, str(words(tree)[0]), tuple(variables(groups)))


def term(tree: Node, bound: Collection[str]) -> Term:
    """One dim of a read."""
    said = words(tree)
    match tree.data:
        case "whole":
            return Whole(bare(said[0]), said[0].endswith("..:"))
        case "concat":
            return Concat((Var(str(said[0])),))
        case "join":
            return Group(tuple(Var(str(word)) for word in said))
        case _:
            return expr(tree, bound)


def expr(tree: Node, bound: Collection[str]) -> Expr:
    """An expression; a single name is an index if it is bound and a parameter otherwise."""
    inner = [each for each in phrases(tree) if each.data not in ("variable", "variables", "arguments")]
    match tree.data:
        case name if name in ARITHMETIC:
            return Apply(name, tuple(expr(each, bound) for each in inner))
        case "otherwise":
            return Otherwise(expr(inner[0], bound), expr(inner[1], bound))
        case "own" | "call":
            args = tuple(expr(each, bound) for each in phrases(phrases(tree)[-1]))
            return Apply("@" if tree.data == "own" else str(words(tree)[0]), args)
        case "fold":
            folded, upto = variables(phrases(tree)[0]), variables(tree)
            return Fold(str(words(tree)[0]), tuple(folded), expr(inner[0], bound), tuple(upto))
        case "guard":
            (variable,) = variables(tree)
            window = words(tree)
            return Guard(variable, read(inner[0], bound), _group(window[0]) if window else None)
        case "read":
            return read(tree, bound)
        case _:
            return _leaf(tree, bound)


def variables(tree: Node) -> list[Var]:
    """`i`, `j..` after a fold or at the head of a guard."""
    return [_group(words(each)[0]) for each in phrases(tree) if each.data == "variable"]


def _group(token: Token) -> Var:
    return Var(bare(token), token.endswith(".."))


def _leaf(tree: Node, bound: Collection[str]) -> Expr:
    if tree.data == "size":
        return Size(variables(tree)[0])
    (token,) = words(tree)
    match tree.data:
        case "constant":
            return Number(False if token == "false" else None)
        case "number":
            return Number(int(token))
        case "group":
            return Group((_group(token),))
        case _ if str(token) in bound:
            return Group((Var(str(token)),))
        case _:
            name, *steps = token.split(".")
            return Param(name, tuple(steps))
