"""On TPUs, what is gathered along a later dim than the first is stored by rows, unless a product reads it directly."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import partita as pt
from partita.compiler.run import collectives as running


@pytest.mark.parametrize(
    ("reads", "dim", "constraints"),
    [(lambda x, w: x + w, 1, 1), (lambda x, w: x + w, 0, 0), (lambda x, w: x @ w, 1, 0)],
    ids=["columns for an elementwise op", "rows", "columns for a product"],
)
def test_what_is_gathered(reads: Callable[..., Any], dim: int, constraints: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(xs: Any, w: Any) -> Any:
        return jax.vmap(reads, (0, None))(xs, w)

    args = (
        np.linspace(-1, 1, 8 * 16 * 16, dtype=np.float32).reshape(8, 16, 16),
        np.linspace(1, 2, 256, dtype=np.float32).reshape(16, 16),
    )
    plan = pt.plan(step, pt.Mesh(data=8), *args).tile("xs", 0, "data").tile("w", dim, "data")
    assert plan.counts()["all_gather"] == 1
    assert "layout_constraint" not in str(jax.make_jaxpr(plan.compile())(*args)), "only on TPUs"
    monkeypatch.setattr(running, "platform", lambda: "tpu")
    compiled: Any = plan.compile()
    assert str(jax.make_jaxpr(compiled)(*args)).count("layout_constraint") == constraints
    np.testing.assert_allclose(compiled(*args), step(*args), rtol=1e-5, atol=1e-5)
