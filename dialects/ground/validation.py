"""Checks what callers pass to public functions, by the annotation of each parameter.

A parameter says by its annotation what it takes. `checked` looks up the check for that annotation, so a public function has no
checks of its own, and one that is added later has none to forget.

    @checked
    def tile(self, values: Patterns, dim: int | str, axis: str) -> Plan: ...

    plan.tile(None, 0, "data")   -->   `values` takes a pattern of names, or a list of them, got None

A check returns the value in its plainest form: a NumPy string becomes a `str`, a NumPy integer an `int`. So a value that is
stored or written reads back as it was given.
"""

import inspect
import operator
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from numbers import Integral
from typing import Any, TypeVar, cast

from .errors import Error

Check = Callable[[str, object], object]
"""A function of a parameter's name and value that returns the value in its plainest form. It raises Error for a bad value."""
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

# Where an object is in memory says nothing, and is another place in each run.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")

MOST_CHARACTERS = 60
"""The most characters of a value that an error shows."""
MOST_ELEMENTS = 1000
"""The most elements of a collection whose `repr` is worth making."""
INTEGER_BOUND = 1 << 63
"""The bound of integers: no extent, position or count is as large."""


def shown(given: object) -> str:
    """The `repr` of a value, shortened with `...` if it is long. If its `repr` raises, its type."""
    kind = type(given).__name__
    if isinstance(given, str):
        return shortened(str.__repr__(str.__getitem__(given, slice(MOST_ELEMENTS))))
    try:
        several = cast("Collection[object]", given if isinstance(given, Collection) else ())
        if len(several) > MOST_ELEMENTS:
            return f"a {kind} of {len(several):,} elements"
        return shortened(_ADDRESS.sub("", repr(cast(object, given))))
    except Exception:
        # The caller's own `__repr__` raised, and its error would hide the one that is about to be told.
        return f"an object of type {kind}"


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Cuts a text that is longer than `most`, and ends it in `...`."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def refused(name: str, takes: str, given: object, *helps: str) -> Error:
    """Returns the error for a value that a parameter does not take."""
    return Error(f"`{name}` takes {takes}, got {shown(given)}", helps=helps)


def integer(given: object) -> int | None:
    """Converts an integer, Python's or NumPy's, to `int`; None for anything else."""
    if isinstance(given, bool) or not (isinstance(given, Integral) or hasattr(type(given), "dtype")):
        return None
    try:
        return operator.index(cast(int, given))
    except TypeError:
        return None


def text_of(name: str, given: object) -> str:
    """Checks that the argument is a string."""
    if not isinstance(given, str):
        raise refused(name, "a string", given)
    return str.__str__(given)


def integer_of(name: str, given: object) -> int:
    """Checks that the argument is an integer, and not beyond `INTEGER_BOUND`."""
    number = integer(given)
    if number is None or not -INTEGER_BOUND < number < INTEGER_BOUND:
        raise refused(name, "an integer", given)
    return number


def flag_of(name: str, given: object) -> bool:
    """Checks that the argument is True or False. A string such as "no" would count as true."""
    if not isinstance(given, bool):
        raise Error(f"`{name}` must be True or False, got {shown(given)}", helps=[f"write {name}=True or {name}=False"])
    return given


def texts_of(name: str, given: object) -> tuple[str, ...]:
    """Checks that the argument is a string or a list of strings, and returns a tuple."""
    several = cast("tuple[object, ...]", given if isinstance(given, tuple | list) else (given,))
    if not all(isinstance(each, str) for each in several):
        raise refused(name, "a string, or a list of strings", cast(object, given))
    return tuple(str.__str__(cast(str, each)) for each in several)


def or_none(check: Check) -> Check:
    """Returns a check that also accepts None."""
    return lambda name, given: None if given is None else check(name, given)


CHECKS: dict[str, Check] = {"str": text_of, "int": integer_of, "bool": flag_of, "Sequence[str]": texts_of}
"""The check of each annotation. A key `axis: str` takes precedence over `str`.

Files with values of their own kind add a check here.
"""


def or_nothing(check: Check) -> Check:
    """Returns a check that also accepts an empty tuple, the default of the parameter."""
    return lambda name, given: (
        () if isinstance(given, tuple) and not len(cast("tuple[object, ...]", given)) else check(name, cast(object, given))
    )


def check_of(name: str, annotation: str, default: object = None) -> Check | None:
    """Returns the check of a parameter; None if it takes anything, or checks its argument itself."""
    if default == ():
        inner = check_of(name, annotation)
        return None if inner is None else or_nothing(inner)
    found = CHECKS.get(f"{name}: {annotation}") or CHECKS.get(annotation)
    if found is None and annotation.endswith(" | None"):
        inner = check_of(name, annotation.removesuffix(" | None"))
        return None if inner is None else or_none(inner)
    return found


def accepted(name: str, check: Callable[[str, Any], T], given: object) -> T:
    """Checks an argument. An error names the parameter."""
    try:
        return check(name, given)
    except Error as error:
        title = error.title if f"`{name}`" in error.title else f"`{name}`: {error.title}"
        raise Error(title, location=error.location, label=error.label, notes=error.notes, helps=error.helps) from None


def _annotation(annotation: object) -> str:
    """The text of an annotation. It is a text already where annotations are not evaluated."""
    return annotation.__name__ if isinstance(annotation, type | TypeVar) else str(annotation)


def checked(function: F) -> F:
    """Decorates a function: each argument is checked before the call, by the annotation of its parameter."""
    signature = inspect.signature(function)

    @cache
    def checks() -> dict[str, Check]:
        # Later than here: a kind may be added by a file that needs this one.
        named = {name: check_of(name, _annotation(p.annotation), p.default) for name, p in signature.parameters.items()}
        return {name: check for name, check in named.items() if check is not None}

    names = tuple(signature.parameters)
    gathers = any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in signature.parameters.values())

    @wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        if not gathers:
            # Each argument stands for one parameter, so Python may bind them: that takes a tenth of the time.
            known = checks()
            named = {name: accepted(name, known[name], each) if name in known else each for name, each in kwargs.items()}
            placed = [accepted(n, known[n], each) if n in known else each for n, each in zip(names, args, strict=False)]
            return function(*placed, *args[len(names) :], **named)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            # Python says it better.
            return function(*args, **kwargs)
        for name, check in checks().items():
            if name not in bound.arguments:
                continue
            given, kind = bound.arguments[name], signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(accepted(name, check, each) for each in given)
            elif kind is inspect.Parameter.VAR_KEYWORD:
                named = cast("Mapping[str, object]", given)
                bound.arguments[name] = {key: accepted(key, check, each) for key, each in named.items()}
            else:
                bound.arguments[name] = accepted(name, check, given)
        return function(*bound.args, **bound.kwargs)

    return cast(F, call)
