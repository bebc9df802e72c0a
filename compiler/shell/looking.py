"""Commands that look at the plan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from ...dialects.ground.english import of_bytes, there_are
from ..advice.conflicts import conflict
from ..advice.open_conflicts import open_keys
from ..advice.rewrites import tried
from ..advice.stops import Stop
from ..api.plan import Plan
from ..cost.collectives import Collective, bytes_by_axes
from ..cost.counts import KINDS
from ..inputs.names import pattern
from ..inputs.reader import taken
from ..notation.statements import statement
from ..views.listing import Listing, by_index
from ..views.view import View
from .answers import Answer, shown
from .changes import changes
from .commands import Words, command, number, picked, picked_conflict
from .screen import described
from .session import Session
from .typed import Typed, Word

ALL = "all"
"""The last word of a command that shows its whole answer instead of a screen of it."""
LARGE = 2_000
"""The number of ops from which `diff` leaves out memory and flops, unless they are asked for."""


class Cut(Protocol):
    """An answer that shows a screen of itself, and can show all of it."""

    def all(self) -> View: ...


def _shown(session: Session, what: Cut, words: Words) -> str:
    """The text of an answer; all of it if the last word is `all`."""
    return shown(what.all() if _is_all(words) else what, session.width)


def _is_all(words: Words) -> bool:
    return bool(words) and words[-1].text == ALL


@command("look", "show [VALUES] [all]", "show params/**", "value", "all")
def show(session: Session, typed: Typed, words: Words) -> str:
    """The layouts of arguments and results, or of others.

    The values are those that a pattern matches. `all` shows every row.

    show w*     -->     w1  f32[256, model*512]
                        w2  f32[model*512, 256]
    """
    globs = [word.text for word in words if word.text != ALL]
    return _shown(session, session.plan.layout(globs or "**"), words)


@command("look", "plan", "plan", slow="asking the plan everything")
def plan(session: Session, typed: Typed, words: Words) -> str:
    """The whole plan on one screen.

    Its tactics, collectives, bytes, flops, memory, conflicts and stops, and what is redundant.
    """
    return str(session.plan)


@command("look", "program", "program")
def program(session: Session, typed: Typed, words: Words) -> str:
    """The program itself.

    Its name, file and line, its ops, the mesh, and its arguments with their shapes.
    """
    return "\n".join(described(session.plan))


@command("look", "history", "history")
def history(session: Session, typed: Typed, words: Words) -> str:
    """The tactics so far, numbered as answers cite them."""
    lines = [f"mesh {session.plan.source.mesh}"]
    lines += [f"{number}: {statement(action.text)}" for number, action in enumerate(session.plan.actions, 1)]
    return "\n".join(lines if len(lines) > 1 else [*lines, "no tactics so far"])


@command("look", "ranges [all]", "ranges", "all")
def ranges(session: Session, typed: Typed, words: Words) -> str:
    """The ranges of the program: what can be tiled.

    `tile range NAME over AXIS` tiles all dims of a range.
    """
    return _shown(session, session.plan.ranges(), words)


@command("look", "explain VALUE [NUMBER] [all]", "explain params/w1", "reason", "number", "all")
def explain(session: Session, typed: Typed, words: Words) -> str:
    """Why a value has its layout, or why a collective runs.

    A collective, a conflict or a stop is given by its number: `explain collective 3`, `explain conflict 1`, `explain stop 1`.

    explain w1     -->     w1: f32[data*2, 16]
                             dim 0 on `data`: decided by 2: tile w1.0 @data
    """
    plan, first, asked = session.plan, words[0].text, words[: -1 if _is_all(words[1:]) else None]
    lists: dict[str, Callable[[], Sequence[object]]] = {
        "collective": plan.collectives,
        "conflict": lambda: plan.conflicts,
        "stop": lambda: plan.blocked,
    }
    if len(asked) < 2:
        if plan.source.addresses.by_name(first) is None:
            _no_value(typed, words[0], lists)
        return _shown(session, plan.explain(first), words[1:])
    if first not in lists:
        ways = "write `explain VALUE`, `explain collective 3`, `explain conflict 1` or `explain stop 1`"
        typed.fail(words[0], f"`{first}` is not a list", ways)
    chosen = picked(typed, words[1], f"a {first}", lists[first]())
    return _shown(session, plan.explain(chosen), words[2:])  # pyright: ignore[reportArgumentType]


def _no_value(typed: Typed, word: Word, lists: Mapping[str, Callable[[], Sequence[object]]]) -> None:
    """Raises Error for a number, a kind or a list, where the name of a value is expected."""
    said = word.text
    if said.isdecimal():
        fits = [name for name, found in lists.items() if 0 < int(said) <= len(found())]
        ways = " or ".join(f"`explain {name} {said}`" for name in fits or lists)
        typed.fail(word, f"a number alone names nothing to explain, got `{said}`", f"write {ways}")
    if said in lists:
        count = len(lists[said]())
        there = f"{there_are(count)}, as `explain {said} 1`" if count else "there are none"
        typed.fail(word, f"`explain {said}` needs a number", there)
    if said in KINDS:
        typed.fail(word, f"`{said}` is a kind of collective", f"`collectives {said}` lists them, with their numbers")


@command("look", "collectives [KIND | VALUES] [all]", "collectives all_reduce", "kind", "all", "all")
def collectives(session: Session, typed: Typed, words: Words) -> str:
    """The collectives of a call, with their numbers.

    All of them, those of a kind, of values, or `over AXIS`: each with its value, bytes, source line and tactic.

    collectives over model     -->     h  all_reduce  model  1  131,072  dot_general  mlp.py:13  2
    """
    every = session.plan.collectives()

    def notes(found: Sequence[Collective]) -> Sequence[str]:
        return [*every.shape.notes(found), "`explain collective NUMBER` says why one runs"]

    shape = replace(every.shape, notes=notes)
    asked = [word for word in words if word.text != ALL]
    if not asked:
        return _shown(session, Listing(every, shape), words)
    first = asked[0].text
    if first == "over" and len(asked) > 1:
        axes = session.plan.mesh.parts(asked[1].text)
        kept = [each for each in every if set(axes) & set(each.axes)]
    elif first in KINDS:
        kept = [each for each in every if each.kind == first]
    elif first.isdecimal() and session.plan.source.addresses.by_name(first) is None:
        typed.fail(
            asked[0], f"expected a kind, values or `over AXIS`, got the number `{first}`", f"write `explain collective {first}`"
        )
    else:
        accepts = pattern(first).fullmatch
        kept = [each for each in every if accepts(each.value)]
        if not kept:
            session.plan.source.addresses.find(first)
    return _shown(session, Listing(kept, shape), words)


@command("look", "conflicts [NUMBER]", "conflicts 1", "number", slow="trying the ways out")
def conflicts(session: Session, typed: Typed, words: Words) -> str:
    """The open conflicts, or one of them with its ways out.

    Each way out is tried, and shown with what it costs.

    conflicts 1     -->     1: tile('add#0', 0, 'data'): 192 bytes received ...
    """
    plan = session.plan
    if not words:
        lines = [f"{at}: {conflict(plan, key)!r}" for at, key in enumerate(open_keys(plan), 1)]
        return "\n".join(lines) or "no open conflicts"
    found, chosen = picked_conflict(session, typed, words[0]), int(words[0].text)
    ways = [f"  {at}: {way!r}" for at, way in enumerate(found.resolutions, 1)] or ["  no tactic resolves it alone"]
    return "\n".join([repr(found), f"ways out, `resolve {chosen} 1` takes the first:", *ways])


@command("look", "rewrites [all]", "rewrites", "all", slow="trying the rules")
def rewrites(session: Session, typed: Typed, words: Words) -> Answer:
    """The places where laws apply, and the savings of each.

    The best come first. `rewrite("LAW", at="...")` applies one. A terminal shows the places at once, and what each saves as
    it is tried. Ctrl-C stops that and keeps what is known.

    rewrites     -->     reassociate  dot_general#3  1  1,024  65,536  4,096
    """
    trials = tried(session.plan, whole=bool(words))
    return Answer(session, shown(next(trials), session.width), later=(partial(shown, each) for each in trials))


@command("look", "annotations", "annotations")
def annotations(session: Session, typed: Typed, words: Words) -> str:
    """Layouts that the program asks for, and their state."""
    return "\n".join(map(str, session.plan.annotations)) or "the program has no annotations"


@command("look", "memory [all]", "memory", "all", slow="laying out the memory of a device")
def memory(session: Session, typed: Typed, words: Words) -> str:
    """The most bytes that one device stores at one time."""
    return _shown(session, session.plan.memory(), words)


@command("look", "blocked [NUMBER | all]", "blocked", "all", slow="trying what could be done")
def blocked(session: Session, typed: Typed, words: Words) -> str:
    """Where propagation stopped, why, and what to do.

    In a large program what to do is tried only for one stop, given by its number.

    blocked 1     -->     help: tile another dim here: `tile sort#0.1 @data`
    """
    found = session.plan.blocked
    if words and not _is_all(words):
        chosen = picked(typed, words[0], "a stop", found)
        return "\n".join([chosen.title, f"  {chosen.cost}", f"  {_cured(chosen)}"])
    return _shown(session, Listing(found, replace(found.shape, number=by_index(found))), words)


def _cured(stop: Stop) -> str:
    """The help for a stop: a tactic that was tried, or advice."""
    if (found := stop.cure) is None:
        return f"help: {stop.advice}" if stop.advice else "no tactic was found with which it does not stop here"
    write = taken(stop.number) if found.place else ""
    return f"help: {write}{found!r}"


@command("look", "silent [all]", "silent", "all", slow="adding up what is in excess")
def silent(session: Session, typed: Typed, words: Words) -> str:
    """What is stored or computed redundantly, most first."""
    return _shown(session, session.plan.silent(), words)


@command("look", "diff [BRANCH | NUMBER] [full | all]", "diff 1", "before", "full", slow="comparing")
def diff(session: Session, typed: Typed, words: Words) -> str:
    """What has changed since a step, or from another branch.

    Without a number or a branch, since the step before. `full` adds memory and flops, for which a large program takes seconds;
    a small one always has them. `all` adds every layout.
    """
    asked = [word for word in words if word.text not in ("full", ALL)]
    before, plan = _before(session, typed, asked), session.plan
    if len(asked) < len(words) or len(plan.source.program.nodes) < LARGE:
        return _shown(session, plan.diff(before), words)
    return "\n".join([*changes(before, plan, most=20), "memory and flops: `diff full`"])


def _before(session: Session, typed: Typed, words: Words) -> Plan:
    branch = session.branch
    if not words:
        return branch.plans[max(branch.at - 1, 0)]
    if words[0].text.isdecimal():
        return branch.plans[0 if words[0].text == "0" else number(typed, words[0], "a step of this branch", branch.at)]
    return session.named(words[0].text)


@command("look", "bytes", "bytes")
def received(session: Session, typed: Typed, words: Words) -> str:
    """The bytes that a device receives in a call, by axes."""
    rows = [f"{of_bytes(count)} over {', '.join(axes)}" for axes, count in bytes_by_axes(session.plan).items()]
    return "\n".join([f"{of_bytes(session.plan.bytes_per_device())} in a call", *rows])
