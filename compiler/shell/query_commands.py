"""Commands that look at the plan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ...dialects.ground.amounts import of_bytes, there_are
from ..advice.conflicts import conflict
from ..advice.open_conflicts import open_keys
from ..advice.rewrites import tried_rewrites
from ..advice.stops import Stop
from ..api.plan import Plan
from ..cost.collectives import Collective, bytes_by_axes
from ..cost.counts import COLLECTIVES
from ..inputs.message_language import cure_command
from ..inputs.names import pattern
from ..notation.tactic_statements import statement
from ..views.listing import Listing, by_index
from .answer import Answer, as_text
from .command_table import ALL, Asked, command
from .screen import program_description
from .step_changes import changes

LARGE = 2_000
"""The number of ops from which `diff` leaves out memory and flops, unless they are asked for."""


@command("look", "show [VALUES] [all]", "show params/**", "value", "all")
def show(asked: Asked) -> str:
    """The layouts of arguments and results, or of others.

    The values are those that a pattern matches. `all` shows every row.

    show w*     -->     w1  f32[256, model*512]
                        w2  f32[model*512, 256]
    """
    return asked.shown(asked.plan.layout([each for each in asked.said if each != ALL] or "**"))


@command("look", "plan", "plan", slow="asking the plan everything")
def plan(asked: Asked) -> str:
    """The whole plan on one screen.

    Its tactics, collectives, bytes, flops, memory, conflicts and stops, and what is redundant.
    """
    return str(asked.plan)


@command("look", "program", "program")
def program(asked: Asked) -> str:
    """The program itself.

    Its name, file and line, its ops, the mesh, and its arguments with their shapes.
    """
    return "\n".join(program_description(asked.plan))


@command("look", "history", "history")
def history(asked: Asked) -> str:
    """The tactics so far, numbered as answers cite them."""
    lines = [f"mesh {asked.plan.source.mesh}"]
    lines += [f"{number}: {statement(action.text)}" for number, action in enumerate(asked.plan.actions, 1)]
    return "\n".join(lines if len(lines) > 1 else [*lines, "no tactics so far"])


@command("look", "ranges [all]", "ranges", "all")
def ranges(asked: Asked) -> str:
    """The ranges of the program: what can be tiled.

    `tile range NAME over AXIS` tiles all dims of a range.
    """
    return asked.shown(asked.plan.ranges())


@command("look", "explain VALUE [NUMBER] [all]", "explain params/w1", "reason", "number", "all")
def explain(asked: Asked) -> str:
    """Why a value has its layout, or why a collective runs.

    A collective, a conflict or a stop is given by its number: `explain collective 3`, `explain conflict 1`, `explain stop 1`.

    explain w1     -->     w1: f32[data*2, 16]
                             dim 0 on `data`: decided by 2: tile w1.0 @data
    """
    plan, first, *more = asked.plan, *asked.said
    lists: dict[str, Callable[[], Sequence[object]]] = {
        "collective": plan.collectives,
        "conflict": lambda: plan.conflicts,
        "stop": lambda: plan.blocked,
    }
    if more in ([], [ALL]):
        if plan.source.addresses.by_name(first) is None:
            _no_value(asked, lists)
        return (asked if more else replace(asked, words=())).shown(plan.explain(first))
    if first not in lists:
        ways = "write `explain VALUE`, `explain collective 3`, `explain conflict 1` or `explain stop 1`"
        asked.fail(0, f"`{first}` is not a list", ways)
    chosen = asked.picked(1, f"a {first}", lists[first]())
    return asked.shown(plan.explain(chosen))  # pyright: ignore[reportArgumentType]


def _no_value(asked: Asked, lists: Mapping[str, Callable[[], Sequence[object]]]) -> None:
    """Raises Error for a number, a kind or a list, where the name of a value is expected."""
    said = asked.said[0]
    if said.isdecimal():
        fits = [name for name, found in lists.items() if 0 < int(said) <= len(found())]
        ways = " or ".join(f"`explain {name} {said}`" for name in fits or lists)
        asked.fail(0, f"a number alone names nothing to explain, got `{said}`", f"write {ways}")
    if said in lists:
        count = len(lists[said]())
        there = f"{there_are(count)}, as `explain {said} 1`" if count else "there are none"
        asked.fail(0, f"`explain {said}` needs a number", there)
    if said in COLLECTIVES:
        asked.fail(0, f"`{said}` is a kind of collective", f"`collectives {said}` lists them, with their numbers")


@command("look", "collectives [KIND | VALUES] [all]", "collectives all_reduce", "kind", "all", "all")
def collectives(asked: Asked) -> str:
    """The collectives of a call, with their numbers.

    All of them, those of a kind, of values, or `over AXIS`: each with its value, bytes, source line and tactic.

    collectives over model     -->     h  all_reduce  model  1  131,072  dot_general  mlp.py:13  2
    """
    every, addresses = asked.plan.collectives(), asked.plan.source.addresses

    def notes(found: Sequence[Collective]) -> Sequence[str]:
        return [*every.shape.notes(found), "`explain collective NUMBER` says why one runs"]

    shape = replace(every.shape, notes=notes)
    said = [each for each in asked.said if each != ALL]
    if not said:
        return asked.shown(Listing(every, shape))
    first = said[0]
    if first == "over" and len(said) > 1:
        axes = asked.plan.mesh.parts(said[1])
        kept = [each for each in every if set(axes) & set(each.axes)]
    elif first in COLLECTIVES:
        kept = [each for each in every if each.kind == first]
    elif first.isdecimal() and addresses.by_name(first) is None:
        title = f"expected a kind, values or `over AXIS`, got the number `{first}`"
        asked.fail(asked.said.index(first), title, f"write `explain collective {first}`")
    else:
        accepts = pattern(first).fullmatch
        kept = [each for each in every if accepts(each.value)]
        if not kept:
            addresses.find(first)
    return asked.shown(Listing(kept, shape))


@command("look", "conflicts [NUMBER]", "conflicts 1", "number", slow="trying the ways out")
def conflicts(asked: Asked) -> str:
    """The open conflicts, or one of them with its ways out.

    Each way out is tried, and shown with what it costs, as is what it costs to leave the conflict open.

    conflicts 1     -->     1: tile('add#0', 0, 'data'): 192 bytes received ...
    """
    plan = asked.plan
    if not asked.words:
        lines = [f"{at}: {conflict(plan, key)!r}" for at, key in enumerate(open_keys(plan), 1)]
        return "\n".join(lines) or "no open conflicts"
    found, chosen = asked.conflict(0), int(asked.said[0])
    ways = [f"  {at}: {way!r}" for at, way in enumerate(found.resolutions, 1)] or ["  no tactic resolves it alone"]
    return "\n".join([repr(found), found.left_open, f"ways out, `resolve {chosen} 1` takes the first:", *ways])


@command("look", "rewrites [all]", "rewrites", "all", slow="trying the rules")
def rewrites(asked: Asked) -> Answer:
    """The places where laws apply, and the savings of each.

    The best come first. `rewrite("LAW", at="...")` applies one. A terminal shows the places at once, and what each saves as
    it is tried. Ctrl-C stops that and keeps what is known.

    rewrites     -->     reassociate  dot_general#3  1  1,024  65,536  4,096
    """
    trials = tried_rewrites(asked.plan, whole=bool(asked.words))
    return Answer(asked.session, as_text(next(trials), asked.session.width), later=(partial(as_text, each) for each in trials))


@command("look", "annotations", "annotations")
def annotations(asked: Asked) -> str:
    """Layouts that the program asks for, and their state."""
    return "\n".join(map(str, asked.plan.annotations)) or "the program has no annotations"


@command("look", "memory [all]", "memory", "all", slow="laying out the memory of a device")
def memory(asked: Asked) -> str:
    """The most bytes that one device stores at one time."""
    return asked.shown(asked.plan.memory())


@command("look", "loops [all]", "loops", "all", slow="looking at the loops")
def loops(asked: Asked) -> str:
    """The loops in which ranges run, and what ends them.

    Their flops, and what each carries and stores. Below them is what later loops compute again, or read from memory, with the
    cost of the other way.

    loops     -->     t:8   1   4.20 MFLOP   4.00 KiB   0 bytes   0 bytes
    """
    return asked.shown(asked.plan.loops())


@command("look", "transfers [all]", "transfers", "all")
def transfers(asked: Asked) -> str:
    """What crosses between device sets, for which ops.

    transfers     -->     block0   stage=0   stage=1   512   dot_general
    """
    return asked.shown(asked.plan.transfers())


@command("look", "blocked [NUMBER | all]", "blocked", "all", slow="trying what could be done")
def blocked(asked: Asked) -> str:
    """Where propagation stopped, why, and what to do.

    In a large program what to do is tried only for one stop, given by its number.

    blocked 1     -->     help: tile another dim here: `tile sort#0.1 @data`
    """
    found = asked.plan.blocked
    if asked.words and not asked.is_whole:
        chosen = asked.picked(0, "a stop", found)
        return "\n".join([chosen.title, f"  {chosen.cost}", f"  {_cured(chosen)}"])
    return asked.shown(Listing(found, replace(found.shape, number=by_index(found))))


def _cured(stop: Stop) -> str:
    """The help for a stop: a tactic that was tried, or advice."""
    if (found := stop.cure) is None:
        return f"help: {stop.advice}" if stop.advice else "no tactic was found with which it does not stop here"
    write = cure_command(stop.number) if found.place else ""
    return f"help: {write}{found!r}"


@command("look", "silent [all]", "silent", "all", slow="adding up what is in excess")
def silent(asked: Asked) -> str:
    """What is stored or computed redundantly, most first."""
    return asked.shown(asked.plan.silent())


@command("look", "diff [BRANCH | NUMBER] [full | all]", "diff 1", "before", "full", slow="comparing")
def diff(asked: Asked) -> str:
    """What has changed since a step, or from another branch.

    Without a number or a branch, since the step before. `full` adds memory and flops, for which a large program takes seconds;
    a small one always has them. `all` adds every layout.
    """
    since = [word for word in asked.words if word.text not in ("full", ALL)]
    before, plan = _before(replace(asked, words=since)), asked.plan
    if len(since) < len(asked.words) or len(plan.source.program.nodes) < LARGE:
        return asked.shown(plan.diff(before))
    return "\n".join([*changes(before, plan, most=20), "memory and flops: `diff full`"])


def _before(asked: Asked) -> Plan:
    branch = asked.session.branch
    if not asked.words:
        return branch.plans[max(branch.at - 1, 0)]
    (said,) = asked.said
    if said.isdecimal():
        return branch.plans[0 if said == "0" else asked.number(0, "a step of this branch", branch.at)]
    return asked.session.named(said)


@command("look", "bytes", "bytes")
def received(asked: Asked) -> str:
    """The bytes that a device receives in a call, by axes."""
    rows = [f"{of_bytes(count)} over {', '.join(axes)}" for axes, count in bytes_by_axes(asked.plan).items()]
    return "\n".join([f"{of_bytes(asked.plan.bytes_per_device())} in a call", *rows])
