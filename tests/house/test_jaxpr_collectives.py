"""The counter of collectives in jaxprs counts executions, and the bytes that one device receives."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec as P
from jaxpr_collectives import Collective, collectives, counts, received

F32 = 4


def inside(function: Any) -> list[Collective]:
    """The collectives of `function`, run by each of 4 x 2 devices on an f32[8, 6]."""
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("a", "b"))
    placed = jax.shard_map(function, mesh=mesh, in_specs=P(), out_specs=P("a"), check_vma=False)
    return collectives(jax.jit(placed), jax.ShapeDtypeStruct((8, 6), jnp.float32))


@pytest.mark.parametrize(
    ("function", "kind", "nbytes"),
    [
        (lambda x: jax.lax.psum(x, "a"), "all_reduce", 2 * 48 * F32 * 3 // 4),
        (lambda x: jax.lax.psum(x, ("a", "b")), "all_reduce", 2 * 48 * F32 * 7 // 8),
        (lambda x: jax.lax.pmax(x, "b"), "all_reduce", 2 * 48 * F32 // 2),
        (lambda x: jax.lax.all_gather(x, "a", axis=0, tiled=True), "all_gather", 4 * 48 * F32 * 3 // 4),
        (lambda x: jax.lax.psum_scatter(x, "a", tiled=True), "reduce_scatter", 48 * F32 * 3 // 4),
        (lambda x: jax.lax.all_to_all(x, "b", 0, 1, tiled=True), "all_to_all", 48 * F32 // 2),
        (lambda x: jax.lax.ppermute(x, "a", [(0, 1)]), "permute", 48 * F32),
    ],
)
def test_a_collective_has_its_kind_and_bytes(function: Any, kind: str, nbytes: int) -> None:
    found = inside(function)
    assert {name: n for name, n in counts(found).items() if n} == {kind: 1}
    assert received(found) == nbytes


def test_a_scan_counts_its_trips() -> None:
    def body(x: Any, _: None) -> tuple[Any, None]:
        return jax.lax.psum(x, "a"), None

    found = inside(lambda x: jax.lax.scan(body, x, length=5)[0])
    assert counts(found)["all_reduce"] == 5
    assert received(found) == 5 * 2 * 48 * F32 * 3 // 4


def test_a_sum_of_several_arrays_is_several_sums() -> None:
    assert counts(inside(lambda x: sum(jax.lax.psum((x, x), "a"))))["all_reduce"] == 2
