"""Every collective law is needed: without it, some redistribution is worse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tiles import Tile, layout

from partita.dialects.layouts import Pending
from partita.dialects.mesh import Mesh
from partita.rewrites.redistribute import collective_terms as spine
from partita.rewrites.redistribute.search import Path, path
from partita.rewrites.rules import rule_files as rules
from partita.rewrites.rules.compile import RuleSet

# A law; mesh and shape; tiles, as axis:dim@stride, and pending sums before; tiles after; the steps.
LAWS = [
    ("scatter", "a=2, b=2, c=2", (16, 4), "", "add b", "b:0@2",
     "reduce_scatter add over (b) 0@2"),
    # Among fewer devices, an exchange of pieces is as good.
    ("exchange", "a=128, b=3, c=2", (128, 128), "a:1@1", "", "a:0@1",
     "all_to_all over (a) 1@1 to 0@1"),
    ("swap", "a=2, b=3, c=2", (24,), "a:0@12", "", "c:0@12",
     "permute over (a, c)"),
]  # fmt: skip


# The same, for steps of several axes, and for steps that change places to be cheaper.
WAYS = [
    ("a=4, b=2, c=2", (24,), "c:0@4, a:0@1", "", "a:0@2",
     "permute over (a, c); all_gather over (c) 0@1"),
    ("a=3, b=2, c=3", (6, 12), "b:1@3", "", "a:1@2",
     "slice over (a) 1@1; permute over (a, b); all_gather over (b) 1@1"),
    ("a=2, b=2, c=2", (24,), "b:0@12", "", "c:0@4, b:0@2",
     "pieces over (b, c): [b*12] to [3*c*b*2]"),
    ("a=2, b=2, c=2", (24,), "a:0@6", "", "c:0@1",
     "slice over (c) 0@1; all_gather over (a) 0@6"),
    ("a=4, b=2, c=2", (6, 12), "", "max a", "c:1@1",
     "slice over (c) 1@1; all_reduce max over (a)"),
    ("a=2, b=2, c=2", (24,), "c:0@12, b:0@3", "add a", "c:0@2, a:0@1",
     "reduce_scatter add over (a) 0@6; pieces over (a, b, c): [c*a*b*3] to [6*c*a]"),
    ("a=3, b=2, c=3", (6, 12), "b:1@6, c:0@2", "", "a:0@2, c:1@4",
     "slice over (a) 1@2; permute over (a, b, c); all_gather over (b) 1@2"),
    ("a=2, b=3, c=2", (24,), "a:0@3, c:0@12, b:0@1", "", "b:0@8, a:0@1",
     "pieces over (a, b, c): [c*2*a*b] to [b*4*a]"),
    ("a=4, b=4, c=2, d=2", (64, 64, 64), "d:2@16, a:1@1", "add c", "c:1@2, a:2@2, d:0@4",
     "reduce_scatter add over (c) 0@32; pieces over (a, c): [c*32, 16*a, 2*d*16] to [64, 16*c*2, 2*d*2*a*2]; "
     "all_to_all over (d) 2@16 to 0@4"),
    ("a=3, b=2, c=3", (6, 12), "b:1@6, c:0@2", "add a", "c:1@4, a:0@2",
     "reduce_scatter add over (a) 1@2; permute over (a, b, c); all_gather over (b) 1@2"),
    ("a=2, b=3, c=2", (16, 4), "a:0@2, c:0@4", "", "",
     "all_gather over (c, a) 0@2"),
    ("a=3, b=2, c=3", (24,), "b:0@4, c:0@8", "", "b:0@1",
     "all_to_all over (b) 0@4 to 0@1; all_gather over (c) 0@8"),
    ("a=2, b=2, c=2", (24,), "b:0@4, a:0@1", "", "c:0@1",
     "permute over (a, c); all_gather over (b) 0@4"),
    ("a=2, b=2, c=2", (6, 12), "c:1@6, a:1@3, b:0@1", "", "a:0@1",
     "permute over (a, b); all_gather over (c, b) 1@3"),
    ("a=2, b=2, c=2", (24,), "b:0@12, c:0@1", "", "a:0@12, b:0@3",
     "pieces over (a, b, c): [b*6*c] to [a*2*b*3]"),
    ("a=2, b=2, c=2", (16, 4), "", "add a, add c", "c:1@2",
     "reduce_scatter add over (c) 1@2; all_reduce add over (a)"),
    ("a=2, b=2, c=2", (6, 12), "b:1@1", "max c", "a:1@3, b:0@1",
     "pieces over (a, b): [6, 6*b] to [3*b, 2*a*3]; all_reduce max over (c)"),
    ("a=2, b=2, c=2", (6, 12), "c:0@1", "add a, add b", "a:0@1",
     "reduce_scatter add over (a, b) 1@3; permute over (a, c); all_gather over (c, b) 1@3"),
    ("a=2, b=2, c=2", (6, 12), "a:0@1", "add b, add c", "c:0@1",
     "reduce_scatter add over (b, c) 1@3; permute over (a, c); all_gather over (b, a) 1@3"),
    ("a=2, b=3, c=2", (24,), "b:0@2", "max c", "a:0@3",
     "slice over (a) 0@1; permute over (a, b); all_reduce max over (c); all_gather over (b) 0@1"),
    ("a=3, b=2, c=3", (24,), "b:0@1", "min a, min c", "a:0@1, b:0@6",
     "all_reduce min over (a, c); pieces over (a, b): [12*b] to [2*b*2*a]"),
    ("a=3, b=2, c=3", (6, 12), "", "add b, add c", "c:0@2, b:0@1",
     "reduce_scatter add over (c, b) 0@1"),
    ("a=2, b=2, c=2", (16, 4), "b:1@2, c:1@1", "max a", "a:0@2, b:0@8, c:0@4",
     "all_reduce max over (a); slice over (a) 0@2; all_to_all over (b, c) 1@1 to 0@4"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Clears the memos, which depend on the laws."""
    forget()
    yield
    forget()


def forget() -> None:
    path.cache_clear()
    spine.turn.cache_clear()


def find(mesh: str, shape: tuple[int, ...], source: str, pending: str, target: str) -> Path:
    on = Mesh.parse(mesh)
    sums = tuple(Pending(monoid, on.place(axis)) for monoid, axis in (each.split(" ") for each in pending.split(", ") if each))
    return path(layout(shape, tiles(source), on, sums), layout(shape, tiles(target), on), 4)


def tiles(text: str) -> tuple[Tile, ...]:
    found: list[Tile] = []
    for part in filter(None, text.split(", ")):
        axis, dim, stride = part.replace("@", ":").split(":")
        found.append((axis, int(dim), int(stride)))
    return tuple(found)


@pytest.mark.parametrize(("law", "mesh", "shape", "source", "pending", "target", "steps"), LAWS, ids=[row[0] for row in LAWS])
def test_without_a_law_a_redistribution_is_worse(
    law: str,
    mesh: str,
    shape: tuple[int, ...],
    source: str,
    pending: str,
    target: str,
    steps: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = (mesh, shape, source, pending, target)
    found = find(*question)
    assert str(found) == steps
    forget()

    def without(name: str) -> RuleSet:
        return rules.rules(name).without(law)

    monkeypatch.setattr(spine, "rules", without)
    other = find(*question)
    assert str(other) != steps
    assert (other.bytes, other.collectives) > (found.bytes, found.collectives)


def test_every_law_of_collectives_is_here() -> None:
    assert {row[0] for row in LAWS} == {rule.name for rule in rules.rules("collectives")}


@pytest.mark.parametrize(("mesh", "shape", "source", "pending", "target", "steps"), WAYS)
def test_the_way(mesh: str, shape: tuple[int, ...], source: str, pending: str, target: str, steps: str) -> None:
    assert str(find(mesh, shape, source, pending, target)) == steps
