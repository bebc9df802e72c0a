"""Replaying a trace: the text of tactics, a call a line, read back without evaluating anything.

DataParallel(axis='data', inputs='batch/*')
tile('params/w1', 1, 'model')
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable

from ...dialects.errors import Error, Place, nearest
from ..inputs.checks import shown
from . import tactics
from .plan import Plan

LIBRARY = ("Tile", "Replicate", "DataParallel", "ExpertParallel", "ZeRO", "Megatron")
ACTIONS = ("tile", "replicate", "name", "propagate")
HELP = f"write a call of {', '.join((*LIBRARY, *ACTIONS))} with literal arguments"


def tactics_of(text: str) -> list[Callable[[Plan], Plan]]:
    """The tactics that the lines say, in order. Raises Error, with the line, for one that says none."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        helps = ["give it the text `plan.trace`", "tactics that are no text: pt.plan(fn, mesh, *args).apply(*tactics)"]
        raise Error(f"{shown(text)} is no text of tactics", helps=helps)
    found: list[Callable[[Plan], Plan]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            start = len(line) - len(line.lstrip())
            found.append(_tactic(line.strip(), Place("tactics", number, start + 1, len(line.rstrip()) + 1, line)))
    return found


def _tactic(line: str, place: Place) -> Callable[[Plan], Plan]:
    name, args, kwargs = _call(line, place)
    if name in LIBRARY:
        make = getattr(tactics, name)
    elif name in ACTIONS:
        make = getattr(Plan, name)
        args = [None, *args]
    else:
        near = nearest(name, (*LIBRARY, *ACTIONS))
        helps = [f"did you mean {' or '.join(f'`{each}`' for each in near)}?"] if near else [HELP]
        raise Error(f"there is no tactic `{name}`", place=place, helps=helps)
    try:
        inspect.signature(make).bind(*args, **kwargs)
    except TypeError as error:
        raise Error(f"`{name}` takes other arguments", place=place, label=str(error), helps=[_shown(name, make)]) from None

    def tactic(plan: Plan) -> Plan:
        try:
            return make(*args, **kwargs)(plan) if name in LIBRARY else make(plan, *args[1:], **kwargs)
        except Error as error:
            # The line is what the reader of a trace can put right.
            raise Error(error.title, place=place, label=error.label, notes=error.notes, helps=error.helps) from error

    return tactic


def _call(line: str, place: Place) -> tuple[str, list[object], dict[str, object]]:
    """The name and the arguments of the call that a line is."""

    def no_tactic(why: str) -> Error:
        return Error("this line is no tactic", place=place, label=why, helps=[HELP])

    try:
        call = ast.parse(line, mode="eval").body
    except SyntaxError as error:
        raise no_tactic(error.msg) from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise no_tactic("not a call of a name")
    values = {"": call.args, **{each.arg or "**": [each.value] for each in call.keywords}}
    found: dict[str, list[object]] = {}
    for key, nodes in values.items():
        found[key] = []
        for each in nodes:
            try:
                found[key].append(ast.literal_eval(each))
            except ValueError:
                raise no_tactic(f"`{ast.unparse(each)}` is no literal") from None
    if "**" in found:
        raise no_tactic("`**` is no literal")
    return call.func.id, found.pop(""), {key: value for key, (value,) in found.items()}


def _shown(name: str, make: Callable[..., object]) -> str:
    names = [each for each in inspect.signature(make).parameters if each != "self"]
    return f"it takes {name}({', '.join(names)})"
