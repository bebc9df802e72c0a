"""A tactic that could not do what it was asked for is refused, and the plan stays as it was."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import partita as pt

MESH = pt.Mesh(data=2, model=4)
X = np.ones((8, 16), np.float32)
P = {"gate": np.ones((16, 64), np.float32), "up": np.ones((16, 64), np.float32), "down": np.ones((64, 16), np.float32)}
STACKED = jax.tree.map(lambda each: np.stack([each] * 3), P)


def swiglu(p: Any, x: Any) -> Any:
    return x + (jax.nn.silu(x @ p["gate"]) * (x @ p["up"])) @ p["down"]


def scanned(p: Any, x: Any) -> Any:
    return lax.scan(jax.checkpoint(lambda x, p: (swiglu(p, x), None)), x, p)[0]


@pytest.mark.parametrize(("model", "params", "layers", "more"), [(swiglu, P, 1, 0), (scanned, STACKED, 3, 1)])
def test_two_columns_and_a_row_are_a_pair(model: Any, params: Any, layers: int, more: int) -> None:
    """One all_reduce after the row, and one before the columns, in each layer; after the loop one of the input's gradient."""
    loss = jax.value_and_grad(lambda p, x: model(p, x).sum(), (0, 1))
    plan = pt.plan(loss, MESH, params, X).apply(pt.Megatron("model", column=["p/gate", "p/up"], row="p/down"))
    found = [each for each in plan.collectives() if each.direction != "recomputed"]
    assert {each.kind for each in found} == {"all_reduce"}
    assert sum(each.times for each in found if each.direction == "backward") == layers + more
    assert sum(each.times for each in found if each.direction == "forward") == layers


def test_a_weight_that_is_no_part_of_a_pair_is_refused() -> None:
    plan = pt.plan(swiglu, MESH, P, X)
    for tactic, said in (
        (pt.Megatron("model", column={"p/gate": 0}), "`p/gate` is no column .* sums over its dim 0"),
        (pt.Megatron("model", row={"p/down": 1}), "`p/down` is no row .* does not sum over its dim 1"),
    ):
        with pytest.raises(pt.Error, match=said):
            plan.apply(tactic)
    assert not plan.actions


@pytest.mark.parametrize(
    "tactic",
    [
        pt.Megatron("model", column=["p/gate", "p/up", "p/down"]),
        pt.Megatron("model", column="p/gate", row={"p/down": 1}),
    ],
)
def test_weights_that_contradict_each_other_are_a_conflict(tactic: pt.Tactic) -> None:
    (conflict,) = pt.plan(swiglu, MESH, P, X).apply(tactic).conflicts
    assert conflict.op == "`dot_general`"
    assert conflict.resolutions


def test_an_op_between_column_and_row_that_cannot_keep_the_axis_is_refused() -> None:
    plan = pt.plan(lambda p, x: jnp.cumsum(jnp.sort(x @ p["up"]), 1) @ p["down"], MESH, P, X)
    with pytest.raises(pt.Error, match="`sort` needs `dot_general#0` whole"):
        plan.apply(pt.Megatron("model", column="p/up", row="p/down"))


def test_columns_whose_products_are_summed_before_the_row_are_refused() -> None:
    """The width of a head is summed over in the scores; tiled by heads, the pair needs the one all_reduce of its row."""

    def attend(x: Any, wq: Any, wk: Any, wo: Any) -> Any:
        q, k = (jnp.einsum("btm,mhd->bthd", x, w) for w in (wq, wk))
        scores = jax.nn.softmax(jnp.einsum("bqhd,bthd->bhqt", q, k))
        return jnp.einsum("bthd,hdm->btm", jnp.einsum("bhqt,bthd->bqhd", scores, k), wo)

    args = X[None].repeat(2, 0), *[np.ones((16, 4, 8), np.float32)] * 2, np.ones((4, 8, 16), np.float32)
    plan = pt.plan(attend, MESH, *args)
    with pytest.raises(pt.Error, match="sums over the dim that a column puts on `model`"):
        plan.apply(pt.Megatron("model", column=["wq", "wk"], row="wo"))
    heads = plan.apply(pt.Megatron("model", column={"wq": -2, "wk": -2}, row={"wo": 0}))
    assert heads.counts()["all_reduce"] == 1


def test_stacked_layers_whose_input_dim_is_named_are_refused() -> None:
    """Dim 1 of a stack is the dim that its products sum over."""
    with pytest.raises(pt.Error, match=r"`p/gate` is no column.*sums over its dim"):
        pt.plan(scanned, MESH, STACKED, X).apply(pt.Megatron("model", column={"p/gate": 1, "p/up": 1}, row={"p/down": 2}))


def test_products_that_an_earlier_tactic_has_placed_are_refused() -> None:
    plan = pt.plan(swiglu, MESH, P, X).apply(pt.DataParallel("model", inputs="x"))
    with pytest.raises(pt.Error, match="already uses it, by 1: DataParallel"):
        plan.apply(pt.Megatron("model", column="p/gate", row="p/down"))


def test_a_batch_that_meets_trips_is_refused_with_a_cure_that_works() -> None:
    def accumulated(w: Any, x: Any) -> Any:
        return lax.scan(lambda total, part: (total + jnp.tanh(part @ w).sum(), None), 0.0, x.reshape(3, 10, 16))[0]

    plan = pt.plan(accumulated, pt.Mesh(data=6), np.ones((16, 16), np.float32), np.ones((30, 16), np.float32))
    with pytest.raises(pt.Error, match="computes nothing in parts") as caught:
        plan.apply(pt.DataParallel("data", inputs="x"))
    assert 'plan.tile("x", 0, "data").propagate("data", split=True)' in str(caught.value)
    split = plan.tile("x", 0, "data").propagate("data", split=True)
    assert split.layout("reshape#0") == {"reshape#0": "f32[data.0:3, data.1:2*5, 16]"}


def test_a_batch_that_is_shuffled_is_refused() -> None:
    """As rollouts that are made flat and drawn from in a random order: only moves of the batch would run in parts."""

    def epoch(w: Any, order: Any, observed: Any) -> Any:
        return jnp.tanh(observed.reshape(-1, 16)[order] @ w).sum()

    order = np.arange(64, dtype=np.int32)[::-1].copy()
    plan = pt.plan(epoch, pt.Mesh(data=4), np.ones((16, 16), np.float32), order, np.ones((16, 4, 16), np.float32))
    with pytest.raises(pt.Error, match="computes nothing in parts: the batch ends at `gather`"):
        plan.apply(pt.DataParallel("data", inputs="observed"))
    assert plan.apply(pt.DataParallel("data", inputs="order")).layout("order") == {"order": "i32[data*16]"}


def test_a_batch_that_meets_itself_is_a_conflict() -> None:
    plan = pt.plan(lambda x: jnp.sin(x.T + x), pt.Mesh(data=4), np.ones((8, 8), np.float32))
    assert len(plan.apply(pt.DataParallel("data", inputs="x")).conflicts) == 1


def test_a_refused_tactic_names_what_to_apply_instead() -> None:
    plan = pt.plan(lambda x: lax.top_k(x, 3)[0] * 2, pt.Mesh(data=8), np.ones(16, np.float32))
    with pytest.raises(pt.Error, match="computes nothing in parts") as caught:
        plan.apply(pt.DataParallel("data", inputs="x"))
    (help,) = caught.value.helps
    assert help == "use fewer devices: DataParallel(axis='data.0:2', inputs='x')"
    assert not plan.apply(pt.DataParallel("data.0:2", inputs="x")).blocked


def test_one_input_in_parts_is_enough() -> None:
    plan = pt.plan(lambda x, y: (jnp.sort(x, axis=0)[:3], y * 2), pt.Mesh(data=8), X, X)
    assert plan.apply(pt.DataParallel("data", inputs=["x", "y"])).layout("y") == {"y": "f32[data, 16]"}


def test_a_weight_that_is_updated_and_used_again_is_still_a_weight() -> None:
    """As in the second of two steps, or for a discriminator that is trained before the generator."""

    def loss(p: Any, x: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ p["up"]) @ p["down"]) ** 2)

    def twice(p: Any, x: Any) -> Any:
        for _ in range(2):
            p = jax.tree.map(lambda w, d: w - 0.1 * d, p, jax.grad(loss)(p, x))
        return p

    params = {"up": P["up"] / 32, "down": P["down"] / 32}
    plan = pt.plan(twice, MESH, params, X).apply(pt.Megatron("model"))
    assert plan.layout("p") == {"p/down": "f32[model*16, 16]", "p/up": "f32[16, model*16]"}
    assert plan.counts()["all_reduce"] == 2 and plan.check(params, X) < 1e-4


@pytest.mark.parametrize("first", [pt.Megatron("model"), pt.Tile({"p/up": 1}, "model")])
def test_megatron_after_a_tactic_that_has_placed_the_weights_is_to_be_left_out(first: pt.Tactic) -> None:
    with pytest.raises(pt.Error) as caught:
        pt.plan(swiglu, MESH, P, X).apply(first, pt.Megatron("model"))
    assert caught.value.helps == ("weights are on it: leave `Megatron` out, or use another axis",)


def test_megatron_over_an_axis_that_divides_no_width_offers_padding_that_works() -> None:
    plan = pt.plan(lambda p, x: jnp.tanh(x @ p["up"]) @ p["down"], pt.Mesh(model=3), P, X)
    with pytest.raises(pt.Error) as caught:
        plan.apply(pt.Megatron("model"))
    assert "have dims padded that do not divide: padded=True" in caught.value.helps
    assert plan.apply(pt.Megatron("model", padded=True)).counts()["all_reduce"] == 1


def test_two_dimensions_are_two_axes() -> None:
    with pytest.raises(pt.Error, match="`Tensor2D` takes two axes, got `data` for both"):
        pt.plan(swiglu, MESH, P, X).apply(pt.Tensor2D("data", "data"))
