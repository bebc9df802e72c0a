"""Python code whose nodes have the positions of their phrases in the text, so that JAX's source lines point there."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict, cast

from ...dialects.definitions.signs import SIGNS
from ...dialects.errors import Span

Expr: TypeAlias = ast.expr


class At(TypedDict):
    """The position of a Python node."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


@dataclass(frozen=True, slots=True)
class Code:
    """Makes nodes with the position of one span."""

    span: Span

    @property
    def at(self) -> At:
        line, end = self.span.line, self.span.end_line
        return {
            "lineno": line,
            "col_offset": self.span.column - 1,
            "end_lineno": end,
            "end_col_offset": self.span.end_column - 1,
        }

    def name(self, name: str) -> Expr:
        return ast.Name(name, ast.Load(), **self.at)

    def value(self, value: object) -> Expr:
        """A constant; negative numbers, tuples, slices and infinities are expressions in Python."""
        match value:
            case tuple():
                given = cast("tuple[object, ...]", value)
                return ast.Tuple([self.value(each) for each in given], ast.Load(), **self.at)
            case slice():
                cut = cast(Any, value)
                return ast.Slice(*(self.value(each) for each in (cut.start, cut.stop, cut.step)), **self.at)
            case _:
                return ast.Constant(value, **self.at)  # pyright: ignore[reportArgumentType]

    def call(self, function: str, *args: Expr | object, **keywords: object) -> Expr:
        """`jnp.sum(x, axis=1)`: arguments that are not code yet become constants."""
        module, _, name = function.rpartition(".")
        head = ast.Attribute(self.name(f"_{module}"), name, ast.Load(), **self.at) if module else self.name(function)
        given = [arg if isinstance(arg, ast.expr) else self.value(arg) for arg in args]
        named = [ast.keyword(key, self.value(each), **self.at) for key, each in keywords.items()]
        return ast.Call(head, given, named, **self.at)

    def index(self, array: Expr, items: Sequence[Expr | object]) -> Expr:
        """`x[0, :, ids]`."""
        parts = [each if isinstance(each, ast.expr) else self.value(each) for each in items]
        return ast.Subscript(array, ast.Tuple(parts, ast.Load(), **self.at), ast.Load(), **self.at)

    def sign(self, name: str, *args: Expr) -> Expr:
        """A sign of the notation, by the name of its op, applied to code."""
        match SIGNS[name].node():
            case ast.unaryop() as sign:
                return ast.UnaryOp(sign, args[0], **self.at)
            case ast.cmpop() as sign:
                return ast.Compare(args[0], [sign], [args[1]], **self.at)
            case sign:
                return ast.BinOp(args[0], sign, args[1], **self.at)

    def assign(self, names: Sequence[str], value: Expr) -> ast.stmt:
        targets: list[ast.expr] = [ast.Name(name, ast.Store(), **self.at) for name in names]
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store(), **self.at)
        return ast.Assign([target], value, **self.at)

    def scope(self, name: str, body: list[ast.stmt]) -> ast.stmt:
        """`with jax.named_scope("h"): ...`: the value computed in it is called `h`."""
        return ast.With([ast.withitem(self.call("jax.named_scope", name))], body, **self.at)

    def give(self, value: Expr) -> ast.stmt:
        return ast.Return(value, **self.at)

    def function(self, name: str, arguments: Sequence[str], body: list[ast.stmt]) -> ast.stmt:
        given = ast.arguments([], [ast.arg(each, **self.at) for each in arguments], None, [], [], None, [])
        return ast.FunctionDef(name, given, body, [], **self.at)
