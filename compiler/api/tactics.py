"""The tactics that come with Partita. A tactic is a function from plan to plan; your own can be a plain function.

Each of these makes all its claims at once and propagates once, so the order within one tactic never matters.

    plan.apply(pt.DataParallel("data", inputs="batch/*"), pt.ZeRO(3, "data", params="params", optimizer="opt"))
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar, cast

from ...dialects.errors import Error
from ...rewrites.decide.table import WHOLE
from ..inputs.checks import axes_of, axis_of, block_of, dims_given, flag_of, patterns_of
from ..inputs.names import Patterns, as_patterns
from ..plan.annotations import of_program, seeds
from ..plan.claims import Seed, having
from ..plan.conflicts import conflict, open_keys
from ..plan.undone import in_parts, unpaired
from .plan import Plan

Axes = str | Sequence[str]
Dims = Patterns | Mapping[str, int]


class Tactic:
    """Base class of tactics that can be replayed. `seeds` yields the claims to make; the text is the constructor call.

    A subclass is a frozen dataclass with literal fields. It registers itself, so that `pt.replay` can read its constructor
    call.

        @dataclass(frozen=True, repr=False)
        class Rows(pt.Tactic):
            axis: str

            def seeds(self, plan):
                yield from pt.Tile({"x": 0}, self.axis).seeds(plan)

        plan.apply(Rows("data")).trace   -->   Rows(axis='data')
    """

    known: ClassVar[dict[str, type[Tactic]]] = {}
    """The tactics by name; of two classes with the same name, the one defined last."""

    def __init_subclass__(cls) -> None:
        Tactic.known[cls.__name__] = cls

    holds: ClassVar[bool] = False
    """Whether its claims propagate only along their ranges, and no later tactic propagates them further."""

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        raise NotImplementedError

    def __call__(self, plan: Plan) -> Plan:
        plan = self.split(plan)
        return plan.place(list(self.seeds(plan)), repr(self), held=self.holds)

    def split(self, plan: Plan) -> Plan:
        """The plan on a mesh that has the sub-axes which the field `axis` names."""
        given: object = getattr(self, "axis", ())
        axes = cast("Sequence[object]", given if isinstance(given, tuple | list) else (given,))
        return having(plan, [axis for axis in axes if isinstance(axis, str)])

    def __repr__(self) -> str:
        given = ((each.name, getattr(self, each.name), each.default) for each in fields(self))  # pyright: ignore
        shown = [f"{name}={value!r}" for name, value, default in given if value != default]
        return f"{type(self).__name__}({', '.join(shown)})"


def _tiles(plan: Plan, dims: Dims, default: int, axis: str, padded: bool, block: int | None = None) -> Iterator[Seed]:
    """A seed for each value that a pattern matches, on the dim from the mapping, or on the default dim."""
    table = dims if isinstance(dims, Mapping) else dict.fromkeys(patterns_of(dims), default)
    for pattern, dim in table.items():
        for name, value in plan.source.addresses.find(pattern).items():
            at, pads = plan.dim_of(value, dim, name), flag_of("padded", padded)
            yield Seed(value, at, axis, name, padded=pads, block=block_of(block, pads))


@dataclass(frozen=True, repr=False)
class Tile(Tactic):
    """Tile dims of values on an axis, and propagate. `values` maps each pattern to its dim.

    With `held`, the claims propagate only through ops in which every array has the dim; the other ops are left to later
    tactics. Where a later tactic places another dim on the axis, an all_to_all connects the two. With `padded`, a dim that the
    axis does not divide is padded; the padding counts for nothing in any fold. With `block`, blocks of so many elements go to
    the devices in turn (block-cyclic).

        Tile({"params/**/w1": 1}, "model"):   w1: f32[256, 1024]   -->   w1: f32[256, model*512]
    """

    values: Mapping[str, int]
    axis: str
    held: bool = False
    padded: bool = False
    block: int | None = None

    def __call__(self, plan: Plan) -> Plan:
        if self.values:
            dims_given(self.values, self.axis, self.held)
        plan = self.split(plan)
        return plan.place(list(self.seeds(plan)), repr(self), held=flag_of("held", self.held))

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        if not self.values:
            helps = [f'say which, and which dim of each: pt.Tile({{"x": 0}}, {self.axis!r})']
            raise Error("`Tile` names no values", helps=helps)
        yield from _tiles(plan, self.values, 0, self.axis, self.padded, self.block)


@dataclass(frozen=True, repr=False)
class Replicate(Tactic):
    """Keep values replicated along an axis; propagation does not cross them.

    Replicate("params/embedding", "data"):   embedding stays f32[512, 64] whatever layout its uses want
    """

    values: Patterns
    axis: str

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        for name, value in plan.source.addresses.find(self.values).items():
            yield Seed(value, None, self.axis, name)


@dataclass(frozen=True, repr=False)
class Widen(Tactic):
    """Compute values in the windows in which their uses read them, instead of exchanging what windows read beyond blocks.

    Widen("h"):   conv(conv(x)): 2 permutes of h and 2 of x   -->   2 permutes of x, twice as wide; the rim of h computed twice
    """

    values: Patterns

    def __call__(self, plan: Plan) -> Plan:
        return plan.widen(self.values)


@dataclass(frozen=True, repr=False)
class EachTrip(Tactic):
    """Gather arguments in every trip of the loops that read them, instead of once before the first trip.

    EachTrip("params"):   1 all_gather of w, whole during 8 trips   -->   8 all_gathers, each freed in its trip
    """

    values: Patterns

    def __call__(self, plan: Plan) -> Plan:
        return plan.each_trip(self.values)


@dataclass(frozen=True, repr=False)
class Resolve(Tactic):
    """Resolve each open conflict by the way out that takes a device the least time, by its bytes and flops.

    Each way is a tactic of its own in the trace, so a replayed plan does not choose again.

        a + a.T, `a` tiled on rows   -->   tile('add#0', 0, 'data'): an all_to_all of a.T; each device adds its rows
    """

    def __call__(self, plan: Plan) -> Plan:
        tried = set[object]()
        while left := [key for key in open_keys(plan) if key not in tried]:
            tried.add(left[0])
            if ways := conflict(plan, left[0]).resolutions:
                plan = plan.apply(ways[0])
        return plan


@dataclass(frozen=True, repr=False)
class Annotated(Tactic):
    """Lay values out as the program says: constraints, shardings of arguments, metadata of models (`plan.annotations`).

    It takes the annotations of the values that `values` matches, in the order of the program. Those of stored arguments, which
    a result replaces in the next call (`plan.successors`), come last: where such an argument and the batch need the same axis,
    the argument is gathered for its use, as with ZeRO. So it is two lines in the trace, with `stored` False and True.
    An axis that the mesh does not have is left out and listed in `plan.annotations`.

    Raises Error if the program has no annotations, and for a dim that does not divide.

        h = with_sharding_constraint(x @ w, P("data", "model"))   -->   h: f32[data*64, model*512], and what follows
    """

    values: Patterns = "**"
    stored: bool | None = None

    def __call__(self, plan: Plan) -> Plan:
        if self.stored is None:
            sides = [replace(self, stored=stored) for stored in (False, True)]
            if not any(True for side in sides for _ in side.seeds(plan)):
                raise self.nothing(plan)
            for side in sides:
                plan = side(plan) if any(True for _ in side.seeds(plan)) else plan
            return plan
        return super().__call__(plan)

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        wanted, said = set(plan.source.addresses.find(self.values).values()), set[int]()
        everything, replaced = self.values == "**", {plan.source.addresses.arguments[name] for name in plan.successors}
        for value, each in of_program(plan):
            if value not in said and (everything or value in wanted) and self.stored in (None, value in replaced):
                # Of one value, what is said first counts; the shardings of arguments come before those of calls.
                said.add(value)
                yield from (replace(seed, stored=value in replaced) for seed in seeds(plan, value, each))

    def nothing(self, plan: Plan) -> Error:
        """The error for a program that says nothing of these values that the mesh can follow."""
        helps = ["`plan.annotations` lists what it says", 'write pt.constrain(x, "data, _"), or with_sharding_constraint']
        of = "" if self.values == "**" else f" of {self.values!r}"
        return Error(f"the program has no annotations{of} that name an axis of {plan.mesh}", helps=helps)


@dataclass(frozen=True, repr=False)
class DataParallel(Tactic):
    """Tile the leading dim (or `dim`) of the inputs on one axis, or on several, major to minor.

    With `padded`, a batch that the axes do not divide is padded, and the padding counts for nothing. Raises Error if no op that
    reads the inputs can run in parts.

    DataParallel("data", inputs="batch/*"):   x: f32[512, 256]   -->   x: f32[data*128, 256], gradients all_reduced
    """

    axis: Axes
    inputs: Patterns
    dim: int = 0
    padded: bool = False

    def __call__(self, plan: Plan) -> Plan:
        placed = super().__call__(plan)
        if problem := in_parts(placed, self.dim, axes_of(self.axis), "DataParallel"):
            raise problem
        return placed

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        found = plan.source.addresses.inputs(self.inputs)
        shape, axes = plan.source.shape, axes_of(self.axis)
        if not any(map(shape, found.values())):
            names = ", ".join(f"`{name}`" for name in list(found)[:3])
            raise Error(f"`DataParallel` has nothing to tile: {names} are scalars", helps=["give inputs that have a batch dim"])
        for axis in axes:
            for name, value in found.items():
                if shape(value):
                    dim = plan.dim_of(value, self.dim, name)
                    yield Seed(value, dim, axis, name, blocks(plan, value, dim, axes), flag_of("padded", self.padded))


@dataclass(frozen=True, repr=False)
class Megatron(Tactic):
    """Tensor parallelism: column and row tiling of weights by patterns, the rest inferred (arXiv 1909.08053).

    `column` tiles the output dim of the first matmul (the last dim), `row` the contracted dim of the second (the last but one),
    so a dim of stacked layers in front changes nothing. A mapping from pattern to dim overrides these. One of the two is enough
    if the other follows by propagation.

    Raises Error for a column whose tiled dim is summed over, for a row whose tiled dim is not, and for an op between them that
    needs its input whole: a pair costs one all_reduce forward and one backward.

        Megatron("model", column="**/w1"):   w1: f32[256, model*512], w2: f32[model*512, 256], one all_reduce after w2
    """

    axis: str
    column: Dims = ()
    row: Dims = ()
    padded: bool = False

    def __call__(self, plan: Plan) -> Plan:
        placed = super().__call__(plan)
        columns, rows = (self.weights(plan, given) for given in (self.column, self.row))
        if problem := unpaired(placed, columns, rows, self.axis):
            raise problem
        return placed

    def weights(self, plan: Plan, given: Dims) -> dict[str, int]:
        """The values that patterns match, by name."""
        patterns = given if isinstance(given, Mapping) else patterns_of(given) if given else ()
        return {name: value for pattern in patterns for name, value in plan.source.addresses.find(pattern).items()}

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        if not self.column and not self.row:
            raise Error("`Megatron` names no weights", helps=['give `column`, `row` or both: column="**/w1"'])
        for given, dim in ((self.column, -1), (self.row, -2)):
            if given:
                yield from _tiles(plan, given, dim, self.axis, self.padded)


@dataclass(frozen=True, repr=False)
class ExpertParallel(Tactic):
    """Tile the experts over an axis that also tiles the tokens: tokens travel to their experts, and back (arXiv 2006.16668).

    `experts` are the parameters whose leading dim is the experts; a mapping from pattern to dim overrides this. Ops in which
    every array has the experts dim take the axis there: forward, backward and in the optimizer. Dispatch and combine, which
    also have the tokens, are left to the tactic that places the tokens. Apply this tactic first: the earlier one decides.

        ExpertParallel("data", experts="params/experts"), DataParallel("data", inputs="batch/*"):
            sent: f32[8, data*2, 16, 64]   -->   f32[data*1, 16, 16, 64] at the experts: an all_to_all before and one after them
    """

    axis: str
    experts: Dims
    padded: bool = False
    holds: ClassVar[bool] = True

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        if not self.experts:
            helps = ['say which parameters lead with them: experts="**/experts"']
            raise Error("`ExpertParallel` names no experts", helps=helps)
        yield from _tiles(plan, self.experts, 0, self.axis, self.padded)

    def __call__(self, plan: Plan) -> Plan:
        placed = super().__call__(plan)
        if placed.mesh[self.axis] > 1:
            self.used(plan, placed, list(self.seeds(plan)))
        return placed

    def used(self, plan: Plan, placed: Plan, seeds: Sequence[Seed]) -> None:
        """Raises Error if no op takes the experts, because an earlier tactic has already placed all of them."""
        program, nodes = plan.source.program, placed.table.axes[placed.mesh.parts(self.axis)[0]].nodes
        claims = [nodes[number] for seed in seeds for number, _ in program.uses[seed.value]]
        before = {claim.tactic: None for claim in claims if claim is not None and not claim.held}
        if before and not any(claim is not None and claim.held for claim in claims):
            by = plan.actions[next(iter(before))].text
            title = f"the ops that read `{seeds[0].name}` are already tiled on `{self.axis}`, by {by}"
            raise Error(title, helps=["apply `ExpertParallel` before it: the earlier tactic decides", "or use another axis"])


@dataclass(frozen=True, repr=False)
class ZeRO(Tactic):
    """Shard optimizer state (stages 1 and 2), and parameters too (stage 3), over an axis (arXiv 1910.02054).

    Each matched tensor is tiled on its first dim that divides, is free, and is not iterated over by a loop. With `padded`, if
    none divides, it is tiled on the first such dim that is as long as the axis, and is whole on every device between calls.
    Tensors without such a dim stay as they are. Several axes are applied as separate tactics. Stages 1 and 2 keep the
    parameters and their successors replicated; `results` names the successors where `plan.successors` lacks them.

        ZeRO(3, "data", params="params", optimizer="opt"):   w: f32[512, 64] --> f32[data*64, 64], gathered at each use
    """

    stage: int
    axis: Axes
    params: Patterns
    optimizer: Patterns = ()
    results: Patterns = ()
    padded: bool = False

    def __call__(self, plan: Plan) -> Plan:
        if isinstance(self.axis, str):
            return super().__call__(plan)
        return plan.apply(*(replace(self, axis=axis) for axis in axes_of(self.axis)))

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        if self.stage not in (1, 2, 3):
            raise Error(f"`stage` of ZeRO must be 1, 2 or 3, got {self.stage!r}", helps=["stage 3 shards the parameters too"])
        axis = axis_of(self.axis)
        if not as_patterns(self.params) and not as_patterns(self.optimizer):
            raise Error("`ZeRO` names no values", helps=['give `params`, `optimizer` or both: params="params"'])
        inputs = plan.source.addresses.inputs
        params, sharded = (inputs(given) if as_patterns(given) else {} for given in (self.params, self.optimizer))
        if self.stage == 3:
            sharded = {**params, **sharded}
        else:
            yield from self.kept(plan, params, axis)
        dims = {name: free_dim(plan, value, axis, self.padded) for name, value in sharded.items()}
        if all(dim is None for dim in dims.values()) and not any(is_tiled(plan, value, axis) for value in sharded.values()):
            raise self.nothing(plan, sharded, axis)
        for name, dim in dims.items():
            if dim is not None:
                yield Seed(sharded[name], dim, axis, name, padded=flag_of("padded", self.padded))

    def nothing(self, plan: Plan, sharded: Mapping[str, int], axis: str) -> Error:
        """The error for a tactic that would do nothing."""
        if not sharded:
            title = f"`ZeRO({self.stage}, ...)` shards optimizer state, but `optimizer` names none"
            return Error(title, helps=['name it: optimizer="opt"', "or take stage 3, which shards the parameters"])
        shapes = [f"`{name}` {list(plan.source.shape(value))}" for name, value in sharded.items()]
        title = f"`ZeRO({self.stage}, ...)` shards nothing over `{axis}` ({plan.mesh[axis]} devices)"
        notes = [f"no free dim of {', '.join(shapes[:4])} {'is as long' if self.padded else 'divides over it'}"]
        return Error(title, notes=notes, helps=["take an axis of another size", *([] if self.padded else ["or padded=True"])])

    def kept(self, plan: Plan, params: Mapping[str, int], axis: str) -> Iterator[Seed]:
        """Replicate the parameters, and the results that become the parameters of the next step."""
        results = plan.source.addresses.results
        if as_patterns(self.results):
            after = plan.source.addresses.find(self.results)
        else:
            if unknown := [name for name in params if name not in plan.successors]:
                title = f"`ZeRO({self.stage}, ...)` keeps the new `{unknown[0]}` replicated, but cannot tell which result it is"
                notes = [
                    "a result succeeds the argument of the same name, or the only one with the same tree, shapes and dtypes"
                ]
                raise Error(title, notes=notes, helps=['name it: results="result/0"', "or take stage 3"])
            after = {plan.successors[name]: results[plan.successors[name]] for name in params}
        for name, value in {**params, **after}.items():
            if not is_tiled(plan, value, axis):
                yield Seed(value, None, axis, name)


def blocks(plan: Plan, value: int, dim: int, axes: Sequence[str]) -> int:
    """The number of blocks of a dim once it is also tiled on these axes."""
    own = {factor.name for factor in plan.table.on_dim(value, dim)}
    return math.prod(plan.mesh[axis] for axis in own.union(*map(plan.mesh.parts, axes)))


def is_tiled(plan: Plan, value: int, axis: str) -> bool:
    """Whether the axis already tiles a dim of the value."""
    claims = (plan.table.claim(value, part) for part in plan.mesh.parts(axis))
    return any(claim is not None and claim.at != WHOLE for claim in claims)


def free_dim(plan: Plan, value: int, axis: str, padded: bool = False) -> int | None:
    """The first dim that divides over the axis, is not tiled yet and is not iterated over by a loop; None if none does.

    With `padded`, if none divides, the first such dim that is at least as long as the axis.
    """
    if is_tiled(plan, value, axis):
        return None
    loops, size = plan.source.program.has_regions, plan.mesh[axis]
    long = [
        (dim, extent)
        for dim, extent in enumerate(plan.source.shape(value))
        if extent >= size and not plan.table.on_dim(value, dim) and not (loops and plan.source.classes.is_iterated(value, dim))
    ]
    divide = [dim for dim, extent in long if extent % size == 0]
    return next(iter(divide or [dim for dim, _ in long if padded]), None)
