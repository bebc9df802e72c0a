"""Data parallel over islands with slow links between them: each device sends only its part of a gradient to the others."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lowered import lowers_from_its_decisions, lowers_from_its_text

import partita as pt

WIDTH, ROWS = 256, 6144


def loss(params: Any, x: Any, y: Any) -> Any:
    h = x
    for w in params["hidden"]:
        h = jnp.tanh(h @ w)
    return jnp.mean((h @ params["out"] + params["bias"][None] - y) ** 2)


def step(params: Any, x: Any, y: Any) -> Any:
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value


def case(rows: int) -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(0).standard_normal
    params = {
        "hidden": [draw((WIDTH, WIDTH), np.float32) / 16 for _ in range(2)],
        "out": draw((WIDTH, 8), np.float32) / 16,
        "bias": np.zeros(8, np.float32),
    }
    return params, draw((rows, WIDTH), np.float32), draw((rows, 8), np.float32)


def planned(rows: int = ROWS, **axes: Any) -> pt.Plan:
    tactic = pt.DataParallel(("pod", "data"), inputs=["x", "y"])
    return pt.plan(step, pt.Mesh(**axes), *case(rows)).apply(tactic)


@pytest.mark.parametrize(("pod", "data"), [(2, 4), (3, 2)])
def test_each_device_sends_its_part_of_a_gradient_to_the_other_islands(pod: int, data: int) -> None:
    fast, slow = planned(pod=pod, data=data), planned(pod=pod, data=data, slow="pod")
    large = 2 * 4 * WIDTH * WIDTH
    assert [(each.kind, each.axes) for each in slow.collectives() if "hidden" in each.value] == [
        ("reduce_scatter", ("data",)),
        ("all_reduce", ("pod",)),
        ("all_gather", ("data",)),
    ] * 2
    sent = sum(each.bytes for each in slow.collectives() if each.axes == ("pod",) and "hidden" in each.value)
    assert abs(sent - 2 * large / data * (pod - 1) / pod) <= 1
    assert slow.bytes_per_device() == fast.bytes_per_device()
    # The bias is summed up at once: three collectives would take longer to start.
    assert ("all_reduce", ("pod", "data")) in [(each.kind, each.axes) for each in slow.collectives() if "bias" in each.value]


@pytest.mark.parametrize(("pod", "data"), [(2, 4), (3, 2)])
def test_the_parameters_of_all_islands_stay_equal_bit_by_bit(pod: int, data: int) -> None:
    rows = 24 * WIDTH
    plan = planned(rows, pod=pod, data=data, slow="pod")
    assert plan.check(*case(rows)) < 2e-4
    run, (params, x, y) = plan.compile(), case(rows)
    for _ in range(100):
        params, _ = run(params, x, y)
    for leaf in jax.tree.leaves(params):
        first, *others = [np.asarray(shard.data) for shard in leaf.addressable_shards]
        assert len(others) == pod * data - 1 and np.isfinite(first).all()
        for each in others:
            np.testing.assert_array_equal(first, each)


def test_the_path_is_in_the_texts_of_the_plan() -> None:
    plan = planned(pod=2, data=4, slow="pod")
    lowers_from_its_text(plan)
    lowers_from_its_decisions(plan)
    graph = plan.lower("collective")
    assert dict(graph.counts()) == dict(plan.counts())
    for one, other in zip(jax.tree.leaves(graph.run(*case(ROWS))), jax.tree.leaves(step(*case(ROWS))), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_zero_scatters_within_an_island_first() -> None:
    plan = planned(pod=2, data=4, slow="pod").apply(pt.ZeRO(3, "data", params="params", optimizer=()))
    assert plan.counts()["reduce_scatter"] > 0
    assert all(each.kind == "all_reduce" for each in plan.collectives() if each.axes == ("pod",))
    assert plan.check(*case(ROWS)) < 2e-4


def test_micro_batches_add_up_in_an_island_and_then_over_islands() -> None:
    plan = planned(pod=2, data=4, slow="pod").apply(pt.Microbatch(4, inputs=["x", "y"]))
    assert dict(plan.counts()) == dict(planned(pod=2, data=4, slow="pod").counts())
    lowers_from_its_decisions(plan)
    assert plan.check(*case(ROWS)) < 2e-4
