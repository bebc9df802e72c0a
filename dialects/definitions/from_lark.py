"""From lark's tree of a definition to the tree of `definition`: one function for each kind of phrase."""

from collections.abc import Collection

from ..grammar import SyntaxNode, Word, phrases, words
from .operators import ARITHMETIC
from .syntax_tree import (
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
    Term,
    Var,
    Whole,
)


def bare(token: Word) -> str:
    """The name in `i..`, `j:`, `k..:` and `cases*`."""
    return token.text.rstrip(".:*")


def formal(node: SyntaxNode) -> Formal:
    """Reads an operand of the head: `lhs`, `cases*`."""
    return Formal(bare(words(node)[0]), node.data == "many")


def assign(node: SyntaxNode, bound: Collection[str] = ()) -> tuple[str, Expr]:
    """`k = axes`, in which without indices each name is a parameter."""
    return str(words(node)[0]), expr(phrases(node)[0], bound)


def placing(node: SyntaxNode) -> list[At]:
    """Reads an `at` clause: `rhs b = axes, k = dims`, or without `rhs` for all arrays."""
    array = node.children[0]
    return [At(str(array) if isinstance(array, Word) else None, *assign(each)) for each in phrases(node)]


def reading(node: SyntaxNode, bound: Collection[str]) -> Reading:
    """Reads a read: `x[i.., j]`."""
    token = words(node)[0]
    terms = [each for part in phrases(node) for each in phrases(part)]
    return Read(bare(token), tuple(term(each, bound) for each in terms), token.text.endswith("*"))


def target(node: SyntaxNode, bound: Collection[str]) -> tuple[Reading, Partial | None]:
    """Reads a result on the left of `=`, and its fold: `dx[b.., d:]`, `sum(b..) dw[d:]`."""
    if node.data == "read":
        return reading(node, bound), None
    groups, result = phrases(node)
    made = reading(result, bound)
    return made, Partial(made.array, str(words(node)[0]), tuple(read_variables(groups)))


def term(node: SyntaxNode, bound: Collection[str]) -> Term:
    """Reads one dim of a read."""
    said = words(node)
    match node.data:
        case "whole":
            return Whole(bare(said[0]), said[0].text.endswith("..:"))
        case "concat":
            return Concat((Var(str(said[0])),))
        case "join":
            return Group(tuple(Var(str(word)) for word in said))
        case _:
            return expr(node, bound)


def expr(node: SyntaxNode, bound: Collection[str]) -> Expr:
    """Reads an expression; a single name is an index if it is bound, and a parameter otherwise."""
    inner = [each for each in phrases(node) if each.data not in ("variable", "variables", "arguments")]
    match node.data:
        case name if name in ARITHMETIC:
            return Apply(name, tuple(expr(each, bound) for each in inner))
        case "otherwise":
            return Otherwise(expr(inner[0], bound), expr(inner[1], bound))
        case "own" | "call":
            args = tuple(expr(each, bound) for each in phrases(phrases(node)[-1]))
            return Apply("@" if node.data == "own" else str(words(node)[0]), args)
        case "fold":
            folded, upto = read_variables(phrases(node)[0]), read_variables(node)
            return Fold(str(words(node)[0]), tuple(folded), expr(inner[0], bound), tuple(upto))
        case "guard":
            (variable,) = read_variables(node)
            window = words(node)
            return Guard(variable, reading(inner[0], bound), _group(window[0]) if window else None)
        case "read":
            return reading(node, bound)
        case _:
            return _leaf(node, bound)


def read_variables(node: SyntaxNode) -> list[Var]:
    """Reads the variables after a fold or at the head of a guard: `i`, `j..`."""
    return [_group(words(each)[0]) for each in phrases(node) if each.data == "variable"]


def _group(token: Word) -> Var:
    return Var(bare(token), token.text.endswith(".."))


def _leaf(node: SyntaxNode, bound: Collection[str]) -> Expr:
    if node.data == "size":
        return Size(read_variables(node)[0])
    (token,) = words(node)
    match node.data:
        case "constant":
            return Number(False if token.text == "false" else None)
        case "number":
            return Number(int(token.text))
        case "group":
            return Group((_group(token),))
        case _ if str(token) in bound:
            return Group((Var(str(token)),))
        case _:
            return _param(token)


def _param(token: Word) -> Param:
    name, *steps = token.text.split(".")
    return Param(name, tuple(steps))
