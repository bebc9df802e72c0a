"""The laws of the library, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..rules.files import rules
from .by_rule import checked
from .law import Law


@cache
def library() -> Mapping[str, Law]:
    return {each.rule.name: checked(each.rule) for each in rules("programs")}
