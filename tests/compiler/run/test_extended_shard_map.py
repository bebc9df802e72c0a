"""A plan runs under whatever mesh the program has set, and gives its results back to that mesh."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from itertools import product
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh as DeviceMesh, NamedSharding, PartitionSpec as P

import partita as pt

MESH = pt.Mesh(data=4, model=2)
TACTICS = (pt.Tile({"x": 0}, "data"), pt.Tile({"w": 1}, "model"))
RANDOM = np.random.default_rng(0)
Function = Callable[..., Any]


def draw(*shape: int) -> Any:
    return RANDOM.normal(0.0, 0.5, shape).astype(np.float32)


X, W, SCALE = draw(16, 8), draw(8, 8), draw(8)


def layer(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w) * SCALE[None]


def loss(x: jax.Array, w: jax.Array) -> jax.Array:
    return (layer(x, w) ** 2).sum()


def equal(ours: Any, theirs: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6), ours, theirs)


def device_mesh(kinds: str, **axes: int) -> DeviceMesh:
    """A mesh whose axes are Auto or Explicit: `AE` for the first one Auto and the second one Explicit."""
    types = tuple(AxisType.Auto if kind == "A" else AxisType.Explicit for kind in kinds)
    return DeviceMesh(
        np.array(jax.devices()[: prod(axes.values())]).reshape(tuple(axes.values())), tuple(axes), axis_types=types
    )


OTHER = "Auto, other axes"
MESHES: dict[str, Callable[[], DeviceMesh]] = {
    "Auto": lambda: device_mesh("AA", data=4, model=2),
    OTHER: lambda: device_mesh("A", z=8),
    "Explicit": lambda: device_mesh("EE", data=4, model=2),
    "Explicit, in another order": lambda: device_mesh("EE", model=2, data=4),
    "Explicit, other axes": lambda: device_mesh("E", z=8),
    "Explicit and Auto": lambda: device_mesh("EA", data=4, model=2),
}
PLACED: dict[str, Callable[[Any, str], Any]] = {
    "NumPy": lambda array, _: array,
    "not placed": lambda array, _: jnp.asarray(array),
    "placed": lambda array, axis: jax.device_put(array, P(axis)),
}


def planned(function: Function) -> pt.Plan:
    return pt.plan(function, MESH, X, W).apply(*TACTICS)


CALLS: dict[str, tuple[Function, Function]] = {
    "call": (lambda x, w: planned(layer).compile()(x, w), layer),
    "check": (lambda x, w: float(planned(layer).check(x, w) > 2e-4), lambda x, w: 0.0),
    "pt.jit": (lambda x, w: pt.jit(layer, mesh=MESH, tactics=TACTICS, reshard="allow")(x, w), layer),
    "graph": (lambda x, w: planned(layer).lower("collective").run(x, w), layer),
    "grad": (jax.grad(lambda x, w: planned(loss).compile()(x, w), argnums=(0, 1)), jax.grad(loss, argnums=(0, 1))),
    "grad of pt.jit": (lambda x, w: jax.grad(pt.jit(loss, mesh=MESH, tactics=TACTICS))(x, w), jax.grad(loss)),
    "vmap": (lambda x, w: jax.vmap(planned(layer).compile(), (0, None))(jnp.stack([x, x]), w), lambda x, w: [layer(x, w)] * 2),
}
FOLLOWED: dict[str, tuple[Function, Function]] = {
    "jit": (jax.jit(lambda x, w: planned(layer).compile()(x, w) + 1), lambda x, w: layer(x, w) + 1),
    "more ops": (lambda x, w: planned(layer).compile()(x, w) * 2, lambda x, w: layer(x, w) * 2),
    "grad of more ops": (
        jax.jit(jax.grad(lambda x, w: (planned(layer).compile()(x, w) ** 2).sum(), argnums=(0, 1))),
        jax.grad(loss, argnums=(0, 1)),
    ),
}
"""Programs that go on with the results. JAX cannot, if these lie on other Auto axes than those of the program's mesh."""


ignore_what_is_gathered = pytest.mark.filterwarnings("ignore:a call of .* gathers:partita.PlacementWarning")
"""For meshes whose axes cannot say how results lie."""


@ignore_what_is_gathered
@pytest.mark.parametrize("placed", PLACED)
@pytest.mark.parametrize(
    ("kind", "call"), [*product(MESHES, CALLS), *product([kind for kind in MESHES if kind != OTHER], FOLLOWED)]
)
def test_a_plan_runs_under_the_mesh_that_the_program_sets(kind: str, call: str, placed: str) -> None:
    mesh = MESHES[kind]()
    ours, theirs = {**CALLS, **FOLLOWED}[call]
    with jax.set_mesh(mesh):
        args = [PLACED[placed](array, mesh.axis_names[0]) for array in (X, W)]
        found = ours(*args)
    equal(found, theirs(X, W))


@ignore_what_is_gathered
@pytest.mark.parametrize(
    ("mesh", "tiles", "type_"),
    [
        (device_mesh("EE", data=4, model=2), {"data": 0, "model": 1}, "float32[16@data,8@model]"),
        (device_mesh("EE", model=2, data=4), {"data": 0, "model": 1}, "float32[16@data,8@model]"),
        (device_mesh("E", z=8), {"data": 0, "model": 1}, "float32[16,8]"),
        (device_mesh("E", z=8), {"model": 0}, "float32[16,8]"),
        (device_mesh("EE", u=2, v=4), {"data": 0, "model": 1}, "float32[16@u,8]"),
        (device_mesh("AE", data=4, model=2), {"data": 0, "model": 1}, "float32[16,8@model]"),
        (device_mesh("EE", y=4, z=2), {"data": 1, "model": 0}, "float32[16@z,8@y]"),
        (device_mesh("EEE", u=2, v=2, z=2), {"data": 0, "model": 1}, "float32[16@(u,v),8@z]"),
        (device_mesh("EA", data=4, model=2), {"data": 0}, "float32[16@data,8]"),
    ],
    ids=str,
)
def test_a_result_lies_on_explicit_axes_as_the_plan_lays_it_out(mesh: DeviceMesh, tiles: dict[str, int], type_: str) -> None:
    plan = pt.plan(lambda x: jnp.sin(x) * 2, MESH, X).apply(*(pt.Tile({"x": dim}, axis) for axis, dim in tiles.items()))
    with jax.set_mesh(mesh):
        result = plan.compile()(X)
    assert str(jax.typeof(result)) == type_
    equal(result, np.sin(X) * 2)


GATHERED = {
    "plan.compile": lambda function: planned(function).compile(),
    "pt.jit": lambda function: pt.jit(function, mesh=MESH, tactics=TACTICS),
}


def warned_of(calls: Callable[[], object]) -> list[str]:
    """What calls warn of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calls()
    return [str(each.message) for each in caught if issubclass(each.category, pt.PlacementWarning)]


@pytest.mark.parametrize("step", GATHERED.values(), ids=GATHERED)
@pytest.mark.parametrize(
    ("kinds", "axes", "becomes"),
    [
        ("E", {"z": 8}, "PartitionSpec(None, None) of z=8"),
        ("EE", {"u": 2, "v": 4}, "PartitionSpec('u', None) of u=2, v=4"),
        ("EA", {"u": 2, "v": 4}, "PartitionSpec('u', None) of u=2, v=4"),
        ("EE", {"y": 4, "z": 2}, ""),
        ("EA", {"data": 4, "model": 2}, ""),
        ("AE", {"y": 4, "z": 2}, ""),
        ("A", {"z": 8}, ""),
    ],
    ids=str,
)
def test_a_result_that_is_gathered_is_one_warning(
    step: Callable[[Function], Function], kinds: str, axes: dict[str, int], becomes: str
) -> None:
    with jax.set_mesh(device_mesh(kinds, **axes)):
        run = step(layer)
        said = warned_of(lambda: [equal(run(X, W), layer(X, W)) for _ in range(2)])
        assert ("all-gather" in hlo(run)) == bool(becomes)
    assert len(said) == bool(becomes)
    if said:
        assert f"P('data', 'model') of data=4, model=2 becomes {becomes}".replace("PartitionSpec", "P") in said[0]


def hlo(run: Function) -> str:
    return jax.jit(run).lower(X, W).compile().as_text() or ""


@pytest.mark.parametrize("step", GATHERED.values(), ids=GATHERED)
def test_what_a_gradient_keeps_is_gathered_with_a_warning(step: Callable[[Function], Function]) -> None:
    with jax.set_mesh(device_mesh("E", z=8)):
        run = jax.grad(step(loss))
        (said,) = warned_of(lambda: [equal(run(X, W), jax.grad(loss)(X, W)) for _ in range(2)])
    assert "gathers arrays that the plan returns" in said


def test_a_result_that_is_gathered_can_be_an_error_or_accepted() -> None:
    strict, quiet = (pt.jit(layer, mesh=MESH, tactics=TACTICS, reshard=how) for how in ("error", "allow"))
    with jax.set_mesh(device_mesh("E", z=8)):
        for _ in range(2):
            with pytest.raises(pt.Error, match=r"(?s)gathers arrays that the plan returns.*pt.Mesh\(z=8\)"):
                strict(X, W)
        assert not warned_of(lambda: equal(quiet(X, W), layer(X, W)))
    equal(strict(X, W), layer(X, W))


def test_two_axes_of_a_dim_are_one_explicit_axis_over_the_same_devices() -> None:
    plan = pt.plan(lambda x: jnp.sin(x) * 2, MESH, X).tile("x", 0, "data").tile("x", 0, "model")
    with jax.set_mesh(device_mesh("E", z=8)):
        step = plan.compile()
        result = step(X)
        assert str(jax.typeof(result)) == "float32[16@z,8]"
        assert str(jax.typeof(step(result))) == "float32[16@z,8]"


@pytest.mark.parametrize("axes", [{"y": 2, "z": 4}, {"model": 2, "data": 4}, {"u": 2, "v": 2, "z": 2}, {"z": 8}], ids=str)
def test_a_plan_with_collectives_over_two_axes_runs_beside_what_jax_lays_out_on_another_mesh(axes: dict[str, int]) -> None:
    both = "data", "model"
    step = pt.plan(loss, MESH, X, W).tile("x", 0, both).tile("w", 0, both).compile()
    placed = NamedSharding(device_mesh("A" * len(axes), **axes), P(tuple(axes)))
    program = jax.jit(jax.value_and_grad(lambda x, w: step(jax.lax.with_sharding_constraint(x, placed), w), argnums=(0, 1)))
    equal(program(X, W), jax.value_and_grad(loss, argnums=(0, 1))(X, W))


def test_a_plan_runs_on_the_devices_of_the_mesh_that_the_program_sets() -> None:
    mesh = DeviceMesh(np.array(jax.devices()[::-1]).reshape(4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    with jax.set_mesh(mesh):
        result = pt.jit(layer, mesh=MESH, tactics=TACTICS)(jax.device_put(X, P("data")), W)
    assert result.sharding.is_equivalent_to(NamedSharding(mesh, P("data", "model")), 2)
    equal(result, layer(X, W))


def test_a_plan_compiled_for_other_devices_than_those_of_the_mesh_around_says_so() -> None:
    step = pt.plan(layer, MESH, X, W).apply(*TACTICS).compile()
    mesh = DeviceMesh(np.array(jax.devices()[::-1]), ("z",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(mesh), pytest.raises(pt.Error, match=r"`jax.set_mesh` sets a mesh on cpu:7, .*runs on cpu:0"):
        step(X, W)
    equal(step(X, W), layer(X, W))


def test_an_array_that_is_not_placed_is_not_one_that_a_call_moves() -> None:
    with jax.set_mesh(device_mesh("AA", data=4, model=2)):
        equal(pt.jit(layer, mesh=MESH, tactics=TACTICS)(jnp.asarray(X), jnp.asarray(W)), layer(X, W))


def test_a_plan_of_a_program_with_explicit_shardings_runs_anywhere() -> None:
    def multiplied(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.dot(x, w, out_sharding=P("data", "model")) * 2

    with jax.set_mesh(device_mesh("EE", data=4, model=2)):
        plan = pt.plan(multiplied, MESH, X, W).apply(pt.Annotated())
        step = plan.compile()
        equal(step(X, W), X @ W * 2)
    equal(step(X, W), X @ W * 2)
    equal(jax.grad(lambda x: step(x, W).sum())(X), jax.grad(lambda x: (x @ W * 2).sum())(X))


# --- inside a `shard_map` ----------------------------------------------------------------------------------------------

ROWS = pt.Mesh(data=4)
BATCHES = draw(2, 16, 8)


def on_rows(function: Function) -> Function:
    return pt.plan(function, ROWS, X, W).tile("x", 0, "data").compile()


INSIDE: dict[str, Callable[[Function, Function], Function]] = {
    "call": lambda layer, _: lambda x, w: layer(x[0], w)[None],
    "more ops": lambda layer, _: lambda x, w: layer(x[0] * 2, w)[None] * 2,
    "grad": lambda _, loss: lambda x, w: jax.grad(loss)(x[0], w)[None],
    "grad of more ops": lambda layer, _: lambda x, w: jax.grad(lambda x: (layer(x, w) ** 2).sum())(x[0])[None],
    "vmap": lambda layer, _: jax.vmap(layer, (0, None)),
}


@pytest.mark.parametrize("outside", ["call", "grad"])
@pytest.mark.parametrize(("kinds", "checked"), [("AA", True), ("AA", False), ("EA", True)])
@pytest.mark.parametrize("name", INSIDE)
def test_a_plan_runs_inside_a_shard_map_on_the_axes_that_it_leaves(name: str, kinds: str, checked: bool, outside: str) -> None:
    mesh = device_mesh(kinds, replica=2, data=4)
    mapped = partial(
        jax.shard_map,
        mesh=mesh,
        axis_names={"replica"},
        in_specs=(P("replica"), P()),
        out_specs=P("replica"),
        check_vma=checked,
    )

    def run(layer: Function, loss: Function) -> Any:
        function = mapped(INSIDE[name](layer, loss))
        if outside == "grad":
            function = jax.grad(lambda x, w, f=function: (f(x, w) ** 2).sum(), argnums=(0, 1))
        x = jax.device_put(BATCHES, P("replica")) if kinds[0] == "E" else BATCHES
        return jax.jit(function)(x, W)

    with jax.set_mesh(mesh):
        equal(run(on_rows(layer), on_rows(loss)), run(layer, loss))


def test_pt_jit_plans_inside_a_shard_map() -> None:
    mesh = device_mesh("AA", replica=2, data=4)
    jitted = pt.jit(layer, mesh=ROWS, tactics=[pt.Tile({"x": 0}, "data")])
    mapped = partial(jax.shard_map, mesh=mesh, axis_names={"replica"}, in_specs=(P("replica"), P()), out_specs=P("replica"))
    found = jax.jit(mapped(lambda x, w: jitted(x[0], w)[None]))(BATCHES, W)
    equal(found, [layer(x, W) for x in BATCHES])


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (lambda: jax.set_mesh(device_mesh("E", z=8)), "for the mesh data=4, but `jax.set_mesh` sets the mesh z=8"),
        (lambda: jax.set_mesh(device_mesh("AA", data=2, model=4)), "data=4, but `jax.set_mesh` sets the mesh data=2, model=4"),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, lambda f: jax.vmap(f, (None, None), axis_size=2)])
def test_a_mesh_of_more_devices_is_an_error_with_both_meshes(
    context: Callable[[], AbstractContextManager[Any]], message: str, transform: Callable[[Function], Function]
) -> None:
    step = on_rows(layer)
    with context(), pytest.raises(pt.Error, match=message):
        transform(step)(X, W)


@pytest.mark.parametrize(
    ("axes", "names", "note"),
    [
        ({"replica": 2, "data": 4}, {"replica", "data"}, "this one leaves none"),
        ({"replica": 4, "data": 2}, {"replica"}, "this one leaves data=2"),
        ({"replica": 2, "rows": 4}, {"replica"}, "this one leaves rows=4"),
    ],
)
def test_a_shard_map_that_leaves_other_axes_is_an_error_with_both_meshes(
    axes: dict[str, int], names: set[str], note: str
) -> None:
    step = on_rows(layer)
    mapped = jax.shard_map(
        lambda x: step(x, W), mesh=device_mesh("AA", **axes), axis_names=names, in_specs=P("replica"), out_specs=P("replica")
    )
    said = ", ".join(f"{axis}={size}" for axis, size in axes.items())
    with pytest.raises(pt.Error, match=f"for the mesh data=4, but is called inside a `shard_map` on the mesh {said}") as raised:
        jax.jit(mapped)(np.concatenate([X] * axes["replica"]))
    assert note in str(raised.value)
