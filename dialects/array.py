"""Arrays with layouts, and the builders and slicers that place them.

A type says how a value is placed on the mesh. Three ops do the rest. A builder runs its body once for every device along
its axes. A slicer takes the part that one iteration sees. A redistribution changes a layout and is the only op here that
communicates. (A body may have permutes of `spmd`: those of a merge, which changes no layout.) The module's attribute
`array.mesh` holds the mesh.

    %y = array.build (data) {
      %0 = array.slice %x to f32[data*64, 8] : f32[256, 8] -> f32[64, 8]
      %1 = lax.tanh %0 : f32[64, 8] -> f32[64, 8]
      array.yield %1 : f32[64, 8]
    } : f32[data*64, 8]
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, cast

from xdsl import irdl
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .ground.errors import Error
from .layouts import Layout
from .mesh import Mesh
from .op_text import ArrayOp, KeywordProperty, Terminator, array_types, parse_operands
from .plan import PathAttr
from .ranges.algebra import Place, twice
from .ranges.factor import Factor, joined, windowed
from .types import ArrayType, AxesAttr

MESH = "array.mesh"
"""The mesh of a function, or of all of a module. `array.mesh.left` of a graph is that of a set on which no kernel runs."""
ON = "array.on"
"""The part of the mesh on which an op runs, or the parts on which the arguments of a function are."""


def enclosing_ops(op: Operation) -> Iterator[Operation]:
    """Yields the op itself, then each op that encloses it, innermost first."""
    each: Operation | None = op
    while each is not None:
        yield each
        each = each.parent_op()


def mesh_of(op: Operation) -> Mesh:
    """The mesh of the function or the module around `op`: the innermost that names one. Raises VerifyException if none does."""
    for each in enclosing_ops(op):
        if isinstance(each, ModuleOp | FuncOp) and isinstance(mesh := each.attributes.get(MESH), StringAttr):
            return _read_mesh(mesh)
    raise VerifyException(f'`{op.name}` needs a mesh: write `module attributes {{{MESH} = "data=4"}}` around it')


def set_mesh(module: ModuleOp | FuncOp, mesh: Mesh) -> None:
    """Writes the mesh that `mesh_of` reads."""
    module.attributes[MESH] = StringAttr(str(mesh))


def meshes_of(graph: Operation, kernels: Iterable[Operation]) -> list[Mesh]:
    """The meshes of a graph's kernels, and those of sets on which none runs. Raises VerifyException if one is no mesh."""
    said = (each for name, each in graph.attributes.items() if name.startswith(f"{MESH}.") and isinstance(each, StringAttr))
    return [*map(mesh_of, kernels), *(_read_mesh(each) for each in said)]


def _read_mesh(text: StringAttr) -> Mesh:
    try:
        return Mesh.parse(text.data)
    except Error as error:
        raise VerifyException(f"`{MESH} = {text}` is not a mesh: {error.title}") from error


def keep_mesh(source: ModuleOp, made: ModuleOp) -> None:
    """Copies the mesh attribute of `source`, if it has one, to a module that was made from it."""
    if (mesh := source.attributes.get(MESH)) is not None:
        made.attributes[MESH] = mesh


def put_on(devices: Mesh | Sequence[Mesh] | None, ops: Iterable[Operation]) -> None:
    """Writes on which part of the mesh ops run, or on which parts the arguments of functions are, as `on_part` reads it."""
    if devices:
        for op in ops:
            op.attributes[ON] = (
                StringAttr(str(devices)) if isinstance(devices, Mesh) else ArrayAttr(StringAttr(str(each)) for each in devices)
            )


def on_part(op: Operation) -> list[Mesh]:
    """The part of the mesh on which an op runs, or of each argument of a function; none if nothing is said.

    Raises VerifyException for what is no part of a mesh.
    """
    said = op.attributes.get(ON)
    every = cast("ArrayAttr[Attribute]", said).data if isinstance(said, ArrayAttr) else [] if said is None else [said]
    return [_read_part(each) for each in every]


def _read_part(said: Attribute) -> Mesh:
    mesh = _read_mesh(said) if isinstance(said, StringAttr) else None
    if mesh is None or mesh.part is None:
        raise VerifyException(f'`{ON} = {said}` is no part of a mesh: write `"data=4 of [stage=2 sets, data=4] at 4:8"`')
    return mesh


def check_axes(op: Operation, axes: AxesAttr) -> None:
    """Raises VerifyException unless the axes are distinct."""
    if twice(axes.data) is not None:
        raise VerifyException(f"`{op.name}` names a mesh axis twice: {axes.text}")


def _check_inside(op: Operation, axes: Sequence[Place]) -> None:
    here = {axis.axis for build in enclosing_ops(op) if isinstance(build, BuildOp) for axis in build.axes}
    if missing := [axis for axis in axes if axis.axis not in here]:
        raise VerifyException(f"`{op.name}` uses axis `{missing[0]}`, which no build around it iterates over")


def global_shape(array: ArrayType, op: Operation) -> tuple[int, ...]:
    """The global shape. Raises VerifyException with the op's name if arrays cannot have the layout."""
    try:
        array.layout.verify()
    except Error as error:
        said = "; ".join((error.title, *error.helps))
        raise VerifyException(f"`{op.name}`: no array is laid out as `{array.text}`: {said}") from error
    return array.layout.global_shape


def check_same_value(op: Operation, source: ArrayType, target: ArrayType) -> None:
    """Raises VerifyException unless two types have the same element type and the same global shape."""
    if source.dtype != target.dtype:
        raise VerifyException(f"`{op.name}` changes layouts, not element types: {source.text} to {target.text}")
    shapes = global_shape(source, op), global_shape(target, op)
    if shapes[0] != shapes[1]:
        raise VerifyException(
            f"`{op.name}` changes layouts, not shapes: {source.text} is {list(shapes[0])} as a whole, "
            f"{target.text} is {list(shapes[1])}"
        )


@irdl.irdl_op_definition
class YieldOp(Terminator):
    """The values that one iteration of a build returns."""

    name = "array.yield"


@irdl.irdl_op_definition
class BuildOp(ArrayOp):
    """Runs its body once for every device along `axes`: the results are global values, the body sees local ones.

    Constraints: the axes are distinct axes of the mesh, and no build around this one has them; every axis that a
    result's layout places or leaves pending is one of them; the body yields, for each result, what one device holds.
    """

    name = "array.build"
    place = irdl.prop_def(AxesAttr)
    outs = irdl.var_result_def(ArrayType)
    body = irdl.region_def("single_block")
    WORDS: ClassVar = (KeywordProperty("place", AxesAttr.read),)

    traits = irdl.traits_def(RecursiveMemoryEffect())

    def __init__(self, axes: Sequence[Place], body: Region, result_types: Sequence[ArrayType]):
        super().__init__(properties={"place": AxesAttr(tuple(axes))}, regions=[body], result_types=result_types)

    @property
    def axes(self) -> tuple[Place, ...]:
        return self.place.data

    def verify_(self) -> None:
        check_axes(self, self.place)
        for build in enclosing_ops(self):
            if isinstance(build, BuildOp) and build is not self and (again := set(build.axes) & set(self.axes)):
                raise VerifyException(f"a build around this one iterates over `{min(map(str, again))}` already")
        end = self.body.block.last_op
        if not isinstance(end, YieldOp):
            raise VerifyException("the body of `array.build` ends in `array.yield`")
        if len(end.operands) != len(self.results):
            raise VerifyException(f"`array.build` has {len(self.results)} results and yields {len(end.operands)}")
        for result, local in zip(array_types(self.results), array_types(end.operands), strict=True):
            self._check_result(result, local)

    def _check_result(self, result: ArrayType, local: ArrayType) -> None:
        layout = result.layout
        used = {axis.axis for axis in layout.named}
        if outside := used - {axis.axis for axis in self.axes}:
            raise VerifyException(f"{result.text} uses axis `{min(map(str, outside))}`, which this build does not iterate over")
        global_shape(result, self)
        if local is not result.local:
            raise VerifyException(
                f"`array.build` yields {local.text} where one device holds {result.local.text} of {result.text}"
            )


@irdl.irdl_op_definition
class SliceOp(ArrayOp):
    """The part of a global value that this iteration sees under `layout`.

    Constraints: the layout has the element type, global shape and pending reductions of the value, and an iteration takes
    its own operand of these; the layout keeps every tile of the value, or a part of each, and uses only axes of
    the enclosing builds; the result is the local array of one device.
    """

    name = "array.slice"
    source = irdl.operand_def(ArrayType)
    target = irdl.prop_def(ArrayType)
    out = irdl.result_def(ArrayType)
    WORDS: ClassVar = (KeywordProperty("target", ArrayType.read, "to"),)

    traits = irdl.traits_def(NoMemoryEffect())

    def __init__(self, source: SSAValue, layout: Layout):
        (array,) = array_types([source])
        target = ArrayType.of(array.dtype, layout)
        super().__init__([source], [target.local], {"target": target})

    @property
    def layout(self) -> Layout:
        return self.target.layout

    def verify_(self) -> None:
        (source, result), target = array_types([self.source, self.out]), self.target
        if source.layout.pending != target.layout.pending:
            raise VerifyException(f"`array.slice` cannot resolve a pending reduction: {source.text} to {target.text}")
        check_same_value(self, source, target)
        _check_inside(self, [*target.layout.axes, *(each.axis for each in target.layout.pending)])
        shape = source.layout.global_shape
        for dim, factor in source.layout.factors:
            have, kept = (array.layout.at(dim) for array in (source, target))
            if factor not in kept and not _holds(have, kept, shape[dim]):
                raise VerifyException(
                    f"`array.slice` keeps every tile: dim {dim} of {source.text} is over `{factor.place}`, "
                    f"but in {target.text} it is not"
                )
        if result is not target.local:
            raise VerifyException(
                f"`array.slice` gives {target.local.text}, what one device holds of {target.text}, not {result.text}"
            )


def _holds(have: Sequence[Factor], want: Sequence[Factor], extent: int) -> bool:
    """Whether each device has its part of a dim under `want` in one run of the elements that it has under `have`."""
    places, whole = {each.place for each in have}, joined(extent, want)
    one, other = joined(extent, have), joined(extent, [each for each in want if each.place in places])
    if one is None or other is None or one.place is not other.place or other.is_in_turn(extent):
        return False
    if whole is not None and whole.has_halo:
        other = windowed(extent, other.at(other.stride), whole.before, whole.after)
    return one.holds(other, extent)


class Redistribute(ArrayOp):
    """The same values in other layouts. Several values move together, and share the collectives that they can share.

    They move by the paths of the fewest bytes, unless the op says another path: `%x by <all_gather over (data) 0@64>`.

    Constraints: each operand and its result have one element type and one global shape; nothing is pending in the result
    that was not pending in the operand; several values have one element type, and no path is said for them.
    """

    ins = irdl.var_operand_def(ArrayType)
    outs = irdl.var_result_def(ArrayType)
    path = irdl.opt_prop_def(PathAttr)

    traits = irdl.traits_def(NoMemoryEffect())

    def __init__(self, sources: Sequence[SSAValue], result_types: Sequence[ArrayType], path: str | None = None):
        super().__init__(sources, result_types, {} if path is None else {"path": PathAttr(path)})

    def print_head(self, printer: Printer) -> None:
        super().print_head(printer)
        if self.path is not None:
            printer.print_string(" by ")
            self.path.print_parameter(printer)

    @classmethod
    def parse_head(cls, parser: Parser) -> tuple[list[UnresolvedOperand], dict[str, Attribute]]:
        unresolved = parse_operands(parser)
        says = parser.parse_optional_keyword("by") is not None
        return unresolved, {"path": PathAttr(PathAttr.parse_parameter(parser))} if says else {}

    @property
    def changes(self) -> list[tuple[ArrayType, ArrayType]]:
        """The type of each value, before and after."""
        return list(zip(array_types(self.ins), array_types(self.outs), strict=True))

    def verify_(self) -> None:
        if not self.ins or len(self.ins) != len(self.outs):
            raise VerifyException(f"`{self.name}` has a result for each value, got {len(self.ins)} and {len(self.outs)}")
        if self.path is not None and len(self.ins) > 1:
            raise VerifyException(f"`{self.name}` of several values says no path")
        for source, target in self.changes:
            check_same_value(self, source, target)
            if source.on != target.on:
                title = f"`{self.name}` stays on its device set, and `flow.transfer` moves: {source.text} to {target.text}"
                raise VerifyException(title)
            if new := set(target.layout.pending) - set(source.layout.pending):
                axes = ", ".join(f"`{each.axis}`" for each in new)
                raise VerifyException(f"`{self.name}` resolves pending reductions, but {target.text} adds one over {axes}")
        if len(dtypes := {source.dtype for source, _ in self.changes}) > 1:
            raise VerifyException(f"`{self.name}` moves values of one element type, got {' and '.join(sorted(dtypes))}")


@irdl.irdl_op_definition
class RedistributeOp(Redistribute):
    """Converts between layouts where a slicer does not match its builder."""

    name = "array.redistribute"


class Barrier(ArrayOp):
    """Returns its operands unchanged, and makes none of them available before all of them are. No later pass looks through it.

    Constraint: every result has the type of its operand.
    """

    ins = irdl.var_operand_def(ArrayType)
    outs = irdl.var_result_def(ArrayType)

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(values, [value.type for value in values])

    def verify_(self) -> None:
        if self.operand_types != self.result_types:
            raise VerifyException(f"`{self.name}` returns its operands unchanged: their types must match")


@irdl.irdl_op_definition
class BarrierOp(Barrier):
    """Keeps a gather at its use: `%0, %1 = array.barrier %x, %start : ...` is `%x`, computed no sooner than `%start`."""

    name = "array.barrier"


@irdl.irdl_op_definition
class PrefetchOp(Barrier):
    """Starts a gather of the next trip of a scan: `%0, %1 = array.prefetch %x, %start : ...`, in its body.

    What makes `%x` from rows and constants of the scan is done for the next trip during this one, no sooner than `%start`.
    """

    name = "array.prefetch"


class Coordinate(ArrayOp):
    """The index of this iteration along `axes`, counted major to minor from 0: an `i32[]`."""

    along = irdl.prop_def(AxesAttr)
    out = irdl.result_def(ArrayType)
    WORDS: ClassVar = (KeywordProperty("along", AxesAttr.read),)

    traits = irdl.traits_def(NoMemoryEffect())

    def __init__(self, axes: Sequence[Place]):
        super().__init__(properties={"along": AxesAttr(tuple(axes))}, result_types=[ArrayType.whole("int32")])

    @property
    def axes(self) -> tuple[Place, ...]:
        return self.along.data

    def verify_(self) -> None:
        check_axes(self, self.along)
        if self.out.type is not ArrayType.whole("int32"):
            raise VerifyException(f"`{self.name}` gives an i32[]")


@irdl.irdl_op_definition
class CoordinateOp(Coordinate):
    """The index of this iteration along the axes; the enclosing builds must iterate over all of them."""

    name = "array.coordinate"

    def verify_(self) -> None:
        Coordinate.verify_(self)
        _check_inside(self, self.axes)


ARRAY = Dialect(
    "array", [BuildOp, YieldOp, SliceOp, RedistributeOp, BarrierOp, PrefetchOp, CoordinateOp], [ArrayType, AxesAttr]
)
