"""`pt.define`: a line of index notation, and anybody's op is partitioned; a line that is wrong is refused."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from typing import Any, cast

import jax
import jax.numpy as jnp
import pytest
from agreement import disagreement
from defined_ops import USES, Use

import partita as pt

MESH = pt.Mesh(a=4, b=2)


def weighed(use: Use) -> Any:
    """The gradients of a function for all floating operands, with a weight for each element of each result."""
    gradient = cast(Any, jax.grad)
    floats = [n for n, x in enumerate(use.args) if x.dtype.kind == "f"]

    def loss(*args: Any) -> Any:
        leaves = [x for x in jax.tree.leaves(use.function(*args)) if x.dtype.kind == "f"]
        return sum(jnp.sum(jnp.sin(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape) * x) for x in leaves)

    return gradient(loss, floats)


STRATEGIES = [(use, strategy) for use in USES for strategy in use.strategies]


@pytest.mark.parametrize(("use", "strategy"), STRATEGIES, ids=str)
def test_a_defined_op_is_partitioned_forward_and_backward(use: Use, strategy: dict[str, int]):
    for function in [use.function, *([weighed(use)] if use.differentiable else [])]:
        plan = pt.plan(function, MESH, *use.args)
        for value, dim in strategy.items():
            names = plan.arguments() if value != "result" else plan.results()
            if value in names or function is use.function:
                plan = plan.tile(value, dim, "a")
        assert not plan.whole
        found = plan.compile()(*use.args)
        assert disagreement(jax.tree.leaves(found), jax.tree.leaves(jax.jit(function)(*use.args))) == ""
