"""The device-local op of a placed op: the same op on local types, with the offsets and masks that its definition asks for.

What a definition asks for is written as a term (a table in blocks is looked up, a slice of an index is wanted, ...) and the
laws of `masks.rules` say what one device then does: `shift` counts looked-up rows from the device's first, `mask` leaves out
what is another's, `first` lets a term without the folded index count once, `offset` is where a device's block begins. Nothing
here knows an op by name but the tag, which is the identity.

    %e = gather %table[(v: model), :] %ids   -->   %e = select (0 <= %ids - v0 < block) (gather %table %ids - v0) 0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, cast

from xdsl.ir import Operation, SSAValue

from ..dialects.grounded import ELEMENT
from ..dialects.lax import OPS
from ..dialects.params import NO_PARAMS, Literal, ParamsAttr, Record
from ..dialects.types import ArrayType
from .constructors import Constructor
from .placing import Placed
from .program import Node, Program
from .rules import rules

IDS = "int32"
OP = "op"
"""The leaf of a term that stands for the op itself, with what its other indices ask for."""

PROMISES = ("indices_are_sorted", "unique_indices")
"""Parameters that promise something of looked-up ids."""

Term: TypeAlias = "str | int | tuple[Term, ...]"


def localise(program: Program, node: Node, placed: Placed, locals: Sequence[SSAValue], into: Constructor) -> list[SSAValue]:
    """Emit the op on local operands; its local results."""
    if node.kind == "tag":
        return list(locals)
    local = _Local(program, node, placed, list(locals), into)
    return local.emit(list(local.asked()))


def same_op(op: Operation, locals: Sequence[SSAValue], into: Constructor) -> list[SSAValue]:
    """Emit an op that gives each operand as it is, in whatever layout: the same op, on the local values together."""
    made = type(op).create(operands=locals, result_types=[value.type for value in locals], properties=op.properties)
    into.append(made)
    return list(made.results)


class _Local:
    """One op being emitted; `locals` are its operands, changed as the laws say before the op is."""

    def __init__(self, program: Program, node: Node, placed: Placed, locals: list[SSAValue], into: Constructor) -> None:
        self.program = program
        self.node = node
        self.placed = placed
        self.locals = locals
        self.into = into
        self.indices = node.signature.instance.indices

    def asked(self) -> Iterator[Term]:
        """A term for everything that the placed indices ask for beyond the op on local types."""
        for index in sorted({index for _, index, _ in self.placed.placement}):
            info, block = self.indices[index], self.block(index)
            for operand in info.once:
                if not self.program.zero[self.node.operands[operand]]:
                    yield ("add", operand, ("sum", index, OP))
            for ids, component in info.lookups:
                if -1 in info.masked:
                    yield ("take", (ids, component), ("build", index, block, OP))
                for operand in info.masked:
                    if operand >= 0:
                        yield ("slice", index, block, ("put", info.extent, (ids, component), operand))
            if info.value:
                yield ("slice", index, block, ("iota", info.extent))

    def emit(self, asked: list[Term]) -> list[SSAValue]:
        """The op, inside what is asked for."""
        if not asked:
            return self.op(self.locals)
        found = rules("masks").rewrite_root(asked[0], {})
        assert found is not None, "every form that is asked for has its law"
        return self.realise(cast(Term, found[0]), asked[1:])

    def realise(self, term: Term, rest: list[Term]) -> list[SSAValue]:
        """Emit a term that a law gave; its leaf is the op with the rest of what is asked for."""
        match term:
            case ("sum", _, inner):
                return self.realise(inner, rest)
            case ("add", ("first", int(index), int(operand)), _):
                self.locals[operand] = self.select(self.first(index), self.locals[operand])
                return self.emit(rest)
            case ("add", ("iota", _), ("offset", int(index), _)):
                return [self.plus_offset(self.emit(rest)[0], index)]
            case ("mask", ("mine", int(index), _, (int(ids), int(component))), _):
                mask = self.shift(index, ids, component)
                return [self.masked(self.emit(rest)[0], mask, ids, self.node.signature.result_at[0])]
            case ("put", _, ("shift", int(index), _, (int(ids), int(component))), ("mask", _, int(operand))):
                mask = self.shift(index, ids, component)
                at = self.node.signature.operand_at[operand]
                self.locals[operand] = self.masked(self.locals[operand], mask, ids, at)
                return self.emit(rest)
            case _:
                raise AssertionError(f"no way to run {term}")

    def op(self, locals: list[SSAValue]) -> list[SSAValue]:
        types = [self.local_type(position) for position in range(len(self.node.results))]
        params = cast(ParamsAttr, self.node.op.properties.get("params", NO_PARAMS))
        if any(self.indices[index].lookups for _, index, _ in self.placed.placement):
            # Rows that are another device's are all sent to one place: what was promised of the ids holds no more.
            params = ParamsAttr.of(**{name: False if name in PROMISES else value for name, value in params.items()})
        op = OPS[self.node.kind].create(operands=locals, result_types=types, properties={"params": params})
        self.into.append(op)
        return list(op.results)

    def local_type(self, position: int) -> ArrayType:
        value = self.node.results[position]
        shape = list(self.program.shape(value))
        for axis, dim, _ in self.placed.produced[position]:
            shape[dim] //= self.into.mesh[axis]
        return ArrayType.whole(self.program.types[value].dtype, tuple(shape))

    def first(self, index: int) -> SSAValue:
        """Whether this device is the first along every axis of the index."""
        flags = [
            self.make("eq", (self.into.coordinate(axis), self.number(0, IDS)), "bool", ())
            for axis, at, _ in self.placed.placement
            if at == index
        ]
        keep = flags[0]
        for flag in flags[1:]:
            keep = self.make("and", (keep, flag), "bool", ())
        return keep

    def offset(self, index: int, dtype: str) -> SSAValue:
        """Where this device's block of the index begins: the sum of coordinate times stride."""
        total: SSAValue | None = None
        for axis, at, stride in self.placed.placement:
            if at == index:
                part = self.make("mul", (self.into.coordinate(axis), self.number(stride, IDS)), IDS, ())
                total = part if total is None else self.make("add", (total, part), IDS, ())
        assert total is not None
        return total if dtype == IDS else self.cast(total, dtype)

    def block(self, index: int) -> int:
        """How many of the index's values one device holds."""
        return min(stride for _, at, stride in self.placed.placement if at == index)

    def plus_offset(self, out: SSAValue, index: int) -> SSAValue:
        type = cast(ArrayType, out.type)
        offset = self.spread(self.offset(index, type.dtype), type.shape)
        return self.make("add", (out, offset), type.dtype, type.shape)

    def shift(self, index: int, operand: int, component: int) -> SSAValue:
        """Count the ids from this device's first row; the mask of those whose row is here."""
        ids = self.locals[operand]
        type = cast(ArrayType, ids.type)
        if type.dtype != IDS:
            ids = self.cast(ids, IDS)
        # The other components of the vectors count along dims of their own: they stay as they are given.
        given, shape, extent, block = ids, type.shape, self.indices[index].extent, self.block(index)
        mode = self.mode()
        looked_up = -1 in self.indices[index].masked
        if component != ELEMENT and (mode == "CLIP" or (looked_up and mode != "FILL_OR_DROP")):
            high = self.number(extent - 1, IDS)
            ids = self.make("clamp", (self.number(0, IDS), ids, high), IDS, shape)
        here = self.make("sub", (ids, self.spread(self.offset(index, IDS), shape)), IDS, shape)
        inside = self.between(here, block, shape)
        kept = self.make("select_n", (inside, self.spread(self.number(0, IDS), shape), here), IDS, shape)
        if mode == "FILL_OR_DROP" and looked_up:
            outside = self.make("not", (self.between(ids, extent, shape),), "bool", shape)
            mine = self.make("and", (outside, self.spread(self.first(index), shape)), "bool", shape)
            kept = self.make("select_n", (mine, kept, self.spread(self.number(-1, IDS), shape)), IDS, shape)
            inside = self.make("or", (inside, mine), "bool", shape)
        self.locals[operand] = self.only(given, kept, component)
        return self.component(inside, component)

    def mode(self) -> str:
        params = cast(ParamsAttr, self.node.op.properties.get("params", NO_PARAMS))
        mode = params.get("mode")
        return str(mode["name"]) if isinstance(mode, Record) else "CLIP"

    def between(self, ids: SSAValue, extent: int, shape: tuple[int, ...]) -> SSAValue:
        low = self.make("ge", (ids, self.spread(self.number(0, IDS), shape)), "bool", shape)
        high = self.make("lt", (ids, self.spread(self.number(extent, IDS), shape)), "bool", shape)
        return self.make("and", (low, high), "bool", shape)

    def component(self, mask: SSAValue, component: int) -> SSAValue:
        """One component of the mask along the index vectors' dim, which is the last (a scalar start has none)."""
        shape = cast(ArrayType, mask.type).shape
        if not shape or component == ELEMENT:
            return mask
        *batch, width = shape
        if width > 1:
            starts = (*(0 for _ in batch), component)
            params: dict[str, Literal] = {"start_indices": starts, "strides": None}
            mask = self.make("slice", (mask,), "bool", (*batch, 1), **params)
        return self.make("reshape", (mask,), "bool", tuple(batch))

    def only(self, ids: SSAValue, shifted: SSAValue, component: int) -> SSAValue:
        """The shifted ids in this component, the others as they were."""
        shape = cast(ArrayType, ids.type).shape
        if not shape or shape[-1] == 1 or component == ELEMENT:
            return shifted
        at = self.make("iota", (), IDS, shape, dtype=Record("dtype", (("name", IDS),)), dimension=len(shape) - 1)
        this = self.make("eq", (at, self.spread(self.number(component, IDS), shape)), "bool", shape)
        return self.make("select_n", (this, ids, shifted), IDS, shape)

    def masked(self, value: SSAValue, mask: SSAValue, ids: int, at: dict[int, tuple[int, int, int]]) -> SSAValue:
        """Zero where the mask is false; the mask's dims are found in the value by the indices that they share."""
        rows = self.node.signature.operand_dims[ids]
        dims = [(dim, row[0][0]) for dim, row in enumerate(rows) if row]
        shape = cast(ArrayType, mask.type).shape
        narrow = tuple(shape[dim] for dim, _ in dims)
        if narrow != shape:
            mask = self.make("reshape", (mask,), "bool", narrow)
        type = cast(ArrayType, value.type)
        into = tuple(at[index][0] for _, index in dims)
        if type.shape != narrow or into != tuple(range(len(into))):
            mask = self.make("broadcast_in_dim", (mask,), "bool", type.shape, broadcast_dimensions=into)
        return self.select(mask, value)

    def select(self, keep: SSAValue, value: SSAValue) -> SSAValue:
        """The value where `keep`, else zero."""
        type = cast(ArrayType, value.type)
        zero = self.spread(self.number(0, type.dtype), type.shape)
        return self.make("select_n", (keep, zero, value), type.dtype, type.shape)

    def number(self, value: int, dtype: str) -> SSAValue:
        plain: Literal = value
        if dtype == "bool":
            plain = bool(value)
        elif not dtype.startswith(("int", "uint")):
            plain = float(value)
        return self.make("constant", (), dtype, (), value=plain)

    def cast(self, value: SSAValue, dtype: str) -> SSAValue:
        shape = cast(ArrayType, value.type).shape
        to = Record("dtype", (("name", dtype),))
        return self.make("convert_element_type", (value,), dtype, shape, new_dtype=to, weak_type=False)

    def spread(self, scalar: SSAValue, shape: tuple[int, ...]) -> SSAValue:
        if not shape:
            return scalar
        dtype = cast(ArrayType, scalar.type).dtype
        return self.make("broadcast_in_dim", (scalar,), dtype, shape, broadcast_dimensions=())

    def make(self, kind: str, ins: Sequence[SSAValue], dtype: str, shape: tuple[int, ...], /, **params: Literal) -> SSAValue:
        op = OPS[kind].of(ins, [ArrayType.whole(dtype, shape)], ParamsAttr.of(**params) if params else NO_PARAMS)
        self.into.append(op)
        return op.results[0]
