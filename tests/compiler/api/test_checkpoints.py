"""A training state that Orbax has saved goes on under another plan, on another mesh."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest

import partita as pt

ADAM = optax.adam(1e-2)
RANDOM = np.random.default_rng(0)
PARAMS = {"w1": RANDOM.standard_normal((16, 64), np.float32) / 4, "w2": RANDOM.standard_normal((64, 8), np.float32) / 8}
BATCHES = [{"x": RANDOM.standard_normal((32, 16), np.float32), "y": np.ones((32, 8), np.float32)} for _ in range(4)]
ROWS, ZERO = pt.DataParallel("data", inputs="batch"), pt.ZeRO(3, "data", params="params", optimizer="opt")
COLUMNS = pt.Megatron("model", column={"params/w1": 1})


def train_step(params: Any, opt: Any, batch: Any) -> Any:
    def loss(params: Any) -> Any:
        return jnp.mean((jax.nn.gelu(batch["x"] @ params["w1"]) @ params["w2"] - batch["y"]) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    updates, opt = ADAM.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt, value


def step_on(mesh: pt.Mesh, tactics: Sequence[pt.Tactic]) -> Any:
    return pt.jit(train_step, mesh=mesh, tactics=tactics)


def trained(step: Any, state: Any, batches: Sequence[Any]) -> Any:
    for batch in batches:
        *state, _ = step(*state, batch)
    return state


BEFORE = step_on(pt.Mesh(data=4, model=2), [ROWS, ZERO, COLUMNS])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state after two steps."""
    path = tmp_path_factory.mktemp("run") / "state"
    state = trained(BEFORE, [PARAMS, ADAM.init(PARAMS)], BATCHES[:2])
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, state)
    return path


def restored(step: Any, path: Path) -> Any:
    """The state where this step wants it."""
    wanted = step.eval_shape(PARAMS, ADAM.init(PARAMS), BATCHES[0])[:2]
    with ocp.StandardCheckpointer() as checkpointer:
        found = checkpointer.restore(path, list(wanted))
    for leaf, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert leaf.sharding.is_equivalent_to(other.sharding, leaf.ndim)
    return found


def test_on_the_same_plan_training_goes_on_bit_by_bit(saved: Path) -> None:
    found = trained(BEFORE, restored(BEFORE, saved), BATCHES[2:])
    wanted = trained(BEFORE, [PARAMS, ADAM.init(PARAMS)], BATCHES)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(one, other)


AFTER: dict[str, Any] = {
    "data=2, model=4": lambda: step_on(pt.Mesh(data=2, model=4), [ROWS, COLUMNS]),
    "one device": lambda: step_on(pt.Mesh(), []),
    "four devices": lambda: step_on(pt.Mesh(data=4), [ROWS, ZERO]),
}


@pytest.mark.parametrize("mesh", AFTER)
def test_on_another_mesh_training_goes_on_as_unbroken(saved: Path, mesh: str) -> None:
    step = AFTER[mesh]()
    found = trained(step, restored(step, saved), BATCHES[2:])
    wanted = trained(BEFORE, [PARAMS, ADAM.init(PARAMS)], BATCHES)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


def test_a_program_in_a_file_goes_on_from_a_checkpoint(saved: Path, tmp_path: Path) -> None:
    """The process that restores has neither the model's code nor optax: the places are those of the file."""
    BEFORE.plan(PARAMS, ADAM.init(PARAMS), BATCHES[0]).compile().save(tmp_path / "step")
    step = pt.load_compiled(tmp_path / "step")
    with ocp.StandardCheckpointer() as checkpointer:
        params, (moments, rest) = checkpointer.restore(saved)
    found = trained(step, [params, (moments, rest)], BATCHES[2:])
    wanted = trained(BEFORE, [PARAMS, ADAM.init(PARAMS)], BATCHES)
    assert sorted(found[1][0]) == ["count", "mu", "nu"]
    for name, each in found[0].items():
        np.testing.assert_array_equal(each, wanted[0][name])
