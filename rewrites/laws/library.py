"""The laws of the library that need nothing but the program, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..rules.files import rules
from .by_rule import ByRule
from .law import Law
from .stack import Stack

PROVED = frozenset({"f"})
"""The kinds of numbers for which a test shows that all rules of the library are laws."""


@cache
def library() -> Mapping[str, Law]:
    """Those that rules say, and `stack`. For numbers that no test has tried, a rule is tried when it is first applied."""
    return {**{each.rule.name: ByRule(each.rule, PROVED) for each in rules("programs")}, "stack": Stack()}
