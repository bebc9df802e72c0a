"""The rule files of this folder, each loaded when it is first needed.

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
"""Raises `Error` if the rules of a file do not suit the code that uses them."""

FILES = ("builders", "collectives", "linearity", "masks")


LOADED: dict[str, RuleSet] = {}
CHECKS: dict[str, list[Check]] = {}


def rules(name: str) -> RuleSet:
    """Returns the rules of `name.rules`. Raises `Error` if the file is malformed, or if one of its checks fails."""
    if name not in LOADED:
        found = load(Path(__file__).with_name(f"{name}.rules"))
        for check in CHECKS.get(name, ()):
            check(found)
        LOADED[name] = found
    return LOADED[name]


def register_check(name: str, check: Check) -> None:
    """Registers a check, which runs when `name.rules` is loaded, or at once if it is loaded already."""
    CHECKS.setdefault(name, []).append(check)
    if name in LOADED:
        check(LOADED[name])


def all_rules() -> dict[str, RuleSet]:
    """All rules that lower programs, by file. Those of `programs.rules` are left out: users apply them (`rewrites.laws`)."""
    return {name: rules(name) for name in FILES}
