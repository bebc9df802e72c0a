"""The rules of this room, each file loaded when it is first asked for.

```
rules("builders").rewrite_root(("slice", L, ("build", L, x)), {})   -->   (x, beta)
```
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from .compile import RuleSet, load

Check: TypeAlias = Callable[[RuleSet], None]
"""Raises `Error` if rules are not as what uses them needs them."""

FILES = ("builders", "collectives", "linearity", "masks")


LOADED: dict[str, RuleSet] = {}
CHECKS: dict[str, list[Check]] = {}


def rules(name: str) -> RuleSet:
    """The rules of `name.rules`. Raises `Error` if they do not read, or do not pass what checks them."""
    if name not in LOADED:
        found = load(Path(__file__).with_name(f"{name}.rules"))
        for check in CHECKS.get(name, ()):
            check(found)
        LOADED[name] = found
    return LOADED[name]


def checked(name: str, check: Check) -> None:
    """Has the rules of `name.rules` checked when they are loaded; now, if they are."""
    CHECKS.setdefault(name, []).append(check)
    if name in LOADED:
        check(LOADED[name])


def all_rules() -> dict[str, RuleSet]:
    """The rules by which programs are lowered, by file. Those of `programs.rules` are applied by users (`rewrites.laws`)."""
    return {name: rules(name) for name in FILES}


def __getattr__(name: str) -> RuleSet:
    """`BUILDERS`, `COLLECTIVES`, `LINEARITY`, `MASKS`: loaded on first use, because most runs do not need all."""
    if name.isupper() and name.lower() in FILES:
        return rules(name.lower())
    raise AttributeError(name)
