"""What a plan answers over many axes, on many devices, and with many conflicts. Work is counted in calls of functions."""

from collections.abc import Callable
from math import log
from pathlib import Path

import growing
import jax
import jax.numpy as jnp
import pytest
from growing import calls

import partita as pt
from partita.dialects.layouts import Layout
from partita.dialects.mesh import Mesh
from partita.dialects.ranges.factor import Factor
from partita.rewrites.redistribute.axis_bundles import Bundles
from partita.rewrites.redistribute.kinds.pieces import trade_of
from partita.rewrites.redistribute.search import path


def growth(work: Callable[[int], int], small: int) -> float:
    """How many times the work for `4 small` is that of `n log n`."""
    work(small)
    few, many = work(small), work(4 * small)
    return many / few / (4 * log(4 * small) / log(small))


def test_the_program_of_a_concatenation_is_no_longer_on_more_devices() -> None:
    """Its pieces begin elsewhere on each device, which finds its own in a table."""
    lengths = [len(str(growing.devices(count)["concatenate"]()[1].spmd()).splitlines()) for count in (16, 64, 256)]
    assert lengths == [lengths[0]] * 3


def crossed(count: int) -> pt.Plan:
    """A plan with so many open conflicts."""

    def function(arrays: list[jax.Array]) -> list[jax.Array]:
        return [each + each.T for each in arrays]

    arrays = [jax.ShapeDtypeStruct((8, 8), "float32")] * count
    return pt.plan(function, pt.Mesh(a=4), arrays).apply(pt.Tile({"arrays/*": 0}, "a"))


def listed(plan: pt.Plan) -> str:
    return str(plan.conflicts)


@pytest.mark.parametrize("question", [listed, str], ids=["plan.conflicts", "print"])
def test_conflicts_are_listed_in_time_that_grows_with_their_number(question: Callable[[pt.Plan], str]) -> None:
    def work(count: int) -> int:
        plan = crossed(count)
        assert len(plan.conflicts) == count
        return calls(lambda: question(plan))

    assert growth(work, 25) < 1.2


def test_ways_out_of_a_conflict_between_many_operands_grow_with_their_number() -> None:
    def work(count: int) -> int:
        def function(arrays: list[jax.Array]) -> jax.Array:
            return jnp.concatenate([jnp.sin(each.T) if at % 2 else each for at, each in enumerate(arrays)], 1)

        arrays = [jax.ShapeDtypeStruct((8, 8), "float32")] * count
        (conflict,) = pt.plan(function, pt.Mesh(a=4), arrays).apply(pt.Tile({"arrays/*": 0}, "a")).conflicts
        return calls(lambda: conflict.resolutions)

    assert growth(work, 16) < 1.2


def test_the_ways_out_over_many_dims_and_axes_are_tried_in_time_that_grows_with_their_number(tmp_path: Path) -> None:
    """A page tries the first conflicts of each of its steps, and a way out of each gathers all dims but one."""

    def work(count: int) -> int:
        plan = growing.axes(count)["product of many dims"]()[1]
        return calls(lambda: plan.html(tmp_path / "page.html"))

    work(3)
    few, many = work(3), work(12)
    assert many / few < 1.2 * (12 / 3) ** 3, "steps, conflicts of each, and the dims of a layout"


def test_a_page_over_many_axes_of_two_dims_grows_at_most_with_their_square(tmp_path: Path) -> None:
    """A page has a step for each axis, and tries conflicts of each."""

    def work(count: int) -> int:
        plan = growing.axes(count)["x @ x, two dims"]()[1]
        path.cache_clear()
        trade_of.cache_clear()
        return calls(lambda: plan.html(tmp_path / "page.html"))

    work(6)
    few, many = work(6), work(12)
    assert many / few < (12 / 6) ** 2


def test_redistributions_that_differ_in_names_and_in_what_stays_are_one() -> None:
    mesh = Mesh(dict.fromkeys("abcdefgh", 2))

    def bundled(before: str, after: str) -> tuple[object, ...]:
        """Of `a b _` and `_ a b`, each axis on the dim of its place."""
        source, target = (
            Layout.of((4,) * 6, [(dim, Factor(mesh.place(axis), 2)) for dim, axis in enumerate(text.split()) if axis != "_"])
            for text in (before, after)
        )
        bundles = Bundles(source, target, 4)
        return bundles.source, bundles.target, bundles.itemsize

    assert bundled("a b c d e _", "a b c d _ e") == bundled("h f a b _ g", "h f a b g _")


def test_redistributions_that_differ_in_axes_that_stay_at_the_ends_of_a_dim_are_one() -> None:
    """`s*a*t*4` to `s*2*t*4`, `s` and `t` of any number of axes, is `a` to `2` of rows of 4."""
    mesh = Mesh(dict.fromkeys("abcdefgh", 2))

    def bundled(*axes: str, moving: int, rest: int) -> tuple[object, ...]:
        """Of a dim of these axes, of which one moves to the other dim, and the rest of both dims."""
        strides = [rest * 2**at for at in reversed(range(len(axes)))]
        here = [(0, Factor(mesh.place(axis), stride)) for axis, stride in zip(axes, strides, strict=True)]
        there = [*here[:moving], (1, Factor(mesh.place(axes[moving]), 4)), *here[moving + 1 :]]
        shape = rest * 2 ** len(axes), 8
        bundles = Bundles(Layout.of(shape, here), Layout.of(shape, there), 4)
        return bundles.source, bundles.target, bundles.itemsize

    assert bundled("a", "b", "c", moving=1, rest=4) == bundled("h", "f", "e", "c", "b", "a", moving=2, rest=4)
    assert bundled("a", "b", moving=0, rest=4) == bundled("a", "b", "c", "d", moving=1, rest=4)
