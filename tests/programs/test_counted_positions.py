"""A read or an update at each row's own number is one of a batch: what is on the device's rows stays there."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sent import normal, sent

import partita as pt
from tests.support.everywhere import agrees

MESH = pt.Mesh(d=8)
IDS = jnp.asarray(np.random.default_rng(0).integers(-4, 4, (16,)), jnp.int32)


def rows() -> Any:
    """An `iota` of the program: an array outside would be an argument."""
    return jnp.arange(16)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda x, n: x[rows(), n], id="rows"),
        pytest.param(lambda x, n: x[jnp.arange(x.shape[0]), n, :2], id="parts of rows"),
        pytest.param(lambda x, n: x[rows(), n, n % 3], id="two lookups in each row"),
        pytest.param(lambda x, n: x[rows()[:, None], n[:, None], jnp.arange(3)], id="two that count"),
        pytest.param(lambda x, n: x.at[rows(), n].set(1.0), id="set"),
        pytest.param(lambda x, n: x.at[rows(), n].add(x[:, 0], mode="clip"), id="add"),
        pytest.param(lambda x, n: x.at[rows(), n].max(x[:, 1]), id="maximum"),
        pytest.param(lambda x, n: jax.nn.log_softmax(x[..., 0])[rows(), n], id="cross entropy"),
    ],
)
def test_a_read_at_each_row_s_own_number_sends_nothing(program: Any):
    x = normal(16, 8, 3)
    plan = pt.plan(program, MESH, x, IDS).apply(pt.DataParallel("d", inputs=["x", "n"]))
    assert sent(plan, x, IDS) == {}

    def gradient(x: Any, n: Any) -> Any:
        return jax.grad(lambda x: jnp.sum(program(x, n) ** 2))(x)

    plan = pt.plan(gradient, MESH, x, IDS).apply(pt.DataParallel("d", inputs=["x", "n"]))
    assert sent(plan, x, IDS) == {}


def test_an_axis_on_what_is_looked_up_leaves_a_sum():
    x = normal(16, 8, 3)

    def program(x: Any, n: Any) -> Any:
        return x[rows(), n]

    plan = agrees(pt.plan(program, MESH, x, IDS).tile("x", 1, "d"), program, x, IDS)
    assert sent(plan, x, IDS) == {"all_reduce": 1}


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda x, n: x[rows()[:8], n[:8]], id="fewer rows"),
        pytest.param(lambda x, n: x[rows()[::-1], n], id="backwards"),
        pytest.param(lambda x, n: x[n, rows() % 8], id="another dim"),
        pytest.param(lambda x, n: x[rows() + n * 0, n], id="numbers that depend on an argument"),
        pytest.param(lambda x, n: x.at[rows(), rows() % 8].add(n[:, None]), id="all constant"),
        pytest.param(lambda x, n: x[:1][jnp.arange(1), n[:1]], id="one row"),
    ],
)
def test_other_reads_are_as_they_were(program: Any):
    x = normal(16, 8, 3)
    plan = pt.plan(program, MESH, x, IDS).apply(pt.Tile({"x": 0}, "d"))
    assert plan.check(x, IDS) < 1e-4
