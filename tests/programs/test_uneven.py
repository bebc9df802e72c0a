"""Extents that the devices do not divide: padded to blocks of equal size, and the padding counts for nothing."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax
from lowered import interpreted, lowers_from_its_text

import partita as pt
from partita.compiler.api.plan import Plan
from partita.dialects.ranges.algebra import denote
from partita.dialects.ranges.factor import Factor, tiling

MESH = pt.Mesh(data=8)
X = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
"""30 rows over 8 devices: seven blocks of 4 rows, and one of 2 and padding."""

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: jnp.exp(x).sum(0),
    "sum of quotients": lambda x: (1 / x).sum(0),
    "mean": lambda x: x.mean(0),
    "product": lambda x: jnp.prod(1 + x / 8, 0),
    "max": lambda x: (x - 9).max(0),
    "min": lambda x: (x + 9).min(),
    "max of integers": lambda x: (x * 100).astype(jnp.int8).max(0),
    "all": lambda x: jnp.all(x < 9, 0),
    "any": lambda x: jnp.any(x > 9, 0),
    "exclusive-or": lambda x: lax.reduce_xor((x * 100).astype(jnp.int32), (0,)),
    "argmax": lambda x: x.argmax(0),
    "logsumexp": lambda x: jax.nn.logsumexp(x, 0),
    "softmax": lambda x: jax.nn.softmax(x, 0),
    "sort": lambda x: jnp.sort(x, 0),
    "sort of the other dim": lambda x: jnp.sort(x, 1),
    "top_k": lambda x: lax.top_k(x.T, 3)[0],
    "running sum": lambda x: jnp.cumsum(x, 0),
    "running sum backwards": lambda x: lax.cumsum(jnp.exp(x), 0, reverse=True),
    "running product backwards": lambda x: lax.cumprod(1 + x / 8, 0, reverse=True),
    "running max backwards": lambda x: lax.cummax(x - 9, 0, reverse=True),
    "running logsumexp backwards": lambda x: lax.cumlogsumexp(x, 0, reverse=True),
    "contraction": lambda x: jnp.exp(x).T @ (1 / x),
    "both dims": lambda x: x @ x.T,
    "positions": lambda x: x * jnp.arange(30)[:, None],
    "positions that are summed": lambda x: (jnp.arange(30.0) / 3).sum() + x.sum(),
    "transposed": lambda x: (x.T * 2).sum(1),
    "reshaped": lambda x: (x.reshape(180) + 1).reshape(30, 2, 3).sum((0, 2)),
    "merged and summed": lambda x: jnp.exp(x.reshape(180)).sum(),
    "sliced": lambda x: x[3:20].sum(0) + x[::2].sum(0),
    "concatenated": lambda x: jnp.concatenate([x, 2 * x]).sum(0),
    "reversed": lambda x: x[::-1] * x,
    "rolled": lambda x: jnp.roll(x, 3, 0) - x,
    "scan": lambda x: lax.scan(lambda c, _: (c + x.sum(0), (x * c[None]).sum(0)), jnp.zeros(6), None, length=3),
    "scan over rows": lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(6), x),
    "carried": lambda x: lax.fori_loop(0, 3, lambda _, c: jnp.sin(c) * x, x).sum(0),
    "while": lambda x: lax.while_loop(lambda c: jnp.all(c < 50), lambda c: c * c + 2, x).sum(0),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda: x.sum(0), lambda: (2 * x).max(0)),
    "vmap of while": lambda x: jax.vmap(lambda r: lax.while_loop(lambda c: c.sum() < 30, lambda c: c + 1, r))(x).sum(0),
    "gradient": jax.grad(lambda x: jnp.log(jnp.exp(x).sum(0)).sum()),
    "triangular solves": lambda x: jax.scipy.linalg.solve_triangular(jnp.eye(6) * 2, x.T).T.sum(0),
}


def placed(function: Callable[..., Any], *args: Any, dim: int = 0) -> Plan:
    plan = pt.plan(function, MESH, *args)
    return plan.tile(plan.arguments()[0], dim, "data", padded=True)


def agree(plan: Plan, function: Callable[..., Any], *args: Any) -> None:
    wanted = jax.tree.leaves(jax.jit(function)(*args))
    compiled, run = plan.compile()(*args), plan.lower("collective").run(*args)
    for found in (jax.tree.leaves(compiled), jax.tree.leaves(run), interpreted(plan, jax.tree.leaves(args))):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=2e-5, atol=1e-5)
    lowers_from_its_text(plan)


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_program_with_padded_rows_is_the_program(what: str):
    plan = placed(PROGRAMS[what], X)
    assert plan.layout("x") == {"x": "f32[data*4 pad 30, 6]"}
    agree(plan, PROGRAMS[what], X)


def test_padding_is_a_law_for_folds_and_costs_no_communication():
    plan = placed(lambda x: jnp.tanh(x).sum(0), X)
    assert plan.counts() == {"all_gather": 0, "all_reduce": 1, "reduce_scatter": 0, "all_to_all": 0, "permute": 0}
    assert plan.bytes_per_device() == 2 * 6 * 4 * 7 // 8


def test_a_padded_result_is_gathered_and_cut_at_the_boundary():
    """No jax Array has parts of different sizes, so the boundary is whole, and the plan counts the gather."""
    plan = placed(lambda x: 2 * x, X)
    assert plan.layout("**") == {"x": "f32[data*4 pad 30, 6]", "result": "f32[data*4 pad 30, 6]"}
    assert plan.counts()["all_gather"] == 1 and plan.bytes_per_device() == 4 * 6 * 4 * 7
    assert plan.compile()(X).shape == (30, 6)


def step(params: Any, x: Any, y: Any) -> Any:
    def loss(params: Any) -> Any:
        hidden = jax.nn.relu(x @ params["w1"] + params["b"][None])
        return ((hidden @ params["w2"] - y) ** 2).mean()

    value, grads = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


PARAMS = {"w1": X[:6, :].repeat(3, 1), "b": X[0].repeat(3), "w2": X[:18, :2]}


def test_data_parallelism_on_a_batch_of_30_over_8():
    y = X[:, :2]
    plan = pt.plan(step, MESH, PARAMS, X, y).apply(pt.DataParallel("data", inputs=["x", "y"], padded=True))
    assert plan.trace == "DataParallel(axis='data', inputs=['x', 'y'], padded=True)"
    assert plan.counts()["all_reduce"] == 4 and sum(plan.counts().values()) == 4
    agree(plan, step, PARAMS, X, y)
    again = pt.replay(step, MESH, plan.trace, PARAMS, X, y)
    assert again.layout("**") == plan.layout("**")


def test_zero_shards_a_tensor_that_no_dim_divides():
    y = X[:, :2]
    plan = pt.plan(step, MESH, PARAMS, X, y)
    plan = plan.apply(pt.DataParallel("data", ["x", "y"], padded=True), pt.ZeRO(3, "data", params="params", padded=True))
    assert plan.layout("params/*") == {
        "params/b": "f32[data*3 pad 18]",
        "params/w1": "f32[6, data*3 pad 18]",
        "params/w2": "f32[data*3 pad 18, 2]",
    }
    assert plan.counts()["reduce_scatter"] == 3
    agree(plan, step, PARAMS, X, y)


def test_three_heads_over_two_devices():
    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("shd,thd->hst", q, k)
        return jnp.einsum("hst,thd->shd", jax.nn.softmax(scores, -1), v).reshape(10, 12)

    q = X.reshape(-1)[:120].reshape(10, 3, 4)
    plan = pt.plan(attention, pt.Mesh(model=2), q, q + 1, q - 1).apply(pt.Tile({"q": 1}, "model", padded=True))
    assert plan.layout("k") == {"k": "f32[10, model*2 pad 3, 4]"}
    agree(plan, attention, q, q + 1, q - 1)


def test_a_vocabulary_of_13_over_8():
    table, ids = X[:13], np.array([[0, 12, 13, 5], [-1, 15, 7, 3]])

    def loss(table: Any, ids: Any) -> Any:
        return (table.at[ids].get(mode="fill", fill_value=2.0) ** 2).sum() + (table[ids] ** 3).sum()

    for function in (loss, jax.grad(loss)):
        plan = placed(function, table, ids)
        assert plan.layout("table") == {"table": "f32[data*2 pad 13, 6]"}
        agree(plan, function, table, ids)


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
def test_writes_to_a_padded_table_and_of_padded_rows(mode: str):
    ids = np.array([0, 12, 5, 5] if mode == "promise_in_bounds" else [0, 12, 14, 40, -3, 5, 5])

    def write(table: Any, ids: Any, rows: Any) -> Any:
        added = table.at[ids].add(rows, mode=mode).sum(0)
        return added + table.at[ids].max(rows, mode=mode).sum(0)

    args = X[:13], ids, X[13 : 13 + len(ids)]
    agree(placed(write, *args), write, *args)
    agree(pt.plan(write, pt.Mesh(data=3), *args).tile("rows", 0, "data", padded=True), write, *args)
    agree(pt.plan(write, pt.Mesh(data=3), *args).tile("ids", 0, "data", padded=True), write, *args)


def test_a_padded_dim_changes_places_with_another():
    def function(x: Any) -> Any:
        return pt.tag(jnp.sin(x), "h").sum(1)

    plan = pt.plan(function, MESH, X).tile("x", 0, "data", padded=True).tile("h", 1, "data", padded=True)
    assert plan.layout("h") == {"h": "f32[30, data pad 6]"}
    assert plan.counts()["all_to_all"] == 2
    agree(plan, function, X)


def test_two_axes_on_a_padded_dim():
    mesh = pt.Mesh(data=4, model=2)

    def function(x: Any) -> Any:
        return jnp.exp(x).sum(0), x * 2

    plan = pt.plan(function, mesh, X).tile("x", 0, "data", padded=True).tile("x", 0, "model")
    assert plan.layout("x") == {"x": "f32[data*model*4 pad 30, 6]"}
    agree(plan, function, X)


def test_different_paddings_meet():
    """One op's rows are padded over 4 devices and another's over 8: the value is gathered between them, cut and padded."""
    mesh = pt.Mesh(a=4, b=2)

    def function(x: Any) -> Any:
        return (pt.tag(jnp.sin(x), "h") * 2).sum(0)

    plan = pt.plan(function, mesh, X[:29]).tile("x", 0, "a", padded=True, propagate=False).tile("h", 0, "b", padded=True)
    agree(plan, function, X[:29])


def test_an_op_whose_padding_would_count_is_left_out_and_listed():
    @pt.define("sum_exp(x)   out[i] = sum(k) exp(x[i, k])")
    def sum_exp(x: Any) -> Any:
        return jnp.exp(x).sum(1)

    def function(x: Any) -> Any:
        return sum_exp(2 * x)

    plan = placed(function, X.T, dim=1)
    (blocked,) = plan.blocked
    assert "sum_exp" in str(blocked) and "here its padding would count" in str(blocked)
    assert plan.counts()["all_gather"] == 1
    agree(plan, function, X.T)


def test_a_factor_without_the_folded_index_is_left_as_it_is():
    @pt.define("scaled_sum(a, b)   out[i] = sum(k) a[i, k] * b[i]")
    def scaled_sum(a: Any, b: Any) -> Any:
        return (a * b[:, None]).sum(1)

    def function(a: Any, b: Any) -> Any:
        return scaled_sum(a, b)

    agree(placed(function, X.T, X[0], dim=1), function, X.T, X[0])


def test_padding_is_found_beside_indices_that_are_tiled_too():
    @pt.define("fold_major(x, w)   out[j] = sum(k) x[(k j)] * w[k, j]")
    def fold_major(x: Any, w: Any) -> Any:
        return (x.reshape(w.shape) * w).sum(0)

    def function(y: Any, w: Any) -> Any:
        return fold_major((1 / y).reshape(180), w)

    y = np.abs(X) + 1
    plan = pt.plan(function, pt.Mesh(data=4, model=2), y, X).tile("y", 0, "data", padded=True).tile("y", 1, "model")
    agree(plan, function, y, X)


@pytest.mark.parametrize("axes", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("rows", [3, 9, 30])
def test_a_batch_over_two_axes_is_padded_for_both(axes: tuple[str, str], rows: int):
    def function(x: Any) -> Any:
        return jnp.exp(x).sum(0)

    plan = pt.plan(function, pt.Mesh(a=2, b=4), X[:rows]).apply(pt.DataParallel(axes, "x", padded=True))
    assert plan.layout("x") == {"x": f"f32[{'*'.join(axes)}{'*4' if rows == 30 else '*2' if rows == 9 else ''} pad {rows}, 6]"}
    agree(plan, function, X[:rows])


def test_a_dim_that_is_tiled_already_is_not_padded():
    plan = pt.plan(lambda x: x.sum(0), pt.Mesh(a=2, b=4), X).tile("x", 0, "a")
    with pytest.raises(pt.Error, match=r"plan.tile\('x', 0, \('a', 'b'\), padded=True\), in place of tactic 1"):
        plan.tile("x", 0, "b", padded=True)


def test_the_bytes_of_padded_arguments_are_those_of_whole_ones():
    plan = pt.plan(lambda x: x.sum(0), MESH, X)
    assert plan.tile("x", 0, "data", padded=True).diff(plan).arguments == (X.nbytes, X.nbytes)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x.reshape(5, 6, 6) + 1, "its blocks of 4 do not fit"),
        (lambda x: x.T.reshape(180) + 1, "here its padding would leave holes"),
    ],
)
def test_a_plan_says_why_padding_stops(function: Callable[[Any], Any], reason: str):
    plan = placed(function, X)
    assert reason in str(plan.blocked[0])
    agree(plan, function, X)


def test_an_extent_of_one_is_not_padded():
    with pytest.raises(pt.Error, match="cannot be tiled") as caught:
        placed(lambda x: x.sum(0), X[:1])
    assert "padded=True" not in str(caught.value)


def test_a_flag_is_a_truth_value():
    with pytest.raises(pt.Error, match="padded"):
        pt.plan(lambda x: x.sum(0), MESH, X).tile("x", 0, "data", padded=3)  # pyright: ignore[reportArgumentType]


def test_the_derivative_of_a_padded_plan_is_padded():
    def function(x: Any) -> Any:
        return jnp.log(jnp.exp(x).sum(0)).sum()

    compiled = placed(function, X).compile()
    np.testing.assert_allclose(jax.grad(compiled)(X), jax.grad(function)(X), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(compiled)(np.stack([X, 2 * X])), jax.vmap(function)(np.stack([X, 2 * X])), rtol=1e-5)


@settings(max_examples=300)
@given(st.integers(1, 40), st.integers(2, 9), st.integers(2, 4))
def test_every_element_is_in_one_block_of_a_padded_extent(extent: int, devices: int, more: int):
    mesh = pt.Mesh(a=devices, b=more)
    block = -(-extent // devices)
    factors = [Factor(mesh.place("a"), block)]
    if block % more == 0:
        factors.append(Factor(mesh.place("b"), block // more))
    r = tiling(extent, factors)
    axes = [factor.axis for factor in factors]
    held = [
        p for at in itertools.product(*(range(axis.size) for axis in axes)) for p in denote(r, dict(zip(axes, at, strict=True)))
    ]
    assert sorted(p for p in held if p is not None) == list(range(extent))


def test_a_layout_shows_the_blocks_of_the_boundary_beside_a_padded_dim() -> None:
    x = np.ones((2, 64), np.float32)
    dealt = pt.plan(lambda x: x * 2, pt.Mesh(a=4, b=2), x).tile("x", 0, "a", padded=True).tile("x", 1, "b", block=1)
    assert dealt.layout() == {"x": "f32[a pad 2, b*32]", "result": "f32[a pad 2, b*32]"}
    assert dealt.compile()(x).sharding.spec == jax.sharding.PartitionSpec(None, "b")
