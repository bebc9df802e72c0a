"""Describes how a program differs from the one whose plan was saved: what is gone, new, or of another type.

was: params/w1, params/norm            `params/norm` is gone
now: params/w1, params/block2/wq, wk   `params/block2` is new: 2 values
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...dialects.ground.amounts import counted, there_are
from ...dialects.ground.dtypes import short
from ...dialects.ground.errors import Error
from ...dialects.layouts import parse_array
from ...dialects.mesh import Mesh
from ..inputs.names import beginnings, name_parts, pattern
from ..views.grouping import grouped
from ..views.listing import starred

MOST_CHANGES = 6
"""The most changes of one kind that a report lists."""


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """A row of a file's layouts: a name, the number of values that are alike under it, and their layout."""

    name: str
    count: int
    layout: str

    @classmethod
    def read(cls, text: str) -> "LayoutRow":
        name, _, layout = text.rpartition(": ")
        counted = re.fullmatch(r"(.*) x (\d+)", name)
        return cls(counted[1], int(counted[2]), layout) if counted else cls(name, 1, layout)

    def on(self, mesh: Mesh) -> "LayoutRow":
        """The row with its global type in place of its layout, if the layout can be read on this mesh."""
        try:
            for part in re.findall(r"\w+\.\d+:\d+", self.layout):
                mesh = mesh.having(part)
            dtype, layout = parse_array(self.layout, mesh)
            shape = layout.global_shape
        except Error:
            return self
        return replace(self, layout=f"{short(dtype)}{[*shape]}")

    @property
    def counted(self) -> str:
        return f"`{self.name}` x {self.count}" if self.count > 1 else f"`{self.name}`"


@dataclass(frozen=True, slots=True)
class ChangedTree:
    """Values that only one of two programs has: all values under a name, or one value."""

    root: str
    rows: tuple[LayoutRow, ...]

    @property
    def counted(self) -> str:
        return self.rows[0].counted if self.is_value else f"`{self.root}`"

    @property
    def is_value(self) -> bool:
        return self.rows[0].name == self.root

    @property
    def key(self) -> frozenset[tuple[tuple[str, ...], int, str]]:
        """A key: of two trees with equal keys, one may be the other under a new name."""
        depth = len(name_parts(self.root))
        return frozenset((tuple(name_parts(starred(row.name))[depth:]), row.count, row.layout) for row in self.rows)


@dataclass(frozen=True, slots=True)
class ProgramTypes:
    """The arguments and results of the saved program and of the current one, with their global types.

    Their keys are names without the numbers of layers: a layer more or less does not make another value.
    """

    was: Mapping[str, LayoutRow]
    now: Mapping[str, LayoutRow]

    @property
    def gone(self) -> list[ChangedTree]:
        return _split_trees(_trees(self.was, self.now), _trees(self.now, self.was))

    @property
    def new(self) -> list[ChangedTree]:
        return _split_trees(_trees(self.now, self.was), _trees(self.was, self.now))

    def differences(self) -> list[str]:
        """One line for each tree that is gone or new, and for each value whose type or number of layers has changed."""
        gone, new = self.gone, self.new
        renamed, others = dict[str, list[ChangedTree]](), list[ChangedTree]()
        nearest = {key: Nearest(trees) for key, trees in grouped(gone, lambda tree: tree.key).items()}
        for tree in new:
            alike = nearest[tree.key].to(tree.root) if tree.key in nearest else []
            (renamed.setdefault(alike[0].root, []) if len(alike) == 1 else others).append(tree)
        found = list[str]()
        for tree in gone:
            found.append(_sentence(tree, "gone"))
            found += [f"{_sentence(each, 'new')}: was it {tree.counted}?" for each in renamed.get(tree.root, ())]
        found += [_sentence(tree, "new") for tree in others]
        for key, row in self.was.items():
            other = self.now.get(key, row)
            found += [f"{row.counted}: {there_are(other.count)} now"] if other.count != row.count else []
            found += [f"{row.counted} was {row.layout}, is {other.layout}"] if other.layout != row.layout else []
        return found

    def cures(self, pattern_of: str) -> list[str]:
        """What to write instead of a pattern that matched values of the saved program, and matches none now."""
        accepts = pattern(starred(pattern_of)).fullmatch
        lost = [tree for tree in self.gone if any(accepts(starred(row.name)) for row in tree.rows)]
        if not lost:
            return []
        names = dict.fromkeys(name for tree in lost for name in self._instead(tree, pattern_of, accepts))
        renamed = [f"did you mean {' or '.join(f'`{name}`' for name in list(names)[:MOST_CHANGES])}?"] if names else []
        return [*renamed, f"if the program has none any more: take `{pattern_of}` out of this line"]

    def _instead(self, tree: ChangedTree, pattern_of: str, accepts: Callable[[str], object]) -> Iterator[str]:
        """Yields names of new values that have the same types as those that the pattern matched in this tree."""
        begins = name_parts(pattern_of)[: len(name_parts(tree.root))] == name_parts(tree.root)
        types = {row.layout for row in tree.rows if accepts(starred(row.name))}
        whole = [other for other in self.new if begins and not tree.is_value and other.key == tree.key]
        for other in Nearest(whole).to(tree.root):
            yield other.root + pattern_of.removeprefix(tree.root)
        if not whole:
            values = [ChangedTree(row.name, (row,)) for other in self.new for row in other.rows if row.layout in types]
            yield from (each.root for each in Nearest(values).to(tree.rows[0].name))


def types(rows: Sequence[str], on: Mesh, now: Sequence[str], mesh: Mesh) -> ProgramTypes:
    """The types of a file's rows, read on the file's mesh, and of a plan's rows, read on the plan's."""
    return ProgramTypes(
        _merge_rows([LayoutRow.read(row).on(on) for row in rows]), _merge_rows([LayoutRow.read(row).on(mesh) for row in now])
    )


def layouts_changed(rows: Sequence[str], now: Sequence[str], mesh: Mesh) -> list[str]:
    """The values whose type is the same but whose layout has changed. Additional layers are not compared."""
    before, after = (_alike(list(map(LayoutRow.read, some)), mesh) for some in (rows, now))
    pairs = [(name, old, after[name, kind]) for (name, kind), old in before.items() if (name, kind) in after]
    return [
        f"`{name}` was {_layouts_text(old)}, is {_layouts_text(new)}"
        for name, old, new in pairs
        if (old != new if sum(old.values()) == sum(new.values()) else old.keys() != new.keys())
    ]


def _alike(rows: Sequence[LayoutRow], mesh: Mesh) -> dict[tuple[str, str], dict[str, int]]:
    """For each name and type, the layouts with their counts. Layers that are alike may have several."""
    found = dict[tuple[str, str], dict[str, int]]()
    for row in rows:
        found.setdefault((row.name, row.on(mesh).layout), {})[row.layout] = row.count
    return found


def _layouts_text(layouts: Mapping[str, int]) -> str:
    return " and ".join(layout if len(layouts) == 1 else f"{layout} x {count}" for layout, count in layouts.items())


def _merge_rows(rows: Sequence[LayoutRow]) -> dict[str, LayoutRow]:
    """Merges the rows of one name, with all of their types."""
    alike = grouped(rows, lambda row: starred(row.name))
    return {
        name: LayoutRow(_name(some), sum(row.count for row in some), " and ".join(dict.fromkeys(row.layout for row in some)))
        for name, some in alike.items()
    }


def _name(rows: Sequence[LayoutRow]) -> str:
    """The name of the rows, with a star for numbers in which they differ."""
    return rows[0].name if len({row.name for row in rows}) == 1 else starred(rows[0].name)


def _trees(these: Mapping[str, LayoutRow], others: Mapping[str, LayoutRow]) -> list[ChangedTree]:
    """The values that `others` lacks, each in the tree of the shortest name under which `others` has no values."""
    taken = {each for name in others for each in beginnings(name_parts(name))}
    found = dict[str, list[LayoutRow]]()
    for name, row in these.items():
        if name not in others:
            key = next((each for each in beginnings(name_parts(name)) if each not in taken), name)
            found.setdefault(key, []).append(row)
    return [ChangedTree(rows[0].name if len(rows) == 1 else _root(key, rows), tuple(rows)) for key, rows in found.items()]


class Nearest:
    """Trees by their names, to find those that share the longest beginning with a name.

    of `params/w2` and `opt/mu/w2`, the first for `params/w1`
    """

    def __init__(self, trees: Iterable[ChangedTree]) -> None:
        self._under: dict[str, list[ChangedTree]] = {"": []}
        for tree in trees:
            for beginning in ("", *beginnings(name_parts(tree.root))):
                self._under.setdefault(beginning, []).append(tree)

    def to(self, name: str) -> list[ChangedTree]:
        """The trees whose names share the longest beginning with this name."""
        return next(self._under[each] for each in ("", *beginnings(name_parts(name)))[::-1] if each in self._under)


def _root(key: str, rows: Sequence[LayoutRow]) -> str:
    """The name that all rows begin with; the key, if they differ in the numbers of layers."""
    found = {"/".join(name_parts(row.name)[: len(name_parts(key))]) for row in rows}
    return found.pop() if len(found) == 1 else key


def _split_trees(trees: Sequence[ChangedTree], others: Sequence[ChangedTree]) -> list[ChangedTree]:
    """Splits trees into single values, where these may have become others: `w1`, `w2`   -->   `weights/in`, `weights/out`."""
    keys = {tree.key for tree in others}
    found = {row.layout for tree in others for row in tree.rows}
    return [
        each
        for tree in trees
        for each in (
            [ChangedTree(row.name, (row,)) for row in tree.rows]
            if tree.key not in keys and all(row.layout in found for row in tree.rows)
            else [tree]
        )
    ]


def _sentence(tree: ChangedTree, what: str) -> str:
    said = f"{tree.counted} is {what}"
    if name_parts(tree.root)[0] == "const":
        return f"{said}, an array that the function closes over"
    return said if tree.is_value else f"{said}: {counted(sum(row.count for row in tree.rows), 'value')}"
