"""Replaying a trace: tactics as text, one call per line, read back without evaluating anything.

DataParallel(axis='data', inputs='batch/*')
tile('params/w1', 1, 'model')
"""

import ast
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import cast

from ...dialects.errors import Error, Location, did_you_mean
from ...dialects.mesh import Mesh
from ..inputs.checks import shown
from .plan import Plan, plan
from .tactics import Tactic, at

ACTIONS = ("tile", "replicate", "widen", "each_trip", "name", "propagate", "rewrite")
"""The methods of a plan that a trace can call."""


def replay(
    fn: Callable[..., object], mesh: Mesh, text: str, /, *args: object, static_argnames: Sequence[str] = (), **kwargs: object
) -> Plan:
    """Plan `fn` with the tactics of a `plan.trace`; blank lines and lines that begin with `#` are skipped."""
    return plan(fn, mesh, *args, static_argnames=static_argnames, **kwargs).apply(*tactics_of(text))


def tactics_of(text: str) -> list[Callable[[Plan], Plan]]:
    """The tactics of the lines, in order. Raises Error, with the line, for a line that is not a tactic."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        helps = ["pass the text of `plan.trace`", "to apply a list of tactics: pt.plan(fn, mesh, *args).apply(*tactics)"]
        raise Error(f"a trace must be a string, got {shown(text)}", helps=helps)
    found: list[Callable[[Plan], Plan]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            start = len(line) - len(line.lstrip())
            found.append(_tactic(line.strip(), Location("tactics", number, start + 1, len(line.rstrip()) + 1, line)))
    return found


def _tactic(line: str, location: Location) -> Callable[[Plan], Plan]:
    made = _made(_parsed(line, location), location)

    def tactic(plan: Plan) -> Plan:
        try:
            return made(plan)
        except Error as error:
            # Point at the line of the trace, which the user can correct.
            raise Error(error.title, location=location, label=error.label, notes=error.notes, helps=error.helps) from error

    return tactic


def _made(call: ast.expr, location: Location) -> Callable[[Plan], Plan]:
    """The tactic of a call; an argument of `at` may be one too."""
    name, args, kwargs = _call(call, location)
    act: Callable[..., Plan] | None = getattr(Plan, name) if name in ACTIONS else None
    make = cast("Callable[..., Callable[[Plan], Plan]]", at if name == at.__name__ else Tactic.known.get(name, Tactic))
    if act is None and make is Tactic:
        helps = did_you_mean(name, (*Tactic.known, *ACTIONS), _help(), most=3)
        raise Error(f"unknown tactic `{name}`", location=location, helps=helps)
    signature = inspect.signature(make if act is None else partial(act, None))
    try:
        signature.bind(*args, **kwargs)
        return make(*args, **kwargs) if act is None else methodcaller(name, *args, **kwargs)
    except TypeError as error:
        helps = [f"it takes {name}({', '.join(signature.parameters)})"]
        raise Error(f"`{name}` is called with wrong arguments", location=location, label=str(error), helps=helps) from None


def _no_tactic(why: str, location: Location) -> Error:
    return Error("expected a tactic on this line", location=location, label=why, helps=[_help()])


def _parsed(line: str, location: Location) -> ast.expr:
    try:
        return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        raise _no_tactic(error.msg, location) from None


def _call(call: ast.expr, location: Location) -> tuple[str, list[object], dict[str, object]]:
    """The name and the arguments of a call."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise _no_tactic("this is not a call of a tactic", location)
    nested = call.func.id == at.__name__

    def literal(node: ast.expr) -> object:
        if nested and isinstance(node, ast.Call):
            return _made(node, location)
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise _no_tactic(f"`{ast.unparse(node)}` is not a literal", location) from None

    args, kwargs = [literal(each) for each in call.args], {each.arg or "**": literal(each.value) for each in call.keywords}
    if "**" in kwargs:
        raise _no_tactic("`**` is not a literal", location)
    return call.func.id, args, kwargs


def _help() -> str:
    folder = Tactic.__module__.rpartition(".")[0]
    library = sorted(name for name, each in Tactic.known.items() if each.__module__.startswith(folder))
    return f"write a call of {', '.join((*library, *ACTIONS))} with literal arguments"
