"""Plans: an immutable program with placements, and the trace of the tactics that made them.

plan = pt.plan(step, mesh, params, batch)      nothing placed
p1 = plan.tile("batch/x", 0, "data")           a new plan; the old one is unchanged
p1.counts()                                    {"all_gather": 0, "all_reduce": 3, ...}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, cast

from typing_extensions import TypeVar
from xdsl.dialects.builtin import ModuleOp

from ...dialects.ground.errors import warn
from ...dialects.ground.validation import CHECKS, INTEGER_BOUND, checked, integer, refused
from ...dialects.mesh import Mesh, in_sets
from ...rewrites.laws.law import Law
from ..advice import conflicts, redundancy as silent, stops
from ..advice.conflicts import Conflict, conflict_given
from ..advice.redundancy import InExcess
from ..advice.refused_claims import advised
from ..advice.rewrites import Rewriting, rewrites
from ..advice.stops import Stop, WholeOp
from ..advice.ways_out import Resolution
from ..answers import loops, notebook, plan_text as saved, summary
from ..answers.diff import Diff, diff
from ..answers.expect import expect
from ..answers.explain import Explanation, explain
from ..cost import collectives, memory
from ..cost.collectives import Collective
from ..cost.counts import Counts
from ..cost.device_sets import Transfer, transfers
from ..cost.flops import Flops, flops_per_device
from ..cost.loops import LoopRun
from ..cost.memory import Memory
from ..graph.graph import Graph, lower, runner
from ..inputs.checks import Axes, mesh_given, run_tactic, said_patterns, tactic_given
from ..inputs.files import write_text
from ..inputs.names import Patterns
from ..jax_private import Device
from ..notation.show import notation
from ..page.page import Page
from ..plan import annotation_outcomes, claims, layouts as queries, lowering, on_parts, rewriting
from ..plan.annotation_outcomes import Annotation
from ..plan.named_laws import takes_no_more
from ..plan.seeds import Seed
from ..plan.state import State
from ..report.page import html, write
from ..run.boundary_resharding import PlacementWarning
from ..run.compare import largest_difference
from ..run.compiled import Compiled
from ..structure.ranges import Range, ranges
from ..trace.trace import Traced, trace
from ..views.listing import Listing, TextTable
from ..views.view import View

Tactic = Callable[["Plan"], "Plan"]
Shown = TypeVar("Shown", bound=View)
R = TypeVar("R", default=Any)
"""The type of the function's result."""


@dataclass(frozen=True)
class Plan(State, Generic[R]):
    """A traced program, the placement of its ranges, and the tactics that placed them. Immutable; made by `pt.plan`."""

    def __repr__(self) -> str:
        return summary.brief(self)

    def __str__(self) -> str:
        return summary.summary(self).text()

    def _repr_html_(self) -> str:
        return notebook.of_plan(self)

    # --- tactics ---------------------------------------------------------------------------------------------------

    @checked
    def tile(
        self,
        values: Patterns,
        dim: int | str,
        axis: Axes = "",
        *,
        propagate: bool = True,
        held: bool = False,
        padded: bool = False,
        block: int | None = None,
        backward: bool = True,
    ) -> Self:
        """Factor a dim's range of these values and place a factor on a mesh axis, or several, major to minor; then propagate.

        With `held`, the claims propagate only through ops in which every array has the dim, and no later tactic propagates them
        further.

        With `block`, blocks of so many elements go to the devices in turn: a cyclic layout for 1, otherwise block-cyclic.
        An argument or result has one block on each device all the same, and is exchanged at the boundary.

        With `backward=False`, the dim is placed where the values are read. They stay whole, as their gradients do, and what
        makes them is left alone: a loop begins, and ends, there.

        Raises Error for a dim that the value does not have, an axis that is on another dim of it, or an extent that
        does not divide, unless `padded`; the plan stays as it was.

            tile("x", 0, "data"):                x: f32[256, 8]   -->   x: f32[data*64, 8]
            tile("x", 0, ("data", "model")):     x: f32[256, 8]   -->   x: f32[data*model*32, 8]
            tile("x", 0, "data.0:2"):            x: f32[256, 8]   -->   x: f32[data.0:2*128, 8], the major 2 of `data`
            tile("x", 0, "data", padded=True):   x: f32[30, 8]    -->   x: f32[data*4 pad 30, 8] on 8 devices
            tile("x", 0, "data", block=16):      x: f32[256, 8]   -->   x: f32[4*data*16, 8] on 4 devices
            tile("h", 0, "t:8", backward=False): x: f32[256, 8], h: f32[256, 8], y: f32[256, 8]   -->   y: f32[t:8*32, 8]
        """
        said = {"propagate": propagate, "held": held, "padded": padded, "block": block, "backward": backward}
        return advised(self, partial(claims.tile, values=values, dim=dim, axis=axis, **said))

    @checked
    def replicate(self, values: Patterns, axis: Axes, *, propagate: bool = True) -> Self:
        """Keep these values replicated along an axis, or along several; propagation does not cross them.

        replicate("w", "data"):   w stays f32[8, 16], whatever layout its uses want
        """
        return advised(self, partial(claims.replicate, values=values, axis=axis, propagate=propagate))

    @checked
    def widen(self, values: Patterns) -> Self:
        """Compute these values in the windows in which their uses read them, rim and all, instead of exchanging the rim.

        Apply it before the tactics that tile them. Two convolutions in a row then exchange once, and compute the rim twice:

        widen("h").tile("x", 1, "data"):   h: win<8,10,1,1>(data) of 64   x: two rows from either side, once
        """
        return claims.widen(self, values)

    @checked
    def each_trip(self, values: Patterns) -> Self:
        """Gather these arguments in every trip of the loops that read them, and scatter what updates them, not once for all.

        That receives more, but no device has all of them at one time. `pt.EachTrip` says for which loops.

        each_trip("params"):   1 all_gather of w, whole during 8 trips   -->   8 all_gathers, each freed in its trip
        """
        return claims.each_trip(self, values)

    @checked
    def on(self, values: Patterns, /, **coordinates: int) -> Self:
        """Run these values, and what is in these scopes, on the devices at coordinates of an axis: a device set of its own.

        Other ops run where their operands are; if these are on several sets, where the fewest bytes have to cross. If claims
        put them there, `plan.conflicts` has the op, with the other ways. An argument lies where it is read. `plan.transfers()`
        lists what crosses. Such a plan is lowered to a graph of kernels on the sets, `plan.lower()`; SPMD text, and `compile`,
        are of one set.

        Raises Error for values that are on another set by an earlier tactic, for an axis on which dims are placed, and for a
        plan with loops.

            on("block0", stage=0).on("block1", stage=1):   %h of block0   -->   flow.transfer %h to the devices of stage 1
        """
        return on_parts.on(self, values, coordinates)

    @checked
    def name(self, values: Patterns, dim: int, label: str) -> Self:
        """Name the range of a dim, so that you can `tile` it by name. A name is a label, never a constraint.

        name("batch/x", 0, "B").tile("*", "B", "data")
        """
        return claims.name(self, values, dim, label)

    @checked
    def rewrite(self, rule: str | Law, at: Patterns = "**", **given: object) -> Self:
        """Write parts of the program otherwise, by a law of the library or by your own (`pt.rule`); its placements stay.

        The law is applied wherever the patterns match the value that it makes, or the `jax.named_scope` around it. The earlier
        tactics make the same claims on what is left, and propagate them anew. `plan.rewrites()` lists where which law applies.

        Raises Error for a law that is unknown or false, one that applies nowhere, and where a tactic has placed what it would
        remove; the plan stays as it was.

        rewrite("reassociate"):   (x @ w1) @ w2   -->   x @ (w1 @ w2)
        """
        if given:
            raise takes_no_more(self, rule, at, given)
        return rewriting.rewrite(self, rule, at)

    @checked
    def propagate(self, axis: str, *, split: bool = False) -> Self:
        """Propagate the claims along an axis that were made with `propagate=False`.

        With `split`, the axis is split into sub-axes if that carries its claims across a reshape.

        propagate("data", split=True):   f32[data*2] reshaped   -->   f32[data.0:4, data.1:2*2] on 8 devices
        """
        return claims.propagate(self, axis, split=split)

    @checked
    def apply(self, *tactics: Tactic) -> Self:
        """Apply tactics, one after another. A tactic is a function from plan to plan: one of Partita's, or your own."""
        plan = self
        for tactic in tactics:
            plan = cast(Self, run_tactic(tactic, plan))
        return plan

    @checked
    def place(self, seeds: Sequence[Seed], text: str, *, propagate: bool = True, held: bool = False) -> Self:
        """Make these claims, all at once, and propagate: the step that every tactic ends in. On an Error nothing changes.

        With `held`, the claims propagate only through ops whose operands and results all have the tiled range, and no later
        tactic propagates them further.
        """
        return advised(self, partial(claims.place, seeds=seeds, text=text, propagate=propagate, held=held))

    # --- what happens ----------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """Executions of each kind of collective in one call: those in a loop body times the trip count.

        Collectives inside a branch are reported separately, in `.branches["cond#0:1"]`; `.in_branches` is the most that
        branches can add. The trip count of a `while` is unknown, so its body is counted once, and `.unknown["while#0"]`
        says which part of the counts that is.
        """
        return collectives.counts(self)

    def collectives(self) -> Listing[Collective]:
        """Every collective with its provenance: kind, axes, value, bytes received, executions, source lines, causes.

        `bytes` are those of one execution, in a loop of one trip; `total_bytes`, which the table shows, are those of one call.
        """
        return _of(self, collectives.collectives(self))

    def transfers(self) -> Listing[Transfer]:
        """The values that cross from one device set to another, for which op, and why that runs there. See `on`.

        transfers():   h of block0 from stage=0 to stage=1: 2,048 bytes to each device, for dot_general of block1
        """
        return _of(self, transfers(self))

    def bytes_per_device(self) -> int:
        """Bytes that one device receives in one call, summed over all collectives; of branches, the most expensive one."""
        return collectives.bytes_per_device(self)

    def flops_per_device(self) -> Flops:
        """What one device computes in one call, padding and rims of windows included; of branches, the most expensive one.

        An addition, a multiplication and any other function of an element count 1. So a multiplication of matrices is 2·m·n·k.
        `.unknown` names the ops whose flops are unknown and not counted: sorts, factorisations, user code.
        """
        return flops_per_device(self)

    def loops(self) -> Listing[LoopRun]:
        """The loops in which ranges run, in the order in which they begin: flops, what each carries, and what it stores.

        Below them, what ends each loop, what is sent once around them, and which values later loops compute again or read
        from memory, with the cost of the other way.
        """
        return _of(self, loops.listed(self))

    @checked
    def memory(self, donate: Patterns = ()) -> Memory:
        """The most bytes that one device stores at one time: arguments, results and temporaries, by value and source line.

        It is an estimate of what XLA allocates on CPU, made without compiling. With `donate`, results take the buffers of these
        arguments, beside those that `pt.jit` was told to donate. Raises Error for a donated argument that does not exist or is
        static.

        memory():                   {arguments, results, what the backward pass needs, a gathered parameter}   -->   bytes
        memory(donate="params"):    new parameters take the place of the old ones
        """
        return memory.memory(self, donate)

    @checked
    def layout(self, values: Patterns = "**") -> TextTable:
        """The layout of each value that the patterns match, and its device set if there are several.

        {"w1": "f32[8, model*8]"}, or {"w1": "f32[8, model*8] on stage=0"}
        """
        return _of(self, queries.layouts_on_sets(self, values))

    @property
    def conflicts(self) -> Listing[Conflict]:
        """Claims that contradict each other and that the order of tactics does not decide, with resolutions.

        Of a plan on several device sets, also the ops without a claim whose operands claims put on several of them.
        """
        return _of(self, conflicts.conflicts(self))

    @checked
    def resolve(self, conflict: Conflict, choice: int | str | Resolution = 0) -> Self:
        """Take a way out of an open conflict: one of `conflict.resolutions`, its number, the fastest first, or its tactic.

        Raises Error if the conflict is not an open one of this plan, and for a choice that it does not have.

            resolve(conflicts[0]):                                a + a.T   -->   tile('add#0', 0, 'data')
            resolve(conflicts[0], "replicate('a', 'data')"):      a + a.T   -->   a gathered, each device adds all of it
        """
        return conflicts.resolve(self, conflict, choice)

    @property
    def blocked(self) -> Listing[Stop]:
        """Where propagation stopped: an extent that does not divide, or a dim that cannot be placed.

        Each says which ops every device of the axis then runs in full, and the flops and the bytes of that. `.cure` is a tactic
        with which it is gone, `plan.apply(plan.blocked[0].cure)`, and what a device then receives and computes.
        """
        return _of(self, stops.stops(self))

    @property
    def whole(self) -> Listing[WholeOp]:
        """Primitives without a definition: they run unpartitioned, on gathered operands."""
        return _of(self, stops.wholes(self))

    @property
    def annotations(self) -> list[Annotation]:
        """What the program says about layouts: constraints, shardings of arguments, metadata; and whether the plan follows it.

        `pt.Annotated()` makes claims of them.
        """
        return annotation_outcomes.annotations(self)

    @property
    def successors(self) -> Mapping[str, str]:
        """Argument name -> the result that replaces it in the next call."""
        return self.source.traced.successors

    @property
    def trace(self) -> str:
        """The tactics as text, one per line; `pt.replay` applies it again."""
        return "\n".join(action.text for action in self.actions)

    def save(self, file: str | Path) -> None:
        """Write the plan file: mesh, tactics, what each does, final layouts, in index notation. `pt.replay` reads it.

        The text depends on the plan alone, so a file under version control changes only if the plan does. Raises Error if the
        file cannot be written.

        save("plan.partita"):   mesh data=4, model=2
                                plan train_step {
                                  tile params/w1.1 @model
                                    => params/w1: 1 all_reduce
                                  ...
        """
        write_text(file, saved.text_of_plan(self))

    def arguments(self) -> list[str]:
        """The names of the arguments' leaves."""
        return list(self.source.program.argument_names)

    def results(self) -> list[str]:
        """The names of the results' leaves."""
        return list(self.source.program.result_names)

    @checked
    def explain(self, what: Patterns | Collective | Conflict | Stop) -> Explanation:
        """Why values have their layouts and which uses redistribute them; why a collective runs; what a conflict or a stop is.

        The answer prints as text, and `.steps` has its reasons with source lines and tactics. Raises Error for a collective, a
        conflict or a stop of another plan.

            explain("w1"):                   w1: f32[data*2, 16], decided by 2: tile('w1', 0, 'data'); gathered for dot_general
            explain(collectives()[0]):       what is sent; the op that sums it, or that reads it; by which tactics
        """
        return _of(self, explain(self, what))

    @checked
    def diff(self, before: Plan) -> Diff:
        """What changed from `before` to this plan: layouts, collectives, bytes, flops, memory."""
        return _of(self, diff(before, self))

    def ranges(self) -> Listing[Range]:
        """The ranges of the program: dims that its ops identify, each with a name by which `tile` takes all of them.

        Partita suggests the names: `batch` and `length` for what inputs lead with, otherwise the first argument and its dim.
        `plan.name` gives another one.

            ranges():   batch: batch/x.0, batch/y.0 (512);  params/w1.1: params/w1.1, params/w2.0 (256)
            tile("*", "batch", "data"):   data parallelism
        """
        return _of(self, ranges(self))

    def silent(self) -> InExcess:
        """What several devices store or compute although one would do, or what runs unpartitioned, the most expensive first.

        Parameters that a tactic does not tile, and ops that all devices of an axis run in full:

            silent():   head: replicated along model, 6,432,896 bytes in excess;  dot_general: computed by all along model
        """
        return _of(self, silent.silent(self))

    def rewrites(self) -> Listing[Rewriting]:
        """Where which law of programs applies, and which large values can be computed in parts, in a loop. Each was tried.

        A row says what a device would save, in bytes, flops and memory; the best comes first. Places that are alike, in layers,
        are one row. Each is a tactic: `plan.apply(plan.rewrites()[0])`. For values computed again, memory is counted as on
        XLA:CPU, which removes the barriers and saves nothing; XLA:TPU saves it.

            rewrites():   reassociate at dot_general#3: 65,536 flops;   tile of logits on t:8: 1.4 MB of memory
        """
        return _of(self, rewrites(self))

    def expect(self, **wanted: int | str) -> Self:
        """Return the plan if it has these counts and keeps these budgets; otherwise raise an Error that shows what differs.

        Give counts of collectives, and `bytes_per_device`, `memory` (as `memory()` has it), `flops_per_device`, or
        `replicated_flops`, the part of a device's flops that is redundant. A text is a bound. A count
        includes the collectives that always run and the most that branches add (of each `cond`, the branch with the most). The
        body of a `while` is counted once. `counts()` reports them separately.

            expect(all_gather=0, all_reduce="<=3", bytes_per_device="<2MiB", memory="<16GiB", replicated_flops="<1%")
        """
        expect(self, wanted)
        return self

    def notation(self) -> str:
        """The program with its mesh, in index notation; `pt.parse` reads it.

        Raises Error for an op that the notation cannot express.
        """
        return notation(self.source.traced, in_sets(self.mesh.whole(), ()))

    def html(self, path: str | Path) -> None:
        """Write the plan as one page for a browser, which needs no network: each tactic, and what it changed and why.

        It has the program by scope, the collectives with their causes, layouts over the mesh, conflicts, the memory over time
        and the kernels, after each tactic. Raises Error for a path that cannot be written, or that does not end in `.html`.

            html("plan.html")
        """
        write(self, path)

    @checked
    def show(self, height: int = 720) -> Page:
        """The page of `plan.html` inside a notebook, so many pixels high: the value of a cell's last line.

        show()   -->   the report below the cell
        """
        return Page(html(self), height)

    # --- lowering --------------------------------------------------------------------------------------------------

    @checked
    def ir(self, fused: bool = True) -> ModuleOp:
        """The placed builders and slicers; `partita-opt` lowers the form with `fused=False` to the same `spmd()`."""
        return lowering.ir(self, fused)

    def spmd(self) -> ModuleOp:
        """The device-local module, with explicit collectives. Its `str()` is its text."""
        return lowering.spmd(self)

    @checked
    def lower(self, granularity: str = "whole") -> Graph:
        """The dataflow graph: `whole` is one kernel with its collectives inside, `collective` cuts at each redistribution."""
        return lower(self, granularity)

    @checked
    def compile(self, devices: Sequence[Device] | None = None, donate: Patterns = ()) -> Compiled[R]:
        """A callable with the signature of the original function, run by `jax.jit(jax.shard_map(...))`.

        Warns if conflicts of axes are open, since each device then runs the ops at which they are in full.
        """
        for each in what_is_open(self):
            warn(each)
        return Compiled[R](self, devices, donate, partial(_save, self))

    def check(self, *args: object, **kwargs: object) -> float:
        """Run the original and the partitioned program on these arrays; return the largest |a-b|/(1e-3+|b|) of any result.

        After `Microbatch(each=)` the original is the program that it makes, run whole, and not the function.
        """
        return largest_difference(self, args, kwargs, runner(self))


def plan(fn: Callable[..., R], mesh: Mesh, /, *args: object, static_argnames: Sequence[str] = (), **kwargs: object) -> Plan[R]:
    """Trace a function on arrays or `jax.ShapeDtypeStruct`s and start a plan on which nothing is placed."""
    mesh = mesh_given(mesh)
    return start(trace(fn, *args, static_argnames=static_argnames, **kwargs), mesh)


def _save(plan: State, path: str | Path, platforms: Sequence[str] | None, donate: Patterns) -> None:
    lower(plan, "whole").save(path, platforms, donate)


class ConflictWarning(UserWarning):
    """A plan with open conflicts is compiled."""


def what_is_open(plan: Plan) -> Iterator[Warning]:
    """Yields a warning if the plan has open conflicts, and one if some annotations of the program do not divide."""
    if (text := conflicts.warning(plan)) is not None:
        yield ConflictWarning(text)
    if (text := annotation_outcomes.unkept(plan)) is not None:
        yield PlacementWarning(text)


def start(traced: Traced, mesh: Mesh) -> Plan:
    """Starts a plan on which nothing is placed, except the program's own `shard_map`s and the ops that one device runs."""
    return claims.place_own(Plan.start(traced, mesh))


def _of(plan: State, view: Shown) -> Shown:
    """Gives an answer the mesh axes of its plan, so that it shows them in their colours."""
    return view.on(plan.coloured)


def _plan_given(name: str, given: object) -> Plan:
    if not isinstance(given, Plan):
        raise refused(name, "a plan", given, "make one by pt.plan(fn, mesh, *args)")
    return cast("Plan", given)


def _seeds_given(name: str, given: object) -> tuple[Seed, ...]:
    seeds = tuple(cast("Sequence[object]", given)) if isinstance(given, list | tuple) else (given,)
    if not all(isinstance(seed, Seed) for seed in seeds):
        raise refused(name, "a list of claims", cast(object, given), "a tactic yields them: pt.Tile({...}, axis).seeds(plan)")
    return cast("tuple[Seed, ...]", seeds)


def _asked(name: str, given: object) -> object:
    """Checks the argument of `explain`: a collective, a conflict, a stop, or patterns of names."""
    if isinstance(given, Collective | Conflict | Stop):
        return given
    if (number := integer(given)) is not None:
        at = number if abs(number) < INTEGER_BOUND else 0
        helps = [
            f"take it from its list, which counts from 0: plan.explain(plan.collectives()[{at}])",
            "print(plan.collectives()) shows the numbers in the list",
            "or name a value by its path",
        ]
        raise refused(name, "a value's name, a collective, a conflict or a stop", given, *helps)
    return said_patterns(name, given)


CHECKS.update(
    {
        "Plan": _plan_given,
        "Some": _plan_given,
        "Sequence[Seed]": _seeds_given,
        "Tactic": lambda _, given: tactic_given(given),
        "Conflict": lambda _, given: conflict_given(given),
        "Patterns | Collective | Conflict | Stop": _asked,
    }
)
