"""Plans: an immutable program with placements, and the trace of the tactics that made them.

plan = pt.plan(step, mesh, params, batch)      nothing placed
p1 = plan.tile("batch/x", 0, "data")           a new plan; the old one is unchanged
p1.counts()                                    {"all_gather": 0, "all_reduce": 3, ...}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ...dialects.mesh import Mesh
from ..graph.graph import Graph, lower
from ..inputs.checks import mesh_given, run_tactic
from ..inputs.names import Patterns
from ..jax_private import Device
from ..notation.show import notation
from ..plan import claims, collectives, lowered, queries
from ..plan.claims import Seed
from ..plan.collectives import Collective
from ..plan.counts import Counts
from ..plan.diff import Diff, diff
from ..plan.expect import expect
from ..plan.explain import explain
from ..plan.queries import Conflict, Stop, WholeOp
from ..plan.state import State
from ..run.compare import check
from ..run.compiled import Compiled
from ..trace.trace import Traced, trace

Tactic = Callable[["Plan"], "Plan"]


@dataclass(frozen=True)
class Plan(State):
    """A traced program, where its ranges are placed, and the tactics that placed them. Immutable; made by `pt.plan`."""

    def __repr__(self) -> str:
        return queries.brief(self)

    # --- tactics ---------------------------------------------------------------------------------------------------

    def tile(self, values: Patterns, dim: int | str, axis: str, *, propagate: bool = True) -> Plan:
        """Factor a dim's range of these values and place a factor on a mesh axis; then propagate.

        Raises Error for a dim that the value does not have, an axis that is on another dim of it, or an extent that
        does not divide; the plan stays as it was.

            tile("x", 0, "data"):   x: f32[256, 8]   -->   x: f32[data*64, 8]
        """
        return claims.tile(self, values, dim, axis, propagate=propagate)

    def replicate(self, values: Patterns, axis: str, *, propagate: bool = True) -> Plan:
        """Keep these values replicated along an axis; propagation does not cross them.

        replicate("w", "data"):   w stays f32[8, 16], whatever its uses want
        """
        return claims.replicate(self, values, axis, propagate=propagate)

    def name(self, values: Patterns, dim: int, label: str) -> Plan:
        """Name the class of dims that this one belongs to, for `tile`: a label, never a constraint.

        name("batch/x", 0, "B").tile("*", "B", "data")
        """
        return claims.name(self, values, dim, label)

    def propagate(self, axis: str) -> Plan:
        """Carry on the claims along an axis that an action with `propagate=False` left where they stood."""
        return claims.propagate(self, axis)

    def apply(self, *tactics: Tactic) -> Plan:
        """Apply tactics, one after another: each a function from plan to plan, the library's or your own."""
        plan = self
        for tactic in tactics:
            plan = run_tactic(tactic, plan)
        return plan

    def place(self, seeds: Sequence[Seed], text: str, *, propagate: bool = True, held: bool = False) -> Plan:
        """What every tactic does in the end: make these claims, all at once, and propagate. All of it, or an Error.

        Claims that are `held` go only through ops in which every array has the range, and no later tactic carries them on.
        """
        return claims.place(self, seeds, text, propagate=propagate, held=held)

    # --- what happens ----------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """Executions of each kind of collective in one call: loop bodies times their trips.

        Collectives inside a branch are reported separately, `.branches["cond#0:1"]`, and `.in_branches` is the most that
        these can add. The trip count of a `while` is unknown, so its body is counted once, and `.unknown["while#0"]` says
        how much of the counts that is.
        """
        return collectives.counts(self)

    def collectives(self) -> list[Collective]:
        """Every collective, with its provenance: kind, axes, value, bytes received, times, source line, tactic."""
        return collectives.collectives(self)

    def bytes_per_device(self) -> int:
        """Bytes that one device receives in one call, all collectives together; of branches, the most expensive one."""
        return collectives.bytes_per_device(self)

    def layout(self, values: Patterns = "**") -> dict[str, str]:
        """The layout of each value that the patterns match: `{"w1": "f32[8, model*8]"}`."""
        return queries.layouts(self, values)

    @property
    def conflicts(self) -> list[Conflict]:
        """Claims that cannot all hold and that the order of tactics does not decide, with the ways out."""
        return queries.conflicts(self)

    @property
    def blocked(self) -> list[Stop]:
        """Where propagation stopped: an extent that does not divide, or a dim that cannot be placed."""
        return queries.stops(self)

    @property
    def whole(self) -> list[WholeOp]:
        """Primitives without a definition: they run unpartitioned, on gathered operands."""
        return queries.wholes(self)

    @property
    def successors(self) -> Mapping[str, str]:
        """Argument name -> the result that takes its place in the next call."""
        return self.source.traced.successors

    @property
    def trace(self) -> str:
        """The tactics as text, a line each; `pt.replay` takes it."""
        return "\n".join(action.text for action in self.actions)

    def arguments(self) -> list[str]:
        """The names of the arguments' leaves."""
        return list(self.source.program.argument_names)

    def results(self) -> list[str]:
        """The names of the results' leaves."""
        return list(self.source.program.result_names)

    def explain(self, values: Patterns) -> str:
        """Why these values are laid out as they are, and which uses redistribute them, step by step."""
        return explain(self, values)

    def diff(self, before: Plan) -> Diff:
        """What changed from `before` to this plan: layouts, collectives, bytes, memory."""
        return diff(before, self)

    def expect(self, **wanted: int) -> Plan:
        """The plan itself, if it has exactly these counts; otherwise an Error with the offending collectives.

        A count is what always runs plus the most that branches add (of each `cond`, the branch with the most). The body of a
        `while` is counted once. `counts()` has them apart.
        """
        expect(self, wanted)
        return self

    def notation(self) -> str:
        """The program with its mesh, in index notation, as `pt.parse` takes it.

        Raises Error for an op that the notation cannot express.
        """
        return notation(self.source.traced, self.mesh)

    # --- lowering --------------------------------------------------------------------------------------------------

    def ir(self, fused: bool = True) -> ModuleOp:
        """The placed builders and slicers; `fused=False` is the form that `partita-opt` lowers to the same `spmd()`."""
        return lowered.ir(self, fused)

    def spmd(self) -> ModuleOp:
        """The device-local module, every collective explicit. `str()` of it is its text."""
        return lowered.spmd(self)

    def lower(self, granularity: str = "whole") -> Graph:
        """The dataflow graph: `whole` is one kernel with its collectives inside, `collective` cuts at each redistribution."""
        return lower(self, granularity)

    def compile(self, devices: Sequence[Device] | None = None, donate: Patterns = ()) -> Compiled:
        """A callable with the original's signature, run by `jax.jit(jax.shard_map(...))`."""
        return Compiled(self, devices, donate)

    def check(self, *args: object, **kwargs: object) -> float:
        """Run the original and the partitioned program on these arrays; the largest |a-b|/(1e-3+|b|) of any result."""
        return check(self, args, kwargs)


def plan(
    fn: Callable[..., object], mesh: Mesh, /, *args: object, static_argnames: Sequence[str] = (), **kwargs: object
) -> Plan:
    """Trace a function on arrays or `jax.ShapeDtypeStruct`s and start a plan on which nothing is placed."""
    mesh = mesh_given(mesh)
    return start(trace(fn, *args, static_argnames=static_argnames, **kwargs), mesh)


def start(traced: Traced, mesh: Mesh) -> Plan:
    """The plan on which nothing is placed, but for what the program places itself."""
    return claims.place_own(Plan.start(traced, mesh))
