"""Python code, whose nodes have the positions of their phrases in the text, so that JAX's source lines point there.

A value is the code of a whole array, with the index that runs along each of its dims.

x[b, d] - m[b]   -->   x: (b, d), m: (b)   -->   _x - jnp.expand_dims(_m, (1,)): (b, d)
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

from ...dialects.definitions.operators import SIGNS
from ...dialects.ground.errors import Span
from .terms import CheckedIndex, repeats

Expr = ast.expr
N = TypeVar("N", bound="ast.expr | ast.stmt | ast.keyword | ast.arg")


@dataclass(frozen=True, slots=True)
class Code:
    """Makes nodes with the position of one span."""

    span: Span

    def put(self, node: N) -> N:
        """Gives a node this position, and returns it."""
        node.lineno, node.col_offset = self.span.line, self.span.column - 1
        node.end_lineno, node.end_col_offset = self.span.end_line, self.span.end_column - 1
        return node

    def name(self, name: str) -> Expr:
        return self.put(ast.Name(name, ast.Load()))

    def value(self, value: object) -> Expr:
        """Makes a constant, or a tuple or slice of constants and code; code is returned as it is."""
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
        """Makes a call such as `jnp.sum(x, axis=1)`; arguments that are not code yet become constants."""
        module, _, name = function.rpartition(".")
        head = self.put(ast.Attribute(self.name(f"_{module}"), name, ast.Load())) if module else self.name(function)
        named = [self.put(ast.keyword(key, self.value(each))) for key, each in keywords.items()]
        return self.put(ast.Call(head, [*map(self.value, args)], named))

    def index(self, array: Expr, item: object) -> Expr:
        """Makes a subscript such as `x[0, :, ids]`."""
        return self.put(ast.Subscript(array, self.value(item), ast.Load()))

    def sign(self, name: str, *args: Expr) -> Expr:
        """Applies an operator of the notation, by the name of its op, to code."""
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
        """Makes `with jax.named_scope("h"): ...`, so that the value computed in it is called `h`."""
        return self.put(ast.With([ast.withitem(self.call("jax.named_scope", name))], body))

    def function(self, name: str, arguments: Sequence[str], body: list[ast.stmt], result: Expr) -> ast.stmt:
        given = ast.arguments([], [self.put(ast.arg(each)) for each in arguments], None, [], [], None, [])
        return self.put(ast.FunctionDef(name, given, [*body, self.put(ast.Return(result))], []))


Dims: TypeAlias = "tuple[CheckedIndex | None, ...]"
"""For each dim the index that runs along it; None for a dim of extent 1 without an index."""


@dataclass(frozen=True, slots=True)
class ArrayCode:
    """Code for an array. A `number` is a Python number, which combines with arrays of every rank."""

    code: Expr
    dims: Dims
    number: bool = False

    @property
    def indices(self) -> tuple[CheckedIndex, ...]:
        return tuple(index for index in self.dims if index is not None)


def fitted(code: Code, value: ArrayCode, order: Sequence[CheckedIndex | None]) -> ArrayCode:
    """The value with dims in this order; missing ones become dims of extent 1."""
    wanted = tuple(index if index in value.dims else None for index in order)
    if value.number or value.dims == wanted or not value.dims:
        return value
    value = transposed(code, squeezed(code, value), [index for index in wanted if index is not None])
    missing = tuple(dim for dim, index in enumerate(wanted) if index is None)
    return ArrayCode(code.call("jnp.expand_dims", value.code, missing), wanted) if missing else value


def broadcast(code: Code, value: ArrayCode, order: Sequence[CheckedIndex | None]) -> ArrayCode:
    """The value with dims in this order, each as long as the range of its index."""
    if all(index in value.dims for index in order):
        return fitted(code, value, order)
    shape = tuple(1 if index is None else index.extent for index in order)
    return ArrayCode(code.call("jnp.broadcast_to", fitted(code, value, order).code, shape), tuple(order))


def squeezed(code: Code, value: ArrayCode) -> ArrayCode:
    """The value without the dims along which no index runs."""
    units = tuple(dim for dim, index in enumerate(value.dims) if index is None)
    return ArrayCode(code.call("jnp.squeeze", value.code, units), value.indices) if units else value


def transposed(code: Code, value: ArrayCode, order: Sequence[CheckedIndex]) -> ArrayCode:
    permutation = tuple(value.dims.index(index) for index in order)
    if permutation == tuple(range(len(order))):
        return value
    return ArrayCode(code.call("jnp.transpose", value.code, permutation), tuple(order))


def alongside(
    code: Code, values: Sequence[ArrayCode], order: Sequence[CheckedIndex], led: bool = False
) -> tuple[list[ArrayCode], Dims]:
    """The values with their dims in one order: that of a value with all indices if the others agree with it.

    If they are `led`, as the operands of `where`, JAX adds leading dims that one of them lacks.
    """
    dims = common(values, order)
    return [(ending if led else fitted)(code, value, dims) for value in values], dims


def ending(code: Code, value: ArrayCode, order: Dims) -> ArrayCode:
    """The value with its dims in this order; leading ones may be missing."""
    if value.dims and None not in value.dims:
        value = transposed(code, value, [index for index in order if index is not None and index in value.dims])
    return value if value.dims == order[len(order) - len(value.dims) :] else fitted(code, value, order)


def common(values: Sequence[ArrayCode], order: Sequence[CheckedIndex]) -> Dims:
    """The dims of a combination: those of the values if each dim has at most one index, otherwise one dim for each index."""
    every = [value.dims for value in values if value.dims and not value.number]
    if len(set(map(len, every))) == 1:
        columns = [set(column) - {None} for column in zip(*every, strict=True)]
        if all(len(column) <= 1 for column in columns) and not repeats(index for column in columns for index in column):
            return tuple(next(iter(column), None) for column in columns)
    indices = ordered((index for dims in every for index in dims if index is not None), order)
    for dims in every:
        if set(indices) <= set(dims) and all(_follows(each, dims) for each in every):
            return tuple(index for index in dims if index is not None)
    return tuple(indices)


def _follows(dims: Dims, first: Dims) -> bool:
    order = [first.index(index) for index in dims if index is not None]
    return order == sorted(order)


def ordered(indices: Iterable[CheckedIndex], order: Sequence[CheckedIndex]) -> list[CheckedIndex]:
    """The indices, each once; those of `order` come first, in its order."""
    every = dict.fromkeys(indices)
    return [*(index for index in order if index in every), *(index for index in every if index not in order)]
