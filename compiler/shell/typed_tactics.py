"""Typed tactics: the statements of `plan` blocks, several to a line if `;` separates them, each a step of the session."""

import re

from ...dialects.grammar import phrases
from ..api.notation_plans import steps_of
from ..api.tactic_text import ACTIONS
from ..api.tactics import Tactic
from ..notation.check import CheckedFile
from ..notation.diagnostics import Text
from ..notation.parse import tree
from .answer import Answer
from .session import Session
from .step_changes import changes
from .typed_line import Typed

STATEMENTS = ("tile", "replicate", "name", "propagate")
"""The words that begin a statement; any other tactic is a call."""


def is_tactic(typed: Typed) -> bool:
    """Whether the line is a statement or a call, and not a command."""
    first = typed.words[0].text
    return first in STATEMENTS or "(" in first or typed.alone[typed.words[0].end :].lstrip().startswith("(")


def calls() -> dict[str, str]:
    """The tactics that can be called, each with its summary."""
    return {name: first_line(each) for name, each in Tactic.known.items()} | {
        name: "" for name in ACTIONS if name not in STATEMENTS
    }


def first_line(documented: object) -> str:
    """The first line of a docstring."""
    return (documented.__doc__ or "").strip().partition("\n")[0]


# The prefix that Python has before the name of a tactic.
_BEFORE = re.compile(r"(^\s*|;\s*)(pt\.|plan\.)(?=\w+\()")


def apply_line(session: Session, typed: Typed) -> Answer:
    """Applies the tactics of a line, each as a step. Raises Error if one is refused; then none of them is applied."""
    # In tactics pasted from Python, `pt.` and `plan.` are blanked out.
    said = _BEFORE.sub(lambda found: found[1] + " " * len(found[2]), typed.alone)
    text = Text(typed.file, "\n" * (typed.number - 1) + said)
    program = CheckedFile(text, session.origin.mesh, {}, {}, {})
    before = session.plan
    for node in phrases(tree(text, "line")):
        plan = session.plan
        for step in steps_of(program, node):
            plan = plan.apply(step)
        session = session.then(plan)
    return Answer(session, "\n".join(changes(before, session.plan)))
