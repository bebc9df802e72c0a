"""From lark's tree of a definition to the tree of `definition`: one function for each kind of phrase."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from lark import Token, Tree

from .tree import (
    Arith,
    At,
    Call,
    Concat,
    Expr,
    Fold,
    Formal,
    Guard,
    Join,
    Number,
    Otherwise,
    Param,
    Partial,
    Read,
    Size,
    Source,
    Term,
    Var,
    Whole,
)

Node: TypeAlias = Tree[Token]

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def tokens(tree: Node) -> list[Token]:
    """The words that stand directly in a phrase."""
    return [child for child in tree.children if isinstance(child, Token)]


def trees(tree: Node) -> list[Node]:
    """The phrases directly in a phrase."""
    return [child for child in tree.children if isinstance(child, Tree)]


def bare(token: Token) -> str:
    """The name in `i..`, `j:`, `k..:` and `cases*`."""
    return token.rstrip(".:*")


def formal(tree: Node) -> Formal:
    """An operand in the head: `lhs`, `cases*`."""
    return Formal(bare(tokens(tree)[0]), tree.data == "many")


def source(tree: Node) -> Source:
    """The right side of `at k = axes`."""
    match tree.data, *tokens(tree):
        case "behind", name, number:
            return Arith("-", Param(str(name)), Number(int(number)))
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
    return str(tokens(tree)[0]), source(trees(tree)[0])


def placing(tree: Node) -> list[At]:
    """`rhs b = axes, k = dims`, or without `rhs` for all arrays."""
    array = tree.children[0]
    return [At(str(array) if isinstance(array, Token) else None, *assign(each)) for each in trees(tree)]


def read(tree: Node, bound: Collection[str]) -> Read:
    """`x[i.., j]`."""
    token = tokens(tree)[0]
    terms = [each for part in trees(tree) for each in trees(part)]
    return Read(bare(token), tuple(term(each, bound) for each in terms), token.endswith("*"))


def target(tree: Node, bound: Collection[str]) -> tuple[Read, Partial | None]:
    """A result left of `=`, and what is folded there: `dx[b.., d:]`, `sum(b..) dw[d:]`."""
    if tree.data == "read":
        return read(tree, bound), None
    groups, result = trees(tree)
    made = read(result, bound)
    return made, Partial(made.name, str(tokens(tree)[0]), tuple(variables(groups)))


def term(tree: Node, bound: Collection[str]) -> Term:
    """What stands between the commas of a read."""
    words = tokens(tree)
    match tree.data:
        case "whole":
            return Whole(bare(words[0]), words[0].endswith("..:"))
        case "concat":
            return Concat(str(words[0]))
        case "join":
            return Join(tuple(map(str, words)))
        case _:
            return expr(tree, bound)


def expr(tree: Node, bound: Collection[str]) -> Expr:
    """An expression; a single name is an index if it is bound and a parameter otherwise."""
    inner = [each for each in trees(tree) if each.data not in ("variable", "variables", "arguments")]
    match tree.data:
        case "add" | "sub" | "mul" | "div":
            return Arith(_SIGNS[tree.data], expr(inner[0], bound), expr(inner[1], bound))
        case "neg":
            return Arith("*", Number(-1), expr(inner[0], bound))
        case "otherwise":
            return Otherwise(expr(inner[0], bound), expr(inner[1], bound))
        case "own" | "call":
            args = tuple(expr(each, bound) for each in trees(trees(tree)[-1]))
            return Call("@" if tree.data == "own" else str(tokens(tree)[0]), args)
        case "fold":
            upto = next(iter(variables(tree)), None)
            return Fold(str(tokens(tree)[0]), tuple(variables(trees(tree)[0])), expr(inner[0], bound), upto)
        case "guard":
            (variable,) = variables(tree)
            window = tokens(tree)
            return Guard(variable, read(inner[0], bound), _group(window[0]) if window else None)
        case "read":
            return read(tree, bound)
        case _:
            return _leaf(tree, bound)


def variables(tree: Node) -> list[Var]:
    """`i`, `j..` after a fold or at the head of a guard."""
    return [_group(tokens(each)[0]) for each in trees(tree) if each.data == "variable"]


def _group(token: Token) -> Var:
    return Var(bare(token), token.endswith(".."))


def _leaf(tree: Node, bound: Collection[str]) -> Expr:
    if tree.data == "size":
        return Size(variables(tree)[0])
    if tree.data == "none":
        return Number(None)
    (token,) = tokens(tree)
    match tree.data:
        case "number":
            return Number(int(token))
        case "group":
            return _group(token)
        case _ if str(token) in bound:
            return Var(str(token))
        case _:
            name, *steps = token.split(".")
            return Param(name, tuple(steps))
