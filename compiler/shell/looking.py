"""Commands that look at the plan."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from ...dialects.english import of_bytes
from ..api.plan import Plan
from ..inputs.names import pattern
from ..notation.statements import statement
from ..plan.collectives import bytes_by_axes
from ..plan.conflicts import conflict, open_keys
from ..plan.counts import KINDS
from ..plan.prefixes import start_mesh
from ..plan.rewrites import tried
from ..plan.stops import Stop
from ..views.listing import Listing, Shape
from ..views.view import View
from .answers import Answer, shown
from .changes import changes
from .commands import command, number
from .session import Session
from .typed import Typed, Word

Words = Sequence[Word]
Some = TypeVar("Some")

ALL = "all"
"""The last word of a command that wants all of its answer, instead of a screen of it."""
LARGE = 2_000
"""The ops of a program from which `diff` leaves out memory and flops, unless they are asked for."""


class Cut(Protocol):
    """An answer that shows a screen of itself, and how to get all of it."""

    def all(self) -> View: ...


def _shown(session: Session, what: Cut, words: Words) -> Answer:
    """An answer; all of it if the last word is `all`."""
    return Answer(session, shown(what.all() if _is_all(words) else what, session.width))


def _is_all(words: Words) -> bool:
    return bool(words) and words[-1].text == ALL


def _numbered(listed: Listing[Some]) -> Shape[Some]:
    """The shape of a listing with the numbers by which `explain` takes its items."""
    numbers = {id(each): number for number, each in enumerate(listed, 1)}

    def number_of(each: Some) -> int:
        return numbers[id(each)]

    return replace(listed.shape, number=number_of)


@command("look", "show [VALUES] [all]", "show params/**", "value", "all")
def show(session: Session, typed: Typed, words: Words) -> Answer:
    """The layouts of values: of arguments and results, or of those that a pattern matches. `all` shows every row.

    show w*     -->     w1  f32[256, model*512]
                        w2  f32[model*512, 256]
    """
    globs = [word.text for word in words if word.text != ALL]
    return _shown(session, session.plan.layout(globs or "**"), words)


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


@command("look", "ranges [all]", "ranges", "all")
def ranges(session: Session, typed: Typed, words: Words) -> Answer:
    """The ranges of the program, by whose names `tile range NAME over AXIS` tiles all of their dims."""
    return _shown(session, session.plan.ranges(), words)


@command("look", "explain VALUE [NUMBER] [all]", "explain params/w1", "reason", "number", "all")
def explain(session: Session, typed: Typed, words: Words) -> Answer:
    """Why values have their layouts; why a collective runs, `explain collective 3`; what a conflict or a stop is about.

    explain w1     -->     w1: f32[data*2, 16]
                             dim 0 on `data`: decided by 2: tile('w1', 0, 'data')
    """
    plan, first, asked = session.plan, words[0].text, words[: -1 if _is_all(words[1:]) else None]
    lists: dict[str, Callable[[], Sequence[object]]] = {
        "collective": plan.collectives,
        "conflict": lambda: plan.conflicts,
        "stop": lambda: plan.blocked,
    }
    if len(asked) < 2:
        if first.isdecimal() and plan.source.addresses.by_name(first) is None:
            fits = [name for name, found in lists.items() if 0 < int(first) <= len(found())]
            ways = " or ".join(f"`explain {name} {first}`" for name in fits or lists)
            typed.fail(words[0], f"a number alone names nothing to explain, got `{first}`", f"write {ways}")
        return _shown(session, plan.explain(first), words[1:])
    if first not in lists:
        ways = "write `explain VALUE`, `explain collective 3`, `explain conflict 1` or `explain stop 1`"
        typed.fail(words[0], f"`{first}` is not a list", ways)
    found = lists[first]()
    chosen = found[number(typed, words[1], f"a {first}", len(found)) - 1]
    return _shown(session, plan.explain(chosen), words[2:])  # pyright: ignore[reportArgumentType]


@command("look", "collectives [KIND | VALUES] [all]", "collectives all_reduce", "kind", "all", "all")
def collectives(session: Session, typed: Typed, words: Words) -> Answer:
    """The collectives of a call, with value, bytes, source line and tactic: all, of a kind, of values, or `over AXIS`.

    collectives over model     -->     h  all_reduce  model  1  131,072  dot_general  mlp.py:13  2
    """
    every = session.plan.collectives()
    shape = _numbered(every)
    asked = [word for word in words if word.text != ALL]
    if not asked:
        return _shown(session, Listing(every, shape), words)
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
    return _shown(session, Listing(kept, shape), words)


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
    return Answer(session, shown(next(trials), session.width), later=(partial(shown, each) for each in trials))


@command("look", "annotations", "annotations")
def annotations(session: Session, typed: Typed, words: Words) -> Answer:
    """What the program itself says about layouts, and what became of it."""
    return Answer(session, "\n".join(map(str, session.plan.annotations)) or "the program has no annotations")


@command("look", "memory [all]", "memory", "all", slow="laying out the memory of a device")
def memory(session: Session, typed: Typed, words: Words) -> Answer:
    """The most bytes that one device stores at one time, by value and source line."""
    return _shown(session, session.plan.memory(), words)


@command("look", "blocked [NUMBER | all]", "blocked", "all", slow="trying what could be done")
def blocked(session: Session, typed: Typed, words: Words) -> Answer:
    """Where propagation stopped, why, what that costs and what to do; in a large program, for the stop of a number.

    blocked 1     -->     help: tile another dim here: `tile sort#0.1 @data`
    """
    found = session.plan.blocked
    if words and not _is_all(words):
        chosen = found[number(typed, words[0], "a stop", len(found)) - 1]
        return Answer(session, "\n".join([chosen.title, f"  {chosen.cost}", f"  {_cured(chosen)}"]))
    return _shown(session, Listing(found, _numbered(found)), words)


def _cured(stop: Stop) -> str:
    """What to do where propagation stops. It is tried."""
    if (found := stop.cure) is None:
        return f"help: {stop.advice}" if stop.advice else "no tactic was found with which it does not stop here"
    return f"help: {found!r}"


@command("look", "silent [all]", "silent", "all", slow="adding up what is in excess")
def silent(session: Session, typed: Typed, words: Words) -> Answer:
    """What several devices store or compute although one would do, the most expensive first."""
    return _shown(session, session.plan.silent(), words)


@command("look", "diff [BRANCH | NUMBER] [full | all]", "diff 1", "before", "full", slow="comparing")
def diff(session: Session, typed: Typed, words: Words) -> Answer:
    """What has changed since the step before, since the tactic of a number, or from another branch to this one.

    `full` adds memory and flops, for which a large program takes seconds; a small one always has them. `all` adds every layout.
    """
    asked = [word for word in words if word.text not in ("full", ALL)]
    before, plan = _before(session, typed, asked), session.plan
    if len(asked) < len(words) or len(plan.source.program.nodes) < LARGE:
        return _shown(session, plan.diff(before), words)
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
