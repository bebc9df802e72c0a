"""The meaning of a definition: its own expression, at one index of a result, on ints and on terms of the solver.

The expression is the ground form from which the tilings are derived and which the interpreter runs. Scalar functions are
unknown, but for the arithmetic of sums; so is a function of whole rows, which is the same for equal rows.

    out[i] = sum(k) x[i, k] * w[k]        -->        fold("add", |k|, k -> x(i, k) * w(k))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import mul
from typing import Protocol, TypeAlias, cast

from ....dialects.definitions.ground_form import Access, Dim, Equation, Ground, Grounded, Ids, along, subexpressions
from ....dialects.definitions.operators import ARITHMETIC
from ....dialects.definitions.syntax_tree import Affine, Apply, Concat, Fold, Group, Number, Otherwise, Read, Whole
from ....dialects.ground.monoids import MERGE, MONOIDS, SELECTIONS
from ..values import Number as Term
from ..world import NoMeaning, World

Env: TypeAlias = Mapping[object, Term]
"""The values of indices, by their numbers; along a dim that no index numbers, by the array and the dim."""
Positions: TypeAlias = tuple[Term, ...]
Reader: TypeAlias = Callable[[int, Positions, Env], Term]
"""The element of an operand at positions, which is read where indices have these values."""

ROWS = "rows"
"""The fold whose value is the row itself: equal rows have equal ones."""
SAME = {function: each.name for each in MONOIDS.values() if each.idempotent for function in each.through}
"""The monoids by the functions that are called otherwise."""


class Places(World, Protocol):
    """A world that knows the digits of the numbers that it makes of digits."""

    def joined(self, digits: Sequence[tuple[Term, Term]]) -> Term:
        """The number with these digits, major to minor, each with its size."""
        ...


@dataclass(frozen=True, slots=True)
class Meaning:
    """A definition on operands of given sizes. `size` is what an extent stands for; `read` gives the operands' elements."""

    world: Places
    form: Grounded
    shapes: Sequence[Sequence[int]]
    size: Callable[[int], Term]
    read: Reader
    first: int | None = None
    """The index over which folds run first. Folds over several indices may run in any order."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other names of monoids."""

    def extent(self, index: int) -> Term:
        return self.size(self.form.extents[index])

    def targets(self, number: int) -> list[tuple[Equation, Access]]:
        """The equations of a result: one, or one for each part of a concatenation."""
        return [(each, target) for each in self.form.equations for target in each.targets if target.array == -1 - number]

    def result(self, number: int, env: Env) -> Term:
        """A result where the indices, and those of dims that are unpartitioned, have these values."""
        (equation, target), *others = self.targets(number)
        if others:
            return self.chained(self.targets(number), env)
        if equation.partials:
            raise NoMeaning("results are folded over indices of others")
        match equation.body:
            case Apply("@", args):
                return self.of_rows(equation, target, [self.row(arg, env) for arg in args], env)
            case Fold(monoid, indices, inside) if monoid in (*SELECTIONS, MERGE):
                reads = [inside] if isinstance(inside, Read) else list(cast("Apply[Ground]", inside).args)
                return self.of_rows(equation, target, [self.folded(ROWS, indices, read, env) for read in reads], env)
            case body:
                return self.value(body, env)

    def chained(self, parts: Sequence[tuple[Equation, Access]], env: Env) -> Term:
        """A concatenation: one part after another along a dim."""
        (equation, target), *rest = parts
        ((at, part),) = ((at, dim) for at, dim in enumerate(target.dims) if isinstance(dim, Concat))
        row, here = env[target.array, at], reduce(mul, map(self.extent, part.indices), 1)
        value = self.value(equation.body, {**env, **dict.fromkeys(part.indices, row)})
        if not rest:
            return value
        return self.world.where(row < here, value, self.chained(rest, {**env, (target.array, at): row - here}))

    def of_rows(self, equation: Equation, target: Access, rows: Sequence[Term], env: Env) -> Term:
        """An element of what a function makes of whole rows: where it is along the dims that are not the rows'."""
        own: list[object] = [(target.array, at) for at, dim in enumerate(target.dims) if isinstance(dim, Whole)]
        if isinstance(equation.body, Fold) and equation.body.monoid == MERGE:
            # What is merged has another index in the result.
            own += sorted(set(along(*target.dims)).difference(*(along(*read.dims) for read in _reads(equation.body))))
        at = equation.targets.index(target)
        return self.world.unknown(self.form.definition.name, at, *(env[each] for each in own), *rows)

    def positions(self, access: Access, env: Env) -> Positions:
        return tuple(
            self.unnumbered(access, at, env) if isinstance(dim, Whole | Concat) else self.position(dim, env)
            for at, dim in enumerate(access.dims)
        )

    def unnumbered(self, access: Access, at: int, env: Env) -> Term:
        """The index along a dim that no index numbers; for one that is nowhere else, such as a trip, any one."""
        return env[access.array, at] if (access.array, at) in env else self.world.unknown(f"along {access.array} {at}")

    def position(self, dim: Dim, env: Env) -> Term:
        match dim:
            case Group(ids):
                return self.world.joined([(env[each], self.extent(each)) for each in ids])
            case Affine(offset, by, 1):
                return sum((env[index] * step for index, step in by), start=self.size(offset))
            case _:
                raise NoMeaning("elements are apart")

    # Expressions.

    def value(self, body: Ground, env: Env, outside: Callable[[], Term] | None = None) -> Term:
        match body:
            case Read():
                return self.element(body, env, outside)
            case Number(int(value)):
                return value
            case Number(value):
                return self.world.unknown(f"number {value}")
            case Group():
                return self.position(body, env)
            case Apply(function, args):
                return self.applied(function, [self.value(arg, env) for arg in args])
            case Otherwise(inside, default):
                return self.value(inside, env, lambda: self.value(default, env))
            case Fold(monoid, body=inside) if monoid not in SELECTIONS and monoid != MERGE:
                return self.scanned(body, env) if body.upto else self.folded(self.monoid(monoid), body.indices, inside, env)
            case _:
                raise NoMeaning("an index is looked up")

    def applied(self, function: str, args: Sequence[Term]) -> Term:
        if function in ("add", "sub", "mul", "neg"):
            return ARITHMETIC[function].function(*args)
        if function in SAME:
            return self.world.combine(SAME[function], *args)
        return self.world.unknown(self.form.definition.name if function == "@" else function, *args)

    def element(self, read: Access, env: Env, outside: Callable[[], Term] | None) -> Term:
        positions = self.positions(read, env)
        moved = [(at, size) for at, size, dim in self.dims(read) if isinstance(dim, Affine)]
        inside = [fact for at, size in moved for fact in (positions[at] >= 0, positions[at] < size)]
        value = self.read(read.array, positions, env)
        return self.world.where(self.world.every(*inside), value, outside()) if inside and outside else value

    def dims(self, read: Access) -> list[tuple[int, Term, Dim]]:
        return [(at, self.size(self.shapes[read.array][at]), dim) for at, dim in enumerate(read.dims)]

    def monoid(self, fold: str) -> str:
        name = MONOIDS[fold].name
        return self.names.get(name, name)

    def folded(self, monoid: str, indices: Ids, body: Ground, env: Env) -> Term:
        if not indices:
            return self.value(body, env)
        now = self.first if self.first in indices else indices[0]
        rest = tuple(each for each in indices if each != now)
        return self.world.fold(monoid, self.extent(now), lambda at: self.folded(monoid, rest, body, {**env, now: at}))

    def scanned(self, fold: Fold[int, Ground], env: Env) -> Term:
        """A fold of the elements up to one, or from it on."""
        if not fold.indices:
            return self.value(fold.body, env)
        (k,), (j,), name = fold.indices, fold.upto, self.monoid(fold.monoid)
        if fold.backwards:
            rows = self.extent(k)
            return self.world.fold(name, rows - env[j], lambda at: self.value(fold.body, {**env, k: rows - 1 - at}))
        return self.world.fold(name, env[j] + 1, lambda at: self.value(fold.body, {**env, k: at}))

    def row(self, arg: Ground, env: Env) -> Term:
        """An argument of the op's own function: an element, or all those along the dims that it takes whole."""
        if not isinstance(arg, Read):
            return self.value(arg, env)
        whole = [(at, size) for at, size, dim in self.dims(arg) if isinstance(dim, Whole)]

        def rows(left: Sequence[tuple[int, Term]], env: Env) -> Term:
            if not left:
                return self.element(arg, env, None)
            (at, size), *rest = left
            return self.world.fold(ROWS, size, lambda each: rows(rest, {**env, (arg.array, at): each}))

        return rows(whole, env)


def _reads(body: Ground) -> list[Access]:
    return [body] if isinstance(body, Read) else [read for each in subexpressions(body) for read in _reads(each)]
