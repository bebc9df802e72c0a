"""Programs of several kernels: equal to the plain function, forward and backward, whatever sets the kernels are on."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import numpy as np
import pytest
from flax import nnx

import partita as pt
from partita.compiler.graph.graph import Graph
from partita.compiler.jax_private import jax, jnp
from partita.compiler.programs.program import Program

X = np.random.default_rng(0).standard_normal((8, 16), np.float32)
W = np.random.default_rng(1).standard_normal((16, 16), np.float32) / 4
V = np.array([1.0, 2.0], np.float32)
CALLED: list[Any] = []
"""What callbacks have been called with."""


def pathways(**how: Any) -> Program[..., Any]:
    """The program of section 3 of the Pathways paper (arXiv 2203.12533), with devices of their own for each kernel."""
    a = pt.kernel(double, devices=pt.Mesh(data=2).on("A"), **how)
    b = pt.kernel(increase, devices=pt.Mesh(data=2).on("B"), **how)
    c = pt.kernel(halve, devices=pt.Mesh(data=2).on("C"), **how)

    @pt.program
    def f(v: Any) -> Any:
        x = a(v)
        y = b(x)
        z = a(c(x))
        return y, z

    return f


def double(x: Any) -> Any:
    return x * 2.0


def increase(x: Any) -> Any:
    return x + 1.0


def halve(x: Any) -> Any:
    return x / 2.0


def layer(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def mean_of_products(x: Any, y: Any) -> Any:
    return (x * y).mean()


def ops(graph: Graph) -> Counter[str]:
    return Counter(op.name.removeprefix("flow.") for op in graph.op.body.block.ops)


def close(found: Any, expected: Any) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def three_sets(first: int, second: int, third: int, tactics: bool = True) -> Callable[..., Any]:
    """A diamond of kernels on sets of these sizes, with a skip: `h` is read on all three."""
    sets = [pt.Mesh(data=size).on(name) for size, name in zip((first, second, third), "ABC", strict=True)]
    rows = [pt.Tile({"x": 0}, "data")] if tactics else []
    a = pt.kernel(layer, devices=sets[0], tactics=rows)
    b = pt.kernel(layer, devices=sets[1], tactics=rows)
    c = pt.kernel(halve, devices=sets[2], tactics=rows)
    last = pt.kernel(mean_of_products, devices=sets[0], tactics=rows)

    def loss(x: Any, w: Any, v: Any) -> Any:
        h = a(x, w)
        return last(b(h, v), a(c(h) * 2.0, w))

    return loss


def plain(x: Any, w: Any, v: Any) -> Any:
    h = layer(x, w)
    return mean_of_products(layer(h, v), layer(halve(h) * 2.0, w))


def test_the_example_of_pathways() -> None:
    f = pathways()
    y, z = f(V)
    np.testing.assert_array_equal(y, [3, 5])
    np.testing.assert_array_equal(z, [2, 4])
    assert not y.sharding.device_set & z.sharding.device_set
    assert ops(f.graph(V)) == {"kernel": 4, "transfer": 3, "return": 1}
    assert list(f.graph(V).kernels) == ["double", "increase", "halve"]


def test_the_example_of_pathways_with_rows_on_devices() -> None:
    f = pathways(tactics=[pt.DataParallel("data", inputs="x")])
    graph = f.graph(V)
    assert graph.bytes_per_device() == 0 and "f32[data] on A -> f32[data] on B" in graph.text()
    for found, expected in zip(f(V), ([3, 5], [2, 4]), strict=True):
        np.testing.assert_array_equal(found, expected)
        assert {shard.data.shape for shard in found.addressable_shards} == {(1,)}


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 4, 1), (4, 2, 2), (4, 1, 2)])
def test_a_diamond_on_three_sets_and_its_gradient(sizes: tuple[int, int, int]) -> None:
    loss = three_sets(*sizes)
    close(pt.program(loss)(X, W, W), plain(X, W, W))
    step: Any = pt.program(jax.value_and_grad(loss, argnums=(1, 2)))
    close(step(X, W, W), jax.value_and_grad(plain, argnums=(1, 2))(X, W, W))
    text = step.graph(X, W, W).text()
    assert Graph.parse(text).text() == text


def test_a_graph_that_is_read_from_text_runs_on_the_same_devices() -> None:
    row = pt.devices(4, "row")
    a, b = pt.kernel(double, devices=row[:2]), pt.kernel(increase, devices=row[1:])

    @pt.program
    def f(x: Any) -> Any:
        return b(a(x)), a(x)

    read = Graph.parse(f.graph(X).text())
    found = read.run(jnp.asarray(X))
    close(found, (X * 2 + 1, X * 2))
    assert [each.sharding.device_set for each in found] == [each.sharding.device_set for each in f(X)]


def test_the_derivative_of_a_program_runs_kernel_by_kernel() -> None:
    """Without a graph: each gradient is on the set where its argument is used."""
    loss = three_sets(2, 4, 1)
    close(jax.grad(pt.program(loss), argnums=(1, 2))(X, W, W), jax.grad(plain, argnums=(1, 2))(X, W, W))
    first, second = jax.grad(loss, argnums=(1, 2))(X, W, W)
    assert len(first.sharding.device_set) == 2 and len(second.sharding.device_set) == 4


def test_a_batch_of_a_program_is_a_batch_of_each_kernel() -> None:
    loss, batch = three_sets(2, 2, 1), np.stack([X, X * 2, -X])
    every = (None, None)
    close(
        jax.vmap(pt.program(loss), (0, *every))(batch, W, W),
        jax.vmap(plain, (0, *every))(batch, W, W),
    )
    mapped: Any = pt.program(jax.vmap(loss, (0, *every)))
    close(mapped(batch, W, W), jax.vmap(plain, (0, *every))(batch, W, W))
    assert ops(mapped.graph(batch, W, W))["kernel"] == ops(pt.program(loss).graph(X, W, W))["kernel"]


def test_a_loop_of_calls_makes_each_kernel_once() -> None:
    left, right = pt.devices(2, "left"), pt.devices(2, "right")
    here, there = pt.kernel(layer, devices=left), pt.kernel(layer, devices=right)

    @pt.program
    def f(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = there(here(x, w), w)
        return x

    expected = X
    for _ in range(6):
        expected = layer(expected, W)
    close(f(X, W), expected)
    graph = f.graph(X, W)
    assert list(graph.kernels) == ["layer", "layer_1"]
    # Five times `x` crosses, and once `w`.
    assert ops(graph) == {"kernel": 6, "transfer": 6, "return": 1}


def test_code_between_kernels_runs_where_its_operands_are() -> None:
    left, right = pt.devices(2, "left"), pt.devices(2, "right")
    a, b = pt.kernel(double, devices=left), pt.kernel(double, devices=right)

    @pt.program
    def f(x: Any) -> Any:
        h = a(x + 1.0) * 3.0
        return b(jnp.sin(h)), h, x * 5.0

    close(f(X), (np.sin((X + 1) * 6) * 2, (X + 1) * 6, X * 5))
    assert [len(each.sharding.device_set) for each in f(X)] == [2, 2, 2]
    assert f.graph(X).kernels.keys() == {"between", "double", "between_1", "double_1", "between_2"}


def test_programs_share_devices() -> None:
    row = pt.devices(4, "row")
    a, b = pt.kernel(layer, devices=row[:3]), pt.kernel(layer, devices=row[1:])

    @pt.program
    def one(x: Any, w: Any) -> Any:
        return b(a(x, w), w)

    @pt.program
    def other(x: Any, w: Any) -> Any:
        return a(b(x, w), w)

    found = [(one(X, W), other(X, W)) for _ in range(50)]
    close(found[-1], [layer(layer(X, W), W)] * 2)


def test_kernels_may_be_given_as_plans() -> None:
    tactics = pt.Tile({"x": 0}, "data"), pt.Tile({"w": 1}, "model")
    plan = pt.plan(layer, pt.Mesh(data=4, model=2).on("grid"), X, W).apply(*tactics)
    a, b = pt.kernel(plan), pt.kernel(halve, devices=plan.mesh.at(model=1))

    @pt.program
    def f(x: Any, w: Any) -> Any:
        return b(a(x, w))

    close(f(X, W), layer(X, W) / 2)


def test_trees_static_arguments_and_closed_over_arrays() -> None:
    scale = jnp.arange(16.0)

    @pt.kernel(devices=pt.devices(2), static_argnames="by")
    def a(tree: Any, *, by: int) -> Any:
        return {"y": tree["x"] * by + scale[None]}

    @pt.program(static_argnames="by")
    def f(tree: Any, by: int) -> Any:
        return a(tree, by=by), a(tree, by=2 * by)["y"] + scale[None]

    close(f({"x": X}, by=3), ({"y": X * 3 + scale[None]}, X * 6 + 2 * scale[None]))
    close(f({"x": X}, by=4), ({"y": X * 4 + scale[None]}, X * 8 + 2 * scale[None]))


def test_the_memory_of_each_set_is_what_is_alive_there() -> None:
    left, right = (pt.devices(2, name) for name in ("left", "right"))
    a, b = pt.kernel(double, devices=left), pt.kernel(lambda x: (x @ x.T).sum(), devices=right)
    square = np.ones((16, 16), np.float32)
    graph = pt.program(lambda x: (b(a(x)), a(a(x)))).graph(square)
    size = square.nbytes
    # On `left` x, a(x), which is read once more, and a(a(x)); on `right` a(x), at least the product in `b`, and its sum.
    found = graph.compile().memory()
    assert found["left"] == 3 * size and 2 * size + 4 <= found["right"] <= 3 * size + 4
    plan = pt.plan(lambda x: x + double(x), pt.Mesh(data=2), square).apply(pt.Tile({"x": 0}, "data"))
    for how in ("whole", "collective"):
        compiled = plan.lower(how).compile()
        assert list(compiled.memory().values()) == [plan.memory().bytes] == [size]
        assert list(plan.lower(how).compile(donate="x").memory().values()) == [size // 2]


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("devices", [[4, 5, 6, 7], [3, 2, 1, 0], [*range(8)]])
def test_a_mesh_of_other_devices_around_changes_nothing(devices: list[int], kind: str) -> None:
    f = pathways(tactics=[pt.Tile({"x": 0}, "data")])
    gradient: Any = pt.program(jax.grad(lambda v: f(v)[1].sum()))
    # Compiled before, and with the mesh around.
    before = f(V)
    chosen = np.array([jax.devices()[at] for at in devices])
    kinds = (jax.sharding.AxisType[kind],)
    with jax.set_mesh(jax.sharding.Mesh(chosen, ("q",), axis_types=kinds)):
        fresh = pathways()
        results = f(V), f(jnp.asarray(V)), fresh(V), fresh.graph(V).run(V), jax.vmap(fresh)(V[None])
        slope = gradient(V)
    for found in results:
        for one, other in zip(found, before, strict=True):
            np.testing.assert_allclose(np.ravel(one), other)
    np.testing.assert_allclose(slope, [2.0, 2.0])


def test_random_keys_and_integers_cross_sets() -> None:
    left, right = pt.devices(2, "left"), pt.devices(2, "right")

    @pt.kernel(devices=right)
    def noise(key: Any, n: Any) -> Any:
        return jax.random.normal(key, (4, 4)) + n[None]

    @pt.kernel(devices=left)
    def both(key: Any) -> Any:
        return jax.random.split(key)[0], jnp.arange(4) * 2

    @pt.program
    def f(key: Any) -> Any:
        one, n = both(key)
        return noise(one, n)

    def straight(key: Any) -> Any:
        return jax.random.normal(jax.random.split(key)[0], (4, 4)) + jnp.arange(4)[None] * 2

    close(f(jax.random.key(3)), straight(jax.random.key(3)))


def test_recomputation_and_derivatives_by_hand_around_kernels() -> None:
    a, b = pt.kernel(layer, devices=pt.devices(2, "left")), pt.kernel(layer, devices=pt.devices(2, "right"))

    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    def forward(x: Any) -> tuple[Any, None]:
        return x, None

    def backward(_: None, g: Any) -> tuple[Any]:
        return (jnp.clip(g, -0.01, 0.01),)

    clipped.defvjp(forward, backward)

    def loss(a: Callable[..., Any], b: Callable[..., Any], w: Any) -> Any:
        @jax.checkpoint
        def squares(w: Any) -> Any:
            return clipped(b(a(X, w), w)) ** 2

        return squares(w).sum()

    step: Any = pt.program(jax.value_and_grad(partial(loss, a, b)))
    close(step(W), jax.value_and_grad(partial(loss, layer, layer))(W))


def test_a_value_is_gathered_on_the_set_that_wants_it() -> None:
    """Each device there receives a block from the other set, and the rest from its neighbours."""
    a = pt.kernel(double, devices=pt.Mesh(data=4).on("left"), tactics=[pt.Tile({"x": 0}, "data")])

    @pt.kernel(devices=pt.Mesh(data=2, model=2).on("right"))
    def gram(x: Any) -> Any:
        return x.T @ x

    @pt.program
    def f(x: Any) -> Any:
        return gram(a(x))

    graph = f.graph(X)
    assert "flow.transfer %1 : f32[data*2, 16] on left -> f32[data*model*2, 16] on right" in graph.text()
    assert graph.transferred() == {("left", "right"): X.nbytes} and graph.counts()["all_gather"] == 1
    close(f(X), 4 * X.T @ X)


def test_blocks_of_other_sizes_are_made_on_the_set_that_has_the_value() -> None:
    """Columns for rows: an all_to_all, and then each device receives one block."""
    a = pt.kernel(double, devices=pt.Mesh(data=4).on("left"), tactics=[pt.Tile({"x": 0}, "data")])
    b = pt.kernel(double, devices=pt.Mesh(model=2).on("right"), tactics=[pt.Tile({"x": 1}, "model")])

    @pt.program
    def f(x: Any) -> Any:
        return b(a(x))

    assert "f32[8, data.0:2*8] on left -> f32[8, model*8] on right" in f.graph(X).text()
    close(f(X), X * 4)


def test_effects_between_kernels_run_once() -> None:
    """Also those of which nothing is read, and those that have no operands."""
    a, seen = pt.kernel(double, devices=pt.devices(2, "left")), list[str]()

    @pt.program
    def f(x: Any) -> Any:
        jax.experimental.io_callback(lambda: seen.append("alone"), None)
        jax.experimental.io_callback(lambda _: seen.append("argument"), None, x)
        y = a(x)
        jax.experimental.io_callback(lambda _: seen.append("result"), None, y)
        return y

    close(f(X), X * 2)
    jax.effects_barrier()
    assert sorted(seen) == ["alone", "argument", "result"]


def test_code_after_a_kernel_whose_result_lies_on_parts_of_an_axis() -> None:
    tactics = pt.Tile({"x": 0}, "data.0:2"), pt.Tile({"w": 1}, "data.1:2")
    product = pt.kernel(lambda x, w: x @ w, devices=pt.Mesh(data=4).on("left"), tactics=tactics)

    @pt.program
    def f(x: Any, w: Any) -> Any:
        return product(x, w) * 2.0

    close(f(X, W), X @ W * 2)
    assert "f32[data.0:2*4, data.1:2*8] on left -> f32[data.0:2*4, data.1:2*8] on left" in f.graph(X, W).text()


def test_arguments_are_read_wherever_they_are_needed() -> None:
    a, b = pt.kernel(double, devices=pt.devices(2, "left")), pt.kernel(double, devices=pt.devices(2, "right"))
    scale = jnp.arange(16.0)[None]

    @pt.program
    def f(x: Any) -> Any:
        return a(x) * x, b(x) * x * scale, a(x) * scale

    close(f(X), (2 * X * X, 2 * X * X * scale, 2 * X * scale))


def test_equal_code_between_kernels_is_one_kernel() -> None:
    a = pt.kernel(double, devices=pt.devices(2, "left"))

    @pt.program
    def f(x: Any) -> Any:
        for _ in range(8):
            x = a(x) * 0.5
        return x

    assert list(f.graph(X).kernels) == ["double", "between"]
    close(f(X), X)


def test_programs_within_programs_and_devices_of_derivatives() -> None:
    a = pt.kernel(double, devices=pt.devices(2, "left"))
    inner = pt.program(lambda x: a(x) + 1.0)
    close(pt.program(lambda x: inner(np.ones_like(X)) + a(x))(X), 3 + 2 * X)
    last = pt.program(lambda x: a(x).sum(), devices={"left": jax.devices()[6:]})
    assert jax.grad(last)(X).devices() == {*jax.devices()[6:]}


def test_second_derivatives_of_tiled_kernels() -> None:
    sine: Any = pt.kernel(jnp.sin, devices=pt.devices(4, "row"), tactics=[pt.Tile({"x": 0}, "device")])
    z = np.arange(8.0, dtype=np.float32)
    for whole in (jax.hessian, jax.jacfwd):
        close(whole(lambda x: sine(x).sum())(z), whole(lambda x: jnp.sin(x).sum())(z))
    close(jax.jacfwd(lambda s: sine(z * s).sum())(1.0), (z * np.cos(z)).sum())


def layers_on_two_sets() -> tuple[Any, Any]:
    rows = [pt.Tile({"x": 0}, "data")]
    left, right = (pt.kernel(layer, devices=pt.Mesh(data=size).on(f"set{size}"), tactics=rows) for size in (2, 4))
    return left, right


def test_a_scan_of_kernels_on_two_sets_is_written_out() -> None:
    def scanned(left: Any, right: Any) -> Callable[..., Any]:
        def f(x: Any, ws: Any) -> Any:
            def body(x: Any, w: Any) -> Any:
                y = left(x, w)
                return right(y, w * 2), y.sum()

            x, sums = jax.lax.scan(body, x, ws)
            # What the trips have made is read by those of the next loop, and as one array.
            x, _ = jax.lax.scan(lambda x, s: (left(x, ws[0] * s), None), x, sums, reverse=True)
            return left(x, ws[0]).sum() + (sums**2).sum()

        return jax.value_and_grad(f, (0, 1))

    # Larger weights would make rounding errors grow from layer to layer.
    x, ws = (0.3 * np.random.default_rng(0).standard_normal(shape, np.float32) for shape in ((8, 8), (3, 8, 8)))
    found, expected = pt.program(scanned(*layers_on_two_sets()))(x, ws), scanned(layer, layer)(x, ws)
    close(found, expected)


def test_a_scan_of_no_trips_calls_no_kernels() -> None:
    left, right = layers_on_two_sets()

    def program(x: Any, ws: Any) -> Any:
        return jax.lax.scan(lambda x, w: (left(x, w), x.sum()), right(x, x), ws)

    x = np.eye(8, dtype=np.float32)
    last, sums = pt.program(program)(x, np.zeros((0, 8, 8), np.float32))
    np.testing.assert_allclose(last, layer(x, x))
    assert sums.shape == (0,)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (lambda: jnp.ones(8), ()),
        (lambda: 3, ()),
        (lambda: np.ones(8, np.float32), ()),
        (lambda: None, ()),
        (lambda x: None, (V,)),
        (lambda tree: jnp.ones(3), ({},)),
        (lambda: jax.random.key(0), ()),
        (lambda key: jax.random.split(key)[0], (jax.random.key(0),)),
        (lambda x: x, (np.ones((0, 8), np.float32),)),
        (lambda: jax.debug.callback(CALLED.append, 1), ()),
        (lambda: jax.debug.callback(lambda: CALLED.append(1)), ()),
        (lambda x: jax.debug.callback(CALLED.append, 1), (V,)),
    ],
)
def test_kernels_without_arguments_or_results(fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    left, right = pt.devices(2, "left"), pt.devices(4, "right")
    CALLED.clear()
    k, expected = pt.kernel(fn, devices=left), fn(*args)
    jax.effects_barrier()
    called = len(CALLED)
    double_too = pt.program(lambda x, *args: (pt.kernel(double, devices=right)(x), k(*args)))
    found = [k(*args), pt.program(lambda *args: k(*args))(*args), double_too(V, *args)[1], k.plan(*args).lower().run(*args)]
    found.append(k.plan(*args).compile()(*args))
    jax.effects_barrier()
    assert len(CALLED) == 6 * called
    for each in found:
        assert jax.tree.structure(each) == jax.tree.structure(expected)
        close(jax.tree.map(numbers, each), jax.tree.map(numbers, expected))
    graph = double_too.graph(V, *args)
    assert set(graph.compile().memory()) == {"left", "right"}
    assert Graph.parse(graph.text()).text() == graph.text()
    assert str(k.plan(*args)).startswith("Plan of")


def numbers(leaf: Any) -> Any:
    """An array, or the numbers of random keys."""
    return jax.random.key_data(leaf) if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def test_the_text_of_a_graph_with_a_callback_cannot_be_run() -> None:
    k = pt.kernel(lambda x: jax.pure_callback(np.sin, x, x), devices=pt.devices(2))
    with pytest.raises(pt.Error, match="a parameter that has no text, such as the function of a callback"):
        Graph.parse(pt.program(lambda x: k(x)).graph(V).text()).run(V)


LEFT, RIGHT = pt.devices(2, "left"), pt.devices(2, "right")


class Layers:
    """A mixin: two kernels on two sets, and a program of both, as methods."""

    w: Any

    @pt.kernel(devices=LEFT)
    def first(self, x: Any) -> Any:
        return jnp.tanh(x @ self.w[...])

    @pt.kernel(devices=RIGHT)
    def second(self, x: Any) -> Any:
        return x @ self.w[...].T

    @pt.program
    def both(self, x: Any) -> Any:
        return self.second(self.first(x))


@jax.tree_util.register_dataclass
@dataclass
class Tree(Layers):
    w: Any


class Equinox(eqx.Module, Layers):
    w: Any


class Flax(nnx.Module, Layers):
    def __init__(self, w: Any) -> None:
        self.w = nnx.Param(w)


@pytest.mark.parametrize("kind", [Tree, Equinox, Flax])
def test_methods_of_modules(kind: Callable[[Any], Any]) -> None:
    module, other, expected = kind(jnp.asarray(W)), kind(2 * jnp.asarray(W)), jnp.tanh(X @ W) @ W.T
    close(module.first(X), jnp.tanh(X @ W))
    close(module.both(X), expected)
    made = len(module.both.compiled)
    close(other.both(X), jnp.tanh(X @ (2 * W)) @ (2 * W).T)
    close(vars(Layers)["both"](module, X), expected)
    assert len(module.both.compiled) == made
    assert list(module.both.graph(X).sets) == ["left", "right"]
    assert module.first.plan(X).layout("x") == {"x": "f32[8, 16]"}
    step: Any = pt.program(jax.value_and_grad(lambda module, x: module.both(x).sum()))
    value, grads = step(module, X)
    found = jax.value_and_grad(lambda w: (jnp.tanh(X @ w) @ w.T).sum())(jnp.asarray(W))
    close((value, *jax.tree.leaves(grads)), found)
    # As functions, they have the parameters that are left, and are differentiated and mapped.
    assert [*inspect.signature(module.first).parameters] == ["x"]
    program: Any = pt.program
    close(program(module.both)(X), expected)
    close(program(jax.vmap(module.first))(X[None]), jnp.tanh(X @ W)[None])
    close(vars(Layers)["both"](self=module, x=X), expected)


class Scaled:
    """An instance is a constant to its methods, as in `jax.jit`."""

    by = 3.0

    @pt.kernel(devices=LEFT, static_argnames="self")
    def first(self, x: Any) -> Any:
        return x * self.by

    @partial(pt.program, static_argnames="self")
    def both(self, x: Any) -> Any:
        return self.first(x) + 1.0

    @pt.kernel(devices=LEFT)
    def wrong(self, x: Any) -> Any:
        return x * self.by

    @staticmethod
    @pt.kernel(devices=LEFT)
    def alone(x: Any) -> Any:
        return x + 1.0

    planned = pt.kernel(pt.plan(double, LEFT, X))


def test_methods_of_an_instance_that_is_a_constant() -> None:
    scaled, other = Scaled(), Scaled()
    other.by = 5.0
    for each in (scaled, other):
        close(each.first(X), X * each.by)
        close(each.both(X), X * each.by + 1)
    close(Scaled.alone(X), X + 1)
    close(scaled.planned(X), X * 2)
    with pytest.raises(pt.Error, match="argument `self` of `wrong` must be an array") as error:
        scaled.wrong(X)
    assert error.value.helps == ("if it is meant to be a constant: static_argnames='self'",)
