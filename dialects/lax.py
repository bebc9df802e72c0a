"""The named ops: one class for each definition, made from it, and the few that have no definition.

    %2 = lax.dot_general %0, %1 {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[64, 8], f32[8, 8] -> f32[64, 8]

All of them are one shape of op: arrays in, arrays out, the primitive's parameters, and for `lax.scan` a body. Extents
are in the types alone, so the same op on local types is the device-local op; only a loop sees a placed type, which it
passes on.
"""

from collections.abc import Sequence
from typing import Self

from xdsl.ir import Dialect, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoMemoryEffect, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .definition import definitions
from .lax_shapes import check_constant, check_named, check_scan, check_whole
from .params import NO_PARAMS, ParamsAttr, parse_params
from .signature import PlainOp, array_types, parse_operands, parse_signature, print_operands, print_signature
from .types import ArrayType

__all__ = ["LAX", "OPS", "ConstantOp", "LaxOp", "ScanOp", "WholeOp", "YieldOp", "defined", "op_class"]


class LaxOp(IRDLOperation):
    """A primitive on whole arrays.

    `of` is the constructor to use where the types are known: like `create`, it checks nothing. Verifying binds the
    definition, so that what the types say must agree with what the op means.
    """

    ins = var_operand_def(ArrayType)
    outs = var_result_def(ArrayType)
    params = prop_def(ParamsAttr)
    body = var_region_def("single_block")

    @classmethod
    def of(
        cls,
        operands: Sequence[SSAValue],
        result_types: Sequence[ArrayType],
        params: ParamsAttr = NO_PARAMS,
        regions: Sequence[Region] = (),
    ) -> Self:
        return cls.create(operands=operands, result_types=result_types, properties={"params": params}, regions=regions)

    @classmethod
    def primitive(cls) -> str:
        """The name by which the definitions and JAX know it: `dot_general`."""
        return cls.name.removeprefix("lax.")

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        if self.params.data or self.regions:
            printer.print_string(f" {self.params.text}")
        for region in self.regions:
            printer.print_string(" ")
            printer.print_region(region)
        print_signature(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = parse_operands(parser)
        params = parse_params(parser) if parser.lexer.input.content.startswith("{", parser.pos) else NO_PARAMS
        region = parser.parse_optional_region()
        operands, signature = parse_signature(parser, unresolved)
        return cls.create(
            operands=operands,
            result_types=signature.results,
            properties={"params": params},
            attributes=signature.attributes,
            regions=() if region is None else (region,),
        )

    def verify_(self) -> None:
        ins, outs = array_types(self.operands), array_types(self.results)
        # A loop passes values on, whatever they lie like; every other op computes on what one device holds.
        if not isinstance(self, ScanOp):
            self.verify_plain(ins, outs)
        self.check(ins, outs)

    def verify_plain(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        """Raises VerifyException where something is placed or pending, or where there is a body."""
        for array in (*ins, *outs):
            if not array.is_whole:
                raise VerifyException(f"`{self.name}` works on plain arrays, and {array.text} is placed or pending")
        if self.regions:
            raise VerifyException(f"`{self.name}` has no body")

    def check(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        """Raises VerifyException where the types disagree with what the op means."""
        check_named(self.primitive(), self.params, ins, outs)


@irdl_op_definition
class ConstantOp(LaxOp):
    """A scalar: `lax.constant {value = 2.0} : f32[]`. A float is rounded to the element type."""

    name = "lax.constant"
    traits = traits_def(NoMemoryEffect())

    def check(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        check_constant(self.params, ins, outs)


@irdl_op_definition
class WholeOp(LaxOp):
    """A primitive without a definition, `params["primitive"]`: it runs whole, on gathered operands."""

    name = "lax.whole"

    def check(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        check_whole(self.params)


@irdl_op_definition
class YieldOp(PlainOp):
    """What one trip of a scan leaves: the next carries, then this trip's part of each stacked result."""

    name = "lax.yield"
    values = var_operand_def(ArrayType)

    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


@irdl_op_definition
class ScanOp(LaxOp):
    """A loop of `length` trips; operands and body arguments are consts, carries, scanned arrays, in this order.

        %sum, %ys = lax.scan %0, %xs {length = 8, num_carry = 1, num_consts = 0, reverse = False, unroll = 1} {
        ^bb0(%c: !array.array<f32[]>, %x: !array.array<f32[]>):
          %n = lax.add %c, %x : f32[], f32[] -> f32[]
          lax.yield %n, %n : f32[], f32[]
        } : f32[], f32[8] -> f32[], f32[8]

    Constraints: a const and a carry have the type of their body argument, a scanned array `length` times that of its
    own; the body yields the carries, then the stacked results without their first dim.
    """

    name = "lax.scan"
    traits = traits_def(RecursiveMemoryEffect())

    def check(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        if len(self.regions) != 1 or not isinstance(end := self.regions[0].block.last_op, YieldOp):
            raise VerifyException("`lax.scan` has one body, which ends in `lax.yield`")
        check_scan(self.params, ins, outs, array_types(self.regions[0].block.args), array_types(end.operands))


OPS: dict[str, type[LaxOp]] = {"constant": ConstantOp, "scan": ScanOp, "whole": WholeOp}


def op_class(primitive: str) -> type[LaxOp]:
    """The op of a definition, made when it is first asked for: a user's definition becomes an op like any other."""
    if primitive not in OPS:
        title = "".join(part.capitalize() for part in primitive.replace(".", "_").split("_"))
        body: dict[str, object] = {"name": f"lax.{primitive}", "traits": traits_def(NoMemoryEffect()), "__annotations__": {}}
        OPS[primitive] = irdl_op_definition(type(f"{title}Op", (LaxOp,), body))
    return OPS[primitive]


def defined() -> list[type[LaxOp]]:
    """The ops of the definitions that were added at run time."""
    return [op_class(name) for name in definitions.added]


for _name in definitions:
    # A scan is one op; the `scan_...` definitions say how dims cross its border.
    if not _name.startswith("scan_"):
        op_class(_name)

LAX = Dialect("lax", [YieldOp, *OPS.values()], [ParamsAttr])
