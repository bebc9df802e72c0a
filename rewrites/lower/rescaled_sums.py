"""Sums of a softmax, in one loop with the maximum that it subtracts.

The terms `exp(x - m)` wait for m, the largest x of all trips. By `exp(x - m) = exp(x - r) * exp(r - m)`, each trip takes r
instead, the largest x so far. When r grows, the sum so far is rescaled, and after the loop it is scaled to m. What divides the
terms, the same in all trips, divides the sum then.

    m = max(t) x; s = sum(t) exp(x - m); o = sum(t) exp(x - m) / s * v
        -->   one loop of r = max(r', x); s = s * exp(r' - r) + exp(x - r); o = o * exp(r' - r) + exp(x - r) * v, then o / s

No term is larger than `exp 0`: r is a maximum of the same x. A sum that is still zero is not rescaled, because the factor of
what no term has been added to may be infinite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from xdsl.ir import SSAValue

from ...dialects.definitions.registry import definitions
from ...dialects.definitions.syntax_tree import Fold as FoldExpr, Read
from ...dialects.definitions.tilings import Instance, SubIndices, bind
from ...dialects.lax import LaxOp
from ...dialects.op_text import array_types
from ...dialects.types import ArrayType
from ..decide.linearity import linear_in
from ..emit import Emitter, again, type_at
from .loop_schedule import Carried, Fold, Item, RunOp, Stack, Value

OF_SUMS = ("exp", "exp2")
"""The functions of a sum that are the product of those of its terms."""


class Relative(NamedTuple):
    """What a value is if the maximum of all trips is replaced by that of the trips so far."""

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


class Scale(NamedTuple):
    """An op that divides the terms, or multiplies them, by a factor."""

    op: LaxOp
    position: int
    """The operand that is scaled."""
    by: Factor


@dataclass(eq=False, slots=True, kw_only=True)
class Running(Carried):
    """What the trips so far have of a maximum, in place of the maximum itself."""

    monoid: str = "max"
    factor: Factor
    """The maximum in the value that it takes the place of."""
    type: ArrayType
    """The type of that value."""

    def reference(self, emit: Emitter, value: SSAValue) -> SSAValue:
        """The maximum, with the type of the factor. One that is not finite shifts nothing."""
        finite = emit.select(_is_finite(emit, value), value, 0)
        return emit.cast(emit.reshape(finite, self.factor.type.shape), self.factor.type.dtype)

    def shown(self, emit: Emitter, before: SSAValue, after: SSAValue, type: ArrayType) -> SSAValue:
        """The maximum as the value that it takes the place of."""
        return self.factor.spread(emit, after, self.type)


@dataclass(eq=False, slots=True, kw_only=True)
class Rescaled(Fold):
    """A sum of terms that are relative to what the trips so far have of a maximum."""

    running: Running
    factor: Factor
    function: str

    def rescaled(self, emit: Emitter, total: SSAValue, before: SSAValue, after: SSAValue) -> SSAValue:
        """The sum, relative to another reference than before; zeros stay zeros. Both have the shape of the factor."""
        return emit.select(emit.apply("ne", total, 0), self.times(emit, total, before, after), total)

    def times(self, emit: Emitter, total: SSAValue, before: SSAValue, after: SSAValue) -> SSAValue:
        scale = emit.apply(self.function, emit.apply("sub", before, after))
        return emit.apply("mul", total, self.factor.spread(emit, scale, type_at(total)))


@dataclass(eq=False, slots=True, kw_only=True)
class Unscaled(Item):
    """The sum itself, after the loop: relative to the maximum of all trips, and scaled."""

    fold: Rescaled
    scales: Sequence[Scale]
    is_masked: bool
    """Whether terms are zero by a mask, whatever they would be otherwise: then a sum of zeros is zero."""
    type: ArrayType

    def written(self, emit: Emitter, env: Mapping[Value, SSAValue]) -> SSAValue:
        fold, total = self.fold, env[self.fold.makes[0]]
        zero, is_some = total, emit.apply("ne", total, 0)
        maximum, reference = env[fold.factor.value], env[Relative(fold.makes[0], fold.running.makes[0])]
        if not self.is_masked:
            # Without a finite maximum, the terms are no numbers, and so is their sum.
            finite = emit.cast(_is_finite(emit, maximum), "float32")
            is_none = emit.apply("eq", fold.factor.spread(emit, finite, ArrayType.whole("float32", type_at(total).shape)), 0)
            is_some = emit.both(is_some, is_none, "or")
        total = emit.select(is_some, fold.times(emit, total, reference, maximum), total)
        for op, position, by in self.scales:
            factor = by.spread(emit, env[by.value], type_at(total))
            made = again(op, [total, factor] if position == 0 else [factor, total], [total.type])
            emit.into.append(made)
            total = emit.select(is_some, made.results[0], zero) if self.is_masked else made.results[0]
        return emit.cast(total, self.type.dtype)


def _is_finite(emit: Emitter, value: SSAValue) -> SSAValue:
    return emit.make("is_finite", (value,), "bool", type_at(value).shape)


def waiting_for_none(items: Sequence[Item], varying: Set[Value]) -> tuple[list[Item], set[Value]]:
    """The items with sums that wait for no other fold, and what trips then have. What nothing reads any more is still there."""
    sums = _Sums(items, varying)
    return sums.items(), {*varying, *sums.made}


class _Step(NamedTuple):
    """An op on the way from the terms of a softmax to their sum."""

    item: RunOp
    position: int
    """The operand that comes from the terms."""
    by: Value | None = None
    """What it scales them by, if it does only that."""

    @property
    def op(self) -> LaxOp:
        return cast(LaxOp, self.item.op)


@dataclass(slots=True)
class _Terms:
    """How the terms of a sum come about, from the sum on: the steps, then an exponential function of a difference."""

    steps: list[_Step]
    function: RunOp
    difference: RunOp

    @property
    def path(self) -> list[_Step]:
        """The steps that do not only scale."""
        return [step for step in self.steps if step.by is None]

    def behind(self, scale: _Step) -> list[_Step]:
        """Those of them that come after one that scales, from the sum on."""
        return [step for step in self.steps[: self.steps.index(scale)] if step.by is None]


@dataclass(slots=True)
class _Sums:
    given: Sequence[Item]
    varying: Set[Value]
    maker: dict[Value, Item] = field(init=False)
    after: dict[Value, int] = field(default_factory=dict[Value, int])
    """How many loops have to end, one after another, before each value is known; none, if it is not there."""
    ended: int = 0
    """After how many loops the sum is to run that is looked at."""
    made: dict[Value, Item] = field(default_factory=dict[Value, Item])
    """The items that are new in trips, by what they make."""

    def __post_init__(self) -> None:
        self.maker = {value: item for item in self.given for value in item.makes}
        for item in self.given:
            after = max((self.after.get(each, 0) for each in item.reads), default=0) + isinstance(item, Fold | Stack)
            self.after |= dict.fromkeys(item.makes, after) if after else {}

    def items(self) -> list[Item]:
        return [each for item in self.given for each in (self.sooner(item) if isinstance(item, Fold) else [item])]

    def sooner(self, fold: Fold) -> Sequence[Item]:
        """The items that take the place of a sum, which then runs after as few loops as it can; any other fold itself."""
        for ended in range(self.after.get(fold.reads[0], 0) if fold.monoid == "add" else 0):
            self.ended = ended
            terms = self.terms(fold.reads[0])
            if terms is not None and (found := self.instead(fold, terms)):
                return found
        return [fold]

    def instead(self, fold: Fold, terms: _Terms) -> Sequence[Item]:
        """The items that take the place of a sum of these terms; none if a factor differs among what is added up."""
        scales = [(step, self.factor(terms.behind(step), step.by)) for step in terms.steps if step.by is not None]
        shift, before = self.factor(terms.path, terms.difference.reads[1]), len(self.made)
        if shift is None or any(factor is None for _, factor in scales):
            return []
        if (running := self.running(terms)) is None:
            return []
        (reference,) = running.makes
        part = self.again(terms.function, 0, self.again(terms.difference, 1, reference, reference), reference)
        for item, position, _ in reversed(terms.path):
            part = self.again(item, position, part, reference)
        own, function = Relative(fold.makes[0], part), cast(LaxOp, terms.function.op).primitive()
        made = Rescaled(reads=[part, reference], makes=[own], monoid="add", running=running, factor=shift, function=function)
        # What is scaled first is last from the sum on.
        every = [Scale(step.op, step.position, cast(Factor, factor)) for step, factor in reversed(scales)]
        unscaled = Unscaled(
            reads=[own, shift.value, *(each.by.value for each in every)],
            makes=fold.makes,
            fold=made,
            scales=every,
            is_masked=any(step.op.primitive() == "select_n" for step in terms.path),
            type=_type(fold.reads[0]),
        )
        return [*[*self.made.values()][before:], made, unscaled]

    # --- reading -----------------------------------------------------------------------------------------------------

    def is_late(self, value: Value) -> bool:
        """Whether a value is not known yet when the sum is to run."""
        return self.after.get(value, 0) > self.ended

    def is_same(self, value: Value) -> bool:
        """Whether all trips have the same of a value: it is made outside of them, or they only spread or move such a one."""
        if value not in self.varying:
            return True
        item = self.plain(value)
        return item is not None and _only_reads(_op(item)) and self.is_same(item.reads[0])

    def plain(self, value: Value) -> RunOp | None:
        """The op on whole arrays that makes a value as its one result."""
        match self.maker.get(value):
            case RunOp(op=LaxOp(regions=()), makes=[_]) as item:
                return item
            case _:
                return None

    def terms(self, value: Value) -> _Terms | None:
        """How what a trip adds to a sum comes about; None if not from the terms of a softmax, by scaling and linear ops."""
        steps = list[_Step]()
        while (item := self.plain(value)) is not None and value in self.varying and self.is_late(value):
            if (difference := self.shifted(item)) is not None:
                return _Terms(steps, item, difference)
            late = [at for at, each in enumerate(item.reads) if self.is_late(each)]
            same = [at for at in late if self.is_same(item.reads[at])]
            (at, *others), by = [each for each in late if each not in same] or [-1], None
            if at < 0 or others or len(same) > 1 or not self.is_linear(item, at):
                return None
            if same:
                by = item.reads[same[0]]
                if len(item.reads) != 2 or not _instance(_op(item)).definition.is_elementwise or not _is_real(_type(by).dtype):
                    return None
            steps.append(_Step(item, at, by))
            value = item.reads[at]
        return None

    def shifted(self, item: RunOp) -> RunOp | None:
        """The difference of which an op is the exponential function, if its second operand alone waits for a fold."""
        before = self.plain(item.reads[0]) if _op(item).primitive() in OF_SUMS else None
        if before is None or _op(before).primitive() != "sub":
            return None
        lhs, rhs = before.reads
        is_shift = self.is_late(rhs) and self.is_same(rhs) and not self.is_late(lhs) and lhs in self.varying
        return before if is_shift and _is_real(_type(lhs).dtype) else None

    def is_linear(self, item: RunOp, position: int) -> bool:
        """Whether an op of real numbers is linear in an operand. Casts among these only round."""
        if not all(_is_real(_type(each).dtype) for each in (item.reads[position], item.makes[0])):
            return False
        zeros = frozenset(at for at, each in enumerate(item.reads) if at != position and self.is_zero(each))
        return linear_in(_instance(_op(item)).definition, frozenset({position}), zeros)

    def is_zero(self, value: Value) -> bool:
        """Whether a value is zero: a constant, perhaps spread."""
        if (item := self.plain(value)) is None:
            return False
        if _op(item).primitive() == "constant":
            return _op(item).params.get("value") == 0
        return _only_reads(_op(item)) and self.is_zero(item.reads[0])

    def narrowed(self, value: Value) -> tuple[Value, dict[int, int]]:
        """What a value only repeats, and the dim of the value for each of its dims that is longer than 1."""
        dims = {at: at for at, extent in enumerate(_type(value).shape) if extent > 1}
        while (item := self.plain(value)) is not None and _only_reads(_op(item)):
            before, onto = item.reads[0], _onto(_op(item), 0)
            inner = {at: onto.get(at, -1) for at, extent in enumerate(_type(before).shape) if extent > 1}
            if not dims.keys() >= set(inner.values()):
                break
            value, dims = before, {at: dims[there] for at, there in inner.items()}
        return value, dims

    def factor(self, path: Sequence[_Step], value: Value) -> Factor | None:
        """A factor of what the last op of a path reads, as one of the sum; None if it differs among what is added up."""
        value, dims = self.narrowed(value)
        if value in self.varying:
            return None
        for step in reversed(path):
            onto = _onto(step.op, step.position)
            if not onto.keys() >= set(dims.values()):
                return None
            dims = {at: onto[there] for at, there in dims.items()}
        return Factor(value, _type(value), tuple(dims[at] for at in sorted(dims)))

    def running(self, terms: _Terms) -> Running | None:
        """The maximum so far, in place of the one that the terms are shifted by; None if that is no maximum of them."""
        shift = terms.difference.reads[1]
        value, dims = self.narrowed(shift)
        along = [dims[at] for at in sorted(dims)]
        parts = (each.reads[0] for each in self.maxima(value) if self.along(each.reads[0], terms) == along)
        if (part := next(parts, None)) is None or not _is_real(_type(value).dtype):
            return None
        token = Relative(part, shift)
        if token not in self.made:
            own = Factor(value, _type(value), tuple(along))
            self.made[token] = Running(reads=[part], makes=[token], factor=own, type=_type(shift))
        return cast(Running, self.made[token])

    def maxima(self, value: Value) -> Iterator[Fold]:
        """The maxima over the loop from which a value outside of it is computed."""
        seen, ahead = set[Value](), [value]
        for each in ahead:
            item = self.maker.get(each)
            if item is None or each in seen:
                continue
            seen.add(each)
            if isinstance(item, Fold):
                if item.monoid == "max" and not self.is_late(item.reads[0]):
                    yield item
            else:
                ahead += [read for read in item.reads if self.is_late(read)]

    def along(self, part: Value, terms: _Terms) -> list[int] | None:
        """The dims of the terms along which a trip's part of their maximum lies; None if it is no maximum of all of them."""
        item = self.plain(part)
        body = None if item is None else _instance(_op(item)).definition.body
        if item is None or not isinstance(body, FoldExpr) or body.monoid != "max" or not isinstance(body.body, Read):
            return None
        if not self.is_of(item.reads[0], terms):
            return None
        onto = {there: at for at, there in _onto(_op(item), 0).items()}
        return [onto.get(at, -1) for at, extent in enumerate(_type(part).shape) if extent > 1]

    def is_of(self, value: Value, terms: _Terms) -> bool:
        """Whether a value has all elements of which the terms are exponential functions, but for those that a mask zeroes."""
        over, item = terms.difference.reads[0], self.plain(value)
        if value == over:
            return True
        if item is None or not terms.path or any(_op(each).primitive() != "select_n" for each in (item, terms.path[-1].item)):
            return False
        masks = item.reads[0], terms.path[-1].item.reads[0]
        position = terms.path[-1].position
        is_over = position < len(item.reads) and item.reads[position] == over
        return is_over and terms.steps[-1] is terms.path[-1] and self.are_equal(*masks)

    def are_equal(self, one: Value, other: Value) -> bool:
        """Whether two values are computed in the same way."""
        if one == other:
            return True
        left, right = self.maker.get(one), self.maker.get(other)
        if not isinstance(left, RunOp) or not isinstance(right, RunOp) or len(left.reads) != len(right.reads):
            return False
        ops = left.op, right.op
        is_alike = ops[0].name == ops[1].name and ops[0].properties == ops[1].properties and not ops[0].regions
        return is_alike and _type(one) is _type(other) and all(map(self.are_equal, left.reads, right.reads))

    # --- writing -----------------------------------------------------------------------------------------------------

    def again(self, item: RunOp, position: int, value: Value, to: Value) -> Value:
        """Adds an op of which one operand is another value. Returns what it makes."""
        made = Relative(item.makes[0], (value, to))
        if made not in self.made:
            reads = [value if at == position else each for at, each in enumerate(item.reads)]
            self.made[made] = RunOp(reads=reads, makes=[made], inside=True, op=item.op, fixed=True)
        return made


def _op(item: RunOp) -> LaxOp:
    return cast(LaxOp, item.op)


def _is_real(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def _only_reads(op: LaxOp) -> bool:
    """Whether each element of the result is an element of the op's single operand."""
    return len(op.operands) == 1 and isinstance(_instance(op).definition.body, Read)


def _type(value: Value) -> ArrayType:
    while isinstance(value, Relative):
        value = value.value
    return type_at(cast(SSAValue, value))


def _instance(op: LaxOp) -> Instance:
    ins, outs = ([(each.dtype, each.shape) for each in array_types(side)] for side in (op.operands, op.results))
    return bind(definitions[op.primitive()], op.params, ins, outs)


def _onto(op: LaxOp, position: int) -> dict[int, int]:
    """The dims of an operand that are dims of the result, element by element."""
    instance = _instance(op)
    here, there = _plain(instance.operands[position]), _plain(instance.results[0])
    before, after = array_types(op.operands)[position].shape, array_types(op.results)[0].shape
    dims = {here[index]: there[index] for index in here if index in there}
    return {at: to for at, to in dims.items() if before[at] == after[to]}


def _plain(dims: SubIndices) -> dict[int, int]:
    """The dims that are one index each, by their indices."""
    return {digits[0].at: dim for dim, digits in enumerate(dims) if len(digits) == 1 and digits[0].reach is None}
