"""On many TPUs a reduce_scatter runs as two over smaller groups, because XLA would make an all_reduce of one."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxpr_collectives import collectives, counts, received

import partita as pt
from partita.compiler.run import collectives as running


def step(w: Any, x: Any) -> jax.Array:
    return w - jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w)


W, X = (
    np.linspace(-1, 1, 16 * 32, dtype=np.float32).reshape(16, 32),
    np.linspace(1, 2, 32 * 16, dtype=np.float32).reshape(32, 16),
)


@pytest.mark.parametrize("tile", [{"w": 0}, {"w": 1}], ids=["rows", "columns"])
@pytest.mark.parametrize("in_turn", [False, True], ids=["in blocks", "in turn"])
@pytest.mark.parametrize("axes", [{"data": 8}, {"pod": 2, "data": 4}], ids=["one axis", "two axes"])
def test_two_phases_send_what_one_would(
    axes: dict[str, int], in_turn: bool, tile: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = pt.plan(step, pt.Mesh(axes), W, X)
    for axis in axes:
        plan = plan.tile("x", 0, axis)
    run = 8
    for axis, size in axes.items():
        run //= size
        plan = plan.tile(["w", "result"], tile["w"], axis, block=run if in_turn else None)
    assert plan.counts()["reduce_scatter"] == 1
    monkeypatch.setattr(running, "platform", lambda: "tpu")
    monkeypatch.setattr(running, "SCATTERS", 4)
    compiled: Any = plan.compile()
    found = [each for each in collectives(compiled, W, X) if each.kind == "reduce_scatter"]
    assert counts(found)["reduce_scatter"] == 2
    assert received(found) == W.nbytes * 7 // 8
    np.testing.assert_allclose(compiled(W, X), step(W, X), rtol=1e-5, atol=1e-5)
