"""Replaying a trace: the text of tactics, a call a line, read back without evaluating anything.

    DataParallel(axis='data', inputs='batch/*')
    tile('params/w1', 1, 'model')
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..dialects.errors import Error, Place, nearest
from . import tactics
from .plan import Plan

LIBRARY = ("Tile", "Replicate", "DataParallel", "ZeRO", "Megatron")
ACTIONS = ("tile", "replicate", "name", "propagate")


def tactics_of(text: str) -> list[Callable[[Plan], Plan]]:
    """The tactics that the lines say, in order. Raises Error, with the line, for one that says none."""
    found: list[Callable[[Plan], Plan]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            found.append(_tactic(line, Place("tactics", number, 1, len(line) + 1, line)))
    return found


def _tactic(line: str, place: Place) -> Callable[[Plan], Plan]:
    try:
        call = ast.parse(line.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("it is no call")
        name = call.func.id
        args = [ast.literal_eval(each) for each in call.args]
        kwargs = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg is not None}
    except (SyntaxError, ValueError) as error:
        raise Error("this line is no tactic", place=place, label=str(error).splitlines()[0], helps=[HELP]) from None
    if name in LIBRARY:
        try:
            return getattr(tactics, name)(*args, **kwargs)
        except TypeError as error:
            raise Error(f"`{name}` takes other arguments", place=place, label=str(error)) from None
    if name not in ACTIONS:
        near = nearest(name, (*LIBRARY, *ACTIONS))
        helps = [f"did you mean {' or '.join(f'`{each}`' for each in near)}?"] if near else [HELP]
        raise Error(f"there is no tactic `{name}`", place=place, helps=helps)
    return lambda plan: getattr(plan, name)(*args, **kwargs)


HELP = f"write a call of {', '.join((*LIBRARY, *ACTIONS))} with literal arguments"
