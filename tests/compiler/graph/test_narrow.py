"""Numbers of less than a byte in graphs: between programs they travel as bytes."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt

Array = Any
MESH = pt.Mesh(a=2)
FUNCTIONS: dict[str, Any] = {
    "elementwise": lambda x: x * x + x,
    "moved": lambda x: x[::-1],
    "compared": lambda x: x > x[::-1],
    "made": lambda x: (x.astype(jnp.float32) * 2).astype(x.dtype),
}


def test_what_travels_for_an_argument_is_not_taken_for_it() -> None:
    x, key = jnp.arange(8).astype("int4"), jax.random.key(0)
    plan = pt.plan(lambda x: x + x, MESH, x).tile("x", 0, "a").lower().compile()
    random = pt.plan(lambda key: jax.random.normal(key, (4,)), MESH, key).lower().compile()
    for call, given, bare in ((plan, x, np.arange(8, dtype="int8")), (random, key, jax.random.key_data(key))):
        for _ in range(2):
            jax.block_until_ready(call(given))
        with pytest.raises(pt.Error, match="when traced"):
            call(jax.device_put(bare, call.inputs[0].sharding))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_a_graph_takes_and_gives_numbers_of_less_than_a_byte(dtype: str, name: str) -> None:
    x = jnp.array([0, 1, 1, 0, 1, 2, 0, 1], jnp.float32).astype(dtype)
    plan = pt.plan(FUNCTIONS[name], MESH, x).tile("x", 0, "a")
    found, expected = plan.lower("collective").run(x), jax.jit(FUNCTIONS[name])(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(found, np.float32), np.asarray(expected, np.float32))
