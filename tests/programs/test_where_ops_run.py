"""Where an op runs is a choice by price: another dim, one claim of a conflict, or all devices for what is constant.

Each program receives what an expert's placement receives, at a small size with the threshold at 0, and at a large one with it.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from sent import normal

import partita as pt
from partita.dialects.chips import CHIPS, DEFAULT
from partita.rewrites.decide import price, relocate
from tests.support.everywhere import agrees

DEVICES, FLOAT = 8, 4
MESH = pt.Mesh(d=DEVICES)


@dataclass(frozen=True)
class Row:
    """A program on arrays of `rows` rows, all tiled on dim 0, and the bytes that a device receives, by the number of rows."""

    program: Callable[..., Any]
    shapes: Callable[[int], list[tuple[int, ...]]]
    received: Callable[[int], float]
    many: int
    """With so many rows, what is saved is worth 20 starts of a collective; 0 if only sums of single numbers are saved."""


def lacks(*elements: float) -> float:
    """The bytes that one of the devices lacks of arrays with so many elements."""
    return FLOAT * sum(elements) * (DEVICES - 1) / DEVICES


def part(elements: float) -> float:
    """The bytes that a device receives if it has one dim of an array in parts, and then another one."""
    return lacks(elements) / DEVICES


def bodies(x: Any, v: Any) -> Any:
    def step(c: Any, _: None) -> Any:
        x, v = c
        d = x[None] - x[:, None]
        f = (d / (jnp.sum(d * d, -1, keepdims=True) + 0.1) ** 1.5).sum(1)
        return (x + 0.01 * v, v + 0.01 * f), None

    return jax.lax.scan(step, (x, v), None, length=4)[0]


def window(x: Any) -> Any:
    w = jnp.exp(-0.1 * jnp.arange(float(len(x))))
    return x * w[:, None] / jnp.sum(w)


def frequencies(w: Any) -> Any:
    def trip(w: Any, _: None) -> Any:
        k = jnp.arange(float(len(w))) / 64
        return w * k[:, None] + jnp.sum(jnp.cos(k)) * k[None, : w.shape[1]], None

    return jax.lax.scan(trip, w, None, length=10)[0]


def averages(x: Any) -> Any:
    return jax.lax.scan(lambda c, row: (0.9 * c + row, c), jnp.zeros(x.shape[1:]), x)[1]


def contrasted(a: Any, b: Any) -> Any:
    """The loss of pairs of images and texts, behind a branch."""
    logits = jax.lax.cond(jnp.arange(4).sum() > 5, jnp.tanh, jnp.sin, a @ b.T)
    return -sum(jnp.sum(jnp.eye(len(a)) * jax.nn.log_softmax(logits, dim)) for dim in (0, 1))


def in_order(x: Any) -> Any:
    return x[jnp.argsort(x[:, 0])]


def squared(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jax.grad(lambda *given: sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(*given))))(*args)


WIDE = 32


def one(rows: int) -> list[tuple[int, ...]]:
    return [(rows, WIDE)]


ROWS = {
    "sort": Row(lambda x: jnp.sort(x, 0), one, lambda n: 2 * part(n * WIDE), 1 << 19),
    "gradient of a sort": Row(squared(lambda x: jnp.sort(x, 0)), one, lambda n: 2 * part(n * WIDE), 1 << 19),
    "fft": Row(lambda x: jnp.fft.fft(x, axis=0).real, one, lambda n: 2 * part(n * WIDE), 1 << 19),
    "all pairs": Row(bodies, lambda n: [(n, 3), (n, 3)], lambda n: 4 * lacks(n * 3), 1 << 17),
    "window": Row(window, one, lambda n: 0, 0),
    "frequencies in a loop": Row(frequencies, one, lambda n: 0, 0),
    "scan": Row(averages, one, lambda n: 2 * part(n * WIDE), 1 << 19),
    # One side is gathered, and one dim folded twice.
    "contrastive loss": Row(contrasted, lambda n: [(n, WIDE)] * 2, lambda n: lacks(n * WIDE + 4 * n + 2), 1 << 17),
    "order of a column": Row(in_order, one, lambda n: lacks(n * WIDE), 1 << 16),
}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collectives start at once, so that they save as much in small programs as in large ones."""
    monkeypatch.setattr(price, "START", 0)


def planned(row: Row, rows: int) -> tuple[pt.Plan, list[jax.Array]]:
    args = [normal(*shape) for shape in row.shapes(rows)]
    return plan_of(row, args), args


def plan_of(row: Row, args: Any) -> pt.Plan:
    plan = pt.plan(row.program, MESH, *args)
    return plan.apply(*(pt.Tile({name: 0}, "d") for name in plan.layout() if not name.startswith("result")))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", ROWS)
def test_an_op_runs_where_a_device_receives_the_least(name: str) -> None:
    row = ROWS[name]
    plan, args = planned(row, 64)
    assert plan.bytes_per_device() <= row.received(64)
    agrees(plan, row.program, *args, derived=True)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.many])
def test_so_it_does_where_that_is_worth_twenty_starts(name: str) -> None:
    row = ROWS[name]
    plan = plan_of(row, [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in row.shapes(row.many)])
    assert plan.bytes_per_device() <= row.received(row.many)


def test_below_one_start_the_order_of_the_tactics_is_followed() -> None:
    plan, _ = planned(ROWS["fft"], 64)
    assert plan.counts()["all_gather"] == 1


def test_a_result_behind_a_stop_lies_where_that_is_cheapest() -> None:
    args = [jax.ShapeDtypeStruct((1 << 19, WIDE), jnp.float32)]
    plan = plan_of(Row(lambda x: jnp.fft.fft(x, axis=0) * 2, one, lambda n: 0, 0), args)
    assert plan.layout("result") == {"result": "c64[524288, d*4]"} and plan.counts()["all_to_all"] == 1


@pytest.mark.usefixtures("at_once")
def test_a_result_that_a_later_claim_does_not_reach_lies_where_that_is_cheapest() -> None:
    """The lookup is a sum over the rows of the table, which come first, so the claim on what is looked up ends there."""
    args = normal(32, 64), jnp.arange(32)[:, None], jnp.arange(32 * 64).reshape(32, 64) % 64
    plan = pt.plan(lambda table, rows, columns: table[rows, columns], MESH, *args).tile("table", 0, "d").tile("rows", 0, "d")
    assert plan.layout("result") == {"result": "f32[d*4, 64]"}
    assert plan.bytes_per_device() == lacks(32 * 64) and plan.check(*args) == 0


@pytest.mark.usefixtures("at_once")
def test_a_scan_of_what_is_small_runs_whole_where_its_result_is_wanted_whole() -> None:
    """Found by the oracle's draws: the scan along tiled blocks stayed, and its whole result was gathered."""

    def running(x: Any) -> Any:
        return jnp.cumsum(jnp.cumsum(jnp.broadcast_to(x, (64, 64)), 1), 0) - x[None]

    x = normal(64)
    plan = pt.plan(running, MESH, x).tile("x", 0, "d").replicate("cumsum#1", "d").tile("result", 1, "d")
    assert plan.bytes_per_device() == lacks(64)
    agrees(plan, running, x, derived=True)


def test_a_result_that_a_tactic_places_stays_there_wherever_its_op_runs() -> None:
    x = jax.ShapeDtypeStruct((1 << 19, WIDE), jnp.float32)
    plan = pt.plan(lambda x: jnp.fft.fft(x, axis=0), MESH, x).tile("x", 0, "d").tile("result", 0, "d")
    assert plan.layout("result") == {"result": "c64[d*65536, 32]"} and plan.counts()["all_to_all"] == 2


def test_explain_says_what_an_op_saves_where_it_runs_and_what_is_too_little() -> None:
    def function(x: Any) -> Any:
        return jnp.maximum(x.T @ x, x)

    def explained(size: int) -> str:
        plan = pt.plan(function, pt.Mesh(d=DEVICES), jax.ShapeDtypeStruct((size, size), "float32")).tile("x", 1, "d")
        (collective,) = plan.collectives()
        return str(plan.explain(collective))

    few = (
        "along dim 1 of `x` and dim 1 of `dot_general#0` it would save 0.149 microseconds, too little to leave the order of the"
    )
    assert few in explained(256) and "the start of a collective takes 0.73 microseconds" in explained(256)
    assert "this saves 610 microseconds, counted for all ops that run elsewhere for `x`" in explained(4096)


def test_parts_that_take_less_than_a_start_are_not_tried_and_explain_still_says_what_they_would_save(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: set[int] = set()
    improve = relocate._Search.improve  # pyright: ignore[reportPrivateUsage]

    def counted(search: Any, group: Any) -> Any:
        tried.update(each.source.global_shape[0] for each in group)
        return improve(search, group)

    monkeypatch.setattr(relocate._Search, "improve", counted)  # pyright: ignore[reportPrivateUsage]
    of_both = [jax.ShapeDtypeStruct((size, size), "float32") for size in (64, 4096)]
    plan = pt.plan(lambda *both: [jnp.maximum(x.T @ x, x) for x in both], pt.Mesh(d=DEVICES), *of_both)
    plan = plan.tile("both/0", 1, "d").tile("both/1", 1, "d")
    small, large = plan.collectives()
    assert tried == {4096}
    assert "this saves 610 microseconds" in str(plan.explain(large))
    assert "too little to leave the order of the tactics" in str(plan.explain(small)) and tried == {64, 4096}


def test_an_op_in_conflict_is_divided_where_it_computes_so_much_that_this_is_worth_a_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def function(x: Any) -> Any:
        return jnp.maximum(x.T @ x, x)

    def planned(size: int) -> pt.Plan:
        mesh = pt.Mesh(d=DEVICES)
        return pt.plan(function, mesh, jax.ShapeDtypeStruct((size, size), "float32")).tile("x", 1, "d")

    small, large = planned(256), planned(4096)
    assert (small.counts()["all_gather"], small.bytes_per_device()) == (1, lacks(256**2))
    assert (large.counts()["all_gather"], large.bytes_per_device()) == (1, lacks(4096**2))
    assert large.flops_per_device().known < 2 * 4096**3 / 7
    # On a slow chip so few flops decide that the program can be run.
    monkeypatch.setitem(CHIPS, DEFAULT, replace(CHIPS[DEFAULT], flops_per_second=1e9))
    slow = planned(256)
    assert slow.counts() == large.counts()
    agrees(slow, function, normal(256, 256), derived=True)


def looked_up(table: Any, ids: Any) -> Any:
    return table[ids]


@pytest.mark.parametrize(
    ("program", "rows", "ids"),
    [(looked_up, 1024, 1 << 14), (lambda table, ids: jnp.tanh(looked_up(table, ids) @ table.T), 1024, 1 << 14)],
    ids=["as it is", "for a product"],
)
def test_a_table_that_is_no_larger_than_what_is_read_of_it_is_gathered(program: Any, rows: int, ids: int) -> None:
    args = jax.ShapeDtypeStruct((rows, 64), jnp.float32), jax.ShapeDtypeStruct((ids,), jnp.int32)
    plan = pt.plan(program, MESH, *args).tile("table", 0, "d")
    assert {kind: count for kind, count in plan.counts().items() if count} == {"all_gather": 1}
    assert plan.bytes_per_device() == lacks(rows * 64)
    small = normal(64, 8), jax.random.randint(jax.random.key(0), (4096,), 0, 64)
    assert pt.plan(program, MESH, *small).tile("table", 0, "d").check(*small) < 1e-5


@pytest.mark.usefixtures("at_once")
def test_a_table_that_is_larger_stays_in_parts() -> None:
    args = jax.ShapeDtypeStruct((1024, 64), jnp.float32), jax.ShapeDtypeStruct((512,), jnp.int32)
    plan = pt.plan(looked_up, MESH, *args).tile("table", 0, "d")
    assert {kind: count for kind, count in plan.counts().items() if count} == {"all_to_all": 1, "all_gather": 1}
    assert plan.bytes_per_device() == part(1024 * 64) + lacks(512 * 64)


def test_unique_looks_up_what_it_has_gathered_to_sort() -> None:
    rows = 1 << 18
    plan = pt.plan(lambda x: jnp.unique(x, size=6), MESH, jax.ShapeDtypeStruct((rows,), jnp.float32)).tile("x", 0, "d")
    assert plan.bytes_per_device() == lacks(rows)


def test_positions_that_are_read_in_parts_and_whole_are_counted_by_each_device() -> None:
    def causal(s: Any) -> Any:
        at = jnp.arange(s.shape[0])
        return jnp.where((at[:, None] >= at[None]) & (at[:, None] - at[None] < 6), s, -1e9)

    scores = normal(64, 64)
    plan = pt.plan(causal, MESH, scores).tile("s", 0, "d")
    assert plan.bytes_per_device() == 0 and not any(plan.counts().values())
    assert plan.check(scores) == 0


def test_a_computed_table_that_a_loop_looks_up_is_gathered_before_the_loop() -> None:
    def found(x: Any, y: Any) -> Any:
        return jnp.searchsorted(jnp.tanh(x), y)

    args = jax.ShapeDtypeStruct((1 << 16,), jnp.float32), jax.ShapeDtypeStruct((30_000,), jnp.float32)
    plan = pt.plan(found, MESH, *args).tile("x", 0, "d")
    assert plan.counts()["all_gather"] == 1 and plan.bytes_per_device() == lacks(1 << 16)
    small = jnp.sort(normal(64)), normal(40)
    assert pt.plan(found, MESH, *small).tile("x", 0, "d").check(*small) == 0


def biased(p: Any, x: Any) -> Any:
    """Attention scores with a table of biases for the distances between positions."""
    at = jnp.arange(x.shape[1])
    bias = p["bias"][jnp.clip(at[None] - at[:, None] + 16, 0, 31)]
    q = (x @ p["q"]).reshape(*x.shape[:2], -1, 64)
    scores = jnp.einsum("bthd,bshd->bhts", q, q) + bias.transpose(2, 0, 1)[None]
    return jnp.mean(jax.nn.softmax(scores) ** 2)


def descended(p: Any, x: Any) -> Any:
    return jax.tree.map(lambda w, g: w - g, p, jax.grad(biased)(p, x))


def test_the_gradient_of_a_small_table_is_summed_after_it_is_added_up() -> None:
    """The sum over the batch waits until the rows of the table have been added up: 512 numbers, and not 512 x 512 x 16."""
    f32 = jnp.float32
    params = {"q": jax.ShapeDtypeStruct((1024, 1024), f32), "bias": jax.ShapeDtypeStruct((32, 16), f32)}
    plan = pt.plan(descended, MESH, params, jax.ShapeDtypeStruct((64, 512, 1024), f32))
    plan = plan.apply(pt.DataParallel("d", inputs="x"), pt.FSDP("d"))
    assert {kind: count for kind, count in plan.counts().items() if count} == {"all_gather": 2, "reduce_scatter": 2}
    assert plan.bytes_per_device() == 2 * lacks(1024 * 1024 + 32 * 16)
    small = {"q": normal(64, 128), "bias": normal(32, 2)}, normal(8, 16, 64)
    assert pt.plan(descended, MESH, *small).apply(pt.DataParallel("d", inputs="x"), pt.FSDP("d")).check(*small) < 1e-5
