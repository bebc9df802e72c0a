"""Halos: from any blocks of a dim to any windows of it, by the permutes of their intersections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from lockstep import run_steps
from xdsl.dialects import func
from xdsl.ir import Block, Region

from partita.dialects.layouts import Layout
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.factor import Factor
from partita.dialects.reference.interpret import run_devices
from partita.dialects.reference.lockstep import DeviceArrays, distribute
from partita.dialects.types import ArrayType
from partita.rewrites.redistribute.kinds.halo import exchanged, joint
from partita.rewrites.redistribute.search import Path, path


def factor(mesh: Mesh, axis: str, stride: int, before: int = 0, after: int = 0) -> Factor:
    return Factor(mesh.place(axis), stride, (before, after) if before or after else None)


def run_jointly(
    ways: Sequence[Path], values: Sequence[DeviceArrays], sources: Sequence[Layout], mesh: Mesh
) -> list[DeviceArrays]:
    """The joint steps of several arrays on all devices in lockstep."""
    block = Block(arg_types=[ArrayType.whole("int32", source.local_shape) for source in sources])
    ops, made = exchanged(ways, block.args)
    block.add_ops(ops)
    block.add_op(func.ReturnOp(*made))
    types = [arg.type for arg in block.args], [value.type for value in made]
    return run_devices(func.FuncOp("main", types, Region(block)), list(values), mesh.size)


def check(source: Layout, target: Layout, mesh: Mesh) -> Path:
    """Every device gets what it is to hold, with zeros outside of the array."""
    way = path(source, target, 4)
    shape = source.global_shape
    whole = np.arange(1, 1 + np.prod(shape), dtype=np.int32).reshape(shape)
    given = distribute(whole, source, mesh.size)
    wanted = distribute(whole, target, mesh.size)
    for got, expected in zip(run_steps(way.steps, given, mesh), wanted, strict=True):
        np.testing.assert_array_equal(got, expected)
    return way


@st.composite
def windows(draw: st.DrawFn, mesh: Mesh, axis: str, extent: int) -> Factor:
    """Windows as convolutions and slices make them: blocks of some stride, and how far each reaches beyond."""
    even = -(-extent // mesh[axis])
    stride = draw(st.integers(1, even + 2))
    before = draw(st.integers(1 - stride, 2 * stride))
    after = draw(st.integers(1 - stride - before, 2 * stride).filter(lambda after: before or after))
    forwards = factor(mesh, axis, stride, before, after)
    return backwards(forwards) if draw(st.booleans()) else forwards


def backwards(windows: Factor) -> Factor:
    """The same windows, the last one first."""
    before = -windows.start(windows.size - 1)
    after = windows.width + windows.stride - before
    return Factor(windows.place, -windows.stride, (before, after))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Mesh, int, Factor | None, Factor]:
    mesh = Mesh(x=draw(st.sampled_from([2, 3, 5, 7])))
    extent = draw(st.integers(2, 24))
    here = draw(st.none() | st.just(factor(mesh, "x", -(-extent // mesh["x"]))))
    there = draw(windows(mesh, "x", extent))
    rounds, span = draw(st.integers(1, 3)), there.size * abs(there.stride)
    # Blocks in turn, as far apart as the windows.
    return (mesh, rounds * span, factor(mesh, "x", abs(there.stride)), there) if rounds > 1 else (mesh, extent, here, there)


@given(cases())
@example((Mesh(x=2), 8, factor(Mesh(x=2), "x", 4), factor(Mesh(x=2), "x", 4, 1, 1)))
@example((Mesh(x=7), 8, factor(Mesh(x=7), "x", 2), factor(Mesh(x=7), "x", 1, 1, 1)))
@example((Mesh(x=8), 30, factor(Mesh(x=8), "x", 4), backwards(factor(Mesh(x=8), "x", 4, 2, -2))))
@example((Mesh(x=3), 12, factor(Mesh(x=3), "x", 2), factor(Mesh(x=3), "x", 2, -7, 7)))
@example((Mesh(x=2), 4, factor(Mesh(x=2), "x", 1), factor(Mesh(x=2), "x", 1, 2, -2)))
def test_any_blocks_become_any_windows(case: tuple[Mesh, int, Factor | None, Factor]) -> None:
    mesh, extent, here, there = case
    source = Layout.of((extent, 2), [(0, here)] if here is not None else [])
    check(source, Layout.of((extent, 2), [(0, there)]), mesh)


@given(st.data())
def test_any_windows_that_cover_a_dim_become_any_others(data: st.DataObject) -> None:
    mesh = Mesh(x=data.draw(st.sampled_from([2, 3, 5])))
    stride, more = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 3))
    here = factor(mesh, "x", stride, data.draw(st.integers(0 if more else 1, 3)), more)
    extent = data.draw(st.integers(1, (mesh["x"] - 1) * stride + stride + more))
    here = backwards(here) if data.draw(st.booleans()) else here
    there = data.draw(windows(mesh, "x", extent) | st.none())
    check(Layout.of((extent,), [(0, here)]), Layout.of((extent,), [(0, there)] if there is not None else []), mesh)


@given(st.data())
def test_windows_of_several_arrays_share_permutes(data: st.DataObject) -> None:
    """Each device gets what it is to hold of each array, for no more bytes than if they moved one by one."""
    mesh = Mesh(x=data.draw(st.sampled_from([2, 3, 5])))
    sources, targets = list[Layout](), list[Layout]()
    for _ in range(data.draw(st.integers(2, 3))):
        extent = data.draw(st.integers(2, 16))
        sources.append(Layout.of((extent, 2), [(0, factor(mesh, "x", -(-extent // mesh["x"])))]))
        targets.append(Layout.of((extent, 2), [(0, data.draw(windows(mesh, "x", extent)))]))
    alone = [path(source, target, 4) for source, target in zip(sources, targets, strict=True)]
    ways = joint(alone)
    if ways is None:
        return
    assert sum(way.bytes for way in ways) < sum(way.bytes for way in alone)
    wholes = [np.arange(1, 1 + np.prod(shape), dtype=np.int32).reshape(shape) for shape in (s.global_shape for s in sources)]
    given = [distribute(whole, source, mesh.size) for whole, source in zip(wholes, sources, strict=True)]
    wanted = [distribute(whole, target, mesh.size) for whole, target in zip(wholes, targets, strict=True)]
    for found, expected in zip(run_jointly(ways, given, sources, mesh), wanted, strict=True):
        for got, part in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, part)


def test_the_parts_of_a_concatenation_share_two_permutes() -> None:
    """Each device has two blocks to send, and gets two."""
    mesh = Mesh(d=8)
    source = Layout.of((16,), [(0, factor(mesh, "d", 2))])
    targets = [Layout.of((16,), [(0, factor(mesh, "d", 4, *halo))]) for halo in ((0, 0), (16, -16))]
    ways = joint([path(source, target, 4) for target in targets])
    assert ways is not None
    assert [(way.collectives, way.bytes) for way in ways] == [(2, 16), (0, 0)]


@pytest.mark.parametrize("halo", [(-2, 2), (-2, 4), (-4, 4), (2, 1), (-1, 3)])
def test_the_last_device_has_a_longer_block(halo: tuple[int, int]) -> None:
    """Of 8 rows on 7 devices the last one has two: the piece of one distance overlaps that of another."""
    mesh = Mesh(x=7)
    source = Layout.of((8, 2), [(0, factor(mesh, "x", 1, 0, 1))])
    check(source, Layout.of((8, 2), [(0, factor(mesh, "x", 1, *halo))]), mesh)


@pytest.mark.parametrize(
    ("extent", "window", "moves", "received"),
    [
        pytest.param(512, (64, 1, 1), 2, 8, id="a window of three"),
        pytest.param(512, (64, 0, 2), 1, 8, id="two rows after"),
        pytest.param(512, (64, 70, 0), 2, 280, id="a halo wider than a block takes two hops"),
        pytest.param(512, (64, 0, -63), 0, 0, id="a part of each block"),
        pytest.param(512, (1, -511, 511), 1, 4, id="one row for one device"),
    ],
)
def test_what_a_halo_costs(extent: int, window: tuple[int, int, int], moves: int, received: int) -> None:
    mesh = Mesh(data=8)
    source = Layout.of((extent,), [(0, factor(mesh, "data", 64))])
    way = check(source, Layout.of((extent,), [(0, factor(mesh, "data", *window))]), mesh)
    assert (way.collectives, way.bytes) == (moves, received)


def test_of_windows_that_overlap_a_device_receives_only_the_rows_that_it_lacks() -> None:
    """Device 2 has rows 7 to 12 and is to have 10 to 15: it receives three of them, though device 3 has five."""
    mesh = Mesh(x=4)
    source = Layout.of((16,), [(0, factor(mesh, "x", 4, 1, 1))])
    way = check(source, Layout.of((16,), [(0, factor(mesh, "x", 5, 0, 1))]), mesh)
    assert (way.collectives, way.bytes) == (1, 3 * 4)
