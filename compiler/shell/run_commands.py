"""Commands that lower a plan and run it on random arrays."""

from collections.abc import Mapping

from rich.console import Group
from rich.text import Text

from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error
from ..api.plan import Plan
from ..graph.graph import runner
from ..inputs.files import write_text
from ..plan.lowering import first_lines
from ..run.trial_run import enough_devices, errors, input_leaves
from ..views.view import Grid, rendered
from .command_table import Asked, command
from .lowered_forms import FORMS
from .session import Session

TOLERANCE = 0.01
"""The largest difference `
a-b
/(1e-3+
b
)` at which results agree."""
MOST_LINES = 40
"""The most lines of a lowered form that are shown."""
MOST_ROWS = 4
"""The most rows of the screen for one line: the first line has the types of all arguments and results."""


@command("try", "lower [FORM] [FILE]", "lower spmd", "form", "file", slow="lowering")
def lower(asked: Asked) -> str:
    """The lowered plan, as the program of each device.

    Other forms than `spmd` are `claims`, `decisions`, `unfused`, `ir`, `graph`, `json` and `dot`. A file takes all of it.
    Without a file, you see the first lines. Of `spmd`, no more is lowered than these.
    """
    form, *files = asked.said or ["spmd"]
    if form not in FORMS:
        asked.fail(0, f"`{form}` is not a lowered form", f"write one of {', '.join(FORMS)}")
    for file in files:
        text = str(FORMS[form](asked.plan))
        write_text(file, text.rstrip("\n") + "\n")
        return f"{len(text.splitlines()):,} lines in {file}"
    return "\n".join(_screen(asked.session, form))


def _screen(session: Session, form: str) -> list[str]:
    """The lines of a lowered form that fit on a screen, and a hint how to see the rest.

    Of `spmd`, no more is lowered than is shown: all of a large program would take seconds.
    """
    plan = session.plan
    lines, is_whole = first_lines(plan, MOST_LINES) if form == "spmd" else (str(FORMS[form](plan)).splitlines(), True)
    left, ops = len(lines) - MOST_LINES, len(plan.source.program.nodes)
    more = f"and {left:,} more lines" if is_whole else f"and so on, for {ops:,} ops of the program"
    most = session.width * MOST_ROWS
    shown = [
        line if len(line) <= most else f"{line[:most]} ... and {len(line) - most:,} more characters"
        for line in lines[:MOST_LINES]
    ]
    if left > 0 or not is_whole or shown != lines:
        shown.append(f"{more if left > 0 or not is_whole else 'lines are cut'}: `lower {form} FILE` writes all")
    return shown


def _compared(plan: Plan) -> Mapping[str, float]:
    enough_devices(plan)
    return errors(plan, input_leaves(plan, (), 0), runner(plan))


@command("try", "check", "check", slow="compiling and running both")
def check(asked: Asked) -> str:
    """Compares with the unpartitioned run, on random arrays.

    It is an error if they differ.
    """
    found = _compared(asked.plan)
    worst = max(found, key=lambda name: found[name], default="")
    if found.get(worst, 0.0) > TOLERANCE:
        helps = ["narrow floats and long sums round: compare in f32"]
        raise Error(f"`{worst}` differs from the unpartitioned run by {found[worst]:.1e}", helps=helps)
    agree = f"{counted(len(found), 'result')} {'agrees' if len(found) == 1 else 'agree'}"
    return f"{agree} with the unpartitioned run, to {found.get(worst, 0.0):.0e}"


@command("try", "run", "run", slow="compiling and running both")
def run(asked: Asked) -> str:
    """Runs the plan on random arrays.

    Each result is shown with its layout, and how far it is from the unpartitioned one.
    """
    plan = asked.plan
    found, layouts = _compared(plan), plan.layout("result")
    rows = [(name, layouts[name], f"{error:.0e}") for name, error in found.items()]
    grid = Grid(("result", "layout", "largest error"), rows)
    return rendered(Group(grid, Text(plan.counts().text())), asked.session.width)
