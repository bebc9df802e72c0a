"""Sums whose terms are scaled by what another fold over the loop gives: both folds in one loop.

A factor that all trips have alike leaves the sum. One that shifts the operand of an exponential function is replaced by what
the trips so far have of the other fold, and the sum is rescaled when that changes: `exp(x - m) = exp(x - r) * exp(r - m)`. So
the maximum of a softmax, its sum, and what the sum divides, are one loop.

    m = max(t) x; s = sum(t) exp(x - m); o = sum(t) exp(x - m) / s * v
        -->   one loop of r = max(r', x); s = s * exp(r' - r) + exp(x - r); o = o * exp(r' - r) + exp(x - r) * v, then o / s

A zero is not scaled: it is what no term has been added to, and its factor may be infinite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from xdsl.ir import SSAValue

from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Read
from ...dialects.definitions.tilings import Instance, SubIndices, bind
from ...dialects.ground.dtypes import divides
from ...dialects.lax import LaxOp
from ...dialects.op_text import array_types
from ...dialects.types import ArrayType
from ..decide.linearity import linear_in
from ..emit import Emitter, again, type_at
from .loop_schedule import Fold, Item, RunOp, Stack, Value

OF_SUMS = ("exp", "exp2")
"""The functions of a sum that are the product of those of its terms."""
NO_NUMBERS = frozenset[int]()


class Relative(NamedTuple):
    """What a value is if another fold is replaced by what the trips so far have of it, or a factor is left out."""

    value: Value
    to: Value


@dataclass(frozen=True, slots=True)
class Factor:
    """What the terms of a sum are scaled by: a value that is no trip's own, and the dims of the sum along which it lies."""

    value: Value
    type: ArrayType
    dims: tuple[int, ...]
    """Of its dims that are longer than 1."""

    def spread(self, emit: Emitter, value: SSAValue, over: ArrayType) -> SSAValue:
        """The value, which has the shape of the factor, as an array of the sum's type."""
        order = sorted(range(len(self.dims)), key=self.dims.__getitem__)
        long = emit.reshape(value, tuple(extent for extent in self.type.shape if extent > 1))
        return emit.cast(emit.spread(emit.transpose(long, order), over.shape, tuple(sorted(self.dims))), over.dtype)


@dataclass(eq=False, slots=True, kw_only=True)
class Running(Item):
    """What the trips so far have of a maximum, in place of the maximum itself. It reads each trip's part."""

    inside: bool = True
    factor: Factor
    """The maximum in the value that it takes the place of."""
    type: ArrayType
    """The type of that value."""

    def reference(self, emit: Emitter, value: SSAValue) -> SSAValue:
        """The maximum, with the type of the factor. One that is not finite shifts nothing."""
        is_finite = emit.make("is_finite", (value,), "bool", type_at(value).shape)
        return emit.cast(emit.reshape(emit.select(is_finite, value, 0), self.factor.type.shape), self.factor.type.dtype)

    def shaped(self, emit: Emitter, reference: SSAValue) -> SSAValue:
        """The maximum as the value that it takes the place of."""
        return self.factor.spread(emit, reference, self.type)


@dataclass(eq=False, slots=True, kw_only=True)
class Rescaled(Fold):
    """A sum of terms that are relative to what the trips so far have of a maximum."""

    running: Running
    factor: Factor
    function: str

    def scaled(self, emit: Emitter, total: SSAValue, before: SSAValue, after: SSAValue) -> SSAValue:
        """The sum, relative to another reference than before. Both have the shape of the factor."""
        scale = emit.apply(self.function, emit.apply("sub", before, after))
        by = self.factor.spread(emit, scale, type_at(total))
        return emit.select(emit.apply("ne", total, 0), emit.apply("mul", total, by), total)


@dataclass(eq=False, slots=True, kw_only=True)
class Unscaled(Item):
    """The sum itself, after the loop: relative to the maximum of all trips, and with the factors that were left out."""

    fold: Fold
    scales: Sequence[tuple[LaxOp, int, Factor]]

    def written(self, emit: Emitter, env: Mapping[Value, SSAValue]) -> SSAValue:
        total = env[self.fold.makes[0]]
        if isinstance(self.fold, Rescaled):
            reference = env[Relative(self.fold.makes[0], self.fold.running.makes[0])]
            total = self.fold.scaled(emit, total, reference, env[self.fold.factor.value])
        for op, position, factor in self.scales:
            by = factor.spread(emit, env[factor.value], type_at(total))
            made = again(op, [total, by] if position == 0 else [by, total], [total.type])
            emit.into.append(made)
            total = made.results[0]
        return total


def waiting_for_none(items: Sequence[Item], varying: Set[Value]) -> tuple[list[Item], set[Value]]:
    """The items with sums that wait for no other fold, and what trips then have. What nothing reads any more is still there."""
    sums = _Sums(items, varying)
    return sums.items(), {*varying, *sums.made}


@dataclass(slots=True)
class _Term:
    """How the terms of a sum come about: the ops from the sum to the first one that is scaled, and by what."""

    path: list[tuple[RunOp, int]] = field(default_factory=list[tuple[RunOp, int]])
    """Ops, from the sum on, each with the operand that is scaled."""
    scales: list[tuple[int, LaxOp, int, Value]] = field(default_factory=list[tuple[int, LaxOp, int, Value]])
    """Ops that only scale: how many ops of the path come after it, the op, the operand that is scaled, and the factor."""
    shift: tuple[RunOp, RunOp] | None = None
    """The exponential function, and the difference from the maximum."""
    start: Value = None
    """The first value that is scaled, if nothing is shifted."""


class _Sums:
    def __init__(self, items: Sequence[Item], varying: Set[Value]) -> None:
        self.given, self.varying = items, varying
        self.maker = {value: item for item in items for value in item.makes}
        self.after = dict[Value, int]()
        """How many loops have to end, one after another, before each value is known; none, if it is not there."""
        for item in items:
            after = max((self.after.get(each, 0) for each in item.reads), default=0) + isinstance(item, Fold | Stack)
            self.after |= dict.fromkeys(item.makes, after) if after else {}
        self.ended = 0
        """After how many loops the sum is to run that is looked at."""
        self.made = dict[Value, Item]()
        """The items that are new in trips, by what they make."""

    def items(self) -> list[Item]:
        found = list[Item]()
        for item in self.given:
            found += self.sooner(item) if isinstance(item, Fold) else [item]
        return found

    def sooner(self, fold: Fold) -> list[Item]:
        """The items that take the place of a sum, which then runs after as few loops as it can."""
        for ended in range(self.after.get(fold.reads[0], 0)):
            self.ended = ended
            if (found := self.instead(fold)) != [fold]:
                return found
        return [fold]

    def is_late(self, value: Value) -> bool:
        """Whether a value is not known yet when the sum is to run."""
        return self.after.get(value, 0) > self.ended

    def instead(self, fold: Fold) -> list[Item]:
        """The items that take the place of a sum; itself if it has to wait for another fold."""
        term = self.term(fold.reads[0]) if fold.monoid == "add" else None
        if term is None or not (term.scales or term.shift):
            return [fold]
        factors = [self.factor(term.path[:after], value) for after, _, _, value in term.scales]
        shift = None if term.shift is None else self.factor(term.path, term.shift[1].reads[1])
        if None in factors or (term.shift and shift is None):
            return [fold]
        before = len(self.made)
        if term.shift is None or shift is None:
            part = self.relative(term, term.start, term.scales[-1][3])
            made = Fold(reads=[part], makes=[Relative(fold.makes[0], part)], monoid="add")
        elif (running := self.running(term.shift[1].reads[1], shift)) is not None:
            (function, difference), reference = term.shift, running.makes[0]
            start = self.again(function, 0, self.again(difference, 1, reference, reference), reference)
            part = self.relative(term, start, reference)
            own, name = [Relative(fold.makes[0], part)], cast(LaxOp, function.op).primitive()
            made = Rescaled(reads=[part, reference], makes=own, monoid="add", running=running, factor=shift, function=name)
        else:
            return [fold]
        every = cast("list[Factor]", factors)
        reads = [*made.makes, *([shift.value] if shift else []), *(each.value for each in every)]
        # What is scaled first is innermost.
        scales = [(op, position, factor) for (_, op, position, _), factor in zip(term.scales, every, strict=True)][::-1]
        return [*[*self.made.values()][before:], made, Unscaled(reads=reads, makes=fold.makes, fold=made, scales=scales)]

    # --- reading -----------------------------------------------------------------------------------------------------

    def term(self, value: Value) -> _Term | None:
        """How a value of trips comes about; None if that is more than scaling."""
        found = _Term()
        while self.is_late(value):
            item = self.maker.get(value)
            if not _is_plain(item) or value not in self.varying:
                return None
            item = cast(RunOp, item)
            op = cast(LaxOp, item.op)
            if (shift := self.shifted(item)) is not None:
                found.shift = item, shift
                return found
            late = [at for at, each in enumerate(item.reads) if self.is_late(each)]
            outside = [at for at in late if self.is_same(item.reads[at])]
            inside = [at for at in late if at not in outside]
            scaled = inside or [at for at, each in enumerate(item.reads) if each in self.varying]
            if len(outside) > 1 or len(scaled) != 1 or not self.is_linear(item, scaled[0]):
                return None
            if outside:
                if len(item.reads) != 2 or not _is_elementwise(op):
                    return None
                found.scales.append((len(found.path), op, scaled[0], item.reads[outside[0]]))
            else:
                found.path.append((item, scaled[0]))
            value = item.reads[scaled[0]]
        found.start = value
        return found

    def shifted(self, item: RunOp) -> RunOp | None:
        """The difference of which an item is the exponential function, if its second operand alone waits for a fold."""
        op = cast(LaxOp, item.op)
        before = self.maker.get(item.reads[0]) if op.primitive() in OF_SUMS else None
        if not _is_plain(before) or cast(LaxOp, cast(RunOp, before).op).primitive() != "sub":
            return None
        before = cast(RunOp, before)
        lhs, rhs = before.reads
        late = self.is_late(rhs) and not self.is_late(lhs)
        return before if late and self.is_same(rhs) and lhs in self.varying else None

    def is_same(self, value: Value) -> bool:
        """Whether all trips have the same of a value: it is made outside of them, or they only spread or move such a one."""
        if value not in self.varying:
            return True
        item = self.maker.get(value)
        return _is_plain(item) and _only_reads(cast(LaxOp, cast(RunOp, item).op)) and self.is_same(cast(RunOp, item).reads[0])

    def is_linear(self, item: RunOp, position: int) -> bool:
        """Whether an op of floats is linear in an operand."""
        op = cast(LaxOp, item.op)
        if not divides(_type(item.makes[0]).dtype) or not divides(_type(item.reads[position]).dtype):
            return False
        zeros = frozenset(at for at, each in enumerate(item.reads) if at != position and self.is_zero(each))
        return linear_in(_instance(op).definition, frozenset({position}), zeros)

    def is_zero(self, value: Value) -> bool:
        """Whether a value is zero: a constant, perhaps spread."""
        item = self.maker.get(value)
        if not _is_plain(item):
            return False
        op = cast(LaxOp, cast(RunOp, item).op)
        if op.primitive() == "constant":
            return op.params.get("value") == 0
        return _only_reads(op) and self.is_zero(cast(RunOp, item).reads[0])

    def narrowed(self, value: Value) -> tuple[Value, dict[int, int]]:
        """What a value only repeats, and the dim of the value for each of its dims that is longer than 1."""
        dims = {at: at for at, extent in enumerate(_type(value).shape) if extent > 1}
        while _is_plain(item := self.maker.get(value)) and _only_reads(op := cast(LaxOp, cast(RunOp, item).op)):
            before, onto = cast(RunOp, item).reads[0], _onto(op, 0)
            inner = {at: onto.get(at) for at, extent in enumerate(_type(before).shape) if extent > 1}
            if not all(there in dims for there in inner.values()) or _type(before).dtype != _type(value).dtype:
                break
            value, dims = before, {at: dims[cast(int, there)] for at, there in inner.items()}
        return value, dims

    def factor(self, path: Sequence[tuple[RunOp, int]], value: Value) -> Factor | None:
        """A factor of what the last op of a path reads, as one of the sum; None if it differs among what is added up."""
        value, dims = self.narrowed(value)
        if value in self.varying:
            return None
        for item, position in reversed(path):
            onto = _onto(cast(LaxOp, item.op), position)
            if not all(there in onto for there in dims.values()):
                return None
            dims = {at: onto[there] for at, there in dims.items()}
        return Factor(value, _type(value), tuple(dims[at] for at in sorted(dims)))

    def running(self, shift: Value, factor: Factor) -> Running | None:
        """The maximum so far, in place of what the terms are shifted by; None if that does not come from one of its shape."""
        long = [extent for extent in factor.type.shape if extent > 1]
        found = [each for each in self.folds(factor.value) if each.monoid == "max" and not self.is_late(each.reads[0])]
        if len(found) != 1 or [extent for extent in _type(found[0].reads[0]).shape if extent > 1] != long:
            return None
        part = found[0].reads[0]
        token = Relative(part, shift)
        if (made := self.made.get(token)) is None:
            _, dims = self.narrowed(shift)
            own = Factor(factor.value, factor.type, tuple(dims[at] for at in sorted(dims)))
            made = self.made[token] = Running(reads=[part], makes=[token], factor=own, type=_type(shift))
        return cast(Running, made)

    def folds(self, value: Value) -> Iterator[Fold]:
        """The folds over the loop from which a value outside of it is computed."""
        seen, ahead = set[int](), [value]
        for each in ahead:
            item = self.maker.get(each)
            if item is None or id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, Fold):
                yield item
            else:
                ahead += [read for read in item.reads if self.is_late(read)]

    # --- writing -----------------------------------------------------------------------------------------------------

    def relative(self, term: _Term, value: Value, to: Value) -> Value:
        """Adds the ops of a trip that make the terms from the first one that is not scaled. Returns what they make."""
        for item, position in reversed(term.path):
            value = self.again(item, position, value, to)
        return value

    def again(self, item: RunOp, position: int, value: Value, to: Value) -> Value:
        """Adds an op of which one operand is another value."""
        made = Relative(item.makes[0], (value, to))
        if made not in self.made:
            reads = [value if at == position else each for at, each in enumerate(item.reads)]
            self.made[made] = RunOp(reads=reads, makes=[made], inside=True, op=item.op, fixed=True)
        return made


def _is_plain(item: Item | None) -> bool:
    """Whether an item is an op on whole arrays with one result."""
    return isinstance(item, RunOp) and isinstance(item.op, LaxOp) and not item.op.regions and len(item.makes) == 1


def _is_elementwise(op: LaxOp) -> bool:
    definition = _instance(op).definition
    target = definition.targets[0]
    return not definition.at and all(read.dims == target.dims for read in definition.reads())


def _type(value: Value) -> ArrayType:
    while isinstance(value, Relative):
        value = value.value
    return type_at(cast(SSAValue, value))


def _only_reads(op: LaxOp) -> bool:
    """Whether each element of the result is an element of the op's single operand."""
    return len(op.operands) == 1 and isinstance(_instance(op).definition.body, Read)


def _instance(op: LaxOp) -> Instance:
    ins, outs = ([(each.dtype, each.shape) for each in array_types(side)] for side in (op.operands, op.results))
    return bind(definitions[op.primitive()], op.params, ins, outs)


def _onto(op: LaxOp, position: int) -> dict[int, int]:
    """The dims of an operand that are dims of the result, element by element."""
    instance = _instance(op)
    before, after = instance.operands[position], instance.results[0]
    shapes = array_types(op.operands)[position].shape, array_types(op.results)[0].shape
    here, there = (_plain(dims) for dims in (before, after))
    dims = {here[index]: there[index] for index in here if index in there}
    return {at: to for at, to in dims.items() if shapes[0][at] == shapes[1][to]}


def _plain(dims: SubIndices) -> dict[int, int]:
    """The dims that are one index each, by their indices."""
    return {digits[0].at: dim for dim, digits in enumerate(dims) if len(digits) == 1 and digits[0].reach is None}
