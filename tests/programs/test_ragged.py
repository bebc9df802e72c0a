"""`ragged_dot` with its experts, its rows or both on mesh axes: no weights and no rows are gathered."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from everywhere import agrees
from jax import lax

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.notation.show import notation

Array = Any
RANDOM = np.random.default_rng(5)
ROWS, K, N, EXPERTS = 16, 8, 4, 8
X = RANDOM.normal(size=(ROWS, K)).astype(np.float32)
W = RANDOM.normal(size=(EXPERTS, K, N)).astype(np.float32)
SIZES: dict[str, list[int]] = {
    "all rows": [3, 0, 1, 4, 0, 2, 5, 1],
    "rows behind the groups": [2, 1, 0, 3, 0, 0, 4, 1],
    "one group": [0, 0, 0, 16, 0, 0, 0, 0],
    "the last group": [0, 0, 0, 0, 0, 0, 0, 9],
    "no rows": [0] * 8,
}
EVEN = np.array(SIZES["all rows"], np.int32)
MESHES: dict[str, dict[str, int]] = {"e2": {"e": 2}, "e4": {"e": 4}, "e8": {"e": 8}, "d8": {"d": 8}, "d2 e4": {"d": 2, "e": 4}}


def forward(x: Array, w: Array, sizes: Array) -> Array:
    return lax.ragged_dot(x, w, sizes)


def step(x: Array, w: Array, sizes: Array) -> Any:
    """The derivative by the rows, and a step of gradient descent of the experts."""

    def loss(x: Array, w: Array) -> Array:
        return jnp.sum(forward(x, w, sizes) ** 2)

    dx, dw = jax.grad(loss, (0, 1))(x, w)
    return dx, w - 0.1 * dw


def placed(function: Any, axes: dict[str, int], *args: Array, padded: bool = False) -> Plan:
    """The experts over `e` and the rows over `d`, those of them that the mesh has."""
    plan = pt.plan(function, pt.Mesh(**axes), *args)
    for axis, value in (("e", "w"), ("d", "x")):
        plan = plan.tile(value, 0, axis, padded=padded) if axis in axes else plan
    return plan


def counted(plan: Plan) -> dict[str, int]:
    assert not plan.whole and not plan.blocked and not plan.conflicts
    return {kind: count for kind, count in plan.counts().items() if count}


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("what", SIZES)
def test_each_device_multiplies_the_rows_of_its_own_experts(what: str, mesh: str):
    plan = placed(forward, MESHES[mesh], X, W, np.array(SIZES[what], np.int32))
    assert counted(plan) == ({"all_reduce": 1} if "e" in mesh else {})
    received = 2 * (X.shape[0] // MESHES[mesh].get("d", 1)) * N * 4
    over = MESHES[mesh].get("e", 1)
    assert plan.bytes_per_device() == received * (over - 1) // over
    agrees(plan, forward, X, W, np.array(SIZES[what], np.int32))


@pytest.mark.parametrize(
    ("mesh", "all_reduces"),
    # That of the result and that of the derivative by the rows; if rows are placed, that of the derivative by the experts.
    [("e2", 2), ("e4", 2), ("e8", 2), ("d8", 1), ("d2 e4", 3)],
)
def test_the_gradient_of_an_expert_is_made_where_the_expert_is(mesh: str, all_reduces: int):
    plan = placed(step, MESHES[mesh], X, W, EVEN)
    assert counted(plan) == {"all_reduce": all_reduces}
    assert plan.layout("result/1") == {"result/1": plan.layout("w")["w"]}
    agrees(plan, step, X, W, EVEN)


def test_the_other_dims_of_the_experts_may_be_placed_too():
    for dim, kinds in ((1, 1), (2, 1)):
        plan = pt.plan(forward, pt.Mesh(e=4, k=2), X, W, EVEN).tile("w", 0, "e").tile("w", dim, "k")
        assert counted(plan) == {"all_reduce": kinds}
        agrees(plan, forward, X, W, EVEN)


@pytest.mark.parametrize("function", [forward, step])
@pytest.mark.parametrize(("rows", "axes"), [(16, {"e": 4}), (15, {"d": 4}), (15, {"d": 2, "e": 4})])
def test_experts_and_rows_may_be_uneven(function: Any, rows: int, axes: dict[str, int]):
    args = X[:rows], W[:6], np.array([3, 0, 4, 2, 1, 4], np.int32)
    plan = placed(function, axes, *args, padded=True)
    # The boundary gathers a result with uneven rows, as a jax.Array cannot have them.
    gathered = {each.value for each in plan.collectives() if each.kind == "all_gather"}
    assert not plan.whole and all(value.startswith("result") for value in gathered)
    agrees(plan, function, *args)


@pytest.mark.parametrize("out", ["bfloat16", "float32"])
def test_narrow_factors_are_added_in_the_type_that_is_asked_for(out: str):
    def product(x: Array, w: Array, sizes: Array) -> Array:
        narrow = x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)
        return lax.ragged_dot(*narrow, sizes, preferred_element_type=jnp.dtype(out)).astype(jnp.float32)

    plan = placed(product, {"e": 4}, X, W, EVEN)
    assert counted(plan) == {"all_reduce": 1}
    agrees(plan, product, X, W, EVEN)


def test_each_row_of_a_mapped_product_has_its_own_groups():
    mapped, args = jax.vmap(forward), (np.stack([X, -X]), np.stack([W, W + 1]), np.stack([EVEN, EVEN[::-1]]))
    plan = pt.plan(mapped, pt.Mesh(b=2, e=4), *args).tile("x", 0, "b").tile("w", 1, "e")
    assert counted(plan) == {"all_reduce": 1}
    agrees(plan, mapped, *args)


def test_a_compiled_product_is_mapped():
    compiled = placed(forward, {"e": 4}, X, W, EVEN).compile()
    args = np.stack([X, -X]), np.stack([W, W + 1]), np.stack([EVEN, EVEN[::-1]])
    np.testing.assert_allclose(jax.vmap(compiled)(*args), jax.vmap(forward)(*args), rtol=1e-4, atol=1e-4)


def test_a_product_written_in_index_notation_is_read_back_and_differentiated():
    text = notation(pt.plan(forward, pt.Mesh(e=4), X, W, EVEN).source.traced, pt.Mesh(e=4))
    read = pt.parse(text).plan().tile("w", 0, "e")
    assert counted(read) == {"all_reduce": 1}

    def loss(function: Any) -> Any:
        return jax.grad(lambda x, w: jnp.sum(function(x, w, EVEN) ** 2), (0, 1))(X, W)

    for found, wanted in zip(loss(read.compile()), loss(forward), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_device_that_has_all_experts_moves_no_rows():
    """Only ids counted from another row than the first one need to be sorted."""
    alone = str(pt.plan(forward, pt.Mesh(e=4), X, W, EVEN).spmd())
    assert "indices_are_sorted = True" in alone
    assert "indices_are_sorted = True" not in str(placed(forward, {"e": 4}, X, W, EVEN).spmd())
    assert "indices_are_sorted = True" in str(placed(forward, {"d": 4}, X, W, EVEN).spmd())
