"""Grounding: writes a definition out for operands and results of given shapes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..ground.errors import Error
from ..params import ParamsAttr
from .dim_terms import Sites
from .ground_form import ELEMENT, Access, Dim, Equation, Ground, Grounded, Guarded, Ids, Lands
from .indices import Indices, Key
from .operators import ARITHMETIC
from .syntax_tree import (
    Affine,
    Apply,
    Concat,
    Definition,
    Expr,
    Fold,
    Group,
    Guard,
    Number,
    Otherwise,
    Param,
    Read,
    Reading,
    Shape,
    Size,
    Term,
    Var,
    Whole,
)


def ground(definition: Definition, params: ParamsAttr, ins: Sequence[Shape], outs: Sequence[Shape]) -> Grounded:
    """Returns the ground form of a definition. Raises Error if the shapes do not fit."""
    sites = Sites(definition.with_arity(len(ins), len(outs)), params, ins, outs)
    indices = Indices(sites)
    writer = _Writer(indices)
    equations = tuple(writer.equation(copy) for copy in range(sites.copies))
    fixed = frozenset(i for key, ids in indices.ids.items() if key[0] in sites.sized for i in ids or ())
    return Grounded(sites.definition, tuple(indices.sizes), equations, indices.group_extents(), fixed, sites.front)


class _Line(NamedTuple):
    """An index expression: `(offset + sum(index * factor)) / divisor`.

    `moved` is the parameter, or the extent, that is added to it, with its sign; `scaled` is the parameter that multiplies its
    last index.
    """

    offset: int
    factors: dict[Key, int]
    divisor: int = 1
    moved: tuple[Param | Size, int] | None = None
    scaled: Param | None = None


class _Writer:
    """Writes the ground equations, once the indices are known."""

    def __init__(self, indices: Indices) -> None:
        self.indices, self.sites = indices, indices.sites
        self.definition, self.params = self.sites.definition, self.sites.params

    def equation(self, copy: int) -> Equation:
        targets = tuple(
            self.access(array, target, copy) for target in self.definition.targets for array in self.sites.arrays(target, copy)
        )
        return Equation(targets, self.expr(self.definition.body, copy), self.partials(targets, copy))

    def partials(self, targets: Sequence[Access], copy: int) -> tuple[tuple[str, Ids], ...]:
        """For each target, the monoid and the indices of its fold on the left of `=`; ("", ()) without a fold."""
        said = {
            array: (partial.monoid, self.folded(partial.variables, copy))
            for partial in self.definition.partials
            for array in self.definition.positions(partial.result)
        }
        return tuple(said.get(target.array, ("", ())) for target in targets) if said else ()

    def access(self, array: int, read: Reading, copy: int) -> Access:
        site = self.sites.table[array, read.dims, copy]
        shape = self.sites.shape(array)
        dims: list[Dim] = [Whole("")] * len(shape)
        for number, component, dim in site.placed:
            dims[dim] = self.dim(read.dims[number], copy, component, shape[dim])
        return Read(array, tuple(dims))

    def dim(self, term: Term, copy: int, component: int, extent: int) -> Dim:
        match term:
            case Whole():
                return term
            # The sum of one range is that range.
            case Concat(indices) if self.sites.copies == 1:
                return self.dim(Group(indices), copy, component, extent)
            case Concat((Var(name),)):
                return Concat(self.indices.of(self.indices.key(name, copy)) or (), copy)
            case Group((Var(name),)):
                key = self.indices.key(name, copy, component)
                if extent == 1 and (key not in self.indices.windowed or self.indices.extents.get(key, 1) != 1):
                    return Group(())
                ids = self.indices.of(key)
                return Whole(name) if ids is None else Group(ids)
            case Group(joined):
                return Group(tuple(i for var in joined for i in self.indices.of(self.indices.key(var.name, copy)) or ()))
            case _:
                return self.affine(term, copy, component, extent)

    def affine(self, term: Term, copy: int, component: int, extent: int) -> Dim:
        offset, factors, divisor, moved, scaled = self.line(term, copy, component)
        plain = {
            key: factor
            for key, factor in factors.items()
            if self.indices.extents.get(key, 1) != 1 or key in self.indices.windowed
        }
        if offset == 0 and divisor == 1 and list(plain.values()) == [1] and self.indices.extents[next(iter(plain))] == extent:
            return Group(self.indices.of(next(iter(plain))) or ())
        if extent == 1 and not plain and not offset:
            return Group(())
        numbered = tuple((i, factor) for key, factor in plain.items() for i in self.indices.of(key) or ())
        return Affine(offset, numbered, divisor, moved, scaled)

    def line(self, term: Term, copy: int, component: int) -> _Line:
        """Reads an index expression as offset, factors and divisor, with the parameters that move and scale it."""
        match term:
            case Group((Var(name),)):
                return _Line(0, {self.indices.key(name, copy, component): 1})
            case Apply("div", (left, right)):
                return self.line(left, copy, component)._replace(divisor=self.number(right, component), scaled=None)
            case Apply("mul", (left, right)):
                offset, factors, divisor, *_ = self.line(left, copy, component)
                by = self.number(right, component)
                scaled = self.part(right, component) if isinstance(left, Group) else None
                return _Line(offset * by, {key: factor * by for key, factor in factors.items()}, divisor, scaled=scaled)
            case Apply("add" | "sub" as name, (left, right)):
                one, other = (self.line(each, copy, component) for each in (left, right))
                by = 1 if name == "add" else -1
                factors = one.factors | {key: by * factor for key, factor in other.factors.items()}
                moved = one.moved
                for each, sign in ((right, by), (left, 1)):
                    if source := each if isinstance(each, Size) else self.part(each, component):
                        moved = source, sign
                return _Line(one.offset + by * other.offset, factors, one.divisor, moved, other.scaled)
            case _:
                return _Line(self.number(term, component), {})

    def part(self, by: Term, component: int) -> Param | None:
        """The part for one component of a parameter that has several."""
        return by.of(component) if isinstance(by, Param) and isinstance(by.value(self.params), tuple) else None

    def number(self, expr: Term, component: int) -> int:
        """An integer expression of literals and parameters, for one component; an absent parameter is 1."""
        match expr:
            case Number(value):
                return 1 if value is None else value
            case Size(variable):
                return self.indices.extents.get(self.indices.key(variable.name, 0, component), 1)
            case Param():
                value = expr.value(self.params)
                part = value[component] if isinstance(value, tuple) else value
                return part if isinstance(part, int) else 1
            case Apply("add" | "sub" | "mul" | "neg" as name, args):
                return ARITHMETIC[name].function(*(self.number(arg, component) for arg in args))
            case _:
                raise Error(f"`{self.definition.name}`: expected an integer expression as an index")

    def expr(self, expr: Expr, copy: int) -> Ground:
        match expr:
            case Read():
                return self.access(self.sites.arrays(expr, copy)[0], expr, copy)
            case Apply(function, args):
                return Apply(function, tuple(part for arg in args for part in self.argument(arg, copy)))
            case Fold(monoid, variables, body, upto):
                flag = self.definition.backwards
                backwards = flag is not None and self.params.get(flag) is True
                return Fold(monoid, self.folded(variables, copy), self.expr(body, copy), self.folded(upto, copy), backwards)
            case Guard():
                return self.guarded(expr, copy)
            case Otherwise(body, default):
                return Otherwise(self.expr(body, copy), self.expr(default, copy))
            case Group(indices):
                return Group(self.folded([Var(index.name) for index in indices], copy))
            case Number(value):
                return Number(value)
            case Param():
                return Number(expr.value(self.params))
            case Size(variable):
                return Number(self.indices.extents.get(self.indices.key(variable.name, copy), 1))

    def folded(self, variables: Sequence[Var], copy: int) -> Ids:
        keys = [key for var in variables for key in self.variable(var, copy)]
        return tuple(dict.fromkeys(i for key in keys for i in self.indices.of(key) or ()))

    def variable(self, var: Var, copy: int) -> list[Key]:
        return self.indices.keys(var.name, copy) if var.many else [self.indices.key(var.name, copy)]

    def argument(self, arg: Expr, copy: int) -> Iterator[Ground]:
        if isinstance(arg, Read) and arg.spread:
            for array in self.sites.arrays(arg, copy):
                yield self.access(array, arg, copy)
        else:
            yield self.expr(arg, copy)

    def guarded(self, guard: Guard, copy: int) -> Guarded:
        arrays = self.sites.arrays(guard.start, copy)
        folded = self.definition.looks_up(guard)
        if guard.window is None:
            (ids,) = (self.access(array, guard.start, copy) for array in arrays)
            key = self.indices.key(guard.variable.name, copy)
            land = Lands(self.indices.of(key) or (), self.indices.extents.get(key, 1), ids, ELEMENT, (), 1)
            return Guarded((land,), (ids,), False, folded)
        assert self.sites.front is not None
        lands: list[Lands] = []
        for number, start in enumerate(self.sites.front.starts):
            dim, window = self.indices.key(guard.variable.name, 0, number), self.indices.key(guard.window.name, 0, number)
            extent, width = self.indices.extents.get(dim, 1), self.indices.extents.get(window, 1)
            fixed = start is None or (extent == width and self.sites.front.clamps)
            array = arrays[start] if guard.start.spread and start is not None else arrays[0] if arrays else 0
            access = None if fixed else self.access(array, guard.start, copy)
            component = start if start is not None and not guard.start.spread else 0
            lands.append(Lands(self.indices.of(dim) or (), extent, access, component, self.indices.of(window) or (), width))
        vectors = tuple(self.access(array, guard.start, copy) for array in arrays)
        return Guarded(tuple(lands), vectors, self.sites.front.clamps, folded)
