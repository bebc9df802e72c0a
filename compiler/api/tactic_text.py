"""Reads the text of a trace: one tactic a line, as a call, read without evaluating anything.

DataParallel(axis='data', inputs='batch/*')
tile('params/w1', 1, 'model')
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import cast

from ...dialects.ground.errors import Error, Location, did_you_mean, relocated
from ..inputs.checks import refused
from ..inputs.tactic_calls import Call, no_argument, taken_by, with_names
from .plan import Plan
from .tactics import Composable, Tactic, at

ACTIONS = ("tile", "replicate", "widen", "each_trip", "on", "name", "propagate", "rewrite")
"""The methods of a plan that a trace may call."""

PlanStep = Callable[[Plan], Plan]


@dataclass(frozen=True, repr=False)
class Located(Composable):
    """A tactic read from a text. It prints as written there, and `moved` locates its errors there."""

    text: str
    step: PlanStep
    moved: Callable[[Error], Error]
    is_saved: bool = False
    """Whether a plan was saved with it, maybe by an earlier version: then names are read as that version made them."""

    def __call__(self, plan: Plan) -> Plan:
        try:
            step = self.step
            if self.is_saved and "#" in self.text:
                step = tactic_of(cast(Call, with_names(Call.read(self.text), plan.source.addresses.today)))
            return step(plan)
        except Error as error:
            raise self.moved(error) from error

    def __repr__(self) -> str:
        return self.text


def tactics_of(text: str) -> list[PlanStep]:
    """Reads the tactics of a trace, in order. Raises Error, with the line, for a line that is not a tactic."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        helps = ["pass the text of `plan.trace`", "to apply a list of tactics: pt.plan(fn, mesh, *args).apply(*tactics)"]
        raise refused("text", "a trace, a string", text, *helps)
    found: list[PlanStep] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            start = len(line) - len(line.lstrip())
            location = Location("tactics", number, start + 1, len(line.rstrip()) + 1, line)
            call = Call.read(line, location, calls_known())
            found.append(Located(str(call), tactic_of(call, location), partial(_at_line, location)))
    return found


def _at_line(location: Location | None, error: Error) -> Error:
    """Locates an error at its line of the trace, which the user can correct; the same error if there is no line."""
    return error if location is None else relocated(error, location.narrowed(error.title))


def tactic_of(call: Call, location: Location | None = None) -> PlanStep:
    """Makes the tactic that a call describes. Raises Error, at this location, for an unknown tactic or wrong arguments."""
    call = _of_today(call)
    name = call.name
    act: Callable[..., Plan] | None = getattr(Plan, name) if name in ACTIONS else None
    make = cast("Callable[..., PlanStep]", at if name == at.__name__ else Tactic.known.get(name, Tactic))
    if act is None and make is Tactic:
        helps = did_you_mean(name, (*Tactic.known, *ACTIONS), f"the tactics are {_known_calls()}", most=3)
        title = f"unknown tactic `{name}`"
        raise Error(title, location=location and location.narrowed(title), helps=helps)
    signature = inspect.signature(make if act is None else partial(act, None))
    if (problem := no_argument(name, call.kwargs, signature)) is not None:
        raise _at_line(location, problem)
    # An argument of `at` may be a tactic too.
    args = [tactic_of(each, location) if isinstance(each, Call) else each for each in call.args]
    kwargs = {key: tactic_of(each, location) if isinstance(each, Call) else each for key, each in call.kwargs.items()}
    try:
        signature.bind(*args, **kwargs)
        return make(*args, **kwargs) if act is None else methodcaller(name, *args, **kwargs)
    except TypeError as error:
        title = f"`{name}` is called with wrong arguments"
        raise Error(title, location=location, label=str(error), helps=[taken_by(name, signature)]) from None
    except Error as error:
        raise _at_line(location, error) from None


def _of_today(call: Call) -> Call:
    """A call as it is written today: a law of former versions computed values in parts, which is a tile on a loop."""
    given = dict(zip(("rule", "at"), call.args, strict=False)) | {**call.kwargs}
    match given:
        case {"rule": "chunk", "at": at, "dim": dim, "trips": int() as trips, **other} if call.name == "rewrite" and not other:
            # A loop of its own for each line.
            return Call("tile", (at, dim, f"{'_'.join(re.findall(r'[A-Za-z]+|[0-9]+', f'part {at} {dim}'))}:{trips}"))
        case _:
            return call


def is_tactic(given: object) -> bool:
    """Whether an argument is the name of a tactic."""
    return isinstance(given, str) and given in Tactic.known


def calls_known() -> str:
    """What a line of a trace may be, as errors say it."""
    return f"write a call of {_known_calls()} with literal arguments"


def _known_calls() -> str:
    """The library's tactics and the steps of a plan, as errors list them."""
    folder = Tactic.__module__.rpartition(".")[0]
    library = sorted(name for name, each in Tactic.known.items() if each.__module__.startswith(folder))
    return ", ".join((*library, *ACTIONS))
