"""An axis that stops at a reshape is split into sub-axes by the plan itself, where a device then receives less."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax.sharding import AxisType, Mesh, PartitionSpec
from sent import normal, sent

import partita as pt
from partita.rewrites.decide import price
from tests.support.everywhere import agrees

EIGHT = pt.Mesh(d=8)
ROWS = normal(64, 32)


def rows(x: Any) -> Any:
    """Blocks of rows, summed: there are fewer blocks than devices."""
    return (jnp.sin(x).reshape(4, 16, 32) * 2).sum(1)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collectives start at once, so that they save as much in small programs as in large ones."""
    monkeypatch.setattr(price, "START", 0)


def squares(f: Any) -> Any:
    def gradient(x: Any) -> Any:
        return jax.grad(lambda x: jnp.sum(f(x) ** 2))(x)

    return gradient


@pytest.mark.usefixtures("at_once")
def test_a_reshape_that_splits_an_axis_sends_nothing():
    x = normal(8, 2048)

    def split(x: Any) -> Any:
        return x.reshape(2, 4, 2048) * 2

    plan = agrees(pt.plan(split, pt.Mesh(d=4), x).tile("x", 0, "d"), split, x, derived=True)
    assert sent(plan, x) == {}
    assert plan.layout() == {"x": "f32[d*2, 2048]", "result": "f32[d.0:2, d.1:2*2, 2048]"}
    plan = pt.plan(squares(split), pt.Mesh(d=4), x).tile("x", 0, "d")
    assert sent(plan, x) == {} and plan.layout("result") == {"result": "f32[d*2, 2048]"}


@pytest.mark.usefixtures("at_once")
def test_a_reshape_to_fewer_rows_than_devices_leaves_a_sum_over_some_of_them():
    plan = agrees(pt.plan(rows, EIGHT, ROWS).tile("x", 0, "d"), rows, ROWS, derived=True)
    assert sent(plan, ROWS) == {"all_reduce": 1} and plan.bytes_per_device() == 128
    plan = pt.plan(squares(rows), EIGHT, ROWS).tile("x", 0, "d")
    assert sent(plan, ROWS) == {"all_reduce": 1} and plan.bytes_per_device() == 128


def test_a_split_pays_only_where_it_saves_more_than_the_start_of_a_collective():
    """Gathers of a megabyte and more cost more than that, one of 7 KiB does not."""

    def split(x: Any) -> Any:
        return x.reshape(2, 4, -1) * 2

    assert pt.plan(rows, EIGHT, ROWS).tile("x", 0, "d").counts()["all_gather"] == 1
    x = normal(8, 65536)
    assert sent(pt.plan(split, pt.Mesh(d=4), x).tile("x", 0, "d"), x) == {}

    def long(x: Any) -> Any:
        return x.reshape(4, 16, -1).sum(1)

    x = normal(64, 8192)
    plan = pt.plan(long, EIGHT, x).tile("x", 0, "d")
    assert sent(plan, x) == {"all_reduce": 1} and plan.bytes_per_device() == 4 * 8192


@pytest.mark.usefixtures("at_once")
def test_one_split_passes_reshapes_of_several_kinds():
    def program(x: Any) -> Any:
        return x.reshape(4, 16, 32) * 2, x.reshape(2, 32, 32) * 3

    plan = agrees(pt.plan(program, EIGHT, ROWS).tile("x", 0, "d"), program, ROWS, derived=True)
    assert sent(plan, ROWS) == {}
    assert plan.layout("result/*") == {
        "result/0": "f32[d.0:2*d.1:2, d.2:2*8, 32]",
        "result/1": "f32[d.0:2, d.1:2*d.2:2*8, 32]",
    }


@pytest.mark.usefixtures("at_once")
def test_one_of_two_axes_is_split():
    def split(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w).reshape(2, 4, 16)

    x, w = normal(8, 32), normal(32, 16)
    plan = pt.plan(split, pt.Mesh(data=4, model=2), x, w).tile("x", 0, "data").tile("w", 1, "model")
    agrees(plan, split, x, w, derived=True)
    assert sent(plan, x, w) == {}
    assert plan.layout("result") == {"result": "f32[data.0:2, data.1:2*2, model*8]"}


@pytest.mark.usefixtures("at_once")
def test_layers_that_stop_alike_share_a_split():
    """Query heads over the devices, of which the fewer key heads are on as many as read them."""

    def layer(x: Any, w: Any) -> Any:
        query, key = (x @ w["q"]).reshape(8, 2, 4, 16), (x @ w["k"]).reshape(8, 2, 16)
        return x + jax.nn.softmax(jnp.einsum("sgnd,tgd->gnst", query, key)).reshape(8, 8, 8).sum(0) @ w["o"]

    def attention(x: Any, layers: Any) -> Any:
        for each in layers:
            x = layer(x, each)
        return x

    x, layers = normal(8, 8), [{"q": normal(8, 128), "k": normal(8, 32), "o": normal(8, 8)}] * 3
    plan = pt.plan(attention, pt.Mesh(model=8), x, layers).tile("layers/*/q", 1, "model")
    assert sent(plan, x, layers) == {"all_reduce": 3}
    assert plan.blocked and all(each.passed for each in plan.blocked)
    assert plan.layout("layers/0/k") == {"layers/0/k": "f32[8, model.0:2*16]"}


# --- what a plan says of it ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("at_once")
def test_a_stop_that_a_split_overcomes_is_listed_as_such():
    plan = pt.plan(rows, EIGHT, ROWS).tile("x", 0, "d")
    (stop,) = plan.blocked
    split = "`d` is split into `d.0:4` and `d.1:2`: a device receives 128 bytes in a call, instead of 896 bytes"
    assert stop.passed == split == stop.cost and stop.cure is None and not stop.helps
    assert split in str(plan) and split in plan.explain(stop)
    assert "propagation stopped" not in str(plan)
    assert "dim 0 on `d.0:4`: decided by 1: tile('x', 0, 'd')" in plan.explain("result")
    assert "the summed index of dim 1 of `mul#0` is on `d.1:2` by 1: tile('x', 0, 'd')" in plan.explain(plan.collectives()[0])
    assert [(each.value, each.axes) for each in plan.silent()] == [("result", ("d.1:2",))]
    assert [each.tactics for each in plan.collectives()] == [(1,)]


@pytest.mark.usefixtures("at_once")
def test_a_split_belongs_to_the_plan_and_not_to_its_mesh():
    plan = pt.plan(rows, EIGHT, ROWS).tile("x", 0, "d")
    assert plan.mesh is EIGHT and plan.decided.mesh is EIGHT.refine(d=(4, 2))
    named = plan.tile("result", 1, "d.0:2")
    assert str(named.mesh) == "d.0=2, d.1=4"
    assert named.check(ROWS) < 1e-4
    assert plan.replicate("reshape#0", "d").decided.mesh is EIGHT


@pytest.mark.usefixtures("at_once")
def test_arrays_outside_are_on_the_whole_axis_where_it_can_express_them():
    def split(x: Any) -> Any:
        return x * 2, x.reshape(2, 4, 32) * 3

    x = normal(8, 32)
    compiled = pt.plan(split, pt.Mesh(d=4), x).tile("x", 0, "d").compile()
    (taken,), (doubled, apart) = compiled.in_shardings, compiled.out_shardings
    assert taken.spec == doubled.spec == PartitionSpec("d", None) and taken.mesh.axis_names == ("d",)
    assert apart.spec == PartitionSpec("d.0:2", "d.1:2", None) and apart.mesh.axis_names == ("d.0:2", "d.1:2")
    assert compiled(jax.device_put(x, taken))[0].sharding.is_equivalent_to(doubled, 2)


@pytest.mark.usefixtures("at_once")
def test_a_plan_with_a_split_is_saved_and_replayed(tmp_path: Path):
    plan = pt.plan(rows, EIGHT, ROWS).tile("x", 0, "d")
    plan.save(tmp_path / "plan.partita")
    text = (tmp_path / "plan.partita").read_text()
    assert text.splitlines()[0] == "mesh d=8" and "layout result: f32[d.0:4, 32]" in text
    again = pt.replay(rows, EIGHT, tmp_path / "plan.partita", ROWS)
    again.save(tmp_path / "again.partita")
    assert (tmp_path / "again.partita").read_text() == text
    plan.html(tmp_path / "plan.html")
    assert "d.1:2" in str(plan.spmd())


@pytest.mark.usefixtures("at_once")
def test_a_batch_that_a_split_places_is_computed_in_parts():
    plan = pt.plan(rows, EIGHT, ROWS).apply(pt.DataParallel("d", inputs="x"))
    assert plan.bytes_per_device() == 128


# --- where no axis is split --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("at_once")
def test_an_axis_of_a_shard_map_is_not_split_by_a_plan():
    devices = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("d",))
    spec = PartitionSpec

    def total(x: Any) -> Any:
        mapped = jax.shard_map(lambda b: jax.lax.psum(b, "d"), mesh=devices, in_specs=spec("d"), out_specs=spec())
        return rows(x), mapped(x)

    plan = pt.plan(total, EIGHT, ROWS).tile("x", 0, "d")
    assert plan.decided is plan and "split" not in str(plan.blocked[0].cure)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("derived", [False, True])
def test_a_plan_inside_a_shard_map_runs_on_the_axes_that_are_left(derived: bool):
    compiled = pt.plan(rows, EIGHT, ROWS).tile("x", 0, "d").compile()
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(1, 8), ("outer", "d"), axis_types=(AxisType.Auto,) * 2)
    spec = PartitionSpec("outer")

    def inside(x: Any) -> Any:
        return jax.shard_map(compiled, mesh=mesh, in_specs=spec, out_specs=spec, axis_names={"outer"})(x)

    ours, theirs = (squares(inside), squares(rows)) if derived else (inside, rows)
    np.testing.assert_allclose(jax.jit(ours)(ROWS), theirs(ROWS), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("at_once")
def test_values_that_a_tactic_keeps_whole_are_whole_on_an_axis_that_is_split():
    plan = pt.plan(rows, EIGHT, ROWS).tile("x", 0, "d").replicate("mul#0", "d")
    assert plan.check(ROWS) < 1e-4 and plan.layout("mul#0") == {"mul#0": "f32[4, 16, 32]"}
    # Nothing but the value that is kept whole is gathered.
    assert {each.value for each in plan.collectives()} == {"mul#0"} and plan.bytes_per_device() == 4 * 16 * 32 * 4 * 7 // 8


# --- any reshape -------------------------------------------------------------------------------------------------------

MESHES = [pt.Mesh(a=4), pt.Mesh(a=8), pt.Mesh(a=4, b=2)]
FACTORS = st.lists(st.sampled_from([2, 3, 4, 8]), min_size=1, max_size=3)


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Three ways to factor one extent."""
    primes = [factor for each in draw(FACTORS) for factor in ((each,) if each < 4 else (2,) * (each.bit_length() - 1))]
    ways = list[list[int]]()
    for _ in range(3):
        order = draw(st.permutations(primes))
        cuts = sorted(draw(st.sets(st.integers(1, len(order)), max_size=2)) | {0, len(order)})
        ways.append([prod(order[start:end]) for start, end in pairwise(cuts)])
    return ways[0], ways[1], ways[2]


def gradients(f: Any) -> Any:
    return jax.grad(lambda x, w: sum(jnp.sum(each**2) for each in f(x, w)), (0, 1))


@settings(max_examples=25, deadline=None)
@given(reshapes(), st.sampled_from(MESHES), st.data())
def test_any_reshapes_are_those_of_the_function(shapes: tuple[list[int], ...], mesh: pt.Mesh, data: st.DataObject):
    first, second, third = shapes
    x, w = normal(*first), normal(second[-1], 4)
    way = data.draw(st.sampled_from(["sum", "cumsum", "product", "none"]))

    def program(x: Any, w: Any) -> Any:
        y = jnp.sin(x).reshape(second) * 2
        y = y.sum(0) if way == "sum" else jnp.cumsum(y, 0) if way == "cumsum" else y @ w if way == "product" else y.T
        return y, (x + 1).reshape(third)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(price, "START", 0)
        plan = pt.plan(program, mesh, x, w)
        for axis in mesh:
            names = data.draw(st.sampled_from(["x", "result/0", "result/1"]))
            rank = len(plan.source.shape(plan.source.addresses.one(names)[names]))
            dim = data.draw(st.integers(0, max(rank - 1, 0)))
            try:
                plan = plan.tile(names, dim, axis)
            except pt.Error:
                continue
        assert plan.check(x, w) < 1e-3
        ours, theirs = (gradients(f)(x, w) for f in (plan.compile(), program))
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
