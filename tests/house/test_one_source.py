"""The rules, not a second code path, lower a program: the unfused text through `partita-opt` is what a plan gives."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import pytest
from lowered import lowers_from_its_text
from mlir_files import opt
from models import Transformer, chain, gram, stack, stacked_loss, tanh_gram, train_step
from strategies import NAMES, strategy

import partita as pt
from partita.compiler.api.plan import Plan

MESHES = {
    "data=4, model=2": pt.Mesh(data=4, model=2),
    "data=2, model=4": pt.Mesh(data=2, model=4),
    "pod=2, data=2, model=2": pt.Mesh(pod=2, data=2, model=2),
}
MESH = MESHES["data=4, model=2"]
MODEL = Transformer(layers=1)


@cache
def training(mesh: str) -> Plan:
    return pt.plan(train_step, MESHES[mesh], *MODEL.shapes())


def step(mesh: str, name: str) -> Plan:
    return training(mesh).apply(*strategy(name, ("pod", "data") if mesh.startswith("pod") else "data"))


def small(function: Callable[..., jax.Array], *shapes: tuple[int, ...]) -> Plan:
    return pt.plan(function, MESH, *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes))


def chained() -> Plan:
    plan = small(chain, (256, 8), (8, 16), (16, 8)).apply(pt.DataParallel("data", inputs="x"), pt.Tile({"w1": 1}, "model"))
    return plan.apply(pt.ZeRO(3, "data", params=["w1", "w2"]))


def stacked(gradients: bool) -> Plan:
    params, _, batch = MODEL.shapes()
    function = jax.value_and_grad(stacked_loss) if gradients else stacked_loss
    plan = pt.plan(function, MESH, jax.eval_shape(stack, params), batch).apply(pt.DataParallel("data", inputs="batch/*"))
    megatron = pt.Megatron("model", column={"params/**/wqkv": 3, "params/**/w1": 2}, row={"params/**/wo": 1, "params/**/w2": 1})
    return plan.apply(megatron, pt.ZeRO(3, "data", params=["params/**/w*", "params/embed"]))


PLANS: dict[str, Callable[[], Plan]] = {
    "nothing placed": lambda: training("data=4, model=2"),
    **{f"{name} on {mesh}": lambda mesh=mesh, name=name: step(mesh, name) for mesh in MESHES for name in NAMES},
    "chain": chained,
    "gram": lambda: small(gram, (64, 16)).tile("x", 0, "data"),
    "gram, the conflict resolved": lambda: small(gram, (64, 16)).replicate("transpose#0", "data").tile("x", 0, "data"),
    "tanh gram": lambda: small(tanh_gram, (64, 16)).tile("x", 0, "data").tile("x", 1, "model"),
    "a scan over layers": lambda: stacked(gradients=False),
    "a scan over layers, its gradients": lambda: stacked(gradients=True),
}


@pytest.mark.parametrize("name", PLANS)
def test_lowering_the_unfused_text_gives_the_plans_spmd(name: str) -> None:
    plan = PLANS[name]()
    lowers_from_its_text(plan)


@pytest.mark.parametrize("name", ["BP+MP+Z3 on data=4, model=2", "chain", "a scan over layers, its gradients"])
def test_partita_opt_lowers_the_unfused_text_to_the_plans_spmd(name: str) -> None:
    plan = PLANS[name]()
    assert opt(["-p", "fuse,to-spmd"], str(plan.ir(fused=False))).strip() == str(plan.spmd()).strip()
    assert opt(["-p", "fuse"], str(plan.ir(fused=False))).strip() == str(plan.ir()).strip()
