"""A redistribution receives as few bytes as any sequence of steps: compared with Dijkstra over all layouts."""

from __future__ import annotations

from functools import cache
from math import prod

import pytest
import shortest_ways
from hypothesis import given, settings, strategies as st
from shortest_ways import Spot, State, Ways
from tiles import layout

from partita.dialects.mesh import Mesh
from partita.rewrites.redistribute.search import path

ways = cache(Ways)


@pytest.mark.parametrize(
    ("mesh", "shape"),
    [(Mesh(a=2, b=3), (12,)), (Mesh(a=2, b=3), (4, 6)), (Mesh(a=2, b=2, c=2), (6,)), (Mesh(a=2, b=2), (2, 2, 2))],
)
def test_every_two_layouts_of_a_small_array(mesh: Mesh, shape: tuple[int, ...]) -> None:
    assert shortest_ways.compare(shape, mesh) > 40


@st.composite
def questions(draw: st.DrawFn) -> tuple[State, State, tuple[int, ...], Mesh]:
    mesh, shape = draw(st.sampled_from(shortest_ways.MESHES)), draw(st.sampled_from(shortest_ways.SHAPES))
    layouts = st.sampled_from(ways(shape, mesh).layouts())
    monoid: list[Spot] = [None, draw(st.sampled_from(["add", "max"]))]
    source = tuple(draw(st.sampled_from(monoid)) if spot is None else spot for spot in draw(layouts))
    return source, draw(layouts), shape, mesh


@settings(max_examples=150)
@given(questions())
def test_two_layouts_of_any_array(question: tuple[State, State, tuple[int, ...], Mesh]) -> None:
    source, target, shape, mesh = question
    assert shortest_ways.found(*question) == ways(shape, mesh).bytes(source, target)


def test_two_axes_of_a_cube_move_to_one_dim() -> None:
    """`f32[16, 16, 16]`, 2 KiB a device: `[y, -, x] -> [-, x*y, -]` in 2.5 KiB."""
    mesh = Mesh(x=4, y=2)
    source = layout((16, 16, 16), [("y", 0, 8), ("x", 2, 4)], mesh)
    found = path(source, layout((16, 16, 16), [("x", 1, 4), ("y", 1, 2)], mesh), 4, mesh)
    assert [step.kind for step in found.steps] == ["all_to_all", "all_to_all"]
    assert found.bytes == 2560
    assert all(prod(step.after.local_shape(mesh)) == 512 for step in found.steps)


def test_a_large_search_ends_with_a_good_way() -> None:
    mesh = Mesh(a=2, b=2, c=2, d=2)
    source = layout((64,) * 4, [("a", 2, 32), ("b", 2, 16), ("d", 3, 32)], mesh)
    target = layout((64,) * 4, [("b", 1, 32), ("c", 3, 32), ("a", 1, 16), ("d", 3, 16)], mesh)
    found = path(source, target, 4, mesh)
    assert found.bytes <= 1.75 * 4 * prod(target.local_shape(mesh))
