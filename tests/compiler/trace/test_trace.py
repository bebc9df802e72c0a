"""Tracing: the traced program computes what the function computes."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax
from unpartitioned import unpartitioned
from xdsl.ir import OpResult
from xdsl.parser import Parser

import partita as pt
from partita.compiler.trace.trace import Traced
from partita.dialects import context
from partita.dialects.lax import WholeOp

X = jnp.linspace(0.1, 1.0, 16).reshape(4, 4)
KEY, OLD_KEY = jax.random.key(3), jax.random.PRNGKey(1)
KEYS = jax.random.split(KEY, (4, 2))


def ops(traced: Traced) -> list[str]:
    return [op.name.removeprefix("lax.") for op in traced.main.walk() if op.name.startswith("lax.")]


def whole(traced: Traced) -> list[str]:
    """The primitives that run unpartitioned."""
    return [str(op.params["primitive"]) for op in traced.main.walk() if isinstance(op, WholeOp)]


def made(traced: Traced, name: str) -> list[str]:
    """The ops that make the values of this name."""
    return [value.op.name for value in {**traced.scopes, **traced.tags}[name] if isinstance(value, OpResult)]


def numbers(value: Any) -> Any:
    is_key = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(value) if is_key else value)


def same(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype
    np.testing.assert_allclose(numbers(got), numbers(want), rtol=2e-5, atol=1e-6)


def check(fn: Callable[..., Any], *args: Any) -> Traced:
    """Traces, verifies, runs unpartitioned, and compares with the function itself, compiled together to save time."""
    traced = pt.trace(fn, *args)
    traced.module.verify()
    got, want = jax.jit(lambda *args: (unpartitioned(traced)(*args), fn(*args)))(*args)
    jax.tree.map(same, got, want)
    return traced


def mlp(params: Any, x: jax.Array) -> jax.Array:
    for w in params:
        x = jax.nn.relu(x @ w)
    return jnp.mean(x**2)


def layer_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * scale[None]


def attention(x: jax.Array, key: jax.Array) -> jax.Array:
    weights = jax.nn.softmax(jnp.where(jnp.tri(4, dtype=bool), x @ x.T, -1e9))
    kept = jax.random.bernoulli(key, 0.7, weights.shape)
    return jnp.sum((jnp.where(kept, weights, 0.0) @ x) ** 2)


def lookup(table: jax.Array, ids: jax.Array) -> jax.Array:
    logs = jax.nn.log_softmax(table[ids] @ table.T)
    return -jnp.mean(jnp.take_along_axis(logs, ids[..., None], axis=-1))


def axes_of_vmap(x: jax.Array) -> Any:
    """A batch norm, and more."""
    return lax.psum(x, ("a", "b")), lax.pmean(x, "a"), lax.pmax(x, "b"), lax.pmin(x, ("b", "a")), lax.all_gather(x, "a")


def layers(stack: jax.Array, x: jax.Array, wrap: Callable[..., Any] = lambda body: body) -> jax.Array:
    def body(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.tanh(x @ w), x.sum()

    x, sums = lax.scan(wrap(body), x, stack)
    return x.sum() + sums.sum()


@jax.custom_vjp
def scaled(x: jax.Array) -> jax.Array:
    return jnp.sin(x)


scaled.defvjp(lambda x: (scaled(x), x), lambda x, ct: (ct * x,))


@jax.custom_jvp
def doubled(x: jax.Array) -> jax.Array:
    return jnp.sin(x)


doubled.defjvp(lambda primals, tangents: (doubled(primals[0]), tangents[0] * 2))  # pyright: ignore[reportUnknownMemberType]

STACK = jnp.stack([X, X * 0.5, X * 0.1])
OPTIMIZER = optax.adam(1e-2)


def adam_step(params: Any, state: Any, x: jax.Array) -> Any:
    value, grads = jax.value_and_grad(mlp)(params, x)
    updates, state = OPTIMIZER.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


WEIGHTS = [X, X + 0.1]

PROGRAMS: dict[str, tuple[Any, ...]] = {
    "mlp": (jax.grad(mlp), WEIGHTS, X),
    "layer norm": (jax.grad(lambda x, s: jnp.sum(layer_norm(x, s) ** 3), (0, 1)), X, X[0]),
    "attention, new key": (jax.grad(attention), X, KEY),
    "attention, old key": (jax.grad(attention), X, OLD_KEY),
    "embedding": (jax.grad(lookup), X, jnp.array([[0, 3], [1, 1]])),
    "scan": (jax.grad(layers, (0, 1)), STACK, X),
    "scan of remat": (jax.grad(partial(layers, wrap=jax.checkpoint), (0, 1)), STACK, X),
    "custom_vjp": (jax.grad(lambda x: scaled(x).sum()), X),
    "custom_jvp": (jax.grad(lambda x: doubled(x).sum()), X),
    "adam": (adam_step, WEIGHTS, OPTIMIZER.init(WEIGHTS), X),
    "stack and tile": (lambda x: (jnp.stack([x, x], 1), jnp.tile(x, (2, 3)), jnp.unstack(x, axis=1)), X),
    "index and update": (lambda x: x.at[0].add(1.0).at[1].set(2.0).at[2].mul(3.0).at[3].max(0.5).at[0].min(0.2)[::-1], X),
    "slices": (lambda x: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (0, 1), (2, 2)), (1, 0))[:, ::2], X),
    "sort and scan": (lambda x: (jnp.sort(x), lax.top_k(x, 2), jnp.cumsum(x, 0), jnp.argmax(x, 1), jnp.argmin(x)), X),
    "folds": (lambda x: (x.max(0), x.min(1), x.prod(0), (x > 0).all(), (x > 0.5).any(), jnp.std(x, 0)), X),
    "collectives of vmap": (jax.vmap(jax.vmap(axes_of_vmap, axis_name="b"), axis_name="a"), X),
    "conv": (lambda x: lax.conv_general_dilated(x[None, None], x[None, None], (1, 2), "SAME"), X),
    "pad": (lambda x: (lax.pad(x, 0.0, ((1, 2, 1), (-1, 0, 0))), jnp.concatenate([x, x], 1)), X),
    "dtypes": (lambda x: ((x + 2j * x).imag, x.astype(jnp.bfloat16) * 2, x.astype(jnp.int32) << 2, x > -jnp.inf), X),
    "precision": (lambda x: jnp.einsum("ij,kj->ki", x, x, precision="highest"), X),
    "reordering reshape": (lambda x: lax.reshape(x, (2, 8), (1, 0)), X),
    "constants": (lambda x: (1.0, x, 3, np.float32(2), -0.0 * x, 0.0 * x), X),
    "identity": (lambda x: x, X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_like_its_function_and_is_fully_partitionable(name: str):
    assert whole(check(*PROGRAMS[name])) == []


KEYED: dict[str, tuple[Any, ...]] = {
    "normal": (lambda k: jax.random.normal(k, (4, 8)), KEY),
    "normal, old key": (lambda k: jax.random.normal(k, (4, 8)), OLD_KEY),
    "split": (lambda k: jax.random.split(k, 3), KEY),
    "split, old key": (lambda k: jax.random.split(k, 3), OLD_KEY),
    "fold_in": (lambda k: jax.random.fold_in(k, 3), KEY),
    "seed": (jax.random.key, jnp.int32(5)),
    "bits": (lambda k: jax.random.bits(k, (3, 5), "uint8"), KEY),
    "bfloat16": (lambda k: jax.random.uniform(k, (4,), jnp.bfloat16), KEY),
    "permutation": (lambda k: jax.random.permutation(k, 8), KEY),
    "mapped": (jax.vmap(jax.vmap(lambda k: jax.random.uniform(k, (3,)))), KEYS),
    "moved": (lambda ks: ks[1:3].T.reshape(4)[::-1], KEYS),
    "joined": (lambda ks: jnp.stack([jnp.concatenate([ks, ks]), jnp.tile(ks, (2, 1))], 1), KEYS),
    "chosen": (lambda ks: jnp.where(True, ks, ks[::-1])[jnp.array([1, 2])].at[0].set(ks[0]), KEYS),
    "broadcast": (lambda ks: jnp.broadcast_to(ks[0, 0], (3,)), KEYS),
    "data": (lambda ks: jax.random.key_data(ks) + 1, KEYS),
    "carried": (lambda ks: lax.scan(lambda c, k: (jax.random.fold_in(c, 1), jax.random.bits(k)), ks[0, 0], ks[:, 0]), KEYS),
}


@pytest.mark.parametrize("name", KEYED)
def test_keys_are_numbers_inside_and_draw_the_same_ones(name: str):
    assert whole(check(*KEYED[name])) == []


WHOLE: dict[str, tuple[Any, ...]] = {
    "rng_bit_generator": (lambda k: jax.random.bits(k, (3,)), jax.random.key(0, impl="rbg")),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_primitive_without_a_definition_runs_unpartitioned(name: str):
    assert whole(check(*WHOLE[name])) == [name]


def test_keys_pass_through_regions():
    traced = check(lambda k, n: lax.cond(n > 0, lambda k: jax.random.split(k)[0], lambda k: k, k), KEY, 3)
    assert {"cond", "threefry2x32"} <= set(ops(traced))
    traced = check(lambda k, n: lax.fori_loop(0, n, lambda i, k: jax.random.fold_in(k, i), k), KEY, 3)
    assert {"while", "threefry2x32"} <= set(ops(traced))
    assert not whole(traced)


def test_random_bits_are_elementwise_so_that_they_tile():
    traced = pt.trace(lambda k: jax.random.bits(k, (4, 8)), KEY)
    assert [str(op.results[0].type) for op in traced.main.walk() if op.name == "lax.threefry2x32"] == [
        "!array.array<u32[4, 8]>"
    ]
    assert ops(traced).count("iota") == 2


def test_a_program_prints_as_what_it_computes():
    traced = pt.trace(lambda w, x: jnp.tanh(x @ w) * 2 + 2, X, X)
    assert (
        str(traced.module)
        == """\
builtin.module {
  func.func @main(%0: !array.array<f32[4, 4]>, %1: !array.array<f32[4, 4]>) -> !array.array<f32[4, 4]> attributes \
{arg_names = ["w", "x"], result_names = ["result"]} {
    %2 = lax.dot_general %1, %0 {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[4, 4], f32[4, 4] -> f32[4, 4]
    %3 = lax.tanh %2 : f32[4, 4] -> f32[4, 4]
    %4 = lax.constant {value = 2.0} : f32[]
    %5 = lax.mul %3, %4 : f32[4, 4], f32[] -> f32[4, 4]
    %6 = lax.add %5, %4 : f32[4, 4], f32[] -> f32[4, 4]
    func.return %6 : !array.array<f32[4, 4]>
  }
}"""
    )


@pytest.mark.parametrize("name", ["attention, new key", "embedding", "scan of remat", "index and update", "dtypes"])
def test_a_program_read_back_from_its_text_is_the_same_program(name: str):
    text = str(pt.trace(*PROGRAMS[name]).module)
    assert str(Parser(context(), text).parse_module()) == text


def test_unused_equations_are_removed_and_effects_are_kept():
    def wasteful(x: jax.Array) -> jax.Array:
        jnp.sin(x)
        lax.scan(lambda c, r: (c, r * 2), 0.0, x)
        jax.debug.print("{}", x)
        return x + 1

    assert ops(pt.trace(wasteful, X)) == ["whole", "constant", "add"]


def test_recomputation_is_behind_a_barrier():
    def twice(x: jax.Array) -> jax.Array:
        return jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()

    assert "optimization_barrier" not in ops(pt.trace(twice, X))
    assert ops(check(jax.grad(twice), X)).count("optimization_barrier") == 1
    assert ops(check(jax.grad(lambda x: twice(x) + twice(x)), X)).count("cos") == 4


def test_a_shared_function_is_inlined_afresh_at_every_call():
    inner = jax.jit(lambda x: jnp.sin(x) + 1)
    assert ops(check(lambda x: inner(inner(x)) * inner(x), X)).count("sin") == 3


def test_the_captures_of_a_scan_body_become_consts():
    c = np.arange(4.0, dtype=np.float32)
    traced = check(lambda x: lax.scan(lambda s, r: (s + r * c, s), c, x), X)
    assert traced.arg_names == ("x", "const/0")
    np.testing.assert_array_equal(traced.consts[0], c)


class TestNames:
    def test_arguments_and_results_have_the_paths_of_their_leaves(self):
        def step(params: Any, *xs: Any, mode: str, **more: Any) -> Any:
            assert mode == "train"
            return {"loss": params["w"] + xs[0] + xs[1], "rest": (more["lr"], None)}

        traced = pt.trace(step, {"w": X, "off": None}, X, X, mode="train", lr=0.1, static_argnames="mode")
        assert traced.arg_names == ("params/w", "xs/0", "xs/1", "more/lr")
        assert traced.result_names == ("result/loss", "result/rest/0")
        assert traced.name == "step"
        out = unpartitioned(traced)({"w": X, "off": None}, X, X, mode="train", lr=0.1)
        assert out["rest"][1] is None
        same(out["loss"], 3 * X)

    def test_a_call_is_traced_on_shapes_as_well(self):
        shape = jax.ShapeDtypeStruct((4, 4), jnp.float32)
        assert pt.trace(mlp, [shape], x=shape).arg_names == ("params/0", "x")

    def test_successors_are_the_results_that_replace_arguments(self):
        state = OPTIMIZER.init(WEIGHTS)
        traced = pt.trace(adam_step, WEIGHTS, state, X)
        assert traced.successors["params/1"] == "result/0/1"
        assert traced.successors["state/0/mu/1"] == "result/1/0/mu/1"
        assert "x" not in traced.successors

    def test_tags_and_scopes_name_values_inside(self):
        def loss(w: jax.Array, x: jax.Array) -> jax.Array:
            with jax.named_scope("mlp"):
                with jax.named_scope("up"):
                    h = pt.tag(jnp.sin(x @ w), "hidden")
                y = jax.jit(lambda h: jnp.cos(h) @ w.T)(h)
            return y.sum()

        traced = pt.trace(jax.grad(loss), X, X)
        assert made(traced, "hidden") == made(traced, "grad(hidden)") == ["lax.tag"]
        assert made(traced, "mlp/backward") == ["lax.add_any"]
        plain = pt.trace(loss, X, X)
        assert made(plain, "mlp") == ["lax.dot_general"]
        assert made(plain, "mlp/up") == ["lax.tag"]
        assert plain.value_names[plain.scopes["mlp/up"][0]] == "hidden"
        assert plain.value_names[plain.main.body.block.args[0]] == "w"

    def test_an_operation_knows_its_line(self):
        @jax.jit
        def inner(x: jax.Array) -> jax.Array:
            return jnp.sin(x)

        def outer(x: jax.Array) -> jax.Array:
            first = inner(jnp.where(x > 0, x, 0.0))
            return inner(jnp.where(x > 1, first, 0.0))

        traced = pt.trace(outer, X)
        chosen = [source for op, source in traced.sources.items() if op.name == "lax.select_n"]
        assert [source.line - outer.__code__.co_firstlineno for source in chosen] == [1, 2]
        sines = {source.location() for op, source in traced.sources.items() if op.name == "lax.sin"}
        assert ["return jnp.sin(x)" in each.text for each in sines if each] == [True]
        location = chosen[0].location()
        assert location is not None and "first = inner" in location.text

    def test_a_static_default_is_traced_like_a_static_argument(self):
        def step(x: jax.Array, mode: str = "train") -> jax.Array:
            return x + len(mode)

        traced = pt.trace(step, X, static_argnames="mode")
        assert traced.arg_names == ("x",)
        assert len(traced.flatten((X, "train"))) == len(traced.flatten((X,))) == 1


class TestErrors:
    def test_a_leaf_that_is_not_an_array_points_at_static_argnames(self):
        def step(x: jax.Array, mode: str) -> jax.Array:
            return x

        with pytest.raises(pt.Error, match="static_argnames='mode'") as error:
            pt.trace(step, X, "train")
        assert "def step(x: jax.Array, mode: str)" in str(error.value)

    def test_a_result_that_is_not_an_array_is_an_error(self):
        with pytest.raises(pt.Error, match="`result/1` of `<lambda>` must be an array"):
            pt.trace(lambda x: (x, "no"), X)  # pyright: ignore[reportUnknownLambdaType]

    def test_an_ordered_effect_names_the_effect_and_the_line(self):
        def noisy(x: jax.Array) -> jax.Array:
            return jax.jit(lambda x: (jax.debug.print("{}", x, ordered=True), x)[1])(x)

        with pytest.raises(pt.Error, match="OrderedDebugEffect") as error:
            pt.trace(noisy, X)
        assert "ordered=True" in str(error.value)

    @pytest.mark.parametrize(
        "call, message",
        [
            (lambda f: f(X), "missing a required argument: 'y'"),
            (lambda f: f(X, X, static_argnames="z"), "names `z`, but"),
            (lambda f: f(X, [1], static_argnames="y"), "must be hashable"),
        ],
    )
    def test_a_wrong_call_is_an_error(self, call: Callable[..., Any], message: str):
        def step(x: jax.Array, y: Any) -> jax.Array:
            return x

        with pytest.raises(pt.Error, match=message):
            call(partial(pt.trace, step))

    @pytest.mark.parametrize(
        "args, kwargs, message",
        [
            ((X[:2],), {"mode": 1}, r"argument `x` of `step` is f32\[2, 4\], but was f32\[4, 4\]"),
            ((X.astype(jnp.int32),), {"mode": 1}, "is i32"),
            (([X],), {"mode": 1}, "`x/0` was not there"),
            ((X,), {"mode": 2}, "static `mode` is 2 and was 1"),
            (("x",), {"mode": 1}, "must be an array"),
        ],
    )
    def test_a_traced_program_says_what_it_was_traced_with(self, args: Any, kwargs: Any, message: str):
        def step(x: jax.Array, mode: int) -> jax.Array:
            return x * mode

        traced = pt.trace(step, X, mode=1, static_argnames="mode")
        with pytest.raises(pt.Error, match=message):
            traced.flatten(args, kwargs)


def test_tracing_leaves_the_garbage_collector_as_it_was():
    pt.trace(lambda x: x, X)  # pyright: ignore[reportUnknownLambdaType]
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        pt.trace(lambda x: 1 / 0, X)  # pyright: ignore[reportUnknownLambdaType]
    assert gc.isenabled()
