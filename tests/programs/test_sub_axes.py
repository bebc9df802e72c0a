"""Sub-axes: a tactic names a part of an axis, or `propagate` crosses a reshape by splitting one."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import partita as pt
from tests.support.everywhere import agrees

DATA = pt.Mesh(data=8)
X, W = jnp.sin(jnp.arange(128.0)).reshape(8, 16), jnp.cos(jnp.arange(128.0)).reshape(16, 8)
ROW = jnp.sin(jnp.arange(16.0))


def layer(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w).sum(1), (x @ w) * 2


def test_a_tactic_names_the_parts_of_an_axis():
    plan = pt.plan(layer, DATA, X, W).tile("x", 0, "data.0:2").tile("x", 1, "data.1:4")
    assert str(plan.mesh) == "data.0=2, data.1=4"
    assert plan.layout(["x", "w"]) == {"x": "f32[data.0:2*4, data.1:4*4]", "w": "f32[data.1:4*4, 8]"}
    assert plan.counts()["all_reduce"] == 2 and plan.bytes_per_device() == 2 * 192
    assert "`data.1:4`: decided by 2: tile('x', 1, 'data.1:4')" in plan.explain("x")
    agrees(plan, layer, X, W, derived=True)


@pytest.mark.parametrize("named", [("data.0:2", "data.1:4"), ("data.0:2", "data.1"), ("data.1:4", "data.0")])
def test_the_other_part_is_named_without_its_size(named: tuple[str, str]):
    plan = pt.plan(layer, DATA, X, W)
    for axis in named:
        plan = plan.tile("x", int(axis[5]), axis)
    assert plan.layout("x") == {"x": "f32[data.0:2*4, data.1:4*4]"}


def test_what_was_placed_on_the_axis_is_placed_on_its_parts_and_keeps_its_devices():
    whole = pt.plan(layer, DATA, X, W).tile("x", 0, "data")
    plan = agrees(whole.tile("w", 1, "data.1:4"), layer, X, W)
    assert plan.layout(["x", "w"]) == {"x": "f32[data.0:2*data.1:4, 16]", "w": "f32[16, data.1:4*2]"}
    ours, theirs = plan.compile().in_shardings[0], whole.compile().in_shardings[0]
    assert ours.is_equivalent_to(theirs, X.ndim)
    assert whole.mesh is DATA and whole.layout("x") == {"x": "f32[data, 16]"}


def test_a_tactic_that_names_the_axis_places_its_parts_in_order():
    plan = pt.plan(layer, DATA, X, W).tile("w", 1, "data.1:4").tile("x", 0, "data")
    assert plan.layout("x") == {"x": "f32[data.0:2*data.1:4, 16]"}
    agrees(plan, layer, X, W)
    plan = pt.plan(layer, DATA, X, W).tile("w", 1, "data.1:4").replicate("x", "data")
    with pytest.raises(pt.Error, match=r"`x` cannot be tiled: it is replicated along `data\.0:2`"):
        plan.tile("x", 0, "data")


def test_the_claims_on_both_parts_propagate_when_the_axis_is_named():
    plan = pt.plan(layer, DATA, X, W).tile("x", 0, "data.0:2", propagate=False).tile("w", 1, "data.1:4", propagate=False)
    assert plan.layout("result/1") == {"result/1": "f32[8, 8]"}
    assert agrees(plan.propagate("data"), layer, X, W).layout("result/1") == {"result/1": "f32[data.0:2*4, data.1:4*2]"}


def test_library_tactics_take_parts():
    plan = pt.plan(layer, DATA, X, W).apply(pt.DataParallel("data.0:2", inputs="x"), pt.Megatron("data.1:4", column="w"))
    assert plan.layout("result/1") == {"result/1": "f32[data.0:2*4, data.1:4*2]"}
    agrees(plan, layer, X, W)
    plan = pt.plan(layer, DATA, X, W).apply(pt.DataParallel("data.0:2", inputs="x"), pt.ZeRO(3, "data", params="w"))
    assert plan.layout("w") == {"w": "f32[data.0:2*data.1:4*2, 8]"}
    agrees(plan, layer, X, W)
    plan = pt.plan(layer, DATA, X[:6], W).tile("w", 1, "data.0:2").apply(pt.DataParallel("data", inputs="x", padded=True))
    assert plan.layout("x") == {"x": "f32[data.0:2*data.1:4 pad 6, 16]"}
    agrees(plan, layer, X[:6], W)


def test_pt_jit_takes_parts_and_arrays_on_the_whole_axis():
    tactics = [pt.Tile({"x": 0}, "data.0:2"), pt.Tile({"x": 1}, "data.1:4")]
    step = pt.jit(layer, mesh=DATA, tactics=tactics, reshard="allow")
    devices = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("data",))
    placed = jax.device_put(X, jax.sharding.NamedSharding(devices, jax.sharding.PartitionSpec("data")))
    for ours, theirs in zip(step(placed, W), layer(X, W), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("tactics", "title"),
    [
        (["data.0:3"], r"`data\.0:3` does not divide `data` \(8 devices\)"),
        (["data.0:0"], r"`data\.0:0` does not divide `data` \(8 devices\)"),
        (["data.0"], r"`data\.0` is not a sub-axis of `data` \(8 devices\)"),
        (["data."], r"`data\.` is not a sub-axis of `data` \(8 devices\)"),
        (["data.2:2"], r"`data\.2:2` is not a sub-axis of `data`: naming one splits it into two"),
        (["dta.0:2"], "the mesh has no axis `dta`"),
        (["data.0:2", "data.0:4"], r"`data\.0:4` is not a sub-axis of `data`, which is split into `data\.0:2` and `data\.1:4`"),
        (["data.0:2", "data.1:2"], r"`data\.1:2` is not a sub-axis of `data`, which is split into `data\.0:2` and `data\.1:4`"),
        (["data.0:2", "data.0:2"], r"axis `data\.0:2` is already on its dim 0"),
        (["data.0:2", "data"], r"axis `data\.0:2` is already on its dim 0"),
    ],
)
def test_a_part_that_does_not_exist_or_overlaps_another_is_an_error(tactics: list[str], title: str):
    plan = pt.plan(layer, DATA, X, W)
    for dim, axis in enumerate(tactics[:-1]):
        plan = plan.tile("x", dim, axis)
    before = plan.layout(), plan.mesh, plan.trace
    for act in (lambda: plan.tile("x", len(tactics) - 1, tactics[-1]), lambda: plan.apply(pt.Tile({"x": 1}, tactics[-1]))):
        with pytest.raises(pt.Error, match=title):
            act()
    assert (plan.layout(), plan.mesh, plan.trace) == before


def test_an_extent_that_a_part_does_not_divide_is_an_error():
    plan = pt.plan(lambda x: x * 2, DATA, X[:6])
    with pytest.raises(pt.Error, match=r"dim 0 has 6 elements, which do not divide over `data\.0:4` \(4 devices\)"):
        plan.tile("x", 0, "data.0:4")
    with pytest.raises(pt.Error, match=r"expected a dim, got the mesh axis `data`"):
        plan.tile("x", 0, "data.0:2").tile("x", "data", "data")  # the whole axis is still a name


def test_an_axis_on_which_windows_lie_is_split():
    def blurred(x: Any, w: Any) -> Any:
        out = jax.lax.conv_general_dilated(x, jnp.ones((3, 1, 1)), (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
        return jnp.diff(out, axis=1), w * 2

    args = jnp.arange(64.0).reshape(1, 64, 1), jnp.arange(16.0)
    plan = pt.plan(blurred, DATA, *args).tile("x", 1, "data")
    split = plan.tile("w", 0, "data.0:2")
    assert split.counts() == plan.counts() and split.bytes_per_device() == plan.bytes_per_device()
    assert split.layout("x") == {"x": "f32[1, data.0:2*data.1:4*8, 1]"}
    agrees(split, blurred, *args)
    agrees(pt.plan(blurred, DATA, *args).tile("x", 1, "data.0:2"), blurred, *args)


def test_an_axis_of_a_shard_map_stays_whole():
    devices = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("data",))
    spec = jax.sharding.PartitionSpec

    def total(x: Any) -> Any:
        return jax.shard_map(lambda b: jax.lax.psum(b, "data"), mesh=devices, in_specs=spec("data"), out_specs=spec())(x)

    with pytest.raises(pt.Error, match="`data` cannot be split into sub-axes: a `shard_map` of the program runs on it"):
        pt.plan(total, DATA, X).tile("x", 1, "data.0:2")
    plan = pt.plan(total, DATA.refine(data=(2, 4)), X)
    assert [each.own for each in plan.whole] == [False]
    np.testing.assert_allclose(plan.compile()(X), total(X), rtol=1e-5)


def test_an_op_that_runs_once_runs_on_the_first_device_of_all_parts(capfd: pytest.CaptureFixture[str]):
    def printed(x: Any) -> Any:
        jax.debug.print("total {}", x.sum())
        return x * 2

    plan = pt.plan(printed, DATA, X).tile("x", 0, "data.0:2").tile("x", 1, "data.1:4")
    jax.block_until_ready(plan.compile()(X))
    jax.effects_barrier()
    assert capfd.readouterr().out.count("total") == 1


def test_the_notation_declares_the_whole_axis():
    assert pt.plan(layer, DATA, X, W).tile("x", 0, "data.0:2").notation().startswith("mesh data=8\n")


# --- reshapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "devices", "into", "layout"),
    [
        ((16,), 8, (4, 4), "f32[data.0:4, data.1:2*2]"),
        ((8, 20), 4, (2, 4, 20), "f32[data.0:2, data.1:2*2, 20]"),
        ((16,), 8, (2, 2, 2, 2), "f32[data.0:2, data.1:2, data.2:2, 2]"),
        ((24,), 6, (2, 12), "f32[data.0:2, data.1:3*4]"),
    ],
)
def test_a_reshape_is_crossed_without_communication(shape: tuple[int, ...], devices: int, into: tuple[int, ...], layout: str):
    x, mesh = jnp.sin(jnp.arange(float(np.prod(shape)))).reshape(shape), pt.Mesh(data=devices)

    def forward(x: Any) -> Any:
        return x.reshape(into) * 2

    plan = agrees(pt.plan(forward, mesh, x).tile("x", 0, "data").propagate("data", split=True), forward, x)
    assert plan.layout("result") == {"result": layout}
    assert not any(plan.counts().values()) and not plan.blocked

    def back(x: Any) -> Any:
        return (x * 2).reshape(shape)

    plan = agrees(
        pt.plan(back, mesh, x.reshape(into)).tile("result", 0, "data").propagate("data", split=True),
        back,
        x.reshape(into),
        derived=True,
    )
    assert plan.layout("x") == {"x": layout}
    assert not any(plan.counts().values()) and not plan.blocked


def test_query_heads_share_the_heads_that_they_read():
    """Eight query heads over eight devices, two key heads: each of these is on the four devices that read it."""

    def attention(x: Any, wq: Any, wk: Any) -> Any:
        query, key = (x @ wq).reshape(8, 2, 4, 16), (x @ wk).reshape(8, 2, 16)
        return jax.nn.softmax(jnp.einsum("sgnd,tgd->gnst", query, key)).reshape(8, 8, 8)

    x, wq = X[:, :8], jnp.sin(jnp.arange(8 * 128.0)).reshape(8, 128)
    plan = pt.plan(attention, pt.Mesh(model=8), x, wq, wq[:, :32]).tile("wq", 1, "model").propagate("model", split=True)
    assert plan.layout("wk") == {"wk": "f32[8, model.0:2*16]"}
    assert plan.layout("result") == {"result": "f32[model.0:2*model.1:4, 8, 8]"}
    assert not any(plan.counts().values())
    agrees(plan, attention, x, wq, wq[:, :32], derived=True)


def test_the_parts_that_are_named_first_decide():
    def split(x: Any) -> Any:
        return x.reshape(4, 4) * 2

    plan = pt.plan(split, DATA, ROW).tile("x", 0, "data.0:2")
    assert plan.layout("result") == {"result": "f32[data.0:2*2, 4]"}
    plan = agrees(plan.tile("x", 0, "data"), split, ROW)
    assert plan.blocked and str(plan.mesh) == "data.0=2, data.1=4"


def test_a_reshape_that_no_part_crosses_leaves_the_axis_whole():
    plan = (
        pt.plan(lambda x: x.reshape(3, 8), pt.Mesh(data=4), jnp.arange(24.0)).tile("x", 0, "data").propagate("data", split=True)
    )
    assert str(plan.mesh) == "data=4" and plan.blocked


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([2, 3, 4]), st.sampled_from([2, 3, 4]), st.sampled_from([4, 6, 8]), st.booleans())
def test_any_split_of_a_batch_is_that_of_the_function(major: int, minor: int, devices: int, summed: bool):
    x = jnp.sin(jnp.arange(24.0 * major * minor)).reshape(-1, 2)

    def step(x: Any) -> Any:
        parts = x.reshape(major, -1, minor, 2)
        return (parts.sum(2) if summed else jnp.cumsum(parts, 1)).reshape(-1, 2)

    plan = pt.plan(step, pt.Mesh(data=devices), x).tile("x", 0, "data", padded=True).propagate("data", split=True)
    np.testing.assert_allclose(plan.compile()(x), step(x), rtol=1e-4, atol=1e-5)


def test_claims_that_were_not_propagated_cross_when_they_are():
    def split(x: Any) -> Any:
        return x.reshape(4, 4) * 2

    plan = pt.plan(split, DATA, ROW).tile("x", 0, "data", propagate=False)
    assert str(plan.mesh) == "data=8" and plan.layout("result") == {"result": "f32[4, 4]"}
    assert plan.propagate("data").layout("result") == {"result": "f32[4, 4]"}
    assert plan.propagate("data", split=True).layout("result") == {"result": "f32[data.0:4, data.1:2*2]"}


def test_a_reshape_keeps_the_axis_whole_unless_asked():
    plan = pt.plan(lambda x: x.reshape(4, 4) * 2, DATA, ROW).tile("x", 0, "data")
    assert str(plan.mesh) == "data=8" and plan.blocked and plan.counts()["all_gather"] == 1
