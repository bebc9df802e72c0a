"""The price of a step, on the chip that the mesh names and over its slow links: each of its constants changes a decision."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.cost import costs
from partita.dialects import chips
from partita.dialects.chips import CHIPS, DEFAULT
from partita.rewrites.decide import price

Slow = tuple[str, ...]

SLOW = ("data",)


def scaled(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Scales rows by a table that depends on no argument. All devices compute its sum, or each a part of it."""
    table = jnp.sin(jax.lax.broadcasted_iota(jnp.float32, x.shape, 0))
    return x * table, jnp.sum(table, 0)


def planned(rows: int, chip: str = DEFAULT, slow: Slow = (), columns: int = 1 << 16) -> Plan:
    mesh = pt.Mesh(data=8, chip=chip, slow=slow)
    return pt.plan(scaled, mesh, jax.ShapeDtypeStruct((rows, columns), jnp.float32)).tile("x", 0, "data")


def is_reduced(rows: int, chip: str = DEFAULT, slow: Slow = ()) -> bool:
    """Whether each device computes a part of the table, and their sums are reduced. Else all of them compute all of it."""
    sent = {kind: count for kind, count in planned(rows, chip, slow).counts().items() if count}
    assert sent in ({}, {"all_reduce": 1})
    return bool(sent)


def test_a_program_is_planned_otherwise_on_another_chip() -> None:
    assert not is_reduced(8192) and not is_reduced(8192, "v5p") and is_reduced(8192, "H100")


def test_a_program_is_planned_otherwise_over_slow_links() -> None:
    assert is_reduced(32768) and not is_reduced(32768, slow=SLOW) and is_reduced(1 << 18, slow=SLOW)


def rows_of(table: jax.Array, ids: jax.Array) -> jax.Array:
    return table[ids]


@pytest.mark.parametrize(
    ("mesh", "sent", "received"),
    [
        (pt.Mesh(data=8), {"all_gather": 1}, 14_336),
        (pt.Mesh(data=8, slow="data"), {"all_gather": 1, "reduce_scatter": 1}, 2_016),
        (pt.Mesh(data=8, slow="data", chip="H100"), {"all_gather": 1, "reduce_scatter": 1}, 2_016),
        (pt.Mesh(data=8, chip="H100"), {"all_gather": 1}, 14_336),
    ],
    ids=str,
)
def test_a_table_is_gathered_if_to_leave_it_saves_no_start(mesh: pt.Mesh, sent: dict[str, int], received: int) -> None:
    table = np.arange(512 * 8, dtype=np.float32).reshape(512, 8)
    ids = np.arange(64, dtype=np.int32) * 5
    plan = pt.plan(rows_of, mesh, table, ids).tile("ids", 0, "data").tile("table", 0, "data")
    assert {kind: count for kind, count in plan.counts().items() if count} == sent
    assert plan.bytes_per_device() == received
    assert plan.check(table, ids) == 0


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("slow", [(), SLOW], ids=["fast", "slow"])
def test_bytes_and_flops_are_weighed_as_the_chip_takes_time_for_them(
    chip: str, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each column a device receives 7 bytes or, for each of its elements, computes 7/4 flops more."""
    monkeypatch.setattr(price, "START", 0)
    own = CHIPS[chip]
    even = 4 * own.flops_per_second / (own.slow_bytes_per_second if slow else own.bytes_per_second)
    fewer, more = (round(even * share / 8) * 8 for share in (0.99, 1.01))
    assert not is_reduced(fewer, chip, slow) and is_reduced(more, chip, slow)


def test_what_saves_less_than_a_start_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    # 0.66 microseconds.
    assert is_reduced(16384)
    monkeypatch.setattr(price, "START", 0.6e-6)
    assert not is_reduced(16384)


@pytest.mark.parametrize("chip", ["v5e", "H100"])
def test_each_way_gives_what_the_program_gives(chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "START", 0)
    plan = planned(12288, chip, columns=8)
    assert plan.counts()["all_reduce"] == (chip == "H100")
    x = np.random.default_rng(0).standard_normal((12288, 8)).astype(np.float32)
    assert plan.check(x) < 2e-4


CONSTANTS: dict[str, tuple[int, Slow, Callable[[pytest.MonkeyPatch], None]]] = {
    "flops a second": (8192, (), lambda patch: of_default(patch, flops_per_second=197e12 / 4)),
    "bytes a second over a link": (8192, (), lambda patch: of_default(patch, bytes_per_second=45e9 * 2)),
    "chips of a host": (65536, SLOW, lambda patch: of_default(patch, per_host=1)),
    "bytes a second of a host": (65536, SLOW, lambda patch: patch.setattr(chips, "HOST_BYTES_PER_SECOND", 100e9)),
    "the start of a collective": (8192, (), lambda patch: patch.setattr(price, "START", 1e-3)),
}
"""A constant of the price -> rows for which the table is not reduced, on an axis that may be slow; and a change of it."""


def of_default(patch: pytest.MonkeyPatch, **rates: float) -> None:
    patch.setitem(vars(chips)["CHIPS"], DEFAULT, replace(CHIPS[DEFAULT], **rates))


@pytest.mark.parametrize("name", CONSTANTS)
def test_each_constant_of_the_price_changes_a_decision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, slow, change = CONSTANTS[name]
    assert not is_reduced(rows, slow=slow)
    change(monkeypatch)
    assert is_reduced(rows, slow=slow)


@pytest.mark.parametrize("slow", [(), SLOW], ids=["fast", "slow"])
@pytest.mark.parametrize("chip", ["v5e", "v5p", "A100"])
def test_the_estimate_of_time_is_the_price_of_all_that_is_sent_and_computed(chip: str, slow: Slow) -> None:
    plan, own = planned(1 << 20, chip, slow), CHIPS[chip]
    rate = own.slow_bytes_per_second if slow else own.bytes_per_second
    sent = plan.bytes_per_device() / rate
    assert costs.price(plan).seconds == pytest.approx(sent + plan.flops_per_device().known / own.flops_per_second)
    assert plan.decisions.price.seconds == pytest.approx(costs.price(plan).seconds) and sent > 0


def test_parts_of_a_slow_axis_are_slow() -> None:
    mesh = pt.Mesh(pod=4, data=2, slow="pod")
    axes = mesh.refine(pod=(2, 2)).places
    assert [price.is_slow(mesh, [axis]) for axis in (*mesh.places, *axes)] == [True, False, True, True, False]
    some = pt.Mesh({"pod.0": 2, "pod.1": 2, "data": 2}, slow="pod.0")
    assert [price.is_slow(some, [axis]) for axis in some.places] == [True, False, False]
    assert price.is_slow(some, some.places[1:]) is False and price.is_slow(some, some.places)
