"""The device-local op of a placed op: the same op on local types, with the offsets and masks that its definition requires.

The requirements are written as a term (look up in a table of blocks, slice an index, ...), and the laws of `masks.rules` say
what one device does. `shift` counts looked-up rows from the device's first row. `mask` excludes rows of other devices. `first`
makes a term without the folded index count once. `offset` is the start of a device's block. The table `WRITERS` has the
function that runs each head; loading the laws checks them against it. The only op that this file knows by name is the tag,
which is the identity.

    %e = gather %table[(v: model), :] %ids   -->   %e = select (0 <= %ids - v0 < block) (gather %table %ids - v0) 0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TypeAlias, cast

from xdsl.ir import Operation, SSAValue

from ...dialects.definitions.front_ends.gather import DROPS
from ...dialects.definitions.front_ends.gather_form import general
from ...dialects.definitions.ground_form import ELEMENT
from ...dialects.definitions.requirement_terms import Begin, Lookup, Picks, Rows, Scan, Term, counts_once
from ...dialects.ground.monoids import MONOIDS
from ...dialects.lax import OPS
from ...dialects.params import ParamsAttr
from ...dialects.ranges.algebra import Place
from ...dialects.ranges.factor import Factor, is_padded, joined, settled
from ...dialects.types import ArrayType
from ..decide.deferred_reductions import DeferredReduction
from ..decide.linearity import linear_in
from ..decide.placements import OpPlacement, Selected
from ..decide.requirements import Placing, law, requirements
from ..emit import IDS, Emitter, again, type_at
from ..program.program import Node, Position, Program
from ..redistribute.kinds.merge import Merge
from ..rules.allowed_heads import LEAF, Head, Heads
from ..rules.compile import RuleSet
from ..rules.rule_files import register_check
from .constructors import Constructor
from .masked_lookups import Vectors, masked, shifted

PROMISES = ("indices_are_sorted", "unique_indices")
"""Parameters by which an op assumes something about the ids."""

Which: TypeAlias = Callable[[SSAValue, SSAValue], SSAValue]
"""Takes the rows of the first or of the second of two local arrays."""
Keep: TypeAlias = Callable[[SSAValue, Mapping[int, Position]], SSAValue]
"""Masks a local array, given where the array's indices are: zero where a condition does not hold."""


def localise(
    program: Program,
    node: Node,
    placed: OpPlacement,
    carry: DeferredReduction | None,
    locals: Sequence[SSAValue],
    types: Sequence[ArrayType],
    into: Constructor,
) -> list[SSAValue]:
    """Emits the op on local operands, some of which may carry a pending sum. Returns its results, which have local types."""
    if node.op_name == "tag":
        return list(locals)
    carried = [law(counts_once(operand, axes)) for operand, axes in carry.once] if carry is not None else []
    if placed.is_plain and not carried and not node.signature.own:
        return same_op(node.op, locals, types, into)
    local = _Local(program, node, placed, list(locals), types, into, carried)
    return local.bounded(local.emit())


def on_first(value: SSAValue, axes: tuple[Place, ...], into: Constructor) -> SSAValue:
    """Makes a replicated value a term of a sum over these axes: the first device keeps it, the others get zero."""
    ops = Emitter(into)
    return ops.select(_is_first(axes, ops, into), value)


def _is_first(axes: tuple[Place, ...], ops: Emitter, into: Constructor) -> SSAValue:
    """Emits the condition that this device is the first along each of the axes."""
    return reduce(ops.both, [ops.equals(into.coordinate(axis), 0) for axis in axes])


def same_op(op: Operation, locals: Sequence[SSAValue], types: Sequence[ArrayType], into: Constructor) -> list[SSAValue]:
    """Emits the same op on local values, with results of local types."""
    made = again(op, locals, types)
    into.append(made)
    return list(made.results)


def unpromised(params: ParamsAttr) -> ParamsAttr:
    return params.changed(**{key: False for key in PROMISES if key in params})


@dataclass(eq=False)
class _Local:
    """One op being emitted; `locals` are its operands, which the laws change before the op is emitted."""

    program: Program
    node: Node
    placed: OpPlacement
    locals: list[SSAValue]
    types: Sequence[ArrayType]
    into: Constructor
    asked: list[Term | None]
    """What the op requires that is not emitted yet; None for what has no law."""
    vectors: Vectors | None = None

    def __post_init__(self) -> None:
        self.ops, self.params, self.zeros = Emitter(self.into), self.node.params, self.program.zeros(self.node)
        signature = self.node.signature
        self.indices, self.starts = signature.indices, signature.definition.starts
        self.read_at, self.made_at = signature.operand_at, signature.result_at
        self.kept: dict[tuple[int, Rows], Keep] = {}
        self.on = sorted({index for index, _ in self.placed.placement})
        """The placed indices."""
        for index in self.on:
            info = self.indices[index]
            self.asked += requirements(info, index, Placing.of(info.extent, self.factors(index)))

    def emit(self) -> list[SSAValue]:
        """Emits the op with everything that is still asked for."""
        if not self.asked:
            return self.op()
        term = self.asked.pop(0)
        assert term is not None, "an index is placed only if there are laws for what it requires"
        return self.results(term)

    def results(self, term: Term) -> list[SSAValue]:
        """Emits a term for the op's results; the term's leaf emits the op with what is still asked for."""
        return cast("list[SSAValue]", self.run(RESULTS, term)) if isinstance(term, tuple) else self.emit()

    def run(self, kind: str, term: Term) -> object:
        """Runs a term by `WRITERS`, after its arguments, except results. Returns what no function runs as it is."""
        if not isinstance(term, tuple) or (head := WRITERS.of(kind, term)).run is None:
            return term
        args = (each if kind in LATER else self.run(kind, each) for kind, each in zip(head.kinds, term[1:], strict=True))
        return head.run(self, *args)

    # Terms of the op's results. Each method runs one head of the table below.

    def op_alone(self, *_: object) -> list[SSAValue]:
        """Emits the op itself, once its operands are changed."""
        return self.emit()

    def pending(self, _: Term, inner: Term) -> list[SSAValue]:
        """Emits a fold or scan across devices, which stays pending in the result's type."""
        return self.results(inner)

    def masked_result(self, keep: Keep, inner: Term) -> list[SSAValue]:
        return [keep(self.results(inner)[0], self.made_at[0])]

    def one_of(self, which: Which, then: Term, other: Term) -> list[SSAValue]:
        (value,), (below,) = self.results(then), self.results(other)
        return [which(value, below)]

    def sliced(self, index: int, block: int, rows: Term) -> list[SSAValue]:
        """Emits this device's rows of an operand, which it has already, or of a chain of operands."""
        match rows:
            case int(operand) | ("after", _, int(operand)):
                return [self.locals[operand]]
            case _:
                return self.results(cast(Term, law(("slice", index, block, rows))))

    def moved_positions(self, inner: Term, offset: tuple[str, int, int]) -> list[SSAValue]:
        *others, positions = self.results(inner)
        return [*others, self.ops.apply("add", positions, self.ops.cast(self.offset(offset[1]), type_at(positions).dtype))]

    def turned_positions(self, index: int, inner: Term) -> list[SSAValue]:
        """Turns the positions in what this device has of an index that is dealt in turn into positions in the whole."""
        *others, rest = self.results(inner)
        emit, dtype, unit, found = self.ops, type_at(rest).dtype, 1, list[SSAValue]()
        for factor in sorted(self.factors(index), key=lambda factor: factor.stride):
            # Between its digit and the one before, the elements are all on this device.
            run, unit, weight = factor.stride // unit, factor.span, unit
            here = emit.apply("rem", rest, run)
            found.append(here if weight == 1 else emit.apply("mul", here, weight))
            rest = emit.apply("div", rest, run)
        found += [emit.apply("mul", rest, unit), emit.cast(self.offset(index), dtype)]
        return [*others, reduce(partial(emit.apply, "add"), found)]

    def lists(self, *_: Term) -> list[SSAValue]:
        """Emits the elements that the op selects in this block, and their positions in the block, along the selecting dim."""
        found = self.emit()
        dim, apart = cast(Selected, self.placed.selected)[:2]
        shape = apart.local_shape
        *values, positions = (self.ops.reshape(each, shape) for each in found)
        return [*(values or [self.ops.take(self.locals[0], positions, dim)]), positions]

    def best(self, _: Term, of_all: tuple[str, int, Term]) -> list[SSAValue]:
        """Gathers the lists of all blocks and selects again; returns the op's results."""
        return self.best_of(self.results(of_all[2]), False)

    def best_in_turn(self, _: Term, of_all: tuple[str, tuple[str, int, Term]]) -> list[SSAValue]:
        """The same, where what is gathered is not in the order of the positions."""
        return self.best_of(self.results(of_all[1][2]), True)

    def best_of(self, lists: list[SSAValue], is_sorted: bool) -> list[SSAValue]:
        """Selects from gathered lists, which are sorted by their positions first. Unread positions are not sent."""
        into, (dim, apart, whole) = self.into, cast(Selected, self.placed.selected)
        sent = lists if self.program.is_read(self.node.results[-1]) else lists[:1]
        before, after = ([ArrayType.of(type_at(each).dtype, layout) for each in sent] for layout in (apart, whole))
        built = into.close(list(zip(sent, before, strict=True)), [factor.axis for _, factor in self.placed.placement])
        gathered = [into.redistribute([each], [type])[0] for each, type in zip(built, after, strict=True)]
        into.open()
        values, *positions = (into.slice(each, type) for each, type in zip(gathered, after, strict=True))
        if is_sorted and positions:
            *positions, values = self.ops.ordered((*positions, values), dim)
        self.locals = [values]
        *others, at = self.op()
        shape = type_at(at).shape
        for each in positions:
            in_list = self.ops.reshape(at, apart.local_shape)
            at = self.ops.reshape(self.ops.take(each, in_list, dim), shape)
        return [*others, at]

    def merged(self, index: int, block: int, inner: Term) -> list[SSAValue]:
        """Merges sorted blocks; returns the op's results."""
        self.params = self.params.changed(is_stable=True)
        blocks = self.results(inner)
        device = self.ops.apply("div", self.offset(index), block)
        return cast(Merge, self.placed.merged).exchanged(blocks, device, self.into)

    # Which of two arrays has a row.

    def behind(self, index: int, _: int, begin: int) -> Which:
        emit, dim = self.ops, self.made_at[0][index].dim

        def which(value: SSAValue, other: SSAValue) -> SSAValue:
            rows = emit.rows(type_at(value).shape, dim, self.offset(index))
            return emit.select(emit.apply("ge", rows, begin), value, other)

        return which

    def among(self, index: int, _: int, first: int, part: int) -> Which:
        emit, dim, factor, reach = self.ops, self.made_at[0][index].dim, self.one(index), self.read_at[part][index].reach
        if reach is None or not reach.reads_outside(factor):
            return lambda value, _: value
        length = (reach.size - 1) * reach.divisor + 1
        return lambda value, other: emit.inside(value, dim, emit.apply("sub", self.start(factor), first), length, other)

    # Which rows count: masks, as functions that apply them to a local array, given where the array's indices are.

    def on_first(self, over: int | tuple[Place, ...]) -> Keep:
        axes = self.over(over) if isinstance(over, int) else over
        return lambda value, _: self.ops.select(_is_first(axes, self.ops, self.into), value)

    def rows(self, index: int, block: int, k: Lookup | Picks) -> Keep:
        """Counts positions from this device's block; returns the mask of those in it. Those of other blocks become any row."""
        if (index, k) not in self.kept:
            self.kept[index, k] = self.shifted(index, block, k)
        return self.kept[index, k]

    # Operands, and positions in them, changed before the op is emitted.

    def dropped(self, index: int, block: int, k: Lookup) -> None:
        """Counts positions from this device's block, for an op that drops those outside the array."""
        if k.component == ELEMENT:
            self.locals[k.operand], _ = self.elements(index, block, k.operand, -1)
            self.params = unpromised(self.params)
        else:
            vectors, component = self.looked_up(k)
            vectors.drop(component, self.offset(index))

    def masked_operand(self, keep: Keep, operand: int) -> None:
        if operand not in self.zeros:
            self.locals[operand] = keep(self.locals[operand], self.read_at[operand])

    def filled(self, within: tuple[str, int, int, int], monoid: str, operand: int) -> None:
        """Fills the rows of an operand's block that are not among the first `n` of the whole array with the monoid's unit."""
        _, index, block, n = within
        emit, value, dim = self.ops, self.locals[operand], self.read_at[operand][index].dim
        shape = type_at(value).shape
        # Other axes may tile the indices that are minor to this one.
        minor = shape[dim] // block
        left = emit.apply("sub", emit.number(n, IDS), self.offset(index))
        if minor > 1:
            left = emit.apply("mul", left, minor)
        among = emit.apply("lt", emit.iota(shape, dim), left)
        self.locals[operand] = emit.select(among, value, emit.unit(monoid, type_at(value).dtype))

    def bordered(self, inside: tuple[str, int, int], outside: str | int, _: Term) -> None:
        """Fills an operand with a monoid's unit, or with another operand, where this device's window leaves the array."""
        _, index, operand = inside
        outside = "add" if outside in self.zeros else outside
        value, at = self.locals[operand], self.read_at[operand][index]
        factor = self.one(index)
        window = at.outward(factor)
        is_zero = window.has_halo and isinstance(outside, str) and MONOIDS[outside].has_unit_zero
        if not is_zero and at.reach is not None and at.reach.reads_outside(factor):
            self.locals[operand] = self.inside(value, at.dim, window, at.reach.size, outside)

    def begun(self, index: int, local: tuple[str, int, Begin]) -> None:
        """Sets the parameter by which windows begin (and end) to where those of the local operand do."""
        begin = local[2]
        param, sign, reach = begin.param, begin.sign, begin.reach
        if reach is None:
            self.params = param.put(self.params, 0)
            if begin.scaled is not None:
                self.params = begin.scaled.put(self.params, 1)
            return
        factor, first = self.one(index), cast(int, param.value(self.params))
        if factor.is_in_turn(reach.extent):
            ends = first // factor.size, (reach.extent - reach.size - first) // factor.size
        else:
            lead, trail = reach.gaps(factor)
            ends = first - sign * (lead - reach.window.lo), trail
        self.params = param.put(self.params, *(ends if sign < 0 else ends[:1]))

    def bounded(self, results: list[SSAValue]) -> list[SSAValue]:
        """Fills the results with zeros where their windows are outside of the array, as every reader of a window expects.

        Scans of blocks stay as they are until they are combined: the total of a block without elements is the unit.
        """
        for index in sorted({index for index, factor in self.placed.placement if factor.has_halo}):
            extent, factor = self.indices[index].extent, self.one(index)
            overhangs = factor.has_halo and factor.overhangs(extent)
            if overhangs and not self.indices[index].parts(Scan) and not self.keeps_zeros(index):
                for number, at in enumerate(self.made_at):
                    if index in at:
                        results[number] = self.inside(results[number], at[index].dim, factor, extent, "add")
        return results

    def keeps_zeros(self, index: int) -> bool:
        """Whether rows of zeros give rows of zeros: all operands have the index, and the op is linear in all or in each."""
        signature, every = self.node.signature, range(len(self.locals))
        if index in signature.rivals or not every or any(index not in at for at in self.read_at):
            return False
        linear = partial(linear_in, signature.definition, zeros=frozenset[int]())
        return linear(frozenset(every)) or all(linear(frozenset([at])) for at in every)

    def owned(self, own: tuple[str, int, int], monoid: str, operand: int) -> None:
        """Fills rows of an operand's window that are not its own, or not among the first `n`, with the monoid's unit."""
        _, index, n = own
        emit, window, value = self.ops, self.one(index), self.locals[operand]
        dim = self.read_at[operand][index].dim
        if window.overhangs(n) and not MONOIDS[monoid].has_unit_zero:
            value = self.inside(value, dim, window, n, monoid)
        if not window.is_tiling:
            within = emit.between(emit.iota(type_at(value).shape, dim), self.own(index))
            value = emit.select(within, value, emit.unit(monoid, type_at(value).dtype))
        self.locals[operand] = value

    def own(self, index: int) -> int | SSAValue:
        """How many rows of this device's window are its own: those before the next window, and on the last device all."""
        window = self.one(index)
        if window.is_tiling:
            return window.width
        is_last = self.ops.equals(self.start(window), window.start(window.size - 1))
        return self.ops.select(is_last, self.ops.number(window.width, IDS), window.own)

    def inside(self, value: SSAValue, dim: int, window: Factor, extent: int, outside: str | int) -> SSAValue:
        """Keeps the rows of this device's window that are in the array; others get a monoid's unit, or an operand of rank 0."""
        unit = self.ops.unit(outside, type_at(value).dtype) if isinstance(outside, str) else self.locals[outside]
        return self.ops.inside(value, dim, self.start(window), extent, unit)

    def shifted(self, index: int, block: int, k: Lookup | Picks) -> Keep:
        if isinstance(k, Picks):
            return self.picked(index, block, k)
        if k.component == ELEMENT:
            self.locals[k.operand], mask = self.elements(index, block, k.operand)
            return lambda value, at: masked(value, mask, k.operand, at, self.node, self.ops)
        vectors, component = self.looked_up(k)
        first = _is_first(self.over(index), self.ops, self.into) if vectors.form.mode == DROPS else None
        inside = vectors.keep(component, block, self.offset(index), first, self.is_padded(index))
        return lambda value, _: self.ops.select(inside, value)

    def picked(self, index: int, block: int, rows: Picks) -> Keep:
        """Takes the rows at these positions out of the only operand; returns the mask of those in this device's block."""
        emit, dim = self.ops, self.read_at[0][index].dim
        first = emit.apply("sub", emit.number(rows.first, IDS), self.offset(index))
        ids = emit.rows((rows.count,), 0, first, rows.step)
        inside = emit.between(ids, self.own(index) if self.factors(index)[-1].has_halo else block)
        self.locals[0] = emit.take_rows(self.locals[0], emit.select(inside, ids), dim)
        return lambda value, _: emit.select(emit.spread(inside, type_at(value).shape, (dim,)), value)

    def elements(self, index: int, block: int, ids: int, outside: int | None = None) -> tuple[SSAValue, SSAValue]:
        """The ids in an operand, counted from this device's block, and the mask of those in the block."""
        most = self.indices[index].extent if self.is_padded(index) else None
        return shifted(self.locals[ids], self.offset(index), block, self.ops, most, outside)

    def looked_up(self, k: Lookup) -> tuple[Vectors, int]:
        """The vectors and the component of a lookup, after its windows are split into rows."""
        if self.vectors is None:
            self.vectors = self.found_vectors()
        # Each scalar start is a separate component.
        component = k.component + k.operand - self.starts[0]
        if k.width > 1:
            self.vectors.rows(component)
        return self.vectors, component

    def found_vectors(self) -> Vectors:
        shape, at = self.program.shape, self.moved()
        whole = shape(self.node.operands[at] if at is not None else self.node.results[0])
        local = type_at(self.locals[at]).shape if at is not None else self.types[0].shape
        form = general(self.node.signature.definition, self.params, shape(self.node.operands[0]), whole)
        return Vectors(form, [self.locals[start] for start in self.starts], shape(self.node.operands[0]), local, self.ops)

    def moved(self) -> int | None:
        """The operand whose windows are written; None if windows are read into the result."""
        others = set(range(1, len(self.node.operands))) - set(self.starts)
        return min(others, default=None)

    def op(self) -> list[SSAValue]:
        kind, params, locals = self.node.op_name, self.params, self.locals
        if self.vectors is not None:
            at = self.moved()
            kind, params = self.vectors.form.kind, self.vectors.form.params
            locals = [locals[0], self.vectors.ids, *([] if at is None else [locals[at]])]
        if any(map(self.is_padded, self.on)):
            # Rows of padding may be anywhere, so promises about ids no longer hold.
            params = unpromised(params)
        if self.node.signature.own:
            params = params.changed(placed=True)
        op = OPS[kind].create(operands=locals, result_types=self.types, properties={"params": params})
        self.into.append(op)
        return list(op.results)

    def factors(self, index: int) -> list[Factor]:
        """The placed factors of an index; the last factor, which is minor, has the halo."""
        return settled(self.indices[index].extent, [factor for at, factor in self.placed.placement if at == index])

    def one(self, index: int) -> Factor:
        """The placed factors of an index that windows read or hold, joined into one factor."""
        factor = joined(self.indices[index].extent, self.factors(index))
        assert factor is not None, "an index has windows only if its factors are one"
        return factor

    def over(self, index: int) -> tuple[Place, ...]:
        """The axes that the index is placed on."""
        return tuple(factor.axis for factor in self.factors(index))

    def offset(self, index: int) -> SSAValue:
        """The start of this device's block of the index, or of its window."""
        return self.start(*self.factors(index))

    def start(self, *factors: Factor) -> SSAValue:
        """The first element that this device holds of a range: the sum of coordinate times stride, less the halo before it."""
        apart = [part for factor in factors for part in factor.parts]
        parts = [self.ops.apply("mul", self.into.coordinate(part.axis), part.stride) for part in apart]
        parts += [self.ops.number(-part.before, IDS) for part in apart if part.before]
        return reduce(partial(self.ops.apply, "add"), parts)

    def is_padded(self, index: int) -> bool:
        """Whether the devices together hold more than the index's values."""
        return is_padded(self.indices[index].extent, self.factors(index))


RESULTS = "results"
LATER = (LEAF, RESULTS, "part")
"""The kinds of arguments that the function of the head around them gets as they are."""

WRITERS = Heads(
    Head(RESULTS, "sum across", ". results", _Local.pending),
    Head(RESULTS, "mask", "keep results", _Local.masked_result),
    Head(RESULTS, "select", "which results results", _Local.one_of),
    Head(RESULTS, "slice", ". . part", _Local.sliced),
    Head(RESULTS, "best", ". .", _Local.lists),
    Head(RESULTS, "best", ". gathered", _Local.best),
    Head(RESULTS, "best", ". ordered", _Local.best_in_turn),
    Head(RESULTS, "turn", ". results", _Local.turned_positions),
    Head(RESULTS, "merge", ". . results", _Local.merged),
    Head(RESULTS, "add", "operand .", _Local.op_alone),
    Head(RESULTS, "add", "results offset", _Local.moved_positions),
    Head(RESULTS, "take", "rows .", _Local.op_alone),
    Head(RESULTS, "find", "dropped .", _Local.op_alone),
    Head(RESULTS, "put", ". dropped .", _Local.op_alone),
    Head(RESULTS, "join", ". rows operand", _Local.op_alone),
    Head(RESULTS, "scan sort", ". .", _Local.op_alone),
    Head(RESULTS, "iota", ".", _Local.op_alone),
    Head(RESULTS, "build", ". . operand", _Local.op_alone),
    Head(RESULTS, "fold", ". operand", _Local.op_alone),
    Head(RESULTS, "read", "operand", _Local.op_alone),
    Head(RESULTS, "over", ". block block", _Local.op_alone),
    Head("part", "after", ". ."),
    Head("block", "slice", ". . part"),
    Head("gathered", "gather", ". results"),
    Head("ordered", "order", "gathered"),
    Head("offset", "offset", ". ."),
    Head("which", "behind", ". . .", _Local.behind),
    Head("which", "among", ". . . .", _Local.among),
    Head("keep", "mine", ". . .", _Local.rows),
    Head("keep", "first", ".", _Local.on_first),
    Head("rows", "shift", ". . .", _Local.rows),
    Head("dropped", "shift", ". . .", _Local.dropped),
    Head("operand", "mask", "keep .", _Local.masked_operand),
    Head("operand", "held", ". local", _Local.begun),
    Head("operand", "fill", "inside . window", _Local.bordered),
    Head("operand", "fill", "own . .", _Local.owned),
    Head("operand", "fill", "within . .", _Local.filled),
    Head("local", "local", ". ."),
    Head("inside", "inside", ". ."),
    Head("own", "own", ". ."),
    Head("within", "within", ". . ."),
    Head("window", "windows", ". around"),
    Head("around", "surround", ". ."),
)
"""The function that runs each operation on the right sides of the laws."""


def _check(masks: RuleSet) -> None:
    WRITERS.check(masks, [(each.rule, RESULTS, each.rule.right) for each in masks], "makes")


register_check("masks", _check)
