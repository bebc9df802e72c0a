"""Layouts that no collective turns into each other become each other by pieces; a device receives what it lacks."""

# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from math import prod
from typing import Any

import jax.numpy as jnp
import pytest
from everywhere import agrees

import partita as pt


@pytest.mark.parametrize(
    ("mesh", "shape", "tactics", "counts", "received"),
    [
        pytest.param(
            pt.Mesh(a=4, b=2), (8, 8),
            [pt.Tile({"x": 0}, "a"), pt.Tile({"x": 1}, "b"), pt.Tile({"result": 0}, "b"), pt.Tile({"result": 1}, "a")],
            {"permute": 2}, 4 * 8, id="axes of other sizes change places",
        ),
        pytest.param(
            pt.Mesh(a=2, b=3), (9, 4),
            [pt.Tile({"x": 0}, "a", padded=True), pt.Replicate("result", "a"), pt.Tile({"result": 0}, "b")],
            {"permute": 2}, 4 * 4 * 3, id="a dim that is padded, and one that is not",
        ),
        pytest.param(
            pt.Mesh(x=4, y=2), (8, 8, 8),
            [pt.Tile({"x": 0}, "y"), pt.Tile({"x": 2}, "x"), pt.Tile({"result": 1}, "x"), pt.Tile({"result": 1}, "y")],
            {"all_to_all": 1}, 4 * 56, id="two axes move in one all_to_all",
        ),
    ],
)  # fmt: skip
def test_a_device_receives_what_it_lacks(
    mesh: pt.Mesh, shape: tuple[int, ...], tactics: Sequence[pt.Tactic], counts: dict[str, int], received: int
) -> None:
    def wave(x: Any) -> Any:
        return jnp.sin(x)

    x = jnp.arange(float(prod(shape))).reshape(shape)
    plan = pt.plan(wave, mesh, x)
    for tactic in tactics:
        plan = plan.apply(tactic)
    assert ({kind: n for kind, n in plan.counts().items() if n}, plan.bytes_per_device()) == (counts, received)
    agrees(plan, wave, x, derived=True)
