"""A partitioned training step equals the unpartitioned one: loss, every new parameter, all optimizer state."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from models import Transformer, train_step
from strategies import NAMES, strategy

import partita as pt
from partita.compiler.api.plan import Plan

# JAX's own schedules of one step differ by about 3e-5.
BOUND = 2e-4

MODEL = Transformer(layers=2)
MESHES = {
    "data=8": pt.Mesh(data=8),
    "model=2": pt.Mesh(model=2),
    "data=4, model=2": pt.Mesh(data=4, model=2),
    "data=2, model=4": pt.Mesh(data=2, model=4),
    "pod=2, data=2, model=2": pt.Mesh(pod=2, data=2, model=2),
}
CASES = [
    *(("data=8", name) for name in ("BP", "BP+Z2", "BP+Z3")),
    ("model=2", "MP"),
    *((mesh, name) for mesh in list(MESHES)[2:] for name in NAMES),
]


@cache
def unpartitioned() -> tuple[Any, Any]:
    """The arguments, and the results of `jax.jit`."""
    args = MODEL.arrays()
    return args, jax.jit(train_step)(*args)


@cache
def start(mesh: str) -> Plan:
    """The step on a mesh, before any tactic."""
    return pt.plan(train_step, MESHES[mesh], *unpartitioned()[0])


@pytest.mark.parametrize(("mesh", "name"), CASES)
def test_a_partitioned_training_step_equals_the_unpartitioned(mesh: str, name: str) -> None:
    args, expected = unpartitioned()
    batch = ("pod", "data") if mesh.startswith("pod") else "data"
    step = start(mesh).apply(*strategy(name, batch)).compile()
    results = step(*args)
    assert len(results[2].sharding.device_set) == MESHES[mesh].size
    assert jax.tree.structure(results) == jax.tree.structure(expected)
    too_far = {path: error for path, error in errors(results, expected).items() if not error <= BOUND}
    assert too_far == {}


def errors(found: Any, expected: Any) -> dict[str, float]:
    """The largest |a-b| / (1e-3+|b|) of each leaf, by its path."""
    leaves: list[tuple[Any, jax.Array]] = jax.tree_util.tree_leaves_with_path(found)
    pairs = zip(leaves, jax.tree.leaves(expected), strict=True)
    return {jax.tree_util.keystr(path): largest(a, b) for (path, a), b in pairs}


def largest(a: jax.Array, b: jax.Array) -> float:
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.max(np.abs(x - y) / (1e-3 + np.abs(y))))
