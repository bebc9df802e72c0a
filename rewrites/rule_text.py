"""Reading rule files: text to rules, or an error that points at the place.

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
from typing import Any, NoReturn

from lark import Lark, Token, Tree, UnexpectedInput
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF

from ..dialects.errors import Error, Place, nearest
from .rule import All, Apply, Compare, Condition, Holds, Number, Rule, Symbol, Term, Variable
from .rule import Any as Any_

Node = Tree[Any]

# What the grammar's terminals are called when a person is told what was expected.
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
    "COMPARISON": "`=` or `!=`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "STAR": "`*`",
    "SLASH": "`/`",
    "$END": "the end of the file",
}


def parse(text: str, file: str = "<rules>") -> tuple[Rule, ...]:
    """The rules that `text` states, in order; raises `Error` with line, caret and help if it is not a rule file."""
    return _Reader(text, file).rules()


@cache
def _grammar() -> Lark:
    text = Path(__file__).with_name("rules.lark").read_text()
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=False)


class _Reader:
    """Turns one file's parse tree into rules, and knows the file, to point into it."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.arity: dict[str, tuple[int, int]] = {}

    def rules(self) -> tuple[Rule, ...]:
        found: dict[str, Rule] = {}
        for node in self.tree().children:
            rule = self.rule(node)
            if rule.name in found:
                self.fail(node.children[0], f"rule `{rule.name}` is stated twice", f"also in line {found[rule.name].line}")
            found[rule.name] = rule
        return tuple(found.values())

    def tree(self) -> Node:
        try:
            return _grammar().parse(self.text)
        except UnexpectedInput as error:
            raise self.unreadable(error) from None

    def unreadable(self, error: UnexpectedInput) -> Error:
        line, column, width = error.line, error.column, 1
        if isinstance(error, UnexpectedEOF) or line < 1 or _at_end(error):
            lines = self.text.splitlines() or [""]
            line, column = len(lines), len(lines[-1]) + 1
            title = "the rule is not finished"
        else:
            token = getattr(error, "token", None) or self.text[error.pos_in_stream or 0]
            width = len(token)
            title = f"a rule cannot go on with `{token}`"
        place = Place.of(self.file, self.text, line, column, column + width)
        return Error(title, place=place, label=_expected(error), helps=["a rule reads `name: left => right where condition`"])

    def rule(self, node: Node) -> Rule:
        name, left, right, *where = node.children
        match self.term(left):
            case Apply() as pattern:
                pass
            case _:
                self.fail(left, f"rule `{name}` would rewrite everything", "the left side must be an operation")
        bound = set(_variables(left))
        condition = self.condition(where[0], bound, str(name)) if where else None
        self.check_bound(right, bound, str(name))
        return Rule(str(name), pattern, self.term(right), condition, name.line)

    def term(self, node: Node, *, counted: bool = True) -> Term:
        match node.data:
            case "name":
                name = str(node.children[0])
                return Variable(name) if _is_variable(name) else Symbol(name)
            case "number":
                return Number(int(node.children[0]))
            case "apply":
                head, *args = node.children
                if counted:
                    self.check_arity(head, len(args))
                return Apply(str(head), tuple(self.term(argument, counted=counted) for argument in args))
            case operator:
                return Apply(str(operator), tuple(self.term(child, counted=counted) for child in node.children))

    def condition(self, node: Node, bound: set[str], rule: str) -> Condition:
        match node.data:
            case "any_of":
                return Any_(tuple(self.condition(child, bound, rule) for child in node.children))
            case "all_of":
                return All(tuple(self.condition(child, bound, rule) for child in node.children))
            case "compare":
                left, operator, right = node.children
                self.check_bound(right, bound, rule)
                if operator == "=" and left.data == "name" and _is_variable(str(left.children[0])):
                    bound.add(str(left.children[0]))
                self.check_bound(left, bound, rule)
                return Compare(str(operator), self.term(left, counted=False), self.term(right, counted=False))
            case kind:
                name, *args = node.children
                for argument in args:
                    self.check_bound(argument, bound, rule)
                terms = tuple(self.term(argument, counted=False) for argument in args)
                return Holds(str(name), terms, negated=kind == "fails")

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
        end = where.end_column if where.end_line == where.line else None
        line, column = where.line or 1, where.column or 1
        place = Place.of(self.file, self.text, line, column, end or column + 1)
        raise Error(title, place=place, label=label, helps=helps)


def _is_variable(name: str) -> bool:
    """One letter, digits allowed after it: as in mathematics."""
    return name[0].isalpha() and (len(name) == 1 or name[1:].isdecimal())


def _names(node: Node) -> Iterator[Token]:
    """The names that stand for things, not for operations, from left to right."""
    for name in node.find_data("name"):
        yield name.children[0]


def _variables(node: Node) -> Iterator[str]:
    return (str(name) for name in _names(node) if _is_variable(name))


def _at_end(error: UnexpectedInput) -> bool:
    token = getattr(error, "token", None)
    return isinstance(token, Token) and token.type == "$END"


def _expected(error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedCharacters):
        return "not a sign of the rule language"
    names = sorted(getattr(error, "expected", None) or getattr(error, "accepts", None) or ())
    words = [SPELLING.get(name, "`=>`" if name.startswith("__ANON") else f"`{name.lower()}`") for name in names]
    return f"expected {' or '.join(dict.fromkeys(words))}" if words else ""
