"""The named ops: a class generated from each definition, and a few ops that have no definition.

    %2 = lax.dot_general %0, %1 {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[64, 8], f32[8, 8] -> f32[64, 8]

All of them have the same form: array operands, array results, the primitive's parameters and, for a loop or a choice, its
regions. Only the types hold extents, so the same op on local types is the device-local op. Only an op with regions may have
placed types, because it passes values on.
"""

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Self, cast

from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import irdl_op_definition, prop_def, traits_def, var_operand_def, var_region_def, var_result_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .definitions.registry import definitions
from .lax_verify import check_constant, disagreement
from .op_text import ArrayOp, Terminator, array_types, parse_operands, print_operands
from .params import NO_PARAMS, ParamsAttr
from .regions import BORDERS, CHECKS, Entry, count_param, entries_of
from .types import ArrayType


def params_of(op: Operation) -> ParamsAttr:
    """The parameters of a named op."""
    return cast(ParamsAttr, op.properties["params"])


class LaxOp(ArrayOp):
    """A primitive on whole arrays.

    `of` is the constructor to use where the types are known: like `create`, it checks nothing. Verifying binds the
    definition, so the types must agree with it.
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
        """The primitive's name, as in the definitions and in JAX: `dot_general`."""
        return cls.name.removeprefix("lax.")

    def print_head(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        params = params_of(self)
        if params.data or self.regions:
            printer.print_string(f" {params.text}")

    @classmethod
    def parse_head(cls, parser: Parser) -> tuple[list[UnresolvedOperand], dict[str, Attribute]]:
        unresolved = parse_operands(parser)
        params = ParamsAttr.read(parser) if parser.lexer.input.content.startswith("{", parser.pos) else NO_PARAMS
        return unresolved, {"params": params}

    def verify_(self) -> None:
        ins, outs = array_types(self.operands), array_types(self.results)
        self.verify_plain(ins, outs)
        self.check(ins, outs)

    def verify_plain(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        """Raises VerifyException if a type is placed or pending, or if the op has a body."""
        for array in (*ins, *outs):
            if not array.is_whole:
                raise VerifyException(f"`{self.name}` takes plain arrays, but {array.text} is placed or pending")
        if self.regions:
            raise VerifyException(f"`{self.name}` has no body")

    def check(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        """Raises VerifyException if the types disagree with the op's definition."""
        if problem := disagreement(self.primitive(), self.params, ins, outs):
            raise VerifyException(problem)


@irdl_op_definition
class ConstantOp(LaxOp):
    """A scalar: `lax.constant {value = 2.0} : f32[]`. A float is rounded to the element type."""

    name = "lax.constant"
    traits = traits_def(NoMemoryEffect())

    def check(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        check_constant(self.params, ins, outs)


@irdl_op_definition
class WholeOp(LaxOp):
    """A primitive without a definition, `params["primitive"]`: it runs unpartitioned, on gathered operands."""

    name = "lax.whole"

    def check(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        if not isinstance(self.params.get("primitive"), str):
            raise VerifyException('`lax.whole` says which primitive it stands for: `{primitive = "name"}`')


@irdl_op_definition
class YieldOp(Terminator):
    """The values that a region returns. A loop's body returns the next carries, then a scan's row of each stacked result."""

    name = "lax.yield"


class RegionOp(LaxOp):
    """An op with regions, each a block that ends in `lax.yield`."""

    REGIONS: ClassVar[int] = 1
    """The number of regions; 0 means any number."""

    @property
    def entry(self) -> Entry:
        """Which operands enter which regions. Raises VerifyException for invalid parameters."""
        return entries_of(self.name, self.params, len(self.regions))

    def verify_plain(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        """Accepts any layout, because the op only passes values on, but requires regions."""
        ends = [region.block.last_op for region in self.regions]
        if (self.REGIONS or len(ends)) != len(ends) or not all(isinstance(end, YieldOp) for end in ends):
            number = {1: "one region, which ends", 2: "two regions, which end"}.get(self.REGIONS, "regions, which end")
            raise VerifyException(f"`{self.name}` has {number} in `lax.yield`")

    def check(self, ins: tuple[ArrayType, ...], outs: tuple[ArrayType, ...]) -> None:
        blocks = [region.block for region in self.regions]
        args = [array_types(block.args) for block in blocks]
        yielded = [array_types(end.operands) for block in blocks if (end := block.last_op) is not None]
        CHECKS[self.name](self.params, ins, outs, args, yielded)


@irdl_op_definition
class ScanOp(RegionOp):
    """A loop of `length` trips; operands and body arguments are consts, carries, scanned arrays, in this order.

        %sum, %ys = lax.scan %0, %xs {length = 8, num_carry = 1, num_consts = 0, reverse = False, unroll = 1} {
        ^bb0(%c: !array.array<f32[]>, %x: !array.array<f32[]>):
          %n = lax.add %c, %x : f32[], f32[] -> f32[]
          lax.yield %n, %n : f32[], f32[]
        } : f32[], f32[8] -> f32[], f32[8]

    Constraints: a const and a carry have the type of their body argument; a scanned array has an additional first dim
    of extent `length`; the body yields the carries, then the stacked results without their first dim.
    """

    name = "lax.scan"
    traits = traits_def(RecursiveMemoryEffect())

    @property
    def length(self) -> int:
        """The trip count."""
        return count_param(self.name, self.params, "length")


@irdl_op_definition
class WhileOp(RegionOp):
    """A loop as long as its condition yields true; operands are the condition's consts, the body's, and the carries.

        %n = lax.while %0 {body_nconsts = 0, cond_nconsts = 0} {
        ^bb0(%c: !array.array<i32[]>):
          %more = lax.lt %c, %c : i32[], i32[] -> bool[]
          lax.yield %more : bool[]
        } {
        ^bb1(%d: !array.array<i32[]>):
          lax.yield %d : i32[]
        } : i32[] -> i32[]

    Constraints: the condition takes its consts and the carries, the body its own and the carries; a carry has the
    same type everywhere; the condition yields one `bool[]`.
    """

    name = "lax.while"
    REGIONS: ClassVar[int] = 2
    traits = traits_def(RecursiveMemoryEffect())


@irdl_op_definition
class CondOp(RegionOp):
    """Runs one of several branches: the first operand is its number, clamped to the existing branches.

        %y = lax.cond %i, %x {} {
        ^bb0(%a: !array.array<f32[8]>):
          lax.yield %a : f32[8]
        } {
        ^bb1(%b: !array.array<f32[8]>):
          %0 = lax.neg %b : f32[8] -> f32[8]
          lax.yield %0 : f32[8]
        } : i32[], f32[8] -> f32[8]

    Constraints: the number is an `i32[]`; every branch takes the other operands and yields the results, each in one type.
    """

    name = "lax.cond"
    REGIONS: ClassVar[int] = 0
    traits = traits_def(RecursiveMemoryEffect())


class Ops(dict[str, type[LaxOp]]):
    """The ops by primitive. The op of a definition is made at its first use, because a program has only a few dozen.

    The definitions of users become ops in the same way.
    """

    def __missing__(self, primitive: str) -> type[LaxOp]:
        if primitive not in definitions or primitive in BORDERS:
            raise KeyError(primitive)
        title = "".join(part.capitalize() for part in primitive.replace(".", "_").split("_"))
        body: dict[str, object] = {"name": f"lax.{primitive}", "traits": traits_def(NoMemoryEffect()), "__annotations__": {}}
        return self.setdefault(primitive, irdl_op_definition(type(f"{title}Op", (LaxOp,), body)))


OPS = Ops({"constant": ConstantOp, "scan": ScanOp, "while": WhileOp, "cond": CondOp, "whole": WholeOp})


def defined() -> list[type[LaxOp]]:
    """The ops of the definitions that were added at run time."""
    return [OPS[name] for name in definitions.added]


@cache
def lax() -> Dialect:
    """The dialect: the ops of all definitions except those added at run time, and the few ops without a definition."""
    names = dict.fromkeys(("scan", "while", "cond", "whole", *(name for name in definitions if name not in BORDERS)))
    return Dialect("lax", [YieldOp, *(OPS[name] for name in names)], [ParamsAttr])
