"""The plans on the way to a plan are those that its tactics made, one after another."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from functools import cache

import jax
import jax.numpy as jnp
import pytest
from models import Transformer, chain, gram, train_step
from strategies import strategy

import partita as pt
from partita.compiler.api.plan import Plan, start
from partita.compiler.plan.history import prefixes
from partita.compiler.trace.trace import trace

Tactic = Callable[[Plan], Plan]


def array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def stencil(u: jax.Array) -> jax.Array:
    for step in range(3):
        padded = jnp.pad(u, 1)
        u = pt.tag(u + 0.1 * (padded[2:] - 2 * u + padded[:-2]), f"u{step}")
    return u


def layers(ws: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x, ws)[0]


def shared(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda c, _: (c @ w, None), x, None, length=4)[0]


MESH = pt.Mesh(data=4, model=2)
X, W1, W2 = array(256, 8), array(8, 16), array(16, 8)


@cache
def started() -> dict[str, Plan]:
    return {
        "chain": pt.plan(chain, MESH, X, W1, W2),
        "gram": pt.plan(gram, MESH, array(64, 16)),
        "stencil": pt.plan(stencil, pt.Mesh(data=8), array(512)),
        "layers": pt.plan(layers, MESH, array(6, 16, 16), array(32, 16)),
        "shared": pt.plan(shared, MESH, array(32, 16), array(16, 16)),
        "transformer": pt.plan(train_step, MESH, *Transformer(2).shapes()),
    }


CASES: dict[str, tuple[str, Sequence[Tactic]]] = {
    "nothing": ("chain", []),
    "tiles and a replica": (
        "chain",
        [
            lambda plan: plan.tile("x", 0, "data"),
            lambda plan: plan.replicate("w2", "model"),
            lambda plan: plan.tile("w1", 1, "model"),
        ],
    ),
    "a strategy": ("transformer", strategy("BP+MP+Z3")),
    "a sub-axis, which splits the mesh": (
        "chain",
        [lambda plan: plan.tile("x", 0, "data.0:2"), lambda plan: plan.tile("w1", 1, "data.1:2")],
    ),
    "claims that are propagated later": (
        "chain",
        [lambda plan: plan.tile("x", 0, "data", propagate=False), lambda plan: plan.propagate("data")],
    ),
    "padding and blocks in turn": (
        "chain",
        [lambda plan: plan.tile("x", 0, "data", block=16), lambda plan: plan.tile("w1", 1, "model", padded=True)],
    ),
    "a name of a range": (
        "chain",
        [lambda plan: plan.name("x", 0, "rows"), lambda plan: plan.tile("*", "rows", "data")],
    ),
    "windows": ("stencil", [pt.Widen(["u0", "u1"]), lambda plan: plan.tile("u", 0, "data")]),
    "a gather in each trip": (
        "shared",
        [
            lambda plan: plan.tile("x", 0, "data"),
            lambda plan: plan.tile("w", 0, "data"),
            lambda plan: plan.each_trip("w"),
        ],
    ),
    "a law between tiles": (
        "chain",
        [
            lambda plan: plan.tile("x", 0, "data"),
            lambda plan: plan.rewrite("reassociate"),
            lambda plan: plan.tile("w1", 1, "model"),
        ],
    ),
    "values computed again": ("transformer", [*strategy("BP+MP"), lambda plan: plan.rewrite("recompute", at="exp#0")]),
    "a scan": ("layers", [pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="ws")]),
}


def state(plan: Plan) -> object:
    return plan.trace, plan.mesh, plan.layout(), plan.counts(), plan.bytes_per_device(), plan.memory().bytes


@pytest.mark.parametrize("case", CASES)
def test_the_plans_on_the_way_are_those_that_the_tactics_made(case: str) -> None:
    name, tactics = CASES[case]
    plans = [started()[name]]
    for tactic in tactics:
        plans.append(plans[-1].apply(tactic))
    found = prefixes(plans[-1])
    assert [*map(state, found)] == [*map(state, plans)]
    assert found[-1] is plans[-1]


def test_a_way_out_that_comes_before_other_tactics_leaves_a_way_to_the_plan() -> None:
    plan = started()["gram"].tile("x", 0, "data")
    for way in plan.conflicts[0].resolutions:
        made = plan.apply(way)
        found = prefixes(made)
        assert found[-1] is made and found[0].trace == ""
        assert [each.trace for each in found] == ["\n".join(made.trace.splitlines()[:n]) for n in range(len(found))]


def test_plans_of_one_trace_on_other_meshes_do_not_touch_each_other() -> None:
    def product(x: jax.Array, w: jax.Array) -> jax.Array:
        return x @ w

    traced = trace(product, array(8, 8), array(8, 8))
    on_a, on_b = start(traced, pt.Mesh(a=2)).tile("x", 0, "a"), start(traced, pt.Mesh(b=4)).tile("x", 0, "b")
    for plan, mesh, layout in ((on_a, pt.Mesh(a=2), "f32[a*4, 8]"), (on_b, pt.Mesh(b=4), "f32[b*2, 8]")):
        assert [each.mesh for each in prefixes(plan)] == [mesh, mesh] and plan.source.mesh is mesh
        assert layout in str(plan.ir()) and f'array.mesh = "{mesh}"' in str(plan.ir())
        assert str(plan.ir()) == str(start(trace(product, array(8, 8), array(8, 8)), mesh).tile("x", 0, *mesh).ir())
