"""Which ops a pending sum may move through, by their definitions and the laws of linearity, as a table."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.dialects.definitions.registry import definitions
from partita.rewrites.decide.linearity import linear_in

# op, how many operands, the pending ones, those known to be zero --> linear?
LINEAR: list[tuple[str, int, list[int], list[int], bool]] = [
    ("add", 2, [0, 1], [], True),
    ("add", 2, [0], [], False),
    ("add", 2, [0], [1], True),
    ("sub", 2, [1], [0], True),
    ("neg", 1, [0], [], True),
    ("mul", 2, [0], [], True),
    ("mul", 2, [0, 1], [], False),
    ("div", 2, [0], [], True),
    ("div", 2, [1], [], False),
    ("exp", 1, [0], [], False),
    ("max", 2, [0, 1], [], False),
    ("convert_element_type", 1, [0], [], True),
    ("real", 1, [0], [], True),
    ("select_n", 3, [1, 2], [], True),
    ("select_n", 3, [1], [], False),
    ("select_n", 3, [1], [2], True),
    ("select_n", 3, [0], [], False),
    ("dot_general", 2, [0], [], True),
    ("dot_general", 2, [0, 1], [], False),
    ("reduce_sum", 1, [0], [], True),
    ("reduce_max", 1, [0], [], False),
    ("transpose", 1, [0], [], True),
    ("reshape", 1, [0], [], True),
    ("broadcast_in_dim", 1, [0], [], True),
    ("concatenate", 2, [0, 1], [], True),
    ("concatenate", 2, [0], [], False),
    ("concatenate", 2, [0], [1], True),
    ("pad", 2, [0], [1], True),
    ("pad", 2, [0], [], False),
    ("scatter_add", 3, [0, 2], [], True),
    ("scatter_add", 3, [2], [0], True),
    ("scatter_add", 3, [2], [], False),
    ("scatter_add", 3, [1, 2], [0], False),
    ("dynamic_slice", 3, [0], [], True),
    ("dynamic_update_slice", 4, [0, 1], [], True),
    ("cumsum", 1, [0], [], True),
    ("carry", 2, [0, 1], [], True),
    ("carry", 2, [1], [0], True),
    ("carry", 2, [1], [], False),
    ("join", 3, [0, 1, 2], [], True),
    ("join", 3, [0, 2], [], False),
]


@pytest.mark.parametrize(("name", "arity", "pending", "zeros", "wanted"), LINEAR)
def test_a_pending_sum_passes_what_is_linear(name: str, arity: int, pending: list[int], zeros: list[int], wanted: bool) -> None:
    definition = definitions[name].with_arity(arity, 1)
    assert linear_in(definition, frozenset(pending), frozenset(zeros)) is wanted


def test_what_passes_two_operands_need_not_pass_three() -> None:
    two, three = (definitions["concatenate"].with_arity(count, 1) for count in (2, 3))
    assert linear_in(two, frozenset({0, 1}), frozenset())
    assert not linear_in(three, frozenset({0, 1}), frozenset())


def test_a_sum_passes_an_exact_division_alone() -> None:
    """Floats divide exactly enough; the remainders of integers would be lost one by one."""
    div = definitions["div"].with_arity(2, 1)
    assert linear_in(div, frozenset({0}), frozenset(), ("float32", "float32"))
    assert not linear_in(div, frozenset({0}), frozenset(), ("int32", "int32"))


CASTS = [("bfloat16", "float32", True), ("float32", "bfloat16", False), ("float32", "int32", False), ("int8", "int32", False)]


@pytest.mark.parametrize(("before", "after", "wanted"), CASTS)
@pytest.mark.parametrize("name", ["convert_element_type", "neg"])
def test_a_sum_passes_a_cast_that_widens_alone(name: str, before: str, after: str, wanted: bool) -> None:
    definition = definitions[name].with_arity(1, 1)
    assert linear_in(definition, frozenset({0}), frozenset(), (before, after)) is wanted


@pytest.mark.parametrize(("dtype", "sums"), [("int32", 2), ("float32", 1)])
def test_sums_of_integers_are_resolved_before_they_are_divided(dtype: str, sums: int) -> None:
    """Divided before, each would be a sum of quotients that are rounded. Sums of floats meet in the addition, as one."""

    def quotients(x: jax.Array) -> jax.Array:
        return jax.lax.div(x.sum(0), jnp.full(3, 7, x.dtype)) + jax.lax.div(x.sum(0), jnp.full(3, 5, x.dtype))

    x = np.arange(48).reshape(16, 3).astype(dtype)
    plan = pt.plan(quotients, pt.Mesh(data=4), x).tile("x", 0, "data")
    assert plan.counts()["all_reduce"] == sums
    assert plan.check(x) < 1e-5


def test_maxima_are_resolved_before_they_are_subtracted() -> None:
    """A maximum of differences is not the difference of two maxima, although an op that adds is linear in both operands."""

    def range_of(x: jax.Array) -> jax.Array:
        return x.max(0)[:2] - x.max(0)[1:]

    x = np.asarray([[(7 * row + 3 * column * row) % 11 for column in range(3)] for row in range(16)], np.float32)
    plan = pt.plan(range_of, pt.Mesh(data=4), x).tile("x", 0, "data")
    assert plan.counts()["all_reduce"] == 2
    assert plan.check(x) == 0
