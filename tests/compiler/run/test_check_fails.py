"""`check` and a call say what XLA or JAX cannot run, of which program, and what to do."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, PartitionSpec

import partita as pt

X = jnp.ones((8, 8))


def unknown(x: Any) -> Any:
    return jax.ffi.ffi_call("nosuch", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def test_check_names_the_plan_if_xla_cannot_run_it():
    with pytest.raises(pt.Error, match="the plan of `unknown` fails on these arrays") as caught:
        pt.plan(unknown, pt.Mesh(a=2), X).check(X)
    assert "nosuch" in caught.value.notes[0]
    assert caught.value.location is not None
    assert caught.value.helps == ("see the whole error by plan.compile()(...)",)


def test_check_names_the_original_function_if_only_that_fails():
    calls = list[int]()

    def once(value: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("no more")
        return value

    def program(x: Any) -> Any:
        return jax.pure_callback(once, x, x)

    with pytest.raises(pt.Error, match="the original function of `program` fails on these arrays") as caught:
        pt.plan(program, pt.Mesh(a=1), X).check(X)
    assert caught.value.helps == ("see the whole error by jax.jit(program)(...)",)


def mapped(x: Any) -> Any:
    """A `shard_map` on four devices whose body JAX cannot map."""
    mesh = jax.make_mesh((4,), ("z",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    spec = PartitionSpec("z")
    body = jax.shard_map(lambda b: jax.pure_callback(lambda v: v, b, b), mesh=mesh, in_specs=spec, out_specs=spec)
    return body(x)


RUNS: dict[str, Callable[[pt.Plan], object]] = {
    "a call": lambda plan: plan.compile()(X),
    "check": lambda plan: plan.check(X),
    "a graph": lambda plan: plan.lower("collective").run(X),
}


@pytest.mark.parametrize("how", RUNS)
def test_a_shard_map_on_another_mesh_that_jax_cannot_map_names_both_meshes(how: str):
    plan = pt.plan(mapped, pt.Mesh(a=2), X).tile("x", 0, "a")
    with pytest.raises(pt.Error, match="on the mesh z=4, the plan is for the mesh a=2") as caught:
        RUNS[how](plan)
    assert "plan for a mesh that has its axes: pt.Mesh(z=4)" in caught.value.helps
