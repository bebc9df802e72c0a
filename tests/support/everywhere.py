"""Runs a plan in every way in which a plan can be run, and compares each with the function."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import partita as pt
from partita.compiler.api.plan import Plan
from partita.dialects.reference.interpret import interpret


def agrees(plan: Plan, fn: Callable[..., Any], *args: Any, derived: bool = False) -> Plan:
    """The compiled plan, its graph, its interpreted text, its replayed trace and its gradient are those of the function."""
    wanted = jax.tree.leaves(fn(*args))

    def same(found: Sequence[Any], wanted: Sequence[Any]) -> None:
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)

    same(jax.tree.leaves(plan.compile()(*args)), wanted)
    same(jax.tree.leaves(plan.lower("collective").run(*args)), wanted)
    same(interpret(plan.ir(), list(map(np.asarray, args))), wanted)

    def gradient(f: Callable[..., Any]) -> Any:
        return jax.grad(lambda *args: sum(jnp.sum(each**2) for each in jax.tree.leaves(f(*args))), tuple(range(len(args))))(
            *args
        )

    if derived:
        same(gradient(plan.compile()), gradient(fn))
    again = pt.replay(fn, plan.mesh.whole(), plan.trace, *args)
    assert (again.layout(), again.counts(), again.mesh) == (plan.layout(), plan.counts(), plan.mesh)
    return plan
