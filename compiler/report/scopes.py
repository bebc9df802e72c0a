"""Folds: where each op is in the user's program, from the outside in.

transpose(jvp(layers_3/mlp)), in block at lm.py:119   -->   backward / layers_3 / mlp / block / lm.py:119
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...rewrites.program.program import Control, Program
from ..inputs.lines import SourceLine
from ..page.string_table import Json, Pools, code_of
from ..plan.state import State
from ..trace.value_names import written_scopes
from ..views.listing import starred

MOST_ALIKE = 6
"""More scopes than this that stand side by side and differ only by a number get a fold around them."""
MOST_OUTSIDE = 3
"""Up to this many folds may stand beside the forward and the backward pass."""


class FoldedScope(NamedTuple):
    """One fold: its kind, its text, and the number of its source line.

    `kind` is `direction`, `region`, `scope`, `alike` for many scopes, `function` or `line`; outside of the program it is
    `argument` or `result`, and `path`.
    """

    kind: str
    text: str
    line: int = -1


OUTSIDE = FoldedScope("direction", "outside of grad")


class FoldTree:
    """All folds of a program. Fold 0 is the program itself; each other fold knows its parent."""

    def __init__(self) -> None:
        self.parts, self.parents = [FoldedScope("program", "")], [-1]
        self._numbers: dict[tuple[int, str, str], int] = {}

    def number(self, path: list[FoldedScope]) -> int:
        """The number of the innermost fold of a path. Folds that are new are added."""
        at = 0
        for part in path:
            key = at, part.kind, part.text
            found = self._numbers.get(key)
            if found is None:
                found = self._numbers[key] = len(self.parts)
                self.parts.append(part)
                self.parents.append(at)
            at = found
        return at

    def json(self, pools: Pools) -> Json:
        return {
            "kind": [part.kind for part in self.parts],
            "text": [pools.text(part.text) for part in self.parts],
            "line": [part.line for part in self.parts],
            "parent": self.parents,
        }


class Around(NamedTuple):
    """What surrounds a region: its folds, and the names of the scopes among them."""

    parts: list[FoldedScope]
    scopes: list[str]


class Place(NamedTuple):
    """Where an op is: its region, and its source line, with the scopes around it."""

    region: int
    source: SourceLine | None


class Scopes:
    """Finds the folds of the ops of one program."""

    def __init__(self, plan: State, pools: Pools) -> None:
        self.sources, self.pools = plan.source.traced.sources, pools
        self.regions = self._regions(plan.source.program)

    def folds(self, program: Program, lines: Sequence[SourceLine | None], tree: FoldTree) -> list[int]:
        """The fold of each op. Thousands of ops come from a few hundred lines, and the ops of a line share a fold."""
        keys = [(node.region, id(source)) for node, source in zip(program.nodes, lines, strict=True)]
        places = {key: Place(key[0], source) for key, source in dict(zip(keys, lines, strict=True)).items()}
        numbers = {place: tree.number(path) for place, path in self._paths(dict.fromkeys(places.values())).items()}
        found = {key: numbers[place] for key, place in places.items()}
        return [found[key] for key in keys]

    def _paths(self, places: Iterable[Place]) -> dict[Place, list[FoldedScope]]:
        """The path of each place.

        If there is a backward pass, everything outside of both passes is put into one fold, unless it is little.
        """
        found = _fold_numbered({place: self._path(place) for place in places})
        first = {path[0][:2] for path in found.values() if path}
        if ("direction", "backward") not in first or sum(kind != "direction" for kind, _ in first) <= MOST_OUTSIDE:
            return found
        return {place: path if path and path[0].kind == "direction" else [OUTSIDE, *path] for place, path in found.items()}

    def _path(self, place: Place) -> list[FoldedScope]:
        source, around = place.source, self.regions[place.region]
        if source is None:
            return around.parts
        found = [*around.parts, *_scopes(named_scopes(source.scope), around), *_lines(source, self.pools)]
        return [FoldedScope("direction", source.direction), *found] if source.direction else found

    def _regions(self, program: Program) -> list[Around]:
        """For each region, what surrounds it: the scopes of its loop, then `scan#0 × 8` or `cond#1:0`."""
        found = [Around([], []) for _ in program.regions]
        counts: Counter[str] = Counter()
        for outer, controls in enumerate(program.controls):
            for control in controls:
                kind, around = control.op.name.removeprefix("lax."), found[outer]
                names = named_scopes(self.sources.scope(control.op)) if control.op in self.sources else []
                outside = [*around.parts, *_scopes(names, around)]
                for position, region in enumerate(control.regions):
                    part = _region(program, control, position, f"{kind}#{counts[kind]}")
                    found[region] = Around([*outside, part], names)
                counts[kind] += 1
        return found


def _fold_numbered(paths: Mapping[Place, list[FoldedScope]]) -> dict[Place, list[FoldedScope]]:
    """Puts a fold around many scopes that differ only by a number: `layers_* × 96`."""
    alike: dict[tuple[FoldedScope | str, ...], dict[str, None]] = {}
    for path in paths.values():
        for key, text in _numbered(path).values():
            alike.setdefault(key, {})[text] = None
    return {place: _inner_scopes(path, alike) for place, path in paths.items()}


def _numbered(path: list[FoldedScope]) -> dict[int, tuple[tuple[FoldedScope | str, ...], str]]:
    """The scopes of a path whose names contain a number, by position: the path with the number starred, and the name."""
    starless = ((at, part, starred(f"/{part.text}/")[1:-1]) for at, part in enumerate(path) if part.kind == "scope")
    return {at: ((*path[:at], name), part.text) for at, part, name in starless if name != part.text}


def _inner_scopes(path: list[FoldedScope], alike: dict[tuple[FoldedScope | str, ...], dict[str, None]]) -> list[FoldedScope]:
    found = list[FoldedScope]()
    numbered = _numbered(path)
    for at, part in enumerate(path):
        if at in numbered and len(scopes := alike[numbered[at][0]]) > MOST_ALIKE:
            found.append(FoldedScope("alike", f"{numbered[at][0][-1]} × {len(scopes):,}"))
        found.append(part)
    return found


def _scopes(names: list[str], around: Around) -> Iterator[FoldedScope]:
    """Yields the scopes of an op that do not surround its region already."""
    inside = names[len(around.scopes) :] if names[: len(around.scopes)] == around.scopes else names
    return (FoldedScope("scope", name) for name in inside)


def _lines(source: SourceLine, pools: Pools) -> Iterator[FoldedScope]:
    """Yields the function of a source line, with the functions around it, then the line itself."""
    if source.line:
        line = pools.line(source)
        yield from (FoldedScope("function", name, line) for name in source.function.split(".<locals>."))
        yield FoldedScope("line", f"{source.place}  {code_of(source)}", line)


def named_scopes(scope: str) -> list[str]:
    """The scopes that somebody named. One with an arrow is that of an `einsum`, which names it by its subscripts."""
    return [name for name in written_scopes(scope) if "->" not in name]


def _region(program: Program, control: Control, position: int, name: str) -> FoldedScope:
    region = program.regions[control.regions[position]]
    if region.mark:
        several = len(control.regions) > 1 and ":" not in region.mark
        return FoldedScope("region", region.mark + (f" ({'condition' if position == 0 else 'body'})" if several else ""))
    return FoldedScope("region", f"{name} × {region.trips:,}")
