"""Commands that undo, redo and branch, and that change a plan otherwise than by a typed tactic."""

from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error
from ..advice.open_conflicts import open_keys
from ..api.notation import load as load_file
from ..api.plan import Plan
from ..api.replay import Replayed
from ..api.tactics import Resolve
from ..notation.tactic_statements import statement
from .answer import Answer, standing
from .command_table import Asked, command
from .session import Session
from .step_changes import changes


def _answer_of(asked: Asked, after: Session, *first: str) -> Answer:
    return Answer(after, "\n".join([*first, *changes(asked.plan, after.plan)]))


def _step(asked: Asked, plan: Plan) -> Answer:
    return _answer_of(asked, asked.session.then(plan))


def _moved(asked: Asked, way: int, word: str) -> Answer:
    """Moves a branch by some steps; answers with the tactics of these steps."""
    steps = asked.said[0] if asked.words else "1"
    if not (steps.isdecimal() and int(steps)):
        asked.fail(0, f"expected a number of steps above 0, got `{steps}`")
    after = asked.session.at(asked.session.branch.moved(way * int(steps)))
    less, more = sorted((asked.plan, after.plan), key=lambda plan: len(plan.actions))
    texts = [statement(action.text) for action in more.actions[len(less.actions) :]]
    return _answer_of(asked, after, *([f"{word} {'; '.join(texts)}"] if texts else []))


@command("move", "undo [STEPS]", "undo", "number")
def undo(asked: Asked) -> Answer:
    """Goes back one step of this branch, or several."""
    return _moved(asked, -1, "without")


@command("move", "redo [STEPS]", "redo", "number")
def redo(asked: Asked) -> Answer:
    """Repeats what `undo` took back."""
    return _moved(asked, 1, "again")


@command("move", "branch [NAME]", "branch wide", "branch")
def branch(asked: Asked) -> Answer | str:
    """Goes to a branch, or begins one; alone, lists them.

    branch wide     -->     another plan from here on; `branch main` goes back, `diff main` compares the two
    """
    session = asked.session
    for name in asked.said:
        if not name.strip():
            asked.fail(0, "a branch needs a name", "write `branch wide`, or `branch` alone to list the branches")
        moved = session.on(name)
        return _answer_of(asked, moved) if name in session.branches else Answer(moved, f"`{name}` begins here")
    listed = {name: standing(each.plan) for name, each in session.branches.items()}
    return "\n".join(f"{'*' if name == session.here else ' '} {name}: {said}" for name, said in listed.items())


@command("change", "resolve NUMBER [WAY]", "resolve 1", "number", "number", slow="trying the ways out")
def resolve(asked: Asked) -> Answer | str:
    """Takes the fastest way out of a conflict, or another.

    `resolve all` takes the fastest one of each conflict.

    resolve 1 2     -->     the second way of `conflicts 1`
    """
    plan = asked.plan
    if asked.said == ["all"]:
        return _step(asked, plan.apply(Resolve())) if open_keys(plan) else "no open conflicts"
    chosen = asked.conflict(0)
    ways = chosen.resolutions
    if not ways:
        raise Error("no tactic resolves this conflict alone", helps=["`undo`, and place one of the values before"])
    return _step(asked, plan.resolve(chosen, asked.picked(1, "a way out", ways) if len(asked.words) > 1 else ways[0]))


@command("change", "cure NUMBER", "cure 1", "number", slow="trying what could be done")
def cure(asked: Asked) -> Answer:
    """Takes the cure of a stop: `blocked 1` shows it.

    It may also put a tactic before an earlier one, or in its place. `undo` goes back to what was before.
    """
    chosen = asked.picked(0, "a stop", asked.plan.blocked)
    if chosen.cure is None:
        raise Error("no tactic was found with which it does not stop here", helps=[chosen.advice] if chosen.advice else [])
    return _step(asked, asked.plan.apply(chosen.cure))


@command("change", "save FILE", "save plan.partita", "file")
def save(asked: Asked) -> str:
    """Writes the plan as a file.

    It has the mesh, the tactics, what each of them does, and the layouts. `pt.replay(fn, "plan.partita", *args)` reads it.
    """
    plan, (file,) = asked.plan, asked.said
    plan.save(file)
    count = counted(len(plan.actions), "tactic")
    return f'{count} in {file}; in Python: pt.replay({plan.source.traced.name}, "{file}", *args)'


@command("change", "load FILE", "load plan.partita", "file")
def load(asked: Asked) -> Answer:
    """Begins again with the tactics of a plan file.

    It says which of them do something else than when the file was saved. It is one step: `undo` goes back to what was before.
    """
    saved = load_file(asked.said[0])
    origin = asked.session.origin
    made = Replayed.of(saved.block(function=origin.source.traced.name), origin)
    problem = made.problem(saved.file)
    after = _step(asked, made.plan)
    note = [] if origin.mesh == saved.mesh else [f"`{saved.file}` is for {saved.mesh}; here the mesh is {origin.mesh}"]
    warned = [f"warning: {problem}"] if problem else []
    return Answer(after.session, "\n".join([after.text, *note, *warned]))
