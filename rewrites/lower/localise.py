"""The device-local op of a placed op: the same op on local types, with the offsets and masks that its definition requires.

The requirements are written as a term (look up in a table of blocks, slice an index, ...), and the laws of `masks.rules` say
what one device does. `shift` counts looked-up rows from the device's first row. `mask` excludes rows of other devices. `first`
makes a term without the folded index count once. `offset` is the start of a device's block. The only op that this file knows by
name is the tag, which is the identity.

    %e = gather %table[(v: model), :] %ids   -->   %e = select (0 <= %ids - v0 < block) (gather %table %ids - v0) 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TypeAlias, cast

from xdsl.ir import Operation, SSAValue

from ...dialects.definitions.gather_form import general
from ...dialects.definitions.gathers import DROPS
from ...dialects.definitions.tilings import Picks, Placeable
from ...dialects.definitions.tree import Param
from ...dialects.lax import OPS
from ...dialects.monoids import MONOIDS
from ...dialects.params import NO_PARAMS, ParamsAttr
from ...dialects.ranges.algebra import MeshAxis
from ...dialects.ranges.factor import Factor, is_padded, joined, settled
from ...dialects.ranges.reach import Reach
from ...dialects.types import ArrayType
from ..decide.linearity import linear_in
from ..decide.op_layouts import Merged, Placed, Selected
from ..decide.pending import Carry
from ..decide.requirements import Component, Elements, Placing, Term, counts_once, law, requirements
from ..emit import IDS, Emitter, type_at
from ..program.program import Node, Position, Program
from .constructors import Constructor
from .lookups import Vectors, masked, shifted

PROMISES = ("indices_are_sorted", "unique_indices")
"""Parameters by which an op assumes something about the ids."""

Keep: TypeAlias = Callable[[SSAValue, Mapping[int, Position]], SSAValue]
"""Masks a local array: zero where a condition does not hold."""


def localise(
    program: Program,
    node: Node,
    placed: Placed,
    carry: Carry | None,
    locals: Sequence[SSAValue],
    types: Sequence[ArrayType],
    into: Constructor,
) -> list[SSAValue]:
    """Emits the op on local operands, some of which may carry a pending sum. Returns its results, which have local types."""
    if node.kind == "tag":
        return list(locals)
    carried = [counts_once(operand, axes) for operand, axes in carry.once] if carry is not None else []
    if placed.is_plain and not carried and not node.signature.rivals and not node.signature.own:
        return same_op(node.op, locals, types, into)
    local = _Local(program, node, placed, list(locals), types, into)
    if placed.is_plain and not carried:
        return local.op(local.locals)
    return local.bounded(local.emit([*carried, *local.asked()]))


def on_first(value: SSAValue, axes: tuple[MeshAxis, ...], into: Constructor) -> SSAValue:
    """A replicated value as a term of a sum over these axes: it counts on the first device alone."""
    ops = Emitter(into)
    return ops.select(_is_first(axes, ops, into), value)


def _is_first(axes: tuple[MeshAxis, ...], ops: Emitter, into: Constructor) -> SSAValue:
    """Whether this device is the first along every one of the axes."""
    return reduce(ops.both, [ops.equals(into.coordinate(axis), 0) for axis in axes])


def same_op(op: Operation, locals: Sequence[SSAValue], types: Sequence[ArrayType], into: Constructor) -> list[SSAValue]:
    """Emits an op that one device runs as it is, on its local values: the same op, with results of local types."""
    made = type(op).create(operands=locals, result_types=types, properties=op.properties)
    into.append(made)
    return list(made.results)


def unpromised(params: ParamsAttr) -> ParamsAttr:
    return ParamsAttr.of(**{key: False if key in PROMISES else value for key, value in params.items()})


class _Local:
    """One op being emitted; `locals` are its operands, which the laws change before the op is emitted."""

    def __init__(
        self,
        program: Program,
        node: Node,
        placed: Placed,
        locals: list[SSAValue],
        types: Sequence[ArrayType],
        into: Constructor,
    ) -> None:
        self.program = program
        self.node = node
        self.placed = placed
        self.locals = locals
        self.types = types
        self.into = into
        self.ops = Emitter(into)
        self.indices, self.starts = node.signature.instance.indices, node.signature.instance.definition.starts
        self.params = cast(ParamsAttr, node.op.properties.get("params", NO_PARAMS))
        self.vectors: Vectors | None = None
        self.kept: dict[tuple[int, Term], Keep] = {}

    def asked(self) -> Iterator[Term]:
        """The requirements of the placed indices."""
        zeros = self.program.zeros(self.node)
        for index in sorted({index for index, _ in self.placed.placement}):
            info = self.indices[index]
            yield from requirements(info, index, Placing.of(info, self.factors(index)), zeros)

    def emit(self, asked: list[Term]) -> list[SSAValue]:
        """Emits the op with everything that its requirements add to it."""
        if not asked:
            return self.op(self.locals)
        found = law(asked[0])
        assert found is not None, "an index is placed only if there are laws for what it requires"
        return self.result(found, asked[1:])

    # The terms of laws, each by what it means; a law is any composition of them.

    def result(self, term: Term, rest: list[Term]) -> list[SSAValue]:
        """Emits a term of the op, with its arguments changed and its result; its leaf has the remaining requirements."""
        match term:
            # A fold or scan across devices stays pending in the result's type.
            case ("sum" | "across", _, inner):
                return self.result(inner, rest)
            case ("mask", condition, inner):
                keep = self.condition(condition)
                return [keep(self.result(inner, rest)[0], self.node.signature.result_at[0])]
            case ("select", which, then, other):
                (value,), (below,) = self.result(then, rest), self.result(other, rest)
                return [self.where(which, value, below)]
            case ("slice", _, _, int(operand) | ("after", _, int(operand))):
                return [self.locals[operand]]
            case ("slice", _, _, ("chain", *_)):
                return self.result(cast(Term, law(term)), rest)
            case ("fill", *_):
                self.argument(term, False)
                return self.emit(rest)
            case ("add", inner, ("offset", int(index), _)):
                *others, positions = self.result(inner, rest)
                return [*others, self.plus_offset(positions, index)]
            case ("best", str()):
                return self.lists(self.emit(rest))
            case ("best", ("gather", _, inner)):
                return self.best(self.result(inner, rest))
            case ("merge", int(index), inner):
                self.params = ParamsAttr.of(**{**dict(self.params.items()), "is_stable": True})
                return self.merged(self.result(inner, rest), index)
            case (str(head), *args):
                for argument in args:
                    self.argument(argument, head in ("find", "put"))
                return self.emit(rest)
            case _:
                return self.emit(rest)

    def lists(self, found: list[SSAValue]) -> list[SSAValue]:
        """The elements that the op selects of this block, and their positions in it, along the dim that it selects along."""
        dim, apart, _ = cast(Selected, self.placed.selected)
        shape = apart.local_shape
        *values, positions = (self.ops.reshape(each, shape) for each in found)
        return [*(values or [self.ops.take(self.locals[0], positions, dim)]), positions]

    def best(self, lists: list[SSAValue]) -> list[SSAValue]:
        """The results of the op, from the lists of all blocks: gathered, and selected again. Unread positions stay behind."""
        into, (dim, apart, whole) = self.into, cast(Selected, self.placed.selected)
        sent = lists if self.program.is_read(self.node.results[-1]) else lists[:1]
        before, after = ([ArrayType.of(type_at(each).dtype, layout) for each in sent] for layout in (apart, whole))
        built = into.close(list(zip(sent, before, strict=True)), [factor.axis for _, factor in self.placed.placement])
        gathered = [into.redistribute([each], [type])[0] for each, type in zip(built, after, strict=True)]
        into.open()
        values, *positions = (into.slice(each, type) for each, type in zip(gathered, after, strict=True))
        *others, at = self.op([values])
        shape = type_at(at).shape
        for each in positions:
            in_list = self.ops.reshape(at, apart.local_shape)
            at = self.ops.reshape(self.ops.take(each, in_list, dim), shape)
        return [*others, at]

    def merged(self, blocks: list[SSAValue], index: int) -> list[SSAValue]:
        """The results of the op, from sorted blocks."""
        step = cast(Merged, self.placed.merged).step(self.placed.produced[0])
        device = self.ops.make("div", (self.offset(index), self.ops.number(self.block(index), IDS)), IDS, ())
        return step.exchanged(blocks, device, self.into)

    def argument(self, term: Term, drops: bool) -> None:
        """Changes the operand that an argument of the op is about; `drops` if the op drops positions outside the array."""
        match term:
            case ("mask", condition, int(operand)):
                self.locals[operand] = self.condition(condition)(self.locals[operand], self.node.signature.operand_at[operand])
            case ("shift", int(index), _, Component() | ("add", *_) as k) if drops:
                vectors, component = self.looked_up(k)
                vectors.drop(component, self.offset(index))
            case ("shift", int(index), int(block), Elements(ids)) if drops:
                self.locals[ids], _ = self.elements(index, block, ids, -1)
                self.params = unpromised(self.params)
            case ("shift", int(index), int(block), k):
                self.rows(index, block, k)
            case ("fill", ("inside", int(index), int(operand)), str() | int() as outside, _):
                self.locals[operand] = self.bordered(operand, index, outside)
            case ("fill", ("own", int(index), int(n)), str(monoid), int(operand)):
                self.locals[operand] = self.owned(operand, index, n, monoid)
            case ("fill", ("within", int(index), int(block), int(n)), str(monoid), int(operand)):
                self.locals[operand] = self.filled(operand, index, block, n, monoid)
            case _:
                pass

    def where(self, which: Term, value: SSAValue, other: SSAValue) -> SSAValue:
        """Of two arrays of this device's rows of the result, the rows of the first that a condition names."""
        match which:
            case ("behind", int(index), _, int(begin)):
                emit, at, shape = self.ops, self.node.signature.result_at[0][index].dim, type_at(value).shape
                rows = emit.rows(shape, at, self.offset(index))
                is_behind = emit.make("ge", (rows, emit.spread(emit.number(begin, IDS), shape)), "bool", shape)
                return emit.select(is_behind, value, other)
            case ("among", int(index), _, int(first), int(part)):
                factor, reach = self.one(index), self.node.signature.operand_at[part][index].reach
                if reach is None or not reach.reads_outside(factor):
                    return value
                start = self.ops.make("sub", (self.start(factor), self.ops.number(first, IDS)), IDS, ())
                dim = self.node.signature.result_at[0][index].dim
                return self.ops.inside(value, dim, start, (reach.size - 1) * reach.divisor + 1, other)
            case _:
                raise AssertionError(f"{which} does not say which rows")

    def condition(self, term: Term) -> Keep:
        """A mask, as the function that applies it to a local array, given where the array's indices are."""
        match term:
            case ("mine", int(index), int(block), k):
                return self.rows(index, block, k)
            case ("first", over):
                axes = self.over(over) if isinstance(over, int) else cast(tuple[MeshAxis, ...], over)
                first = self.first(axes)
                return lambda value, _: self.ops.select(first, value)
            case _:
                raise AssertionError(f"{term} is not a condition")

    def filled(self, operand: int, index: int, block: int, n: int, monoid: str) -> SSAValue:
        """An operand with the monoid's unit in the rows of this block that are not among the first `n` of the whole array."""
        emit, value, dim = self.ops, self.locals[operand], self.node.signature.operand_at[operand][index].dim
        if self.factors(index)[-1].has_halo:
            return self.inside(value, dim, self.one(index), n, monoid)
        shape = type_at(value).shape
        # Other axes may be on the indices that are minor to this one.
        minor = shape[dim] // block
        left = emit.make("sub", (emit.number(n, IDS), self.offset(index)), IDS, ())
        if minor > 1:
            left = emit.make("mul", (left, emit.number(minor, IDS)), IDS, ())
        within = emit.make("lt", (emit.iota(shape, dim), emit.spread(left, shape)), "bool", shape)
        return emit.select(within, value, emit.unit(monoid, type_at(value).dtype))

    def bordered(self, operand: int, index: int, outside: str | int) -> SSAValue:
        """An operand with the unit of a monoid, or with another operand, where this device's window leaves the array."""
        value, at = self.locals[operand], self.node.signature.operand_at[operand][index]
        factor = self.one(index)
        window = at.outward(factor)
        is_zero = window.has_halo and isinstance(outside, str) and MONOIDS[outside].has_unit_zero
        if is_zero or at.reach is None or not at.reach.reads_outside(factor):
            return value
        return self.inside(value, at.dim, window, at.reach.size, outside)

    def bounded(self, results: list[SSAValue]) -> list[SSAValue]:
        """The results with zeros where their windows are outside of the array, as every reader of a window expects.

        Scans of blocks stay as they are until they are combined: of a block without elements, the total is the unit.
        """
        for index in sorted({index for index, factor in self.placed.placement if factor.has_halo}):
            extent, factor = self.indices[index].extent, self.one(index)
            overhangs = factor.has_halo and factor.overhangs(extent)
            if overhangs and self.indices[index].scan is None and not self.keeps_zeros(index):
                for number, at in enumerate(self.node.signature.result_at):
                    if index in at:
                        results[number] = self.inside(results[number], at[index].dim, factor, extent, "add")
        return results

    def keeps_zeros(self, index: int) -> bool:
        """Whether rows of zeros give rows of zeros: all operands have them, and the op is linear in all, or in each alone."""
        signature, definition = self.node.signature, self.node.signature.instance.definition
        if index in signature.rivals or not self.locals or any(index not in at for at in signature.operand_at):
            return False
        alone = [frozenset([at]) for at in range(len(self.locals))]
        return any(
            all(linear_in(definition, each, frozenset()) for each in sets) for sets in ([frozenset[int]().union(*alone)], alone)
        )

    def owned(self, operand: int, index: int, n: int, monoid: str) -> SSAValue:
        """An operand with the monoid's unit in the rows of this window that are not its own, or not among the first `n`."""
        emit, window, value = self.ops, self.one(index), self.locals[operand]
        dim = self.node.signature.operand_at[operand][index].dim
        if window.overhangs(n) and not MONOIDS[monoid].has_unit_zero:
            value = self.inside(value, dim, window, n, monoid)
        if window.is_tiling:
            return value
        within = emit.between(emit.iota(type_at(value).shape, dim), self.own(index))
        return emit.select(within, value, emit.unit(monoid, type_at(value).dtype))

    def own(self, index: int) -> int | SSAValue:
        """How many rows of this device's window are its own: those before the next window, and on the last device all."""
        window = self.one(index)
        if window.is_tiling:
            return window.width
        is_last = self.ops.equals(self.start(window), window.start(window.size - 1))
        return self.ops.select(is_last, self.ops.number(window.width, IDS), window.own)

    def inside(self, value: SSAValue, dim: int, window: Factor, extent: int, outside: str | int) -> SSAValue:
        """The rows of this device's window that are in the array; elsewhere a monoid's unit, or an operand of rank 0."""
        unit = self.ops.unit(outside, type_at(value).dtype) if isinstance(outside, str) else self.locals[outside]
        return self.ops.inside(value, dim, self.start(window), extent, unit)

    def rows(self, index: int, block: int, k: Term) -> Keep:
        """Counts positions from this device's block, those of other blocks as any row, and keeps the rows of this block."""
        if (index, k) not in self.kept:
            self.kept[index, k] = self.shifted(index, block, k)
        return self.kept[index, k]

    def shifted(self, index: int, block: int, k: Term) -> Keep:
        if isinstance(k, Elements):
            ids = k.ids
            self.locals[ids], mask = self.elements(index, block, ids)
            return lambda value, at: masked(value, mask, ids, at, self.node, self.ops)
        if isinstance(k, Picks):
            return self.picked(index, block, k)
        vectors, component = self.looked_up(k)
        first = self.first(self.over(index)) if vectors.form.mode == DROPS else None
        inside = vectors.keep(component, block, self.offset(index), first, self.is_padded(index))
        return lambda value, _: self.ops.select(inside, value)

    def picked(self, index: int, block: int, rows: Picks) -> Keep:
        """Takes the rows at these positions out of the one operand, and keeps those of this device's block."""
        emit, dim = self.ops, self.node.signature.operand_at[0][index].dim
        first = emit.make("sub", (emit.number(rows.first, IDS), self.offset(index)), IDS, ())
        ids = emit.rows((rows.count,), 0, first, rows.step)
        inside = emit.between(ids, self.own(index) if self.factors(index)[-1].has_halo else block)
        self.locals[0] = emit.take_rows(self.locals[0], emit.select(inside, ids), dim)
        return lambda value, _: emit.select(emit.spread(inside, type_at(value).shape, (dim,)), value)

    def elements(self, index: int, block: int, ids: int, outside: int | None = None) -> tuple[SSAValue, SSAValue]:
        """The ids in an operand, counted from this device's block, and the mask of those in the block."""
        most = self.indices[index].extent if self.is_padded(index) else None
        return shifted(self.locals[ids], self.offset(index), block, self.ops, most, outside)

    def looked_up(self, k: Term) -> tuple[Vectors, int]:
        """The vectors and the component of a lookup; windows are split into rows if the lookup needs rows."""
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
        return self.vectors, component

    def found_vectors(self) -> Vectors:
        shape, at = self.program.shape, self.moved()
        whole = shape(self.node.operands[at] if at is not None else self.node.results[0])
        local = type_at(self.locals[at]).shape if at is not None else self.types[0].shape
        form = general(self.node.signature.instance.definition, self.params, shape(self.node.operands[0]), whole)
        return Vectors(form, [self.locals[start] for start in self.starts], shape(self.node.operands[0]), local, self.ops)

    def moved(self) -> int | None:
        """The operand whose windows are written; None if windows are read into the result."""
        others = set(range(1, len(self.node.operands))) - set(self.starts)
        return min(others, default=None)

    def op(self, locals: list[SSAValue]) -> list[SSAValue]:
        kind, params = self.node.kind, self.params
        if self.vectors is not None:
            at = self.moved()
            kind, params = self.vectors.form.kind, self.vectors.form.params
            locals = [locals[0], self.vectors.ids, *([] if at is None else [locals[at]])]
        params = self.moved_windows(params)
        if not self.placed.is_plain and any(map(self.is_padded, {index for index, _ in self.placed.placement})):
            # Rows of padding may be anywhere, so promises about ids no longer hold.
            params = unpromised(params)
        if self.node.signature.own:
            params = ParamsAttr.of(**dict(params.items()), placed=True)
        op = OPS[kind].create(operands=locals, result_types=self.types, properties={"params": params})
        self.into.append(op)
        return list(op.results)

    def moved_windows(self, params: ParamsAttr) -> ParamsAttr:
        """The parameters with which windows begin where the local operands do, and end where these end."""
        if not self.node.signature.rivals:
            return params
        placed = {index for index, _ in self.placed.placement}
        for dim in (dim for dims in self.node.signature.instance.operands for dim in dims if dim.moved is not None):
            for index, reach in zip(dim.indices, dim.reaches, strict=True):
                if index in placed:
                    params = self.moved_window(params, dim, index, reach)
        return params

    def moved_window(self, params: ParamsAttr, dim: Placeable, index: int, reach: Reach | None) -> ParamsAttr:
        """The parameters for the window of one placed index."""
        param, sign = dim.moved or (None, 1)
        if not isinstance(param, Param):
            return params
        if reach is None:
            # The rows are there, one after another.
            params = param.put(params, 0)
            return params if dim.scaled is None else dim.scaled.put(params, 1)
        factor, begin = self.one(index), cast(int, param.value(params))
        if factor.is_in_turn(reach.extent):
            ends = (begin, reach.extent - reach.size - begin) if sign < 0 else (begin,)
            return param.put(params, *(end // factor.size for end in ends))
        lead, trail = reach.gaps(factor)
        begin -= sign * (lead - reach.window.lo)
        return param.put(params, *((begin, trail) if sign < 0 else (begin,)))

    def factors(self, index: int) -> list[Factor]:
        """The placed factors of an index; a halo is that of the minor one, which is the last."""
        return settled(self.indices[index].extent, [factor for at, factor in self.placed.placement if at == index])

    def one(self, index: int) -> Factor:
        """The placed factors of an index through a window, or in windows, as one."""
        factor = joined(self.indices[index].extent, self.factors(index))
        assert factor is not None, "an index has windows only if its factors are one"
        return factor

    def over(self, index: int) -> tuple[MeshAxis, ...]:
        """The axes that the index is placed on."""
        return tuple(factor.axis for factor in self.factors(index))

    def first(self, axes: tuple[MeshAxis, ...]) -> SSAValue:
        return _is_first(axes, self.ops, self.into)

    def offset(self, index: int, dtype: str = IDS) -> SSAValue:
        """The start of this device's block of the index, or of its window."""
        start = self.start(*self.factors(index))
        return start if dtype == IDS else self.ops.cast(start, dtype)

    def start(self, *factors: Factor) -> SSAValue:
        """The first element that this device holds of a range: the sum of coordinate times stride, less what is before it."""
        apart = [part for factor in factors for part in factor.parts]
        parts = [
            self.ops.make("mul", (self.into.coordinate(part.axis), self.ops.number(part.stride, IDS)), IDS, ())
            for part in apart
        ]
        parts += [self.ops.number(-part.before, IDS) for part in apart if part.before]
        return reduce(lambda one, other: self.ops.make("add", (one, other), IDS, ()), parts)

    def is_padded(self, index: int) -> bool:
        """Whether the devices together hold more than the index's values."""
        return is_padded(self.indices[index].extent, self.factors(index))

    def block(self, index: int) -> int:
        """How many of the index's values one device holds."""
        return min(factor.stride for factor in self.factors(index))

    def plus_offset(self, out: SSAValue, index: int) -> SSAValue:
        type = type_at(out)
        return self.ops.make("add", (out, self.ops.spread(self.offset(index, type.dtype), type.shape)), type.dtype, type.shape)
