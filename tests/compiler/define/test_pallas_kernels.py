"""Pallas calls are partitioned by their grid and BlockSpecs, or run unpartitioned with a reason if these do not suffice."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

import re
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from agreement import disagreement
from jax.experimental import pallas as pl
from kernels import KERNELS, SQUARE, Kernel, W, X, attention, call, doubled, f32, matmul, normal, spec

import partita as pt
from partita.compiler.define.candidate import DefinitionCandidate
from partita.compiler.define.self_defining import DERIVED
from partita.compiler.define.verify import accept
from partita.compiler.inputs.string_literals import Written
from partita.compiler.ops.jax_expansions import equations
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.definitions.registry import definitions
from partita.dialects.reference.interpret import interpret

MESH = pt.Mesh(a=4, b=2)


def bodies(plan: pt.Plan) -> list[str]:
    """The definitions of a plan's Pallas calls."""
    kinds = [node.op_name for node in plan.source.program.nodes if node.op_name.startswith("pallas_call")]
    return [definitions[kind].text.partition("   ")[2].strip() for kind in kinds]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_call_has_a_definition_from_its_grid_or_runs_unpartitioned_with_a_reason(kernel: Kernel) -> None:
    plan = pt.plan(kernel.function, MESH, *kernel.args)
    assert bodies(plan) == list(kernel.said)
    assert (not kernel.whole and not plan.whole) or plan.whole[0].why.endswith(kernel.whole)


def tilings(plan: pt.Plan, args: Sequence[Any]) -> list[pt.Plan]:
    """Each dim of an argument and of the result is tiled: one over `a`, and in the same plan the next one over `b`."""
    dims = [(name, dim) for name, x in zip(plan.arguments(), args, strict=True) for dim in range(x.ndim) if x.shape[dim] > 6]
    dims += [(plan.results()[0], 0)]
    pairs = zip(dims[::2], dims[1::2] + dims[:1] * (len(dims) % 2), strict=True)
    return [plan.tile(*one, "a").tile(*other, "b") for one, other in pairs]


CALLS = [kernel for kernel in KERNELS if kernel.said]


@pytest.mark.parametrize("kernel", CALLS, ids=str)
def test_a_tiled_call_computes_the_same_as_the_unpartitioned_one(kernel: Kernel) -> None:
    expected = jax.tree.leaves(jax.jit(kernel.function)(*kernel.args))
    for plan in tilings(pt.plan(kernel.function, MESH, *kernel.args), kernel.args):
        assert disagreement(jax.tree.leaves(plan.compile()(*kernel.args)), expected) == "", plan.trace


def test_each_device_runs_the_kernel_on_its_steps_of_the_grid() -> None:
    plan = pt.plan(matmul, MESH, X, W).tile("x", 0, "a").tile("w", 1, "b")
    assert plan.layout() == {"x": "f32[a*4, 8]", "w": "f32[8, b*8]", "result": "f32[a*4, b*8]"}
    assert sum(plan.counts().values()) == 0
    (inner,) = _calls(jax.make_jaxpr(plan.compile())(X, W).jaxpr)
    assert inner.params["grid_mapping"].grid == (1, 1)


def _calls(jaxpr: Any) -> Iterator[Any]:
    for eqn in equations(jaxpr):
        if eqn.primitive.name == "pallas_call":
            yield eqn


def test_jax_flash_attention_is_partitioned_by_batch_and_heads() -> None:
    qkv = [normal(4, 16, 2, 8, seed=seed) for seed in range(3)]
    plan = pt.plan(attention, MESH, *qkv).tile("*", 0, "a").tile("*", 2, "b")
    assert set(plan.layout().values()) == {"f32[a, 16, b, 8]"}
    assert sum(plan.counts().values()) == 0 and not plan.whole
    expected = jax.tree.leaves(jax.jit(attention)(*qkv))
    assert disagreement(jax.tree.leaves(plan.compile()(*qkv)), expected) == ""


def test_blocks_stay_together() -> None:
    plan = pt.plan(matmul, pt.Mesh(a=8), X, W).tile("x", 0, "a")
    (stop,) = plan.blocked
    reason = "it has 4 blocks of 4 that stay together, which 8 devices do not divide"
    assert (stop.dim, stop.reason) == (0, reason) and plan.layout()["result"] == "f32[16, 16]"


SIMPLE = ("a sum in scratch", "squeezed blocks", "two results", "columns by place of row")


@pytest.mark.parametrize("kernel", [each for each in CALLS if each.name in SIMPLE], ids=str)
def test_a_derived_definition_passes_the_trial_of_user_definitions(kernel: Kernel) -> None:
    (eqn,) = _calls(jax.make_jaxpr(kernel.function)(*kernel.args).jaxpr)
    text = DERIVED["pallas_call"].text(eqn)
    definition = definitions.add(*parse_definitions(text).values())
    ins, outs = [atom.aval for atom in eqn.invars], [var.aval for var in eqn.outvars]
    accept(DefinitionCandidate(definition, Written(text), DERIVED["pallas_call"].block), eqn.params, ins, outs)


def test_a_call_costs_what_its_steps_cost() -> None:
    rows = spec((2, 8), 0, None)
    cost: Any = pl.CostEstimate(flops=128, transcendentals=0, bytes_accessed=1024)

    def function(x: Any) -> Any:
        return call(doubled, f32(16, 8), (8,), in_specs=[rows], out_specs=rows, cost_estimate=cost)(x)

    plan = pt.plan(function, MESH, X).tile("x", 0, "a")
    (inner,) = _calls(jax.make_jaxpr(plan.compile())(X).jaxpr)
    assert inner.params["cost_estimate"] == pl.CostEstimate(flops=32, transcendentals=0, bytes_accessed=256)


def test_calls_of_one_definition_are_one_op() -> None:
    def twice(x: Any, w: Any) -> Any:
        return matmul(matmul(x, w), w)

    def again() -> str:
        return str(pt.plan(twice, MESH, SQUARE, SQUARE).spmd())

    assert again() == again() and len(set(re.findall(r"lax\.(pallas_call[.\d]*)", again()))) == 1


def test_the_text_of_a_call_cannot_be_interpreted() -> None:
    plan = pt.plan(matmul, MESH, X, W)
    with pytest.raises(pt.Error, match="does not contain it"):
        interpret(plan.ir(), [np.asarray(X), np.asarray(W)])
