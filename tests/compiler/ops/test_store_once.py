"""A stored value is one that XLA:CPU does not compute again; it changes no value, on any platform."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import partita as pt

IMAGE = np.random.default_rng(0).normal(size=(8, 12, 12, 4)).astype(np.float32)


def gradient(x: jax.Array) -> jax.Array:
    """That of overlapping pools, whose positions are read by four windows of each element."""
    pool = jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2))
    return pool(x)


@pytest.mark.parametrize(("platform", "calls"), [("cpu", 1), ("cuda", 0), ("tpu", 0)])
def test_a_value_is_stored_by_a_call_that_only_the_cpu_has(platform: str, calls: int) -> None:
    plan = pt.plan(gradient, pt.Mesh(data=4), IMAGE).tile("x", 0, "data")
    assert str(plan.spmd()).count("lax.stored") == 1
    lowered = jax.jit(plan.compile()).trace(IMAGE).lower(lowering_platforms=(platform,))
    assert lowered.as_text().count('inlineable = "false"') == calls


def test_the_positions_are_computed_once() -> None:
    plan = pt.plan(gradient, pt.Mesh(data=4), IMAGE).tile("x", 0, "data")
    compiled = jax.jit(plan.compile()).lower(IMAGE).compile()
    assert " call(" in str(compiled.as_text())
    assert plan.check(IMAGE) < 2e-4
