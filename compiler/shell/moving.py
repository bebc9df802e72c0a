"""Commands that undo, redo and branch, and that change a plan otherwise than by a typed tactic."""

from ...dialects.ground.english import counted
from ...dialects.ground.errors import Error
from ..advice.open_conflicts import open_keys
from ..api.notation import load as load_file
from ..api.plan_file import Replayed
from ..api.tactics import Resolve
from ..notation.statements import statement
from .answers import Answer, standing
from .changes import changes
from .commands import Words, command, number, picked, picked_conflict
from .session import Session
from .typed import Typed


def _said(before: Session, after: Session, *first: str) -> Answer:
    return Answer(after, "\n".join([*first, *changes(before.plan, after.plan)]))


def _moved(session: Session, steps: int, word: str) -> Answer:
    """Moves a branch by some steps; answers with the tactics of these steps."""
    after = session.at(session.branch.moved(steps))
    less, more = sorted((session.plan, after.plan), key=lambda plan: len(plan.actions))
    texts = [statement(action.text) for action in more.actions[len(less.actions) :]]
    return _said(session, after, *([f"{word} {'; '.join(texts)}"] if texts else []))


def _steps(typed: Typed, words: Words) -> int:
    if words and not (words[0].text.isdecimal() and int(words[0].text)):
        typed.fail(words[0], f"expected a number of steps above 0, got `{words[0].text}`")
    return int(words[0].text) if words else 1


@command("move", "undo [STEPS]", "undo", "number")
def undo(session: Session, typed: Typed, words: Words) -> Answer:
    """Goes back one step of this branch, or several."""
    return _moved(session, -_steps(typed, words), "without")


@command("move", "redo [STEPS]", "redo", "number")
def redo(session: Session, typed: Typed, words: Words) -> Answer:
    """Repeats what `undo` took back."""
    return _moved(session, _steps(typed, words), "again")


@command("move", "branch [NAME]", "branch wide", "branch")
def branch(session: Session, typed: Typed, words: Words) -> Answer | str:
    """Goes to a branch, or begins one; alone, lists them.

    branch wide     -->     another plan from here on; `branch main` goes back, `diff main` compares the two
    """
    if words and not words[0].text.strip():
        typed.fail(words[0], "a branch needs a name", "write `branch wide`, or `branch` alone to list the branches")
    if words:
        moved = session.on(words[0].text)
        return _said(session, moved) if words[0].text in session.branches else Answer(moved, f"`{moved.here}` begins here")
    listed = {name: standing(each.plan) for name, each in session.branches.items()}
    return "\n".join(f"{'*' if name == session.here else ' '} {name}: {said}" for name, said in listed.items())


@command("change", "resolve NUMBER [WAY]", "resolve 1", "number", "number", slow="trying the ways out")
def resolve(session: Session, typed: Typed, words: Words) -> Answer | str:
    """Takes the fastest way out of a conflict, or another.

    `resolve all` takes the fastest one of each conflict.

    resolve 1 2     -->     the second way of `conflicts 1`
    """
    plan = session.plan
    if words[0].text == "all" and len(words) == 1:
        if not open_keys(plan):
            return "no open conflicts"
        return _said(session, session.then(plan.apply(Resolve())))
    chosen = picked_conflict(session, typed, words[0])
    ways = chosen.resolutions
    if not ways:
        raise Error("no tactic resolves this conflict alone", helps=["`undo`, and place one of the values before"])
    way = number(typed, words[1], "a way out", len(ways)) if len(words) > 1 else 1
    return _said(session, session.then(plan.resolve(chosen, ways[way - 1])))


@command("change", "cure NUMBER", "cure 1", "number", slow="trying what could be done")
def cure(session: Session, typed: Typed, words: Words) -> Answer:
    """Takes the cure of a stop: `blocked 1` shows it.

    It may also put a tactic before an earlier one, or in its place. `undo` goes back to what was before.
    """
    chosen = picked(typed, words[0], "a stop", session.plan.blocked)
    if chosen.cure is None:
        raise Error("no tactic was found with which it does not stop here", helps=[chosen.advice] if chosen.advice else [])
    return _said(session, session.then(session.plan.apply(chosen.cure)))


@command("change", "save FILE", "save plan.partita", "file")
def save(session: Session, typed: Typed, words: Words) -> str:
    """Writes the plan as a file.

    It has the mesh, the tactics, what each of them does, and the layouts. `pt.replay(fn, "plan.partita", *args)` reads it.
    """
    plan, file = session.plan, words[0].text
    plan.save(file)
    count = counted(len(plan.actions), "tactic")
    return f'{count} in {file}; in Python: pt.replay({plan.source.traced.name}, "{file}", *args)'


@command("change", "load FILE", "load plan.partita", "file")
def load(session: Session, typed: Typed, words: Words) -> Answer:
    """Begins again with the tactics of a plan file.

    It says which of them do something else than when the file was saved. It is one step: `undo` goes back to what was before.
    """
    saved = load_file(words[0].text)
    origin = session.origin
    made = Replayed.of(saved.block(function=origin.source.traced.name), origin)
    problem = made.problem(saved.file)
    after = _said(session, session.then(made.plan))
    note = [] if origin.mesh == saved.mesh else [f"`{saved.file}` is for {saved.mesh}; here the mesh is {origin.mesh}"]
    warned = [f"warning: {problem}"] if problem else []
    return Answer(after.session, "\n".join([after.text, *note, *warned]))
