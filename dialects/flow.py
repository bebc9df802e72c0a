"""The dataflow graph: kernels that devices run, and the changes of layout between them.

Values are global here, and their types say how they are placed. A kernel is a `func.func` of local ops on the local arrays
of one device.

    flow.graph @step(%x: !array.array<f32[data*64, 8]>) -> !array.array<f32[256, 8]> {
      %0 = flow.kernel @step_0(%x) : f32[data*64, 8] -> f32[data*64, 8]
      %1 = flow.redistribute %0 : f32[data*64, 8] -> f32[256, 8]
      flow.return %1 : f32[256, 8]
    }

A graph may span several device sets. Then the types say where values are, each kernel's function names its mesh, and a transfer
moves a value from one set to another.

    %0 = flow.kernel @a_0(%x) : f32[data*64, 8] on left -> f32[data*64, 8] on left
    %1 = flow.transfer %0 : f32[data*64, 8] on left -> f32[data*32, 8] on right
"""

from collections.abc import Iterable, Sequence

from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from .array import MESH, Barrier, Redistribute, check_same_value, enclosing_ops, global_shape, meshes_of
from .ground.errors import nearest
from .op_text import ArrayOp, Terminator, array_types, parse_operands
from .types import ArrayType

_SAID_BEFORE = ("sym_name", "function_type")


@irdl.irdl_op_definition
class GraphOp(irdl.IRDLOperation):
    """A graph of kernels and redistributions; its arguments and results are placed global values.

    Constraints: the body's arguments have the argument types and `flow.return` the result types; every kernel names a
    `func.func` beside the graph, with the local types of the kernel's operands and results; an argument or a result is in
    blocks of consecutive elements, all of one size.
    """

    name = "flow.graph"
    sym_name = irdl.prop_def(builtin.SymbolNameConstraint())
    function_type = irdl.prop_def(builtin.FunctionType)
    body = irdl.region_def("single_block")

    traits = irdl.traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, body: Region, result_types: Sequence[ArrayType]):
        type = builtin.FunctionType.from_lists([arg.type for arg in body.block.args], result_types)
        super().__init__(properties={"sym_name": builtin.StringAttr(name), "function_type": type}, regions=[body])

    def print(self, printer: Printer) -> None:
        print_func_op_like(
            printer, self.sym_name, self.function_type, self.body, self.attributes, reserved_attr_names=_SAID_BEFORE
        )

    @classmethod
    def parse(cls, parser: Parser) -> "GraphOp":
        name, inputs, outputs, body, attributes, _, _ = parse_func_op_like(parser, reserved_attr_names=_SAID_BEFORE)
        type = builtin.FunctionType.from_lists(inputs, outputs)
        return cls.create(
            properties={"sym_name": builtin.StringAttr(name), "function_type": type},
            attributes={} if attributes is None else attributes.data,
            regions=[body],
        )

    def verify_(self) -> None:
        if self.function_type.inputs.data != tuple(self.body.block.arg_types):
            raise VerifyException("`flow.graph` and its body have different argument types")
        end = self.body.block.last_op
        if not isinstance(end, ReturnOp):
            raise VerifyException("the body of `flow.graph` ends in `flow.return`")
        if self.function_type.outputs.data != tuple(end.operand_types):
            raise VerifyException("`flow.return` returns other types than `flow.graph` declares")
        self.verify_boundary()
        # One look at the module for all kernels: a lookup for each would be quadratic in a graph cut at every
        # collective.
        module = next((each for each in enclosing_ops(self) if isinstance(each, builtin.ModuleOp)), None)
        beside = () if module is None else module.body.block.ops
        kernels = {each.sym_name.data: each for each in beside if isinstance(each, FuncOp)}
        for op in self.body.block.ops:
            if isinstance(op, KernelOp):
                _check_kernel(op, kernels)
        self.verify_sets(kernels)

    def verify_sets(self, kernels: dict[str, FuncOp]) -> None:
        """Raises VerifyException for a value on a device set on which no kernel runs."""
        if not is_joined(self, kernels.values()):
            return
        sets = {mesh.devices for mesh in meshes_of(self, kernels.values())}
        values = (*self.body.block.args, *(value for op in self.body.block.ops for value in op.results))
        for array in array_types(values):
            if array.on not in sets:
                known = ", ".join(f"`{name}`" for name in sorted(sets))
                raise VerifyException(f"{array.text} is on a device set on which no kernel runs: there are {known}")

    def verify_boundary(self) -> None:
        """Raises VerifyException unless arguments and results are in equal, consecutive blocks, as in a `NamedSharding`."""
        for side, types in (("argument", self.function_type.inputs.data), ("result", self.function_type.outputs.data)):
            for position, array in enumerate(types):
                if not isinstance(array, ArrayType) or array.is_whole:
                    continue
                global_shape(array, self)
                outside = array.layout.natural.with_pending(())
                if outside is not array.layout:
                    raise VerifyException(
                        f"{side} {position} of `flow.graph` is {array.text}, but an array outside of the program has blocks "
                        f"of consecutive elements, all of one size; write {outside.text(array.dtype)}, and "
                        "`flow.redistribute` inside"
                    )


def is_joined(graph: GraphOp, kernels: Iterable[FuncOp]) -> bool:
    """Whether a graph is on device sets with names, and not on the mesh of its module."""
    return any(MESH in each.attributes for each in kernels) or any(name.startswith(f"{MESH}.") for name in graph.attributes)


def _check_kernel(op: "KernelOp", kernels: dict[str, FuncOp]) -> None:
    function = kernels.get(op.name_of_kernel)
    if function is None:
        close = nearest(op.name_of_kernel, kernels) or list(kernels)
        known = f": there is {', '.join(f'`@{name}`' for name in close)}" if close else ""
        raise VerifyException(f"`flow.kernel` calls `@{op.name_of_kernel}`, but the module has no such function{known}")
    type = function.function_type
    for side, values, locals in (("operand", op.ins, type.inputs.data), ("result", op.outs, type.outputs.data)):
        arrays = array_types(values)
        if len(arrays) != len(locals):
            raise VerifyException(f"`@{op.name_of_kernel}` has {len(locals)} {side}s, `flow.kernel` {len(arrays)}")
        for position, (array, local) in enumerate(zip(arrays, locals, strict=True)):
            if local is not array.local:
                raise VerifyException(
                    f"{side} {position} of `flow.kernel @{op.name_of_kernel}` is {array.text}, {array.local.text} "
                    f"on one device, and the function has {local.text if isinstance(local, ArrayType) else local}"
                )


@irdl.irdl_op_definition
class KernelOp(ArrayOp):
    """Every device runs the function on its local arrays: `flow.kernel @step_0(%x) : f32[data*64] -> f32[data*64]`."""

    name = "flow.kernel"
    callee = irdl.prop_def(builtin.FlatSymbolRefAttrConstr)
    ins = irdl.var_operand_def(ArrayType)
    outs = irdl.var_result_def(ArrayType)

    traits = irdl.lazy_traits_def(lambda: (HasParent(GraphOp),))

    def __init__(self, callee: str, operands: Sequence[SSAValue], result_types: Sequence[ArrayType]):
        super().__init__(operands, result_types, {"callee": builtin.SymbolRefAttr(callee)})

    def verify_(self) -> None:
        if len(sets := dict.fromkeys(array.on for array in array_types((*self.ins, *self.outs)))) > 1:
            names = " and ".join(f"`{name}`" for name in sets)
            raise VerifyException(f"`{self.name} @{self.name_of_kernel}` runs on one device set, but has values on {names}")

    @property
    def name_of_kernel(self) -> str:
        return self.callee.string_value()

    def print_head(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.name_of_kernel)
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_ssa_value)

    @classmethod
    def parse_head(cls, parser: Parser) -> tuple[list[UnresolvedOperand], dict[str, Attribute]]:
        callee = builtin.SymbolRefAttr(parser.parse_symbol_name())
        with parser.in_parens():
            return parse_operands(parser), {"callee": callee}


@irdl.irdl_op_definition
class RedistributeOp(Redistribute):
    """An edge of the graph that communicates."""

    name = "flow.redistribute"


@irdl.irdl_op_definition
class TransferOp(ArrayOp):
    """Copies a value to another device set, block by block: each device there receives from one device here.

    Constraints: the operand and the result have one element type and one global shape; they are on different device sets;
    nothing is pending; each block of the result lies in one block of the operand, so that nobody sends parts that others lack.

    ```
    f32[data*64, 8] on left, data=2   -->   f32[data*32, 8] on right, data=4: two devices receive a half of each block
    ```
    """

    name = "flow.transfer"
    x = irdl.operand_def(ArrayType)
    out = irdl.result_def(ArrayType)

    traits = irdl.lazy_traits_def(lambda: (HasParent(GraphOp),))

    def __init__(self, x: SSAValue, result_type: ArrayType):
        super().__init__([x], [result_type])

    @property
    def ends(self) -> tuple[ArrayType, ArrayType]:
        """The type before and after."""
        before, after = array_types((self.x, self.out))
        return before, after

    def verify_(self) -> None:
        source, target = self.ends
        check_same_value(self, source, target)
        if source.on == target.on:
            raise VerifyException(f"`{self.name}` moves to another device set, but both are on `{source.on}`")
        for array in self.ends:
            if array.layout.natural is not array.layout:
                raise VerifyException(f"`{self.name}` moves blocks of consecutive elements, not {array.text}")
        if not source.layout.covers(target.layout):
            raise VerifyException(
                f"no block of {source.text} has all of a block of {target.text}: write `flow.redistribute` first"
            )


@irdl.irdl_op_definition
class BarrierOp(Barrier):
    """Delays the users of its results until all operands are available: `flow.barrier %w, %h` delays a gather of `%w`."""

    name = "flow.barrier"


@irdl.irdl_op_definition
class ReturnOp(Terminator):
    """The graph's results."""

    name = "flow.return"

    traits = irdl.lazy_traits_def(lambda: (IsTerminator(), HasParent(GraphOp)))


FLOW = Dialect("flow", [GraphOp, KernelOp, RedistributeOp, TransferOp, BarrierOp, ReturnOp])
