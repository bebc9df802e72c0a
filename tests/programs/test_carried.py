"""What goes on from trip to trip: prefixes, and windows that reach into the trip before or behind. One loop does them.

cumsum over t:8   -->   the carry is the sum of the trips before, which this trip's block adds to its own prefix
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from lowered import interpreted, lowers_from_its_decisions, lowers_from_its_text

import partita as pt
from partita.compiler.cost.loops import are_several, loops
from partita.dialects.lax import ScanOp
from partita.dialects.reference.interpret import interpret

X = jax.random.normal(jax.random.key(0), (32, 6))
FIR = jax.random.normal(jax.random.key(1), (6, 6, 3)) / 4


def prefix(x):
    return jnp.cumsum(x, 0)


def conv(x, *padding):
    return lax.conv_general_dilated(x.T[None], FIR, (1,), [padding])[0].T


FORWARDS: dict[str, Callable[..., Any]] = {
    "cumsum": lambda x: jnp.cumsum(jnp.tanh(x), 0),
    "of a prefix": lambda x: jnp.cumsum(jnp.tanh(jnp.cumsum(x, 0)), 0),
    "cumprod": lambda x: jnp.cumprod(1 + x / 10, 0),
    "cummax": lambda x: lax.cummax(jnp.sin(x), 0),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, 0),
    "causal convolution": lambda x: jnp.tanh(conv(x, 2, 0)),
    "the row before": lambda x: jnp.concatenate([jnp.zeros((1, 6)), jnp.tanh(x)[:-1]], 0) * x,
    "windows of four": lambda x: lax.reduce_window(jnp.tanh(x), 0.0, lax.add, (4, 1), (1, 1), ((3, 0), (0, 0))),
}
BACKWARDS: dict[str, Callable[..., Any]] = {
    "cumsum": lambda x: lax.cumsum(jnp.tanh(x), 0, reverse=True),
    "cummin": lambda x: lax.cummin(jnp.sin(x), 0, reverse=True),
    "convolution": lambda x: jnp.tanh(conv(x, 0, 2)),
}
SEVERAL: dict[str, tuple[Callable[..., Any], int]] = {
    "both ways": (lambda x: jnp.cumsum(jnp.tanh(x), 0) * lax.cumsum(jnp.sin(x), 0, reverse=True), 2),
    "one of the other": (lambda x: lax.cumsum(jnp.tanh(jnp.cumsum(x, 0)), 0, reverse=True), 2),
    "windows both ways": (lambda x: jnp.tanh(conv(jnp.tanh(x), 1, 1)), 2),
    "over a sum": (lambda x: jnp.cumsum(x / (x**2).sum(0, keepdims=True), 0), 2),
    "in a scan": (lambda x: lax.scan(lambda c, w: (jnp.tanh(jnp.cumsum(c * w, 0)), None), x, jnp.ones((3, 1, 6)))[0], 2),
    "in a branch": (lambda x: lax.cond(x.sum() > 0, lambda x: jnp.cumsum(x, 0), lambda x: x, x), 2),
}
PROGRAMS = {f"{name}, {way}": fn for way, table in (("on", FORWARDS), ("back", BACKWARDS)) for name, fn in table.items()} | {
    name: fn for name, (fn, _) in SEVERAL.items()
}


def planned(fn: Callable[..., Any], *places: str) -> pt.Plan:
    plan = pt.plan(fn, pt.Mesh(data=2), X)
    x = next(iter(plan.source.addresses.arguments))
    for place in places or ("t:4",):
        plan = plan.tile(x, 0, place)
    return plan


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5 * float(abs(wanted).max()))


@pytest.mark.parametrize(("table", "reverse"), [(FORWARDS, False), (BACKWARDS, True)], ids=["on", "back"])
def test_what_goes_on_one_way_is_one_loop(table: dict[str, Callable[..., Any]], reverse: bool) -> None:
    for name, fn in table.items():
        plan = planned(fn)
        scans = [op for op in plan.spmd().walk() if isinstance(op, ScanOp) and op.params.get("loop") == "t:4"]
        assert [op.params["reverse"] for op in scans] == [reverse], name
        assert not are_several(plan), name
        same(plan.compile()(X), fn(X))


@pytest.mark.parametrize("name", SEVERAL)
def test_what_goes_both_ways_or_waits_for_a_fold_is_several(name: str) -> None:
    fn, count = SEVERAL[name]
    plan = planned(fn)
    assert len(loops(plan)) == count and are_several(plan)
    same(plan.compile()(X), fn(X))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_equal_beside_an_axis_too(name: str) -> None:
    def gradient(x):
        return jax.grad(lambda x: (PROGRAMS[name](x) ** 2).sum())(x)

    for places in (("t:4",), ("data", "t:4"), ("t:4", "data")):
        same(planned(gradient, *places).compile()(X), gradient(X))


@pytest.mark.parametrize("name", ["cumsum, on", "causal convolution, on", "cummin, back", "both ways"])
def test_a_carry_is_in_every_form_of_a_plan(name: str) -> None:
    fn, plan = PROGRAMS[name], planned(PROGRAMS[name])
    given = [np.asarray(each) for each in (X, *plan.source.traced.consts)]
    same(interpret(plan.ir(), given)[0], fn(X))
    same(interpreted(plan, given)[0], fn(X))
    lowers_from_its_text(plan)
    lowers_from_its_decisions(plan)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bfloat16", "float16", "complex64"])
def test_a_carry_has_the_type_of_what_it_carries(dtype: str) -> None:
    x = (X * 3).astype(dtype)
    plan = pt.plan(prefix, pt.Mesh(), x).tile("x", 0, "t:4")
    assert len(loops(plan)) == 1
    found, wanted = (np.asarray(each, complex) for each in (plan.compile()(x), prefix(x)))
    np.testing.assert_allclose(found, wanted, rtol=2e-2 if dtype == "bfloat16" else 2e-3, atol=0.02)


def test_a_prefix_of_rows_that_no_loop_divides() -> None:
    fn = FORWARDS["cumsum"]
    plan = pt.plan(fn, pt.Mesh(), X[:30]).tile("x", 0, "t:4", padded=True)
    assert len(loops(plan)) == 1
    same(plan.compile()(X[:30]), fn(X[:30]))


def test_what_no_block_precedes_keeps_the_sign_of_its_zeros() -> None:
    zeros = -jnp.zeros((8, 2))
    found = pt.plan(prefix, pt.Mesh(), zeros).tile("x", 0, "t:4").compile()(zeros)
    assert np.array_equal(np.signbit(found), np.signbit(prefix(zeros)))


def test_a_plan_says_what_goes_on_the_other_way() -> None:
    text = str(planned(PROGRAMS["both ways"]).loops())
    assert "goes on backwards from trip to trip of t:4, and others go on forwards" in text
    text = " ".join(str(planned(PROGRAMS["in a scan"]).loops()).split())
    assert "goes on forwards from trip to trip of t:4, in each trip of a loop of the program" in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_trips_store_is_in_the_memory_of_a_plan(name: str) -> None:
    plan = planned(PROGRAMS[name])
    memory = plan.memory()
    assert memory.temporaries + memory.results >= max(each.stores for each in loops(plan))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_graph_has_what_goes_on_too(name: str) -> None:
    for places in (("t:4",), ("data", "t:4"), ("t:4", "u:2")):
        same(planned(PROGRAMS[name], *places).lower("collective").run(X), PROGRAMS[name](X))
