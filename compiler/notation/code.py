"""Python code whose nodes have the positions of their phrases in the text, so that JAX's source lines point there."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

from ...dialects.definitions.signs import SIGNS
from ...dialects.errors import Span

Expr: TypeAlias = ast.expr
N = TypeVar("N", bound="ast.expr | ast.stmt | ast.keyword | ast.arg")


@dataclass(frozen=True, slots=True)
class Code:
    """Makes nodes with the position of one span."""

    span: Span

    def put(self, node: N) -> N:
        """The node, at this position."""
        node.lineno, node.col_offset = self.span.line, self.span.column - 1
        node.end_lineno, node.end_col_offset = self.span.end_line, self.span.end_column - 1
        return node

    def name(self, name: str) -> Expr:
        return self.put(ast.Name(name, ast.Load()))

    def value(self, value: object) -> Expr:
        """A constant, or a tuple or slice of constants and of code, which is kept."""
        match value:
            case ast.expr():
                return value
            case tuple():
                return self.put(ast.Tuple([*map(self.value, cast("tuple[object, ...]", value))], ast.Load()))
            case slice():
                cut = cast(Any, value)
                return self.put(ast.Slice(*map(self.value, (cut.start, cut.stop, cut.step))))
            case _:
                return self.put(ast.Constant(value))  # pyright: ignore[reportArgumentType]

    def call(self, function: str, *args: object, **keywords: object) -> Expr:
        """`jnp.sum(x, axis=1)`: arguments that are not code yet become constants."""
        module, _, name = function.rpartition(".")
        head = self.put(ast.Attribute(self.name(f"_{module}"), name, ast.Load())) if module else self.name(function)
        named = [self.put(ast.keyword(key, self.value(each))) for key, each in keywords.items()]
        return self.put(ast.Call(head, [*map(self.value, args)], named))

    def index(self, array: Expr, item: object) -> Expr:
        """`x[0, :, ids]`."""
        return self.put(ast.Subscript(array, self.value(item), ast.Load()))

    def sign(self, name: str, *args: Expr) -> Expr:
        """A sign of the notation, by the name of its op, applied to code."""
        match SIGNS[name].node():
            case ast.unaryop() as sign:
                return self.put(ast.UnaryOp(sign, args[0]))
            case ast.cmpop() as sign:
                return self.put(ast.Compare(args[0], [sign], [args[1]]))
            case sign:
                return self.put(ast.BinOp(args[0], sign, args[1]))

    def assign(self, names: Sequence[str], value: Expr) -> ast.stmt:
        targets: list[ast.expr] = [self.put(ast.Name(name, ast.Store())) for name in names]
        return self.put(ast.Assign([targets[0] if len(targets) == 1 else self.put(ast.Tuple(targets, ast.Store()))], value))

    def scope(self, name: str, body: list[ast.stmt]) -> ast.stmt:
        """`with jax.named_scope("h"): ...`: the value computed in it is called `h`."""
        return self.put(ast.With([ast.withitem(self.call("jax.named_scope", name))], body))

    def function(self, name: str, arguments: Sequence[str], body: list[ast.stmt], result: Expr) -> ast.stmt:
        given = ast.arguments([], [self.put(ast.arg(each)) for each in arguments], None, [], [], None, [])
        return self.put(ast.FunctionDef(name, given, [*body, self.put(ast.Return(result))], []))
