"""ZeRO and FSDP: state that is stored from call to call is tiled, and gathered where it is used."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import cast

from ....dialects.ground.amounts import counted
from ....dialects.ground.errors import Error
from ....dialects.ranges.algebra import Loop
from ....rewrites.decide.table import WHOLE
from ....rewrites.program.program import ValueId
from ...advice.open_conflicts import open_keys
from ...inputs.checks import Axes, axes_of, shown
from ...inputs.message_language import step
from ...inputs.names import Patterns, as_patterns, name_parts, trees
from ...plan.seeds import Seed
from ...structure.next_state import mistaken
from ..plan import Plan
from .base import Strategy


@dataclass(frozen=True, repr=False)
class ZeRO(Strategy):
    """Shard optimizer state (stages 1 and 2), and parameters too (stage 3), over an axis (arXiv 1910.02054).

    Each matched tensor is tiled on its first dim that divides, is free, and is not iterated over by a loop; one that ops
    read row by row comes last. With `padded`, if none divides, it is tiled on the first such dim that is as long as the axis,
    and is whole on every device between calls.
    Tensors without such a dim stay as they are. Several axes, major to minor, tile one dim together; where no dim divides over
    all of them, each tiles a dim of its own. Stages 1 and 2 keep the parameters and their successors replicated; `results`
    names the successors where `plan.successors` lacks them.

        ZeRO(3, "data", params="params", optimizer="opt"):   w: f32[512, 64] --> f32[data*64, 64], gathered at each use
    """

    stage: int
    axis: Axes
    params: Patterns = ()
    optimizer: Patterns = ()
    results: Patterns = ()

    def __call__(self, plan: Plan) -> Plan:
        self.check_stage()
        return super().__call__(plan)

    def check_stage(self) -> None:
        """Raises Error for a stage other than 1, 2 or 3."""
        stage, axis = cast("tuple[object, object]", (self.stage, self.axis))
        if isinstance(stage, str) and isinstance(axis, int):
            helps = ["write " + step(f"ZeRO({shown(axis)}, {stage!r}, ...)")]
            raise Error(f"`ZeRO` takes the stage first, then the axis, got ZeRO({stage!r}, {shown(axis)}, ...)", helps=helps)
        if stage not in (1, 2, 3):
            number = stage if isinstance(stage, str) and stage in ("1", "2", "3") else None
            helps = ["stage 3 shards the parameters too"] if number is None else [f"write a number: stage={number}"]
            raise Error(f"`stage` of ZeRO must be 1, 2 or 3, got {shown(stage)}", helps=helps)

    def claims(self, plan: Plan) -> Iterator[Seed]:
        self.check_stage()
        axes = axes_of(self.axis)
        if not as_patterns(self.params) and not as_patterns(self.optimizer):
            stored = [name for name in plan.source.addresses.arguments if name in plan.successors]
            first = name_parts(stored[0])[0] if stored else "params"
            named = [f'give `params`, `optimizer` or both: params="{first}"']
            if stored:
                named.append(f"what is stored from call to call: {trees(stored)}")
            raise Error("`ZeRO` names no values", helps=named)
        inputs = plan.source.addresses.inputs
        params, sharded = (inputs(given) if as_patterns(given) else {} for given in (self.params, self.optimizer))
        if self.stage == 3:
            sharded = {**params, **sharded}
        else:
            yield from self.kept(plan, params, axes)
        if not sharded:
            title = f"`ZeRO({self.stage}, ...)` shards optimizer state, but `optimizer` names none"
            raise Error(title, helps=['name it: optimizer="opt"', "or take stage 3, which shards the parameters"])
        yield from shards(plan, sharded, axes, self.padded, f"ZeRO({self.stage}, ...)")

    def kept(self, plan: Plan, params: Mapping[str, ValueId], axes: Sequence[str]) -> Iterator[Seed]:
        """Claims to replicate the parameters, and the results that become the parameters of the next step."""
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
            for name in params:
                self.checked(plan, name)
            after = {plan.successors[name]: results[plan.successors[name]] for name in params}
        for name, value in {**params, **after}.items():
            yield from (Seed(value, None, axis, name) for axis in axes if not is_tiled(plan, value, axis))

    def checked(self, plan: Plan, name: str) -> None:
        """Raises Error if the result that is taken for the new parameter is computed from another argument."""
        taken = plan.successors[name]
        if (other := mistaken(plan, name, taken)) is not None:
            title = f"`ZeRO({self.stage}, ...)` keeps the new `{name}` replicated, and takes `{taken}` for it"
            notes = [f"`{taken}` is not computed from `{name}` element by element, but `{other}` is"]
            tree = "/".join(name_parts(other)[:2])
            raise Error(title, notes=notes, helps=[f'name the new parameters: results="{tree}"', "or take stage 3"])


@dataclass(frozen=True, repr=False)
class FSDP(Strategy):
    """Shard everything that is stored from call to call over an axis: ZeRO-3, with its values found (arXiv 2304.11277).

    These are the arguments that a result replaces in the next call (`plan.successors`): parameters and the optimizer's state.
    Apply it after the tactics that place the computation. A parameter is then gathered where it is used, forward and backward
    (and again where it is recomputed), one layer at a time in a loop over layers; its gradient arrives by a reduce_scatter.
    For S matrices: 2S all_gathers, one more for a table that is also the head, and S reduce_scatters.

    Each value is tiled on its first dim that divides, is free, and is not iterated over by a loop; one that ops read row by row
    comes last. Vectors, also in stacks of layers, stay replicated: they are not worth a collective of their own. With
    `smallest`, those of fewer elements do instead, in each layer of a stack. `values` names the values.

    Raises Error if the program has no such arguments, if none of them can be tiled, and if conflicts are left because no batch
    is on the axis.

        FSDP("data"):   params/w, opt/m/w, opt/v/w: f32[512, 64] --> f32[data*64, 64], w gathered at each use
    """

    axis: Axes
    smallest: int | None = None

    def problem(self, plan: Plan, placed: Plan) -> Error | None:
        """The error for conflicts on an axis that no op used before: no tactic has put the batch on the axis yet."""
        return next(filter(None, (self.without_batch(plan, placed, axis) for axis in axes_of(self.axis))), None)

    def without_batch(self, plan: Plan, placed: Plan, axis: str) -> Error | None:
        """The error for conflicts on one of its axes."""
        parts = placed.mesh.parts(axis)
        if any(any(table.nodes) for part, table in plan.table.axes.items() if str(part) in (axis, *parts)):
            return None
        found = [key for key in open_keys(placed) if str(key[2]) in parts]
        if not found:
            return None
        title = f"`FSDP` leaves {counted(len(found), 'conflict')} on `{axis}`: no batch is on `{axis}`"
        notes = ["what is stored in parts is gathered for its uses if these use the axis already, for the batch"]
        batch = batch_axes(plan)
        first = step(f"DataParallel({_said(*batch, axis)})", f"FSDP({_said(axis)})")
        helps = [f"apply DataParallel first: {first}"]
        if batch:
            helps = [f"store it where the batch is: {step(f'FSDP({_said(*batch)})')}", f"or put the batch there too: {first}"]
            helps.append(f"or apply `FSDP` after the tactic that computes on `{axis}`, such as Megatron")
        return Error(title, notes=notes, helps=helps)

    def claims(self, plan: Plan) -> Iterator[Seed]:
        stored, given = self.stored(plan), cast(object, self.smallest)
        is_count = isinstance(given, int) and not isinstance(given, bool) and given >= 0
        if given is not None and not is_count:
            raise Error(f"`smallest` is a number of elements, got {shown(given)}", helps=["write smallest=4096"])
        found = {name: value for name, value in stored.items() if self.is_large(plan, value)}
        yield from shards(plan, found, axes_of(self.axis), self.padded, "FSDP")

    def is_large(self, plan: Plan, value: ValueId) -> bool:
        """Whether a value is large enough for a collective of its own.

        Of a stack that a loop iterates over, one layer counts.
        """
        iterated = plan.source.classes.is_iterated
        extents = [extent for dim, extent in enumerate(plan.source.shape(value)) if not iterated(value, dim)]
        return len(extents) > 1 if self.smallest is None else math.prod(extents) >= self.smallest

    def stored(self, plan: Plan) -> dict[str, ValueId]:
        """The arguments that are stored from call to call, by name. Raises Error if there are none."""
        arguments = plan.source.addresses.arguments
        if chosen := plan.source.addresses.chosen:
            if found := {name: value for name, value in chosen.items() if name in arguments}:
                return found
            title = f"`FSDP` tiles arguments, and `values={shown(self.values)}` names none"
            raise Error(title, helps=[f"the arguments are {trees(plan.arguments())}"])
        if found := {name: value for name, value in arguments.items() if name in plan.successors}:
            return found
        notes = ["a result succeeds the argument of the same name, or the only one with the same tree, shapes and dtypes"]
        raise Error("`FSDP` finds nothing that is stored from call to call", notes=notes, helps=['name it: values="params"'])


def shards(plan: Plan, values: Mapping[str, ValueId], axes: Sequence[str], padded: bool, tactic: str) -> Iterator[Seed]:
    """Claims each value on free dims. Raises Error for an axis on which no value has one, and none is already."""
    dims = {name: free_dims(plan, value, axes, padded) for name, value in values.items()}
    for axis in axes:
        on_dims = (axis in on for found in dims.values() for on in found.values())
        if not any(on_dims) and not any(is_tiled(plan, value, axis) for value in values.values()):
            shapes = ", ".join(f"`{name}` {list(plan.source.shape(value))}" for name, value in list(values.items())[:4])
            notes = [f"no free dim of {shapes} {'is as long' if padded else 'divides over it'}"] if values else []
            helps = ["take an axis of another size", *([] if padded else ["or padded=True"])]
            raise Error(f"`{tactic}` shards nothing over `{axis}` ({plan.mesh[axis]} devices)", notes=notes, helps=helps)
    for name, found in dims.items():
        for dim, together in found.items():
            yield from Seed(values[name], dim, "", name).over(together, plan.mesh)


def _said(*axes: str) -> str:
    """Axes as a tactic takes them: `"data"`, or `("data", "model")`."""
    quoted = ", ".join(f'"{each}"' for each in axes)
    return quoted if len(axes) == 1 else f"({quoted})"


def batch_axes(plan: Plan) -> tuple[str, ...]:
    """The axes on which inputs are tiled along the batch."""
    inputs, table = plan.source.inputs.values, plan.table
    axes = (axis for axis in table.axes if not isinstance(axis, Loop))
    found = (each for each in axes for value in inputs if (claim := table.claim(value, each)) and claim.at == 0)
    return tuple(map(str, dict.fromkeys(found)))


def is_tiled(plan: Plan, value: ValueId, axis: str) -> bool:
    """Whether the axis already tiles some dim of the value."""
    claims = (plan.table.claim(value, part) for part in plan.mesh.named(axis))
    return any(claim is not None and claim.at != WHOLE for claim in claims)


def free_dims(plan: Plan, value: ValueId, axes: Sequence[str], padded: bool = False) -> dict[int, list[str]]:
    """Dim -> the axes that tile it: all axes one dim that they divide together, or else each one its own.

    An axis that tiles the value already is left out. With `padded`, if the axes can do neither, they tile one dim that is at
    least as long as all of them together.

        [512, 64] over data=4, ctx=2   -->   [data*ctx*64, 64];   [4, 6] over the same   -->   [data, ctx*3]
    """
    left = [axis for axis in axes if not is_tiled(plan, value, axis)]
    count, apart = math.prod(plan.mesh[axis] for axis in left), dict[int, list[str]]()
    together = free_dim(plan, value, count)
    for axis in left if together is None else ():
        if (dim := free_dim(plan, value, plan.mesh[axis], apart)) is not None:
            apart[dim] = [axis]
    if together is None and padded and len(apart) < len(left):
        together = free_dim(plan, value, count, padded=True)
    return apart if together is None else {together: left}


def free_dim(plan: Plan, value: ValueId, size: int, taken: Collection[int] = (), padded: bool = False) -> int | None:
    """The first dim that so many devices divide, that is not tiled yet, and that no loop iterates over; None if there is none.

    A dim of which an op reads fewer elements than there are devices comes last, even after dims that other axes tile: devices
    would have no part of what is read, nor of its gradient. With `padded`, if no dim divides, the first one that is at least as
    long as there are devices.
    """
    shape, loops = plan.source.shape(value), plan.source.program.has_regions
    long = [
        dim for dim in range(len(shape)) if shape[dim] >= size and not (loops and plan.source.classes.is_iterated(value, dim))
    ]
    free = [dim for dim in long if dim not in taken and not plan.table.on_dim(value, dim)]
    divide = [dim for dim in free if shape[dim] % size == 0]
    if divide and is_read_in_few(plan, value, divide[0], size):
        local = plan.table.layout(value).local_shape
        others = [*divide, *(dim for dim in long if dim not in free and local[dim] % size == 0)]
        divide = [dim for dim in others if not is_read_in_few(plan, value, dim, size)] or divide
    return next(iter(divide or [dim for dim in free if padded]), None)


def is_read_in_few(plan: Plan, value: ValueId, dim: int, count: int) -> bool:
    """Whether an op slices fewer than `count` elements of a dim, perhaps after ops that move or cast the value."""
    source = plan.source
    slices = (
        (each, at)
        for each in source.program.downstream([value], attrgetter("passes_on"))
        for node, position in source.program.reads(each)
        for at, digits in enumerate(node.signature.operand_dims[position])
        if any(digit.reach is not None and digit.reach.extent < count for digit in digits)
    )
    # Few programs slice what they store: the classes of all their dims are not asked before that is known.
    return any(source.classes.of(*each) == source.classes.of(value, dim) for each in slices)
