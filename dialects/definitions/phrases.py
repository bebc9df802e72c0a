"""From lark's tree of a definition to the tree of `definition`: one function for each kind of phrase."""

from collections.abc import Collection

from ..grammar import Node, Word, phrases, words
from . import tree
from .signs import ARITHMETIC


def bare(token: Word) -> str:
    """The name in `i..`, `j:`, `k..:` and `cases*`."""
    return token.text.rstrip(".:*")


def formal(node: Node) -> tree.Formal:
    """Reads an operand of the head: `lhs`, `cases*`."""
    return tree.Formal(bare(words(node)[0]), node.data == "many")


def source(node: Node) -> tree.Source:
    """Reads the right side of `at k = axes`."""
    match node.data, *words(node):
        case "behind", name, number:
            return tree.Apply("sub", (tree.Param(str(name)), tree.Number(int(number.text))))
        case "last", number:
            return tree.Number(-int(number.text))
        case "number", number:
            return tree.Number(int(number.text))
        case _, token:
            return _param(token)
        case _:
            raise TypeError(node)


def assign(node: Node) -> tuple[str, tree.Source]:
    return str(words(node)[0]), source(phrases(node)[0])


def placing(node: Node) -> list[tree.At]:
    """Reads an `at` clause: `rhs b = axes, k = dims`, or without `rhs` for all arrays."""
    array = node.children[0]
    return [tree.At(str(array) if isinstance(array, Word) else None, *assign(each)) for each in phrases(node)]


def read(node: Node, bound: Collection[str]) -> tree.Reading:
    """Reads a read: `x[i.., j]`."""
    token = words(node)[0]
    terms = [each for part in phrases(node) for each in phrases(part)]
    return tree.Read(bare(token), tuple(term(each, bound) for each in terms), token.text.endswith("*"))


def target(node: Node, bound: Collection[str]) -> tuple[tree.Reading, tree.Partial | None]:
    """Reads a result on the left of `=`, and its fold: `dx[b.., d:]`, `sum(b..) dw[d:]`."""
    if node.data == "read":
        return read(node, bound), None
    groups, result = phrases(node)
    made = read(result, bound)
    return made, tree.Partial(made.array, str(words(node)[0]), tuple(variables(groups)))


def term(node: Node, bound: Collection[str]) -> tree.Term:
    """Reads one dim of a read."""
    said = words(node)
    match node.data:
        case "whole":
            return tree.Whole(bare(said[0]), said[0].text.endswith("..:"))
        case "concat":
            return tree.Concat((tree.Var(str(said[0])),))
        case "join":
            return tree.Group(tuple(tree.Var(str(word)) for word in said))
        case _:
            return expr(node, bound)


def expr(node: Node, bound: Collection[str]) -> tree.Expr:
    """Reads an expression; a single name is an index if it is bound, and a parameter otherwise."""
    inner = [each for each in phrases(node) if each.data not in ("variable", "variables", "arguments")]
    match node.data:
        case name if name in ARITHMETIC:
            return tree.Apply(name, tuple(expr(each, bound) for each in inner))
        case "otherwise":
            return tree.Otherwise(expr(inner[0], bound), expr(inner[1], bound))
        case "own" | "call":
            args = tuple(expr(each, bound) for each in phrases(phrases(node)[-1]))
            return tree.Apply("@" if node.data == "own" else str(words(node)[0]), args)
        case "fold":
            folded, upto = variables(phrases(node)[0]), variables(node)
            return tree.Fold(str(words(node)[0]), tuple(folded), expr(inner[0], bound), tuple(upto))
        case "guard":
            (variable,) = variables(node)
            window = words(node)
            return tree.Guard(variable, read(inner[0], bound), _group(window[0]) if window else None)
        case "read":
            return read(node, bound)
        case _:
            return _leaf(node, bound)


def variables(node: Node) -> list[tree.Var]:
    """Reads the variables after a fold or at the head of a guard: `i`, `j..`."""
    return [_group(words(each)[0]) for each in phrases(node) if each.data == "variable"]


def _group(token: Word) -> tree.Var:
    return tree.Var(bare(token), token.text.endswith(".."))


def _leaf(node: Node, bound: Collection[str]) -> tree.Expr:
    if node.data == "size":
        return tree.Size(variables(node)[0])
    (token,) = words(node)
    match node.data:
        case "constant":
            return tree.Number(False if token.text == "false" else None)
        case "number":
            return tree.Number(int(token.text))
        case "group":
            return tree.Group((_group(token),))
        case _ if str(token) in bound:
            return tree.Group((tree.Var(str(token)),))
        case _:
            return _param(token)


def _param(token: Word) -> tree.Param:
    name, *steps = token.text.split(".")
    return tree.Param(name, tuple(steps))
