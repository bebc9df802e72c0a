"""Prints a program in index notation: an equation for each op, or `lax.NAME(...)` if no equation expresses it.

An op is printed by its definition if reading that text gives the same op, otherwise as `lax.NAME(...)` if reading that does. If
neither does, an error names the op. So reading the printed text always gives the same program.
"""

import keyword
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects.ground.dtypes import short
from ...dialects.ground.errors import Error
from ...dialects.lax import ConstantOp, LaxOp, WholeOp
from ...dialects.mesh import Mesh
from ...dialects.params import ParamsAttr
from ...dialects.types import ArrayType
from ..jax_private import jax
from ..ops.bind import bind_local, constant
from ..trace.trace import Traced, trace
from . import scalar_functions
from .check import check
from .codegen import elaborate
from .diagnostics import Text, Wrong
from .op_equation import Pointful, PrintedValue, Unsayable, letters

WORDS = frozenset("fn plan mesh let return and or not inf nan tile replicate propagate name range over as of".split())


def notation(traced: Traced, mesh: Mesh) -> str:
    """Prints a traced program with a mesh, in index notation. Raises Error for an op that the notation cannot express."""
    return (f"mesh {mesh}\n\n" if str(mesh) else "") + print_program(traced)


def print_program(traced: Traced) -> str:
    """Prints a traced program as one function."""
    return _Printer(traced).text()


@dataclass(slots=True)
class _Printer:
    """Prints one program; `values` are the values named so far."""

    traced: Traced
    values: dict[SSAValue, PrintedValue] = field(default_factory=dict[SSAValue, PrintedValue])
    taken: set[str] = field(default_factory=set[str])
    numbers: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])

    def text(self) -> str:
        block = self.traced.main.body.block
        for argument, name in zip(block.args, self.traced.arg_names, strict=True):
            self.name(argument, name)
        for op in block.ops:
            for result in op.results:
                self.name(result, self.traced.value_names.get(result, ""))
        indices = letters(self.taken)
        lines = [line for op in block.ops if not isinstance(op, func.ReturnOp) for line in self.op(op, indices)]
        returned = [self.returned(value, lines) for value in cast(Operation, block.last_op).operands]
        arguments = ", ".join(f"{self.values[each].text}: {self.values[each].type}" for each in block.args)
        results = ", ".join(self.values[each].type for each in cast(Operation, block.last_op).operands) or "()"
        name = fresh(self.traced.name, set(scalar_functions.functions()) | {"lax"})
        body = "".join(f"  {line}\n" for line in [*lines, f"return {', '.join(returned) or '()'}"])
        return f"fn {name}({arguments}) -> {results} {{\n{body}}}\n"

    def name(self, value: SSAValue, said: str) -> None:
        """Gives a value its name: its name in plans, if the notation allows that name."""
        array = cast(ArrayType, value.type)
        if isinstance(value.owner, ConstantOp):
            self.number(value, constant(value.owner.params["value"], array.dtype))
            return
        text = fresh(said if not said.startswith("result") else "", self.taken, f"v{len(self.values)}")
        self.values[value] = PrintedValue(text, array.dtype, array.shape)

    def number(self, value: SSAValue, made: np.ndarray) -> None:
        """Records a number, which is written where it is used."""
        self.numbers[value] = made
        self.values[value] = PrintedValue(_written(made), cast(ArrayType, value.type).dtype, (), number=True)

    def folded(self, op: LaxOp) -> bool:
        """Whether JAX folds the op when it reads its numbers, such as a cast. Its result is then recorded as a number too."""
        array = cast(ArrayType, op.results[0].type)
        if not op.operands or len(op.results) > 1 or array.shape or not all(each in self.numbers for each in op.operands):
            return False
        with jax.ensure_compile_time_eval():
            ins = [self.numbers[each] for each in op.operands]
            (made,) = bind_local(op.primitive(), op.params, ins, [(array.dtype, ())])
        self.number(op.results[0], np.asarray(made))
        return True

    def returned(self, value: SSAValue, lines: list[str]) -> str:
        found = self.values[value]
        if not found.number:
            return found.text
        text = fresh("", self.taken, f"v{len(self.taken)}")
        lines.append(f"{text} = {_literal(found)}")
        return text

    def op(self, op: Operation, indices: Sequence[str]) -> list[str]:
        if isinstance(op, ConstantOp):
            return []
        if isinstance(op, LaxOp) and not op.regions and "foreign(" not in op.params.text:
            ins = [self.values[each] for each in op.operands]
            outs = [self.values[each] for each in op.results]
            for said in _ways(op, ins, outs, indices):
                if _reads_back(op, ins, outs, said):
                    return said
            if self.folded(op):
                return []
        source = self.traced.sources.get(op)
        name = op.params["primitive"] if isinstance(op, WholeOp) else op.name.removeprefix("lax.")
        title = f"`{self.traced.name}` cannot be printed in index notation: it contains `{name}`"
        helps = ["print its IR: `print(plan.ir())`", "or print the parts before and after it as separate functions"]
        raise Error(title, location=source and source.location(), helps=helps)


def _written(made: np.ndarray) -> str:
    """A number in as few digits as its dtype needs; a number that is neither an integer nor a float states its dtype."""
    value = made.item()
    if isinstance(value, bool):
        return str(value)
    return str(made[()]) if isinstance(value, int | float) else f"{short(made.dtype.name)}({value!r})"


def _ways(op: LaxOp, ins: Sequence[PrintedValue], outs: Sequence[PrintedValue], indices: Sequence[str]) -> Iterator[list[str]]:
    """The candidate texts of an op: an equation of indices first."""
    name, params = op.primitive(), dict(op.params.items())
    with suppress(Unsayable):
        yield Pointful.of(name, op.params, ins, outs, indices).lines()
    if name in scalar_functions.functions():
        # `y[i] = add_any(x[i], z[i])`: a function by its name, because another op has the same definition.
        *given, left = (
            each.text + (f"[{', '.join(indices[: len(each.shape)])}]" if each.shape else "") for each in (*ins, outs[0])
        )
        yield [f"{left} = {name}({', '.join([*given, *scalar_functions.keyword_texts(op.params)])})"]
    if isinstance(op, WholeOp):
        name = params.pop("primitive")
    for types in ({}, {"result": tuple(out.dtype for out in outs)}):
        yield [_opaque(str(name), ParamsAttr.of(**params, **types), ins, outs, indices)]


def _opaque(
    name: str, params: ParamsAttr, ins: Sequence[PrintedValue], outs: Sequence[PrintedValue], indices: Sequence[str]
) -> str:
    """`y[i: 8] = lax.NAME(x, parameter=...)`: a call on whole arrays, with the ranges of the result on the left."""
    lefts: list[str] = []
    for out in outs:
        dims = ", ".join(f"{index}: {extent}" for index, extent in zip(indices, out.shape, strict=False))
        lefts.append(f"{out.text}[{dims}]" if dims else out.text)
    given = [_literal(each) if each.number else each.text for each in ins]
    return f"{', '.join(lefts)} = lax.{name}({', '.join([*given, *scalar_functions.keyword_texts(params)])})"


def _literal(value: PrintedValue) -> str:
    """A number, with its dtype if the notation would read it as another."""
    is_float = any(mark in value.text for mark in ".en")
    plain = value.dtype == ("float32" if is_float else "int32")
    return value.text if plain or "(" in value.text else f"{short(value.dtype)}({value.text})"


def fresh(said: str, taken: set[str], otherwise: str = "program") -> str:
    """The name if the notation allows it, otherwise `otherwise`; numbered to differ from the taken names, and added to them."""
    base = said.replace("/", "_") if said.replace("/", "_").isidentifier() and said.isascii() else otherwise
    if not base[0].islower() or keyword.iskeyword(base) or base in WORDS:
        base = otherwise
    name, count = base, 1
    while name in taken or name in WORDS:
        name, count = f"{base}_{count}", count + 1
    taken.add(name)
    return name


_READ: dict[tuple[object, ...], bool] = {}


def _reads_back(op: LaxOp, ins: Sequence[PrintedValue], outs: Sequence[PrintedValue], said: Sequence[str]) -> bool:
    """Whether reading the text gives the same op."""
    arrays = {each.text: each for each in ins if not each.number}
    key = (tuple(said), *(each.type for each in (*arrays.values(), *outs)), op.name, op.params.text)
    if key not in _READ:
        arguments = ", ".join(f"{each.text}: {each.type}" for each in arrays.values())
        results = ", ".join(each.type for each in outs)
        body = "\n".join([*said, f"return {', '.join(each.text for each in outs)}"])
        text = Text("<said>", f"fn said({arguments}) -> {results} {{\n{body}\n}}\n")
        _READ[key] = _is_read(op, ins, list(arrays.values()), text)
    return _READ[key]


def _is_read(op: LaxOp, ins: Sequence[PrintedValue], arrays: Sequence[PrintedValue], text: Text) -> bool:
    try:
        function = elaborate(check(text))["said"]
    except Wrong:
        return False
    traced = trace(function, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays))
    made = [each for each in traced.main.body.block.ops if not isinstance(each, ConstantOp)]
    if len(made) != 2 or not isinstance(made[0], LaxOp):
        return False
    same = made[0].name == op.name and made[0].params == op.params and made[0].result_types == op.result_types
    operands = [_operand(each, arrays) for each in made[0].operands]
    wanted = [(value.text, value.dtype) if value.number else value.text for value in ins]
    return same and operands == wanted and list(made[1].operands) == list(made[0].results)


def _operand(value: SSAValue, arrays: Sequence[PrintedValue]) -> object:
    """An operand as the name of an argument, or as a number with its dtype."""
    if isinstance(value, BlockArgument):
        return arrays[value.index].text
    owner, dtype = value.owner, cast(ArrayType, value.type).dtype
    return (_written(constant(owner.params["value"], dtype)), dtype) if isinstance(owner, ConstantOp) else None
