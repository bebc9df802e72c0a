"""Replaying a trace: tactics as text, one call per line, read back without evaluating anything.

DataParallel(axis='data', inputs='batch/*')
tile('params/w1', 1, 'model')
"""

import inspect
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import cast

from ...dialects.errors import Error, Location, did_you_mean
from ..inputs.calls import Call
from ..inputs.checks import refused
from .plan import Plan
from .tactics import Tactic, at

ACTIONS = ("tile", "replicate", "widen", "each_trip", "name", "propagate", "rewrite")
"""The methods of a plan that a trace can call."""

Step = Callable[[Plan], Plan]


def tactics_of(text: str) -> list[Step]:
    """The tactics of the lines, in order. Raises Error, with the line, for a line that is not a tactic."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        helps = ["pass the text of `plan.trace`", "to apply a list of tactics: pt.plan(fn, mesh, *args).apply(*tactics)"]
        raise refused("text", "a trace, a string", text, *helps)
    found: list[Step] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            start = len(line) - len(line.lstrip())
            location = Location("tactics", number, start + 1, len(line.rstrip()) + 1, line)
            found.append(_located(tactic_of(Call.read(line, location, calls_known()), location), location))
    return found


def tactic_of(call: Call, location: Location | None = None) -> Step:
    """The tactic that a call stands for. Raises Error, at this location, for an unknown one or for wrong arguments."""
    name = call.name
    act: Callable[..., Plan] | None = getattr(Plan, name) if name in ACTIONS else None
    make = cast("Callable[..., Step]", at if name == at.__name__ else Tactic.known.get(name, Tactic))
    if act is None and make is Tactic:
        helps = did_you_mean(name, (*Tactic.known, *ACTIONS), calls_known(), most=3)
        title = f"unknown tactic `{name}`"
        raise Error(title, location=location and location.narrowed(title), helps=helps)
    signature = inspect.signature(make if act is None else partial(act, None))
    try:
        # An argument of `at` may be a tactic too.
        args = [tactic_of(each, location) if isinstance(each, Call) else each for each in call.args]
        signature.bind(*args, **call.kwargs)
        return make(*args, **call.kwargs) if act is None else methodcaller(name, *args, **call.kwargs)
    except TypeError as error:
        helps = [f"it takes {name}({', '.join(signature.parameters)})"]
        raise Error(f"`{name}` is called with wrong arguments", location=location, label=str(error), helps=helps) from None


def _located(made: Step, location: Location) -> Step:
    def tactic(plan: Plan) -> Plan:
        try:
            return made(plan)
        except Error as error:
            # Point at the line of the trace, which the user can correct.
            at = location.narrowed(error.title)
            raise Error(error.title, location=at, label=error.label, notes=error.notes, helps=error.helps) from error

    return tactic


def calls_known() -> str:
    """What a line of a trace may be, for errors."""
    folder = Tactic.__module__.rpartition(".")[0]
    library = sorted(name for name, each in Tactic.known.items() if each.__module__.startswith(folder))
    return f"write a call of {', '.join((*library, *ACTIONS))} with literal arguments"
