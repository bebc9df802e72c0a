"""The parameters of a named op: what JAX calls an equation's `params`, as immutable data that prints exactly.

One attribute holds them all, because a primitive's parameters are a record that is passed on whole (encoded once at
tracing, decoded once at running) and read by name in between. Its text is a Python call's keyword list:

    {axes = (0,), mode = GatherScatterMode(name="CLIP"), new_dtype = dtype(name="bfloat16"), value = -inf}
"""

import ast
import json
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser

from .ground.dtypes import kind_of
from .program_text import TextAttr, go_on

Literal: TypeAlias = "bool | int | float | str | tuple[Literal, ...] | Record | None"


@dataclass(frozen=True, slots=True)
class Record:
    """A named value with fields, for a parameter that is not plain data: `dtype(name="bfloat16")`."""

    name: str
    fields: tuple[tuple[str, Literal], ...] = ()

    def __getitem__(self, field: str) -> Literal:
        return dict(self.fields)[field]

    def __str__(self) -> str:
        return literal_text(self)


def literal(number: Any) -> Literal:
    """Converts a NumPy number to plain data; a complex number becomes a record of its two parts."""
    match kind_of(np.asarray(number).dtype):
        case "b":
            return bool(number)
        case "i" | "u":
            return int(number)
        case "c":
            return Record("complex", (("real", float(number.real)), ("imag", float(number.imag))))
        case _:
            return float(number)


def literal_text(value: Literal) -> str:
    """Returns the text of a literal. `parse_params` reads it back exactly, including infinities, NaN and the sign of zero."""
    match value:
        case None | bool() | int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case tuple():
            return f"({', '.join(map(literal_text, value))}{',' if len(value) == 1 else ''})"
        case Record(name, fields):
            return f"{name}({', '.join(f'{field}={literal_text(each)}' for field, each in fields)})"


def _read(tree: ast.expr) -> Literal:
    match tree:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
            return -float("inf")
        case ast.Tuple(elts=elements):
            return tuple(map(_read, elements))
        case ast.Call(func=function, args=[], keywords=keywords):
            return Record(ast.unparse(function), tuple((str(each.arg), _read(each.value)) for each in keywords))
        case _:
            raise ValueError(f"`{ast.unparse(tree)}` is not a literal")


@lru_cache(maxsize=1 << 14)
def parse_params(text: str) -> "ParamsAttr":
    """Parses parameters with their braces: `{axis = 0}`. Raises ValueError or SyntaxError if the text is malformed."""
    tree = ast.parse(f"params({text[1:-1]})", mode="eval").body
    if not isinstance(tree, ast.Call) or tree.args or any(each.arg is None for each in tree.keywords):
        raise ValueError("write parameters as `{name = value, ...}`")
    return ParamsAttr.of(**{str(each.arg): _read(each.value) for each in tree.keywords})


_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')


@irdl_attr_definition
class ParamsAttr(TextAttr[tuple[tuple[str, Literal], ...]]):
    """An immutable mapping from parameter names to literals, sorted by name.

    Two are equal when they print alike: `1`, `1.0` and `True` are three different parameters, and so are `0.0` and
    `-0.0`, while every NaN is the same.
    """

    name = "lax.params"

    @staticmethod
    def of(**params: Literal) -> "ParamsAttr":
        return ParamsAttr(tuple(sorted(params.items(), key=itemgetter(0))))

    def changed(self, **params: Literal) -> "ParamsAttr":
        """The parameters with these values added, or in place of those that were there."""
        return ParamsAttr.of(**{**self._by_name, **params})

    @cached_property
    def _by_name(self) -> dict[str, Literal]:
        return dict(self.data)

    def __getitem__(self, name: str) -> Literal:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self.data)

    # The mapping's `get`, not xDSL's own, which turns data into attributes.
    def get(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, name: str, default: Literal = None
    ) -> Literal:
        return self._by_name.get(name, default)

    def items(self) -> tuple[tuple[str, Literal], ...]:
        return self.data

    @cached_property
    def text(self) -> str:
        return f"{{{', '.join(f'{name} = {literal_text(value)}' for name, value in self.data)}}}"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ParamsAttr) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)

    @classmethod
    def read(cls, parser: AttrParser) -> "ParamsAttr":
        content, start = parser.lexer.input.content, parser.pos
        marks = _MARK.finditer(content, start)
        if not content.startswith("{", start) or (end := next((m.end() for m in marks if m[0] == "}"), None)) is None:
            parser.raise_error("expected parameters, `{name = value, ...}`")
        try:
            params = parse_params(content[start:end])
        except (ValueError, SyntaxError) as error:
            why = error.msg if isinstance(error, SyntaxError) else error
            parser.raise_error(f"these parameters cannot be read: {why}", start, end)
        go_on(parser, end)
        return params


NO_PARAMS = ParamsAttr.of()
