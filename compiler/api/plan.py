"""Plans: an immutable program with placements, and the trace of the tactics that made them.

plan = pt.plan(step, mesh, params, batch)      nothing placed
p1 = plan.tile("batch/x", 0, "data")           a new plan; the old one is unchanged
p1.counts()                                    {"all_gather": 0, "all_reduce": 3, ...}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Never

from xdsl.dialects.builtin import ModuleOp

from ...dialects.array import set_mesh
from ...dialects.errors import Error
from ...dialects.mesh import Mesh
from ...rewrites.decide.decide import Decisions, decide
from ...rewrites.decide.table import Table
from ...rewrites.lower.materialise import materialise
from ...rewrites.lower.to_spmd import to_spmd
from ...rewrites.program.dim_classes import Classes, classes
from ...rewrites.program.flatten import flatten
from ...rewrites.program.program import Program
from ...rewrites.program.shard_maps import own_claims
from ..gc_pause import without_collector
from ..inputs.checks import dim_number, flag_of, mesh_given, no_axis, range_name, run_tactic
from ..inputs.names import Patterns
from ..ops.prng_keys import is_key, key_rank
from ..plan.addresses import Addresses
from ..plan.block_sizes import try_cuts
from ..plan.claims import Action, Seed, place_own, place_seeds
from ..plan.counts import Counts
from ..plan.diff import Diff, diff
from ..plan.expect import expect
from ..plan.explain import explain
from ..plan.queries import (
    Collective,
    Conflict,
    Stop,
    WholeOp,
    brief,
    bytes_per_device,
    collectives,
    conflicts,
    counts,
    layout_text,
    layouts,
    stops,
    wholes,
)
from ..trace.trace import Traced, trace

if TYPE_CHECKING:
    from ..graph.graph import Graph
    from ..jax_private import Device
    from ..run.compiled import Compiled

Tactic = Callable[["Plan"], "Plan"]


@dataclass(frozen=True)
class Source:
    """What all plans from one trace share: the trace, the tables, the names, the classes of dims."""

    traced: Traced
    program: Program
    addresses: Addresses

    def __repr__(self) -> str:
        return f"Source({self.traced})"

    @cached_property
    def classes(self) -> Classes:
        return classes(self.program)

    @cached_property
    def keys(self) -> Mapping[int, int]:
        """The arguments and results that are random keys, and how many trailing dims make one."""
        program, traced = self.program, self.traced
        avals = (*zip(program.arguments, traced.in_avals, strict=False), *zip(program.returned, traced.out_avals, strict=True))
        return {value: key_rank(aval) for value, aval in avals if is_key(aval)}

    def shape(self, value: int) -> tuple[int, ...]:
        """The extents that the user sees: a random key is one thing, `key<fry>[8]` and not `u32[8, 2]`."""
        shape = self.program.shape(value)
        return shape[: len(shape) - self.keys.get(value, 0)]


@dataclass(frozen=True)
class Plan:
    """A traced program, where its ranges are placed, and the tactics that placed them. Immutable; made by `pt.plan`."""

    source: Source
    mesh: Mesh
    table: Table
    actions: tuple[Action, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict[str, int])

    def __repr__(self) -> str:
        return brief(self)

    def __copy__(self) -> Plan:
        return self

    def __deepcopy__(self, memo: object) -> Plan:
        """The plan itself, for it never changes."""
        return self

    def __reduce__(self) -> Never:
        helps = ["keep its text, `plan.trace`: pt.replay(fn, mesh, text, *args) makes the plan again"]
        raise Error("a plan cannot be pickled: it holds the traced function", helps=helps)

    # --- tactics ---------------------------------------------------------------------------------------------------

    def tile(self, values: Patterns, dim: int | str, axis: str, *, propagate: bool = True) -> Plan:
        """Factor a dim's range of these values and place a factor on a mesh axis; then propagate.

        Raises Error for a dim that the value does not have, an axis that is on another dim of it, or an extent that
        does not divide; the plan stays as it was.

            tile("x", 0, "data"):   x: f32[256, 8]   -->   x: f32[data*64, 8]
        """
        dim = dim_number(dim)
        if dim not in self.labels:
            no_axis(self.mesh, values, dim, axis)
        text = _call("tile", (values, dim, axis), {} if propagate else {"propagate": False})
        seeds = [Seed(value, self.dim_of(value, dim, name), axis, name) for name, value in self.names(values, dim).items()]
        return self.place(seeds, text, propagate=propagate)

    def replicate(self, values: Patterns, axis: str, *, propagate: bool = True) -> Plan:
        """Keep these values whole along an axis; propagation does not cross them.

        replicate("w", "data"):   w stays f32[8, 16], whatever its uses want
        """
        text = _call("replicate", (values, axis), {} if propagate else {"propagate": False})
        seeds = [Seed(value, None, axis, name) for name, value in self.source.addresses.find(values).items()]
        return self.place(seeds, text, propagate=propagate)

    def name(self, values: Patterns, dim: int, label: str) -> Plan:
        """Name the class of dims that this one belongs to, for `tile`: a label, never a constraint.

        name("batch/x", 0, "B").tile("*", "B", "data")
        """
        label = range_name(label)
        of = self.source.classes.of
        roots = {name: of(value, self.dim_of(value, dim, name)) for name, value in self.source.addresses.find(values).items()}
        (first, root), *_ = roots.items()
        if other := next((name for name, its in roots.items() if its != root), None):
            title = f"dim {dim} of `{first}` and of `{other}` are different ranges, and `{label}` names one"
            raise Error(title, helps=["name them one by one, each by a name of its own"])
        if self.labels.get(label, root) != root and self.label(label) != root:
            title = f"`{label}` names a range already, {self.where(label)}, and dim {dim} of `{first}` is another one"
            raise Error(title, helps=["take another name for it"])
        action = Action(_call("name", (values, dim, label), {}), "name")
        return replace(self, labels={**self.labels, label: root}, actions=(*self.actions, action))

    def propagate(self, axis: str) -> Plan:
        """Carry the claims along an axis that an action with `propagate=False` left where they stood."""
        return self.place([Seed(-1, None, axis, "")], _call("propagate", (axis,), {}), propagate=True)

    def apply(self, *tactics: Tactic) -> Plan:
        """Apply tactics, one after another: each a function from plan to plan, the library's or your own."""
        plan = self
        for tactic in tactics:
            plan = run_tactic(tactic, plan)
        return plan

    def place(self, seeds: Sequence[Seed], text: str, *, propagate: bool = True, held: bool = False) -> Plan:
        """What every tactic does in the end: claim these places, all at once, and propagate. All of it, or an Error.

        Claims that are `held` go only through ops in which every array has the range, and no later tactic carries them on.
        """
        propagate = flag_of("propagate", propagate)
        with without_collector():
            table = place_seeds(self, seeds, len(self.actions), propagate, held)
        return replace(self, table=table, actions=(*self.actions, Action(text, "place")))

    # --- what happens ----------------------------------------------------------------------------------------------

    @cached_property
    def decisions(self) -> Decisions:
        """Which pending sums resolve where and which values move; all that the plan reports is read from here."""
        with without_collector():
            return decide(self.table)

    def counts(self) -> Counts:
        """Executions of each kind of collective in one call: loop bodies times their trips.

        What only a branch runs stands apart, `.branches["cond#0:1"]`, and `.in_branches` is the most that this can add; a
        `while` counts once, and `.unknown["while#0"]` says what of the counts that is.
        """
        return counts(self)

    def collectives(self) -> list[Collective]:
        """Every collective, with its provenance: kind, axes, value, bytes received, times, source line, tactic."""
        return collectives(self)

    def bytes_per_device(self) -> int:
        """Bytes that one device receives in one call, all collectives together; of branches, those of the dearest."""
        return bytes_per_device(self)

    def layout(self, values: Patterns = "**") -> dict[str, str]:
        """The layout of each value that the patterns take: `{"w1": "f32[8, model*8]"}`."""
        return layouts(self, values)

    @property
    def conflicts(self) -> list[Conflict]:
        """Claims that cannot all hold and that order does not decide, with the ways out."""
        return conflicts(self)

    @property
    def blocked(self) -> list[Stop]:
        """Where propagation stopped: an extent that does not divide, or a dim that cannot be placed."""
        return stops(self)

    @property
    def whole(self) -> list[WholeOp]:
        """Primitives without a definition: they run whole, on gathered operands."""
        return wholes(self)

    @property
    def successors(self) -> Mapping[str, str]:
        """Argument name -> the result that takes its place in the next call."""
        return self.source.traced.successors

    @property
    def trace(self) -> str:
        """The tactics as text, a line each, that `pt.replay` takes."""
        return "\n".join(action.text for action in self.actions)

    def arguments(self) -> list[str]:
        """The names of the arguments' leaves."""
        return list(self.source.program.argument_names)

    def results(self) -> list[str]:
        """The names of the results' leaves."""
        return list(self.source.program.result_names)

    def explain(self, values: Patterns) -> str:
        """Why these values are laid out as they are, and who moves them, step by step."""
        return explain(self, values)

    def diff(self, before: Plan) -> Diff:
        """What changed from `before` to this plan: layouts, collectives, bytes, memory."""
        return diff(before, self)

    def expect(self, **wanted: int) -> Plan:
        """The plan itself, if it has exactly these counts; else an Error with the offending collectives.

        A count is what always runs and the most that branches add, of each choice the branch with the most; a `while` counts
        as one trip. `counts()` has them apart.
        """
        expect(self, wanted)
        return self

    def notation(self) -> str:
        """The program with its mesh, in index notation, as `pt.parse` takes it. Raises Error for what has no words there."""
        from ..notation.show import notation

        return notation(self)

    # --- lowering --------------------------------------------------------------------------------------------------

    def ir(self, fused: bool = True) -> ModuleOp:
        """The placed builders and slicers; `fused=False` is the form that `partita-opt` lowers to the same `spmd()`."""
        with without_collector():
            try_cuts(self)
            return materialise(self.decisions, fused)

    def spmd(self) -> ModuleOp:
        """The device-local module, every collective explicit. `str()` of it is its text."""
        with without_collector():
            try_cuts(self)
            return to_spmd(materialise(self.decisions))

    def lower(self, granularity: str = "whole") -> Graph:
        """The dataflow graph: `whole` is one kernel with its collectives inside, `collective` cuts at each redistribution."""
        from ..graph.graph import lower

        return lower(self, granularity)

    def compile(self, devices: Sequence[Device] | None = None, donate: Patterns = ()) -> Compiled:
        """A callable with the original's signature, run by `jax.jit(jax.shard_map(...))`."""
        from ..run.compiled import compile

        return compile(self, devices, donate)

    def check(self, *args: object, **kwargs: object) -> float:
        """Run the original and the partitioned program on these arrays; the largest |a-b|/(1e-3+|b|) of any result."""
        from ..run.compiled import check

        return check(self, args, kwargs)

    def layout_text(self, value: int) -> str:
        """The dtype and layout of one value, by number, as the table has it."""
        return layout_text(self, value)

    # --- addressing ------------------------------------------------------------------------------------------------

    def names(self, values: Patterns, dim: int | str) -> dict[str, int]:
        """The values that the patterns take; with a range name, those that have it (or all, and `dim_of` says so)."""
        if isinstance(dim, int):
            return self.source.addresses.find(values)
        root = self.label(dim)
        found = self.source.addresses.find(values)
        of, rank = self.source.classes.of, self.source.program.shape
        return {name: v for name, v in found.items() if any(of(v, d) == root for d in range(len(rank(v))))} or found

    def label(self, name: str) -> int:
        root = self.labels.get(name)
        if root is None:
            known = ", ".join(f"`{label}`" for label in self.labels) or "none yet"
            raise Error(f"no range is named `{name}`", helps=[f'name one first: plan.name("x", 0, "{name}"); named: {known}'])
        return self.source.classes.root(root)

    def where(self, label: str) -> str:
        """A place where the range of this name stands, for errors: `dim 0 of `x``."""
        of, shape, root = self.source.classes.of, self.source.program.shape, self.label(label)
        places = ((name, value, dim) for value, name in self.source.addresses.names.items() for dim in range(len(shape(value))))
        return next(f"dim {dim} of `{name}`" for name, value, dim in places if of(value, dim) == root)

    def dim_of(self, value: int, dim: int | str, name: str) -> int:
        """The number of a dim, given by number (negative from the end) or by range name."""
        shape, dim = self.source.shape(value), dim_number(dim)
        if isinstance(dim, str):
            root = self.label(dim)
            dims = [d for d in range(len(shape)) if self.source.classes.of(value, d) == root]
            if len(dims) > 1:
                raise Error(
                    f"`{name}` has the range `{dim}` twice: dims {' and '.join(map(str, dims))} of {list(shape)}",
                    helps=[f'say which: plan.tile("{name}", {dims[0]}, ...)'],
                )
            if not dims:
                helps = [f'say its dim by number, or name it: plan.name("{name}", 0, ...)']
                raise Error(f"no dim of `{name}` has the range `{dim}`: its shape is {list(shape)}", helps=helps)
            return dims[0]
        if not -len(shape) <= dim < len(shape):
            helps = [f"its dims are 0 to {len(shape) - 1}" if shape else "it is a scalar: leave it whole"]
            if value in self.source.keys:
                helps = ["a random key is one thing and is not tiled: leave it whole", *helps[: len(shape)]]
            raise Error(f"`{name}` has no dim {dim}: its shape is {list(shape)}", helps=helps)
        return dim % len(shape)


def plan(
    fn: Callable[..., object], mesh: Mesh, /, *args: object, static_argnames: Sequence[str] = (), **kwargs: object
) -> Plan:
    """Trace a function on arrays or `jax.ShapeDtypeStruct`s and start a plan on which nothing is placed."""
    mesh = mesh_given(mesh)
    return start(trace(fn, *args, static_argnames=static_argnames, **kwargs), mesh)


def start(traced: Traced, mesh: Mesh) -> Plan:
    """The plan on which nothing is placed."""
    with without_collector():
        set_mesh(traced.module, mesh_given(mesh))
        program = flatten(traced.module)
    bare = Plan(Source(traced, program, Addresses(traced, program)), mesh, Table(program, mesh))
    claims = own_claims(program)
    if not claims:
        return bare
    # A line of the trace that replaying passes over, for the program says it again.
    return replace(bare, table=place_own(bare.table, claims), actions=(Action("# the program's own shard_map", "place"),))


def replay(
    fn: Callable[..., object],
    mesh: Mesh,
    text: str,
    /,
    *args: object,
    static_argnames: Sequence[str] = (),
    **kwargs: object,
) -> Plan:
    """A plan of `fn` with the tactics of `plan.trace`; lines that are blank or begin with `#` are passed over."""
    from .replay import tactics_of

    return plan(fn, mesh, *args, static_argnames=static_argnames, **kwargs).apply(*tactics_of(text))


def _call(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    parts = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
    return f"{name}({', '.join(parts)})"
