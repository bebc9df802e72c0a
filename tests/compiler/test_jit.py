"""`pt.jit` is `jax.jit` with tactics."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

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


def test_a_call_is_that_of_the_function_on_the_devices() -> None:
    layer = pt.jit(model, mesh=MESH, tactics=TACTICS)
    result = layer(X, W)
    equal(result, model(X, W))
    assert result.sharding.spec == PartitionSpec("data", "model")


def test_it_is_a_decorator_too() -> None:
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
def test_a_transformation_of_it_is_that_of_the_function(name: str) -> None:
    layer, transform = pt.jit(model, mesh=MESH, tactics=TACTICS), TRANSFORMATIONS[name]
    equal(transform(layer)(jnp.asarray(X), jnp.asarray(W)), transform(model)(jnp.asarray(X), jnp.asarray(W)))


def test_donated_arguments_are_gone_after_the_call() -> None:
    def step(params: dict[str, jax.Array], x: jax.Array) -> dict[str, jax.Array]:
        return {"w": params["w"] - 0.1 * (x.T @ model(x, params["w"]))}

    train = pt.jit(step, mesh=MESH, tactics=[pt.DataParallel("data", inputs="x")], donate_argnames=("params",))
    params, x = {"w": jnp.asarray(W)}, jnp.asarray(X)
    after = train(train(params, x), x)
    assert params["w"].is_deleted() and not x.is_deleted()
    equal(after, step(step({"w": jnp.asarray(W)}, x), x))


def test_keys_closed_over_arrays_and_none_go_through() -> None:
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
    with pytest.raises(pt.Error, match="argument `w` of `model` is no array"):
        layer(X, "w")
    with pytest.raises(pt.Error, match="missing a required argument: 'w'"):
        layer(X)
    with pytest.raises(pt.Error, match="argument `x` is committed to cpu:5"):
        layer(jax.device_put(X, jax.devices()[5]), W)
    with pytest.raises(pt.Error, match="needs 16 devices"):
        pt.jit(model, mesh=pt.Mesh(data=16))(X, W)
    equal(layer(X, W), model(X, W))


def test_an_error_of_the_users_own_stays_what_it_is() -> None:
    def broken(x: jax.Array) -> jax.Array:
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        pt.jit(broken, mesh=MESH)(X)
    with pytest.raises(TypeError, match="dot_general"):
        pt.jit(model, mesh=MESH)(X, X)
