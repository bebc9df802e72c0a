"""A mesh that says which axes have slow links: printed, read, replayed, weighed where ways out are compared."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import gram

import partita as pt
from partita.compiler.cost.costs import price

FAST, SLOW = pt.Mesh(pod=2, data=4), pt.Mesh(pod=2, data=4, slow="pod")
X, W = np.ones((16, 8), np.float32), np.ones((8, 24), np.float32)


def loss(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def step(w: jax.Array, x: jax.Array) -> jax.Array:
    return w - jax.grad(loss, 1)(x, w)


TACTICS = pt.DataParallel(("pod", "data"), inputs="x"), pt.FSDP("data")


def test_a_plan_shows_what_passes_slow_links() -> None:
    plan = pt.plan(step, SLOW, W, X).apply(*TACTICS)
    (received,) = [line for line in str(plan).splitlines() if "receives" in line]
    assert received == "a device receives 1.31 KiB in a call: 1.12 KiB over data, 192 bytes over pod, by slow links"
    assert str(plan).startswith("Plan of step on pod=2 slow, data=4: 2 tactics")
    assert "slow links" not in str(pt.plan(step, FAST, W, X).apply(*TACTICS))


def test_what_is_sent_and_computed_is_as_on_any_mesh() -> None:
    slow, fast = (pt.plan(step, mesh, W, X).apply(*TACTICS) for mesh in (SLOW, FAST))
    assert slow.layout("**") == fast.layout("**") and slow.counts() == fast.counts()
    assert slow.check(W, X) < 2e-4


def test_it_is_replayed_and_written_in_index_notation() -> None:
    plan = pt.plan(loss, SLOW, X, W).apply(TACTICS[0])
    again = pt.replay(loss, SLOW, plan.trace, X, W)
    assert again.mesh is SLOW and again.layout("**") == plan.layout("**")
    assert plan.notation().startswith("mesh pod=2 slow, data=4\n")
    text = "mesh pod=2 slow, data=4\nfn f(slow: f32[B=16 @pod]) -> f32[B] {\n  y[i] = slow[i] * 2\n  return y\n}\n"
    assert pt.parse(text).plan().mesh is SLOW


def test_parts_of_a_slow_axis_are_slow() -> None:
    mesh = pt.Mesh(pod=4, data=2, slow="pod")
    plan = pt.plan(loss, mesh, X, W).apply(pt.DataParallel("pod.0:2", inputs="x"))
    assert str(plan.mesh) == "pod.0=2 slow, pod.1=2 slow, data=2"
    assert "over pod.0:2, by slow links" in str(plan)


@pytest.mark.parametrize("mesh", [FAST, SLOW, pt.Mesh(FAST, chip="v5p"), pt.Mesh(SLOW, slow="pod", chip="H100")], ids=str)
def test_a_choice_by_time_weighs_slow_links_on_the_chip_of_the_mesh(mesh: pt.Mesh) -> None:
    plan = pt.plan(gram, mesh, np.ones((64, 16), np.float32)).tile("x", 0, "pod")
    (way,) = plan.conflicts[0].resolutions
    resolved = plan.apply(way)
    assert way.bytes == resolved.bytes_per_device() > 0
    rate = mesh.chip.slow_bytes_per_second if mesh.slow else mesh.chip.bytes_per_second
    assert way.price == price(resolved) and way.seconds == pytest.approx(
        way.bytes / rate + way.flops / mesh.chip.flops_per_second
    )


def twice(x: jax.Array, w: jax.Array) -> jax.Array:
    return (x @ w) @ w


@pytest.mark.parametrize("mesh", [pt.Mesh(data=4), pt.Mesh(data=4, slow="data"), pt.Mesh(data=4, chip="H100")], ids=str)
def test_the_time_that_a_law_saves_is_that_of_the_chip_over_its_links(mesh: pt.Mesh) -> None:
    x = np.ones((64, 64), np.float32)
    found = pt.plan(twice, mesh, x, x).tile("w", 0, "data").rewrites()[0]
    rate = mesh.chip.slow_bytes_per_second if mesh.slow else mesh.chip.bytes_per_second
    assert found.seconds == pytest.approx(found.bytes / rate + found.flops / mesh.chip.flops_per_second)
    assert found.seconds > 0
