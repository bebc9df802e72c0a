"""Ops run along a dim that a later tactic stores in parts, where that receives less than to gather what it stores."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from sent import BOUND, normal, sent

import partita as pt
from partita.rewrites.decide import price

MESH = pt.Mesh(data=8)
FLOAT = 4
OTHERS = 7 / 8
"""What each of eight devices lacks of an array."""

Tree = Any


def step(loss: Any) -> Any:
    def train(params: Tree, batch: Tree) -> Any:
        value, grads = jax.value_and_grad(loss)(params, batch)
        return jax.tree.map(lambda param, grad: param - 0.1 * grad, params, grads), value

    return train


ZERO3 = [pt.DataParallel("data", inputs="batch"), pt.ZeRO(3, "data", params="params")]
ROWS, WIDTH = 512, 128
TABLE, IDS = normal(4096, WIDTH), jnp.arange(ROWS) * 7 % 4096


def lookup(table: jax.Array, ids: jax.Array) -> jax.Array:
    return table[ids]


def test_few_rows_are_looked_up_where_the_table_lies() -> None:
    plan = pt.plan(lookup, MESH, TABLE, IDS).tile("ids", 0, "data").tile("table", 0, "data")
    assert sent(plan, TABLE, IDS) == {"all_gather": 1, "reduce_scatter": 1}
    assert plan.bytes_per_device() == FLOAT * OTHERS * (ROWS + ROWS * WIDTH)
    assert plan.layout("result") == {"result": f"f32[data*{ROWS // 8}, {WIDTH}]"}


def test_each_device_looks_up_its_columns_of_a_small_table() -> None:
    table = TABLE[:256]
    plan = pt.plan(lookup, MESH, table, IDS % 256).tile("ids", 0, "data").tile("table", 0, "data")
    assert sent(plan, table, IDS % 256) == {"all_gather": 1, "all_to_all": 2}
    # The table and the result change between rows and columns.
    assert plan.bytes_per_device() == FLOAT * OTHERS * (IDS.size + (table.size + IDS.size * WIDTH) / 8)


def test_a_move_that_another_op_needs_in_any_case_is_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "START", 0)
    table, ids = normal(512, 8), jnp.arange(1024) % 512
    plan = pt.plan(lambda table, ids: (jnp.fft.fft(table, axis=0), table[ids]), MESH, table, ids)
    plan = plan.tile("ids", 0, "data").tile("table", 0, "data")
    assert sent(plan, table, ids) == {"all_gather": 1, "all_to_all": 2}
    # The transform reads the columns of the table, so the lookup reads them too, and its result changes to rows.
    assert plan.bytes_per_device() == FLOAT * OTHERS * (ids.size + (table.size + ids.size * 8) / 8)


def test_what_is_padded_is_gathered_before_it_is_padded() -> None:
    x = normal(1 << 16)
    plan = pt.plan(lambda x: jnp.abs(jnp.fft.rfft(x, n=2 * len(x))), MESH, x).tile("x", 0, "data")
    assert sent(plan, x) == {"all_gather": 1} and plan.bytes_per_device() == FLOAT * OTHERS * x.size


def test_a_small_table_with_short_rows_is_gathered() -> None:
    table = TABLE[:256, :4]
    plan = pt.plan(lookup, MESH, table, IDS % 256).tile("ids", 0, "data").tile("table", 0, "data")
    assert sent(plan, table, IDS % 256) == {"all_gather": 1}
    assert plan.bytes_per_device() == FLOAT * OTHERS * table.size


def test_a_plan_says_which_op_runs_along_which_value_and_why() -> None:
    plan = pt.plan(lookup, MESH, TABLE, IDS).tile("ids", 0, "data").tile("table", 0, "data")
    assert re.search(
        r"`gather` at .* in lookup runs along it on `data`, which receives less than to gather", str(plan.explain("table"))
    )
    ids, rows = plan.collectives()
    assert ids.why == "`gather` runs along `table`, which receives less than to move it"
    assert ids.why in rows.why and rows.numbers == "1, 2"


def perceptron(params: Tree, batch: Tree) -> jax.Array:
    h = batch["x"]
    for name in sorted(params):
        h = jnp.tanh(h @ params[name])
    return jnp.mean((h - batch["y"]) ** 2)


@pytest.mark.parametrize(("rows", "parameters_move"), [(64, False), (512, True)])
def test_the_smaller_of_weights_and_activations_moves(rows: int, parameters_move: bool) -> None:
    params = {f"w{layer}": normal(256, 256) for layer in range(4)}
    batch = {"x": normal(rows, 256), "y": normal(rows, 257)[:, 1:]}
    plan = pt.plan(step(perceptron), MESH, params, batch).apply(*ZERO3)
    found = sent(plan, params, batch)
    if parameters_move:
        # Each matrix forward, all but the first backward; each gradient once.
        assert found == {"all_gather": 4 + 3, "reduce_scatter": 4, "all_reduce": 1}
        assert plan.bytes_per_device() == FLOAT * OTHERS * (4 + 3 + 4) * 256 * 256 + 7
    else:
        assert plan.bytes_per_device() <= FLOAT * OTHERS * (2 * 4 + 1) * rows * 256
    gathered = (each for each in plan.collectives() if each.kind == "all_gather")
    assert any(each.value.startswith("params/") for each in gathered) == parameters_move


VOCABULARY, TOKENS = 2048, 512


def tied(params: Tree, batch: Tree) -> jax.Array:
    """A language model of one layer, whose table is also its head."""
    h = jnp.tanh(params["table"][batch["x"]] @ params["w"])
    chances = jax.nn.log_softmax(h @ params["table"].T)
    return -jnp.mean(jnp.take_along_axis(chances, batch["y"][..., None], -1))


def test_a_tied_table_stays_where_it_is_and_the_logits_are_tiled_along_it() -> None:
    params = {"table": normal(VOCABULARY, 64), "w": normal(64, 64)}
    ids = jnp.arange(TOKENS).reshape(16, -1) * 13 % VOCABULARY
    batch = {"x": ids, "y": ids * 3 % VOCABULARY}
    plan = pt.plan(step(tied), MESH, params, batch).apply(*ZERO3)
    sent(plan, params, batch)
    assert not any(each.value == "params/table" and each.kind == "all_gather" for each in plan.collectives())
    # At most what is looked up and what the head reads, forward and backward; `w` three times; numbers of each token.
    moved = FLOAT * OTHERS * (4 * TOKENS * 64 + 3 * 64 * 64)
    assert plan.bytes_per_device() <= moved + FLOAT * OTHERS * 12 * TOKENS
    gathered = FLOAT * OTHERS * (4 * VOCABULARY * 64 + 3 * 64 * 64)
    assert plan.bytes_per_device() < gathered / 3


def mixture(params: Tree, x: jax.Array) -> jax.Array:
    """Two experts for each token, by lookups over all tokens: no groups."""
    (tokens, width), (experts, _, _) = x.shape, params["up"].shape
    capacity = 2 * tokens // experts
    weights, expert = (each.T.reshape(-1) for each in jax.lax.top_k(jax.nn.softmax(x @ params["gate"]), 2))
    chosen = jax.nn.one_hot(expert, experts, dtype=jnp.int32)
    place = jnp.sum(chosen * (jnp.cumsum(chosen, 0) - 1), -1)
    slot = jnp.where(place < capacity, expert * capacity + place, experts * capacity)
    sent = jnp.zeros((experts * capacity, width)).at[slot].set(x[jnp.tile(jnp.arange(tokens), 2)], mode="drop")
    h = jax.nn.relu(jnp.einsum("ecm,emf->ecf", sent.reshape(experts, capacity, width), params["up"]))
    y = jnp.einsum("ecf,efm->ecm", h, params["down"]).reshape(experts * capacity, width)
    found = y.at[slot].get(mode="fill", fill_value=0) * weights[:, None]
    return found.reshape(2, tokens, width).sum(0)


def test_tokens_and_what_experts_give_change_places_in_parts() -> None:
    params = {"gate": normal(64, 8), "up": normal(8, 64, 128), "down": normal(8, 128, 64), "into": normal(64, 64)}
    x = normal(1024, 64)

    def layer(params: Tree, x: jax.Array) -> jax.Array:
        return mixture(params, jnp.tanh(x @ params["into"]))

    plan = pt.plan(layer, MESH, params, x)
    plan = plan.apply(pt.ExpertParallel("data", experts=["params/up", "params/down"]), pt.DataParallel("data", inputs="x"))
    sent(plan, params, x)
    # Tokens change from rows to columns, and the two slots of each from columns to experts; both change back afterwards. The
    # rest are numbers of each choice.
    tokens, numbers = FLOAT * OTHERS * 1024 * 64 / 8, FLOAT * OTHERS * 2 * 1024
    assert 2 * (1 + 2) * tokens <= plan.bytes_per_device() <= 2 * (1 + 2) * tokens + 5 * numbers
    moved = [each.bytes for each in plan.collectives() if each.kind == "all_to_all" and each.bytes >= tokens]
    assert sorted(moved) == [tokens, tokens, 2 * tokens, 2 * tokens]


# --- found by generated programs ------------------------------------------------------------------------------------------


def pooled(table: jax.Array, ids: jax.Array, y: jax.Array) -> Any:
    return table - 0.1 * jax.grad(lambda table: jnp.mean((table[ids].sum(1) - y) ** 2))(table)


def test_what_is_pooled_moves_and_not_what_is_looked_up() -> None:
    args = normal(4096, 16), jnp.arange(256 * 5).reshape(256, 5) * 7 % 4096, normal(256, 16)
    plan = pt.plan(pooled, MESH, *args).apply(pt.DataParallel("data", inputs=["ids", "y"])).tile("table", 0, "data")
    sent(plan, *args)
    # The ids, what is pooled, and its gradient.
    assert plan.bytes_per_device() == FLOAT * OTHERS * (256 * 5 + 2 * 256 * 16)


@pytest.mark.usefixtures("at_once")
def test_chained_adds_gather_what_is_added_once() -> None:
    def chained(x: jax.Array, i: jax.Array) -> jax.Array:
        made = jnp.zeros(1024)
        for k in range(4):
            made = made.at[i + k].add(x * (k + 1))
        return made

    args = normal(512), jnp.arange(512) * 7 % 1000
    plan = pt.plan(chained, MESH, *args).tile("x", 0, "data").tile("i", 0, "data")
    sent(plan, *args)
    assert plan.bytes_per_device() <= FLOAT * OTHERS * 2 * 1024


@pytest.mark.usefixtures("at_once")
def test_work_that_no_claim_reaches_is_not_divided_for_its_own_sake() -> None:
    x, w = normal(64, 256), normal(256, 256)
    plan = pt.plan(lambda x, w: jnp.tanh(x @ w), pt.Mesh(data=4, model=2), x, w).apply(pt.DataParallel("data", inputs="x"))
    assert plan.bytes_per_device() == 0 and plan.layout("result") == {"result": "f32[data*16, 256]"}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collectives start at once, so that ops of small arrays run elsewhere too."""
    monkeypatch.setattr(price, "START", 0)


@pytest.mark.usefixtures("at_once")
def test_an_axis_does_not_leave_a_dim_on_which_another_one_would_not_fit_alone() -> None:
    """Rows in blocks of two on `a` and `b`: without `a`, those on `b` are not one block, in which updates could be written."""

    def update(ids: jax.Array, b: jax.Array) -> Any:
        z = jnp.arcsinh(jnp.tanh(b.at[ids].add(b)))
        return jnp.arcsinh(z), jnp.arcsinh(z)

    args = jnp.array([0, 1, 1, 5, 7, 2, 2, 3]), normal(8, 8)
    plan = pt.plan(update, pt.Mesh(a=2, b=2), *args)
    plan = plan.tile("result/0", 0, "a").tile("ids", 0, "a").tile("result/0", 0, "b")
    assert plan.check(*args) <= BOUND


@pytest.mark.usefixtures("at_once")
def test_a_sum_over_two_axes_does_not_wait_in_an_op_that_one_of_them_tiles() -> None:
    def program(x: jax.Array) -> Any:
        y = jnp.arcsinh(x)
        z = jnp.tanh(0.4 * (y @ y.T).T @ (y - y))
        return jnp.arcsinh(z), jnp.arcsinh(jnp.arcsinh(z))

    x = normal(1, 6)
    plan = pt.plan(program, pt.Mesh(a=3, b=2), x).tile("result/1", 1, "b").apply(pt.Tile({"x": 1}, "a", held=True))
    assert plan.check(x) <= BOUND


# --- windows ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [3, 4, 8, 12, 16, 24, 32, 37, -20])
def test_a_roll_moves_no_element_twice(shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slices of which it is made are computed where they are concatenated, not in equal blocks of their own."""
    monkeypatch.setattr(price, "START", 0)
    x = normal(64, 16)
    plan = pt.plan(lambda x: jnp.roll(x, shift, axis=0), MESH, x).tile("x", 0, "data")
    assert 1 <= sent(plan, x)["permute"] <= 2
    assert plan.bytes_per_device() == FLOAT * 16 * min(8, abs(shift))


def test_a_shift_by_half_on_two_dims_is_one_permute() -> None:
    x = normal(1024, 1024)
    plan = pt.plan(jnp.fft.fftshift, MESH, x).tile("x", 0, "data")
    assert sent(plan, x) == {"permute": 1}
    assert plan.bytes_per_device() == FLOAT * x.size / 8


@pytest.mark.parametrize("scan", [jax.lax.cummax, jax.lax.cumprod, jax.lax.cumlogsumexp], ids=lambda scan: scan.__name__)
def test_the_gradient_of_a_scan_runs_along_the_other_dim(scan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its hundreds of ops on windows would exchange rows of few elements in many places."""
    monkeypatch.setattr(price, "START", 0)
    x, w = normal(64, 1024), normal(64, 1024)
    gradient = jax.grad(lambda x, w: jnp.sum(scan(x, axis=0) * w))
    plan = pt.plan(gradient, MESH, x, w).tile(["x", "w"], 0, "data")
    # Two arguments and the result would change between rows and columns.
    assert plan.bytes_per_device() <= FLOAT * OTHERS * 3 * x.size / 8
    assert plan.check(x, w) < BOUND


def test_the_rows_of_a_padded_kernel_are_gathered() -> None:
    x, w = normal(8, 16, 16, 16), normal(3, 3, 16, 32)

    def conv(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    plan = pt.plan(conv, pt.Mesh(a=4, b=2), x, w).tile("w", 0, "a", padded=True)
    assert plan.bytes_per_device() <= 2 * FLOAT * w.size
    assert plan.check(x, w) < BOUND


@pytest.mark.parametrize("transform", [jnp.fft.fftn, jnp.fft.ifftn, jnp.fft.rfftn, jnp.fft.irfftn], ids=lambda f: f.__name__)
def test_each_dim_of_a_transform_is_transformed_where_it_is_whole(transform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "START", 0)
    x = normal(16, 32, 16)
    before, after = (1, 0) if transform.__name__ in ("ifftn", "irfftn") else (0, 1)
    plan = pt.plan(lambda x: transform(x), MESH, x).tile("x", before, "data").tile("result", after, "data")
    assert plan.counts()["all_to_all"] == 1 and sum(plan.counts().values()) == 1
    assert plan.check(x) < BOUND


@pytest.mark.parametrize("transform", [jnp.fft.fftn, jnp.fft.ifftn, jnp.fft.rfftn, jnp.fft.irfftn], ids=lambda f: f.__name__)
def test_dims_that_a_device_has_whole_are_transformed_together(transform: Any) -> None:
    x = normal(8, 4, 16, 8)
    plan = pt.plan(lambda x: transform(x, axes=(1, 2, 3)), MESH, x).tile("x", 0, "data")
    text = str(plan.spmd())
    assert (text.count("lax.fft"), text.count("lax.transpose")) == (1, 0)
    assert sent(plan, x) == {}


def test_a_sum_waits_up_to_a_value_that_a_tactic_has_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum over the columns of the product waits in the sum over its columns, which is scattered to where it is wanted."""
    monkeypatch.setattr(price, "START", 0)

    def rows(x: jax.Array) -> jax.Array:
        h = jnp.tanh(x)
        return (h @ h).sum(1)

    x = normal(256, 256)
    plan = pt.plan(rows, MESH, x).tile("x", 0, "data").tile("result", 0, "data")
    assert sent(plan, x) == {"all_to_all": 1, "reduce_scatter": 1}
    assert plan.bytes_per_device() == FLOAT * OTHERS * (256 * 256 / 8 + 256)


@pytest.mark.parametrize(("shape", "received"), [((64, 256), 64 * 256), ((4096, 16), 4096 * 16 / 8 + 16 * 16)])
def test_what_is_pending_in_a_result_in_conflict_is_scattered(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], received: float
) -> None:
    """A product in conflict runs along its rows or, if these are fewer, along what it sums over: its result is in parts."""
    monkeypatch.setattr(price, "START", 0)
    x = normal(*shape)
    plan = pt.plan(lambda x: x.T @ x, MESH, x).tile("x", 1, "data")
    assert plan.bytes_per_device() == FLOAT * OTHERS * received and plan.check(x) <= BOUND
    assert plan.layout("result") == {"result": f"f32[data*{shape[1] // 8}, {shape[1]}]"}


def test_what_is_pending_in_a_result_in_turn_is_scattered_beside_its_blocks() -> None:
    """Outside, the columns lie in blocks, in whatever order they are computed: that alone does not move them."""
    shapes = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((64, 4096), (4096, 64)))
    plan = pt.plan(lambda x, w: x @ w, pt.Mesh(a=2, b=4), *shapes)
    plan = plan.apply(pt.Tile({"x": 1, "w": 1}, "a"), pt.Tile({"w": 1}, "b"))
    assert plan.layout("result") == {"result": "f32[a*32, b*16]"} and plan.bytes_per_device() == 69_632


def test_a_layout_that_ops_on_both_sides_want_is_moved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first product moves to the columns of its second factor: it then reads all of `x`, as the last one does anyway."""
    monkeypatch.setattr(price, "START", 0)

    def products(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        first = x @ y.T
        return x @ (first.T @ x), jnp.cumsum(first, 0)

    x, y = normal(32, 32), normal(32, 32)
    plan = pt.plan(products, MESH, x, y).tile("result/0", 1, "data")
    assert plan.bytes_per_device() == FLOAT * OTHERS * (2 * 32 * 32 + 32 * 32 / 8)
    assert plan.check(x, y) <= BOUND


def test_ops_alike_that_read_one_value_move_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """To gather `x` for one of the products alone costs as much as to sum up its result."""
    monkeypatch.setattr(price, "START", 0)

    def grams(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x.T @ x, jnp.exp(x.T @ x)

    x = normal(64, 64)
    plan = pt.plan(grams, MESH, x).tile("x", 0, "data")
    assert sent(plan, x) == {"all_gather": 3} and plan.bytes_per_device() == FLOAT * OTHERS * 3 * 64 * 64


def test_what_saves_less_than_what_is_done_first_is_tried_again() -> None:
    """The first product is tried with the second one, which saves more. Nothing changes next to it, and it still pays."""

    def products(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        sums = jnp.sum(w, 1)
        return x @ sums, (w @ sums) @ w

    shapes = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((4096, 16384), (16384, 16384)))
    plan = pt.plan(products, pt.Mesh(a=4), *shapes).apply(pt.Tile({"x": 0, "w": 0}, "a"))
    assert plan.bytes_per_device() == FLOAT * (2 * 3 / 4 * 16384 + 3 / 4 * 16384)


def test_an_outer_product_is_not_made_whole_everywhere_to_save_bytes() -> None:
    """It has two flops an element, but is larger than all that it reads: whole, it would be 64 MiB on each device."""

    def outer(column: jax.Array, row: jax.Array, x: jax.Array) -> jax.Array:
        return x @ (column @ row)

    shapes = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((4096, 1), (1, 4096), (64, 4096)))
    plan = pt.plan(outer, MESH, *shapes).tile("column", 0, "data")
    assert plan.counts()["all_reduce"] == sum(plan.counts().values()) == 1
    assert plan.memory().bytes < 4096 * 4096 * FLOAT // 4
