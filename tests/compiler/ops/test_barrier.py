"""Optimization barriers change no value, on any platform."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import partita as pt

X = np.arange(8, dtype=np.int32)


def shifted(x: jax.Array) -> jax.Array:
    """Reads, through another gather of the same array, the elements that it overwrites."""
    return x.at[1:5].set(2 * x[:4])


def computed_twice(x: jax.Array) -> jax.Array:
    """The same with a barrier of the user's, which plain JAX gets wrong on the CPU."""
    first, second = jnp.sort(x), jnp.sort(lax.optimization_barrier(x))
    return lax.dynamic_update_slice(second, 2 * first[:4], (1,))


PLATFORMS = [platform for platform in ("cpu", "gpu", "tpu") if platform in {each.platform for each in jax.devices()}]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("function", [shifted, computed_twice])
def test_an_update_is_not_written_over_what_it_reads(function: Callable[[jax.Array], jax.Array], platform: str) -> None:
    devices = jax.devices(platform)
    mesh = pt.Mesh(a=min(2, len(devices)))
    plan = pt.plan(function, mesh, X).tile("x", 0, "a", propagate=False)
    eager = function(jnp.asarray(X))
    np.testing.assert_array_equal(plan.compile(devices=devices[: mesh.size])(X), eager)
    np.testing.assert_array_equal(plan.lower("collective").run(X), eager)


@pytest.mark.parametrize(("platform", "barriers"), [("cpu", 0), ("cuda", 1), ("tpu", 1)])
def test_barriers_are_left_out_only_on_the_cpu(platform: str, barriers: int) -> None:
    plan = pt.plan(shifted, pt.Mesh(a=2), X).tile("x", 0, "a", propagate=False)
    assert str(plan.spmd()).count("spmd.barrier") == 1
    lowered = jax.jit(plan.compile()).trace(X).lower(lowering_platforms=(platform,))
    assert lowered.as_text().count("optimization_barrier") == barriers


def test_a_plan_with_barriers_has_derivatives_and_batches() -> None:
    x = jnp.asarray(X, jnp.float32)
    compiled = pt.plan(shifted, pt.Mesh(a=2), x).tile("x", 0, "a", propagate=False).compile()
    for transform in (
        lambda f: jax.grad(lambda x: (f(x) ** 2).sum()),
        jax.jacfwd,
        jax.jacrev,
        lambda f: jax.grad(lambda x: jax.checkpoint(f)(x).sum()),
    ):
        np.testing.assert_allclose(transform(compiled)(x), transform(shifted)(jnp.asarray(x)))
    rows = jnp.stack([x, x + 1])
    np.testing.assert_array_equal(jax.vmap(compiled)(rows), jax.vmap(shifted)(jnp.asarray(rows)))
