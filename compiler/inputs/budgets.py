"""Parses budgets, as users write them: `3`, `"<2MiB"`, `"<=40%"`.

"<2MiB"   -->   Budget("<", 2097152)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...dialects.ground.amounts import UNITS
from ...dialects.ground.errors import Error, Location
from ...dialects.ground.validation import INTEGER_BOUND
from .checks import integer, shown

BYTES: Mapping[str, int] = {"": 1, **UNITS}
FLOPS: Mapping[str, int] = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
SHARE: Mapping[str, float] = {"%": 0.01}
NUMBER: Mapping[str, int] = {"": 1}

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_BUDGET = re.compile(r"\s*(?P<sign><=|>=|<|>|)\s*(?P<number>\d[\d_,]*(?:\.\d+)?|\.\d+)?\s*(?P<unit>[A-Za-z%]*)\s*")


@dataclass(frozen=True, slots=True)
class Budget:
    """A bound on a number, as it was written. Without a sign, it is the exact number."""

    sign: str
    limit: float
    text: str

    def holds(self, value: float) -> bool:
        return _COMPARE[self.sign](value, self.limit)

    def __str__(self) -> str:
        return self.text


def budget(name: str, given: object, units: Mapping[str, float]) -> Budget:
    """Parses a bound on a quantity with these units. Raises Error, with a caret, if it is malformed or negative."""
    number = integer(given)
    if number is not None and 0 <= number < INTEGER_BOUND and (number == 0 or "" in units):
        return Budget("", number, f"{number:,}")
    example = '"<1%"' if "%" in units else '"<2MiB"' if "MiB" in units else '"<2G"' if "G" in units else '"<=2"'
    helps = [f"give a bound: plan.expect({name}={example})"]
    helps += [f"the units are {named}"] if (named := ", ".join(f"`{unit}`" for unit in units if unit)) else []
    if not isinstance(given, str):
        raise Error(f"`{name}` takes a bound, got {shown(given)}", helps=helps)
    given = str.__str__(given)
    match = _BUDGET.fullmatch(given)
    said, unit = (match["number"], match["unit"]) if match is not None else (None, "")
    if match is None or said is None or unit not in units:
        start = match.start("unit") if match is not None and said is not None else len(given) - len(given.lstrip("<>= "))
        location = Location("budget", 1, start + 1, max(len(given.rstrip()), start + 1) + 1, given)
        label = f"expected {'a number' if said is None else 'a unit'}"
        raise Error(f"`{given}` is not a bound on `{name}`", location=location, label=label, helps=helps)
    return Budget(match["sign"], float(re.sub("[_,]", "", said)) * units[unit], given.strip())
