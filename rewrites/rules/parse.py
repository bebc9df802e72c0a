"""Parses rule files to rules; mistakes become errors with a location.

The grammar is `rules.lark`. Beyond it, a rule file is wrong if two laws have one name, if a right side or a condition
uses a variable that nothing binds, or if an operation has two different numbers of arguments.

    beta: slice(L, build(L, x)) => y

    error: rule `beta`: nothing on the left is called `y`
      --> builders.rules:1:32
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NoReturn, TypeAlias, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from ...dialects.errors import Error, Location, nearest
from .rule import (
    All,
    AnyOf,
    Apply,
    Compare,
    Condition,
    Holds,
    Number,
    Rule,
    Symbol,
    Term,
    Variable,
)

Node: TypeAlias = Tree[Token]

# The names of the grammar's terminals in messages.
SPELLING = {
    "NAME": "a name",
    "INT": "a number",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "COLON": "`:`",
    "WHERE": "`where`",
    "AND": "`and`",
    "OR": "`or`",
    "NOT": "`not`",
    "ARROW": "`=>`",
    "COMPARISON": "`=` or `!=`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "STAR": "`*`",
    "SLASH": "`/`",
    "$END": "the end of the file",
}


def parse(text: str, file: str = "<rules>") -> tuple[Rule, ...]:
    """The rules of `text`, in order. Raises `Error` with line, caret and help if it is not a rule file."""
    return _Reader(text, file).rules()


@cache
def _grammar() -> Lark:
    text = Path(__file__).with_name("rules.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=False)


class _Reader:
    """Turns one file's parse tree into rules, and knows the file, to point into it."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.arity: dict[str, tuple[int, int]] = {}

    def rules(self) -> tuple[Rule, ...]:
        found: dict[str, Rule] = {}
        for node in _trees(self.tree()):
            rule = self.rule(node)
            if (before := found.get(rule.name)) is not None:
                self.fail(_tokens(node)[0], f"rule `{rule.name}` is defined twice", f"also in line {before.line}")
            found[rule.name] = rule
        return tuple(found.values())

    def tree(self) -> Node:
        try:
            return _grammar().parse(self.text)  # pyright: ignore[reportUnknownMemberType]
        except UnexpectedInput as error:
            raise self.unreadable(error) from None

    def unreadable(self, error: UnexpectedInput) -> Error:
        """The error for a text that the grammar does not accept."""
        token = cast("Token | None", getattr(error, "token", None))
        label, width = _expected(error), 1
        line, column = error.line, error.column
        if token is None:
            title = f"the rule language has no sign `{self.text[error.pos_in_stream or 0]}`"
        elif token.type != "$END":
            title, width = f"a rule cannot go on with `{token}`", len(token)
        else:
            title = "the rule is not finished"
            lines = self.text.rstrip().splitlines() or [""]
            line, column = len(lines), len(lines[-1]) + 1
        location = Location.of(self.file, self.text, line, column, column + width)
        return Error(title, location=location, label=label, helps=["a rule reads `name: left => right where condition`"])

    def rule(self, node: Node) -> Rule:
        name, (left, right, *where) = _tokens(node)[0], _trees(node)
        pattern = self.term(left)
        if not isinstance(pattern, Apply):
            self.fail(left, f"rule `{name}` would rewrite everything", "the left side must be an operation")
        bound = set(_variables(left))
        condition = self.condition(where[0], bound, str(name)) if where else None
        self.check_bound(right, bound, str(name))
        return Rule(str(name), pattern, self.term(right), condition, name.line or 0)

    def term(self, node: Node, *, counted: bool = True) -> Term:
        """A term; `counted` for those whose operations must agree in their number of arguments."""
        match node.data:
            case "name":
                name = str(_tokens(node)[0])
                return Variable(name) if _is_variable(name) else Symbol(name)
            case "number":
                return Number(int(_tokens(node)[0]))
            case "apply":
                head, args = _tokens(node)[0], _trees(node)
                if counted:
                    self.check_arity(head, len(args))
                return Apply(str(head), tuple(self.term(argument, counted=counted) for argument in args))
            case operator:
                return Apply(operator, tuple(self.term(child, counted=counted) for child in _trees(node)))

    def condition(self, node: Node, bound: set[str], rule: str) -> Condition:
        """A condition; what it binds joins `bound`."""
        match node.data:
            case "any_of":
                return AnyOf(tuple(self.condition(child, bound, rule) for child in _trees(node)))
            case "all_of":
                return All(tuple(self.condition(child, bound, rule) for child in _trees(node)))
            case "compare":
                (left, right), operator = _trees(node), str(_tokens(node)[0])
                self.check_bound(right, bound, rule)
                if operator == "=" and left.data == "name" and _is_variable(_tokens(left)[0]):
                    bound.add(str(_tokens(left)[0]))
                self.check_bound(left, bound, rule)
                return Compare(operator, self.term(left, counted=False), self.term(right, counted=False))
            case kind:
                args = _trees(node)
                for argument in args:
                    self.check_bound(argument, bound, rule)
                terms = tuple(self.term(argument, counted=False) for argument in args)
                return Holds(str(_tokens(node)[0]), terms, negated=kind == "fails")

    def check_bound(self, node: Node, bound: set[str], rule: str) -> None:
        for token in _names(node):
            if _is_variable(token) and token not in bound:
                close = nearest(token, bound) or sorted(bound)
                helps = [f"the left side has {', '.join(f'`{name}`' for name in close)}"]
                self.fail(token, f"rule `{rule}`: nothing on the left is called `{token}`", "unbound", helps)

    def check_arity(self, head: Token, count: int) -> None:
        before, line = self.arity.setdefault(str(head), (count, head.line or 0))
        if before != count:
            self.fail(head, f"`{head}` has {before} arguments in line {line} and {count} here")

    def fail(self, at: Token | Node, title: str, label: str = "", helps: Iterable[str] = ()) -> NoReturn:
        where = at if isinstance(at, Token) else at.meta
        line, column = where.line or 1, where.column or 1
        end = where.end_column if where.end_line == where.line else None
        location = Location.of(self.file, self.text, line, column, end or column + 1)
        raise Error(title, location=location, label=label, helps=helps)


def _trees(node: Node) -> list[Node]:
    return [child for child in node.children if isinstance(child, Tree)]


def _tokens(node: Node) -> list[Token]:
    return [child for child in node.children if isinstance(child, Token)]


def _is_variable(name: str) -> bool:
    """One letter, digits allowed after it: as in mathematics."""
    return name[0].isalpha() and (len(name) == 1 or name[1:].isdecimal())


def _names(node: Node) -> Iterator[Token]:
    """The names that are variables or symbols, not operations, from left to right."""
    if node.data == "name":
        yield from _tokens(node)
    for child in _trees(node):
        yield from _names(child)


def _variables(node: Node) -> Iterator[str]:
    return (str(name) for name in _names(node) if _is_variable(name))


def _expected(error: UnexpectedInput) -> str:
    names = sorted(cast("set[str]", getattr(error, "expected", ()))) if isinstance(error, UnexpectedToken) else []
    words = [SPELLING.get(name, f"`{name.lower()}`") for name in names]
    return f"expected {' or '.join(dict.fromkeys(words))}" if words else ""
