"""Binding: derives the tilings of an op from its definition.

Placing a factor of an index slices every dim that the index names. The other effects (a pending result, an operand kept on one
coordinate, a mask) follow from the position of the index in the body:

    out[b, m, n] = sum(k) lhs[b, m, k] * rhs[b, n, k]        b, m, n tile the result; k leaves it pending
    out[i, j] = sum(k <= j) src[i, k]                        j and k are one index; each block is scanned alone at first
    out[i] = argmax(j) src[i, j]                             the best of each block of j are found, and the best of these
    out[i, j] = merge(k) @(src[i, k])                        j and k are one index; each block is sorted alone at first
    out[i, j] = sum(v) [v = ids[i]] * src[v, j]              v is looked up: the block's offset is subtracted from ids
    out[v, j] = acc[v, j] + sum(i) [v = ids[i]] * up[i, j]   v likewise, other rows are dropped; for i, `acc` counts once
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import NamedTuple, TypeVar

from ..ground.dtypes import dtype_of, itemsize, kind_of, largest
from ..ground.monoids import MERGE, MONOIDS, SELECTIONS, Monoid
from ..params import ParamsAttr
from ..ranges.affine_read import AffineRead
from ..ranges.factor import Factor, crossing
from ..ranges.terms import Extent, Window
from .ground_form import ELEMENT, Access, Dim, Equation, Ground, Grounded, Guarded, Ids, along, subexpressions
from .grounding import ground
from .requirement_terms import (
    INDEX,
    OP,
    TILED,
    Along,
    Begin,
    Detail,
    Held,
    Lookup,
    Merging,
    Picks,
    Rows,
    Scan,
    Selection,
    Term,
    built,
    counts_once,
    details,
    part,
)
from .syntax_tree import (
    Affine,
    Apply,
    Concat,
    Definition,
    Fold,
    Group,
    Otherwise,
    Param,
    Read,
    Shape,
    Size,
    Value,
    Whole,
    factors,
)

T = TypeVar("T")


class SubIndex(NamedTuple):
    """One index of a dim, as a digit of the position: its number `at`, the distance of its neighbouring values, its extent.

    The major digit has no extent, because the dim may be padded. The only digit of `(i b)` with `size b = 16` is `i`, whose
    neighbours are 16 apart. Under a window, `reach` says how the index reads the dim, and each index is counted as the only
    one, because one of them is placed at a time. One without a reach is then the position in the dim itself.
    """

    at: int
    minor: int
    extent: int | None
    reach: AffineRead | None = None

    def inward(self, factor: Factor, padded: bool, shifts: bool, beside: Sequence[Factor] = ()) -> Factor | None:
        """The factor of the index for a given factor of the dim, with others `beside` it; None if it does not fit."""
        if (reach := self.reach) is None:
            return factor.inward(self.minor, self.extent)
        return crossing(beside, reach.size, partial(reach.inward, padded=padded, shifts=shifts), factor)

    def arriving(self, factor: Factor, beside: Sequence[Factor] = ()) -> Factor | None:
        """The factor of the index if elements are only shifted: they stay where they are, rather than in padded blocks."""
        if (reach := self.reach) is None:
            return factor.inward(self.minor, self.extent)
        return crossing(beside, reach.size, reach.arriving, factor)


SubIndices = tuple[tuple[SubIndex, ...], ...]
"""For each dim of a value its indices, major to minor. A dim without indices cannot be placed: it is constant or unpartitioned.
"""


@dataclass(frozen=True, slots=True)
class Index:
    """An index that may be placed, and what placing it requires of the local op.

    * `monoid`: the index is folded, so placing it leaves the result pending ("add", "max", "min"); of several results, those
      without the index.
    * `terms`: what placing it requires, each with how devices hold the index when it is required. Looked-up positions are
      counted from a device's block. For ids outside the block, a read (a folded index) gives zero, and a write (an index of
      the result, with any monoid) is dropped. If the op's mode clips ids, they are clipped to `extent` first. Reads outside
      the whole array belong to coordinate 0, where the local op fills them as the unpartitioned op does.
    """

    extent: int
    monoid: str | None = None
    terms: tuple[tuple[Held, Term], ...] = ()
    details: list[Detail] = field(init=False, compare=False)
    """Those in the terms, which are asked for too often to be looked for each time."""

    def __post_init__(self) -> None:
        found = dict.fromkeys(each for _, term in self.terms for each in details(term))
        object.__setattr__(self, "details", list(found))

    def parts(self, kind: type[T]) -> list[T]:
        """The details of this kind: lookups, a scan, a selection, a merge."""
        return [each for each in self.details if isinstance(each, kind)] if self.details else []

    @property
    def folds(self) -> str | None:
        """The monoid, selection or merge over the elements along the index; None if there is none."""
        return next((each.monoid for each in self.parts(Along)), self.monoid)

    @property
    def reads(self) -> bool:
        """Whether elements are looked up along the index, each of which is on one device."""
        return self.monoid is not None and bool(self.parts(Rows))

    @property
    def by_element(self) -> bool:
        """Whether it is looked up at the elements of an operand."""
        return any(lookup.component == ELEMENT for lookup in self.parts(Lookup))


@dataclass(frozen=True, slots=True)
class Instance:
    """A definition bound to types: for each dim of each operand and result its indices, major to minor.

    `moves` says that the op only moves or casts the elements of its single operand.
    """

    definition: Definition
    indices: tuple[Index, ...]
    operands: tuple[SubIndices, ...]
    results: tuple[SubIndices, ...]
    moves: bool


def bind(definition: Definition, params: ParamsAttr, in_types: Sequence[Value], out_types: Sequence[Value]) -> Instance:
    """Derives the tilings of an op on operands and results of these types. Raises Error where the shapes do not fit."""
    form = ground(definition, params, [shape for _, shape in in_types], [shape for _, shape in out_types])
    roles = _Roles(form, params, in_types, out_types)
    extents = [prod(shape) for _, shape in (*in_types, *out_types)]
    one = len(definition.moved) == len(in_types) == len(out_types) == 1
    moves = one and definition.moves and extents[0] == extents[1]
    return roles.instance(moves)


@dataclass(frozen=True, slots=True)
class _Context:
    """The functions between an expression and the result, and the accesses in their other arguments."""

    functions: tuple[str, ...] = ()
    beside: tuple[Access, ...] = ()

    def under(self, function: str, *others: Ground) -> _Context:
        beside = (access for other in others for access in accesses(other))
        return _Context((*self.functions, function), (*self.beside, *beside))


def accesses(body: Ground) -> list[Access]:
    """Every access of an operand, including those inside guards."""
    if isinstance(body, Read):
        return [body]
    if isinstance(body, Guarded):
        return list(body.vectors)
    return [access for child in subexpressions(body) for access in accesses(child)]


class _Roles:
    """Walks the ground equations once and records the facts about each index."""

    def __init__(self, form: Grounded, params: ParamsAttr, ins: Sequence[Value], outs: Sequence[Value]) -> None:
        self.form, self.params = form, params
        self.ins, self.outs = ins, outs
        self.dtype = outs[0][0] if outs else ""
        self.joined: dict[int, tuple[tuple[int, int], ...]] = {}
        self.extents = list(form.extents)
        equations = [self.whole(equation) for equation in form.equations]
        self.monoids: dict[int, str] = {}
        self.terms = defaultdict[int, list[tuple[Held, Term]]](list)
        self.barred = set(form.fixed)
        """The indices that cannot be placed."""
        self.same: dict[int, int] = {}
        self.windowed: set[int] = set()
        self.arrays: dict[int, tuple[Dim, ...]] = {}
        for index, ((_, chain), *others) in self.joined.items():
            for begin, operand in others:
                chain = ("chain", begin, chain, operand)
            # In turn, each round of blocks lies in one part of the concatenation.
            self.require(index, part(chain), held=Held.RUNS)
        for equation in equations:
            targets = [{i for dim in target.dims if isinstance(dim, Group) for i in dim.indices} for target in equation.targets]
            self.targets, self.lone = set[int].union(*targets), len(targets) == 1
            for index in sorted(self.targets - set[int].intersection(*targets)):
                self.some(index, equation, targets)
            for target in equation.targets:
                self.access(target)
            self.visit(equation.body, _Context())

    def whole(self, equation: Equation) -> Equation:
        """Rewrites an equation for one part of a sum of ranges to use an index of the whole sum.

        ```
        out[+j] = y[j], after an x of 8   -->   out[k] = y[k - 8]
        ```
        """
        (target, *others), body = equation.targets, equation.body
        parts = [at for at, dim in enumerate(target.dims) if isinstance(dim, Concat)]
        if others or len(parts) != 1 or not isinstance(body, Read):
            return equation
        (at,) = parts
        (joined,) = (dim for dim in target.dims if isinstance(dim, Concat))
        if len(body.dims) != len(target.dims) or body.dims[at] != Group(joined.indices):
            return equation
        if joined.copy == 0:
            self.extents.append(0)
        index, before = len(self.extents) - 1, self.extents[-1]
        self.extents[index] += self.ins[body.array][1][at]
        self.joined[index] = (*self.joined.get(index, ()), (before, body.array))
        window = Affine(-before, ((index, 1),))
        dims = (*target.dims[:at], Group((index,)), *target.dims[at + 1 :])
        read = (*body.dims[:at], window, *body.dims[at + 1 :])
        return replace(equation, targets=(replace(target, dims=dims),), body=replace(body, dims=read))

    def some(self, index: int, equation: Equation, targets: list[set[int]]) -> None:
        """Handles an index of some results: no other result depends on it, or all others are folded over it by one monoid."""
        partials = equation.partials or (("", ()),) * len(targets)
        lacking = [partial for partial, own in zip(partials, targets, strict=True) if index not in own]
        folds = {fold for fold, ids in lacking if index in ids}
        independent = any(index not in ids for _, ids in lacking)
        if not folds:
            return
        monoids = {MONOIDS[fold].across_devices(self.dtype) for fold in folds}
        (monoid,) = monoids if len(monoids) == 1 and not independent else (None,)
        if monoid is None:
            self.barred.add(index)
        elif index not in self.barred:
            self.monoids[index] = monoid.name
            self.fill(index, monoid.name, None)

    def require(self, index: int, *terms: Term, held: Held = Held.ANY) -> None:
        """Records what placing an index requires, if devices hold it in one of these ways."""
        self.terms[index] += [(held, term) for term in terms]

    def fill(self, index: int, unit: str, operands: Sequence[int] | None) -> None:
        """Requires a unit in all rows of these operands that must not count.

        None: there are no operands by which such rows do not count, so there is no law.
        """
        extent = self.extents[index]
        if operands is None:
            self.require(index, ("extend", unit, ("part", extent, OP)), held=Held.PADDED | Held.WINDOWS)
        for operand in operands or ():
            self.require(index, ("extend", unit, ("part", extent, built(operand))), held=Held.PADDED)
            self.require(index, ("fold", unit, ("part", extent, ("cover", INDEX, operand))), held=Held.WINDOWS)

    def access(self, access: Access) -> None:
        seen: set[int] = set()
        for dim in access.dims:
            is_window = isinstance(dim, Affine) and access.array >= 0 and self.can_move(dim)
            if isinstance(dim, Affine | Concat) and not is_window:
                self.barred.update(dim.indices)
                continue
            if is_window:
                self.windowed.update(dim.indices)
            # x[i, i]: one coordinate cannot slice two dims.
            self.barred.update(seen.intersection(dim.indices))
            seen.update(dim.indices)
        known = self.arrays.setdefault(access.array, access.dims)
        for one, other in zip(known, access.dims, strict=True):
            if one != other:
                self.barred.update(along(one, other))

    def can_move(self, dim: Affine[int]) -> bool:
        """Whether a device can read the dim by a window of its own: by a parameter of the op, or in a concatenation.

        It needs none if the op reads all of a dim backwards: on local types it reads all of the local dim.
        """
        if dim.moved is not None and isinstance(dim.moved[0], Size):
            return [(self.extents[index], by) for index, by in dim.factors] == [(dim.offset + 1, -1)]
        return all(by > 0 for _, by in dim.factors) and (
            dim.moved is not None or not self.joined.keys().isdisjoint(dim.indices)
        )

    def visit(self, body: Ground, context: _Context) -> None:
        match body:
            case Read():
                self.access(body)
            case Group(ids):
                # Only a result that *is* the index can be corrected by adding the offset.
                for index in ids:
                    self.require(index, part(("iota", self.extents[index])))
                if context.functions or len(ids) != 1:
                    self.barred.update(ids)
            case Apply(function, args):
                for number, arg in enumerate(args):
                    self.visit(arg, context.under(function, *args[:number], *args[number + 1 :]))
            case Otherwise(inside, default):
                if isinstance(inside, Read) and isinstance(default, Read):
                    self.under_window(inside, default.array)
                self.visit(inside, context if not accesses(default) else context.under("else", default))
                self.visit(default, context.under("else"))
            case Fold():
                self.fold(body, context)
            case _:
                # A constant; a guard is a factor of a fold.
                pass

    def fold(self, fold: Fold[int, Ground], context: _Context) -> None:
        if fold.upto:
            self.scan(fold, context)
            return
        if fold.monoid in SELECTIONS:
            self.select(fold)
            return
        if fold.monoid == MERGE:
            self.merge(fold)
            return
        monoid, product = MONOIDS[fold.monoid].across_devices(self.dtype), factors(fold.body)
        folded = [index for index in fold.indices if index not in self.targets]
        if monoid is None or any(function not in monoid.through for function in context.functions):
            self.barred.update(folded)
            monoid = None
        else:
            for index in folded:
                self.monoids[index] = monoid.name
                self.fill(index, monoid.name, _filled(fold, index))
                # An idempotent monoid may take an operand on every coordinate.
                once = (read.array for read in context.beside if not monoid.idempotent and index not in along(*read.dims))
                self.require(index, *map(counts_once, dict.fromkeys(once)))
        for factor in product:
            if isinstance(factor, Read):
                self.under_window(factor, fold.monoid)
            if isinstance(factor, Guarded):
                others = (other.array for other in product if isinstance(other, Read))
                self.look(factor, monoid, context, dict.fromkeys(others))
            else:
                self.visit(factor, _Context(("mul",)) if len(product) > 1 else _Context((fold.monoid,)))

    def under_window(self, access: Access, outside: str | int) -> None:
        """Records what replaces elements outside of an operand under a window: a unit, or another operand's elements."""
        elements = isinstance(outside, int) and bool(self.ins[outside][1])
        for dim in (dim for dim in access.dims if isinstance(dim, Affine)):
            bordered: Term = ("read", ("windows", INDEX, ("surround", outside, access.array)))
            for index in dim.indices:
                self.require(index, part(("over", -dim.offset, access.array, outside)) if elements else bordered)

    def scan(self, fold: Fold[int, Ground], context: _Context) -> None:
        """Handles a prefix fold: it is one index from its operand to the result, if the result is the fold and nothing else."""
        (k,), (j,) = fold.indices, fold.upto
        monoid = MONOIDS[fold.monoid].along(self.dtype)
        if context.functions or not self.lone or j not in self.targets or monoid is None:
            self.barred.update((k, j))
        else:
            self.same[k] = j
            self.fill(j, monoid.name, _filled(fold, k))
            self.require(j, ("scan", Scan(monoid.name, fold.backwards), built(index=INDEX)))
        self.visit(fold.body, _Context((fold.monoid,)))
        # If the index shares a dim with others, or is also read directly, this is not a scan along a dim.
        dims = [dim.indices for access in accesses(fold.body) for dim in access.dims if isinstance(dim, Group)]
        if any(j in dim or (k in dim and len(dim) > 1) for dim in dims):
            self.barred.update((k, j))

    def select(self, fold: Fold[int, Ground]) -> None:
        """Handles a fold to the best elements: placed if the op can select from any array, and returns all positions."""
        self.visit(fold.body, _Context((fold.monoid,)))
        equation, (read,) = self.form.equations[0], accesses(fold.body)
        values, positions = self.ins[read.array][0], self.outs[-1][0]
        alone = Group(fold.indices) in read.dims and len(fold.indices) == len(self.ins) == 1
        if not alone or self.extents[fold.indices[0]] > largest(dtype_of(positions)):
            self.barred.update(fold.indices)
            return
        (k,) = fold.indices
        whole = [dim.name for dim in equation.targets[-1].dims if isinstance(dim, Whole)]
        best = prod(prod(self.form.groups[name, 0]) for name in whole)
        cost = best + -(-best * itemsize(positions) // itemsize(values))
        self.fill(k, fold.monoid, (read.array,))
        selection = Selection(fold.monoid, best, cost)
        self.require(k, ("best", selection, built()), held=Held.RUNS)
        self.require(k, ("best", selection, ("deal", TILED, OP)), held=Held.TURNS)

    def merge(self, fold: Fold[int, Ground]) -> None:
        """Handles a merge: one index from its operands to the results, if the op has a parameter for the number of keys."""
        self.visit(fold.body, _Context((fold.monoid,)))
        reads, keys = accesses(fold.body), self.params.get("num_keys")
        ends = set(along(*self.form.equations[0].targets[0].dims)).difference(*(along(*read.dims) for read in reads))
        if len(ends) != 1 or len(fold.indices) != 1 or not isinstance(keys, int):
            self.barred.update((*fold.indices, *ends))
            return
        (k,), (j,) = fold.indices, ends
        kinds = [kind_of(dtype_of(dtype)) for dtype, _ in self.ins]
        ties = keys < len(kinds) or not {"b", "i", "u"}.issuperset(kinds)
        self.same[k] = j
        self.fill(j, MERGE, None if "c" in kinds[:keys] else range(keys))
        self.require(j, ("sort", Merging(MERGE, keys, tuple(itemsize(dtype) for dtype, _ in self.ins), ties), built()))

    def look(self, guard: Guarded, monoid: Monoid | None, context: _Context, beside: Collection[int]) -> None:
        """Handles a guard `[v = ids[i] + w]` in a fold: v is looked up; the window w is a run of elements, not partitioned."""
        for vectors in guard.vectors:
            self.access(vectors)
        for lands in guard.lands:
            if lands.start is None and lands.dim == lands.window:
                continue
            self.barred.update(lands.window)
            element = lands.component == ELEMENT
            # A read masks the one result. Ops on elements mask their updates; other ops drop them. An op whose front end says
            # what it does outside needs no mask for elements.
            drops = element and self.form.numbers is not None
            zero = monoid is not None and monoid.has_unit_zero
            allowed = zero and self.lone and not context.functions if guard.folded else not element or (zero and beside)
            if lands.start is None or len(lands.dim) != 1 or not allowed:
                self.barred.update(lands.dim)
                continue
            (index,) = lands.dim
            extent, k = self.extents[index], Lookup(lands.start.array, lands.component, lands.width)
            if guard.folded:
                self.require(index, ("find" if drops else "take", k, built()))
            elif element and not drops:
                self.require(index, *(part(("join", extent, k, operand), TILED) for operand in beside))
            else:
                self.require(index, part(("put", extent, k, OP), TILED))

    def instance(self, moves: bool) -> Instance:
        self.barred.update([j for k, j in self.same.items() if k in self.barred])
        groups = {self.group(dim) for dims in self.arrays.values() for dim in dims}
        # A dim is placed as all of its indices, except blocks, or not at all.
        while lost := {index for ids in groups if not self.placeable(ids) for index in ids} - self.barred:
            self.barred |= lost
        arrays = [*enumerate(self.ins), *((-1 - number, out) for number, out in enumerate(self.outs))]
        dims = [self.dims(array, shape) for array, (_, shape) in arrays]
        used = dict.fromkeys(digit.at for each in reversed(dims) for dim in each for digit in dim)
        number = {index: n for n, index in enumerate(used)}
        numbered = [tuple(tuple(digit._replace(at=number[digit.at]) for digit in dim) for dim in each) for each in dims]
        indices = (Index(self.extents[index], self.monoids.get(index), tuple(self.terms[index])) for index in used)
        operands, results = numbered[: len(self.ins)], numbered[len(self.ins) :]
        return Instance(self.form.definition, tuple(indices), tuple(operands), tuple(results), moves)

    def dims(self, array: int, shape: Shape) -> list[tuple[SubIndex, ...]]:
        """The indices of each dim of an array."""
        dims = zip(self.arrays.get(array, ()), shape, strict=False)
        return [self.window(dim, size) if isinstance(dim, Affine) else self.placeable(self.group(dim)) for dim, size in dims]

    def group(self, dim: Dim) -> Ids:
        """The indices of a dim. The index of a prefix fold is the same as its upper limit."""
        return tuple(self.same.get(index, index) for index in dim.indices) if isinstance(dim, Group) else ()

    def window(self, dim: Affine[int], size: int) -> tuple[SubIndex, ...]:
        """The indices of a dim under a window, the one with the most values first."""
        extents, steps = self.extents, dict(dim.factors)
        width = 1 + sum((extents[i] - 1) * abs(step) for i, step in steps.items())
        free = sorted((i for i in steps if i not in self.barred), key=lambda i: -extents[i])
        # For each index, the others make its window.
        widths = {i: width - (extents[i] - 1) * abs(steps[i]) for i in free}
        windows = (Window(Extent(extents[i]), steps[i], widths[i], 1, -dim.offset) for i in free)
        reaches: list[AffineRead | None] = [AffineRead(window, size, dim.divisor) for window in windows]
        if (position := self.picked(dim, size)) is not None:
            free, reaches = [*free, position], [*reaches, None]
        if dim.moved is not None and isinstance(param := dim.moved[0], Param):
            for index, reach in zip(free, reaches, strict=True):
                self.require(index, ("read", ("from", INDEX, Begin(param, dim.moved[1], reach, dim.scaled))))
        return tuple(SubIndex(index, 1, None, reach) for index, reach in zip(free, reaches, strict=True))

    def picked(self, dim: Affine[int], size: int) -> int | None:
        """An index for the positions in a dim of which few elements are read, each of which is on one device.

        None for other dims.

        ```
        out[i] = src[8 + i * 2]   -->   out[i] = sum(v) [v = 8 + i * 2] * src[v]
        ```

        It is placed where the result cannot be. A sum over devices sends its result twice, and gathering sends the dim once.
        """
        monoid = MONOIDS["sum"].across_devices(self.dtype)
        is_read = isinstance(self.form.equations[0].body, Read) and dim.moved is not None and dim.divisor == 1
        if monoid is None or not monoid.has_unit_zero or not is_read or len(dim.factors) != 1:
            return None
        ((index, step),) = dim.factors
        if 2 * self.extents[index] >= size:
            return None
        position = len(self.extents)
        self.extents.append(size)
        self.monoids[position] = monoid.name
        self.require(position, ("take", Picks(dim.offset, step, self.extents[index]), built(index=INDEX)))
        return position

    def placeable(self, ids: Ids) -> tuple[SubIndex, ...]:
        lead = ids
        while lead and lead[-1] in self.form.fixed:
            lead = lead[:-1]
        if not lead or not all(i not in self.barred and (self.extents[i] > 1 or i in self.windowed) for i in lead):
            return ()
        extents = [self.extents[i] for i in ids]
        return tuple(SubIndex(i, prod(extents[at + 1 :]), extents[at] if at else None) for at, i in enumerate(lead))


def _filled(fold: Fold[int, Ground], index: int) -> tuple[int, ...] | None:
    """The operands with the index, if units there make the fold's body its unit: for one read, or a product in a sum.

    Else None. There are none for a looked-up index: no row of padding is found.
    """
    product = factors(fold.body)
    guards = [factor for factor in product if isinstance(factor, Guarded)]
    plain = [factor for factor in product if isinstance(factor, Read)]
    own = [read.array for read in plain if any(isinstance(dim, Group) and index in dim.indices for dim in read.dims)]
    is_sum = MONOIDS[fold.monoid].has_unit_zero and MONOIDS[fold.monoid].linear
    if not own or len(plain) + len(guards) < len(product) or not (len(plain) == 1 or is_sum):
        return None
    return () if any(index in lands.dim for guard in guards for lands in guard.lands) else tuple(dict.fromkeys(own))
