"""Commands that look at the plan."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ...dialects.english import of_bytes
from ..api.plan import Plan
from ..inputs.names import pattern
from ..notation.statements import statement
from ..plan.collectives import Collective, bytes_by_axes
from ..plan.conflicts import conflict, open_keys
from ..plan.counts import KINDS
from ..plan.prefixes import start_mesh
from ..plan.rewrites import tried
from ..views.listing import Listing, Shape, Table
from ..views.view import Cell
from .answers import Answer, shown
from .changes import changes
from .commands import command, number
from .session import Session
from .typed import Typed, Word

Words = Sequence[Word]
Some = TypeVar("Some")

LARGE = 2_000
"""The ops of a program from which `diff` leaves out memory and flops, unless they are asked for."""


WIDE = 140
"""The columns that a table of collectives with all that is known of them takes."""
_COLUMNS = ("value", "collective", "over", "times", "total bytes", "at", "tactic")


def _sent(each: Collective) -> Sequence[Cell]:
    """The row of a collective where there is less room."""
    return each.value, each.kind, ", ".join(each.axes), each.times, each.total_bytes, each.at, each.numbers


def _all(session: Session, what: Listing[Some] | Table, words: Words) -> Answer:
    """A listing; all of its rows if the last word is `all`."""
    is_whole = bool(words) and words[-1].text == "all"
    return Answer(session, shown(what.all() if is_whole else what, session.width))


@command("look", "show [VALUES] [all]", "show params/**", "value", "all")
def show(session: Session, typed: Typed, words: Words) -> Answer:
    """The layouts of values: of arguments and results, or of those that a pattern matches. `all` shows every row.

    show w*     -->     w1  f32[256, model*512]
                        w2  f32[model*512, 256]
    """
    globs = [word.text for word in words if word.text != "all"]
    table = session.plan.layout(globs or "**")
    return Answer(session, shown(table.all() if words and words[-1].text == "all" else table, session.width))


@command("look", "plan", "plan", slow="asking the plan everything")
def plan(session: Session, typed: Typed, words: Words) -> Answer:
    """The whole plan on one screen: tactics, collectives, bytes, flops, memory, conflicts, stops, what is in excess."""
    return Answer(session, str(session.plan))


@command("look", "history", "history")
def history(session: Session, typed: Typed, words: Words) -> Answer:
    """The tactics so far, with the numbers by which answers cite them, as `save` writes them."""
    lines = [f"mesh {start_mesh(session.plan)}"]
    lines += [f"{number}: {statement(action.text)}" for number, action in enumerate(session.plan.actions, 1)]
    return Answer(session, "\n".join(lines if len(lines) > 1 else [*lines, "no tactics so far"]))


@command("look", "ranges", "ranges")
def ranges(session: Session, typed: Typed, words: Words) -> Answer:
    """The ranges of the program, by whose names `tile range NAME over AXIS` tiles all of their dims."""
    return _all(session, session.plan.ranges(), words)


@command("look", "explain VALUE [NUMBER]", "explain params/w1", "reason", "number")
def explain(session: Session, typed: Typed, words: Words) -> Answer:
    """Why values have their layouts; why a collective runs, `explain collective 3`; what a conflict or a stop is about.

    explain w1     -->     w1: f32[data*2, 16]
                             dim 0 on `data`: decided by 2: tile('w1', 0, 'data')
    """
    plan, first = session.plan, words[0].text
    lists: dict[str, Callable[[], Sequence[object]]] = {
        "collective": plan.collectives,
        "conflict": lambda: plan.conflicts,
        "stop": lambda: plan.blocked,
    }
    if len(words) < 2:
        if first.isdecimal() and plan.source.addresses.by_name(first) is None:
            fits = [name for name, found in lists.items() if 0 < int(first) <= len(found())]
            ways = " or ".join(f"`explain {name} {first}`" for name in fits or lists)
            typed.fail(words[0], f"a number alone names nothing to explain, got `{first}`", f"write {ways}")
        return Answer(session, str(plan.explain(first)))
    if first not in lists:
        ways = "write `explain VALUE`, `explain collective 3`, `explain conflict 1` or `explain stop 1`"
        typed.fail(words[0], f"`{first}` is not a list", ways)
    found = lists[first]()
    chosen = found[number(typed, words[1], f"a {first}", len(found)) - 1]
    return Answer(session, str(plan.explain(chosen)))  # pyright: ignore[reportArgumentType]


@command("look", "collectives [KIND | VALUES] [all]", "collectives all_reduce", "kind", "all", "all")
def collectives(session: Session, typed: Typed, words: Words) -> Answer:
    """The collectives of a call, with value, bytes, source line and tactic: all, of a kind, of values, or `over AXIS`.

    collectives over model     -->     h  all_reduce  model  1  131,072  dot_general  mlp.py:13  2
    """
    every = session.plan.collectives()
    every.shape = Shape(every.shape.of, _COLUMNS, _sent, every.shape.notes) if session.width < WIDE else every.shape
    asked = [word for word in words if word.text != "all"]
    if not asked:
        return _all(session, every, words)
    first = asked[0].text
    if first == "over" and len(asked) > 1:
        axes = session.plan.mesh.parts(asked[1].text)
        kept = [each for each in every if set(axes) & set(each.axes)]
    elif first in KINDS:
        kept = [each for each in every if each.kind == first]
    else:
        accepts = pattern(first).fullmatch
        kept = [each for each in every if accepts(each.value)]
        if not kept:
            session.plan.source.addresses.find(first)
    return _all(session, Listing(kept, every.shape), words)


@command("look", "conflicts [NUMBER]", "conflicts 1", "number", slow="trying the ways out")
def conflicts(session: Session, typed: Typed, words: Words) -> Answer:
    """The open conflicts; of one, the claims and the ways out, each with what it costs: they are tried.

    conflicts 1     -->     1: tile('add#0', 0, 'data'): 192 bytes received ...
    """
    plan = session.plan
    keys = open_keys(plan)
    if not words:
        lines = [f"{number}: {conflict(plan, key)!r}" for number, key in enumerate(keys, 1)]
        return Answer(session, "\n".join(lines) or "no open conflicts")
    chosen = number(typed, words[0], "an open conflict", len(keys))
    found = conflict(plan, keys[chosen - 1])
    ways = [f"  {at}: {way!r}" for at, way in enumerate(found.resolutions, 1)] or ["  no tactic resolves it alone"]
    return Answer(session, "\n".join([repr(found), f"ways out, `resolve {chosen} 1` takes the first:", *ways]))


@command("look", "rewrites [all]", "rewrites", "all", slow="trying the rules")
def rewrites(session: Session, typed: Typed, words: Words) -> Answer:
    """Where which law applies to the program, and what that would save, best first. `rewrite("LAW", at="...")` applies one.

    A terminal shows the places at once, and what each saves as it is tried. Ctrl-C stops that and keeps what is known.

    rewrites     -->     reassociate  dot_general#3  1  1,024  65,536  4,096
    """
    trials = tried(session.plan, whole=bool(words))
    return Answer(session, shown(next(trials), session.width), later=trials)


@command("look", "memory", "memory", slow="laying out the memory of a device")
def memory(session: Session, typed: Typed, words: Words) -> Answer:
    """The most bytes that one device stores at one time, by value and source line."""
    return Answer(session, str(session.plan.memory()))


@command("look", "blocked", "blocked")
def blocked(session: Session, typed: Typed, words: Words) -> Answer:
    """Where propagation stopped, why, what that costs and what to do."""
    return _all(session, session.plan.blocked, words)


@command("look", "silent [all]", "silent", "all", slow="adding up what is in excess")
def silent(session: Session, typed: Typed, words: Words) -> Answer:
    """What several devices store or compute although one would do, the most expensive first."""
    return _all(session, session.plan.silent(), words)


@command("look", "diff [BRANCH | NUMBER] [full]", "diff 1", "before", "full", slow="comparing")
def diff(session: Session, typed: Typed, words: Words) -> Answer:
    """What has changed since the step before, since the tactic of a number, or from another branch to this one.

    `full` adds memory and flops, for which a large program takes seconds; a small one always has them.
    """
    asked = [word for word in words if word.text != "full"]
    before, plan = _before(session, typed, asked), session.plan
    if len(asked) < len(words) or len(plan.source.program.nodes) < LARGE:
        return Answer(session, str(plan.diff(before)))
    return Answer(session, "\n".join([*changes(before, plan, most=20), "memory and flops: `diff full`"]))


def _before(session: Session, typed: Typed, words: Words) -> Plan:
    branch = session.branch
    if not words:
        return branch.plans[max(branch.at - 1, 0)]
    if words[0].text.isdecimal():
        return branch.plans[0 if words[0].text == "0" else number(typed, words[0], "a step of this branch", branch.at)]
    return session.named(words[0].text)


@command("look", "bytes", "bytes")
def received(session: Session, typed: Typed, words: Words) -> Answer:
    """The bytes that a device receives in one call, by the axes over which they come."""
    rows = [f"{of_bytes(count)} over {', '.join(axes)}" for axes, count in bytes_by_axes(session.plan).items()]
    return Answer(session, "\n".join([f"{of_bytes(session.plan.bytes_per_device())} in a call", *rows]))
