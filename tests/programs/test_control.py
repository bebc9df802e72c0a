"""Loops of unknown trip count, and branches, are partitioned inside; counts list their collectives separately."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from io import StringIO
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jaxpr_collectives import collectives, counts, in_branches, received
from lowered import lowers_from_its_text
from rich.console import Console

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.cli.tables import report
from partita.dialects.reference.interpret import interpret

Array = jax.Array
MESH = pt.Mesh(data=4, model=2)
TABLE = np.linspace(-1, 1, 8, dtype=np.float32)


def halved(x: Array, w: Array) -> tuple[Array, Array]:
    """A loop whose condition folds its carry, and which closes over two arrays."""
    table = jnp.asarray(TABLE)

    def body(state: tuple[Array, Array]) -> tuple[Array, Array]:
        n, x = state
        return n + 1, jnp.tanh(x @ w) * 0.9 + table[None]

    return lax.while_loop(lambda state: (state[0] < 9) & (jnp.sum(state[1] ** 2) > 1 + jnp.sum(w) * 0), body, (jnp.int32(0), x))


def steps(x: Array, w: Array) -> Array:
    """A dynamic number of trips that counts a second array down."""
    return lax.fori_loop(0, jnp.int32(jnp.abs(x).sum()) % 4 + 2, lambda i, c: c @ w + i, x)


def chosen(x: Array, w: Array) -> tuple[Array, Array]:
    """Two branches of different work; one returns its operand."""
    y, z = lax.cond(x.sum() > 0, lambda x, w: (x @ w, x), lambda x, w: (x * 2, w[:1] + x), x, w)
    return y, z.sum(0)


def switched(x: Array, w: Array) -> Array:
    """A number beyond the branches is clamped; a branch closes over an array."""
    which = jnp.int32(jnp.abs(x).sum())
    branches = [
        lambda x: x @ w,
        lambda x: jnp.cumsum(x, 0),
        lambda x: x + jnp.asarray(TABLE)[None],
        lambda x: x.sum(0, keepdims=True) + x,
    ]
    return lax.switch(which % 5 - 1, branches, x) + lax.switch(which, branches, x)


def nested(x: Array, w: Array) -> tuple[Array, Array]:
    """A cond in a loop in a loop of known trip count."""

    def trip(x: Array, w: Array) -> tuple[Array, Array]:
        def body(state: tuple[Array, Array]) -> tuple[Array, Array]:
            n, x = state
            return n + 1, lax.cond(n % 2 == 0, lambda x: jnp.tanh(x @ w), lambda x: x - x.mean(), x)

        return lax.while_loop(lambda state: state[0] < 3, body, (jnp.int32(0), x))[1], x.sum()

    return lax.scan(trip, x, jnp.stack([w, w * 0.5]))


def batched(x: Array, w: Array) -> tuple[Array, Array]:
    """`vmap` of a loop runs until all elements are done, `vmap` of a cond runs both branches."""
    loop = jax.vmap(lambda row: lax.while_loop(lambda r: jnp.sum(r) < 4, lambda r: r + jnp.abs(r) + 0.1, row))(x)
    choice = jax.vmap(lambda row: lax.cond(row[0] > 0, lambda r: r @ w, lambda r: r * 2, row))(x)
    return loop, choice


def gradients(x: Array, w: Array) -> Any:
    return jax.grad(lambda x, w: sum(jnp.sum(y**2) for y in chosen(x, w)) + jnp.sum(switched(x, w) ** 2), (0, 1))(x, w)


FUNCTIONS = [halved, steps, chosen, switched, nested, batched, gradients]

TACTICS: dict[str, list[tuple[str, int, str]]] = {
    "rows": [("x", 0, "data")],
    "columns": [("x", 1, "data")],
    "a matrix": [("w", 0, "model")],
    "rows and a matrix": [("x", 0, "data"), ("w", 1, "model")],
}


def arguments() -> tuple[Array, Array]:
    keys = jax.random.split(jax.random.key(0))
    return jax.random.normal(keys[0], (8, 8)), jax.random.normal(keys[1], (8, 8)) * 0.5


def planned(function: Callable[..., Any], tactics: list[tuple[str, int, str]]) -> Plan:
    plan = pt.plan(function, MESH, *arguments())
    for place in tactics:
        plan = plan.tile(*place)
    return plan


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", TACTICS)
def test_a_partitioned_program_is_the_program_and_counts_what_it_runs(function: Callable[..., Any], name: str) -> None:
    plan = planned(function, TACTICS[name])
    found = collectives(plan.compile(), *arguments())
    assert counts(found) == plan.counts()
    branches = plan.counts().branches.values()
    assert in_branches(found) == {kind: sum(each.get(kind, 0) for each in branches) for kind in plan.counts()}
    assert received(found) == plan.bytes_per_device()
    assert plan.check(*arguments()) <= 2e-4
    assert not plan.whole


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", ["columns", "rows and a matrix"])
def test_every_form_of_the_program_means_the_same(function: Callable[..., Any], name: str) -> None:
    plan = planned(function, TACTICS[name])
    args = [*map(np.asarray, arguments()), *map(np.asarray, plan.source.traced.consts)]
    wanted = jax.tree_util.tree_leaves(jax.jit(function)(*arguments()))
    graph = plan.lower("collective")
    ran = jax.tree_util.tree_leaves(graph.run(*arguments()))
    forms = [plan.source.traced.module, plan.ir(), plan.ir(fused=False), graph.module]
    for results in (ran, *(interpret(form, args) for form in forms)):
        for one, other in zip(results, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)
    for form in (*forms, plan.spmd()):
        form.verify()
    assert graph.counts() == plan.counts()
    assert graph.bytes_per_device() == plan.bytes_per_device()
    lowers_from_its_text(plan)


def test_a_loop_with_an_unknown_trip_count_counts_once_and_is_listed() -> None:
    plan = planned(halved, TACTICS["columns"])
    counts = plan.counts()
    assert counts.unknown == {"while#0": {kind: n for kind, n in counts.items() if n}}
    assert {(each.where, each.times) for each in plan.collectives()} == {("while#0", 1)}
    assert all("in while#0" in str(each) for each in plan.collectives())


def test_collectives_of_a_branch_are_reported_separately() -> None:
    plan = planned(chosen, [("x", 1, "data")])
    assert plan.counts() == {"all_gather": 0, "all_reduce": 1, "reduce_scatter": 0, "all_to_all": 0, "permute": 0}
    assert plan.counts().branches == {"cond#0:1": {"reduce_scatter": 1}}
    assert planned(nested, [("x", 1, "data")]).counts().branches.keys() == {"while#0/cond#0:0", "while#0/cond#0:1"}


def test_bytes_count_the_most_expensive_branch() -> None:
    plan = planned(lambda x, w: lax.cond(x[0, 0] > 0, lambda: x @ w, lambda: jnp.cumsum(x, 1)), [("x", 1, "data")])
    by_branch = {each.where: each.bytes for each in plan.collectives()}
    assert len(by_branch) >= 2
    always = sum(each.bytes for each in plan.collectives() if not each.where)
    assert plan.bytes_per_device() == always + max(size for where, size in by_branch.items() if where)


def test_a_name_in_a_body_stands_for_the_value_of_each_trip_and_can_be_tiled() -> None:
    def tagged(x: Array, w: Array) -> Array:
        def body(state: tuple[Array, Array]) -> tuple[Array, Array]:
            return state[0] + 1, pt.tag(jnp.tanh(state[1] @ w), "hidden") @ w

        return lax.while_loop(lambda state: state[0] < 3, body, (jnp.int32(0), x))[1]

    plan = pt.plan(tagged, MESH, *arguments()).tile("hidden", 1, "model")
    assert plan.layout("hidden") == {"hidden": "f32[8, model*4]"}
    assert plan.check(*arguments()) <= 2e-4
    assert plan.counts()["all_reduce"] + plan.counts()["reduce_scatter"] >= 1
    assert "hidden" in plan.explain("hidden")


def test_a_compiled_loop_is_differentiated_batched_and_nested() -> None:
    x, w = arguments()
    step = planned(chosen, TACTICS["rows and a matrix"]).compile()

    def loss(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, w: sum(jnp.sum(y**2) for y in function(x, w))

    for ours, theirs in zip(jax.grad(loss(step), (0, 1))(x, w), jax.grad(loss(chosen), (0, 1))(x, w), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)
    many = jnp.stack([x, -x])
    for ours, theirs in zip(jax.vmap(step, (0, None))(many, w), jax.vmap(chosen, (0, None))(many, w), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)
    loop = planned(halved, TACTICS["rows and a matrix"]).compile()
    for ours, theirs in zip(jax.jit(loop)(x, w), halved(x, w), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)


def printed(plan: Plan) -> str:
    """The last line of what `partita show` prints."""
    file = StringIO()
    Console(width=400, file=file).print(report(plan))
    text = file.getvalue()
    assert all(f" {each.where} " in text for each in plan.collectives())
    return text.rstrip().splitlines()[-1].partition(";")[0]


def twice(x: Array, w: Array) -> Array:
    """A cond in a branch of another, and a third one after them."""

    def inner(x: Array) -> Array:
        return lax.cond(x[0, 0] > 1, lambda x: jnp.tanh(x @ w) @ w.T, lambda x: x, x)

    x = lax.cond(x[0, 0] > 0, lambda x: inner(x + 1) * 2, lambda x: x, x)
    return lax.cond(x[0, 1] > 0, lambda x: jnp.tanh(jnp.tanh(x @ w) @ w.T @ w) @ w.T, lambda x: x + 1, x)


SUMMARIES: dict[str, tuple[Callable[..., Any], tuple[str, int, str], str]] = {
    "what always runs alone": (lambda x, w: x @ w, ("x", 1, "data"), "1 all_reduce"),
    "nothing": (lambda x, w: x @ w, ("x", 0, "data"), "no collectives"),
    "a branch": (chosen, ("x", 1, "data"), "1 all_reduce, and in branches at most: 1 reduce_scatter"),
    "branches alone": (twice, ("w", 1, "model"), "no collectives but in branches, at most: 3 all_reduce"),
    "a loop": (
        lambda x, w: lax.while_loop(lambda x: x.sum() < 9, lambda x: jnp.tanh(x @ w) @ w.T + 1, x),
        ("w", 1, "model"),
        "1 all_reduce, and in each further trip of while#0: 1 all_reduce",
    ),
    "a branch in a loop": (
        lambda x, w: lax.while_loop(lambda x: x.sum() < 9, lambda x: twice(x, w) + 1, x),
        ("w", 1, "model"),
        "no collectives but in branches, at most: 3 all_reduce, and in each further trip of while#0/cond#0:1/cond#1:1: "
        "1 all_reduce, and in each further trip of while#0/cond#2:1: 2 all_reduce",
    ),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_lists_what_branches_add_and_loops_repeat(name: str) -> None:
    function, tile, said = SUMMARIES[name]
    plan = planned(function, [tile])
    assert (plan.counts().text(), printed(plan), repr(plan).splitlines()[-1]) == (said, said, said)


def test_branches_are_expected_with_what_always_runs() -> None:
    plan = planned(twice, [("w", 1, "model")])
    assert plan.counts().in_branches == {"all_reduce": 3}
    plan.expect(all_reduce=3, all_gather=0)
    with pytest.raises(pt.Error, match=r"all_reduce: 3, 3 of them in a branch of cond#0:1/cond#1 and cond#2, expected 0"):
        plan.expect(all_reduce=0)


def test_a_diff_includes_branches_and_loops() -> None:
    before = planned(twice, [])
    difference = before.tile("w", 1, "model").diff(before)
    assert difference.inside == {"all_reduce in cond#0:1/cond#1:1": (0, 1), "all_reduce in cond#2:1": (0, 2)}
    assert not difference.counts and "all_reduce in cond#2:1: 0 --> 2" in str(difference)
