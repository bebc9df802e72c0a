"""`pt.jit` is `jax.jit` with tactics."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import dataclasses
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import NamedSharding, PartitionSpec

import partita as pt

MESH = pt.Mesh(data=4, model=2)
TACTICS = (pt.DataParallel("data", inputs="x"), pt.Tile({"w": 1}, "model"))
RANDOM = np.random.default_rng(0)


def draw(*shape: int) -> Any:
    return RANDOM.normal(0.0, 0.5, shape).astype(np.float32)


X, W = draw(16, 8), draw(8, 8)


def model(x: jax.Array, w: jax.Array) -> jax.Array:
    """A layer."""
    return jnp.tanh(x @ w)


def equal(ours: Any, theirs: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-7), ours, theirs)


def test_a_call_runs_the_function_on_the_devices() -> None:
    layer = pt.jit(model, mesh=MESH, tactics=TACTICS)
    result = layer(X, W)
    equal(result, model(X, W))
    assert isinstance(result.sharding, NamedSharding)
    assert result.sharding.spec == PartitionSpec("data", "model")


def test_jax_export_takes_the_function_with_its_layouts() -> None:
    layer = pt.jit(model, mesh=MESH, tactics=TACTICS)
    given = jax.device_put((X, W), layer.in_shardings(X, W))
    exported = export.export(layer)(*given)
    assert exported.nr_devices == MESH.size
    result = exported.call(*given)
    equal(result, model(X, W))
    assert result.sharding.is_equivalent_to(layer(*given).sharding, result.ndim)


def test_a_function_is_traced_and_asked_for_its_shapes_as_one_of_jax_jit() -> None:
    layer = pt.jit(model, mesh=MESH, tactics=TACTICS)
    assert layer.trace(X, W).lower().as_text() == layer.lower(X, W).as_text()
    result = layer(X, W)
    shape = layer.eval_shape(X, W)
    assert (shape.shape, shape.dtype) == (result.shape, result.dtype) and shape.sharding == result.sharding


def test_the_shapes_of_the_results_are_those_of_a_call() -> None:
    def step(params: dict[str, jax.Array], key: jax.Array, x: jax.Array) -> tuple[dict[str, jax.Array], jax.Array, jax.Array]:
        noise = jax.random.normal(key, x.shape)
        return {"w": params["w"] - (x + noise).sum()}, jax.random.split(key)[0], x.sum(1) + 1

    stepped = pt.jit(step, mesh=MESH, tactics=[pt.DataParallel("data", inputs="x"), pt.Tile({"params/w": 1}, "model")])
    given = {"w": W}, jax.random.key(0), X
    shapes, results = stepped.eval_shape(*given), stepped(*given)
    assert jax.tree.structure(shapes) == jax.tree.structure(results)
    for shape, result in zip(jax.tree.leaves(shapes), jax.tree.leaves(results), strict=True):
        kind = jax.typeof(result)
        assert (shape.shape, shape.dtype, shape.weak_type) == (kind.shape, kind.dtype, kind.weak_type)
        assert shape.sharding.is_equivalent_to(result.sharding, result.ndim)


def test_jit_is_also_a_decorator() -> None:
    @pt.jit(mesh=MESH, tactics=TACTICS)
    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        """A layer."""
        return jnp.tanh(x @ w)

    equal(layer(X, w=W), model(X, W))
    assert layer.__name__ == "layer" and layer.__doc__ == "A layer."
    assert list(inspect.signature(layer).parameters) == ["x", "w"]


def test_a_plan_is_made_once_for_each_tree_shape_dtype_and_static_value() -> None:
    traces: list[tuple[Any, ...]] = []

    def counted(x: jax.Array, w: Any, n: int = 1) -> jax.Array:
        traces.append((x.shape, x.dtype, n))
        return x @ jnp.asarray(jax.tree.leaves(w)[0]) * n

    layer = pt.jit(counted, mesh=MESH, tactics=[pt.DataParallel("data", inputs="x")], static_argnames="n")
    for _ in range(3):
        layer(X, W)
        layer(jnp.asarray(X), W)
    assert len(traces) == 1
    variants: list[tuple[Any, ...]] = [(X[:8], W), (X.astype(np.int32), W), (X, {"w": W}), (X, W, 2)]
    for number, args in enumerate(variants, 2):
        equal(layer(*args), counted(*args))
        traces.pop()
        layer(*args)
        assert len(traces) == number


def test_the_plan_of_a_call_is_shown() -> None:
    layer = pt.jit(model, mesh=MESH, tactics=TACTICS)
    shapes = (jax.ShapeDtypeStruct(X.shape, X.dtype), jax.ShapeDtypeStruct(W.shape, W.dtype))
    for args in ((X, W), shapes):
        plan = layer.plan(*args)
        assert plan.layout("result") == {"result": "f32[data*4, model*4]"}
        assert plan.trace.splitlines() == [repr(tactic) for tactic in TACTICS]
    assert "sdy.sharding" in layer.lower(*shapes).as_text() or "sharding" in layer.lower(*shapes).as_text()


TRANSFORMATIONS: dict[str, Any] = {
    "jit": jax.jit,
    "grad": lambda f: jax.grad(lambda x, w: f(x, w).sum(), argnums=(0, 1)),
    "jit of value_and_grad": lambda f: jax.jit(jax.value_and_grad(lambda x, w: (f(x, w) ** 2).sum(), argnums=1)),
    "vmap": lambda f: lambda x, w: jax.vmap(f, (None, 0))(x, jnp.stack([w, -w])),
    "scan": lambda f: lambda x, w: jax.lax.scan(lambda h, _: (f(h, w), h.sum()), x, length=3),
    "twice": lambda f: lambda x, w: f(f(x, w), w),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_transformation_of_a_jitted_function_is_that_of_the_function(name: str) -> None:
    layer, transform = pt.jit(model, mesh=MESH, tactics=TACTICS, reshard="allow"), TRANSFORMATIONS[name]
    equal(transform(layer)(jnp.asarray(X), jnp.asarray(W)), transform(model)(jnp.asarray(X), jnp.asarray(W)))


def test_arguments_are_put_where_the_plan_wants_them() -> None:
    def step(mode: str, params: dict[str, Any], *inputs: Any, key: Any = None) -> Any:
        return model(inputs[0] + inputs[1], params["w"]) * (2 if mode == "double" else 1)

    tactics = [pt.Tile({"inputs/*": 0}, "data"), pt.Tile({"params/w": 1}, "model")]
    train = pt.jit(step, mesh=MESH, tactics=tactics, static_argnames="mode")
    args = ({"w": W}, X, X)
    none, *wanted = train.in_shardings("double", *args)
    placed = jax.device_put(args, tuple(wanted))
    assert none is None and placed[0]["w"].sharding.spec == PartitionSpec(None, "model")
    assert [each.sharding.spec for each in placed[1:]] == [PartitionSpec("data", None)] * 2
    equal(train("double", *placed), step("double", *args))


def test_an_array_of_keys_is_put_where_the_plan_wants_it() -> None:
    draws = pt.jit(jax.vmap(jax.random.normal), mesh=MESH, tactics=[pt.Tile({"args/0": 0}, "data")])
    keys = jax.random.split(jax.random.key(0), 8)
    (placed,) = jax.device_put((keys,), draws.in_shardings(keys))
    assert placed.sharding.shard_shape((8,)) == (2,)
    equal(draws(placed), jax.vmap(jax.random.normal)(keys))


def test_a_method_is_bound_as_in_jax() -> None:
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: Any

        @pt.jit(mesh=MESH, tactics=[pt.Tile({"x": 0}, "data"), pt.Tile({"self/w": 1}, "model")])
        def call(self, x: jax.Array) -> jax.Array:
            """A layer."""
            return model(x, self.w)

    layer = Layer(jnp.asarray(W))
    equal(layer.call(X), model(X, W))
    equal(jax.grad(lambda layer, x: layer.call(x).sum())(layer, X).w, jax.grad(lambda w: model(X, w).sum())(W))
    assert layer.call.plan(X).layout("result") == {"result": "f32[data*4, model*4]"}
    assert layer.call.in_shardings(X)[0].spec == PartitionSpec("data", None)
    assert layer.call.__name__ == "call" and list(inspect.signature(layer.call).parameters) == ["x"]
    assert Layer.call.in_shardings(layer, X)[0].w.spec == PartitionSpec(None, "model")


def test_an_object_that_is_not_a_tree_is_a_static_self_or_an_error() -> None:
    class Layer:
        scale = 2.0

        def call(self, x: jax.Array) -> jax.Array:
            return x * self.scale

        static = pt.jit(call, mesh=MESH, tactics=[pt.DataParallel("data", inputs="x")], static_argnames="self")
        traced = pt.jit(call, mesh=MESH)

    equal(Layer().static(X), X * 2)
    assert Layer().static.in_shardings(X)[0].spec == PartitionSpec("data", None)
    with pytest.raises(pt.Error, match="argument `self` of `call` must be an array") as caught:
        Layer().traced(X)
    assert "static_argnames='self'" in str(caught.value)


def test_donated_arguments_are_gone_after_the_call() -> None:
    def step(params: dict[str, jax.Array], x: jax.Array) -> dict[str, jax.Array]:
        return {"w": params["w"] - 0.1 * (x.T @ model(x, params["w"]))}

    train = pt.jit(step, mesh=MESH, tactics=[pt.DataParallel("data", inputs="x")], donate_argnames=("params",))
    params, x = {"w": jnp.asarray(W)}, jnp.asarray(X)
    after = train(train(params, x), x)
    assert params["w"].is_deleted() and not x.is_deleted()
    equal(after, step(step({"w": jnp.asarray(W)}, x), x))


def test_a_call_takes_keys_closed_over_arrays_and_none() -> None:
    shift = np.linspace(0.0, 1.0, 8, dtype=np.float32)

    def noisy(key: jax.Array, x: jax.Array, mask: jax.Array | None = None) -> tuple[jax.Array, Any, jax.Array]:
        key, own = jax.random.split(key)
        return key, mask, x + shift[None] + jax.random.normal(own, x.shape)

    layer, key = pt.jit(noisy, mesh=MESH, tactics=[pt.DataParallel("data", inputs="x")]), jax.random.key(0)
    (next_key, none, ours), (their_key, _, theirs) = layer(key, X), noisy(key, jnp.asarray(X))
    assert none is None and next_key == their_key
    equal(ours, theirs)


def test_errors_come_at_the_call_and_are_ours() -> None:
    layer = pt.jit(model, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    with pytest.raises(pt.Error, match="6 elements, which do not divide over `data`"):
        layer(X[:6], W)
    with pytest.raises(pt.Error, match="argument `w` of `model` must be an array"):
        layer(X, "w")  # pyright: ignore[reportArgumentType]
    with pytest.raises(pt.Error, match="missing a required argument: 'w'"):
        layer(X)  # pyright: ignore[reportCallIssue]
    elsewhere = jax.device_put((X, W), jax.devices()[5])
    with pytest.raises(pt.Error, match="argument `x` is committed to cpu:5") as caught:
        layer(*elsewhere)
    assert "jax.device_put(args, f.in_shardings(*args))" in str(caught.value)
    equal(layer(*jax.device_put(elsewhere, layer.in_shardings(*elsewhere))), model(X, W))
    with pytest.raises(pt.Error, match="needs 16 devices"):
        pt.jit(model, mesh=pt.Mesh(data=16))(X, W)
    equal(layer(X, W), model(X, W))


def test_an_error_raised_by_the_user_stays_unchanged() -> None:
    def broken(x: jax.Array) -> jax.Array:
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        pt.jit(broken, mesh=MESH)(X)
    with pytest.raises(TypeError, match="dot_general"):
        pt.jit(model, mesh=MESH)(X, X)


def test_a_plan_is_made_once_and_shared_by_all_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[int] = []

    def counted(x: jax.Array, w: jax.Array) -> jax.Array:
        traces.append(1)
        return jnp.tanh(x @ w)

    layer = pt.jit(counted, mesh=MESH, tactics=TACTICS)
    plan = layer.plan(X, W)
    assert layer.plan(jax.ShapeDtypeStruct(X.shape, X.dtype), W) is plan
    placed = jax.device_put((X, W), layer.in_shardings(X, W))
    layer.lower(X, W)
    equal(layer(*placed), model(X, W))
    equal(layer(X, W), model(X, W))
    assert len(traces) == 1
    with jax.default_matmul_precision("float32"):
        assert layer.plan(X, W) is not plan
    assert layer.plan(X[:8], W) is not plan


def test_arguments_may_be_static_or_donated_by_number() -> None:
    def step(state: Any, x: Any, power: int) -> Any:
        return jax.tree.map(lambda s: s + jnp.sum(x**power), state)

    fast = pt.jit(step, mesh=pt.Mesh(data=4), tactics=[pt.DataParallel("data", "x")], static_argnums=-1, donate_argnums=(0,))
    assert (fast.static, fast.donated) == (("power",), ("state",))
    equal(fast({"a": jnp.ones(4)}, X, 2), step({"a": jnp.ones(4)}, X, 2))
    both = pt.jit(step, mesh=MESH, static_argnames="power", donate_argnums=0, keep_unused=True, compiler_options={})
    assert (both.static, both.donated, both.passed_on) == (
        ("power",),
        ("state",),
        {"keep_unused": True, "compiler_options": {}},
    )


@pytest.mark.parametrize("numbers", [3, -4, "x", True, 1.0, (0, 7)])
def test_a_number_of_no_argument_is_refused(numbers: Any) -> None:
    with pytest.raises(pt.Error, match="`donate_argnums` takes numbers of positional arguments of `model`") as raised:
        pt.jit(model, mesh=MESH, donate_argnums=numbers)
    assert list(raised.value.helps) == ["they are 0 `x`, 1 `w`", "or name them: donate_argnames=..."]


@pytest.mark.parametrize("option", ["in_shardings", "out_shardings", "device", "backend", "abstracted_axes"])
def test_what_a_plan_decides_is_refused_with_what_to_give_instead(option: str) -> None:
    given: Any = {option: None}
    with pytest.raises(pt.Error, match=f"does not take `{option}`: the plan decides it"):
        pt.jit(model, mesh=MESH, **given)
    wrong: Any = {"static_argname": "x"}
    with pytest.raises(pt.Error, match="has no option `static_argname`") as raised:
        pt.jit(model, mesh=MESH, **wrong)
    assert raised.value.helps[0] == "did you mean `static_argnames`?"


def warned_of(calls: Callable[[], object]) -> list[str]:
    """What calls warn of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calls()
    return [str(each.message) for each in caught if issubclass(each.category, pt.PlacementWarning)]


TILED = [pt.Tile({"x": 0}, "data"), pt.Tile({"w": 1}, "model")]


def test_arguments_that_lie_otherwise_are_one_warning_for_each_kind_of_arguments() -> None:
    layer = pt.jit(model, mesh=MESH, tactics=TILED)
    there = layer.in_shardings(X, W)[0].mesh
    placed = jax.device_put((X, W), layer.in_shardings(X, W))
    turned = jax.device_put(W, NamedSharding(there, PartitionSpec("model")))
    assert not warned_of(lambda: (layer(*placed), layer(X, W), layer(jnp.asarray(X), W)))
    (said,) = warned_of(lambda: [layer(placed[0], turned) for _ in range(3)])
    assert said.splitlines()[0].startswith(
        f"each call of `model` moves 1 argument ({W.nbytes} bytes) to where the plan wants them"
    )
    assert "`w` lies as P('model',), the plan wants P(None, 'model')" in said
    assert "jax.device_put(args, f.in_shardings(*args))" in said
    assert not warned_of(lambda: layer(placed[0], turned))
    assert len(warned_of(lambda: layer(jax.device_put(X, NamedSharding(there, PartitionSpec())), turned))) == 1
    assert not warned_of(lambda: jax.jit(layer)(placed[0], turned))


def test_an_argument_that_lies_on_fewer_devices_or_on_others_is_told_by_its_devices() -> None:
    """The specs are the same, so they alone would say that nothing is wrong."""
    layer = pt.jit(model, mesh=MESH, tactics=TILED, reshard="error")
    whole = layer.in_shardings(X, W)[0]
    devices = whole.mesh.devices
    few, turned = (jax.sharding.Mesh(some, ("data", "model")) for some in (devices[:2], devices[::-1]))
    with pytest.raises(pt.Error) as raised:
        layer(jax.device_put(X, NamedSharding(few, whole.spec)), W)
    on = [f"{whole.spec} on {2 * size} devices (data={size}, model=2)" for size in (2, 4)]
    assert raised.value.notes == (f"`x` lies as {on[0]}, the plan wants {on[1]}",)
    with pytest.raises(pt.Error) as raised:
        layer(jax.device_put(X, NamedSharding(turned, whole.spec)), W)
    assert raised.value.notes == (
        f"`x` lies as {on[1]}, the plan wants the same on other devices, or in another order of them",
    )


def test_what_a_step_returns_is_not_moved_in_the_next_one() -> None:
    step = pt.jit(
        lambda w, x: w - 0.1 * x.T @ jnp.tanh(x @ w), mesh=MESH, tactics=[pt.Tile({"w": 1}, "model")], donate_argnums=0
    )
    w = jnp.asarray(W)
    for _ in range(3):
        w = step(w, X)


def test_arguments_that_lie_otherwise_can_be_an_error_or_accepted() -> None:
    strict, lax_ = (pt.jit(model, mesh=MESH, tactics=TILED, reshard=how, donate_argnums=1) for how in ("error", "allow"))
    there = strict.in_shardings(X, W)[0].mesh
    turned = jax.device_put(W, NamedSharding(there, PartitionSpec("model")))
    for _ in range(2):
        with pytest.raises(pt.Error, match="moves 1 argument"):
            strict(X, turned)
    assert not turned.is_deleted()
    equal(strict(*jax.device_put((X, W), strict.in_shardings(X, W))), model(X, W))
    equal(lax_(X, turned), model(X, W))
    wrong: Any = "never"
    with pytest.raises(pt.Error, match='`reshard` is "warn", "error" or "allow", got'):
        pt.jit(model, mesh=MESH, tactics=TILED, reshard=wrong)


def test_a_conflict_is_one_warning_of_a_function_at_the_line_that_first_needs_its_plan() -> None:
    layer = pt.jit(lambda x: x + x.T, mesh=MESH, tactics=[pt.Tile({"x": 0}, "data")])
    square = np.ones((8, 8), np.float32)
    with pytest.warns(pt.ConflictWarning) as first:
        layer.in_shardings(square)
        layer.eval_shape(square)
        layer(square)
    with pytest.warns(pt.ConflictWarning) as other:
        jax.jit(pt.jit(lambda x: x + x.T, mesh=MESH, tactics=layer.tactics))(square)
    with pytest.warns(pt.ConflictWarning) as compiled:
        layer.plan(square).compile()
    start = inspect.getsourcelines(test_a_conflict_is_one_warning_of_a_function_at_the_line_that_first_needs_its_plan)[1]
    places = [(each.filename, each.lineno - start) for each in (*first, *other, *compiled)]
    assert places == [(__file__, line) for line in (4, 8, 10)]


def test_a_function_without_tactics_says_once_that_each_device_computes_all() -> None:
    alone = pt.jit(model, mesh=MESH)
    with pytest.warns(pt.PlacementWarning, match="no tactics") as caught:
        pt.jit(model, mesh=MESH)(X, W)
        pt.jit(model, mesh=MESH).lower(X, W)
    assert {each.filename for each in caught} == {__file__} and len(caught) == 2
    (said,) = warned_of(lambda: (alone(X, W), alone(X[:8], W)))
    assert "`pt.jit` of `model` has no tactics: each of the 8 devices computes all of it" in said
    assert not warned_of(lambda: pt.jit(model, mesh=pt.Mesh(data=1))(X, W))
    mapped = jax.shard_map(
        lambda x: x * 2, mesh=alone.in_shardings(X, W)[0].mesh, in_specs=PartitionSpec("data"), out_specs=PartitionSpec("data")
    )
    assert not warned_of(lambda: pt.jit(mapped, mesh=MESH)(X))
