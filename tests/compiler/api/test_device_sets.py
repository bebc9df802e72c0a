"""Plans on a mesh of a named device set."""

from pathlib import Path

import jax
import numpy as np
import pytest

import partita as pt

LEFT = pt.Mesh(data=4, model=2).on("left")
X, W = (np.arange(128, dtype=np.float32).reshape(shape) for shape in ((8, 16), (16, 8)))


def product(x: jax.Array | np.ndarray, w: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    return x @ w


@pytest.mark.parametrize("axis", ["data", "data@left", "data.0:2"])
def test_a_plan_on_a_device_set_runs_and_its_file_gives_it_again(axis: str, tmp_path: Path) -> None:
    plan = pt.plan(product, LEFT, X, W).tile("x", 0, axis).apply(pt.Tile({"w": 1}, "model@left"))
    assert "model@left" in str(plan.layout("result"))
    np.testing.assert_array_equal(plan.compile()(X, W), product(X, W))
    plan.save(tmp_path / "left.partita")
    again = pt.replay(product, tmp_path / "left.partita", X, W)
    assert again.mesh is plan.mesh and again.layout() == plan.layout()


def test_an_axis_of_another_device_set_is_none_of_the_mesh() -> None:
    with pytest.raises(pt.Error, match="the mesh has no axis `data@right`"):
        pt.plan(product, LEFT, X, W).tile("x", 0, "data@right")
