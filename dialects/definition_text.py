"""The text of definitions: `definitions.lark` to the tree of `definition`, mistakes to errors with a caret."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path as File
from typing import NoReturn

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from .definition import (
    Arith,
    At,
    Call,
    Concat,
    Definition,
    Expr,
    Fold,
    Formal,
    Guard,
    Join,
    Number,
    Otherwise,
    Param,
    Read,
    Size,
    Term,
    Var,
    Whole,
)
from .errors import Error, Place, nearest

Node = Tree[Token]
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@cache
def _grammar() -> Lark:
    text = File(__file__).with_name("definitions.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def parse_definitions(source: str, file: str = "<definitions>") -> dict[str, Definition]:
    """All definitions of a text by op name. Raises Error with the place of the first mistake."""
    reader = _Reader(source, file)
    found: dict[str, Definition] = {}
    for tree in _trees(reader.tree()):
        for head in _tokens(_child(tree, 0)):
            if str(head) in found:
                reader.fail(head, f"`{head}` is defined twice", "remove one of the definitions")
            found[str(head)] = reader.definition(str(head), tree)
    return found


@lru_cache
def parse_definition(source: str, file: str = "<definition>") -> Definition:
    """The one definition of a text."""
    (definition,) = parse_definitions(source, file).values()
    return definition


def _child(tree: Node, at: int) -> Node:
    child = tree.children[at]
    assert isinstance(child, Tree)
    return child


def _tokens(tree: Node) -> list[Token]:
    return [child for child in tree.children if isinstance(child, Token)]


def _trees(tree: Node) -> list[Node]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _var(token: Token) -> Var:
    return Var(token.rstrip("."), token.endswith(".."))


def _source(tree: Node) -> Param | Number:
    (token,) = _tokens(tree)
    if token.type == "NUMBER":
        return Number(int(token))
    name, *steps = token.split(".")
    return Param(name, tuple(steps))


class _Reader:
    """Turns the tree of one source text into definitions."""

    def __init__(self, source: str, file: str) -> None:
        self.source = source
        self.file = file
        self.operands: dict[str, bool] = {}
        self.bound: dict[str, bool] = {}

    def fail(self, token: Token, title: str, label: str = "", helps: tuple[str, ...] = ()) -> NoReturn:
        line, column = token.line or 1, token.column or 1
        place = Place.of(self.file, self.source, line, column, token.end_column or column + 1)
        raise Error(title, place=place, label=label, helps=helps)

    def tree(self) -> Node:
        try:
            return _grammar().parse(self.source)
        except UnexpectedInput as error:
            found = error.token if isinstance(error, UnexpectedToken) else None
            what = "the definition ends too early" if found is None or found.type in ("$END", "_NL") else f"`{found}`"
            if isinstance(error, UnexpectedCharacters):
                what = f"`{error.char}`"
            place = Place.of(self.file, self.source, error.line, error.column, error.column + len(found or " "))
            label = what if what.startswith("the") else f"{what} cannot stand here"
            raise Error("this definition cannot be read", place=place, label=label) from None

    def definition(self, name: str, tree: Node) -> Definition:
        formals, targets, body = tree.children[1:4]
        operands = () if formals is None else tuple(self.formal(each) for each in _trees(_child(tree, 1)))
        assert isinstance(targets, Tree) and isinstance(body, Tree)
        self.operands = {formal.name: formal.variadic for formal in operands}
        self.bind(tree)
        written = tuple(self.read(each) for each in _trees(targets))
        self.check_reads(body)
        definition = Definition(
            name,
            operands,
            tuple(Formal(read.name, read.spread) for read in written),
            tuple(Read(read.name, read.terms) for read in written),
            self.expr(body),
            **self.clauses(_trees(tree)[-len(tree.children) :]),
            text=self.source[tree.meta.start_pos : tree.meta.end_pos],
        )
        self.check_bound(tree, definition)
        return definition

    def formal(self, tree: Node) -> Formal:
        return Formal(str(_tokens(tree)[0]).rstrip("*"), tree.data == "many")

    def bind(self, tree: Node) -> None:
        """Collects the variables: what stands on the left, under a fold, or whole in a read."""
        targets = _child(tree, 2)
        places = [*targets.iter_subtrees(), *(each for fold in tree.find_data("fold") for each in [_child(fold, 1)])]
        names = [token for place in places for token in place.scan_values(lambda each: isinstance(each, Token))]
        names += [token for kind in ("whole", "concat", "join") for each in tree.find_data(kind) for token in _tokens(each)]
        self.bound = {}
        for token in names:
            if token.type in ("NAME", "MANY", "WHOLE"):
                self.bound[token.rstrip(".:")] = token.endswith("..")
        for read in targets.find_data("read"):
            self.bound.pop(_tokens(read)[0].rstrip("*"), None)
        for ravel in tree.find_data("ravel"):
            self.bound |= {token.rstrip("."): True for token in _tokens(ravel)}

    def check_reads(self, body: Node) -> None:
        for read in body.find_data("read"):
            token = _tokens(read)[0]
            if token.rstrip("*") not in self.operands:
                close = nearest(token, self.operands)
                helps = (f"did you mean `{close[0]}`?",) if close else ()
                self.fail(token, f"`{token}` is no operand", "operands stand in the parentheses before", helps)

    def check_bound(self, tree: Node, definition: Definition) -> None:
        for group in tree.find_data("group"):
            (token,) = _tokens(group)
            if token.rstrip(".") not in self.bound:
                self.fail(token, f"`{token}` is not bound", "an index stands on the left of `=` or under a fold")
        known = {*self.operands, *(formal.name for formal in definition.results)}
        for placing in tree.find_data("placing"):
            token = placing.children[0]
            if isinstance(token, Token) and token not in known:
                self.fail(token, f"`{token}` is neither an operand nor a result", f"one of {', '.join(sorted(known))}")
            for assign in placing.find_data("assign"):
                variable = _tokens(assign)[0]
                if variable not in self.bound:
                    self.fail(variable, f"`{variable}` is no index of this definition")

    def clauses(self, trees: list[Node]) -> dict[str, object]:
        found: dict[str, object] = {}
        for tree in trees:
            match tree.data:
                case "at":
                    found["at"] = tuple(at for placing in _trees(tree) for at in self.placing(placing))
                case "ravel":
                    left, right = _tokens(tree)
                    found["ravel"] = (left.rstrip("."), right.rstrip("."))
                case "sizes":
                    found["sizes"] = tuple((str(_tokens(each)[0]), _source(_child(each, 1))) for each in _trees(tree))
                case "extents":
                    found["extents"] = tuple((str(_tokens(each)[0]), self.expr(_child(each, 1))) for each in _trees(tree))
                case "drop":
                    found["forgotten"] = frozenset(map(str, _tokens(tree)))
                case "by":
                    found["front"] = str(_tokens(tree)[0])
                case _:
                    pass
        return found

    def placing(self, tree: Node) -> list[At]:
        array = tree.children[0]
        name = str(array) if isinstance(array, Token) else None
        return [At(name, str(_tokens(each)[0]), _source(_child(each, 1))) for each in _trees(tree)]

    def read(self, tree: Node) -> Read:
        token = _tokens(tree)[0]
        terms = tree.children[1]
        return Read(
            token.rstrip("*"),
            tuple(self.term(each) for each in _trees(terms)) if isinstance(terms, Tree) else (),
            token.endswith("*"),
        )

    def term(self, tree: Node) -> Term:
        match tree.data:
            case "whole":
                (token,) = _tokens(tree)
                return Whole(token.rstrip(".:"), token.endswith("..:"))
            case "concat":
                return Concat(str(_tokens(tree)[0]))
            case "join":
                return Join(tuple(map(str, _tokens(tree))))
            case _:
                return self.expr(tree)

    def expr(self, tree: Node) -> Expr:
        match tree.data:
            case "add" | "sub" | "mul" | "div":
                return Arith(_SIGNS[tree.data], *map(self.expr, _trees(tree)))
            case "neg":
                return Arith("-", Number(0), self.expr(_child(tree, 0)))
            case "otherwise":
                return Otherwise(*map(self.expr, _trees(tree)))
            case "own" | "call":
                args = tuple(self.expr(each) for each in _trees(_trees(tree)[-1]))
                return Call("@" if tree.data == "own" else str(_tokens(tree)[0]), args)
            case "fold":
                variables = tuple(_var(_tokens(each)[0]) for each in _trees(_child(tree, 1)))
                return Fold(str(_tokens(tree)[0]), variables, self.expr(_child(tree, 2)))
            case "guard":
                return self.guard(tree)
            case "read":
                return self.read(tree)
            case _:
                return self.leaf(tree)

    def leaf(self, tree: Node) -> Expr:
        if tree.data == "size":
            return Size(_var(_tokens(_child(tree, 0))[0]))
        (token,) = _tokens(tree)
        match tree.data:
            case "number":
                return Number(int(token))
            case "none":
                return Number(None)
            case "name" if str(token) in self.bound:
                return Var(str(token))
            case "group":
                return _var(token)
            case _:
                name, *steps = token.split(".")
                return Param(name, tuple(steps))

    def guard(self, tree: Node) -> Guard:
        token = _tokens(_child(tree, 0))[0]
        match self.expr(_child(tree, 1)):
            case Arith("+", Read() as start, Var() as window):
                return Guard(_var(token), start, window)
            case _:
                self.fail(token, "a guard reads `[v.. = ids[i..] + w..]`", "a start that is read, and a window")
