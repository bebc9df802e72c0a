"""A program that says how it is sharded is a plan by `pt.Annotated()`, and nothing that it says is dropped silently."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from everywhere import agrees
from flax import linen, nnx
from hypothesis import given, settings, strategies as st
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

import partita as pt
from partita.examples import annotated_gpt, demo, gpt

MESH = pt.Mesh(data=4, model=2)
X, W = (np.asarray(jax.random.normal(jax.random.key(n), shape)) for n, shape in enumerate(((32, 16), (16, 64))))

Function = Callable[..., Any]


def devices(type: AxisType = AxisType.Auto) -> Mesh:
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(type,) * 2)


def at(*spec: Any, mesh: Mesh | None = None) -> NamedSharding:
    return NamedSharding(mesh or devices(), P(*spec))


def constrained(*spec: Any) -> Function:
    """A product whose result has a constraint."""
    return lambda x, w: jnp.tanh(lax.with_sharding_constraint(x @ w, at(*spec)))


def planned(function: Function, *args: Any) -> pt.Plan:
    return pt.plan(function, MESH, *args).apply(pt.Annotated())


def counts(plan: pt.Plan) -> dict[str, int]:
    return {kind: number for kind, number in plan.counts().items() if number}


def test_the_jit_version_of_a_transformer_has_the_collectives_of_the_same_strategy_in_tactics() -> None:
    with jax.set_mesh(annotated_gpt.device_mesh()):
        args = annotated_gpt.arguments(annotated_gpt.device_mesh())
        plan = pt.plan(annotated_gpt.train_step, MESH, *args)
        annotated = plan.apply(pt.Annotated())
        tactics = pt.plan(gpt.train_step, MESH, *args).apply(*demo.TACTICS.values())
        assert counts(annotated) == counts(tactics)
        assert annotated.bytes_per_device() == tactics.bytes_per_device()
        assert all(each.is_applied for each in annotated.annotations)
        assert not annotated.conflicts
        assert annotated.check(*args) < 2e-4


def test_a_stored_argument_is_gathered_where_the_batch_has_its_axis() -> None:
    def step(w: Any, x: Any) -> Any:
        return w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)

    args = jax.device_put(W, at("data")), jax.device_put(X, at("data"))
    plan = planned(step, *args)
    assert plan.layout(["w", "x", "result"]) == {
        "w": "f32[data*4, 64]",
        "x": "f32[data*8, 16]",
        "result": "f32[data*4, 64]",
    }
    assert counts(plan) == {"all_gather": 1, "reduce_scatter": 1}
    assert plan.trace.splitlines() == ["Annotated(stored=False)", "Annotated(stored=True)"]
    agrees(plan, step, *args)


SOURCES: dict[str, tuple[Function, Callable[[], tuple[Any, ...]], str, str]] = {
    "a constraint": (constrained("data", "model"), lambda: (X, W), "constrain#0", "f32[data*8, model*32]"),
    "a constraint on two axes": (constrained(("data", "model")), lambda: (X, W), "constrain#0", "f32[data*model*4, 64]"),
    "an open dim": (constrained(P.UNCONSTRAINED, "model"), lambda: (X, W), "constrain#0", "f32[32, model*32]"),
    "a committed argument": (
        lambda x, w: x @ w,
        lambda: (jax.device_put(X, at("data")), W),
        "x",
        "f32[data*8, 16]",
    ),
    "a shape with a sharding": (
        lambda x, w: x @ w,
        lambda: (jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=at("data")), W),
        "x",
        "f32[data*8, 16]",
    ),
    "an argument with its sharding in its type": (
        lambda x, w: x @ w,
        lambda: (jax.device_put(X, at("data", mesh=devices(AxisType.Explicit))), W),
        "x",
        "f32[data*8, 16]",
    ),
    "device_put inside": (
        lambda x, w: jax.device_put(x @ w, at("data")) + 1,
        lambda: (X, W),
        "constrain#0",
        "f32[data*8, 64]",
    ),
    "a jit inside": (
        jax.jit(lambda x, w: x @ w, in_shardings=(at("data"), None), out_shardings=at(None, "data")),
        lambda: (X, W),
        "result",
        "f32[32, data*16]",
    ),
    "pt.constrain": (
        lambda x, w: pt.constrain(x @ w, "_, model"),
        lambda: (X, W),
        "constrain#0",
        "f32[32, model*32]",
    ),
    "metadata of linen": (
        lambda x, w: x @ w.value,
        lambda: (X, linen.Partitioned(jnp.asarray(W), names=(None, "model"))),
        "w/value",
        "f32[16, model*32]",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_what_a_program_says_is_a_claim(name: str) -> None:
    function, args, value, layout = SOURCES[name]
    given = args()
    plan = planned(function, *given)
    assert plan.layout(value) == {value: layout}
    assert all(each.is_applied for each in plan.annotations)
    if not any(isinstance(each, jax.ShapeDtypeStruct) for each in given):
        assert plan.check(*given) < 1e-4


def test_the_sharding_that_an_op_is_asked_for_is_a_claim() -> None:
    with jax.set_mesh(devices(AxisType.Explicit)):
        plan = planned(lambda x, w: jnp.dot(x, w, out_sharding=P("data", "model")) * 2, X, W)
    assert plan.layout("result") == {"result": "f32[data*8, model*32]"}
    assert [(each.by, each.state) for each in plan.annotations] == [("out_sharding", "applied")]


def test_metadata_of_nnx_is_a_claim() -> None:
    with jax.set_mesh(devices()):
        w = nnx.Param(jnp.asarray(W), out_sharding=(None, "model"))
    plan = planned(lambda x, w: x @ w[...], X, w)
    assert list(plan.layout("w/**").values()) == ["f32[16, model*32]"]


def test_a_constraint_keeps_a_value_whole_along_the_axes_that_it_does_not_name() -> None:
    closed, open_ = planned(constrained("data", None), X, W), planned(constrained("data", P.UNCONSTRAINED), X, W)
    for plan, layout in ((closed, "f32[data*8, 64]"), (open_, "f32[data*8, model*32]")):
        assert plan.tile("w", 1, "model").layout("constrain#0") == {"constrain#0": layout}


def test_without_the_tactic_a_program_is_placed_as_if_it_said_nothing() -> None:
    said = pt.plan(constrained("data", "model"), MESH, X, W)
    plain = pt.plan(lambda x, w: jnp.tanh(x @ w), MESH, X, W)
    assert counts(said.tile("x", 0, "model")) == counts(plain.tile("x", 0, "model"))
    assert "1 annotation of the program not applied: pt.Annotated()" in repr(said)
    assert "annotation" not in repr(said.apply(pt.Annotated()))
    assert "annotation" not in repr(plain)


def test_what_names_no_axis_of_the_mesh_is_listed() -> None:
    plan = planned(lambda x, w: pt.constrain(pt.constrain(x @ w, "data, expert"), "_, model"), X, W)
    assert [each.state for each in plan.annotations] == [
        "altered to f32[data*8, 64]: the mesh data=4, model=2 has no axis `expert`",
        "applied",
    ]
    assert plan.layout("result") == {"result": "f32[data*8, model*32]"}


def test_what_is_never_applied_is_listed_with_the_reason() -> None:
    def function(x: Any, w: Any) -> Any:
        host = jax.device_put(x @ w, NamedSharding(devices(), P("data"), memory_kind="pinned_host"))
        return jax.device_put(host, SingleDeviceSharding(jax.devices()[0]))

    said = pt.plan(function, MESH, X, W).annotations
    assert [(each.by, each.state.split(":")[0]) for each in said] == [
        ("device_put", "refused"),
        ("device_put", "refused"),
    ]
    assert "pinned_host" in said[0].state
    assert "SingleDeviceSharding" in said[1].state


WITHOUT_A_MESH: list[Function] = [
    lambda x: lax.with_sharding_constraint(x, P("data")),
    lambda x: jax.device_put(x, P("data")),
    lambda x: jnp.dot(x, x, out_sharding=P("data")),
    lambda x: jax.shard_map(jnp.sin, in_specs=P("data"), out_specs=P("data"))(x),
    lambda x: jax.jit(lambda x: lax.with_sharding_constraint(x, P()))(x),
]


@pytest.mark.parametrize("function", WITHOUT_A_MESH)
def test_what_names_axes_of_a_mesh_that_is_not_set_is_refused_where_it_stands(function: Function) -> None:
    for called in (lambda x: pt.plan(function, MESH, x), pt.jit(function, mesh=MESH)):
        with pytest.raises(pt.Error, match=r"names axes of JAX's mesh, but `jax\.set_mesh` has set none") as raised:
            called(X[:16])
        assert raised.value.location is not None and "P(" in raised.value.location.text


def test_an_error_of_the_programs_own_stays_its_own() -> None:
    def function(x: jax.Array) -> jax.Array:
        if x.ndim != 3:
            raise ValueError("x has to have 3 dims: call `jax.set_mesh` only for the other one")
        return x

    with pytest.raises(ValueError, match="x has to have 3 dims"):
        pt.plan(function, MESH, X)


def alike(x: Any, w: Any) -> Any:
    return sum(pytest.importorskip("jax.experimental.shard_alike", reason=GONE).shard_alike(x @ w, x @ w + 1))


def in_order(x: Any, w: Any) -> Any:
    ordered: Any = pytest.importorskip("jax.experimental.overlap", reason=NEW).program_order
    if "enforce" not in str(jax.make_jaxpr(ordered(jnp.sin, enforce=True))(x)):
        pytest.skip("this JAX orders the ops itself, with barriers")
    return ordered(lambda x, w: jnp.sin(x @ w), enforce=False)(x, w) + ordered(lambda x: jnp.cos(x), enforce=True)(x @ w)


GONE, NEW = "this JAX no longer has it", "this JAX does not have it yet"


@pytest.mark.parametrize(("function", "name"), [(alike, "shard_alike"), (in_order, "program_order")])
def test_what_only_some_versions_of_jax_say_is_listed_too(function: Function, name: str) -> None:
    plan = pt.plan(function, MESH, X, W).tile("x", 0, "data")
    assert {(each.by, each.state.split(":")[0]) for each in plan.annotations} == {(name, "refused")}
    assert plan.check(X, W) <= 1e-5


def test_a_constraint_in_a_loop_is_of_the_value_of_each_trip() -> None:
    def function(x: Any) -> Any:
        def trip(y: Any, _: Any) -> Any:
            return pt.constrain(jnp.tanh(y @ y.T) @ y / 32, "data, _"), None

        return lax.scan(jax.checkpoint(trip), x, None, length=3)[0]

    agrees(planned(function, X), function, X, derived=True)


@pytest.mark.parametrize("transform", [jax.vmap, jax.jit, jax.checkpoint], ids=lambda each: each.__name__)
def test_a_constraint_survives_transformations(transform: Callable[[Function], Function]) -> None:
    batch = np.stack([X, X + 1])
    function = transform(lambda x: pt.constrain(jnp.sin(x), ", ".join(["_"] * (x.ndim - 1) + ["model"])) * 2)
    plan = planned(function, batch)
    assert plan.layout("constrain#0") == {"constrain#0": "f32[2, 32, model*8]"}
    agrees(plan, function, batch, derived=True)


def test_a_cotangent_has_the_layout_of_its_value() -> None:
    def function(x: Any, w: Any) -> Any:
        return jax.grad(lambda x: jnp.sin(pt.constrain(x @ w, "_, model")).sum())(x)

    plan = planned(function, X, W)
    assert len(plan.annotations) == 2
    assert plan.layout("constrain#1") == {"constrain#1": "f32[32, model*32]"}
    agrees(plan, function, X, W)


def test_outside_of_a_plan_a_constraint_is_the_identity() -> None:
    same = jax.jit(lambda x: pt.constrain(x, "data, _"))
    np.testing.assert_array_equal(same(X), X)


def test_annotations_stand_between_other_tactics_and_apply_again() -> None:
    function = constrained(P.UNCONSTRAINED, "model")
    plan = pt.plan(function, MESH, X, W).apply(pt.DataParallel("data", inputs="x"), pt.Annotated())
    assert plan.layout("constrain#0") == {"constrain#0": "f32[data*8, model*32]"}
    assert plan.apply(pt.Annotated()).layout() == plan.layout()
    assert pt.replay(function, MESH, plan.trace, X, W).layout() == plan.layout()
    agrees(plan, function, X, W)


def test_a_pattern_chooses_the_values() -> None:
    args = jax.device_put(X, at("data")), jax.device_put(W, at(None, "model"))
    plan = pt.plan(lambda x, w: x @ w, MESH, *args)
    assert plan.apply(pt.Annotated("w")).layout(["x", "w"]) == {"x": "f32[32, 16]", "w": "f32[16, model*32]"}


def test_a_compiled_function_follows_annotations() -> None:
    step = pt.jit(constrained("data", "model"), mesh=MESH, tactics=[pt.Annotated()])
    np.testing.assert_allclose(step(X, W), np.tanh(X @ W), rtol=1e-4, atol=1e-5)
    assert step(X, W).sharding.spec == P("data", "model")


SPECS = st.lists(st.sampled_from([None, "data", "model", P.UNCONSTRAINED]), min_size=2, max_size=2).filter(
    lambda each: len([axis for axis in each if isinstance(axis, str)]) == len({axis for axis in each if isinstance(axis, str)})
)


@given(st.lists(SPECS, min_size=3, max_size=3), SPECS)
@settings(max_examples=12, deadline=None)
def test_any_constraints_leave_the_meaning_as_it_is(inner: list[list[Any]], of_argument: list[Any]) -> None:
    def function(x: Any) -> Any:
        for spec in inner:
            x = lax.with_sharding_constraint(jnp.tanh(x @ x.T) @ x, at(*spec))
        return x

    x = jax.device_put(X, at(*(None if each is P.UNCONSTRAINED else each for each in of_argument)))
    plan = pt.plan(function, MESH, x)
    if any(isinstance(axis, str) or axis is None for spec in inner for axis in spec):
        plan = plan.apply(pt.Annotated())
    assert plan.check(x) < 2e-4
