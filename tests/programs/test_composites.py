"""Composite tactics send what their closed forms say, on layers one by one and stacked, and compute what the program does.

The transformer has L layers, P = 9L + 1 parameters, S = 4L + 1 of them matrices. Stacked, its layers run in a `scan` and are
computed again in the backward pass; it then has 10 parameters, and 5 of them are vectors or stacks of vectors.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jaxpr_collectives import collectives, counts
from models import Batch, Transformer, Tree, block, stack, train_step

import partita as pt
from partita.compiler.api.plan import Plan

MESH = pt.Mesh(data=2, model=4)
PODS = pt.Mesh(pod=2, data=2, model=2, slow="pod")
DATA, MODEL, VOCABULARY = pt.DataParallel("data"), pt.Megatron("model"), pt.VocabularyParallel("model")
SEQUENCE, FSDP = pt.SequenceParallel("model"), pt.FSDP("data")
MATRICES = ["params/embed", "params/**/w*"], ["opt/**/embed", "opt/**/w*"]


def remat_loss(params: Tree, batch: Batch) -> jax.Array:
    x, _ = jax.lax.scan(jax.checkpoint(lambda x, p: (block(x, p), None)), params["embed"][batch.x], params["blocks"])
    logs = jax.nn.log_softmax(x @ params["embed"].T, axis=-1)
    return -jnp.mean(jnp.take_along_axis(logs, batch.y[..., None], axis=-1))


def stacked_step(params: Tree, batch: Batch) -> tuple[Tree, jax.Array]:
    value, grads = jax.value_and_grad(remat_loss)(params, batch)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


@cache
def unrolled(layers: int, mesh: pt.Mesh = MESH) -> tuple[Plan, Sequence[Any]]:
    args = Transformer(layers).arrays()
    return pt.plan(train_step, mesh, *args), args


@cache
def stacked(layers: int, mesh: pt.Mesh = MESH) -> tuple[Plan, Sequence[Any]]:
    params, _, batch = Transformer(layers).arrays()
    args = stack(params), batch
    return pt.plan(stacked_step, mesh, *args), args


Form = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""The numbers of all_gathers, all_reduces and reduce_scatters: for each layer so many, and so many more."""


class Row(NamedTuple):
    """A strategy, and what a step sends: with layers one by one, and with stacked ones."""

    tactics: Sequence[Callable[[Plan], Plan]]
    alone: Form
    scanned: Form | None
    mesh: pt.Mesh = MESH


NONE = 0, 0
ROWS = {
    # A sum for each gradient, and one for the loss.
    "data": Row([DATA], (NONE, (9, 2), NONE), (NONE, (0, 11), NONE)),
    # The gradients of matrices are scattered, the new matrices gathered.
    "ZeRO-2": Row([DATA, pt.ZeRO(2, "data", *MATRICES)], ((4, 1), (5, 1), (4, 1)), None),
    # Each matrix forward and backward, and a third time the table that is also the head.
    "FSDP": Row([DATA, FSDP], ((8, 3), (5, 1), (4, 1)), ((8, 3), (0, 6), (4, 1))),
    # Vectors too: the backward pass does not use the three biases of a layer, unless it computes the layer again.
    "FSDP of everything": Row([DATA, pt.FSDP("data", smallest=1)], ((15, 3), (0, 1), (9, 1)), ((17, 3), (0, 1), (9, 1))),
    # Attention and perceptron, forward and backward; attention is summed once more where the layer is computed again.
    "Megatron": Row([MODEL], (NONE, (4, 0), NONE), (NONE, (5, 0), NONE)),
    "data, Megatron": Row([DATA, MODEL], (NONE, (9 + 4, 2), NONE), (NONE, (5, 11), NONE)),
    # Megatron's sums are scattered, and its inputs gathered; the loss, the table and the vectors have sums over positions.
    "sequence": Row([MODEL, SEQUENCE], ((4, 0), (5, 2), (4, 0)), ((6, 0), (0, 7), (5, 0))),
    # The lookup, the largest logit, two sums of them, the right logit, and the gradient of what the head reads.
    "vocabulary": Row([VOCABULARY], (NONE, (0, 6), NONE), (NONE, (0, 6), NONE)),
    # Keys and values, and their gradients; the gradients of all parameters, and the loss.
    "context": Row([pt.ContextParallel("data")], ((2, 0), (9, 2), (2, 0)), ((4, 0), (0, 11), (2, 0))),
    # Megatron's sums as in a sequence, matrices as in FSDP; the norms' sums over the width, 4 forward and 4 backward.
    "2-D": Row(
        [pt.Tensor2D("data", "model")],
        ((4 + 8, 3), (8 + 5, 2), (4 + 4, 1)),
        ((6 + 8, 3), (12, 7), (5 + 4, 1)),
    ),
    # The logits of the targets are summed over the vocabulary and the batch at once.
    "data, Megatron, vocabulary, FSDP": Row(
        [DATA, MODEL, VOCABULARY, FSDP], ((8, 3), (4 + 5, 6), (4, 1)), ((8, 3), (5, 11), (4, 1))
    ),
    # The head gathers what it reads, and the lookup is scattered: one more of each in either direction.
    "data, Megatron, vocabulary, sequence, FSDP": Row(
        [DATA, MODEL, VOCABULARY, SEQUENCE, FSDP],
        ((4 + 8, 2 + 3), (5, 4), (4 + 4, 2 + 1)),
        ((6 + 8, 2 + 3), (0, 9), (5 + 4, 2 + 1)),
    ),
    # Sharded in a pod, replicated over pods: what is scattered over `data` is then summed over `pod`.
    "two pods": Row([pt.DataParallel(("pod", "data")), FSDP], ((8, 3), (5 + 4, 2), (4, 1)), ((8, 3), (4, 7), (4, 1)), PODS),
}


def counted(form: Form, layers: int) -> list[int]:
    return [each * layers + once for each, once in form]


def sent(plan: Plan) -> list[int]:
    assert not plan.conflicts and not plan.blocked and not plan.whole
    found = plan.counts()
    assert not found["all_to_all"] and not found["permute"]
    return [found["all_gather"], found["all_reduce"], found["reduce_scatter"]]


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("name", ROWS)
def test_it_sends_what_its_closed_form_says(name: str, layers: int) -> None:
    row = ROWS[name]
    assert sent(unrolled(layers, row.mesh)[0].apply(*row.tactics)) == counted(row.alone, layers)
    if row.scanned is not None:
        assert sent(stacked(layers, row.mesh)[0].apply(*row.tactics)) == counted(row.scanned, layers)


@pytest.mark.parametrize("name", ROWS)
def test_it_trains_as_unpartitioned(name: str) -> None:
    row = ROWS[name]
    plan, args = unrolled(1, row.mesh) if row.scanned is None else stacked(2, row.mesh)
    placed = plan.apply(*row.tactics)
    assert counts(collectives(placed.compile(), *args)) == placed.counts()
    assert placed.check(*args) < 2e-4


@pytest.mark.parametrize("name", ["data, Megatron, vocabulary, sequence, FSDP", "2-D"])
def test_layers_one_by_one_train_as_unpartitioned(name: str) -> None:
    plan, args = unrolled(1)
    assert plan.apply(*ROWS[name].tactics).check(*args) < 2e-4


@pytest.mark.parametrize("name", ROWS)
def test_it_replays_from_its_trace(name: str) -> None:
    row, size = ROWS[name], Transformer(1)
    placed = unrolled(1, row.mesh)[0].apply(*row.tactics)
    again = pt.replay(train_step, row.mesh, placed.trace, *size.shapes())
    assert again.trace == placed.trace
    assert again.layout("**") == placed.layout("**") and again.counts() == placed.counts()
