"""The training steps that `benchmarks.tpu` compiles for TPUs: small ones, as planned there, train as they do without a plan."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from typing import Any

import jax
import numpy as np
import pytest
from agreement import disagreement

import partita as pt
from partita.benchmarks import tpu_model
from partita.benchmarks.tpu_layers import Experts, Llama
from partita.benchmarks.tpu_programs import WAYS_OF_EXPERTS, WAYS_OF_LLAMA, Way

LLAMA = Llama(layers=1, width=32, vocabulary=64, head=8, batch=8, length=8, kv=2, hidden=16)
SCANNED = Llama(layers=2, width=32, vocabulary=64, head=8, batch=8, length=8, kv=2, hidden=16, scanned=True)
EXPERTS = Experts(layers=1, width=32, vocabulary=64, head=8, batch=8, length=16, kv=2, hidden=16, experts=8)
FLAT, SQUARE = pt.Mesh(data=8), pt.Mesh(data=4, model=2)


@pytest.mark.parametrize(
    ("config", "mesh", "way"),
    [
        pytest.param(LLAMA, FLAT, WAYS_OF_LLAMA["Z3"], id="Llama, Z3"),
        pytest.param(SCANNED, SQUARE, WAYS_OF_LLAMA["BP+MP+Z3"], id="Llama, BP+MP+Z3, scan"),
        pytest.param(EXPERTS, FLAT, WAYS_OF_EXPERTS["Z3+EP"], id="experts, Z3+EP"),
    ],
)
def test_a_planned_step_trains_as_the_step(config: tpu_model.Config, mesh: pt.Mesh, way: Way) -> None:
    args = values(config)
    step: Any = tpu_model.train_step(config, lambda x, _: x)
    plan = pt.plan(step, mesh, *args).apply(*way[1])
    found, expected = (jax.tree.leaves(each(*args)) for each in (plan.compile(), jax.jit(step)))
    assert not disagreement(found, expected, bound=1e-3)


def values(config: tpu_model.Config) -> tuple[Any, ...]:
    """Random arguments of the shapes of a config, in float32."""
    rng = np.random.default_rng(0)

    def value(shape: jax.ShapeDtypeStruct) -> Any:
        if shape.dtype == np.int32:
            return rng.integers(0, config.vocabulary, shape.shape, np.int32)
        return np.asarray(rng.normal(0, 0.2, shape.shape), np.float32)

    params, _, batch = tpu_model.shapes(config)
    params = jax.tree.map(value, params)
    return params, tpu_model.OPTIMIZER.init(params), jax.tree.map(value, batch)
