"""The laws of the library that need nothing but the program, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..rules.files import rules
from .by_rule import ByRule
from .law import Law
from .stack import Stack


@cache
def library() -> Mapping[str, Law]:
    """Those that rules say, each tried when it is first applied, and `stack`."""
    return {**{each.rule.name: ByRule(each.rule) for each in rules("programs")}, "stack": Stack()}
