"""The text form of our ops: operands, properties, regions, attributes, operand types, result types.

    %1 = spmd.all_gather %0 dim 0 block 8 over (data) attributes {provenance = "mlp.py:12"} : f32[8, 4] -> f32[32, 4]
                         |--------- head -----------|                                       |---- signature ----|

An op that has only operands or only results writes their types alone, without an arrow.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple, Self, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, IntAttr, LocationAttr, StringAttr
from xdsl.ir import Attribute, Block, OpResult, Region, SSAValue, SSAValues
from xdsl.irdl import IRDLOperation, traits_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from .program_text import TextAttr, behind
from .types import ArrayType

NO_PROPERTIES: Mapping[str, Attribute] = {}


def array_types(values: Sequence[SSAValue]) -> tuple[ArrayType, ...]:
    """The types of the values, which the op's definition has already checked to be arrays."""
    return tuple([type for value in values if isinstance(type := value.type, ArrayType)])


def _texts(values: Iterable[SSAValue]) -> str:
    return ", ".join([type.text for value in values if isinstance(type := value.type, ArrayType)])


class KeywordProperty(NamedTuple):
    """A property that an op's head prints after a keyword: `dim 0`."""

    name: str
    read: Callable[[Parser], Attribute]
    word: str = ""

    def text(self, value: Attribute) -> str:
        said = value.text if isinstance(value, TextAttr) else str(cast("IntAttr | StringAttr", value).data)
        return f" {self.word} {said}" if self.word else f" {said}"


class ArrayOp(IRDLOperation):
    """An op on arrays. Its text begins with the properties in `FIRST`, then the operands, then the properties in `WORDS`."""

    FIRST: ClassVar[Sequence[KeywordProperty]] = ()
    WORDS: ClassVar[Sequence[KeywordProperty]] = ()

    def __init__(
        self,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = NO_PROPERTIES,
        regions: Sequence[Region] = (),
    ) -> None:
        """Makes an op without checking it, as xDSL's `create` does.

        Fields that our ops never use, such as successors, keep their defaults.
        """
        self.operands = operands
        self.results = SSAValues([OpResult(type, self, at) for at, type in enumerate(result_types)])
        self.properties = dict(properties)
        self.attributes = {}
        self.location = UNKNOWN_LOC
        for region in regions:
            self.add_region(region)

    @classmethod
    def create(
        cls,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = NO_PROPERTIES,
        attributes: Mapping[str, Attribute] = NO_PROPERTIES,
        location: LocationAttr | None = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
    ) -> Self:
        """Makes an op like `__init__`, with attributes and a location, in half the time of xDSL's `create`."""
        made = cls.__new__(cls)
        ArrayOp.__init__(made, operands, result_types, properties, regions)
        if attributes:
            made.attributes = dict(attributes)
        if location is not None:
            made.location = location
        if successors:
            made.successors = successors
        return made

    def __post_init__(self) -> None:
        """Does nothing. xDSL looks for properties with defaults here, and our ops have none."""

    def print_head(self, printer: Printer) -> None:
        printer.print_string("".join(word.text(self.properties[word.name]) for word in self.FIRST))
        print_operands(printer, self.operands)
        printer.print_string("".join(word.text(self.properties[word.name]) for word in self.WORDS))

    @classmethod
    def parse_head(cls, parser: Parser) -> tuple[list[UnresolvedOperand], dict[str, Attribute]]:
        """Reads the operands and the properties."""
        properties = {name: read(parser) for name, read, _ in cls.FIRST}
        unresolved = parse_operands(parser)
        for name, read, word in cls.WORDS:
            if word:
                parser.parse_keyword(word)
            properties[name] = read(parser)
        return unresolved, properties

    def print(self, printer: Printer) -> None:
        self.print_head(printer)
        for region in self.regions:
            printer.print_string(" ")
            printer.print_region(region)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        sides = _texts(self.operands), _texts(self.results)
        printer.print_string(f" : {' -> '.join(filter(None, sides)) or '()'}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved, properties = cls.parse_head(parser)
        regions: list[Region] = []
        while (region := parser.parse_optional_region()) is not None:
            regions.append(region)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":")
        start = parser.pos
        types = parse_types(parser)
        results = types if not unresolved else parse_types(parser) if parser.parse_optional_punctuation("->") else ()
        if unresolved and len(types) != len(unresolved):
            end = start + len(behind(parser, start))
            parser.raise_error(f"{len(unresolved)} operands and {len(types)} types for them", start, end)
        return cls.create(
            operands=[parser.resolve_operand(each, type) for each, type in zip(unresolved, types, strict=False)],
            result_types=results,
            properties=properties,
            attributes={} if attributes is None else dict(attributes.data),
            regions=regions,
        )


class Terminator(ArrayOp):
    """The end of a block, with the values that the block returns."""

    values = var_operand_def(ArrayType)

    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(values)


def print_operands(printer: Printer, operands: Sequence[SSAValue]) -> None:
    if operands:
        printer.print_string(" ")
        printer.print_list(operands, printer.print_ssa_value)


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Reads `%0, %1`, or nothing."""
    first, other = parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    return parser.parse_optional_undelimited_comma_separated_list(first, other) or []


def parse_types(parser: Parser) -> tuple[ArrayType, ...]:
    """Reads `f32[8], i32[]`, or `()`."""
    if parser.parse_optional_punctuation("(") is not None:
        parser.parse_punctuation(")")
        return ()
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.NONE, partial(ArrayType.read, parser)))
