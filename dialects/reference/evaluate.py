"""The reference semantics: a definition's body, run with NumPy.

Every part of the body becomes an array whose axes are labelled with indices. Arrays are combined by label, so this file has no
rule for any op. A guard whose dims the fold around it binds is a read at looked-up indices; any other guard is a scatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from itertools import islice
from typing import Any

import numpy as np

from ..definitions.ground_form import ELEMENT, Access, Dim, Ground, Grounded, Guarded, Lands, along
from ..definitions.grounding import ground
from ..definitions.operators import ARITHMETIC
from ..definitions.registry import definitions
from ..definitions.syntax_tree import Affine, Apply, Concat, Fold, Group, Number, Otherwise, Read, Whole, factors
from ..ground.dtypes import Array, dtype_of, is_narrow, kind_of, largest, least, widen_narrow
from ..ground.errors import Error
from ..ground.monoids import MERGE, MONOIDS, SELECTIONS
from ..params import Literal, ParamsAttr, Record
from . import scalar_functions, whole_dims
from .linalg import Task
from .scalar_functions import cast_to
from .scans import scan
from .user_functions import FUNCTIONS

Value = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Labelled:
    """An array whose first axes are the indices `ids`; unpartitioned dims come after them."""

    array: Array
    ids: tuple[int, ...] = ()


def evaluate(name: str, params: ParamsAttr, inputs: Sequence[Array], out_types: Sequence[Value]) -> list[Array]:
    """Returns the results of the op `lax.NAME` on whole arrays. Raises Error for an op that has no definition."""
    definition = definitions.get(name)
    if definition is None or name == "whole":
        raise Error(f"`{params.get('primitive', name)}` has no definition, so the interpreter cannot run it")
    if name in FUNCTIONS:
        return FUNCTIONS[name](inputs, params, out_types)
    if definition.ravel is not None:
        return [inputs[0].reshape(out_types[0][1])]
    form = _ground(name, params, tuple(each.shape for each in inputs), tuple(shape for _, shape in out_types))
    # NumPy would warn of infinities and NaN, which padding may hold.
    with np.errstate(all="ignore"):
        return _Evaluator(form, params, inputs, out_types).run()


@lru_cache(maxsize=1 << 12)
def _ground(name: str, params: ParamsAttr, ins: tuple[tuple[int, ...], ...], outs: tuple[tuple[int, ...], ...]) -> Grounded:
    return ground(definitions[name], params, ins, outs)


# Integers divide as integers.
_ARITHMETIC = {name: sign.function for name, sign in ARITHMETIC.items()} | {"div": scalar_functions.divide}
_NOWHERE: Mapping[int, Labelled] = {}


@dataclass(frozen=True, slots=True)
class _Context:
    """The context of a part of the body.

    `dtype` is the result's dtype, `monoid` the enclosing fold's monoid, `default` the value of `else`. `found` maps a looked-up
    index to its positions, inside the fold that looks it up.
    """

    dtype: np.dtype[Any]
    monoid: str = "sum"
    default: Labelled | None = None
    found: Mapping[int, Labelled] = field(default_factory=lambda: _NOWHERE)

    def under(self, monoid: str = "sum") -> _Context:
        """The context of a fold's operand."""
        return _Context(self.dtype, monoid)


@dataclass(frozen=True, slots=True)
class _Evaluator:
    """Runs a ground form on arrays. Its fields are constant; changing data is in the contexts that it passes down."""

    form: Grounded
    params: ParamsAttr
    inputs: Sequence[Array]
    out_types: Sequence[Value]

    def run(self) -> list[Array]:
        results: list[Array | None] = [None] * len(self.out_types)
        for equation in self.form.equations:
            first = -1 - equation.targets[0].array
            context = _Context(dtype_of(self.out_types[first][0]))
            match equation.body:
                case Apply() as body:
                    values = self.apply(body, context)
                case Fold(monoid) as body if monoid in SELECTIONS:
                    values = self.selected(body, context)
                case Fold(monoid, body=Apply() as arrays) as body if monoid == MERGE:
                    values = self.merged(body, arrays, equation.targets[0], context)
                case body:
                    values = [self.value(body, context)]
            for target, value in zip(equation.targets, values, strict=True):
                at = -1 - target.array
                results[at] = self.write(target, value, results[at])
        return [np.asarray(each) for each in results]

    # Results

    def write(self, target: Access, value: Labelled, before: Array | None) -> Array:
        """Writes the result of an equation; for a part of a sum of ranges, writes into the result `before`."""
        dtype, shape = self.out_types[-1 - target.array]
        ids = along(*target.dims)
        array = self.spread(Labelled(cast_to(value.array, dtype_of(dtype)), value.ids), ids)
        if not any(isinstance(dim, Concat) for dim in target.dims):
            return _unmove(array, target, len(ids)).reshape(shape)
        result = before if before is not None else np.zeros(shape, dtype_of(dtype))
        positions = [self.positions(dim, at, target.array).array.reshape(-1) for at, dim in enumerate(target.dims)]
        result[np.ix_(*positions)] = array.reshape([len(each) for each in positions])
        return result

    # Reads

    def positions(self, dim: Dim, at: int = 0, array: int = 0, found: Mapping[int, Labelled] = _NOWHERE) -> Labelled:
        """The positions along dim `at` of an array, labelled; -1 where there is none."""
        match dim:
            case Affine(offset, factors, divisor):
                terms = [self.index(index, by=factor) for index, factor in factors]
                position = reduce(partial(self.meet, np.add), terms, Labelled(np.asarray(offset)))
                return Labelled(np.where(position.array % divisor == 0, position.array // divisor, -1), position.ids)
            case Concat(ids, copy):
                position = self.positions(Group(ids), at, array)
                return Labelled(position.array + self.offset(at, array, copy), position.ids)
            case Whole():
                raise Error(f"`{self.form.definition.name}` reads an unpartitioned dim and looks it up")
            case Group(ids):
                position = Labelled(np.asarray(0))
                for index in ids:
                    before = Labelled(position.array * self.form.extents[index], position.ids)
                    position = self.meet(np.add, before, found.get(index) or self.index(index))
                return position

    def index(self, index: int, by: int = 1) -> Labelled:
        return Labelled(np.arange(self.form.extents[index]) * by, (index,))

    def shape(self, ids: Iterable[int]) -> list[int]:
        return [self.form.extents[i] for i in ids]

    def offset(self, at: int, array: int, copy: int) -> int:
        """The total length of the terms of a sum of ranges before this copy's term."""
        offset = 0
        for equation in self.form.equations[:copy]:
            sides = [*equation.targets, *([equation.body] if isinstance(equation.body, Read) else [])]
            for access in sides:
                if access.array == array and isinstance(part := access.dims[at], Concat):
                    offset += math.prod(self.shape(part.indices))
        return offset

    def access(self, access: Access, context: _Context) -> Labelled:
        array = self.inputs[access.array]
        ids = along(*access.dims)
        plain = all(isinstance(dim, Whole | Group) for dim in access.dims) and context.found.keys().isdisjoint(ids)
        # `x[i, i]` is a diagonal.
        return self.read(access, array) if plain and len(set(ids)) == len(ids) else self.look(access, context)

    def read(self, access: Access, array: Array) -> Labelled:
        """Reads an array at plain indices: dims become axes, and unpartitioned dims go last."""
        if all(len(dim.indices) == 1 for dim in access.dims):
            return Labelled(array, along(*access.dims))
        whole = [at for at, dim in enumerate(access.dims) if isinstance(dim, Whole)]
        rest = [at for at in range(array.ndim) if at not in whole]
        ids = along(*(access.dims[at] for at in rest))
        shape = self.shape(ids) + [array.shape[at] for at in whole]
        return Labelled(array.transpose(rest + whole).reshape(shape), ids)

    def look(self, access: Access, context: _Context) -> Labelled:
        """Reads an array at computed positions; outside it, reads the value of `else`, or the unit of the enclosing fold."""
        array = self.inputs[access.array]
        positions = [self.positions(dim, at, access.array, context.found) for at, dim in enumerate(access.dims)]
        ids = _labels(positions)
        aligned = [self.align(each, ids) for each in positions]
        inside = np.asarray(True)
        for each, size in zip(aligned, array.shape, strict=True):
            inside = inside & (each >= 0) & (each < size)
        # In an array without elements, every position is outside.
        some = array if array.size else np.zeros([1] * array.ndim, array.dtype)
        value = some[tuple(np.where(inside, each, 0) for each in aligned)]
        outside = MONOIDS[context.monoid].unit(array.dtype) if context.default is None else context.default.array
        return Labelled(np.where(inside, value, outside), ids)

    # Meeting by label

    def align(self, value: Labelled, ids: tuple[int, ...]) -> Array:
        """The array with one axis for each of `ids`, of extent 1 for an index on which it does not depend."""
        if value.ids == ids:
            return value.array
        order = [value.ids.index(i) for i in ids if i in value.ids]
        rest = list(range(len(value.ids), value.array.ndim))
        shape = [self.form.extents[i] if i in value.ids else 1 for i in ids]
        moved = value.array.transpose(order + rest)
        return moved.reshape([*shape, *(value.array.shape[at] for at in rest)])

    def spread(self, value: Labelled, ids: tuple[int, ...]) -> Array:
        """The array with one axis for each of `ids`, of its full extent."""
        if value.ids == ids:
            return value.array
        aligned = self.align(value, ids)
        return np.broadcast_to(aligned, (*self.shape(ids), *aligned.shape[len(ids) :]))

    def meet(self, function: Callable[..., Any], *values: Labelled) -> Labelled:
        ids = _labels(values)
        return Labelled(np.asarray(function(*(self.align(value, ids) for value in values))), ids)

    def product(self, values: Sequence[Labelled]) -> Labelled:
        return reduce(partial(self.meet, np.multiply), values)

    def terms(self, values: Sequence[Labelled]) -> Labelled:
        """The terms of a sum, as products in a wide type, so that they do not lose digits before they are added."""
        wide = [Labelled(widen_narrow(each.array), each.ids) for each in values]
        return self.product(wide if len(values) > 1 else values)

    # Bodies

    def value(self, body: Ground, context: _Context) -> Labelled:
        match body:
            case Read():
                return self.access(body, context)
            case Number(value):
                return Labelled(self.literal(value, context.dtype))
            case Group():
                return self.positions(body, found=context.found)
            case Apply():
                return self.apply(body, context)[0]
            case Otherwise(inside, default):
                return self.value(inside, replace(context, default=self.value(default, context)))
            case Fold():
                return self.fold(body, context)
            case Guarded():
                raise Error(f"`{self.form.definition.name}`: a guard must be a factor of the operand of a fold")

    def literal(self, value: Literal, dtype: np.dtype[Any]) -> Array:
        """A constant in the result's dtype. None is JAX's fill: NaN, the least signed integer, or the largest unsigned one."""
        if isinstance(value, Record):
            real, imag = value["real"], value["imag"]
            assert isinstance(real, float) and isinstance(imag, float)
            return np.asarray(complex(real, imag), dtype)
        if value is not None:
            assert not isinstance(value, tuple)
            return np.asarray(value).astype(dtype)
        kind = kind_of(dtype)
        return np.asarray(np.nan, dtype) if kind not in "iub" else (largest if kind in "ub" else least)(dtype)

    def apply(self, body: Apply[Ground], context: _Context) -> list[Labelled]:
        name = self.form.definition.name if body.function == "@" else body.function
        values = [self.value(arg, context) for arg in body.args]
        if body.function in _ARITHMETIC:
            # Integers of less than a byte wrap around when they are written.
            wide = (Labelled(widen_narrow(each.array), each.ids) if is_narrow(each.array.dtype) else each for each in values)
            return [self.meet(_ARITHMETIC[body.function], *wide)]
        ids = _labels(values)
        arrays = [self.align(value, ids) for value in values]
        if name in whole_dims.FUNCTIONS:
            results = whole_dims.FUNCTIONS[name](Task(arrays, self.params, self.out_types, len(ids)))
        else:
            results = scalar_functions.apply(name, arrays, self.params, context.dtype)
        return [Labelled(result, ids) for result in results]

    # Folds

    def fold(self, fold: Fold[int, Ground], context: _Context) -> Labelled:
        product = factors(fold.body)
        for factor in product:
            if isinstance(factor, Guarded):
                others = [other for other in product if other is not factor]
                return self.guarded(fold, factor, others, context)
        values = [self.value(factor, context.under(fold.monoid)) for factor in product]
        if fold.upto:
            return self.scan(fold, values)
        return self.reduced(fold.monoid, fold.indices, values, context)

    def reduced(self, fold: str, ids: tuple[int, ...], values: list[Labelled], context: _Context) -> Labelled:
        """The product of the values, folded over indices."""
        if fold == "sum":
            return self.contract(ids, values, context.dtype)
        value = self.product(values)
        axes = tuple(value.ids.index(i) for i in ids if i in value.ids)
        folded = MONOIDS[fold].reduce(value.array, axes) if axes else value.array
        return Labelled(folded, tuple(i for i in value.ids if i not in ids))

    def selected(self, fold: Fold[int, Ground], context: _Context) -> list[Labelled]:
        """The best elements along the folded indices, if the op returns them, and their positions."""
        value = self.value(fold.body, context)
        ids = tuple(i for i in value.ids if i not in fold.indices)
        array = self.align(value, (*ids, *fold.indices))
        length = math.prod(self.shape(fold.indices))
        task = Task([array.reshape(*array.shape[: len(ids)], length)], self.params, self.out_types, len(ids))
        return [Labelled(result, ids) for result in whole_dims.FUNCTIONS[fold.monoid](task)]

    def merged(self, fold: Fold[int, Ground], arrays: Apply[Ground], target: Access, context: _Context) -> list[Labelled]:
        """The arrays sorted along the folded index, which is another index in the results."""
        values = [self.value(arg, context) for arg in arrays.args]
        beside = tuple(i for i in along(*target.dims) if any(i in value.ids for value in values))
        ends = (*beside, *(i for i in along(*target.dims) if i not in beside))
        shape = [*self.shape(beside), math.prod(self.shape(fold.indices))]
        lists = [self.spread(value, (*beside, *fold.indices)).reshape(shape) for value in values]
        task = Task(lists, self.params, self.out_types, len(beside))
        return [
            Labelled(result.reshape(self.shape(ends)), ends) for result in whole_dims.FUNCTIONS[self.form.definition.name](task)
        ]

    def scan(self, fold: Fold[int, Ground], values: Sequence[Labelled]) -> Labelled:
        """A prefix fold: element `j` of the result folds the elements at `k` up to `j`."""
        value = self.product(values)
        (k,), (j,) = fold.indices, fold.upto
        if k not in value.ids:
            value = self.meet(np.add, value, Labelled(np.zeros(self.form.extents[k], value.array.dtype), (k,)))
        scanned = scan(MONOIDS[fold.monoid], widen_narrow(value.array), value.ids.index(k), fold.backwards)
        return Labelled(scanned, tuple(j if i == k else i for i in value.ids))

    def contract(self, folded: tuple[int, ...], values: Sequence[Labelled], result: np.dtype[Any]) -> Labelled:
        """A sum of products, in the dtype of the result or wider."""
        every = _labels(values)
        kept = tuple(i for i in every if i not in folded)
        dtype = np.result_type(
            widen_narrow(np.zeros((), result)), *(widen_narrow(np.zeros((), value.array.dtype)) for value in values)
        )
        # Small labels, because einsum takes 52 at most.
        number = {i: label for label, i in enumerate(every)}
        operands: list[Any] = []
        for value in values:
            # Unpartitioned dims have no label.
            operands += [value.array.astype(dtype), [*(number[i] for i in value.ids), ...]]
        missing = math.prod(self.shape(set(folded).difference(every)))
        total = np.einsum(*operands, [*(number[i] for i in kept), ...], optimize=len(values) > 1)
        return Labelled(np.asarray(total * np.asarray(missing, dtype), dtype), kept)

    def starts(self, guard: Guarded) -> tuple[list[Labelled], Labelled]:
        """Where each dim's window starts, and which windows lie inside the array."""
        inside = Labelled(np.asarray(True))
        starts: list[Labelled] = []
        for lands in guard.lands:
            start = self.start(lands)
            last = lands.extent - lands.width
            if guard.clamps:
                start = Labelled(np.clip(start.array, 0, last), start.ids)
            fits = Labelled((start.array >= 0) & (start.array <= last), start.ids)
            inside = self.meet(np.logical_and, inside, fits)
            starts.append(start)
        return starts, inside

    def start(self, lands: Lands) -> Labelled:
        if lands.start is None:
            return Labelled(np.asarray(0))
        ids = self.inputs[lands.start.array]
        if not ids.ndim:
            return Labelled(ids.astype(np.int64))
        vectors = self.read(lands.start, ids)
        own = vectors.array if lands.component == ELEMENT else vectors.array[..., lands.component]
        return Labelled(own.astype(np.int64), vectors.ids)

    def guarded(self, fold: Fold[int, Ground], guard: Guarded, others: list[Ground], context: _Context) -> Labelled:
        starts, inside = self.starts(guard)
        taken: dict[int, Labelled] = {}
        for lands, start in zip(guard.lands, starts, strict=True):
            if lands.dim and lands.dim != lands.window:
                taken[lands.dim[0]] = self.meet(np.add, start, self.positions(Group(lands.window)))
        if guard.folded:
            found = self.gathered(taken, inside, others, context)
            kept = {*taken, *along(*self.form.equations[0].targets[0].dims)}
            beside = tuple(i for i in fold.indices if i not in kept)
            return self.reduced(fold.monoid, beside, [found], context) if beside else found
        values = [self.value(other, context.under(fold.monoid)) for other in others]
        return self.scattered(fold, taken, inside, self.terms(values), context)

    def gathered(self, taken: dict[int, Labelled], inside: Labelled, others: list[Ground], context: _Context) -> Labelled:
        """`sum(v) [v = ids[i]] * src[v]` as `src[ids[i]]`, with the default (or 0) where `ids[i]` is outside."""
        inside_fold = replace(context.under(), found=taken)
        values = [self.value(other, inside_fold) for other in others]
        value = self.terms(values)
        default = context.default or Labelled(np.zeros((), value.array.dtype))
        return self.meet(np.where, inside, value, default)

    def scattered(
        self, fold: Fold[int, Ground], taken: dict[int, Labelled], inside: Labelled, updates: Labelled, context: _Context
    ) -> Labelled:
        """`sum(i) [v = ids[i]] * up[i]`: each update is folded into the element at its position."""
        target = self.form.equations[0].targets[0]
        ids = along(*target.dims)
        shape = self.shape(ids)
        monoid = MONOIDS[fold.monoid]
        dtype = widen_narrow(np.zeros((), updates.array.dtype)).dtype
        result = np.broadcast_to(monoid.unit(dtype), shape).copy()
        if context.default is not None:
            result = self.spread(context.default, ids).astype(dtype)
        own = [taken.get(i) or self.index(i) for i in ids]
        over = _labels([updates, inside, *own])
        keep = self.spread(inside, over)
        # One number for each element, because there may be no dim to count along.
        at = np.zeros(np.count_nonzero(keep), np.int64)
        for each, extent in zip(own, shape, strict=True):
            at = at * extent + self.spread(each, over)[keep]
        flat = result.reshape(-1)
        monoid.put(flat, at, self.spread(updates, over)[keep].astype(dtype))
        return Labelled(flat.reshape(shape), ids)


def _labels(values: Iterable[Labelled]) -> tuple[int, ...]:
    """The indices of several arrays, each once."""
    return tuple(dict.fromkeys(i for value in values for i in value.ids))


def _unmove(array: Array, target: Access, count: int) -> Array:
    """Moves the unpartitioned dims from the end to their positions in the result; products of indices stay split."""
    if array.ndim == count:
        return array
    plain, whole = iter(range(count)), iter(range(count, array.ndim))
    moves = (islice(whole, 1) if isinstance(dim, Whole) else islice(plain, len(along(dim))) for dim in target.dims)
    axes = [axis for each in moves for axis in each]
    return array.transpose(axes) if len(axes) == array.ndim else array
