"""The tilings of a definition, as `bind` derives them: cut, compute and join, and it is the whole, for all sizes.

An index of p * m values is placed on p devices, in blocks of m. The operands are cut along the dims that the tiling names;
each device runs the same definition on its own, with the changes that the laws of `masks.rules` say for what the tiling
requires; the results are joined along the dims that the tiling names, or folded by its monoid. Several indices are placed one
after another: the local op is the same definition on operands of any size.

    sum(k: p * m) x[i, k] * w[k]    -->    on device c: sum(k: m) x[i, c * m + k] * w[c * m + k], pending
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from ....dialects.definitions.ground_form import Grounded, along
from ....dialects.definitions.grounding import ground
from ....dialects.definitions.requirement_terms import Held, Lookup, Scan, Term
from ....dialects.definitions.syntax_tree import Concat, Shape, Value, Whole
from ....dialects.definitions.tilings import Index, Instance, SubIndex, SubIndices, bind
from ...decide.requirements import Placing, requirements
from ..of_rules.heads import HEADS
from ..symbolic.explore import apart
from ..symbolic.sample import Sample as Run
from ..symbolic.symbol import polynomial_of
from ..values import Array, Axis, Here, Number, Truth
from ..world import NoMeaning
from .blocks import BOOLEAN
from .definitions import Env, Meaning, Places, Positions
from .samples import Sample

AXIS = "axis"
COUNT, BLOCK = "devices", "rows"
Bind = Callable[..., Instance]


@dataclass(frozen=True, slots=True)
class Placement:
    """A sample whose index `number` has `count * block` values, and its tiling."""

    sample: Sample
    number: int
    given: Mapping[str, int]
    """Each size that the sample names."""
    count: int
    block: int
    types: tuple[Sequence[Value], Sequence[Value]]
    tiling: Instance
    run: Run
    """What was decided of the sizes."""

    @property
    def index(self) -> Index:
        return self.tiling.indices[self.number]


def placed(sample: Sample, number: int, of: Mapping[str, int], binder: Bind = bind) -> Placement:
    """Places an index, where the sizes have these values; those of the placed one follow from `p` and `m`."""
    run = Run(dict(of))
    given: dict[str, int] = {name: run(name) for name in sample.names}
    count, block = run(COUNT), 1 if of[BLOCK] == 1 else run(BLOCK)
    with apart():
        extent = binder(sample.definition, sample.params, *sample.types(given.__getitem__)).indices[number].extent
    # Of a concatenation, the last part has what the others leave.
    *_, (name,) = sorted(polynomial_of(extent).terms)
    given[name] = count * block - (extent - given[name])
    run.noted.clear()
    types = sample.types(given.__getitem__)
    with apart():
        tiling = binder(sample.definition, sample.params, *types)
    assert polynomial_of(tiling.indices[number].extent) == polynomial_of(count * block), "the index has all its values"
    return Placement(sample, number, given, count, block, types, tiling, run)


@dataclass(eq=False)
class Tiling:
    """What devices compute, in a world, where sizes are what `size` makes of them."""

    world: Places
    at: Placement
    size: Callable[[int], Number]
    changes: dict[int, list[Callable[[Number, Env, Here], Number]]] = field(default_factory=dict[int, Any])
    """What happens to elements of operands on devices: given where indices are, and on which device."""
    asked: list[Term | None] = field(default_factory=list[Any])
    is_joined: bool = False

    def __post_init__(self) -> None:
        self.count, self.block = self.size(self.at.count), self.size(self.at.block)
        self.axis = Axis(AXIS, self.count, self.block, 0, self.block)
        self.is_backwards = any(each.backwards for each in self.at.index.parts(Scan))
        self.definition, self.params = self.at.tiling.definition, self.at.sample.params
        ins, outs = self.at.types
        self.names = BOOLEAN if ins and ins[0][0] == "bool" else {}
        self.form = self.grounded(ins, outs)
        self.on = [at for at, extent in enumerate(self.form.extents) if COUNT in polynomial_of(extent).variables]
        self.whole = self.meaning(self.form, [shape for _, shape in ins], self.element)

    def grounded(self, ins: Sequence[Value], outs: Sequence[Value]) -> Grounded:
        return ground(self.definition, self.params, [shape for _, shape in ins], [shape for _, shape in outs])

    def meaning(self, form: Grounded, shapes: Sequence[Shape], read: Callable[[int, Positions, Env], Number]) -> Meaning:
        return Meaning(self.world, form, shapes, self.size, read, self.on[0] if self.on else None, self.names)

    def element(self, array: int, positions: Positions, env: Env) -> Number:
        return self.world.unknown(f"operand {array}", *positions)

    # What a device has.

    @cached_property
    def local_types(self) -> tuple[Sequence[Value], Sequence[Value]]:
        """The types of what a device has: dims that the tiling names are cut."""

        def cut(types: Sequence[Value], arrays: Sequence[SubIndices]) -> list[Value]:
            return [
                (dtype, tuple(n // self.at.count if self.cuts(dim) else n for n, dim in zip(shape, dims, strict=True)))
                for (dtype, shape), dims in zip(types, arrays, strict=True)
            ]

        return cut(self.at.types[0], self.at.tiling.operands), cut(self.at.types[1], self.at.tiling.results)

    def cuts(self, dim: Sequence[SubIndex]) -> bool:
        if any(each.reach is not None and each.at == self.at.number for each in dim):
            raise NoMeaning("read through windows, whose halo is exchanged")
        return self.names_it(dim)

    def names_it(self, dim: Sequence[SubIndex]) -> bool:
        return any(each.at == self.at.number for each in dim)

    @cached_property
    def local_form(self) -> Grounded:
        form = self.grounded(*self.local_types)
        if len(form.extents) != len(self.form.extents) - len(self.on) * (len(self.blocks) == 1):
            raise NoMeaning("the local op has other indices")
        return form

    @property
    def blocks(self) -> range:
        return range(1 if self.at.block == 1 else 2)

    def local_env(self, env: Env, row: Number) -> dict[object, Number]:
        """The values of the local op's indices. One of a single value is no index."""
        moved: dict[object, Number] = {**env, **dict.fromkeys(self.on, row)}
        left = [index for index in range(len(self.form.extents)) if len(self.blocks) == 2 or index not in self.on]
        return {key: value for key, value in moved.items() if not isinstance(key, int)} | {
            number: moved[index] for number, index in enumerate(left) if index in moved
        }

    def local(self, here: Here) -> Meaning:
        """The same definition on what a device has."""

        def read(array: int, positions: Positions, env: Env) -> Number:
            value = self.element(array, self.cut(positions, self.at.tiling.operands[array], here[AXIS]), env)
            for change in self.changes.get(array, ()):
                value = change(value, env, here)
            return value

        return self.meaning(self.local_form, [shape for _, shape in self.local_types[0]], read)

    def cut(self, positions: Positions, dims: SubIndices, device: Number) -> Positions:
        """Where the elements at these positions of a device's part are in the whole."""
        return tuple(self.moved(position, dim, device) for position, dim in zip(positions, dims, strict=True))

    def moved(self, position: Number, dim: Sequence[SubIndex], device: Number) -> Number:
        for each in dim:
            if each.at == self.at.number:
                minor = self.size(each.minor)
                block = self.block * minor
                # Digits that are major to the index stay as they are.
                before, rest = (0, position) if each.extent is None else self.world.digits(position, block)
                return before * (self.count * block) + device * block + rest
        return position

    # What devices make of it. The laws say it by terms: `masks.rules`, applied to what the tiling requires.

    def result(self, number: int, env: Env) -> Array:
        """A result, at the rows of a device's block and the given other indices."""
        placing = Placing(Held.BLOCKS, self.at.block)
        self.changes, self.is_joined = {}, False
        self.asked = list(requirements(self.at.index, self.at.number, placing))
        return self.next(number, env)

    def next(self, number: int, env: Env) -> Array:
        if self.asked:
            term = self.asked.pop(0)
            if term is None:
                raise NoMeaning("no law says what devices do")
            return self.run(term, number, env)
        return Array(self.block, lambda here, row: self.local(here).result(number, self.local_env(env, row)))

    def run(self, term: Term, number: int, env: Env) -> Array:
        """A term for a result: the op itself, on operands that may be changed, and what is made of it."""
        match term:
            case ("sum", _, inner):
                # It is pending: the join folds it.
                return self.run(inner, number, env)
            case ("scan", Scan(monoid), _):
                made = self.mirrored(self.next(number, env), self.block)
                return Array(made.size, made.at, scheme=self.whole.monoid(monoid))
            case ("across", *args):
                self.is_joined = True
                return self.mirrored(self.applied("across", args, number, env), self.count * self.block)
            case ("add", ("mask", keep, int(operand)), "op"):
                self.changes.setdefault(operand, []).append(self.masking(cast(Term, keep), number, env))
                return self.next(number, env)
            case "op" | ("iota", _):
                return self.next(number, env)
            case (str(name), *args):
                return self.applied(name, args, number, env)
            case _:
                raise NoMeaning("the laws of its terms have no meaning here")

    def mirrored(self, made: Array, rows: Number) -> Array:
        """The rows from the last one on, of the devices from the last one on: a suffix fold is a prefix fold of these."""
        if not self.is_backwards:
            return made
        return Array(made.size, lambda here, row: made.at({AXIS: self.count - 1 - here[AXIS]}, rows - 1 - row))

    def masking(self, keep: Term, number: int, env: Env) -> Callable[[Number, Env, Here], Number]:
        return lambda value, _, here: self.world.where(self.run(keep, number, env).at(here, 0), value, 0)

    def applied(self, name: str, args: Sequence[Term], number: int, env: Env) -> Any:
        """A head's meaning, of what its arguments mean."""
        if (head := HEADS.get((name, len(args)))) is None:
            raise NoMeaning(f"`{name}` has no meaning here")
        made = [self.argument(kind, arg, number, env) for kind, arg in zip(head.kinds, args, strict=True)]
        return head.meaning(self.world, *made)

    def argument(self, kind: str, arg: Term, number: int, env: Env) -> Any:
        if kind == "axis":
            return self.axis
        if kind in ("size", "row"):
            return self.size(cast(int, arg))
        if isinstance(arg, int):
            return self.operand(arg, env)
        if isinstance(arg, Lookup):
            raise NoMeaning("an index is looked up")
        return self.run(arg, number, env)

    def operand(self, array: int, env: Env) -> Array:
        """A whole operand along its dim with the index; other dims are those of the result."""
        dims = self.at.tiling.operands[array]
        ((along_it, _),) = ((at, each) for at, dim in enumerate(dims) for each in dim if each.at == self.at.number)
        (equation,) = (each for each in self.form.equations if getattr(each.body, "array", None) == array)
        read = cast(Any, equation.body)

        def at(here: Here, row: Number) -> Number:
            index = dict.fromkeys(read.dims[along_it].indices, row)
            return self.element(array, self.whole.positions(read, {**env, **index}), env)

        return Array(self.size(self.at.types[0][array][1][along_it]), at)

    # The statement.

    def truths(self, env: Env, here: Here, row: Number, number: int) -> Iterator[Truth]:
        """What says that a result is right: at a row of a device's block, and other indices."""
        whole_row = here[AXIS] * self.block + row
        _, target = self.whole.targets(number)[0]
        dims = self.at.tiling.results[number]
        has_index = any(map(self.names_it, dims))
        moved = {**env, **dict.fromkeys(self.on, whole_row)} if has_index else env
        for at, dim in enumerate(target.dims):
            if isinstance(dim, Concat) and self.names_it(dims[at]):
                moved = {**moved, (target.array, at): whole_row}
        made, expected = self.result(number, env), self.whole.result(number, moved)
        if has_index and not self.is_joined:
            yield made.at(here, row) == expected
            if not any(isinstance(dim, Concat) for dim in target.dims):
                ((_, own),) = self.local(here).targets(number)
                at_home = self.local(here).positions(own, self.local_env(env, row))
                there = self.whole.positions(target, moved)
                yield from (x == y for x, y in zip(self.cut(at_home, dims, here[AXIS]), there, strict=True))
        elif has_index:
            yield made.at(here, whole_row) == expected
        elif self.at.index.monoid is not None:
            yield self.world.fold(self.at.index.monoid, self.count, lambda c: made.at({**here, AXIS: c}, 0)) == expected
        else:
            yield made.at(here, 0) == expected

    def indices(self, number: int) -> dict[object, int]:
        """The extents of the indices of a result; of those that are placed, how many one device has."""
        _, target = self.whole.targets(number)[0]
        shape = self.at.types[1][number][1]
        found: dict[object, int] = {each: self.form.extents[each] for each in along(*target.dims) if each not in self.on}
        return found | {
            (target.array, at): shape[at]
            for at, dim in enumerate(target.dims)
            if isinstance(dim, Whole | Concat) and not self.names_it(self.at.tiling.results[number][at])
        }
