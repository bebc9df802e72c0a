"""The laws of the library that depend on the program alone, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..rules.rule_files import rules
from .law import Law
from .rule_laws import ByRule
from .stack import Stack

PROVED = frozenset({"f"})
"""The kinds of numbers for which a test shows that all rules of the library are laws."""


@cache
def library_laws() -> Mapping[str, Law]:
    """The laws of `programs.rules`, and `stack`. For other kinds of numbers, a rule is tested when it is first applied."""
    return {**{each.rule.name: ByRule(each.rule, PROVED) for each in rules("programs")}, "stack": Stack()}
