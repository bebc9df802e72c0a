"""Grounding: a definition for operands and results of given shapes, every group spelled out.

Binding reads the tilings off the ground form and the interpreter runs it. Indices are numbers here, with one extent each; a
dim of an access is a product of indices, major to minor. An index over extent 1 is the constant 0, so it is no index at all.

    out[i.., k..] = src[i.., k..]   at src k = axes        -->     out[0, 1] = sum(2) src[0, 2, 1]        extents 4, 8, 6
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .definition import (
    Arith,
    Call,
    Concat,
    Definition,
    Expr,
    Fold,
    Guard,
    Join,
    Number,
    Otherwise,
    Param,
    Read,
    Shape,
    Size,
    Term,
    Var,
    Whole,
)
from .errors import Error
from .gathers import Dims, Places, windows
from .params import Literal, ParamsAttr, Record
from .ravel import refine_dims

Ids: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Affine:
    """A dim at `(offset + sum(index * factor)) / divisor`; where that is no position of the dim, nothing is read."""

    offset: int
    factors: tuple[tuple[int, int], ...]
    divisor: int


@dataclass(frozen=True, slots=True)
class Every:
    """A dim that is taken as a whole, `j:`."""


@dataclass(frozen=True, slots=True)
class Part:
    """One term of a sum of ranges, `+j`: the indices, behind those of the copies of the equation before this one."""

    ids: Ids
    copy: int


Dim: TypeAlias = Ids | Affine | Every | Part


@dataclass(frozen=True, slots=True)
class Access:
    """An array at indices; operands count 0, 1, ..., results -1, -2, ..."""

    array: int
    dims: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    value: Literal


@dataclass(frozen=True, slots=True)
class Counter:
    """An index used as a value; none at all is 0."""

    ids: Ids


@dataclass(frozen=True, slots=True)
class Binary:
    sign: str
    left: Ground
    right: Ground


@dataclass(frozen=True, slots=True)
class Apply:
    function: str
    args: tuple[Ground, ...]


@dataclass(frozen=True, slots=True)
class Folding:
    monoid: str
    ids: Ids
    body: Ground


@dataclass(frozen=True, slots=True)
class Lands:
    """`[v = start + w]` for one dim: the window index `window` of extent `width` lies on `dim` of extent `extent`.

    `start` is where the window starts, component `component` of the index vectors read there; None: at 0.
    """

    dim: Ids
    extent: int
    start: Access | None
    component: int
    window: Ids
    width: int


@dataclass(frozen=True, slots=True)
class Guarded:
    """All dims of one guard; they hold together or, where the window does not clamp, none of it does.

    `folded`: the dims are bound by the fold, so the guard looks them up; otherwise they are the result's, and it scatters.
    """

    lands: tuple[Lands, ...]
    clamps: bool
    folded: bool


@dataclass(frozen=True, slots=True)
class Else:
    body: Ground
    default: Ground


Ground: TypeAlias = "Access | Constant | Counter | Binary | Apply | Folding | Guarded | Else"


@dataclass(frozen=True, slots=True)
class Equation:
    """`targets = body`: each result in `targets` at each of its indices."""

    targets: tuple[Access, ...]
    body: Ground


@dataclass(frozen=True, slots=True)
class Grounded:
    """A definition with its shapes.

    `groups` holds the extents of each variable, `("w", copy) -> (1, 8)`; `fixed` are the indices whose extent a parameter
    of the op says, so that the types of a local op could not.
    """

    definition: Definition
    extents: tuple[int, ...]
    equations: tuple[Equation, ...]
    groups: dict[tuple[str, int], tuple[int, ...]]
    fixed: frozenset[int]
    places: Places | None


def ground(definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]) -> Grounded:
    """Spells a definition out; Error where the shapes do not fit it."""
    return _Grounder(definition.with_arity(len(ins), len(outs)), params, ins, outs).run()


def inner(body: Ground) -> tuple[Ground, ...]:
    """The expressions directly inside one, without the accesses inside guards."""
    match body:
        case Binary(_, left, right) | Else(left, right):
            return (left, right)
        case Apply(_, args):
            return args
        case Folding(_, _, inside):
            return (inside,)
        case _:
            return ()


Key: TypeAlias = tuple[str, int, int]
"""An index: the variable's name, the copy of the equation it is in (0 if they share it), its number in its group."""


@dataclass(frozen=True, slots=True)
class _Site:
    """A read or a target of one copy of the equation, and where each of its terms' components goes."""

    array: int
    name: str
    terms: tuple[Term, ...]
    copy: int
    placed: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])  # (term, component, dim)


def _names(term: Term) -> tuple[str, ...]:
    """The variables of a term, the one that `at` may name among them."""
    match term:
        case Var(name, _) | Whole(name, _) | Concat(name):
            return (name,)
        case Join(names):
            return names
        case Arith(_, left, right):
            return _names(left) + _names(right)
        case _:
            return ()


def _groups(term: Term) -> tuple[str, ...]:
    """The groups of a term: it takes one dim for each of their indices."""
    match term:
        case Var(name, True):
            return (name,)
        case Arith(_, left, right):
            return _groups(left) + _groups(right)
        case _:
            return ()


class _Grounder:
    """Finds, in this order: how long groups are and which dims they take; extents; indices; the ground equations."""

    def __init__(
        self, definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]
    ) -> None:
        self.definition = definition
        self.params = params
        self.ins = ins
        self.outs = outs
        self.places = windows(definition, params, ins, outs) if definition.front else None
        self.lengths: dict[tuple[str, int], int] = {}
        self.extents: dict[Key, int] = {}
        self.ids: dict[Key, Ids | None] = {}
        self.sizes: list[int] = []
        self.copies, self.fresh = _copies(definition)
        self.sites: dict[tuple[int, tuple[Term, ...], int], _Site] = {}

    def run(self) -> Grounded:
        for name, source in self.definition.sizes:
            value = source.value if isinstance(source, Number) else source.value(self.params)
            values = value if isinstance(value, tuple) else (value,)
            self.lengths[name, 0] = len(values)
            self.extents |= {(name, 0, k): each for k, each in enumerate(values) if isinstance(each, int)}
        sites = [site for copy in range(self.copies) for site in self.all_sites(copy)]
        self.place(sites)
        for site in sites:
            self.measure(site)
        for site in sites:
            self.measure_joins(site)
        if self.definition.ravel is not None:
            self.ravel(*self.definition.ravel)
        for guard in self.guards(self.definition.body):
            self.unify(guard)
        equations = tuple(self.equation(copy) for copy in range(self.copies))
        sized = {name for name, _ in self.definition.sizes}
        fixed = frozenset(i for key, ids in self.ids.items() if key[0] in sized for i in ids or ())
        return Grounded(self.definition, tuple(self.sizes), equations, self.group_extents(), fixed, self.places)

    # Where each group goes

    def shape(self, array: int) -> Shape:
        return self.ins[array] if array >= 0 else self.outs[-1 - array]

    def arrays(self, read: Read, copy: int) -> range:
        """The positions that a read stands for in one copy of the equation."""
        found = self.definition.positions(read.name)
        return found[copy : copy + 1] if len(found) > 1 and self.copies > 1 and not read.spread else found

    def all_sites(self, copy: int) -> Iterator[_Site]:
        for read in (*self.definition.reads(), *self.definition.targets):
            for array in self.arrays(read, copy):
                site = _Site(array, read.name, read.terms, copy)
                yield self.sites.setdefault((array, read.terms, copy), site)

    def place(self, sites: list[_Site]) -> None:
        """Puts the terms of each site on dims, the sites whose groups are known first."""
        waiting = sites
        while waiting:
            still = [site for site in waiting if not self.try_place(site)]
            if len(still) == len(waiting):
                # `i.., b..:` on several arrays: on the one of least rank, no dims are left to be whole.
                least = min(still, key=lambda site: len(self.shape(site.array)))
                if not self.try_place(least, least=True):
                    raise Error(f"`{self.definition.name}` is ambiguous for operands of these ranks")
                still.remove(least)
            waiting = still

    def dims_at(self, site: _Site, term: Term) -> Dims | None:
        for name in _names(term):
            if self.places is not None:
                return self.places.dims[site.name, name]
            for at in self.definition.at:
                if at.variable == name and at.array in (None, site.name):
                    value = at.source.value if isinstance(at.source, Number) else at.source.value(self.params)
                    dims = value if isinstance(value, tuple) else (value,)
                    return tuple(dim for dim in dims if isinstance(dim, int))
        return None

    def try_place(self, site: _Site, least: bool = False) -> bool:
        rank = len(self.shape(site.array))
        site.placed.clear()
        if not rank:
            return True
        placed: dict[int, Dims] = {}
        for number, term in enumerate(site.terms):
            dims = self.dims_at(site, term)
            if dims is not None:
                placed[number] = dims
        taken = {dim for dims in placed.values() for dim in dims}
        free = [dim for dim in range(rank) if dim not in taken]
        counts = self.counts(site, placed, len(free), least)
        if counts is None:
            return False
        rest = iter(free)
        for number, term in enumerate(site.terms):
            dims = placed[number] if number in placed else tuple(next(rest) for _ in range(counts[number]))
            site.placed.extend((number, k, dim) for k, dim in enumerate(dims) if dim is not None)
            for group in _groups(term):
                self.lengths[self.scope(group, site.copy)] = len(dims)
        return True

    def counts(self, site: _Site, placed: dict[int, Dims], free: int, least: bool) -> dict[int, int] | None:
        """How many of the free dims each term without `at` takes: at most one group has to guess."""
        counts: dict[int, int] = {}
        guess: int | None = None
        for number, term in enumerate(site.terms):
            groups = _groups(term)
            scopes = [self.scope(group, site.copy) for group in groups]
            known = [self.lengths[scope] for scope in scopes if scope in self.lengths]
            if number in placed:
                continue
            if known or not (groups or (isinstance(term, Whole) and term.many)):
                counts[number] = known[0] if known else 1
            elif least and isinstance(term, Whole):
                counts[number] = 0
            elif guess is not None:
                return None
            else:
                guess = number
        left = free - sum(counts.values())
        if guess is not None:
            counts[guess] = left
        # Only the index vectors' last dim belongs to no term.
        if left < 0 or (guess is None and left and self.places is None):
            raise Error(
                f"`{self.definition.name}` does not take an array of shape {self.shape(site.array)} as `{site.name}`"
            )
        return counts

    # How many values each index has

    def scope(self, name: str, copy: int) -> tuple[str, int]:
        return (name, copy if name in self.fresh else 0)

    def key(self, name: str, copy: int, component: int = 0) -> Key:
        return (*self.scope(name, copy), component)

    def measure(self, site: _Site) -> None:
        shape = self.shape(site.array)
        for number, component, dim in site.placed:
            term = site.terms[number]
            if not isinstance(term, Var | Whole):
                continue
            key = self.key(term.name, site.copy, component)
            known = self.extents.get(key, 1)
            if isinstance(term, Var) and known != shape[dim] and 1 not in (known, shape[dim]):
                raise Error(
                    f"`{self.definition.name}` does not fit: an index has extent {known} and, in dim {dim} of"
                    f" `{site.name}`, {shape[dim]}"
                )
            if known == 1 or shape[dim] != 1:
                self.extents[key] = shape[dim]

    def measure_joins(self, site: _Site) -> None:
        shape = self.shape(site.array)
        for number, _, dim in site.placed:
            term = site.terms[number]
            if not isinstance(term, Join):
                continue
            known, missing = 1, None
            for key in [self.key(name, site.copy) for name in term.names]:
                if key in self.extents:
                    known *= self.extents[key]
                else:
                    missing = key
            if missing is not None:
                self.extents[missing] = shape[dim] // known
                known *= self.extents[missing]
            if known != shape[dim]:
                raise Error(f"`{self.definition.name}` does not fit: {shape[dim]} is no product of {term.names}")

    def keys(self, group: str, copy: int = 0) -> list[Key]:
        return [self.key(group, copy, k) for k in range(self.lengths.get(self.scope(group, copy), 0))]

    def group_extents(self) -> dict[tuple[str, int], tuple[int, ...]]:
        found: dict[tuple[str, int], tuple[int, ...]] = {}
        for (name, copy, component), extent in sorted(self.extents.items()):
            known = found.get((name, copy), ())
            found[name, copy] = known + (1,) * (component - len(known)) + (extent,)
        return found

    # Which indices there are

    def new(self, extent: int) -> int:
        self.sizes.append(extent)
        return len(self.sizes) - 1

    def of(self, key: Key) -> Ids | None:
        """The indices that a variable's component stands for; None if it can only be taken as a whole."""
        if key not in self.ids:
            extent = self.extents.get(key, 1)
            self.ids[key] = () if extent == 1 else (self.new(extent),)
        return self.ids[key]

    def ravel(self, left: str, right: str) -> None:
        """Solves `ravel(i..) = ravel(j..)` by common refinement: equal blocks of the row-major order are equal indices."""
        lefts, rights = self.keys(left), self.keys(right)
        factors = refine_dims([self.extents.get(k, 1) for k in lefts], [self.extents.get(k, 1) for k in rights])
        numbers: dict[int, int] = {}
        for key, parts in zip([*lefts, *rights], factors, strict=True):
            if parts is not None:
                for factor, extent in parts:
                    if factor not in numbers:
                        numbers[factor] = self.new(extent)
            self.ids[key] = None if parts is None else tuple(numbers[factor] for factor, _ in parts)

    def guards(self, expr: Expr) -> Iterator[Guard]:
        match expr:
            case Guard():
                yield expr
            case Fold(_, _, body):
                yield from self.guards(body)
            case Arith(_, left, right) | Otherwise(left, right):
                yield from self.guards(left)
                yield from self.guards(right)
            case Call(_, args):
                for arg in args:
                    yield from self.guards(arg)
            case _:
                pass

    def unify(self, guard: Guard) -> None:
        """A window over the full extent that cannot move starts at 0: its index *is* the array's."""
        assert self.places is not None
        for number, start in enumerate(self.places.starts):
            dim, window = self.key(guard.variable.name, 0, number), self.key(guard.window.name, 0, number)
            if self.extents.get(dim, 1) == self.extents.get(window, 1) and (start is None or self.places.clamps):
                self.ids[window] = self.of(dim)

    # The ground equations

    def equation(self, copy: int) -> Equation:
        targets = tuple(
            self.access(array, target, copy) for target in self.definition.targets for array in self.arrays(target, copy)
        )
        return Equation(targets, self.expr(self.definition.body, copy))

    def access(self, array: int, read: Read, copy: int) -> Access:
        site = self.sites[array, read.terms, copy]
        shape = self.shape(array)
        dims: list[Dim] = [Every()] * len(shape)
        for number, component, dim in site.placed:
            dims[dim] = self.dim(read.terms[number], copy, component, shape[dim])
        return Access(array, tuple(dims))

    def dim(self, term: Term, copy: int, component: int, extent: int) -> Dim:
        match term:
            case Whole():
                return Every()
            case Concat():
                return Part(self.of(self.key(term.name, copy)) or (), copy)
            case Var(name, _):
                if extent == 1:
                    return ()
                ids = self.of(self.key(name, copy, component))
                return Every() if ids is None else ids
            case Join(names):
                return tuple(i for name in names for i in self.of(self.key(name, copy)) or ())
            case _:
                return self.affine(term, copy, component, extent)

    def affine(self, term: Expr, copy: int, component: int, extent: int) -> Dim:
        offset, factors, divisor = self.line(term, copy, component)
        plain = {key: factor for key, factor in factors.items() if self.extents.get(key, 1) != 1}
        if offset == 0 and divisor == 1 and list(plain.values()) == [1] and self.extents[next(iter(plain))] == extent:
            return self.of(next(iter(plain))) or ()
        if extent == 1 and not plain and not offset:
            return ()
        numbered = tuple((i, factor) for key, factor in plain.items() for i in self.of(key) or ())
        return Affine(offset, numbered, divisor)

    def line(self, term: Expr, copy: int, component: int) -> tuple[int, dict[Key, int], int]:
        """An index expression as offset, factors and divisor."""
        match term:
            case Var(name, _):
                return 0, {self.key(name, copy, component): 1}, 1
            case Arith("/", left, right):
                offset, factors, _ = self.line(left, copy, component)
                return offset, factors, self.number(right, component)
            case Arith("*", left, right):
                offset, factors, divisor = self.line(left, copy, component)
                by = self.number(right, component)
                return offset * by, {key: factor * by for key, factor in factors.items()}, divisor
            case Arith(sign, left, right):
                offset, factors, divisor = self.line(left, copy, component)
                more, others, _ = self.line(right, copy, component)
                by = 1 if sign == "+" else -1
                return offset + by * more, factors | {k: by * factor for k, factor in others.items()}, divisor
            case _:
                return self.number(term, component), {}, 1

    def number(self, expr: Expr, component: int) -> int:
        """An integer made of literals and parameters, of which the component is taken; an absent one is 1."""
        match expr:
            case Number(value):
                return 1 if value is None else value
            case Size(variable):
                return self.extents.get(self.key(variable.name, 0, component), 1)
            case Param():
                value = expr.value(self.params)
                part = value[component] if isinstance(value, tuple) else value
                return part if isinstance(part, int) else 1
            case Arith(sign, left, right):
                a, b = self.number(left, component), self.number(right, component)
                return {"+": a + b, "-": a - b, "*": a * b}[sign]
            case _:
                raise Error(f"`{self.definition.name}`: an index is no integer expression")

    def expr(self, expr: Expr, copy: int) -> Ground:
        match expr:
            case Read():
                return self.access(self.arrays(expr, copy)[0], expr, copy)
            case Arith(sign, left, right):
                return Binary(sign, self.expr(left, copy), self.expr(right, copy))
            case Call(function, args):
                return Apply(function, tuple(part for arg in args for part in self.argument(arg, copy)))
            case Fold(monoid, variables, body):
                keys = [key for var in variables for key in self.variable(var, copy)]
                ids = dict.fromkeys(i for key in keys for i in self.of(key) or ())
                return Folding(monoid, tuple(ids), self.expr(body, copy))
            case Guard():
                return self.guarded(expr, copy)
            case Otherwise(body, default):
                return Else(self.expr(body, copy), self.expr(default, copy))
            case Var(name, _):
                return Counter(self.of(self.key(name, copy)) or ())
            case Number(value):
                return Constant(value)
            case Param():
                return Constant(expr.value(self.params))
            case Size(variable):
                return Constant(self.extents.get(self.key(variable.name, copy), 1))

    def variable(self, var: Var, copy: int) -> list[Key]:
        return self.keys(var.name, copy) if var.many else [self.key(var.name, copy)]

    def argument(self, arg: Expr, copy: int) -> Iterator[Ground]:
        if isinstance(arg, Read) and arg.spread:
            for array in self.arrays(arg, copy):
                yield self.access(array, arg, copy)
        else:
            yield self.expr(arg, copy)

    def guarded(self, guard: Guard, copy: int) -> Guarded:
        assert self.places is not None
        arrays = self.arrays(guard.start, copy)
        lands: list[Lands] = []
        for number, start in enumerate(self.places.starts):
            dim, window = self.key(guard.variable.name, 0, number), self.key(guard.window.name, 0, number)
            extent, width = self.extents.get(dim, 1), self.extents.get(window, 1)
            fixed = start is None or (extent == width and self.places.clamps)
            array = arrays[start] if guard.start.spread and start is not None else arrays[0] if arrays else 0
            access = None if fixed else self.access(array, guard.start, copy)
            component = start if start is not None and not guard.start.spread else 0
            lands.append(Lands(self.of(dim) or (), extent, access, component, self.of(window) or (), width))
        names = {name for target in self.definition.targets for term in target.terms for name in _names(term)}
        return Guarded(tuple(lands), self.places.clamps, guard.variable.name not in names)


def _copies(definition: Definition) -> tuple[int, frozenset[str]]:
    """How often the equation stands for itself, one variadic operand or result after another, and what they do not share."""
    many = {formal.name for formal in (*definition.operands, *definition.results) if formal.variadic}
    reads = [*definition.reads()]
    if any(read.spread for read in reads) or not many:
        return 1, frozenset()
    joined = {t.name for read in (*reads, *definition.targets) for t in read.terms if isinstance(t, Concat)}
    if joined:
        return definition.arity, frozenset(joined)
    names = {name for read in (*reads, *definition.targets) for term in read.terms for name in _names(term)}
    return definition.arity, frozenset(names)
