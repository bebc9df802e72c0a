"""The rules of this room, each file loaded when it is first asked for.

```
rules("builders").rewrite_root(("slice", L, ("build", L, x)), {})   -->   (x, beta)
```
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .compile import RuleSet, load

FILES = ("builders", "collectives", "linearity", "masks")


@cache
def rules(name: str) -> RuleSet:
    """The rules of `name.rules`."""
    return load(Path(__file__).with_name(f"{name}.rules"))


def all_rules() -> dict[str, RuleSet]:
    """The rules by which programs are lowered, by file. Those of `programs.rules` are applied by users (`rewrites.laws`)."""
    return {name: rules(name) for name in FILES}


def __getattr__(name: str) -> RuleSet:
    """`BUILDERS`, `COLLECTIVES`, `LINEARITY`, `MASKS`: loaded on first use, because most runs do not need all."""
    if name.isupper() and name.lower() in FILES:
        return rules(name.lower())
    raise AttributeError(name)
