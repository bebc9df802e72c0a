"""Compares a plan with its file: either it is the same, or an error says what differs, by which tactic, and what to do.

error: the plan of train_step is not that of `plan.partita`: 4 all_reduce --> 5 all_reduce
  --> plan.partita:6:3
note: its tactics are not the same:
      + tile params/w2.1 @data
note: new: all_gather of `params/w2` over data: 4096 bytes for dot_general at model.py:9, by 4: tile('params/w2', 1, 'data')
help: if this is what you want: pytest --update-plans
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...dialects.ground.amounts import at_most
from ...dialects.ground.errors import Error
from ..answers.plan_text import text_of_plan
from ..api.notation import load
from ..api.plan import Plan
from ..api.replay import Replayed
from ..cost.collectives import Collective
from ..cost.counts import COLLECTIVES
from ..inputs.files import read_text, write_text
from ..notation.tactic_statements import statement
from ..plan.history import without_tactics

MOST_COLLECTIVES = 8
"""The most collectives that a failure lists."""
UPDATE = "if this is what you want: pytest --update-plans"


def keep(plan: Plan, path: Path, update: bool) -> None:
    """Compares a plan with a file, or with `update` writes it. Raises Error if the plan differs, or if there is no file."""
    if update:
        text = text_of_plan(plan)
        if not path.exists() or read_text(path) != text:
            write_text(path, text)
        return
    if not path.exists():
        raise Error(
            f"there is no plan file `{path.name}`", notes=[f"expected {path}"], helps=["write it: pytest --update-plans"]
        )
    if problem := difference(plan, path):
        raise problem


def difference(plan: Plan, path: Path) -> Error | None:
    """The error that says what differs between a plan and its file; None if nothing does."""
    saved = load(path)
    block, mesh = saved.block(function=plan.source.traced.name), plan.source.mesh
    title = f"the plan of {plan.source.traced.name} is not that of `{path.name}`"
    if mesh != saved.mesh:
        return Error(f"{title}: its mesh is {mesh}, not {saved.mesh}", helps=[UPDATE])
    try:
        made = Replayed.of(block, without_tactics(plan))
    except Error as error:
        notes = [f"the file has a tactic that is refused: {error.title}", *error.notes]
        return Error(title, location=error.location, notes=notes, helps=[*error.helps, UPDATE])
    problem = made.problem(path.name)
    if made.plan.trace == plan.trace and problem is None:
        return None
    notes = [*(problem.notes if problem is not None else ()), *_tactics(made.plan, plan), *_collectives(made, plan)]
    helps = ["`plan.explain(value)` says which tactic decided, and why", UPDATE]
    return Error(
        title + _counts(made, plan), location=problem.location if problem is not None else None, notes=notes, helps=helps
    )


def _counts(made: Replayed, plan: Plan) -> str:
    """The counts that differ, as the end of a title."""
    was = _recorded(line.record or "" for line in made.block.lines) or Counter(made.plan.counts())
    now = plan.counts()
    changed = [f"{was[kind]} --> {times} {kind}" for kind, times in now.items() if was[kind] != times]
    return f": {', '.join(changed)}" if changed else ""


def _recorded(records: Iterable[str]) -> Counter[str]:
    """Adds up the collectives of each kind that the records of a file count."""
    found = Counter[str]()
    for record in records:
        for times, kind in re.findall(rf"(\d+) ({'|'.join(COLLECTIVES)})", record.partition(": ")[2]):
            found[kind] += int(times)
    return found


def _tactics(before: Plan, after: Plan) -> list[str]:
    """The tactics that only the file has, and those that only the plan has, as a note."""
    was, now = ([statement(action.text) for action in plan.actions] for plan in (before, after))
    changed = [line for line in difflib.ndiff(was, now) if line[:2] in ("- ", "+ ")]
    return ["\n".join(["its tactics are not those of the file:", *changed])] if changed else []


def _collectives(made: Replayed, plan: Plan) -> list[str]:
    """The collectives that are new, each with its tactic, as notes."""
    if made.plan.trace != plan.trace:
        had = Counter(map(_key, made.plan.collectives()))
        # Of those that are alike, as many as there were before are not new.
        seen = Counter[tuple[object, ...]]()
        new = list[Collective]()
        for each in plan.collectives():
            seen[_key(each)] += 1
            new += [each] if seen[_key(each)] > had[_key(each)] else []
    else:
        new = list(_more(made, plan.collectives()))
    return at_most(MOST_COLLECTIVES, [f"new: {each}" for each in new])


def _key(each: Collective) -> tuple[object, ...]:
    return each.kind, each.axes, each.value, each.use, each.times


def _more(made: Replayed, collectives: Sequence[Collective]) -> Iterator[Collective]:
    """Yields, for each tactic that causes more collectives of a kind than its record says, the last of these, each once."""
    said = set[int]()
    for line, (first, last) in zip(made.block.lines, made.spans, strict=True):
        if line.record is None:
            continue
        had = _recorded([line.record])
        caused = [each for each in collectives if any(first < cause.number <= last for cause in each.causes)]
        for kind in COLLECTIVES:
            own = [each for each in caused if each.kind == kind]
            left = sum(each.times for each in own) - had[kind]
            new = [each for each in own[-left:] if id(each) not in said] if left > 0 else []
            said.update(map(id, new))
            yield from new
