"""Parts of a plan on parts of its mesh: each a device set, in one graph of kernels and transfers."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

import itertools
import re
from collections.abc import Callable
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_plans import training
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from lowered import parse as read, reparsed
from xdsl.utils.exceptions import VerifyException

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.cost.counts import count_collectives
from partita.compiler.graph.graph import Graph
from partita.compiler.inputs.lines import at_line
from partita.compiler.plan import lowering
from partita.examples import demo, gpt
from partita.rewrites.lower.to_flow import to_flow
from partita.rewrites.plan_text import stages

MESH = pt.Mesh(stage=2, data=2, model=2)
RANDOM = np.random.default_rng(0)
X, Y = (RANDOM.standard_normal((16, 16), np.float32) for _ in range(2))
PARAMS = {f"{name}{number}": 0.1 * RANDOM.standard_normal((16, 16), np.float32) for name in "wv" for number in range(2)}
HOW = ("whole", "collective")


def forward(params: Any, x: Any) -> Any:
    for number in range(2):
        with jax.named_scope(f"block{number}"):
            x = x + jnp.tanh(x @ params[f"w{number}"]) @ params[f"v{number}"]
    return x


def step(params: Any, x: Any, y: Any) -> Any:
    loss, grads = jax.value_and_grad(lambda params: ((forward(params, x) - y) ** 2).mean())(params)
    return jax.tree.map(lambda old, grad: old - 0.1 * grad, params, grads), loss


def staged(fn: Callable[..., Any] = step, args: Any = (PARAMS, X, Y), mesh: pt.Mesh = MESH) -> Plan:
    plan = pt.plan(fn, mesh, *args)
    return plan.apply(pt.DataParallel("data"), pt.On({"block0": 0, "block1": 1}, "stage"))


def same(found: Any, expected: Any, rtol: float = 1e-5) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-5)


@pytest.mark.parametrize("how", HOW)
def test_a_training_step_on_two_sets_of_four_is_the_step(how: str) -> None:
    plan = staged().tile("params/w*", 1, "model")
    graph = plan.lower(how)
    same(graph.run(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))
    # The activations of a block, and their cotangents: no more crosses.
    assert graph.transferred() == {("stage0", "stage1"): 2048, ("stage1", "stage0"): 2048}
    assert graph.counts() == plan.counts()
    assert Graph.parse(graph.text()).text() == graph.text()
    assert to_flow(reparsed(str(plan.ir())), how).is_structurally_equivalent(graph.module)


def test_each_set_has_as_few_kernels_as_it_can() -> None:
    graph = staged().lower()
    assert [(node.kind, *node.sets) for node in graph.nodes if node.kind in ("kernel", "transfer")] == [
        ("kernel", "stage0"),
        ("transfer", "stage0", "stage1"),
        ("kernel", "stage1"),
        ("transfer", "stage1", "stage0"),
        ("kernel", "stage0"),
        ("kernel", "stage1"),
    ]


def test_parameters_gradients_and_new_parameters_are_on_the_set_of_their_block() -> None:
    plan = staged()
    sets, named = plan.table.sets, plan.source.addresses
    assert sets is not None
    for number in range(2):
        for name in (f"params/w{number}", f"result/0/w{number}", f"grad(params/w{number})"):
            assert {sets.of(value).devices for value in named.find(name).values()} == {f"stage{number}"}
    new, loss = plan.lower().run(PARAMS, X, Y)
    assert [sorted(device.id for device in new[name].devices()) for name in ("w0", "v1")] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert loss.devices() == new["v1"].devices()


@pytest.mark.parametrize(
    "mesh",
    [
        {"stage": 2, "data": 4},
        {"data": 2, "stage": 2, "model": 2},
        {"data": 4, "stage": 2},
        {"stage": 2, "data": 1},
        {"stage": 3, "data": 2},
    ],
    ids=str,
)
def test_sets_lie_along_any_axis(mesh: dict[str, int]) -> None:
    plan = staged(mesh=pt.Mesh(mesh))
    for how in HOW:
        same(plan.lower(how).run(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))


def test_two_axes_may_say_where_and_axes_may_be_split() -> None:
    mesh = pt.Mesh(pod=2, stage=2, data=2)
    plan = pt.plan(step, mesh, PARAMS, X, Y).on("block0", pod=0, stage=1).on("block1", pod=1, stage=0)
    plan = plan.apply(pt.DataParallel("data"))
    assert list(plan.lower().sets) == ["pod0_stage1", "pod1_stage0"]
    same(plan.lower().run(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))
    split = pt.plan(step, pt.Mesh(stage=2, data=4), PARAMS, X, Y).tile("x", 0, "data.0:2").tile("params/w*", 1, "data.1:2")
    graph = split.apply(pt.On({"block0": 0, "block1": 1}, "stage")).lower("collective")
    same(graph.run(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))
    same(Graph.parse(graph.text()).run(*jax.tree.leaves((PARAMS, X, Y))), jax.jit(step)(PARAMS, X, Y))


def test_ops_without_a_claim_run_where_the_fewest_bytes_have_to_cross() -> None:
    def both(x: Any, w: Any, v: Any) -> Any:
        with jax.named_scope("a"):
            left = jnp.tanh(x @ w)
        with jax.named_scope("b"):
            right = (x @ v)[:4]
        return (left[:4] * right).sum() + left.sum()

    args = X, PARAMS["w0"], PARAMS["v0"]
    plan = pt.plan(both, pt.Mesh(stage=2, data=2), *args).apply(pt.On({"a": 0, "b": 1}, "stage"))
    (product,) = [each for each in plan.transfers() if each.use == "mul"]
    assert str(product) == (
        f"`b` from stage=1 to stage=0: 256 bytes to each device, for `mul`{at_line(product.line)}, "
        "no tactic says where, and of its operands there are 256 bytes on stage=0, 256 bytes on stage=1"
    )
    same(plan.lower().run(*args), both(*args))


def test_what_depends_on_numbers_and_keys_is_made_on_each_set() -> None:
    def scaled(x: Any, w: Any, rate: Any, key: Any) -> Any:
        kept = jax.random.bernoulli(key, 0.5, (16, 16)) * (jnp.arange(256.0).reshape(16, 16) * rate)
        with jax.named_scope("block0"):
            x = jnp.tanh(x @ w) * kept
        with jax.named_scope("block1"):
            return jnp.tanh(x @ w) * kept

    args = X, PARAMS["w0"], np.float32(0.5), jax.random.key(0)
    plan = pt.plan(scaled, pt.Mesh(stage=2, data=2), *args).apply(pt.On({"block0": 0, "block1": 1}, "stage"))
    crossing = {each.value: each.bytes for each in plan.transfers()}
    assert crossing == {"block0": 1024, "w": 1024, "rate": 4, "key": 8}
    same(plan.lower().run(*args), jax.jit(scaled)(*args))


def test_a_tied_weight_is_on_one_set_and_its_cotangents_meet_there() -> None:
    def tied(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            with jax.named_scope("block0"):
                h = jnp.tanh(x @ params["e"]) @ params["w"]
            with jax.named_scope("block1"):
                return jnp.square(h @ params["e"].T).mean()

        return jax.grad(loss)(params)

    params = {"e": PARAMS["w0"], "w": PARAMS["w1"]}
    plan = staged(tied, (params, X), pt.Mesh(stage=2, data=2))
    graph = plan.lower()
    same(graph.run(params, X), jax.jit(tied)(params, X))
    assert graph.transferred()["stage1", "stage0"] == 2 * (8 * 16 + 16 * 16) * 4


def test_regions_run_on_one_set() -> None:
    def scanned(x: Any, w: Any) -> Any:
        with jax.named_scope("block0"):
            x, _ = jax.lax.scan(lambda x, _: (jnp.tanh(x @ w), None), x, length=3)
        with jax.named_scope("block1"):
            return jax.lax.cond(x.sum() > 0, lambda x: x @ w, lambda x: x - 1, x)

    args = X, PARAMS["w0"]
    plan = pt.plan(scanned, MESH, *args).apply(pt.On({"block0": 0, "block1": 1}, "stage"), pt.Tile({"x": 0}, "data"))
    for how in HOW:
        same(plan.lower(how).run(*args), jax.jit(scanned)(*args))


@pytest.mark.parametrize("place", [{"block": 1}, {"block": 2}, {"padded": True}], ids=str)
@pytest.mark.parametrize("value", ["x", "w", "v"])
@pytest.mark.parametrize("dim", [0, 1])
def test_what_is_redistributed_to_cross_is_counted(value: str, dim: int, place: dict[str, Any]) -> None:
    w, x = (each[:10, :10] if "padded" in place else each for each in (0.1 * X, Y))
    plan = pt.plan(mlp, pt.Mesh(stage=2, data=4), w, w, x).tile(value, dim, "data", **place).apply(STAGES)
    for graph in map(plan.lower, HOW):
        assert graph.counts() == plan.counts() == count_collectives(plan.collectives(), ())
        assert graph.bytes_per_device() == plan.bytes_per_device()
    for each in (to_cross := [each for each in plan.collectives() if each.move < 0]):
        assert "because of 3: on('block1', stage=1) (it crosses from stage=0 to stage=1" in str(plan.explain(each))
    assert to_cross or "padded" in place or (value, dim) != ("w", 1)
    same(plan.lower().run(w, w, x), mlp(w, w, x))


def test_the_plan_says_what_each_set_does_and_what_crosses() -> None:
    plan = staged().tile("params/w*", 1, "model")
    said = str(plan)
    assert "\non stage=0 a device computes 11.2 kFLOP, receives 1.50 KiB, stores 4.00 KiB\n" in said
    assert "from stage=0 to stage=1: 1 value, 512 bytes to each device" in said
    explained = str(plan.explain("block0"))
    assert "on stage=0: by 2: on('block0', stage=0)" in explained
    assert "crosses to stage=1 for `dot_general`" in explained
    assert not {"stage"}.intersection(axis for each in plan.silent() for axis in each.axes)
    assert plan.check(PARAMS, X, Y) < 1e-3


def test_a_set_takes_its_own_part_of_the_memory_the_flops_and_the_bytes() -> None:
    whole = pt.plan(step, MESH, PARAMS, X, Y).apply(pt.DataParallel("data"))
    plan = whole.apply(pt.On({"block0": 0, "block1": 1}, "stage"))
    assert plan.memory().arguments < 0.6 * whole.memory().arguments
    assert plan.flops_per_device().known < 0.6 * whole.flops_per_device().known
    assert plan.bytes_per_device() < 0.6 * whole.bytes_per_device()
    assert plan.counts() == whole.counts()
    assert plan.transfers() and not whole.transfers()
    assert {text.partition(" on ")[2] for text in plan.layout().values()} == {"stage=0", "stage=1"}
    assert not any(" on " in text for text in whole.layout().values())


@pytest.mark.parametrize("how", HOW)
def test_new_parameters_take_the_buffers_of_donated_ones(how: str) -> None:
    def large(params: Any, x: Any) -> Any:
        grads = jax.grad(lambda params: mlp(params["w"], params["v"], x).sum())(params)
        return jax.tree.map(lambda old, grad: old - 0.1 * grad, params, grads)

    params = {name: jnp.full((256, 256), 0.01) for name in "wv"}
    x = jnp.ones((8, 256))
    plan = pt.plan(large, MESH, params, x).apply(pt.On({"block0": 0, "block1": 1}, "stage"))
    run, expected = plan.lower(how).compile(donate="params"), jax.jit(large)(params, x)
    taken = jax.tree.map(jnp.copy, params)
    first = run(taken, x)
    second = run(first, x)
    assert all(each.is_deleted() for each in jax.tree.leaves(first))
    same(second, jax.jit(large)(expected, x), 1e-4)
    assert plan.memory(donate="params").donated == 256 * 256 * 4
    with pytest.raises(pt.Error, match="argument `params/v` was donated to another call, or deleted"):
        run(first, x)
    with pytest.raises(pt.Error, match=r"nothing matches|no argument"):
        plan.lower(how).compile(donate="parms")


def test_a_plan_file_has_its_sets() -> None:
    plan = staged()
    again = pt.replay(step, MESH, plan.trace, PARAMS, X, Y)
    assert again.trace == plan.trace
    assert again.lower().text() == plan.lower().text()


WRONG: dict[str, tuple[Callable[[Plan], Plan], str]] = {
    "no such coordinate": (lambda plan: plan.on("x", stage=5), "axis `stage` has no coordinate 5"),
    "no coordinate": (lambda plan: plan.on("x"), "`on` needs a part of the mesh"),
    "no such axis": (lambda plan: plan.on("x", stag=0), "the mesh has no axis `stag`"),
    "no number": (lambda plan: plan.on("x", stage="a"), "`stage` takes an integer, got 'a'"),  # pyright: ignore
    "no such value": (lambda plan: plan.on("blok0", stage=1), "no value and no scope is named `blok0`"),
    "claimed": (lambda plan: plan.on("block0", stage=1), "what 'block0' names is on stage=0 by 2: on('block0', stage=0)"),
    "another axis": (lambda plan: plan.on("x", model=1), "the device sets of the plan are along `stage`"),
    "tiled on it": (lambda plan: plan.tile("x", 0, "stage"), "`stage` says on which devices ops run, and is no place for dims"),
    "tactics without a mapping": (
        lambda plan: plan.apply(pt.On(["block0"], "stage")),  # pyright: ignore[reportArgumentType]
        "`values` takes a coordinate for each pattern, got ['block0']",
    ),
    "tactics without a number": (
        lambda plan: plan.apply(pt.On({"block0": 0.5}, "stage")),  # pyright: ignore[reportArgumentType]
        "`stage` takes an integer, got 0.5",
    ),
    "a loop": (lambda plan: plan.tile("x", 0, "t:2"), "the plan is on several device sets, and a loop runs on one"),
    "micro-batches": (lambda plan: plan.apply(pt.Microbatch(2)), "the plan is on several device sets, and a loop runs on one"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_and_the_plan_stays(wrong: str) -> None:
    plan = staged()
    before = plan.lower().text()
    act, title = WRONG[wrong]
    with pytest.raises(pt.Error) as found:
        act(plan)
    assert found.value.title == title
    assert plan.lower().text() == before


def test_what_is_of_one_set_is_refused() -> None:
    plan = staged()
    for act in (plan.spmd, plan.compile):
        with pytest.raises(pt.Error, match="a whole mesh, and the plan is on parts of it: stage=0 and stage=1"):
            act()
    with pytest.raises(pt.Error, match="dims are placed on `data`, so that its devices are no device sets"):
        pt.plan(step, MESH, PARAMS, X, Y).apply(pt.DataParallel("data")).on("x", data=0)
    with pytest.raises(pt.Error, match="the plan has loops, t:2, and a loop runs on one device set"):
        pt.plan(step, MESH, PARAMS, X, Y).tile("x", 0, "t:2").on("block0", stage=0)


def test_values_may_be_on_a_set_on_which_nothing_runs() -> None:
    def double(x: Any, y: Any) -> Any:
        return x * 2, y

    graph = pt.plan(double, MESH, X, Y).on("x", stage=1).on("mul#0", stage=0).on("y", stage=1).lower()
    assert list(graph.sets) == ["stage0", "stage1"]
    same(Graph.parse(graph.text()).run(X, Y), double(X, Y))


# --- found faults ------------------------------------------------------------------------------------------------------


def mlp(w: Any, v: Any, x: Any) -> Any:
    with jax.named_scope("block0"):
        h = jnp.tanh(x @ w)
    with jax.named_scope("block1"):
        return h @ v


W, V = PARAMS["w0"], PARAMS["v0"]
STAGES = pt.On({"block0": 0, "block1": 1}, "stage")


@pytest.mark.parametrize("mesh", [{"data": 4, "stage": 2}, {"stage": 2, "data": 4}], ids=str)
@pytest.mark.parametrize("shape", [(16, 5), (64, 2), (5, 16)], ids=str)
def test_nothing_goes_along_the_axis_of_the_sets(mesh: dict[str, int], shape: tuple[int, int]) -> None:
    def f(x: Any) -> Any:
        with jax.named_scope("block0"):
            h = jnp.sort(jnp.tanh(x), axis=1)
        with jax.named_scope("block1"):
            return h * 2

    x = RANDOM.standard_normal(shape, np.float32)
    plan = pt.plan(f, pt.Mesh(mesh), x).apply(STAGES).tile("x", 1, "data", padded=True)
    assert all("stage" not in each.axes for each in plan.collectives())
    for how in HOW:
        same(plan.lower(how).run(x), f(x))


def test_claims_of_what_is_made_of_keys_hold() -> None:
    def init(key: Any) -> Any:
        first, second = jax.random.split(key)
        with jax.named_scope("block0"):
            w = jax.random.normal(first, (64, 64))
        with jax.named_scope("block1"):
            return w, jax.random.normal(second, (64, 64))

    key = jax.random.key(0)
    graph = pt.plan(init, MESH, key).apply(STAGES).lower()
    found = graph.run(key)
    assert [min(device.id for device in each.devices()) for each in found] == [0, 4]
    assert graph.transferred() == {("stage0", "stage1"): 32}
    same(found, init(key))


def test_a_rewriting_after_the_claims_keeps_ops_on_their_sets() -> None:
    def f(w: Any, v: Any, x: Any) -> Any:
        with jax.named_scope("block0"):
            h = jnp.tanh(x @ w)
        with jax.named_scope("block1"):
            return jnp.sin(h @ w) * (h @ v)

    args = W, V, X
    plan = pt.plan(f, MESH, *args)
    before, after = (each.lower() for each in (plan.rewrite("stack").apply(STAGES), plan.apply(STAGES).rewrite("stack")))
    assert before.transferred() == after.transferred()
    same(after.run(*args), f(*args))


def test_the_order_of_coordinates_is_that_of_the_mesh() -> None:
    plan = pt.plan(mlp, pt.Mesh(pod=2, stage=2, data=2), W, V, X).on("block0", stage=0, pod=0).on("block1", pod=0, stage=0)
    assert list(plan.lower().sets) == ["pod0_stage0"] and not plan.transfers()
    with pytest.raises(pt.Error, match="what 'block0' names is on pod=0, stage=0 by 1"):
        plan.on("block0", stage=1, pod=1)


def test_gathers_that_wait_cross_nothing() -> None:
    gradients = jax.grad(lambda params, x, y: jnp.mean((mlp(params["w"], params["v"], x) - y) ** 2))
    args = {"w": W, "v": V}, X, Y
    plan = pt.plan(gradients, MESH, *args).apply(STAGES).tile("x", 0, "data").apply(pt.ZeRO(3, "data", params="params"))
    graph = plan.lower("collective")
    assert sum(node.kind == "transfer" for node in graph.nodes) == len(plan.transfers()) == 2
    same(graph.run(*args), gradients(*args))


def test_callbacks_and_constraints_need_no_place_on_the_axis_of_the_sets() -> None:
    devices = jax.make_mesh((2, 4), ("stage", "data"), axis_types=(AxisType.Auto,) * 2)

    def f(w: Any, v: Any, x: Any) -> Any:
        with jax.named_scope("block0"):
            h = jax.pure_callback(lambda x: np.tanh(x), jax.ShapeDtypeStruct(X.shape, X.dtype), x @ w)
        with jax.named_scope("block1"):
            return jax.lax.with_sharding_constraint(h @ v, NamedSharding(devices, PartitionSpec("data")))

    plan = pt.plan(f, pt.Mesh(stage=2, data=4), W, V, X).apply(STAGES, pt.Annotated())
    assert plan.layout("result") == {"result": "f32[data*4, 16] on stage=1"}
    same(plan.lower().run(W, V, X), mlp(W, V, X))


def test_at_restricts_claims_of_sets() -> None:
    plan = pt.plan(mlp, MESH, W, V, X).tile("x", 0, "data").apply(pt.at("block1", pt.On({"**": 1}, "stage")))
    sets, program = plan.table.sets, plan.source.program
    assert sets is not None and [program.nodes[number].op_name for number in sets.claims.ops] == ["dot_general"]
    assert plan.trace.splitlines()[-1] == "at('block1', on('**', stage=1))"
    same(plan.on("block0", stage=0).lower().run(W, V, X), mlp(W, V, X))


def test_recomputed_blocks_are_where_their_scopes_are() -> None:
    def block(number: int, act: Callable[..., Any]) -> Callable[..., Any]:
        def run(w: Any, x: Any) -> Any:
            with jax.named_scope(f"block{number}"):
                return jnp.tanh(act(x @ w))

        return jax.checkpoint(run)

    first, second = block(0, jnp.sin), block(1, lambda x: x)
    gradients = jax.grad(lambda w, v, x: second(v, first(w, x)).sum(), (0, 1))
    plan = pt.plan(gradients, MESH, W, V, X).apply(STAGES)
    sets, arguments = plan.table.sets, plan.source.addresses.arguments
    assert sets is not None and [sets.of(arguments[name]).devices for name in "wv"] == ["stage0", "stage1"]
    assert len(plan.transfers()) == 2
    same(plan.lower("collective").run(W, V, X), gradients(W, V, X))


def test_axes_may_be_called_as_parameters_are() -> None:
    plan = pt.plan(mlp, pt.Mesh(values=2, data=4), W, V, X).on("block0", values=0).on("block1", values=1)
    same(plan.lower().run(W, V, X), mlp(W, V, X))


def test_many_claims_are_made_at_once() -> None:
    def deep(w: Any, x: Any) -> Any:
        for number in range(300):
            with jax.named_scope(f"block{number}"):
                x = jnp.tanh(x @ w)
        return x

    plan = pt.plan(deep, MESH, W, X)
    start = process_time()
    plan = plan.apply(pt.On({f"block{number}": number // 150 for number in range(300)}, "stage"))
    assert len(plan.transfers()) == 2
    assert process_time() - start < 5


@pytest.mark.parametrize(
    ("old", "new", "title"),
    [
        ("#plan.on<stage=0 by 2>", "#plan.on<stage=5 by 2>", "axis `stage` has no coordinate 5"),
        ("#plan.on<stage=0 by 2>", "#plan.on<data=0 by 2>", "`lax.dot_general` is on `data=0 by 2`"),
        ("#plan.on<stage=0 by 2>", "#plan.on<stage=0 by 0>", "`lax.dot_general` is on `stage=0 by 0`"),
        ("#plan.on<stage=0 by 2>", "#plan.on<stage=0 by 2>, #plan.on<stage=1 by 2>", "`lax.dot_general` is on `stage=1 by 2`"),
        ("stage=2 sets", "stage=2", "`lax.dot_general` is on `stage=0 by 2`"),
    ],
)
def test_wrong_claims_in_a_text_are_refused(old: str, new: str, title: str) -> None:
    plan = pt.plan(mlp, MESH, W, V, X).tile("x", 0, "data").apply(STAGES)
    with pytest.raises(pt.Error) as found:
        stages.decided(read(str(lowering.claims(plan)).replace(old, new, 1)))
    assert found.value.title == title


@pytest.mark.parametrize("new", ['"data=4"', "3", '"dta="'])
def test_wrong_parts_in_a_placed_text_are_refused(new: str) -> None:
    plan = pt.plan(mlp, MESH, W, V, X).apply(STAGES)
    said = '"data@stage0=2, model@stage0=2 of [stage=2 sets, data=2, model=2] at 0:4"'
    with pytest.raises(VerifyException, match=r"is no part of a mesh|is not a mesh"):
        to_flow(read(re.sub(rf"array.on = {re.escape(said)}", f"array.on = {new}", str(plan.ir()), count=1)))


# --- models ------------------------------------------------------------------------------------------------------------


def layered(monkeypatch: pytest.MonkeyPatch, layers: int) -> None:
    """Gives each layer of the demo a scope of its own."""
    block, count = gpt.block, itertools.count()

    def scoped(x: Any, p: Any) -> Any:
        with jax.named_scope(f"layer{next(count) % layers}"):
            return block(x, p)

    monkeypatch.setattr(gpt, "block", scoped)


@pytest.mark.parametrize("how", HOW)
def test_the_first_half_of_a_transformer_on_one_set_and_the_rest_on_the_other(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = gpt.Config(length=16, layers=2, width=32)
    layered(monkeypatch, 2)
    args = training(config)
    plan = pt.plan(gpt.train_step, MESH, *args).apply(*demo.TACTICS.values(), pt.On({"layer0": 0, "layer1": 1}, "stage"))
    graph = plan.lower(how)
    found, expected = (jax.tree.leaves(run(*args)) for run in (graph.run, jax.jit(gpt.train_step)))
    same(found[-1], expected[-1], 2e-4)
    for one, other in zip(found, expected, strict=True):
        # Adam divides by gradients that may be nearly zero.
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-3)
    # Beside the activations and their cotangents only what is tied crosses, and the number of the step.
    crossing = [each.value for each in plan.transfers()]
    assert len(crossing) <= 6
    assert any("count" in each for each in crossing)


def test_half_of_a_unet_on_each_set() -> None:
    from partita.examples import unet as model

    args = model.create_state(), model.random_images(), jax.random.key(2)
    plan = pt.plan(model.train_step, MESH, *args).apply(*model.WAYS["zero"])
    plan = plan.apply(pt.On({"UNet/down": 0, "UNet/*": 1}, "stage"))
    same(jax.tree.leaves(plan.lower().run(*args))[-1], jax.tree.leaves(jax.jit(model.train_step)(*args))[-1], 2e-4)
