"""Collectives are those of the closed forms: what a plan says, and what the jaxpr of its compiled callable holds."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from functools import cache

import jax
import jax.numpy as jnp
import pytest
from jaxpr_collectives import Collective, collectives, counts, received
from models import Adam, Batch, Transformer, attention, chain, gram, stack, stacked_loss, tanh_gram, train_step
from strategies import strategy

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=4, model=2)
F32 = jnp.float32


@cache
def program(layers: int) -> Plan:
    """The training step of a transformer, before any tactic."""
    return pt.plan(train_step, MESH, *Transformer(layers).shapes())


def expected(name: str, layers: int) -> dict[str, int]:
    """The closed forms (PartIR, arXiv 2401.11202, table 3); P parameters, S of them sharded by ZeRO."""
    model = Transformer(layers)
    p, s, tensor = model.parameters, model.sharded, 4 * layers
    gathers, reduces, scatters = {
        "BP": (0, p + 1, 0),
        "BP+MP": (0, p + 1 + tensor, 0),
        "BP+MP+Z2": (s, p + 1 + tensor - s, s),
        "BP+MP+Z3": (2 * s + 1, p + 1 + tensor - s, s),
        "MP": (0, tensor, 0),
    }[name]
    return totals(all_gather=gathers, all_reduce=reduces, reduce_scatter=scatters)


def totals(**some: int) -> dict[str, int]:
    return dict.fromkeys(("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "permute"), 0) | some


def executed(plan: Plan, *args: object) -> list[Collective]:
    """The collectives in the jaxpr of what the plan compiles to."""
    return collectives(plan.compile(), *args)


@pytest.mark.parametrize("layers", [1, 2, 3, 5, 32])
@pytest.mark.parametrize("name", ["BP", "BP+MP", "BP+MP+Z2", "BP+MP+Z3", "MP"])
def test_a_plan_counts_the_closed_form(name: str, layers: int) -> None:
    assert program(layers).apply(*strategy(name)).counts() == expected(name, layers)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", ["BP", "BP+MP", "BP+MP+Z2", "BP+MP+Z3", "MP"])
def test_the_compiled_jaxpr_holds_exactly_what_the_plan_counts(name: str, layers: int) -> None:
    plan = program(layers).apply(*strategy(name))
    found = executed(plan, *Transformer(layers).shapes())
    assert counts(found) == plan.counts() == expected(name, layers)
    assert received(found) == plan.bytes_per_device()


@pytest.mark.parametrize("name", ["BP", "BP+MP+Z3"])
def test_several_batch_axes_are_one_collective(name: str) -> None:
    model = Transformer(2)
    mesh = pt.Mesh(pod=2, data=2, model=2)
    plan = pt.plan(train_step, mesh, *model.shapes()).apply(*strategy(name, ("pod", "data")))
    found = executed(plan, *model.shapes())
    assert counts(found) == plan.counts()
    assert received(found) == plan.bytes_per_device()
    if name == "BP":
        assert plan.counts() == expected("BP", 2)


# The matmul chain of PartIR, on its mesh: batch over B, the inner dim over M.

CHAIN = jax.ShapeDtypeStruct((256, 8), F32), jax.ShapeDtypeStruct((8, 16), F32), jax.ShapeDtypeStruct((16, 8), F32)


def chained() -> tuple[Plan, Plan, Plan]:
    """The chain after BP, BP+MP and BP+MP+Z3."""
    batch = pt.plan(chain, pt.Mesh(B=4, M=2), *CHAIN).apply(pt.DataParallel("B", inputs="x"))
    model = batch.apply(pt.Tile({"w1": 1}, "M"))
    return batch, model, model.apply(pt.ZeRO(3, "B", params=["w1", "w2"]))


def test_the_matmul_chain_after_batch_parallelism_communicates_nothing() -> None:
    batch, _, _ = chained()
    assert batch.counts() == totals()
    assert batch.layout("**")["x"] == "f32[B*64, 8]"


def test_the_matmul_chain_after_megatron_sums_one_64_by_8_over_the_model_axis() -> None:
    _, model, _ = chained()
    assert model.counts() == totals(all_reduce=1)
    assert model.layout("w*") == {"w1": "f32[8, M*8]", "w2": "f32[M*8, 8]"}
    (only,) = executed(model, *CHAIN)
    assert (only.kind, only.axes, only.shape) == ("all_reduce", ("M",), (64, 8))


def test_the_matmul_chain_after_zero_3_gathers_both_weights_over_the_batch_axis() -> None:
    _, _, zero = chained()
    assert zero.counts() == totals(all_gather=2, all_reduce=1)
    found = executed(zero, *CHAIN)
    assert counts(found) == zero.counts()
    assert {each.axes for each in found if each.kind == "all_gather"} == {("B",)}


# Conflicts are objects, and replicating one side resolves them.

X = jax.ShapeDtypeStruct((64, 16), F32)


def test_a_gram_matrix_of_tiled_rows_is_a_conflict() -> None:
    plan = pt.plan(gram, pt.Mesh(data=4), X).tile("x", 0, "data")
    (conflict,) = plan.conflicts
    assert len(conflict.claims) == 2
    assert conflict.resolutions


def test_replicating_the_transpose_resolves_it_with_one_gather() -> None:
    mesh = pt.Mesh(data=4)
    plan = pt.plan(gram, mesh, X).tile("x", 0, "data")
    cure = plan.conflicts[0].resolutions[0].tactic
    resolved = pt.replay(gram, mesh, f"{cure}\n{plan.trace}", X)
    assert not resolved.conflicts
    assert resolved.counts() == totals(all_gather=1)
    assert counts(executed(resolved, X)) == resolved.counts()


def test_a_conflict_says_which_claims_were_propagated() -> None:
    def joined(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.concatenate([x, y * 2])

    plan = pt.plan(joined, pt.Mesh(data=4), X, X)
    (conflict,) = plan.tile("x", 0, "data", propagate=False).tile("y", 1, "data").conflicts
    assert conflict.claims == (
        "operand 0 `x` on dim 0, from 1: tile('x', 0, 'data', propagate=False)",
        "operand 1 `mul#0` on dim 1, propagated from 2: tile('y', 1, 'data')",
    )


def test_a_gram_matrix_through_tanh_is_a_conflict() -> None:
    assert len(pt.plan(tanh_gram, pt.Mesh(data=4), X).tile("x", 0, "data").conflicts) == 1


def test_attention_with_its_sequence_tiled_is_a_conflict() -> None:
    def self_attention(x: jax.Array) -> jax.Array:
        return attention(x, x, x)

    x = jax.ShapeDtypeStruct((2, 16, 4, 8), F32)
    assert pt.plan(self_attention, pt.Mesh(data=4), x).tile("x", 1, "data").conflicts


# The order of tactics decides, and the plan says so.


def test_the_order_of_batch_and_zero_decides_the_plan() -> None:
    batch, zero = strategy("BP+Z3")
    first, second = program(1).apply(batch, zero), program(1).apply(zero, batch)
    assert first.counts() != second.counts()
    assert first.bytes_per_device() != second.bytes_per_device()


@pytest.mark.parametrize(("order", "earlier"), [("BP+Z3", "DataParallel"), ("Z3+BP", "ZeRO")])
def test_a_plan_says_which_earlier_tactic_decided(order: str, earlier: str) -> None:
    plan = program(1).apply(*strategy(order))
    assert earlier in plan.explain("params/blocks/0/w1")


# A stack of layers in a scan.


def stacked_gradients(params: object, batch: Batch) -> object:
    return jax.value_and_grad(stacked_loss)(params, batch)


def stacked_shapes(layers: int) -> tuple[object, Batch]:
    params, _, batch = Transformer(layers).shapes()
    return jax.eval_shape(stack, params), batch


@pytest.mark.parametrize("layers", [2, 4])
def test_a_scan_under_zero_3_gathers_one_layer_a_trip(layers: int) -> None:
    shapes = stacked_shapes(layers)
    plan = pt.plan(stacked_gradients, MESH, *shapes)
    plan = plan.apply(pt.DataParallel("data", inputs="batch/*"))
    plan = plan.apply(pt.ZeRO(3, "data", params=["params/**/w*", "params/embed"]))
    assert plan.layout("params/blocks/w1") == {"params/blocks/w1": f"f32[{layers}, data*4, 32]"}
    found = executed(plan, *shapes)
    assert counts(found) == plan.counts()
    assert received(found) == plan.bytes_per_device()
    for each in found:
        if each.kind == "all_gather" and each.times > 1:
            assert each.times == layers
            assert each.shape in {(16, 3, 4, 4), (4, 4, 16), (16, 32), (32, 16)}
    assert counts(found)["all_gather"] >= 4 * layers


def test_megatron_in_a_scan_counts_its_sums_by_trips() -> None:
    shapes = stacked_shapes(3)
    plan = pt.plan(stacked_gradients, MESH, *shapes).apply(
        pt.Megatron(
            "model", column={"params/blocks/wqkv": 3, "params/blocks/w1": 2}, row={"params/**/wo": 1, "params/**/w2": 1}
        )
    )
    assert plan.counts() == totals(all_reduce=4 * 3)
    assert counts(executed(plan, *shapes)) == plan.counts()


def test_the_optimizer_state_mirrors_the_parameters() -> None:
    model = Transformer(2)
    params, opt, _ = model.shapes()
    assert isinstance(opt, Adam)
    assert len(jax.tree.leaves(params)) == model.parameters
    assert jax.tree.structure(params) == jax.tree.structure(opt.m) == jax.tree.structure(opt.v)
