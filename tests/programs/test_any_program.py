"""No program that `jax.jit` accepts crashes Partita: it is partitioned, lists what runs unpartitioned, or is refused.

Each row is a program with its arguments, the primitives that run unpartitioned, and the tile of one of its arguments.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportMissingTypeStubs=false, reportUnknownParameterType=false

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import io_callback
from jax.sharding import AxisType, PartitionSpec as P

import partita as pt
from partita.dialects.ground.errors import Error

Array = Any
MESH = pt.Mesh(data=4, model=2)
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
V = X[0]
BIG = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 4096
KEY = jax.random.key(0)


@jax.custom_jvp
def doubled(x: Array) -> Array:
    return jnp.sin(x)


doubled.defjvp(lambda primals, tangents: (doubled(primals[0]), tangents[0] * 2))


@jax.custom_vjp
def scaled(x: Array) -> Array:
    return jnp.sin(x)


scaled.defvjp(lambda x: (scaled(x), x), lambda x, ct: (ct * x,))


@jax.custom_batching.custom_vmap
def mapped(x: Array) -> Array:
    return jnp.sin(x)


@mapped.def_vmap
def _(axis_size: int, in_batched: list[bool], x: Array) -> tuple[Array, bool]:
    return jnp.cos(x), in_batched[0]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def applied(f: Callable[[Array], Array], x: Array) -> Array:
    return f(x)


applied.defjvp(lambda f, primals, tangents: (f(primals[0]), tangents[0]))


def solved(x: Array) -> Array:
    matrix = x @ x.T + 4 * jnp.eye(8)
    return lax.custom_linear_solve(lambda v: matrix @ v, x[0], lambda _, b: jnp.linalg.solve(matrix, b), symmetric=True)


def host(x: Any) -> Any:
    return np.sin(np.asarray(x))


def called(x: Array, **how: Any) -> Array:
    return jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, **how)


def counted(x: Array) -> Array:
    return x + io_callback(lambda v: np.float32(2), jax.ShapeDtypeStruct((), jnp.float32), x[0, 0])


def printed(x: Array) -> Array:
    jax.debug.callback(lambda v: None, x.sum())
    return x * 2


def kernel(x: Array) -> Array:
    from jax.experimental import pallas as pl

    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)


def mutated(x: Array) -> Array:
    ref = jax.new_ref(jnp.zeros_like(x))
    ref[...] += x
    return jax.freeze(ref) * 2


def exported(x: Array) -> Array:
    from jax import export

    return export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((8, 8), jnp.float32)).call(x)


def by_platform(x: Array) -> Array:
    return lax.platform_dependent(x, cpu=lambda x: x * 2, default=lambda x: x * 3)


def partitioned(x: Array) -> Array:
    from jax.experimental.custom_partitioning import custom_partitioning

    wrapped = custom_partitioning(lambda x: jnp.sin(x))
    wrapped.def_partition(
        partition=lambda mesh, args, result: (mesh, jnp.sin, result.sharding, (args[0].sharding,)),
        infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding,
        sharding_rule="i j -> i j",
    )
    return wrapped(x)


def told(x: Array) -> Array:
    from jax.experimental import compute_on
    from jax.experimental.scheduling_groups import xla_metadata_call
    from jax.experimental.xla_metadata import set_xla_metadata

    here: Any = partial(
        getattr(compute_on, "compute_on2", compute_on.compute_on),
        compute_type="device_host",
        out_memory_spaces=jax.memory.Space.Device,
    )
    grouped: Any = partial(xla_metadata_call, group="1")
    return here(jnp.sin)(x) + grouped(jnp.cos)(x) + cast(Any, set_xla_metadata)(x * 2, kind="a")


def composed(x: Array) -> Array:
    return lax.composite(lambda x: x * 2 + 1, name="my.double")(x)


def weak(x: Array, n: Array) -> Array:
    return lax.fori_loop(0, 3, lambda i, c: c * n + i, x) + 1.0


def donated(x: Array) -> Array:
    return jax.jit(lambda x: x + 1, donate_argnums=0)(x)


def constrained(x: Array) -> Array:
    return lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh_of(a=1), P())) * 2


def mesh_of(**axes: int) -> Any:
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def on(ins: Any, outs: Any, body: Callable[..., Any], **how: Any) -> Callable[..., Any]:
    """A `shard_map` on the axes of the plan's mesh, or on others."""
    mesh = mesh_of(**how.pop("mesh", {"data": 4, "model": 2}))
    mapped: Any = jax.shard_map
    return lambda *args: mapped(body, mesh=mesh, in_specs=ins, out_specs=outs, **{"check_vma": False, **how})(*args)


def shifted(x: Array, axis: str, size: int) -> Array:
    return lax.ppermute(x, axis, [(i, (i + 1) % size) for i in range(size)]) + lax.axis_index(axis)


def exchanged(x: Array, axis: str) -> Array:
    return lax.all_to_all(x, axis, 1, 0, tiled=True) + lax.psum(x, axis).sum() + lax.all_gather(x, axis).mean()


def mapped_loop(x: Array) -> Array:
    step = on(P("data"), P("data"), lambda b: lax.fori_loop(0, 2, lambda i, c: c + lax.psum(c, "data") * 0.1, b))
    return lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: step(c) + 1, x)


def float0(x: Array, n: Array) -> Array:
    return jax.grad(lambda x, n: jnp.sum(x[n]), (0, 1), allow_int=True)(x, n)[0]


def int_tangents(x: Array, n: Array) -> Array:
    def body(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        return (carry[0] * 2, carry[1] + 1), carry[0]

    return jax.grad(lambda x: lax.scan(body, (x, n), None, length=3)[0][0].sum())(x)


def remat(x: Array) -> Array:
    policy = jax.checkpoint_policies.save_only_these_names("h")
    step = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(x @ x, "h")), policy=policy)
    return jax.grad(lambda x: step(step(x)).sum())(x)


def while_grad(x: Array) -> Array:
    return jax.jvp(lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c * 2 + 1, x), (x,), (x,))[1]


def scan_of_conds(x: Array) -> Array:
    return lax.scan(lambda c, r: (lax.cond(r[0] > 0, lambda c: c @ c * 0.1, lambda c: -c, c), r.sum()), x, x)


def keys(key: Array) -> Array:
    return jax.random.split(key, 8), jax.random.fold_in(key, 3)


def drawn(key: Array) -> Array:
    return jax.random.normal(key, (8, 8)), jax.random.permutation(key, 8), jax.random.categorical(key, jnp.zeros((8, 4)))


def tokens(x: Array) -> Array:
    token = lax.create_token(x)
    return lax.after_all(token), x


def nothing() -> Array:
    return jnp.arange(8.0) * 2


def rbg(name: str) -> Any:
    return jax.random.key(0, impl=name)


Row = tuple[Callable[..., Any], Sequence[Any], Sequence[str], str | None]
PROGRAMS: dict[str, Row] = {
    # calls
    "remat, a policy": (remat, [X], [], "x"),
    "custom_jvp": (lambda x: jax.jvp(doubled, (x,), (x,)), [X], [], "x"),
    "custom_jvp of a function": (lambda x: applied(jnp.sin, x), [X], [], "x"),
    "custom_vjp": (jax.grad(lambda x: scaled(x).sum()), [X], [], "x"),
    "custom_vmap": (lambda x: mapped(x) + jax.vmap(mapped)(x), [X], [], "x"),
    "custom_linear_solve": (solved, [X], [], "x"),
    "closed_call": (lambda x: jax.closure_convert(lambda y: jnp.sin(y) * x, x)[0](x, x), [X], [], "x"),
    "composite": (composed, [X], [], "x"),
    "custom_partitioning": (partitioned, [X], [], "x"),
    "an exported function": (exported, [X], ["call_exported"], "x"),
    "by platform": (by_platform, [X], [], "x"),
    "a jit in a jit that donates": (donated, [X], [], "x"),
    "linear_transpose": (lambda x: jax.linear_transpose(lambda y: y @ X + 2 * y, x)(x), [X], [], "x"),
    "linearize": (lambda x: jax.linearize(lambda y: jnp.sin(y) @ y, x)[1](x), [X], [], "x"),
    "hessian": (jax.hessian(lambda x: jnp.sum(jnp.tanh(x) ** 3)), [V], [], "x"),
    "a sharding constraint": (constrained, [X], [], "x"),
    "what a compiler is told": (told, [X], [], "x"),
    "device_put": (lambda x: jax.device_put(x) * 2, [X], [], "x"),
    "optimization_barrier": (lambda x: sum(lax.optimization_barrier((x, x * 2))), [X], [], "x"),
    # effects
    "pure_callback": (called, [X], ["pure_callback"], "x"),
    "pure_callback of every row": (jax.vmap(partial(called, vmap_method="sequential")), [X], ["pure_callback"], "x"),
    "pure_callback of a batch": (jax.vmap(partial(called, vmap_method="expand_dims")), [X], ["pure_callback"], "x"),
    "io_callback": (counted, [X], ["io_callback"], "x"),
    "debug callback": (printed, [X], ["debug_callback"], "x"),
    "a callback in a loop": (lambda x: lax.fori_loop(0, 2, lambda i, c: printed(c), x), [X], ["debug_callback"], "x"),
    "a callback in a branch": (lambda x: lax.cond(x[0, 0] > 0, printed, lambda x: x, x), [X], ["debug_callback"], "x"),
    "pallas_call": (kernel, [X], ["pallas_call"], "x"),
    "mutable arrays": (mutated, [X], [], "x"),
    # a mesh of the user's
    "shard_map on our axes": (on(P("data"), P("data"), lambda b: b - lax.pmean(b, "data")), [X], ["shard_map"], "x"),
    "shard_map on one of them": (
        on(P("data"), P("data"), lambda b: b - lax.psum(b, "data"), axis_names={"data"}),
        [X],
        ["shard_map"],
        "x",
    ),
    "shard_map on both, permuted": (
        on(
            (P("data", "model"), P("model")),
            (P("model"), P(("data", "model"))),
            lambda b, c: (lax.all_gather(b, "model", tiled=True)[:4, :], shifted(c, "data", 4)[:1]),
            mesh={"data": 4, "model": 2},
        ),
        [X, X],
        ["shard_map"],
        "x",
    ),
    "shard_map that checks": (
        on(P("data", "model"), P(None, "model"), lambda b: lax.psum(b, "data"), check_vma=True),
        [X],
        ["shard_map"],
        "x",
    ),
    "shard_map's gradient": (
        jax.grad(lambda x: on(P("data"), P(), lambda b: lax.psum(jnp.sum(b**2), "data"))(x)),
        [X],
        ["shard_map"],
        "x",
    ),
    "shard_map in a loop": (mapped_loop, [X], ["shard_map"], "x"),
    "shard_map on other axes": (
        on(P("a", "b"), P("a", "b"), lambda b: shifted(exchanged(b, "b"), "a", 2)[:4, :2], mesh={"a": 2, "b": 4}),
        [np.tile(X, (2, 4))],
        ["shard_map"],
        "x",
    ),
    "shard_map on axes of other sizes": (
        on(
            P(None, ("model", "data")),
            P("data"),
            lambda b: lax.psum(b, ("model",)) * lax.axis_index("data"),
            mesh={"data": 2, "model": 4},
        ),
        [X],
        ["shard_map"],
        "x",
    ),
    "pmap": (lambda x: jax.pmap(lambda r: r - lax.psum(r, "i"), axis_name="i")(x), [X], ["shard_map"], "x"),
    "vmap with a name": (lambda x: jax.vmap(lambda r: r - lax.pmean(r, "i"), axis_name="i")(x), [X], [], "x"),
    # control
    "scan of conds": (scan_of_conds, [X], [], "x"),
    "while, forward derivative": (while_grad, [X], [], "x"),
    "fori_loop, dynamic": (lambda x, n: lax.fori_loop(0, n, lambda i, c: c @ x * 0.1, x), [X, 3], [], "x"),
    "while without a trip": (lambda x: lax.while_loop(lambda c: False, lambda c: c, x), [X], [], "x"),
    "scan without a trip": (lambda x: lax.scan(lambda c, _: (c, c), x, None, length=0), [X], [], "x"),
    "scan over nothing": (lambda x: lax.scan(lambda c, y: (c + y.sum(), y), 0.0, x[:0]), [X], [], "x"),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x), [X], [], "x"),
    "lax.map in batches": (lambda x: lax.map(lambda r: r * 2, x, batch_size=2), [X], [], "x"),
    "switch of one": (lambda x, n: lax.switch(n, [jnp.sin], x), [X, 1], [], "x"),
    "cond of trees": (lambda x: lax.cond(x[0, 0] > 0, lambda: {"a": x}, lambda: {"a": -x}), [X], [], "x"),
    "cond without results": (lambda x: lax.cond(x[0, 0] > 0, lambda: None, lambda: None) or x, [X], [], "x"),
    "while of a bool": (lambda x: lax.while_loop(lambda c: c[0], lambda c: (~c[0], c[1] * 2), (x[0, 0] < 0, x)), [X], [], "x"),
    "while of vmapped verdicts": (
        lambda x, n: jax.vmap(lambda r, n: lax.fori_loop(0, n, lambda i, c: c * 2, r))(x, n),
        [X, np.arange(8)],
        [],
        "x",
    ),
    "while of keys": (
        lambda k: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jax.random.split(c[1])[0]), (0, k)),
        [KEY],
        [],
        None,
    ),
    # arrays
    "rank 0": (lambda x: x * 2 + 1, [np.float32(3)], [], None),
    "empty": (lambda x: (x @ x.T, x.sum(0), jnp.zeros((0,)).max(initial=0.0)), [X[:, :0]], [], None),
    "no arguments": (nothing, [], [], None),
    "no results": (lambda x: None, [X], [], "x"),
    "an argument returned": (lambda x: x, [X], [], "x"),
    "an argument unused": (lambda x, y: y * 2, [X, V], [], "x"),
    "a constant returned": (lambda x: (jnp.ones(3), 2, x), [X], [], "x"),
    "one result three times": (lambda x: [x + 1] * 2 + [x], [X], [], "x"),
    "one value twice": (lambda x: (lambda y: (y, y))(x * 2), [X], [], "x"),
    "a big constant": (lambda x: x @ BIG[:8] @ jnp.asarray(BIG), [X], [], "x"),
    "weak types": (weak, [X, 2.0], [], "x"),
    "float0": (float0, [X, 3], [], "x"),
    "integer tangents": (int_tangents, [X, 3], [], "x"),
    "bool in, int out": (lambda x: (x > 0).sum() + jnp.argsort(x, 0)[0], [X], [], "x"),
    "narrow dtypes": (lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.bfloat16) * 2, [X], [], "x"),
    "int4": (lambda x: (x * 4).astype(jnp.int4).astype(jnp.int32), [X], [], "x"),
    "complex": (lambda x: jnp.fft.fft(x + 1j * x), [X], [], "x"),
    # keys
    "keys in, keys out": (keys, [KEY], [], None),
    "a batch of keys": (jax.vmap(lambda k: jax.random.normal(k, (4,))), [jax.random.split(KEY, 8)], [], "k"),
    "draws": (drawn, [KEY], [], None),
    "rbg": (keys, [rbg("rbg")], [], None),
    "rbg draws": (lambda k: jax.random.normal(k, (8,)), [rbg("rbg")], ["rng_bit_generator"], None),
    "unsafe_rbg": (lambda k: jax.random.bits(k, (8,)), [rbg("unsafe_rbg")], ["rng_bit_generator"], None),
}


def args_of(function: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    return [arg if isinstance(arg, jax.Array) else jnp.asarray(arg) if isinstance(arg, np.ndarray) else arg for arg in args]


def raw(leaf: Any) -> Any:
    return np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_partitioned_or_lists_what_runs_unpartitioned(name: str) -> None:
    function, args, whole, tiled = PROGRAMS[name]
    args = args_of(function, args)
    plan = pt.plan(function, MESH, *args)
    assert sorted({each.primitive for each in plan.whole}) == sorted(whole)
    if tiled is not None:
        plan = plan.tile(plan.arguments()[0], 0, "data")
    ours, theirs = plan.compile()(*args), jax.jit(function)(*args)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(raw(one).astype(np.complex64), raw(other).astype(np.complex64), rtol=2e-4, atol=2e-4)


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "an ordered print": (lambda x: (jax.debug.print("{}", x.sum(), ordered=True), x)[1], "has an ordered effect"),
    "an ordered callback": (
        lambda x: io_callback(host, jax.ShapeDtypeStruct((8, 8), jnp.float32), x, ordered=True),
        "has an ordered effect",
    ),
    "an ordered print in a loop": (
        lambda x: lax.fori_loop(0, 2, lambda i, c: (jax.debug.print("{}", c.sum(), ordered=True), c)[1], x),
        "ordered effect",
    ),
    "a token": (tokens, "expected a program of arrays"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_is_refused_with_a_reason(name: str) -> None:
    function, reason = REFUSED[name]
    with pytest.raises(Error, match=reason):
        pt.plan(function, MESH, jnp.asarray(X))


def test_a_shard_map_on_our_axes_needs_its_operands_in_its_in_specs() -> None:
    function = on(P("data"), P(None, "data"), lambda b: b.T)
    plan = pt.plan(lambda x: jnp.tanh(function(jnp.sin(x))), MESH, jnp.asarray(X))
    assert plan.layout("x") == {"x": "f32[data*2, 8]"}
    assert plan.layout("result") == {"result": "f32[8, data*2]"}
    (only,) = plan.whole
    assert only.own and "on its own mesh axes: its collectives are in `counts().own`" in str(only)
    assert sum(plan.counts().values()) == 0
    again = pt.replay(lambda x: jnp.tanh(function(jnp.sin(x))), MESH, plan.trace, jnp.asarray(X))
    assert again.layout() == plan.layout()


def test_a_primitive_that_runs_unpartitioned_has_a_reason() -> None:
    other = on(P("a", "b"), P("a", "b"), lambda b: b * 2, mesh={"a": 2, "b": 4})
    (mapped,) = pt.plan(other, MESH, np.tile(X, (2, 4))).whole
    mesh = re.escape(str(MESH))
    assert re.search(
        f"its axes a=2, b=4 are not axes of the plan's mesh {mesh}: run through vmap on replicated arrays", str(mapped)
    )
    compiled = pt.plan(jnp.sin, MESH, X).compile()
    (again,) = pt.plan(compiled, MESH, X).whole
    assert "its collectives are in `counts().own`" in str(again) and "unknown line" not in str(again)
    (effect,) = pt.plan(lambda x: [x * 2, jax.debug.callback(lambda _: None, x)][0], MESH, X).whole
    assert re.search(r"at .*, which reads `x`, runs unpartitioned, on one device: it is an effect", str(effect))
    # `jnp.diagonal` asks on which platform it runs, which nothing can partition.
    assert not pt.plan(lambda x: jnp.diagonal(x), MESH, X).whole


def test_a_stop_of_propagation_is_listed_once() -> None:
    def sums(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), [(0, 0), (2, 2)])

    (only,) = pt.plan(lambda x: sums(x) + sums(x), MESH, X).tile("x", 1, "data").blocked
    assert "stops at reduce_window_sum" in str(only)
