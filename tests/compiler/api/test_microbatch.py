"""`Microbatch`: the batch in a loop, before and after other tactics; and what it refuses."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportMissingTypeStubs=false

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from lowered import executions, interpreted, lowers_from_its_decisions, lowers_from_its_text

import partita as pt
from partita.compiler.cost.loops import loops, main_loops
from partita.dialects.lax import ScanOp
from partita.dialects.mesh import Mesh
from partita.dialects.spmd import Collective

KEYS = jax.random.split(jax.random.key(0), 3)
PARAMS = {name: jax.random.normal(KEYS[0], (64, 64)) / 8 for name in ("up", "down")}
BATCH = {
    "x": jax.random.normal(KEYS[1], (256, 64)),
    "y": jax.random.normal(KEYS[2], (256, 64)),
    "mask": jnp.arange(256) % 3 > 0,
}
ADAM = optax.adam(1e-2)


def loss(params, batch):
    out = jnp.tanh(batch["x"] @ params["up"]) @ params["down"]
    each = jnp.mean((out - batch["y"]) ** 2, axis=1)
    return jnp.sum(each * batch["mask"]) / jnp.sum(batch["mask"])


def step(params, opt, batch):
    value, grads = jax.value_and_grad(loss)(params, batch)
    updates, opt = ADAM.update(grads, opt)
    return optax.apply_updates(params, updates), opt, value


ARGS = PARAMS, ADAM.init(PARAMS), BATCH
WANTED = step(*ARGS)
DATA, MICRO = pt.DataParallel("data", inputs="batch"), pt.Microbatch(4, inputs="batch")
STRATEGIES: dict[str, Sequence[pt.Tactic]] = {
    "alone": [],
    "data": [DATA],
    "zero 1": [DATA, pt.ZeRO(1, "data", params="params", optimizer="opt")],
    "zero 2": [DATA, pt.ZeRO(2, "data", params="params", optimizer="opt")],
    "zero 3": [DATA, pt.ZeRO(3, "data", params="params", optimizer="opt")],
    "fsdp": [DATA, pt.FSDP("data")],
    "megatron": [pt.Megatron("model", column="params/up", row="params/down")],
    "both": [DATA, pt.Megatron("model", column="params/up", row="params/down")],
}


def planned(*tactics: pt.Tactic) -> pt.Plan:
    return pt.plan(step, pt.Mesh(data=4, model=2), *ARGS).apply(*tactics)


def same(found: object, wanted: object) -> None:
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_step_in_parts_is_the_step_before_and_after_other_tactics(name: str) -> None:
    first, last = planned(MICRO, *STRATEGIES[name]), planned(*STRATEGIES[name], MICRO)
    assert str(first.spmd()) == str(last.spmd())
    same(last.compile()(*ARGS), WANTED)
    whole = planned(*STRATEGIES[name])
    assert last.counts()["all_reduce"] <= whole.counts()["all_reduce"] + 2 * (4 - 1), "only what is in the trips is more"
    if name not in ("both", "megatron"):
        # A parameter is gathered once for all trips, forward and backward.
        gathers = {"all_gather": 2} if name in ("zero 3", "fsdp") else {}
        assert last.counts() == whole.counts() | gathers and last.bytes_per_device() <= whole.bytes_per_device()


@pytest.mark.parametrize(("name", "gathers"), [("zero 2", 2), ("zero 3", 2 * 4 + 4), ("fsdp", 2 * 4 + 4)])
def test_what_a_device_cannot_hold_is_sent_in_each_trip(name: str, gathers: int) -> None:
    once = planned(*STRATEGIES[name], MICRO)
    first, last = (
        pt.plan(step, pt.Mesh(data=4, model=2, memory="1kB"), *ARGS).apply(*tactics)
        for tactics in ((MICRO, *STRATEGIES[name]), (*STRATEGIES[name], MICRO))
    )
    assert str(first.spmd()) == str(last.spmd())
    assert last.counts() == once.counts() | {"reduce_scatter": 2 * 4, "all_gather": gathers}
    assert last.counts() == executions(last.spmd())[0] | dict.fromkeys(("all_to_all", "permute"), 0)
    assert last.memory().temporaries < once.memory().temporaries
    assert len(loops(last)) == 2 and main_loops(last, "micro:4") == 1
    same(last.compile()(*ARGS), WANTED)
    same(interpreted(last, [np.asarray(each) for each in jax.tree.leaves(ARGS)]), jax.tree.leaves(WANTED))
    lowers_from_its_text(last)
    lowers_from_its_decisions(last)
    chosen = once.apply(pt.EachTrip("params"))
    assert chosen.counts() == last.counts() and str(chosen.spmd()) == str(last.spmd()).replace(", memory=1kB", "")


def test_no_more_is_sent_in_each_trip_than_there_is_no_memory_for() -> None:
    once = planned(*STRATEGIES["zero 3"], MICRO)
    most, least = once.memory().bytes, once.apply(pt.EachTrip("params")).memory().bytes
    before, plan = None, once
    for limit in range(most + 1, least, -2048):
        plan = pt.plan(step, pt.Mesh(data=4, model=2, memory=f"{limit}B"), *ARGS).apply(*STRATEGIES["zero 3"], MICRO)
        assert plan.memory().bytes <= limit, "it is less than is stored in any case only at the end"
        assert before is None or plan.bytes_per_device() >= before
        before = plan.bytes_per_device()
    assert "sent once: a device holds" in str(once) and "sent in each trip, for a memory of" in str(plan)
    said = [str(once.explain(each)) for each in once.collectives() if each.kind in ("all_gather", "reduce_scatter")]
    assert "gathered once, before the loop" in said[0] and "scattered once, after the loop" in said[-1]


def test_what_is_sent_in_each_trip_of_nested_loops_is_sent_in_the_inner_one() -> None:
    nested = planned(*STRATEGIES["zero 3"], MICRO).tile(["batch/x", "batch/y", "batch/mask"], 0, "u:2")
    plan = nested.apply(pt.EachTrip("params"))
    assert plan.counts() == executions(plan.spmd())[0] | dict.fromkeys(("all_to_all", "permute"), 0)
    assert plan.counts()["all_gather"] > nested.counts()["all_gather"]
    same(plan.compile()(*ARGS), WANTED)
    for nothing in ("batch", "result/0"):
        assert f"each_trip('{nothing}'), which changes nothing" in str(nested.each_trip(nothing))
    assert "changes nothing" not in str(planned(MICRO, pt.EachTrip("params"), *STRATEGIES["zero 3"]))


def test_a_masked_mean_is_one_main_loop_behind_the_sum_of_the_mask() -> None:
    plan = planned(MICRO)
    assert len(loops(plan)) == 2 and main_loops(plan, "micro:4") == 1
    assert all(each.stores == 0 for each in loops(plan))


def test_a_part_of_the_batch_is_stored_at_a_time() -> None:
    found = [planned(DATA, pt.Microbatch(m, inputs="batch")).memory().temporaries for m in (1, 4, 16)]
    assert found[0] > found[1] >= found[2]


def test_the_program_is_as_long_for_any_number_of_parts() -> None:
    texts = [str(planned(DATA, pt.Microbatch(m, inputs="batch")).spmd()) for m in (2, 32)]
    assert len({len(text.splitlines()) for text in texts}) == 1


def test_the_size_of_a_part_says_how_many_there_are() -> None:
    plan = planned(pt.Microbatch(size=64, inputs="batch"))
    assert [*map(str, plan.mesh.loops)] == ["micro:4"]
    again = pt.replay(step, plan.mesh.whole().in_space, plan.trace, *ARGS)
    assert again.layout() == plan.layout() and again.mesh is plan.mesh


def test_a_batch_is_padded_where_the_parts_do_not_divide_it() -> None:
    same(planned(pt.Microbatch(5, inputs="batch", padded=True)).compile()(*ARGS), WANTED)
    same(planned(pt.Microbatch(size=100, inputs="batch", padded=True)).compile()(*ARGS), WANTED)


def test_the_arrays_that_a_step_closes_over_are_not_its_batch() -> None:
    scale = jnp.linspace(0.5, 1.5, 8)

    def scaled(params, x):
        def loss(params):
            return ((x * scale[None, :] @ params["w"] + params["b"]) ** 2).mean()

        return jax.tree.map(jnp.subtract, params, jax.grad(loss)(params))

    params, x = {"w": jnp.ones((8, 3)), "b": jnp.ones((1, 3))}, jnp.linspace(-1, 1, 128).reshape(16, 8)
    plan = pt.plan(scaled, pt.Mesh(data=4), params, x).apply(pt.Microbatch(2), pt.DataParallel("data"))
    assert plan.layout("x") == {"x": "f32[data*micro:2*2, 8]"}
    same(plan.compile()(params, x), scaled(params, x))


def test_a_batch_that_a_function_closes_over_is_found() -> None:
    x = jnp.arange(16).reshape(16, 1) % 3

    def weighed(w):
        return (x * w).sum()

    plan = pt.plan(weighed, pt.Mesh(), w := jnp.ones((1, 4))).apply(pt.Microbatch(2))
    same(plan.compile()(w), weighed(w))


def test_a_batch_that_a_step_closes_over_is_found_beside_an_argument_of_fewer_dims() -> None:
    ids, emb = jnp.arange(128).reshape(16, 8) % 32, jnp.ones((32, 8))

    def looked_up(emb, lengths):
        def loss(emb):
            return (emb[ids] * lengths.sum()).mean()

        return emb - jax.grad(loss)(emb), lengths.sum()

    plan = pt.plan(looked_up, pt.Mesh(), emb, jnp.arange(4)).apply(pt.Microbatch(2))
    assert plan.layout("const/0") == {"const/0": "i32[micro:2*8, 8]"}


def test_what_a_loop_carries_is_in_the_text_of_the_plan() -> None:
    assert "in micro:4: 2 loops, one after another" in str(planned(MICRO))


def normed(params, x):
    for w in params.values():
        x = x @ w
        x = jnp.tanh((x - x.mean(0, keepdims=True)) / jnp.sqrt(x.var(0, keepdims=True) + 1))
    return jnp.mean(x**2)


def test_folds_over_the_batch_in_the_middle_are_refused_or_exact() -> None:
    fn = jax.value_and_grad(normed)
    plan = pt.plan(fn, pt.Mesh(data=4), PARAMS, BATCH["x"])
    with pytest.raises(pt.Error) as refused:
        plan.apply(pt.Microbatch(4, inputs="x"))
    assert "would run 7 loops one after another over the batch, and takes at most 2" in refused.value.title
    assert "loops=7" in refused.value.helps[0]
    assert "is folded over the trips of micro:4, and later ops read it" in refused.value.notes[0]
    assert "test_microbatch.py" in refused.value.notes[0]
    exact = plan.apply(pt.Microbatch(4, inputs="x", loops=12))
    same(exact.compile()(PARAMS, BATCH["x"]), fn(PARAMS, BATCH["x"]))


@pytest.mark.parametrize(
    ("tactic", "title"),
    [
        (pt.Microbatch(), "takes the number of parts or their size, got m=0, size=0"),
        (pt.Microbatch(4, size=4), "takes the number of parts or their size, got m=4, size=4"),
        (pt.Microbatch(-1), "takes the number of parts or their size, got m=-1, size=0"),
        (pt.Microbatch(size=3, inputs="batch"), "parts of 3 examples do not divide the 256 of `batch/"),
        (pt.Microbatch(7, inputs="batch"), "which do not divide over `micro:7` (7 trips)"),
        (pt.Microbatch(4, inputs="batch", name="data"), "`data:4` cannot be a loop: `data` is an axis of the mesh"),
        (pt.Microbatch(4, inputs="batchs"), "batchs"),
    ],
)
def test_wrong_parts_are_refused(tactic: pt.Microbatch, title: str) -> None:
    with pytest.raises(pt.Error) as refused:
        planned(tactic)
    assert title in refused.value.title


def test_a_loop_has_one_name_and_one_number_of_trips() -> None:
    plan = planned().tile("batch/x", 0, "t:4")
    for wrong, title in (("t:8", "loop `t` has 4 trips, and cannot have 8 too"), ("t:0", "loop `t` has 4 trips")):
        with pytest.raises(pt.Error) as refused:
            plan.tile("batch/y", 0, wrong)
        assert title in refused.value.title
    with pytest.raises(pt.Error):
        plan.tile("batch/x", 1, "t:4")
    assert plan.tile("batch/y", 0, "t").layout("batch/y")["batch/y"] == "f32[t:4*64, 64]"


def test_a_mesh_with_loops_is_its_text() -> None:
    mesh = pt.Mesh(data=4).having("t:8").having("u:2")
    assert str(mesh) == "data=4, t:8, u:2" and Mesh.parse(str(mesh)) is mesh
    assert eval(repr(mesh), {"Mesh": pt.Mesh}) is mesh
    assert mesh.size == 4 and mesh["t"] == 8 and mesh.iterations == 64 and mesh.in_space is pt.Mesh(data=4)


def test_a_graph_is_cut_before_and_after_a_loop() -> None:
    plan = planned(*STRATEGIES["zero 3"], MICRO)
    graph = plan.lower("collective")
    same(graph.run(*ARGS), WANTED)
    kinds = [op.name for op in graph.module.walk() if op.name.startswith("flow.")]
    assert kinds.count("flow.redistribute") == sum(plan.counts().values())
    assert not any(isinstance(op, Collective) for op in graph.module.walk())


def test_what_is_sent_in_each_trip_stays_in_the_kernel_of_the_loop() -> None:
    plan = planned(*STRATEGIES["zero 3"], MICRO, pt.EachTrip("params"))
    graph = plan.lower("collective")
    same(graph.run(*ARGS), WANTED)
    trips = (op for op in graph.module.walk() if isinstance(op, ScanOp))
    inside = [op.name for each in trips for op in each.walk() if isinstance(op, Collective)]
    assert 4 * inside.count("spmd.all_gather") == plan.counts()["all_gather"]


def by_hand(trips: int, in_each_trip: bool):
    """A step of ZeRO-3 with micro-batches, on the devices of `data`: parameters gathered and gradients scattered by hand."""

    def whole(w):
        return jax.lax.all_gather(w, "data", axis=0, tiled=True)

    def loss(weights, x, y):
        for w in weights:
            # The transpose of a gather scatters.
            x = jnp.tanh(x @ (whole(w) if in_each_trip else w))
        return jnp.sum((x - y) ** 2) / 512 / 128

    def device(weights, moments, x, y):
        parts = x.reshape(trips, -1, 128), y.reshape(trips, -1, 128)
        used = weights if in_each_trip else [whole(w) for w in weights]

        def trip(sums, part):
            return jax.tree.map(jnp.add, sums, jax.value_and_grad(loss)(used, *part)), None

        (value, grads), _ = jax.lax.scan(trip, (jnp.zeros(()), [jnp.zeros_like(w) for w in used]), parts)
        if not in_each_trip:
            grads = [jax.lax.psum_scatter(g, "data", scatter_dimension=0, tiled=True) for g in grads]
        moments = [0.9 * m + g for m, g in zip(moments, grads, strict=True)]
        return [w - 0.1 * m for w, m in zip(weights, moments, strict=True)], moments, jax.lax.psum(value, "data")

    spec = jax.sharding.PartitionSpec("data")
    ends = (spec, spec, jax.sharding.PartitionSpec())
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.jit(jax.shard_map(device, mesh=mesh, in_specs=(spec,) * 4, out_specs=ends, check_vma=False))


def deep(weights, moments, x, y):
    def loss(weights):
        out = x
        for w in weights:
            out = jnp.tanh(out @ w)
        return jnp.mean((out - y) ** 2)

    value, grads = jax.value_and_grad(loss)(weights)
    moments = [0.9 * m + g for m, g in zip(moments, grads, strict=True)]
    return [w - 0.1 * m for w, m in zip(weights, moments, strict=True)], moments, value


def temporaries(step, *args) -> int:
    found = step.lower(*args).compile().memory_analysis()
    assert found is not None
    return found.temp_size_in_bytes


@pytest.mark.parametrize("in_each_trip", [False, True], ids=["once", "in each trip"])
def test_temporaries_are_those_of_an_accumulation_by_hand(in_each_trip: bool) -> None:
    weights = [jax.random.normal(key, (128, 128)) / 12 for key in jax.random.split(KEYS[0], 8)]
    args = weights, [0 * w for w in weights], jax.random.normal(KEYS[1], (512, 128)), jax.random.normal(KEYS[2], (512, 128))
    plan = pt.plan(deep, pt.Mesh(data=8), *args).apply(
        pt.DataParallel("data", inputs=["x", "y"]),
        pt.ZeRO(3, "data", params="weights", optimizer="moments"),
        pt.Microbatch(4, inputs=["x", "y"]),
        *([pt.EachTrip("weights")] if in_each_trip else []),
    )
    hand = by_hand(4, in_each_trip)
    same(plan.compile()(*args), deep(*args))
    same(hand(*args), deep(*args))
    found, wanted = (temporaries(step, *args) for step in (plan.compile(), hand))
    assert found <= 1.1 * wanted
    assert 0.8 * found < plan.memory().temporaries < 1.25 * found
