"""What a plan sends, after a check that it is what runs and that the plan computes what the program does."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxpr_collectives import collectives, counts
from lowered import lowers_from_its_text

from partita.compiler.api.plan import Plan

BOUND = 2e-4


def normal(*shape: int) -> jax.Array:
    """Random numbers, the same for each shape."""
    return jnp.asarray(np.random.default_rng(sum(shape)).standard_normal(shape) * 0.3, jnp.float32)


def sent(plan: Plan, *args: Any) -> dict[str, int]:
    """The collectives of a plan, which are also those of the jaxpr that JAX runs."""
    assert counts(collectives(plan.compile(), *args)) == plan.counts()
    assert plan.check(*args) <= BOUND
    assert not plan.conflicts and not plan.whole
    lowers_from_its_text(plan)
    return {kind: count for kind, count in plan.counts().items() if count}
