"""A `shard_map` on other axes than the plan's mesh gives what it gives on devices, whatever it exchanges."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh as DeviceMesh, PartitionSpec as P

import partita as pt

X = np.arange(72, dtype=np.float32).reshape(12, 6)
BOTH = ("a", "b")
TURNED = ("b", "a")
RING = [(number, (number + 1) % 6) for number in range(6)]
PAIRS = [[0, 3], [4, 1], [2, 5]]

BODIES: dict[str, Callable[[Any], Any]] = {
    "permute over two axes": lambda x: lax.ppermute(x, BOTH, RING),
    "permute to some devices": lambda x: lax.ppermute(x, BOTH, [(0, 4), (2, 1)]),
    "permute to some devices of an axis": lambda x: lax.ppermute(x, "a", [(0, 2)]),
    "gather over two axes": lambda x: lax.all_gather(x, BOTH).sum(0) * lax.all_gather(x, BOTH)[3],
    "gather over two axes in the other order": lambda x: lax.all_gather(x, TURNED)[2],
    "gather tiled": lambda x: lax.all_gather(x, BOTH, axis=1, tiled=True)[:, 5:11],
    "scatter over two axes": lambda x: lax.psum_scatter(jnp.repeat(x, 6, 0) * X, BOTH, tiled=True),
    "scatter an index": lambda x: lax.psum_scatter(jnp.stack([x * n for n in range(6)], 1), BOTH, scatter_dimension=1),
    "all to all over two axes": lambda x: lax.all_to_all(x, BOTH, 1, 0, tiled=True).reshape(x.shape) * 2,
    "all to all in the other order": lambda x: lax.all_to_all(x, TURNED, 1, 0, tiled=True).reshape(x.shape),
    "all to all of an index": lambda x: lax.all_to_all(x, BOTH, 1, 0).T,
    "sum over two axes": lambda x: x + lax.psum(x, BOTH),
    "maximum in groups": lambda x: x + lax.pmax(x * (lax.axis_index("c") % 4), "c", axis_index_groups=PAIRS),
    "sum in groups": lambda x: x + lax.psum(x, "c", axis_index_groups=PAIRS),
    "gather in groups": lambda x: lax.all_gather(x, "c", axis_index_groups=PAIRS)[1],
    "scatter in groups": lambda x: lax.psum_scatter(jnp.tile(x, (2, 1)) * X[:4], "c", axis_index_groups=PAIRS, tiled=True),
    "number among two axes": lambda x: x * lax.axis_index(TURNED),
    "in a loop": lambda x: lax.fori_loop(0, 3, lambda _, y: lax.ppermute(y, BOTH, RING) + x, x),
    "in a branch": lambda x: lax.cond(x[0, 0] > -1, lambda y: lax.ppermute(y, BOTH, RING), lambda y: y, x),
}
if not getattr(jax.config, "jax_raise_on_ppermute_sort_diff", False):
    # Newer versions of JAX have this option, and refuse the permute if it is on.
    BODIES["permute over two axes in the other order"] = lambda x: lax.ppermute(x, TURNED, RING)


def over_six_devices(name: str) -> Callable[[Any], Any]:
    """The body over the axes a=3, b=2, or over c=6 if it has groups."""
    axes = {"c": 6} if "groups" in name else {"a": 3, "b": 2}
    devices = np.array(jax.devices()[:6]).reshape(tuple(axes.values()))
    mesh = DeviceMesh(devices, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
    return jax.shard_map(BODIES[name], mesh=mesh, in_specs=P(tuple(axes)), out_specs=P(tuple(axes)), check_vma=False)


@pytest.mark.parametrize("name", BODIES)
def test_a_shard_map_on_other_axes_exchanges_what_it_exchanges_on_devices(name: str) -> None:
    mapped = over_six_devices(name)
    plan = pt.plan(mapped, pt.Mesh(z=2), X)
    assert [each.primitive for each in plan.whole] == ["shard_map"]
    np.testing.assert_allclose(plan.compile()(X), jax.jit(mapped)(X), rtol=1e-6)


MADE: dict[str, Callable[[Any], Any]] = {
    "flip": lambda x: jnp.flip(x, 1),
    "roll": lambda x: jnp.roll(x, 1, 1),
    "sort": lambda x: jnp.sort(x, 1),
    "in a loop": lambda x: lax.fori_loop(0, 2, lambda _, y: jnp.flip(y, 1) + x, x),
}


@pytest.mark.parametrize("mesh", [pt.Mesh(a=6), pt.Mesh(a=2), pt.Mesh(z=2)], ids=str)
@pytest.mark.parametrize("made", [pt.Mesh(a=6).refine(a=(3, 2)), pt.Mesh(a=3, b=2)], ids=str)
@pytest.mark.parametrize("name", MADE)
def test_a_plan_of_a_plan_on_other_axes_runs(name: str, made: pt.Mesh, mesh: pt.Mesh) -> None:
    compiled = pt.plan(MADE[name], made, X).tile("x", 1, "a").compile()
    np.testing.assert_allclose(pt.plan(compiled, mesh, X).compile()(X), MADE[name](jnp.asarray(X)), rtol=1e-6)
