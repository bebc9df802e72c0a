"""The command `help`: all commands and tactics on a screen, or one of them in full. Also the commands that clear and quit."""

import inspect
import re
from textwrap import fill, wrap

from ...dialects.ground.errors import did_you_mean
from ..api.plan import Plan
from ..api.tactics import Tactic
from ..plan.named_laws import law_descriptions
from .answer import Answer
from .command_table import GROUPS, TABLE, Asked, command, known_words
from .typed_tactics import calls, first_line

STATEMENTS = {
    "tile params/w1.1 @model": "A dim of a value, or of several.",
    "tile range batch over data": "All dims of a range.",
    "replicate params/w2 @model": "Keeps values whole along an axis.",
    "name batch/x.0 as B": "Names a range.",
    "propagate data": "Carries on claims along an axis.",
    'ZeRO(3, "data", params="params")': "A tactic; the others are:",
}
"""The statements of a plan, as `help` shows them."""


@command("other", "help [NAME]", "help tile", "help")
def help(asked: Asked) -> str:
    """The commands and tactics, or one with a picture."""
    if not asked.words:
        return "\n".join(_overview(asked.session.width))
    (name,) = asked.said
    if (law := law_descriptions().get(name)) is not None and name not in TABLE:
        return f'rewrite("{name}", at="...")\n\n{law}'
    of_plan = name in known_words() or name in calls()
    documented = TABLE[name].run if name in TABLE else Tactic.known.get(name) or (getattr(Plan, name) if of_plan else None)
    if documented is None:
        names = (*known_words(), *calls(), *law_descriptions())
        asked.fail(0, f"there is no help on `{name}`", *did_you_mean(name, names, "`help` lists what there is", most=3))
    said = inspect.cleandoc(documented.__doc__ or "")
    usage = TABLE[name].usage if name in TABLE else next((each for each in STATEMENTS if each.split()[0] == name), "")
    return "\n\n".join(filter(None, [usage, _filled(said, asked.session.width)]))


def _filled(text: str, width: int) -> str:
    """A docstring with its paragraphs wrapped to the screen. Indented lines, and paragraphs with an arrow, stay as they are."""
    return "\n\n".join(each if re.search(r"^\s|-->", each, re.MULTILINE) else fill(each, width) for each in text.split("\n\n"))


def _overview(width: int) -> list[str]:
    lines = ["Tactics change the plan; they are what a `plan` block holds:"]
    lines += [row for example, what in STATEMENTS.items() for row in _row(example, what, 34, width)]
    lines += _row("", ", ".join(name for name in calls() if name != "ZeRO"), 0, width)
    for group, title in GROUPS.items():
        lines += ["", f"{title}:"]
        for each in (each for each in TABLE.values() if each.group == group):
            lines += _row(each.example, first_line(each.run), 22, width)
    return [*lines, "", "`help NAME` describes one of them, `help tile` or `help ZeRO`."]


def _row(left: str, right: str, room: int, width: int) -> list[str]:
    """An example and its description, which may take several lines."""
    rows = wrap(right, max(width - room - 4, 20))
    return [f"  {left:{room}}  {rows[0]}", *(f"{'':{room + 4}}{row}" for row in rows[1:])]


@command("other", "clear", "clear")
def clear(asked: Asked) -> Answer:
    """Clears the screen, as Ctrl-L does."""
    return Answer(asked.session, clears=True)


@command("other", "quit", "quit")
def quit(asked: Asked) -> Answer:
    """Ends the session, as Ctrl-D does."""
    return Answer(asked.session, ends=True)
