"""A module whose `repr` is one line. Its `str` is its text."""

from collections.abc import Callable, Iterable
from io import StringIO
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer

from .ground.amounts import counted
from .op_text import ArrayOp
from .types import ArrayType

T = TypeVar("T")


class Module(ModuleOp):
    """What a plan lowers to: `print` it for its text, which has a line for each op."""

    def __repr__(self) -> str:
        functions = [op for op in self.body.block.ops if op.name == "func.func"]
        count = len(list(self.walk())) - 1 - len(functions)
        names = ", ".join(str(op.properties["sym_name"]).strip('"') for op in functions[:3])
        return f"<module of {names}: {counted(count, 'op')}; print it for its text>"

    def __str__(self) -> str:
        text = StringIO()
        TextPrinter(text).print_op(self)
        return text.getvalue()


class TextPrinter(Printer):
    """Prints the same text as xDSL's printer in half the time, because it does not track the current column.

    xDSL's printer needs that to underline ops in messages.
    """

    def __init__(self, stream: StringIO) -> None:
        super().__init__(stream)
        self.write = stream.write

    def print_op(self, op: Operation) -> None:
        if type(op).print is ArrayOp.print and not op.regions:
            self._print_results(op)
            self.write(op.name)
            op.print(self)
        else:
            super().print_op(op)

    def _print_results(self, op: Operation) -> None:
        match op.results:
            case (result,) if result.name_hint is None and result not in self._ssa_values:
                name = self._ssa_values[result] = self._get_new_valid_name_id()
                self.write(f"%{name} = ")
            case _:
                super()._print_results(op)

    def _print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        self.write("\n" + " " * ((self._indent if indent is None else indent) * self.indent_num_spaces))

    def print_list(self, elems: Iterable[T], print_fn: Callable[[T], object], delimiter: str = ", ") -> None:
        between = ""
        for each in elems:
            self.write(between)
            between = delimiter
            print_fn(each)

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, ArrayType):
            self.write(f"!{attribute.name}<{attribute.text}>")
        else:
            super().print_attribute(attribute)

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if "\n" in text:
            super().print_string(text, indent=indent)
        else:
            self.write(text)

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._ssa_values.get(value)
        if name is None:
            return super().print_ssa_value(value)
        self.write(f"%{name}")
        return name

    def print_bytes_literal(self, bytestring: bytes) -> None:
        self.write(f'"{bytestring.decode("latin-1").translate(_ESCAPES)}"')


_ESCAPES = {code: f"\\{code:02X}" for code in range(256) if not 0x20 <= code <= 0x7E or code == ord('"')} | {ord("\\"): "\\\\"}
"""MLIR's escapes in the text of a string."""
