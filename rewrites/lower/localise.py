"""The device-local op of a placed op: the same op on local types, with the offsets and masks that its definition requires.

The requirements are written as a term (look up in a table of blocks, slice an index, ...), and the laws of `masks.rules` say
what one device does. `shift` counts looked-up rows from the device's first row. `mask` excludes rows of other devices. `first`
makes a term without the folded index count once. `offset` is the start of a device's block. The only op that this file knows by
name is the tag, which is the identity.

    %e = gather %table[(v: model), :] %ids   -->   %e = select (0 <= %ids - v0 < block) (gather %table %ids - v0) 0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias, cast

from xdsl.ir import Operation, SSAValue

from ...dialects.definitions.gather_form import general
from ...dialects.definitions.gathers import DROPS
from ...dialects.definitions.ground_form import ELEMENT
from ...dialects.lax import OPS
from ...dialects.params import NO_PARAMS, ParamsAttr
from ...dialects.types import ArrayType
from ..decide.op_layouts import Placed
from ..decide.pending import Carry
from ..program.program import Node, Program
from ..rules.files import rules
from .constructors import Constructor
from .emit import IDS, Emitter, type_at
from .lookups import Vectors, masked, shifted

OP = "op"
"""The leaf of a term: the op itself, with the requirements of its other indices."""


@dataclass(frozen=True, slots=True)
class Elements:
    """A looked-up index: the elements of operand `ids`."""

    ids: int


@dataclass(frozen=True, slots=True)
class Component:
    """A looked-up index: one component of the index vectors that operand `ids` holds."""

    ids: int
    number: int


Term: TypeAlias = "str | int | Elements | Component | tuple[Term, ...]"


def localise(
    program: Program, node: Node, placed: Placed, carry: Carry | None, locals: Sequence[SSAValue], into: Constructor
) -> list[SSAValue]:
    """Emits the op on local operands, some of which may carry a pending sum. Returns its local results."""
    if node.kind == "tag":
        return list(locals)
    local = _Local(program, node, placed, list(locals), into)
    carried = [("add", operand, ("sum", _axes(carry), OP)) for operand in sorted(carry.once)] if carry is not None else []
    return local.emit([*carried, *local.asked()])


def _axes(carry: Carry) -> tuple[str, ...]:
    """The axes over which a carried sum runs."""
    return tuple(each.axis for each in carry.pend)


def same_op(op: Operation, locals: Sequence[SSAValue], into: Constructor) -> list[SSAValue]:
    """Emits an op that returns each operand unchanged, in any layout: the same op, on all local values."""
    made = type(op).create(operands=locals, result_types=[value.type for value in locals], properties=op.properties)
    into.append(made)
    return list(made.results)


class _Local:
    """One op being emitted; `locals` are its operands, which the laws change before the op is emitted."""

    def __init__(self, program: Program, node: Node, placed: Placed, locals: list[SSAValue], into: Constructor) -> None:
        self.program = program
        self.node = node
        self.placed = placed
        self.locals = locals
        self.into = into
        self.ops = Emitter(into)
        self.indices, self.starts = node.signature.instance.indices, node.signature.instance.definition.starts
        self.params = cast(ParamsAttr, node.op.properties.get("params", NO_PARAMS))
        self.vectors: Vectors | None = None

    def asked(self) -> Iterator[Term]:
        """A term for all requirements of the placed indices beyond the op on local types."""
        for index in sorted({index for _, index, _ in self.placed.placement}):
            info, block = self.indices[index], self.block(index)
            for operand in info.once:
                if not self.program.zero[self.node.operands[operand]]:
                    yield ("add", operand, ("sum", index, OP))
            for ids, component, width in info.lookups:
                looked_up = Elements(ids) if component == ELEMENT else Component(ids, component)
                k: Term = looked_up if width == 1 else ruled(("window", looked_up, width))
                if info.monoid is not None:
                    yield ("take", k, ("build", index, block, OP))
                elif component == ELEMENT:
                    yield from (("slice", index, block, ("join", info.extent, k, operand)) for operand in info.masked)
                else:
                    yield ("slice", index, block, ("put", info.extent, k, OP))
            if info.scan is not None:
                yield ("scan", ("build", index, block, OP))
            if info.value:
                yield ("slice", index, block, ("iota", info.extent))

    def emit(self, asked: list[Term]) -> list[SSAValue]:
        """Emits the op with everything that its requirements add to it."""
        return self.realise(ruled(asked[0]), asked[1:]) if asked else self.op(self.locals)

    def realise(self, term: Term, rest: list[Term]) -> list[SSAValue]:
        """Emits the result of a law; its leaf is the op with the remaining requirements."""
        match term:
            # A fold or scan across devices stays pending in the result's type.
            case ("sum", _, inner):
                return self.realise(inner, rest)
            case ("across", _, ("scan", _)):
                return self.emit(rest)
            case ("add", ("first", over, int(operand)), _):
                axes = self.over(over) if isinstance(over, int) else cast(tuple[str, ...], over)
                self.locals[operand] = self.ops.select(self.first(axes), self.locals[operand])
                return self.emit(rest)
            case ("add", ("iota", _), ("offset", int(index), _)):
                return [self.plus_offset(self.emit(rest)[0], index)]
            case ("mask", ("mine", int(index), int(block), Elements(ids)), _):
                mask = self.shift(index, block, ids)
                return [masked(self.emit(rest)[0], mask, ids, self.node.signature.result_at[0], self.node, self.ops)]
            case ("join", _, ("shift", int(index), int(block), Elements(ids)), ("mask", _, int(operand))):
                mask, at = self.shift(index, block, ids), self.node.signature.operand_at[operand]
                self.locals[operand] = masked(self.locals[operand], mask, ids, at, self.node, self.ops)
                return self.emit(rest)
            case ("mask", ("mine", int(index), int(block), k), _):
                component = self.looked_up(k)
                assert self.vectors is not None
                first = self.first(self.over(index)) if self.vectors.form.mode == DROPS else None
                mask = self.vectors.keep(component, block, self.offset(index), first)
                return [self.ops.select(mask, self.emit(rest)[0])]
            case ("put", _, ("shift", int(index), _, k), _):
                component = self.looked_up(k)
                assert self.vectors is not None
                self.vectors.drop(component, self.offset(index))
                return self.emit(rest)
            case _:
                raise AssertionError(f"no way to run {term}")

    def shift(self, index: int, block: int, ids: int) -> SSAValue:
        """Counts ids from this device's first row; returns the mask of those whose row is on this device."""
        self.locals[ids], mask = shifted(self.locals[ids], self.offset(index), block, self.ops)
        return mask

    def looked_up(self, k: Term) -> int:
        """The component of a lookup. Prepares the vectors, and splits windows into rows if the lookup needs rows."""
        match k:
            case Component():
                rows, of = False, k
            case ("add", Component() as of, ("iota", _)):
                rows = True
            case _:
                raise AssertionError(f"no index vectors in {k}")
        if self.vectors is None:
            self.vectors = self.found_vectors()
        # Each scalar start is a separate component.
        component = of.number + of.ids - self.starts[0]
        if rows:
            self.vectors.rows(component)
        return component

    def found_vectors(self) -> Vectors:
        shape, at = self.program.shape, self.moved()
        whole = shape(self.node.operands[at] if at is not None else self.node.results[0])
        local = type_at(self.locals[at]).shape if at is not None else self.local_type(0).shape
        form = general(self.node.signature.instance.definition, self.params, shape(self.node.operands[0]), whole)
        return Vectors(form, [self.locals[start] for start in self.starts], shape(self.node.operands[0]), local, self.ops)

    def moved(self) -> int | None:
        """The operand whose windows are written; None if windows are read into the result."""
        others = set(range(1, len(self.node.operands))) - set(self.starts)
        return min(others, default=None)

    def op(self, locals: list[SSAValue]) -> list[SSAValue]:
        types = [self.local_type(position) for position in range(len(self.node.results))]
        kind, params = self.node.kind, self.params
        if self.vectors is not None:
            at = self.moved()
            kind, params = self.vectors.form.kind, self.vectors.form.params
            locals = [locals[0], self.vectors.ids, *([] if at is None else [locals[at]])]
        if self.node.signature.own:
            params = ParamsAttr.of(**dict(params.items()), placed=True)
        op = OPS[kind].create(operands=locals, result_types=types, properties={"params": params})
        self.into.append(op)
        return list(op.results)

    def local_type(self, position: int) -> ArrayType:
        value = self.node.results[position]
        shape = list(self.program.shape(value))
        for axis, dim, _ in self.placed.produced[position]:
            shape[dim] //= self.into.mesh[axis]
        return ArrayType.whole(self.program.types[value].dtype, tuple(shape))

    def over(self, index: int) -> tuple[str, ...]:
        """The axes that the index is placed on."""
        return tuple(axis for axis, at, _ in self.placed.placement if at == index)

    def first(self, axes: tuple[str, ...]) -> SSAValue:
        """Whether this device is the first along every one of the axes."""
        return reduce(self.ops.both, [self.ops.equals(self.into.coordinate(axis), 0) for axis in axes])

    def offset(self, index: int, dtype: str = IDS) -> SSAValue:
        """The start of this device's block of the index: the sum of coordinate times stride."""
        parts = [
            self.ops.make("mul", (self.into.coordinate(axis), self.ops.number(stride, IDS)), IDS, ())
            for axis, at, stride in self.placed.placement
            if at == index
        ]
        total = reduce(lambda one, other: self.ops.make("add", (one, other), IDS, ()), parts)
        return total if dtype == IDS else self.ops.cast(total, dtype)

    def block(self, index: int) -> int:
        """How many of the index's values one device holds."""
        return min(stride for _, at, stride in self.placed.placement if at == index)

    def plus_offset(self, out: SSAValue, index: int) -> SSAValue:
        type = type_at(out)
        return self.ops.make("add", (out, self.ops.spread(self.offset(index, type.dtype), type.shape)), type.dtype, type.shape)


def ruled(term: Term) -> Term:
    """The result of the law for this form of term."""
    found = rules("masks").rewrite_root(term, {})
    assert found is not None, "every form that is asked for has its law"
    return cast(Term, found[0])
