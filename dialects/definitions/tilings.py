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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

from ..ground.dtypes import dtype_of, itemsize, kind_of, largest
from ..ground.monoids import MERGE, MONOIDS, SELECTIONS, Monoid
from ..params import ParamsAttr
from ..ranges.affine_read import AffineRead
from ..ranges.terms import Extent, Window
from .ground_form import ELEMENT, Access, Dim, Equation, Ground, Grounded, Guarded, Ids, along, subexpressions
from .grounding import ground
from .requires import BUILT, OP, Component, Elements, Picks, Term, part
from .syntax_tree import Affine, Apply, Concat, Definition, Fold, Group, Otherwise, Param, Read, Size, Value, Whole, factors


class Placeable(NamedTuple):
    """The indices of a dim that can be placed, major to minor, and how many elements inside them stay together.

    A dim without indices cannot be placed: it is constant or unpartitioned. `(i b)` with `size b = 16` is one index over blocks
    of 16. Under a window, `reaches` says how each index reads the dim; one of them is placed at a time. `moved` is then the
    parameter, with its sign, or the extent, that says where the window begins. An index without a reach is the position in the
    dim itself; `scaled` is the parameter by which the other index advances.
    """

    indices: tuple[int, ...] = ()
    block: int = 1
    reaches: tuple[AffineRead | None, ...] = ()
    moved: tuple[Param | Size, int] | None = None
    scaled: Param | None = None


Dims = tuple[Placeable, ...]


class Lookup(NamedTuple):
    """Component `component` of the index vectors in operand `operand` starts a window of `width` elements of the index.

    `ELEMENT`: each element of the operand is an index itself.
    """

    operand: int
    component: int
    width: int


class Scan(NamedTuple):
    """A prefix fold with a monoid; `backwards`: a suffix fold."""

    monoid: str
    backwards: bool


class Selection(NamedTuple):
    """A fold to the `best` elements. With their positions, these take as many bytes as `cost` elements."""

    fold: str
    best: int
    cost: int


class Merging(NamedTuple):
    """A merge of arrays, ordered by the first `keys` of them. `sizes` are the bytes of one element of each array.

    `ties`: elements with equal keys can differ, so their order matters: there are other arrays, or keys like `-0.0`.
    """

    keys: int
    sizes: tuple[int, ...]
    ties: bool


@dataclass(frozen=True, slots=True)
class Index:
    """An index that may be placed, and what placing it requires of the local op.

    * `monoid`: the index is folded, so placing it leaves the result pending ("add", "max", "min"); of several results, those
      without the index.
    * `lookups`: the components of index vectors that give its position. Coordinate times block is subtracted from the ids.
      For ids outside the block, a read (a folded index) gives zero, and a write (an index of the result, with any monoid)
      is dropped. If the op's mode clips ids, they are clipped to `extent` first. Reads outside the whole array belong to
      coordinate 0, where the local op fills them as the unpartitioned op does.
    * `requires`: what depends on the position at which a device's block begins, as terms: lookups, scans, the index as a value.
    * `scan`: the index of a prefix fold: placing it leaves a scan of each block, and the fold of the blocks before is pending.
    * `selects`: the op selects the best elements along the index: placing it leaves the best of each block, and the op then
      selects among these.
    * `merges`: the elements along the index are merged: placing it leaves a sorted block on each device.
    * `windows`: the operands that it reads through a window, each with the value of elements outside: the unit of the fold
      around it, or an operand of rank 0.
    * `pieces`: for the index of a concatenation, the start of each part, and the operand that it is.
    * `once`: operands in terms that do not contain this folded index: they are zero except on coordinate 0.
    * `filled`: the operands of a fold or scan over the index. Where the index is padded, they get the monoid's unit behind its
      extent. None if the padding would count all the same, so that the index cannot be padded.
    """

    extent: int
    monoid: str | None = None
    lookups: tuple[Lookup, ...] = ()
    requires: tuple[Term, ...] = ()
    once: tuple[int, ...] = ()
    scan: Scan | None = None
    selects: Selection | None = None
    merges: Merging | None = None
    filled: tuple[int, ...] | None = ()
    windows: tuple[tuple[int, str | int], ...] = ()
    pieces: tuple[tuple[int, int], ...] = ()

    @property
    def folds(self) -> str | None:
        """The monoid, selection or merge over the elements along the index; None if there is none."""
        if self.merges is not None:
            return MERGE
        by = self.scan.monoid if self.scan is not None else self.monoid
        return self.selects.fold if self.selects is not None else by

    @property
    def by_block(self) -> bool:
        """Whether elements are counted by their number in a block, so that windows cannot be used."""
        return bool(self.lookups or self.selects or self.merges)

    @property
    def by_position(self) -> bool:
        """Whether the position at which a device's block begins matters."""
        return bool(self.requires)

    @property
    def reads(self) -> bool:
        """Whether elements are looked up along the index, each of which is on one device."""
        return bool(self.requires) and self.monoid is not None


@dataclass(frozen=True, slots=True)
class Instance:
    """A definition bound to types: for each dim of each operand and result its indices, major to minor.

    `moves` says that the op only moves or casts the elements of its single operand.
    """

    definition: Definition
    indices: tuple[Index, ...]
    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    moves: bool


def bind(definition: Definition, params: ParamsAttr, in_types: Sequence[Value], out_types: Sequence[Value]) -> Instance:
    """Derives the tilings of an op on operands and results of these types. Raises Error where the shapes do not fit."""
    form = ground(definition, params, [shape for _, shape in in_types], [shape for _, shape in out_types])
    roles = _Roles(form, params, in_types, out_types)
    extents = [prod(shape) for _, shape in (*in_types, *out_types)]
    one = len(definition.moved) == len(in_types) == len(out_types) == 1
    moves = one and definition.moves and extents[0] == extents[1]
    return roles.instance(len(out_types), moves)


@dataclass(frozen=True, slots=True)
class _Context:
    """The functions between an expression and the result, and the operands of their other arguments."""

    functions: tuple[str, ...] = ()
    beside: tuple[int, ...] = ()

    def under(self, function: str, *others: Ground) -> _Context:
        beside = tuple(access.array for other in others for access in accesses(other))
        return _Context((*self.functions, function), self.beside + beside)


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
        self.roles = [Index(extent) for extent in self.extents]
        self.barred = set(form.fixed)
        self.same: dict[int, int] = {}
        self.windowed: set[int] = set()
        self.arrays: dict[int, tuple[Dim, ...]] = {}
        for index, pieces in self.joined.items():
            self.tell(index, pieces=pieces)
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
            self.bar([index])
        elif index not in self.barred:
            self.tell(index, monoid=monoid.name, filled=None)

    def tell(self, index: int, **facts: Any) -> None:
        self.roles[index] = replace(self.roles[index], **facts)

    def require(self, index: int, *terms: Term, **facts: Any) -> None:
        self.tell(index, requires=(*self.roles[index].requires, *terms), **facts)

    def bar(self, ids: Iterable[int]) -> None:
        """Records that these indices cannot be placed."""
        self.barred.update(ids)

    def access(self, access: Access) -> None:
        seen: set[int] = set()
        for dim in access.dims:
            match dim:
                case Affine() if access.array >= 0 and self.can_move(dim):
                    self.bar([index for index in dim.indices if index in seen])
                    seen.update(dim.indices)
                    self.windowed.update(dim.indices)
                case Affine() | Concat():
                    self.bar(dim.indices)
                case Whole():
                    pass
                case Group(ids):
                    # x[i, i]: one coordinate cannot slice two dims.
                    self.bar([index for index in ids if index in seen])
                    seen.update(ids)
        known = self.arrays.setdefault(access.array, access.dims)
        for one, other in zip(known, access.dims, strict=True):
            if one != other:
                self.bar(along(one, other))

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
                    self.bar(ids)
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
        monoid = MONOIDS[fold.monoid].across_devices(self.dtype)
        if monoid is None or any(function not in monoid.through for function in context.functions):
            self.bar([index for index in fold.indices if index not in self.targets])
            monoid = None
        for index in fold.indices:
            if index not in self.targets:
                # An idempotent monoid may take an operand on every coordinate.
                once = () if monoid is None or monoid.idempotent else tuple(dict.fromkeys(context.beside))
                self.tell(index, monoid=monoid and monoid.name, once=once, filled=_filled(fold, index))
        product = factors(fold.body)
        for factor in product:
            if isinstance(factor, Read):
                self.under_window(factor, fold.monoid)
            if isinstance(factor, Guarded):
                others = tuple(other.array for other in product if isinstance(other, Read))
                self.look(factor, fold, monoid, context, others)
            else:
                self.visit(factor, _Context(("mul",)) if len(product) > 1 else _Context((fold.monoid,)))

    def under_window(self, access: Access, outside: str | int) -> None:
        """Records what replaces elements outside of an operand under a window: a unit, or another operand's elements."""
        elements = isinstance(outside, int) and bool(self.ins[outside][1])
        for dim in (dim for dim in access.dims if isinstance(dim, Affine)):
            for index in dim.indices:
                role = self.roles[index]
                if elements:
                    self.require(index, part(("over", -dim.offset, access.array, outside)))
                else:
                    self.tell(index, windows=(*role.windows, (access.array, outside)))

    def scan(self, fold: Fold[int, Ground], context: _Context) -> None:
        """Handles a prefix fold: it is one index from its operand to the result, if the result is the fold and nothing else."""
        (k,), (j,) = fold.indices, fold.upto
        monoid = MONOIDS[fold.monoid].along(self.dtype)
        if context.functions or not self.lone or j not in self.targets or monoid is None:
            self.bar((k, j))
        else:
            self.same[k] = j
            self.require(j, ("scan", BUILT), scan=Scan(monoid.name, fold.backwards), filled=_filled(fold, k))
        self.visit(fold.body, _Context((fold.monoid,)))
        # If the index shares a dim with others, or is also read directly, this is not a scan along a dim.
        dims = [dim.indices for access in accesses(fold.body) for dim in access.dims if isinstance(dim, Group)]
        if any(j in dim or (k in dim and len(dim) > 1) for dim in dims):
            self.bar((k, j))

    def select(self, fold: Fold[int, Ground]) -> None:
        """Handles a fold to the best elements: placed if the op can select from any array, and returns all positions."""
        self.visit(fold.body, _Context((fold.monoid,)))
        equation, (read,) = self.form.equations[0], accesses(fold.body)
        extent = prod(self.form.extents[index] for index in fold.indices)
        values, positions = self.ins[read.array][0], self.outs[-1][0]
        alone = Group(fold.indices) in read.dims and len(fold.indices) == len(self.ins) == 1
        if not alone or extent > largest(dtype_of(positions)):
            self.bar(fold.indices)
            return
        whole = [dim.name for dim in equation.targets[-1].dims if isinstance(dim, Whole)]
        best = prod(prod(self.form.groups[name, 0]) for name in whole)
        cost = best + -(-best * itemsize(positions) // itemsize(values))
        self.require(fold.indices[0], ("best", BUILT), selects=Selection(fold.monoid, best, cost), filled=(read.array,))

    def merge(self, fold: Fold[int, Ground]) -> None:
        """Handles a merge: one index from its operands to the results, if the op has a parameter for the number of keys."""
        self.visit(fold.body, _Context((fold.monoid,)))
        reads, keys = accesses(fold.body), self.params.get("num_keys")
        ends = set(along(*self.form.equations[0].targets[0].dims)).difference(*(along(*read.dims) for read in reads))
        if len(ends) != 1 or len(fold.indices) != 1 or not isinstance(keys, int):
            self.bar((*fold.indices, *ends))
            return
        (k,), (j,) = fold.indices, ends
        kinds = [kind_of(dtype_of(dtype)) for dtype, _ in self.ins]
        ties = keys < len(kinds) or not {"b", "i", "u"}.issuperset(kinds)
        self.same[k] = j
        filled = None if "c" in kinds[:keys] else tuple(range(keys))
        self.require(
            j, ("sort", BUILT), merges=Merging(keys, tuple(itemsize(dtype) for dtype, _ in self.ins), ties), filled=filled
        )

    def look(
        self, guard: Guarded, fold: Fold[int, Ground], monoid: Monoid | None, context: _Context, beside: tuple[int, ...]
    ) -> None:
        """Handles a guard `[v = ids[i] + w]` in a fold: v is looked up; the window w is a run of elements, not partitioned."""
        for vectors in guard.vectors:
            self.access(vectors)
        for lands in guard.lands:
            if lands.start is None and lands.dim == lands.window:
                continue
            self.bar(lands.window)
            folded = any(index in fold.indices for index in lands.dim)
            element = lands.component == ELEMENT
            # A read masks the one result. Ops on elements mask their updates; other ops drop them. An op whose front end says
            # what it does outside needs no mask for elements.
            drops = element and self.form.numbers is not None
            zero = monoid is not None and monoid.has_unit_zero
            allowed = zero and self.lone and not context.functions if folded else not element or zero
            if lands.start is None or len(lands.dim) != 1 or not allowed or (element and not folded and not beside):
                self.bar(lands.dim)
                continue
            (index,) = lands.dim
            role, lookup = self.roles[index], Lookup(lands.start.array, lands.component, lands.width)
            k: Term = Elements(lookup.operand) if element else Component(lookup.operand, lookup.component)
            if lookup.width > 1:
                k = ("window", k, lookup.width)
            if role.monoid is not None:
                terms: list[Term] = [("find" if drops else "take", k, BUILT)]
            elif element and not drops:
                terms = [part(("join", role.extent, k, operand)) for operand in dict.fromkeys(beside)]
            else:
                terms = [part(("put", role.extent, k, OP))]
            self.require(index, *terms, lookups=(*role.lookups, lookup))

    def instance(self, results: int, moves: bool) -> Instance:
        operands = len(self.ins)
        arrays = [*range(operands), *range(-1, -1 - results, -1)]
        for k, j in self.same.items():
            if k in self.barred:
                self.bar([j])
        groups = {array: [self.group(dim) for dim in self.arrays.get(array, ())] for array in arrays}
        while True:
            dims = {array: [self.placeable(ids) for ids in groups[array]] for array in arrays}
            # A dim is placed as all of its indices, except blocks, or not at all.
            pairs = [pair for array in arrays for pair in zip(dims[array], groups[array], strict=True)]
            lost = {index for kept, ids in pairs if not kept.indices for index in ids} - self.barred
            if not lost:
                break
            self.bar(lost)
        for array in range(operands):
            windows = zip(self.arrays.get(array, ()), self.ins[array][1], strict=False)
            dims[array] = [self.window(dim, size) or kept for kept, (dim, size) in zip(dims[array], windows, strict=False)]
        used = dict.fromkeys(i for array in reversed(arrays) for dim in dims[array] for i in dim.indices)
        number = {index: n for n, index in enumerate(used)}
        numbered = {a: tuple(dim._replace(indices=tuple(number[i] for i in dim.indices)) for dim in dims[a]) for a in arrays}
        return Instance(
            self.form.definition,
            tuple(self.roles[index] for index in used),
            tuple(numbered[array] for array in range(operands)),
            tuple(numbered[-1 - result] for result in range(results)),
            moves,
        )

    def group(self, dim: Dim) -> Ids:
        """The indices of a dim. The index of a prefix fold is the same as its upper limit."""
        return tuple(self.same.get(index, index) for index in dim.indices) if isinstance(dim, Group) else ()

    def window(self, dim: Dim, size: int) -> Placeable | None:
        """A dim under a window, the index with the most values first; None if the dim is not under a window."""
        if not isinstance(dim, Affine):
            return None
        extents, steps = self.extents, dict(dim.factors)
        width = 1 + sum((extents[i] - 1) * abs(step) for i, step in steps.items())
        free = sorted((i for i in steps if i not in self.barred), key=lambda i: -extents[i])
        # For each index, the others make its window.
        widths = {i: width - (extents[i] - 1) * abs(steps[i]) for i in free}
        windows = (Window(Extent(extents[i]), steps[i], widths[i], 1, -dim.offset) for i in free)
        reaches = tuple(AffineRead(window, size, dim.divisor) for window in windows)
        if (position := self.picked(dim, size)) is not None:
            return Placeable((*free, position), 1, (*reaches, None), dim.moved, dim.scaled)
        return Placeable(tuple(free), 1, reaches, dim.moved)

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
        self.extents.append(size)
        picks = Picks(dim.offset, step, self.extents[index])
        self.roles.append(Index(size, monoid.name, requires=(("take", picks, BUILT),)))
        return len(self.roles) - 1

    def placeable(self, ids: Ids) -> Placeable:
        lead = ids
        while lead and lead[-1] in self.form.fixed:
            lead = lead[:-1]
        if not lead or not all(i not in self.barred and (self.extents[i] > 1 or i in self.windowed) for i in lead):
            return Placeable()
        return Placeable(lead, prod(self.extents[i] for i in ids[len(lead) :]))


def _filled(fold: Fold[int, Ground], index: int) -> tuple[int, ...] | None:
    """The operands with the index, if units there make the fold's body its unit: for one read, or a product in a sum.

    Else None.
    """
    reads = [factor for factor in factors(fold.body) if not isinstance(factor, Guarded)]
    plain = [read for read in reads if isinstance(read, Read)]
    own = [read.array for read in plain if any(isinstance(dim, Group) and index in dim.indices for dim in read.dims)]
    is_sum = MONOIDS[fold.monoid].has_unit_zero and MONOIDS[fold.monoid].linear
    return tuple(dict.fromkeys(own)) if own and len(plain) == len(reads) and (len(reads) == 1 or is_sum) else None
