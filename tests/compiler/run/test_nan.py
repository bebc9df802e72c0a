"""NaNs and infinities: a maximum over devices is NaN if an element on one of them is, and a check tells whose they are."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.run.compare import relative_difference

VALUES = [1.5, -2.0, -0.0, float("inf"), 0.25, -float("inf"), 3.0, 1e-3]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("fold", [jnp.max, jnp.min], ids=["max", "min"])
def test_nan_and_infinities_in_a_maximum_over_devices(fold: Callable[[jax.Array], jax.Array], dtype: str) -> None:
    plan = pt.plan(fold, pt.Mesh(d=8), jax.ShapeDtypeStruct((8,), jnp.dtype(dtype))).tile("a", 0, "d")
    assert plan.counts()["all_reduce"] == 1
    compiled = plan.compile()
    rows = [VALUES, VALUES[:3] * 2 + VALUES[4:5] * 2, [-abs(each) for each in VALUES]]
    for row in (*rows, *([*row[:at], float("nan"), *row[at + 1 :]] for row in rows for at in (0, 5))):
        x = jnp.asarray(row, dtype)
        np.testing.assert_array_equal(np.asarray(compiled(x), np.float32), np.asarray(fold(x), np.float32))


def test_a_check_says_which_run_has_a_nan_that_the_other_one_has_not() -> None:
    """Two devices sum to infinities of both signs, and one device does not."""
    plan = pt.plan(jnp.sum, pt.Mesh(d=2), jax.ShapeDtypeStruct((4,), jnp.float32)).tile("a", 0, "d")
    with pytest.raises(pt.Error, match="`result` has NaNs or infinities that the two runs do not share") as caught:
        plan.check(jnp.asarray([3e38, 3e38, -3e38, -3e38], jnp.float32))
    assert "`result` is nan in the plan's run" in str(caught.value)


def test_nans_of_both_runs_are_equal_and_those_of_one_are_counted_with_the_first() -> None:
    one, other = np.asarray([[1.0, np.nan], [np.inf, 2.0]]), np.asarray([[1.0, np.nan], [np.nan, np.nan]])
    assert relative_difference("y", one, one) == relative_difference("y", other, other) == 0.0
    assert relative_difference("y", one, np.asarray([[1.0, np.nan], [np.inf, 4.0]])) > 0.4
    for left, right, first in ((one, other, ("inf", "nan")), (other, one, ("nan", "inf")), (-one, one, None)):
        with pytest.raises(pt.Error, match="do not share") as caught:
            relative_difference("y", left, right)
        if first is not None:
            assert caught.value.title.endswith("in 2 of 4 elements")
            assert caught.value.notes == (f"`y[1, 0]` is {first[0]} in the plan's run, and {first[1]} in the original's",)
