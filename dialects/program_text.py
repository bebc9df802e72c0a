"""Reads a program from its text, and lets our ops read their own text inside xDSL's parser.

Layouts, types and parameters have their own grammar (`f32[data*128, 256]{+model}` is not MLIR's). Their readers therefore
take the raw text at the parser's position instead of its tokens. Only this file knows how.
"""

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Self, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import AttributeInvT, Data, SSAValue
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Position, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken

from .ground.errors import Error, Location
from .mesh import Mesh

T = TypeVar("T")
_STRING = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


# A comment, or another string, may hold anything.
_MESH = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*+"?|\barray\.mesh(?:\.\w+)?\s*=\s*"([^"\n]*)"')


class _Lexer(MLIRLexer):
    """xDSL's lexer with another rule for strings, because xDSL's takes exponential time for a string that does not end."""

    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        if _STRING.match(self.input.content, start_pos) is None:
            at = Span(start_pos, start_pos + 1, self.input)
            raise ParseError(
                at, r"this string does not end on its line, or has an escape other than `\n`, `\t`, `\\`, `\"` and `\7F`"
            )
        return super()._lex_string_literal(start_pos)


class _Reader(Parser):
    """xDSL's parser with our lexer. It rejects a value that is read before the op that makes it.

    xDSL's parser lets an op read a value that a later op makes, or its own, as the graphs of some dialects do. In our dialects
    this has no meaning.
    """

    def __init__(self, context: Context, text: str, name: str) -> None:
        super().__init__(context, "", name)
        self._parser_state = ParserState(_Lexer(Input(text, name)))
        self.meshes = tuple(_mesh(self, declared) for declared in _declarations(text))

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        if operand.operand_name not in self.ssa_values:
            self.raise_error(f"no op before this one makes `%{operand.operand_name}`", operand.span)
        return super().resolve_operand(operand, type)


def read_module(context: Context, text: str, name: str = "<unknown>", implicit: bool = True) -> ModuleOp:
    """Parses a module from text. Every text is read here.

    Raises ParseError. `implicit` allows ops without a module around them.
    """
    parser = _Reader(context, text, name)
    try:
        return parser.parse_module(implicit)
    except (RecursionError, MemoryError):
        parser.raise_error("regions or parameters are nested too deeply here")
    except ValueError as error:
        # A number or a name that Python or xDSL does not accept.
        parser.raise_error(str(error))


def error_of(error: ParseError | VerifyException, title: str = "") -> Error:
    """Converts an xDSL error to ours: a parser's error keeps its span, a verifier's error gets a note with the op."""
    if isinstance(error, VerifyException):
        return Error(f"{title}{error}", notes=[f"the op is `{op}`" for op in _marked(error)])
    span, at = error.span, error.span.get_location()
    text = span.input.content if isinstance(span.input.content, str) else ""
    line = text[text.rfind("\n", 0, span.start) + 1 :].partition("\n")[0]
    end = min(at.col + max(len(span), 1), max(len(line), at.col) + 1)
    return Error(title + error.msg.strip(), location=Location(span.input.name, at.line, at.col, end, line))


def _marked(error: VerifyException) -> list[str]:
    """The op that xDSL underlines in its notes: a list of one text, or empty."""
    lines = [line for note in getattr(error, "__notes__", ()) for line in str(note).splitlines()]
    return [op.strip() for op, mark in pairwise(lines) if mark.lstrip().startswith("^^")][:1]


def meshes(parser: AttrParser) -> tuple[Mesh, ...]:
    """The meshes that the text declares, whose axes its types may name. Works with the parser of `xdsl-opt`, too."""
    if isinstance(parser, _Reader):
        return parser.meshes
    return tuple(_mesh(parser, declared) for declared in _declarations(parser.lexer.input.content))


@lru_cache(maxsize=4)
def _declarations(text: str) -> tuple[re.Match[str], ...]:
    """Finds the declarations of meshes in a text. Generic syntax has them behind the types that name their axes."""
    return tuple(found for found in _MESH.finditer(text) if found[1] is not None)


def _mesh(parser: AttrParser, declared: re.Match[str]) -> Mesh:
    try:
        return Mesh.parse(declared[1])
    except Error as error:
        parser.raise_error(f'`array.mesh = "{declared[1]}"` is not a mesh: {error}', *declared.span(1))


def take_match(parser: AttrParser, pattern: re.Pattern[str], what: str, read: Callable[[re.Match[str]], T]) -> T:
    """Returns what `read` makes of the text that matches `pattern` at the parser's position, and moves past the text.

    Raises the parser's error, `expected WHAT`, when nothing matches, and an `Error` of `read` as the parser's error at the
    text. The matched text may hold anything: the lexer never sees it.
    """
    found = pattern.match(parser.lexer.input.content, parser.pos)
    if found is None:
        parser.raise_error(f"expected {what}")
    go_on(parser, found.end())
    try:
        return read(found)
    except Error as error:
        parser.raise_error(str(error), *found.span())


def go_on(parser: AttrParser, position: int) -> None:
    """Moves the parser to `position` of its input."""
    parser._resume_from(position)  # pyright: ignore[reportPrivateUsage]  # xDSL has no public way to move a parser


def behind(parser: AttrParser, start: int) -> str:
    """The text from `start` up to the parser's current token, without trailing blanks."""
    return parser.lexer.input.content[start : parser.pos].rstrip()


class TextAttr(Data[T]):
    """An attribute with its own text syntax. Our ops print the bare text; MLIR's syntax prints it in angle brackets."""

    @cached_property
    def text(self) -> str:
        """The bare text, which `read` parses."""
        raise NotImplementedError

    @classmethod
    def read(cls, parser: AttrParser) -> Self:
        raise NotImplementedError

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> T:
        with parser.in_angle_brackets():
            return cls.read(parser).data

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.text}>")
