"""Parses rule files. Mistakes become errors with a location.

The grammar is `rules.lark`. Beyond it, a rule file is wrong if two laws have one name, if a right side or a condition
uses a variable that nothing binds, or if an operation has two different numbers of arguments.

    beta: slice(L, build(L, x)) => y

    error: rule `beta`: nothing on the left is called `y`
      --> builders.rules:1:32
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn, cast

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from ...dialects import grammar
from ...dialects.grammar import SyntaxNode, TooDeep, Word, phrases, span_of, words
from ...dialects.ground.errors import Error, Location, Span, nearest
from .rule import (
    All,
    AnyOf,
    Compare,
    Condition,
    Holds,
    Rule,
    RuleApply,
    RuleNumber,
    Symbol,
    Term,
    Variable,
)

_GRAMMAR = Path(__file__).with_name("rules.lark")
_DEEPEST = 50
"""The deepest nesting of terms in a rule."""

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
    """Parses the rules of a text, in order. Raises `Error` with line, caret and help if it is not a rule file."""
    return _Reader(text, file).rules()


class _Reader:
    """Turns the parse tree of one file into rules. Errors point into the file."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.arity: dict[str, tuple[int, int]] = {}

    def rules(self) -> tuple[Rule, ...]:
        found: dict[str, Rule] = {}
        for node in phrases(self.tree()):
            rule = self.rule(node)
            if (before := found.get(rule.name)) is not None:
                self.fail(words(node)[0], f"rule `{rule.name}` is defined twice", f"also in line {before.line}")
            found[rule.name] = rule
        return tuple(found.values())

    def tree(self) -> SyntaxNode:
        try:
            return grammar.read(_GRAMMAR, self.text, deepest=_DEEPEST)
        except TooDeep as error:
            self.fail(error.span, "the rule is nested too deeply")
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

    def rule(self, node: SyntaxNode) -> Rule:
        name, (left, right, *where) = words(node)[0], phrases(node)
        pattern = self.term(left)
        if not isinstance(pattern, RuleApply):
            self.fail(left, f"rule `{name}` would rewrite everything", "the left side must be an operation")
        bound = set(_variables(left))
        condition = self.condition(where[0], bound, name.text) if where else None
        self.check_bound(right, bound, name.text)
        return Rule(name.text, pattern, self.term(right), condition, name.span.line)

    def term(self, node: SyntaxNode, *, counted: bool = True) -> Term:
        """Reads a term. With `counted`, an operation must have the same number of arguments everywhere."""
        match node.data:
            case "name":
                name = str(words(node)[0])
                return Variable(name) if _is_variable(name) else Symbol(name)
            case "number":
                return RuleNumber(int(words(node)[0].text))
            case "apply":
                head, args = words(node)[0], phrases(node)
                if counted:
                    self.check_arity(head, len(args))
                terms = tuple(self.term(argument, counted=counted) for argument in args)
                return RuleApply(str(head), terms, self.location(head.span))
            case operator:
                terms = tuple(self.term(child, counted=counted) for child in phrases(node))
                return RuleApply(operator, terms, self.location(span_of(node)))

    def condition(self, node: SyntaxNode, bound: set[str], rule: str) -> Condition:
        """Reads a condition, and adds the variables that it binds to `bound`."""
        match node.data:
            case "any_of":
                return AnyOf(tuple(self.condition(child, bound, rule) for child in phrases(node)))
            case "all_of":
                return All(tuple(self.condition(child, bound, rule) for child in phrases(node)))
            case "compare":
                (left, right), operator = phrases(node), str(words(node)[0])
                self.check_bound(right, bound, rule)
                if operator == "=" and left.data == "name" and _is_variable(words(left)[0].text):
                    bound.add(str(words(left)[0]))
                self.check_bound(left, bound, rule)
                return Compare(operator, self.term(left, counted=False), self.term(right, counted=False))
            case kind:
                args = phrases(node)
                for argument in args:
                    self.check_bound(argument, bound, rule)
                terms = tuple(self.term(argument, counted=False) for argument in args)
                return Holds(str(words(node)[0]), terms, negated=kind == "fails")

    def check_bound(self, node: SyntaxNode, bound: set[str], rule: str) -> None:
        for token in _names(node):
            if _is_variable(token.text) and token.text not in bound:
                close = nearest(token.text, bound) or sorted(bound)
                helps = [f"the left side has {', '.join(f'`{name}`' for name in close)}"]
                self.fail(token, f"rule `{rule}`: nothing on the left is called `{token}`", "unbound", helps)

    def check_arity(self, head: Word, count: int) -> None:
        before, line = self.arity.setdefault(str(head), (count, head.span.line))
        if before != count:
            self.fail(head, f"`{head}` has {before} arguments in line {line} and {count} here")

    def fail(self, at: Word | SyntaxNode | Span, title: str, label: str = "", helps: Iterable[str] = ()) -> NoReturn:
        where = at if isinstance(at, Span) else span_of(at)
        raise Error(title, location=self.location(where), label=label, helps=helps)

    def location(self, where: Span) -> Location:
        end = where.end_column if where.end_line == where.line else where.column + 1
        return Location.of(self.file, self.text, where.line, where.column, end)


def _is_variable(name: str) -> bool:
    """Whether a name is a variable: one letter, perhaps followed by digits, as in mathematics."""
    return name[0].isalpha() and (len(name) == 1 or name[1:].isdecimal())


def _names(node: SyntaxNode) -> Iterator[Word]:
    """The names in a phrase that are variables or symbols, not operations, from left to right."""
    if node.data == "name":
        yield from words(node)
    for child in phrases(node):
        yield from _names(child)


def _variables(node: SyntaxNode) -> Iterator[str]:
    return (name.text for name in _names(node) if _is_variable(name.text))


def _expected(error: UnexpectedInput) -> str:
    names = sorted(cast("set[str]", getattr(error, "expected", ()))) if isinstance(error, UnexpectedToken) else []
    words = [SPELLING.get(name, f"`{name.lower()}`") for name in names]
    return f"expected {' or '.join(dict.fromkeys(words))}" if words else ""
