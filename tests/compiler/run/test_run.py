"""A compiled plan is the original function, spread over the devices."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false

import copy
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import partita as pt
from partita.compiler.run.compare import relative_difference
from partita.compiler.run.compiled import Compiled
from partita.dialects.definitions.registry import definitions

MESH = pt.Mesh(data=4, model=2)
RANDOM = np.random.default_rng(0)


def draw(*shape: int) -> Any:
    return RANDOM.normal(0.0, 0.5, shape).astype(np.float32)


X, W = draw(16, 8), draw(8, 8)


def loss(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def equal(ours: Any, theirs: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-7), ours, theirs)


@pytest.fixture(scope="session")
def compiled() -> Compiled:
    plan = pt.plan(loss, MESH, X, W).tile("x", 0, "data").tile("w", 1, "model")
    assert plan.counts()["all_reduce"] == 1
    return plan.compile()


TRANSFORMATIONS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "call": lambda f: f,
    "jit": jax.jit,
    "grad": lambda f: jax.grad(f, argnums=(0, 1)),
    "value_and_grad": lambda f: jax.jit(jax.value_and_grad(f, argnums=1)),
    "vmap": lambda f: lambda x, w: jax.vmap(f, (0, None))(jnp.stack([x, 2 * x, -x]), w),
    "vmap of grad": lambda f: lambda x, w: jax.vmap(jax.grad(f, 1), (0, None))(jnp.stack([x, -2 * x]), w),
    "jvp": lambda f: lambda x, w: jax.jvp(f, (x, w), (w[:1] + x, w)),
    "hessian": lambda f: lambda x, w: jax.hessian(lambda row: f(x, w.at[0].set(row)))(w[0]),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f), argnums=1),
    "scan": lambda f: lambda x, w: jax.lax.scan(lambda w, _: (w - jax.grad(f, 1)(x, w), f(x, w)), w, length=3),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_transformation_of_a_compiled_plan_is_that_of_the_function(name: str, compiled: Compiled) -> None:
    transform = TRANSFORMATIONS[name]
    equal(transform(compiled)(jnp.asarray(X), jnp.asarray(W)), transform(loss)(jnp.asarray(X), jnp.asarray(W)))


def test_results_have_the_shardings_of_the_plan() -> None:
    def two(x: jax.Array, w: jax.Array) -> dict[str, jax.Array]:
        return {"y": x @ w, "xx": x + 1}

    plan = pt.plan(two, MESH, X, W).tile("x", 0, "data").tile("w", 1, "model")
    assert plan.layout("result") == {"result/xx": "f32[data*4, 8]", "result/y": "f32[data*4, model*4]"}
    result = plan.compile()(X, W)
    wanted = {"y": PartitionSpec("data", "model"), "xx": PartitionSpec("data")}
    for name, array in result.items():
        assert isinstance(array.sharding, NamedSharding)
        assert array.sharding.mesh.axis_names == ("data", "model")
        assert array.sharding.is_equivalent_to(NamedSharding(array.sharding.mesh, wanted[name]), 2)


def test_two_axes_on_one_dim_are_one_sharding() -> None:
    plan = pt.plan(lambda x: x * 2, MESH, X).tile("x", 0, "data").tile("x", 0, "model")
    (shard, *_) = plan.compile()(X).addressable_shards
    assert plan.layout("x") == {"x": "f32[data*model*2, 8]"}
    assert shard.data.shape == (2, 8)


def update(params: dict[str, jax.Array], x: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    return jax.tree.map(lambda p: p - 0.1 * p, params), loss(x, params["w"])


def test_donated_arguments_are_gone_after_the_call() -> None:
    step = pt.plan(update, MESH, {"w": W}, X).tile("x", 0, "data").tile("params/w", 1, "model").compile(donate="params")
    params = {"w": jax.device_put(W, step.in_shardings[0])}
    x = jnp.asarray(X)
    after, _ = step(params, x)
    assert params["w"].is_deleted() and not x.is_deleted()
    equal(after, {"w": W - 0.1 * W})


def test_a_step_takes_its_own_results_again() -> None:
    plan = pt.plan(update, MESH, {"w": W}, X).tile("x", 0, "data").tile("params/w", 1, "model")
    assert plan.successors == {"params/w": "result/0/w"}
    step, params = plan.compile(), {"w": jnp.asarray(W)}
    for _ in range(3):
        params, _ = step(params, X)
    equal(params["w"], W * 0.9**3)


CONSTANT = draw(8, 8)


def configured(x: jax.Array, *rest: jax.Array, scale: Any, mode: str = "plain", bias: Any = None) -> dict[str, Any]:
    y = (x @ CONSTANT) * scale + sum(rest, 0.0)
    if bias is not None:
        y = y + bias
    return {"y": -y if mode == "negative" else y, "nothing": None, "three": 3.0}


@pytest.mark.parametrize(
    "args, kwargs",
    [
        ((X,), {"scale": 2.0}),
        ((X, X, X), {"scale": 2.0, "mode": "negative"}),
        ((X,), {"scale": np.float32(3), "bias": X, "mode": "negative"}),
    ],
)
def test_keyword_static_none_and_closed_over_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    plan = pt.plan(configured, MESH, *args, static_argnames=("mode",), **kwargs).tile("x", 0, "data")
    plan = plan.tile("const/0", 1, "model")
    ours, theirs = plan.compile()(*args, **kwargs), configured(*args, **kwargs)
    assert ours["nothing"] is None
    equal(ours, theirs)
    assert plan.check(*args, **kwargs) < 1e-5


def test_static_arguments_may_be_positional() -> None:
    def power(x: jax.Array, n: int) -> jax.Array:
        return x**n

    plan = pt.plan(power, MESH, X, 3, static_argnames="n").tile("x", 0, "data")
    equal(plan.compile()(X, 3), X**3)
    compiled = plan.compile()
    equal(compiled(X, n=3), X**3)
    assert str(compiled.jaxpr(X, 3)) == str(compiled.jaxpr(X, n=3))
    assert "integer_pow[y=3]" in str(compiled.jaxpr(X, 3)) and "main" in compiled.lower(X, 3).as_text()


def test_a_copy_of_a_compiled_plan_is_the_plan(compiled: Compiled) -> None:
    copied = copy.deepcopy({"step": compiled})["step"]
    assert copied is compiled and copy.copy(compiled)(X, W) == compiled(X, W)


def dropout(key: jax.Array, x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
    next_key, own = jax.random.split(key)
    return next_key, jnp.where(jax.random.bernoulli(own, 0.5, x.shape), x @ w, 0.0)


@pytest.mark.parametrize("key", [jax.random.key(7), jax.random.PRNGKey(7)], ids=["typed", "raw"])
def test_a_partitioned_dropout_drops_the_same_numbers(key: jax.Array) -> None:
    plan = pt.plan(dropout, MESH, key, X, W).tile("x", 0, "data").tile("w", 1, "model")
    assert plan.layout("result/1") == {"result/1": "f32[data*4, model*4]"} and not plan.whole
    (next_key, ours), (their_key, theirs) = plan.compile()(key, X, W), dropout(key, jnp.asarray(X), jnp.asarray(W))
    assert next_key.dtype == their_key.dtype
    equal(jax.random.bits(next_key), jax.random.bits(their_key))
    assert np.array_equal(np.asarray(ours) == 0, np.asarray(theirs) == 0)
    equal(ours, theirs)
    step = plan.compile()
    equal(jax.grad(lambda w: step(key, X, w)[1].sum())(W), jax.grad(lambda w: dropout(key, X, w)[1].sum())(W))


def test_a_plan_is_not_checked_on_traced_values() -> None:
    plan = pt.plan(jnp.sin, MESH, X)
    with pytest.raises(pt.Error, match="`check` compares arrays, got a traced value"):
        jax.jit(plan.check)(X)


def test_an_array_of_keys_is_tiled() -> None:
    keys = jax.random.split(jax.random.key(0), 8)
    plan = pt.plan(jax.vmap(lambda key: jax.random.normal(key, (4,))), MESH, keys)
    (name,) = plan.arguments()
    tiled = plan.tile(name, 0, "data")
    assert tiled.layout("result") == {"result": "f32[data*2, 4]"}
    assert tiled.check(keys) == 0


def gradient(x: jax.Array, w: jax.Array) -> jax.Array:
    """Through a layer that is recomputed in the backward pass."""
    layer = jax.checkpoint(lambda x, w: jnp.sin(jnp.sin(x @ w) @ w))
    return jax.grad(lambda w: jnp.sum(layer(x, w) ** 2))(w)


def test_remat_stays_recomputation() -> None:
    plan = pt.plan(gradient, MESH, X, W).tile("x", 0, "data")
    text = str(plan.compile().jaxpr(X, W))
    # Forward both sines, backward the inner one again.
    assert text.count("= sin ") == 3
    assert "optimization_barrier" in text
    assert plan.check(X, W) < 2e-4


def test_remat_is_partitioned_like_the_rest() -> None:
    plan = pt.plan(gradient, MESH, X, W).tile("x", 0, "data")
    assert plan.counts() == {"all_gather": 0, "all_reduce": 1, "reduce_scatter": 0, "all_to_all": 0, "permute": 0}
    assert not plan.conflicts


def branches(x: jax.Array) -> jax.Array:
    doubled = jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, jnp.tanh(x)))[1]
    return jax.lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, doubled) * x


def test_loops_and_branches_are_partitioned() -> None:
    plan = pt.plan(branches, MESH, X).tile("x", 0, "data")
    assert not plan.whole
    assert plan.layout("result") == {"result": "f32[data*4, 8]"}
    assert plan.counts() == {**dict.fromkeys(plan.counts(), 0), "all_reduce": 1}
    assert plan.check(X) < 1e-6
    assert plan.check(-X) < 1e-6


def layers(x: jax.Array, ws: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), jnp.sum(h)), x, ws)


def test_a_scan_is_partitioned_and_differentiated() -> None:
    ws = draw(4, 8, 8)
    plan = pt.plan(layers, MESH, X, ws).tile("x", 0, "data")
    assert plan.layout("result") == {"result/0": "f32[data*4, 8]", "result/1": "f32[4]"}
    assert plan.counts()["all_reduce"] == 1 and not plan.whole
    assert plan.check(X, ws) < 2e-4
    step = plan.compile()
    equal(jax.grad(lambda ws: step(X, ws)[0].sum())(ws), jax.grad(lambda ws: layers(X, ws)[0].sum())(ws))


def test_a_print_runs_once(capfd: pytest.CaptureFixture[str]) -> None:
    def shout(x: jax.Array) -> jax.Array:
        jax.debug.print("the first is {}", x[0, 0])
        return x * 2

    plan = pt.plan(shout, MESH, X).tile("x", 0, "data")
    plan.compile()(np.ones_like(X)).block_until_ready()
    jax.effects_barrier()
    assert capfd.readouterr().out.count("the first is 1.0") == 1
    assert [each.primitive for each in plan.whole] == ["debug_print"]


@pytest.mark.parametrize("mesh", [pt.Mesh(), pt.Mesh(data=1), pt.Mesh(data=1, model=2), pt.Mesh(data=2)], ids=str)
def test_small_meshes(mesh: pt.Mesh) -> None:
    plan = pt.plan(loss, mesh, X, W)
    if "data" in mesh:
        plan = plan.tile("x", 0, "data")
    assert plan.counts()["all_reduce"] == (mesh.get("data", 1) > 1)
    assert plan.check(X, W) < 2e-4


def test_scalars_empty_arrays_and_results_that_are_arguments() -> None:
    def odd(x: jax.Array, rate: jax.Array, none: jax.Array) -> tuple[jax.Array, ...]:
        return x, x, rate * 2, none + 1, jnp.float32(3)

    args = (X, np.float32(0.5), np.ones((0, 8), np.float32))
    plan = pt.plan(odd, MESH, *args).tile("x", 0, "data")
    with pytest.raises(pt.Error, match="its dim 0 has no elements"):
        plan.tile("none", 1, "model")
    equal(plan.compile()(*args), odd(*map(jnp.asarray, args)))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([2.0, 11.0], [1.0, 10.0], 1 / 1.001),
        ([0.0, 1000.0], [0.0, 1010.0], 10 / 1010.001),
        ([1e-3, np.inf, np.nan], [0.0, np.inf, np.nan], 1.0),
        ([1 + 1j], [1 - 1j], 2 / (1e-3 + 2**0.5)),
        ([], [], 0.0),
    ],
    ids=["the largest", "large numbers", "near zero", "complex", "no elements"],
)
def test_what_check_measures(ours: list[complex], theirs: list[complex], expected: float) -> None:
    assert relative_difference("y", np.asarray(ours), np.asarray(theirs)) == pytest.approx(expected)


def test_check_sees_a_difference() -> None:
    plan = pt.plan(lambda x: jnp.sum(x), MESH, X).tile("x", 0, "data")
    assert plan.check(X) < 1e-5
    assert plan.check(X * np.nan) == 0
    with pytest.raises(pt.Error, match="plan again for other shapes"):
        plan.check(X[:8])


def test_lowering_puts_no_array_that_is_closed_over_on_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices that only compile, such as those of a topology, take no arrays."""
    scale = jnp.arange(8.0)[None]
    plan = pt.plan(lambda x: jnp.tanh(x * scale), MESH, X).tile("x", 0, "data")
    jitted = pt.jit(lambda x: jnp.tanh(x * scale), mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")], devices=jax.devices()[:8])
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("an array is put on devices")

    monkeypatch.setattr(jax, "device_put", refused)
    compiled = plan.compile(devices=jax.devices()[:8])
    assert "tanh" in compiled.lower(shape).as_text() and "tanh" in str(compiled.jaxpr(shape))
    assert "tanh" in jitted.lower(shape).as_text()
    monkeypatch.setattr("partita.compiler.run.compiled.backends", dict)
    gradient = jax.grad(lambda x: plan.compile()(x).sum())
    assert "tanh" in jax.jit(gradient).lower(shape).as_text()
    monkeypatch.undo()
    equal(compiled(X), np.tanh(X * np.arange(8.0)[None]))


def test_a_call_on_devices_that_are_only_described_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `test_devices_page`, without XLA's compiler for TPUs: a device that cannot run raises AttributeError in JAX."""
    monkeypatch.setattr("partita.compiler.run.compiled.backends", dict)

    def cannot(*_: Any, **__: Any) -> Any:
        raise AttributeError("'Executable' object has no attribute 'local_devices'")

    compiled = pt.plan(lambda x: jnp.tanh(x), MESH, X).compile()
    monkeypatch.setattr(compiled, "issued", cannot)
    jitted = pt.jit(lambda x: jnp.tanh(x), mesh=MESH)
    monkeypatch.setitem(jitted.made, definitions.replaced, cannot)
    for call in (compiled, jitted):
        with pytest.raises(pt.Error, match="is compiled for devices that are only described"):
            call(X)


def test_the_derivative_of_a_program_that_closes_over_a_key_is_compiled() -> None:
    """The key's numbers are an array, also when the program is planned while JAX traces."""
    key = jax.random.key(0)

    def noisy(x: Any) -> Any:
        return jnp.sum(jnp.tanh(x) * jax.random.normal(key, x.shape))

    compiled = pt.plan(noisy, MESH, X).tile("x", 0, "data").compile()
    equal(jax.jit(jax.grad(compiled))(X), jax.grad(noisy)(X))
    jitted = pt.jit(noisy, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    jax.jit(jitted)(X)
    assert jitted.plan(X).check(X) < 2e-4


UNREAD: dict[str, Callable[..., Any]] = {
    "unread": lambda x, y: x * 2,
    "passed on": lambda x, y: (x * 2, y),
    "none is read": jax.grad(lambda x, y: (x * 2).sum(), argnums=(0, 1)),
    "no result": lambda x, y: (),
    "read": lambda x, y: (x * 2, y + 1),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_program_takes_each_argument_in_the_layout_of_the_plan(name: str) -> None:
    x, y = jnp.asarray(X), jnp.ones((64, 64))
    plan = pt.plan(UNREAD[name], pt.Mesh(data=4), x, y).tile("x", 0, "data").tile("y", 0, "data")
    compiled = plan.compile()
    assert plan.layout("y") == {"y": "f32[data*16, 64]"}
    if name != "no result":
        taken = compiled.lower(x, y).compile().memory_analysis()
        assert taken is not None
        assert taken.argument_size_in_bytes == plan.memory().arguments == (x.nbytes + y.nbytes) // 4
    equal(compiled(x, y), UNREAD[name](x, y))


def test_unread_arguments_of_any_type_change_nothing() -> None:
    others = [np.full((4, 2), np.nan, np.float32), np.ones((4,), bool), np.full((4,), 1 + 1j, np.complex64), np.ones((4, 0))]

    def program(x: Any, others: Any, key: Any) -> Any:
        return x * 2, jnp.sum(x)

    keys = jax.random.split(jax.random.key(0), 4)
    plan = pt.plan(program, pt.Mesh(data=4), X, others, keys)
    for name in ("x", "others/0", "others/1", "others/2", "key"):
        plan = plan.tile(name, 0, "data")
    equal(plan.compile()(X, others, keys), program(X, others, keys))
