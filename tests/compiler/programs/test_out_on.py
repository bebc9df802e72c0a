"""Results of programs that are moved to one device set."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.compiler.graph.graph import Graph
from partita.compiler.jax_private import jnp

X = np.random.default_rng(0).standard_normal((8, 16), np.float32)
W = np.random.default_rng(1).standard_normal((16, 16), np.float32) / 4


def layer(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def test_results_are_moved_to_a_set_that_is_asked_for() -> None:
    rows = [pt.Tile({"x": 0}, "data")]
    left, right, out = pt.Mesh(data=4).on("left"), pt.Mesh(data=2).on("right"), pt.devices(2).on("out")
    a, b = (pt.kernel(layer, devices=each, tactics=rows) for each in (left, right))

    def f(x: Any, w: Any) -> Any:
        y = a(x, w)
        return y, b(y, w), w

    program: Any = pt.program(f, out_on=out)
    found, wanted = program(X, W), f(X, W)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.sharding.is_fully_replicated and len(one.devices()) == 2
    # Of what two devices have in parts, each sends a part, and those that receive gather it.
    sent = {
        ("left", "right"): X.nbytes + 2 * W.nbytes,
        ("left", "out"): 2 * X.nbytes + 2 * W.nbytes,
        ("right", "out"): X.nbytes,
    }
    assert program.graph(X, W).transferred() == sent
    there: Any = pt.program(f, out_on=right)
    types = [each.text for each in there.graph(X, W).op.function_type.outputs]
    assert types == ["f32[8, 16] on right", "f32[data*4, 16] on right", "f32[16, 16] on right"]
    read = Graph.parse(program.graph(X, W).text())
    np.testing.assert_array_equal(read.run(X, W)[1], wanted[1])
    with pytest.raises(pt.Error, match="uses another one of that name"):
        pt.program(f, out_on=pt.Mesh(data=2).on("left")).graph(X, W)
    no_set: Any = "left"
    with pytest.raises(pt.Error, match="`out_on` takes"):
        pt.program(f, out_on=no_set)
