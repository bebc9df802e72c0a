"""The common end of the text of all our ops: hints, operand types, result types.

    lax.dot_general %0, %1 {...} attributes {provenance = "mlp.py:12"} : f32[64, 8], f32[8, 8] -> f32[64, 8]
                                 |--------- signature ------------------------------------------------------|

An op that has only operands or only results writes their types alone, without an arrow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from .text import behind
from .types import ArrayType, parse_type


@dataclass(frozen=True, slots=True)
class Signature:
    """The text after the operands: the types on both sides of the arrow, and attributes that are hints."""

    operands: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    attributes: dict[str, Attribute]


def array_types(values: Sequence[SSAValue]) -> tuple[ArrayType, ...]:
    """The types of values that the op's definition has already found to be arrays."""
    return tuple(value.type for value in values if isinstance(value.type, ArrayType))


def type_list(types: Iterable[Attribute]) -> str:
    return ", ".join(each.text if isinstance(each, ArrayType) else str(each) for each in types)


def print_operands(printer: Printer, operands: Sequence[SSAValue]) -> None:
    if operands:
        printer.print_string(" ")
        printer.print_list(operands, printer.print_ssa_value)


def print_signature(printer: Printer, op: Operation) -> None:
    if op.attributes:
        printer.print_op_attributes(op.attributes, print_keyword=True)
    sides = [type_list(each) for each in (op.operand_types, op.result_types) if each]
    printer.print_string(f" : {' -> '.join(sides) or '()'}")


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Reads `%0, %1`, or nothing."""
    first = parser.parse_optional_unresolved_operand()
    operands = [] if first is None else [first]
    while operands and parser.parse_optional_punctuation(",") is not None:
        operands.append(parser.parse_unresolved_operand())
    return operands


def parse_attributes(parser: Parser) -> dict[str, Attribute]:
    attributes = parser.parse_optional_attr_dict_with_keyword()
    return {} if attributes is None else dict(attributes.data)


def parse_types(parser: Parser) -> tuple[ArrayType, ...]:
    """Reads `f32[8], i32[]`, or `()`."""
    if parser.parse_optional_punctuation("(") is not None:
        parser.parse_punctuation(")")
        return ()
    types = [parse_type(parser)]
    while parser.parse_optional_punctuation(",") is not None:
        types.append(parse_type(parser))
    return tuple(types)


def parse_signature(parser: Parser, unresolved: Sequence[UnresolvedOperand]) -> tuple[Sequence[SSAValue], Signature]:
    """Reads the end of an op and resolves the operands read before it."""
    attributes = parse_attributes(parser)
    parser.parse_punctuation(":")
    start = parser.pos
    left = parse_types(parser)
    if unresolved:
        operands = left
        results = parse_types(parser) if parser.parse_optional_punctuation("->") is not None else ()
    else:
        operands, results = (), left
    if len(operands) != len(unresolved):
        end = start + len(behind(parser, start))
        parser.raise_error(f"{len(unresolved)} operands and {len(operands)} types for them", start, end)
    values = [parser.resolve_operand(each, type) for each, type in zip(unresolved, operands, strict=True)]
    return values, Signature(operands, results, attributes)


class PlainOp(IRDLOperation):
    """An op whose text is only its operands and its signature: terminators, barriers, redistributions."""

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_signature(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands, signature = parse_signature(parser, parse_operands(parser))
        return cls.create(operands=operands, result_types=signature.results, attributes=signature.attributes)
