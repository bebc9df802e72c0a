"""The steps that tactics are made of, as tactics: tile, replicate, widen, gather in each trip.

Tile({"w1": 1}, "model")   -->   w1: f32[256, model*512], and everything that follows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from ....dialects.ground.errors import Error
from ....dialects.ground.validation import refused
from ...inputs.checks import Axes, axes_of, dims_given, flag_of
from ...inputs.message_language import step
from ...inputs.names import Patterns
from ...plan.seeds import Seed
from ..plan import Plan
from .base import Tactic, tiles


@dataclass(frozen=True, repr=False)
class Tile(Tactic):
    """Tile dims of values on an axis, or on several, major to minor, and propagate. `values` maps each pattern to its dim.

    With `held`, the claims propagate only through ops in which every array has the dim; the other ops are left to later
    tactics. Where a later tactic places another dim on the axis, an all_to_all connects the two. With `padded`, a dim that the
    axis does not divide is padded; the padding counts for nothing in any fold. With `block`, blocks of so many elements go to
    the devices in turn (block-cyclic). With `backward=False`, dims are placed where the values are read, and what makes them
    is left alone.

        Tile({"params/**/w1": 1}, "model"):   w1: f32[256, 1024]   -->   w1: f32[256, model*512]
    """

    values: Mapping[str, int]
    axis: Axes
    held: bool = False
    padded: bool = False
    block: int | None = None
    backward: bool = True

    def __post_init__(self) -> None:
        given: object = self.values
        if isinstance(given, str | list | tuple) and given:
            dims_given(given, self.axis, self.held)  # pyright: ignore[reportUnknownArgumentType]
        super().__post_init__()

    def __call__(self, plan: Plan) -> Plan:
        return self.placed(plan, flag_of("held", self.held))

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        if not self.values:
            helps = ["say which, and which dim of each: " + step(f'Tile({{"x": 0}}, {self.axis!r})')]
            raise Error("`Tile` names no values", helps=helps)
        at_uses = not flag_of("backward", self.backward)
        for seed in tiles(plan, self.values, 0, self.axis, self.padded, self.block):
            yield replace(seed, at_uses=at_uses)


@dataclass(frozen=True, repr=False)
class TileRange(Tactic):
    """Tile the dims of a range, in all arguments that have it, and propagate. `plan.ranges()` lists the ranges.

    In a plan file: `tile range batch over data`.

        TileRange("batch", "data"):   x: f32[512, 256], y: f32[512]   -->   x: f32[data*128, 256], y: f32[data*128]
    """

    range: str
    axis: Axes
    padded: bool = False

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        roots, of, pads = plan.ranges_named(self.range), plan.source.classes.of, flag_of("padded", self.padded)
        for name, value in plan.source.addresses.arguments.items():
            if any(of(value, dim) in roots for dim in range(len(plan.source.program.shape(value)))):
                seed = Seed(value, plan.dim_of(value, self.range, name), "", name, padded=pads)
                yield from seed.over(axes_of(self.axis), plan.mesh)


@dataclass(frozen=True, repr=False)
class Replicate(Tactic):
    """Keep values replicated along an axis, or along several; propagation does not cross them.

    Replicate("params/embedding", "data"):   embedding stays f32[512, 64] whatever layout its uses want
    """

    values: Patterns
    axis: Axes

    def seeds(self, plan: Plan) -> Iterator[Seed]:
        for name, value in plan.source.addresses.find(self.values).items():
            yield from (Seed(value, None, axis, name) for axis in axes_of(self.axis))


@dataclass(frozen=True, repr=False)
class On(Tactic):
    """Run values, and what is in scopes, at coordinates of an axis, each on a device set of its own. See `Plan.on`.

    On({"block0": 0, "block1": 1}, "stage"):   block1 reads h of block0   -->   flow.transfer of h to the devices of stage 1
    """

    values: Mapping[str, int]
    axis: str

    def __post_init__(self) -> None:
        if not isinstance(given := cast(object, self.values), Mapping):
            helps = 'write On({"block0": 0, "block1": 1}, "stage")'
            raise refused("values", "a coordinate for each pattern", given, helps)

    def __call__(self, plan: Plan) -> Plan:
        if not self.values:
            raise Error("`On` names no values", helps=["say which: " + step('On({"block0": 0, "block1": 1}, "stage")')])
        for values, coordinate in self.values.items():
            plan = plan.on(values, **{self.axis: coordinate})
        return plan


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
    """Gather arguments in every trip of the loops that read them, and scatter the gradients that update them, not once.

    In loops of the program it is about gathers alone. In those of tactics, as `Microbatch`, a value that is a sum may be named
    as well: it is scattered in every trip.

    EachTrip("params"):   1 all_gather of w, whole during 8 trips   -->   8 all_gathers, each freed in its trip
    """

    values: Patterns

    def __call__(self, plan: Plan) -> Plan:
        return plan.each_trip(self.values)
