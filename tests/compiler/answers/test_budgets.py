"""`plan.expect`: counts, and budgets of bytes, memory and flops."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from models import chain

import partita as pt

X, W1, W2 = (np.ones(shape, np.float32) for shape in ((256, 8), (8, 16), (16, 8)))


@pytest.fixture
def plan() -> pt.Plan:
    """It receives 2 KiB and computes 2 * 2 * 64 * 8 * 8 flops, none of them in excess."""
    return pt.plan(chain, pt.Mesh(data=4, model=2), X, W1, W2).tile("x", 0, "data").tile("w1", 1, "model")


@pytest.mark.parametrize(
    "wanted",
    [
        {"all_reduce": 1, "all_gather": 0},
        {"all_reduce": "<2", "all_gather": "<=0"},
        {"bytes_per_device": 2048},
        {"bytes_per_device": "<=2KiB"},
        {"bytes_per_device": "< 2.1 kB"},
        {"flops_per_device": 16384, "replicated_flops": "<0.1%"},
        {"flops_per_device": "<1M"},
        {"memory": "<1MiB", "bytes_per_device": ">2_000"},
    ],
)
def test_a_plan_within_its_budget_is_returned(plan: pt.Plan, wanted: dict[str, Any]) -> None:
    assert plan.expect(**wanted) is plan


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"bytes_per_device": "<2KiB"}, "bytes_per_device: 2,048 bytes, expected <2KiB"),
        ({"memory": "<1kB", "all_reduce": 1}, "memory: .* bytes, expected <1kB"),
        ({"all_reduce": "<1"}, "all_reduce: 1, expected <1"),
        ({"flops_per_device": 1}, "flops_per_device: 16,384 flops, expected exactly 1"),
        ({"replicated_flops": ">1%"}, "replicated_flops: 0.00%, expected >1%"),
    ],
)
def test_a_plan_over_its_budget_says_by_how_much_and_what_it_consists_of(
    plan: pt.Plan, wanted: dict[str, Any], said: str
) -> None:
    with pytest.raises(pt.Error, match=said):
        plan.expect(**wanted)


def test_redundant_flops_are_a_share(plan: pt.Plan) -> None:
    bare = pt.plan(chain, pt.Mesh(data=4, model=2), X, W1, W2)
    bare.expect(replicated_flops="<=87.5%", flops_per_device=8 * 16384)
    with pytest.raises(pt.Error, match=r"replicated_flops: 87\.50%, expected <10%") as raised:
        bare.expect(replicated_flops="<10%")
    assert any("computed by all along data, model" in note for note in raised.value.notes)


@pytest.mark.parametrize("given", ["", "<", "2 MiBs", "<1%", "few", None, -1, True, 1.5])
def test_another_budget_is_refused(plan: pt.Plan, given: Any) -> None:
    with pytest.raises(pt.Error, match=r"bound on|takes a bound"):
        plan.expect(bytes_per_device=given)


def test_flops_in_branches_count_as_the_branch_with_the_most() -> None:
    def chosen(p: Any, a: Any, b: Any) -> Any:
        return lax.cond(p, lambda: a @ b, lambda: (2 * a) @ b)

    plan = pt.plan(chosen, pt.Mesh(data=4, model=2), True, np.ones((64, 64)), np.ones((64, 64)))
    plan.expect(replicated_flops="<=87.5%")


def test_a_budget_is_not_kept_by_flops_that_are_unknown() -> None:
    plan = pt.plan(jnp.fft.fft, pt.Mesh(data=4), np.ones((8, 8), np.float32))
    for budget in ({"flops_per_device": "<1k"}, {"replicated_flops": "<1%"}):
        with pytest.raises(pt.Error, match="expected <1"):
            plan.expect(**budget)
    assert [each.what for each in plan.silent() if each.op == "fft"] == ["computed by all, flops unknown"]


def test_rims_of_windows_are_in_excess() -> None:
    def conv(x: Any, k: Any) -> Any:
        h = pt.tag(lax.conv_general_dilated(x, k, (1,), "SAME"), "h")
        return lax.conv_general_dilated(h, k, (1,), "SAME")

    plan = pt.plan(conv, pt.Mesh(data=8), np.ones((1, 4, 64), np.float32), np.ones((4, 4, 9), np.float32))
    plan.tile("x", 2, "data").expect(replicated_flops=0)
    with pytest.raises(pt.Error, match=r"replicated_flops: 33\.33%"):
        plan.widen("h").tile("x", 2, "data").expect(replicated_flops=0)
