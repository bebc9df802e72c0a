"""Tables of the operations that a file of rules may use, and of what their arguments may be. Rules are checked when they load.

```
Head("results", "mask", "keep results", f)     f runs mask(x, y), which is a result, if x is a condition and y is a result
lookup: take(k, build(a, m, x)) => msk(...)     error: rule `lookup`: no `results` is called `msk`
```
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from ...dialects.ground.errors import Error, Location, nearest
from .compile import RuleSet, args_of, head_of
from .rule import Rule, RuleApply, Term

LEAF = "."
"""The kind of an argument that is a leaf, not an operation."""
ANY_TERM = "*"
"""The kind of an argument that may be any term, which rules match by a variable."""


@dataclass(frozen=True, slots=True)
class Head:
    """An operation in a table: its kind, the kinds of its arguments, and the function that runs it. A row may name several.

    Without a function, the head around it reads the term.
    """

    kind: str
    name: str
    arguments: str
    run: Callable[..., object] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.arguments.split())

    @property
    def location(self) -> Location | None:
        """Where the function is defined; None without a function."""
        if self.run is None:
            return None
        lines, first = inspect.getsourcelines(self.run)
        column = lines[0].index(self.run.__name__) + 1
        return Location(
            Path(inspect.getfile(self.run)).name, first, column, column + len(self.run.__name__), lines[0].rstrip("\n")
        )


class Heads:
    """A table of heads. Several may have one kind and name; the first one that accepts the arguments is used."""

    def __init__(self, *rows: Head) -> None:
        self.rows = [replace(row, name=name) for row in rows for name in row.name.split()]
        self.known: dict[tuple[str, str], list[Head]] = {}
        for row in self.rows:
            self.known.setdefault((row.kind, row.name), []).append(row)

    def of(self, kind: str, term: tuple[object, ...]) -> Head:
        """Finds the head of a term that rules have made. Such a term always fits the table."""
        rows = self.known[kind, cast(str, term[0])]
        return rows[0] if len(rows) == 1 else next(row for row in rows if self.takes(row, term[1:]))

    def fits(self, kind: str, term: object) -> bool:
        """Whether a term consists of heads of the table."""
        if (name := _name(term)) is None or kind == ANY_TERM:
            return True
        args = args_of(term)
        rows = [row for row in self.known.get((kind, name), ()) if self.takes(row, args)]
        return bool(rows) and all(self.fits(*each) for each in zip(rows[0].kinds, args, strict=True))

    def takes(self, row: Head, args: tuple[object, ...]) -> bool:
        """Whether a head accepts these arguments, judged by their own heads."""
        if len(row.kinds) != len(args):
            return False
        names = zip(row.kinds, map(_name, args), strict=True)
        return all(name is None or kind == ANY_TERM or (kind, name) in self.known for kind, name in names)

    def check(self, rules: RuleSet, sides: Iterable[tuple[Rule, str, Term]], verb: str) -> None:
        """Raises `Error` unless these sides of rules consist of heads of the table, and use each head at least once."""
        used = {id(row) for rule, kind, term in sides for row in self.used(rule, kind, term)}
        for row in self.rows:
            if id(row) not in used:
                *_, last = rules
                raise Error(f"no rule {verb} `{row.name}` as `{row.kind}`", location=row.location or last.rule.left.at)

    def used(self, rule: Rule, kind: str, term: Term) -> Iterator[Head]:
        """Yields the heads in one side of a rule. Raises `Error` for an unknown head."""
        if not isinstance(term, RuleApply):
            return
        if (kind, term.head) not in self.known:
            raise self.unknown(rule, kind, term)
        rows = self.known[kind, term.head]
        row = next((row for row in rows if self.takes(row, term.args)), rows[0])
        if len(row.kinds) != len(term.args):
            wrong = f"rule `{rule.name}`: `{term.head}` takes {len(row.kinds)} arguments, not {len(term.args)}"
            raise Error(wrong, location=term.at)
        yield row
        for each, argument in zip(row.kinds, term.args, strict=True):
            yield from self.used(rule, each, argument)

    def unknown(self, rule: Rule, kind: str, term: RuleApply) -> Error:
        if kind in (LEAF, ANY_TERM):
            return Error(f"rule `{rule.name}`: expected a variable, not `{term.head}`", location=term.at)
        names = [name for each, name in self.known if each == kind]
        listed = ", ".join(f"`{name}`" for name in nearest(term.head, names) or names)
        title = f"rule `{rule.name}`: no `{kind}` is called `{term.head}`"
        return Error(title, location=term.at, label="unknown", helps=[f"`{kind}` can be {listed}"])


def _name(term: object) -> str | None:
    """The operation at the root of a term, or of a side of a rule; None for a leaf."""
    return term.head if isinstance(term, RuleApply) else head_of(term)
