"""Programs that once went wrong, each as the sentence that did not hold."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections import Counter
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType
from jaxpr_collectives import collectives, received
from lowered import executions

import partita as pt

MESH = pt.Mesh(a=4, b=2)
RANDOM = np.random.default_rng(0)
TABLE = RANDOM.normal(size=(16, 8)).astype(np.float32)


def exact(function: Any, *args: Any, tile: tuple[str, int, str]) -> pt.Plan:
    plan = pt.plan(function, MESH, *args).tile(*tile)
    np.testing.assert_array_equal(plan.compile()(*args), jax.jit(function)(*args))
    return plan


def test_a_sum_of_integers_does_not_move_through_a_division() -> None:
    x = RANDOM.integers(-20, 20, (8, 16)).astype(np.int32)
    exact(lambda x: lax.div(jnp.sum(x, 0), np.int32(3)).sum(), x, tile=("x", 0, "a"))


def test_a_sum_that_wraps_does_not_move_through_a_cast_to_wider_integers() -> None:
    x = RANDOM.integers(60, 120, (8, 16)).astype(np.int8)
    exact(lambda x: jnp.sum(x, 0, dtype=jnp.int8).astype(jnp.int32).sum(), x, tile=("x", 0, "a"))


@pytest.mark.parametrize("mode", [None, "clip", "fill"])
def test_an_index_out_of_range_reads_from_a_tiled_table_what_it_reads_from_a_whole_one(mode: str | None) -> None:
    ids = np.array([0, 3, 17, -20, 30], np.int32)
    exact(lambda table, ids: table.at[ids].get(mode=mode), TABLE, ids, tile=("table", 0, "a"))


@pytest.mark.parametrize("start", [-3, 2, 5, 9])
def test_a_clamped_slice_that_is_cut_finer_keeps_its_clamp(start: int) -> None:
    exact(lambda x, i: jnp.tanh(lax.dynamic_slice(x, (i, 0), (4, 8))), TABLE[:8], np.int32(start), tile=("result", 0, "a"))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_a_start_of_a_narrow_type_need_not_reach_the_end_of_the_array(dtype: Any) -> None:
    x = RANDOM.normal(size=(400, 8)).astype(np.float32)
    exact(lambda x, i: lax.dynamic_slice(x, (i, i * 0), (10, 8)), x, dtype(100), tile=("x", 1, "a"))


def test_a_split_into_one_piece_is_tiled() -> None:
    exact(lambda x: lax.split(x, (8,), 1)[0] * 2, TABLE, tile=("x", 0, "a"))


def test_a_slice_without_elements_ends_where_it_starts() -> None:
    exact(lambda x: lax.slice(x, (0, 2), (16, 2), (1, 2)), TABLE, tile=("x", 0, "a"))


def test_ids_that_were_unique_are_unique_when_they_are_shifted() -> None:
    def add(table: jax.Array, ids: jax.Array, rows: jax.Array) -> jax.Array:
        return table.at[ids].add(rows, indices_are_sorted=True, unique_indices=True)

    plan = exact(add, TABLE, np.array([1, 4, 9], np.int32), TABLE[:3], tile=("table", 0, "a"))
    (local,) = (line for line in str(plan.spmd()).splitlines() if "lax.scatter_add" in line)
    assert "indices_are_sorted = False" in local and "unique_indices = True" in local


def test_a_compiled_plan_with_a_maximum_over_devices_has_a_gradient() -> None:
    def loss(x: jax.Array) -> jax.Array:
        return jnp.sum(jax.nn.softmax(x, 0) ** 2) + jnp.max(x, 0).sum() + jax.nn.logsumexp(x, 0).sum()

    compiled = pt.plan(loss, MESH, TABLE).tile("x", 0, "a").compile()
    np.testing.assert_allclose(jax.grad(compiled)(TABLE), jax.grad(loss)(TABLE), atol=1e-6)


def test_complex_numbers_are_not_folded_by_an_order_that_no_collective_has() -> None:
    plan = exact(lambda x: jnp.max(x + 1j * x, 0), TABLE, tile=("x", 0, "a"))
    assert plan.counts()["all_gather"] == 1


def test_a_momentum_that_looks_like_the_parameters_has_its_own_successor() -> None:
    def step(params: Any, momentum: Any, x: Any) -> Any:
        grads = jax.grad(lambda w: jnp.sum((x @ w) ** 2))(params)
        momentum = 0.9 * momentum + grads
        return params - 0.1 * momentum, momentum

    w, x = np.ones((8, 8), np.float32), np.ones((16, 8), np.float32)
    plan = pt.plan(step, pt.Mesh(data=8), w, w, x)
    plan = plan.apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(1, "data", params="params", optimizer="momentum"))
    assert plan.layout(["result/0", "result/1"]) == {"result/0": "f32[8, 8]", "result/1": "f32[data, 8]"}
    assert (
        plan.counts()
        == pt.plan(step, pt.Mesh(data=8), w, w, x)
        .apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(2, "data", params="params", optimizer="momentum"))
        .counts()
    )


def test_an_empty_slice_by_steps_is_empty_on_every_device() -> None:
    plan = exact(lambda x: jnp.concatenate([x[:, 3:2:2], x], 1), TABLE, tile=("x", 0, "a"))
    assert not any(plan.counts().values())


def test_a_concatenation_of_one_array_is_that_array() -> None:
    plan = exact(lambda x: lax.concatenate([x.reshape(-1)], 0) * 2, TABLE, tile=("x", 0, "a"))
    assert not any(plan.counts().values())


def test_a_convolution_of_no_images_makes_none() -> None:
    def convolved(kernel: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(jnp.zeros((0, 8, 6)), kernel, (1,), "SAME")

    exact(convolved, np.ones((16, 8, 3), np.float32), tile=("kernel", 0, "a"))


@pytest.mark.parametrize("gathered", [0, 1])
def test_what_a_transform_gives_is_gathered_along_any_dim(gathered: int) -> None:
    """XLA:CPU transforms only arrays that lie row by row. Where it moves the result, it wants it in another order."""

    def transformed(x: Any) -> Any:
        return jnp.fft.fft(x)

    x = RANDOM.normal(size=(16, 8, 4)).astype(np.complex64)
    plan = pt.plan(transformed, MESH, x).tile("x", gathered, "a").replicate("result", "a")
    np.testing.assert_allclose(plan.compile()(x), np.fft.fft(x), rtol=1e-4, atol=1e-5)
    gradient = jax.grad(lambda x: jnp.abs(plan.compile()(x)).sum())(x)
    np.testing.assert_allclose(gradient, jax.grad(lambda x: jnp.abs(jnp.fft.fft(x)).sum())(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [lambda x: jnp.argmax(x, 0), lambda x: jnp.median(x, 0), lambda x: jnp.sort(x, 0)[2]])
def test_rows_that_are_padded_over_two_axes_are_compared(function: Any) -> None:
    """Without one of the axes, the blocks of the other do not fit the dim."""
    x = RANDOM.normal(size=(10, 7)).astype(np.float32)
    plan = pt.plan(function, MESH, x).apply(pt.Tile({"x": 0}, ("a", "b"), padded=True))
    assert plan.check(x) < 1e-6 and str(plan)


def test_complex_results_are_compared_as_they_are() -> None:
    plan = pt.plan(lambda x: jnp.fft.fft(x), MESH, TABLE).tile("x", 0, "a")
    assert plan.check(TABLE) < 1e-5


def test_a_result_is_as_weakly_typed_as_the_function_gives_it() -> None:
    def function(x: Any, n: Any) -> Any:
        return x * n, n * 2, 3, jnp.full((8,), 2.0), lax.fori_loop(0, 3, lambda _, c: c + n, n)

    plan = pt.plan(function, MESH, TABLE, 2.0).tile("x", 0, "a")
    wanted = [each.weak_type for each in jax.tree.leaves(jax.jit(function)(TABLE, 2.0))]
    for run in (plan.compile(), plan.lower("collective").run, pt.jit(function, mesh=MESH, tactics=[pt.Tile({"x": 0}, "a")])):
        assert [each.weak_type for each in jax.tree.leaves(run(TABLE, 2.0))] == wanted


def test_an_error_of_jax_while_it_traces_names_the_function_and_its_arguments() -> None:
    def branching(params: Any, n: Any) -> Any:
        return params["w"] if n > 0 else -params["w"]

    with pytest.raises(jax.errors.TracerBoolConversionError, match=r"branching at .*test_found.py.*\n?.*the argument n"):
        pt.plan(branching, MESH, {"w": TABLE}, 3)


def test_trips_that_stop_an_axis_say_that_they_are_trips() -> None:
    plan = pt.plan(lambda x: lax.scan(lambda c, r: (c + r, c), x[0], x), MESH, TABLE).tile("x", 0, "a")
    assert any("the trips of a loop run one after another" in str(stop) for stop in plan.blocked)


def test_a_name_inside_a_body_that_the_program_does_not_know_is_said_how_to_give() -> None:
    plan = pt.plan(lambda x: lax.scan(lambda carry, r: (carry + r, None), x[0], x), MESH, TABLE)
    with pytest.raises(pt.Error, match=r'pt\.tag\(carry, "carry"\)'):
        plan.tile("carry", 0, "a")


def test_the_derivative_by_an_integer_holds_nothing_and_has_its_shape() -> None:
    ids, nothing = np.arange(8, dtype=np.int32), np.zeros(8, jax.dtypes.float0)
    gradient = jax.grad(lambda x, n: (x[:8] * n[None]).sum(), (0, 1), allow_int=True)
    plan = pt.plan(lambda x, n, z: (*gradient(x, n), z), MESH, TABLE, ids, nothing).tile("x", 0, "a").tile("z", 0, "b")
    by_x, by_n, given = plan.compile()(TABLE, ids, nothing)
    np.testing.assert_array_equal(by_x, gradient(TABLE, ids)[0])
    assert by_n.dtype == given.dtype == jax.dtypes.float0 and by_n.shape == given.shape == (8,)
    assert plan.check(TABLE, ids, nothing) == 0


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"])
def test_numbers_of_less_than_a_byte_arrive_as_they_were(dtype: str) -> None:
    x = jnp.asarray(RANDOM.integers(0, 2, (16, 8))).astype(dtype)
    exact(lambda x: x[::-1], x, tile=("x", 0, "a"))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_a_plan_runs_on_its_own_mesh_where_the_program_has_set_another_one(kind: AxisType) -> None:
    # Explicit axes have no name for blocks over a part of the devices, and a call says so.
    says = pytest.warns(pt.PlacementWarning, match="cannot say how they lie") if kind is AxisType.Explicit else nullcontext()
    with jax.set_mesh(jax.make_mesh((8,), ("all",), axis_types=(kind,))), says:
        plan = exact(lambda x: jnp.tanh(x) * 2, TABLE, tile=("x", 0, "a"))
        graph = plan.lower("collective")
        np.testing.assert_array_equal(graph.run(TABLE), plan.compile()(TABLE))
        assert "main" in graph.stablehlo(*graph.kernels)


@pytest.mark.parametrize(("sizes", "axes"), [((8,), ("z",)), ((8,), ("a",)), ((2, 4), ("a", "b"))])
def test_an_argument_with_axes_of_another_mesh_in_its_type_is_taken(sizes: tuple[int, ...], axes: tuple[str, ...]) -> None:
    def loss(w: Any, x: Any) -> Any:
        return (jnp.tanh(x @ w) ** 2).sum()

    step, weights = jax.grad(loss), TABLE.T.copy()
    there = jax.NamedSharding(jax.make_mesh(sizes, axes, axis_types=(AxisType.Explicit,) * len(axes)), jax.P(*axes))
    explicit = jax.device_put(TABLE, there)
    plan = pt.plan(step, MESH, weights, explicit).tile("x", 0, "a")
    np.testing.assert_array_equal(plan.compile()(weights, explicit), plan.compile()(weights, TABLE))
    assert plan.check(weights, explicit) < 1e-3
    assert plan.lower("collective").run(weights, explicit).shape == (8, 16)
    if axes == ("a", "b"):
        return  # JAX takes the axes of both meshes for one when it differentiates; docs/design.md says so.
    f = pt.jit(loss, mesh=MESH, tactics=[pt.Tile({"x": 0}, "a")])
    cotangent = jax.grad(f, argnums=1)(weights, explicit)
    np.testing.assert_allclose(cotangent, jax.grad(loss, argnums=1)(weights, TABLE), rtol=1e-4)


def test_a_program_of_arrays_without_elements_alone_runs() -> None:
    def function(x: Any, y: Any) -> Any:
        return x @ y, x.sum(1), jnp.zeros((1,)).at[0].set(x.sum())

    args = jnp.ones((8, 0)), jnp.ones((0, 8))
    plan = pt.plan(function, MESH, *args).tile("result/0", 0, "a").tile("result/0", 1, "b")
    for run in (plan.compile(), plan.lower("collective").run):
        for ours, theirs in zip(run(*args), function(*args), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_what_is_the_same_in_all_trips_of_a_loop_is_sent_once_and_counted_once() -> None:
    """A broadcast of a number lies on the loop, and does not vary in it."""

    def loss(y: Any, i: Any) -> Any:
        branch = lambda y: 0.5 * y + y.mean()  # noqa: E731
        return jnp.tanh(lax.cond(i[0] > 2, branch, branch, y)).sum()

    plan = pt.plan(jax.grad(loss), pt.Mesh(a=3), jnp.ones((3, 3, 3)), jnp.zeros(3, int)).tile("y", 1, "a")
    plan = plan.tile("add#0", 0, "t:3").tile("backward/broadcast_in_dim#1", 2, "a")
    _, sent = executions(plan.spmd())
    counted = sum((Counter(each) for each in plan.counts().branches.values()), start=Counter[str]())
    assert sent["all_to_all"] == counted["all_to_all"] == 2
    there = [each for each in plan.collectives() if each.kind == "all_to_all"]
    assert [each.times for each in there] == [1, 1] and "x 3 trips" not in plan.explain(there[0])
    args = jnp.ones((3, 3, 3)), jnp.zeros(3, int)
    assert received(collectives(plan.compile(), *args)) == plan.bytes_per_device() == 27
    assert plan.check(*args) < 1e-3


def test_what_nothing_needs_is_not_sent_in_a_loop_and_not_counted() -> None:
    def reduced(x: Any) -> Any:
        return jnp.tanh(lax.linalg.tridiagonal(x, lower=True)[0])

    plan = pt.plan(reduced, pt.Mesh(a=2), jnp.ones((4, 4, 4))).tile("x", 0, "a").tile("x", 0, "t:2")
    plan = plan.tile("tridiagonal#0.1", 1, "a")
    always, _ = executions(plan.spmd())
    assert any("all_to_all" in str(move.path) for move in plan.decisions.moves)
    assert not any(always.values()) and not any(plan.counts().values()) and not plan.collectives()
