"""Programs as people write them, partitioned in several ways: equal to the unpartitioned run, with the number of collectives
that reasoning gives, forward and backward."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import partita as pt
from partita.compiler.api.plan import Plan
from partita.examples import decode, graph_network as graphs, lstm, moe, vocabulary

# JAX's own schedules of one step differ by about 3e-5.
BOUND = 2e-4

DATA = pt.DataParallel("data", inputs="batch")


def holds(plan: Plan, *args: Any, **counts: int) -> None:
    """The plan has these collectives, no conflicts and nothing unpartitioned, and computes what the program does."""
    assert {kind: count for kind, count in plan.counts().items() if count} == counts
    assert not plan.conflicts
    assert not plan.whole
    assert plan.check(*args) <= BOUND


# A mixture of experts. Of five parameters three are the experts': the loss and the two other gradients are summed over tokens.


@cache
def tokens() -> Any:
    return moe.arguments(moe.Config(groups=8, tokens=16, width=16, experts=8, hidden=32))


LAYERS = pytest.mark.parametrize("layer", [moe.mixture, moe.scattered_mixture])


def moe_plan(layer: moe.Layer, mesh: pt.Mesh) -> Plan:
    def step(params: Any, batch: Any) -> Any:
        return moe.train_step(params, batch, layer)

    return pt.plan(step, mesh, *tokens())


@LAYERS
def test_tokens_travel_to_their_experts_and_back_and_so_do_their_gradients(layer: moe.Layer) -> None:
    # Into the experts and out of them, forward and backward. The experts' gradients are complete on the expert's device.
    plan = moe_plan(layer, pt.Mesh(data=8)).apply(*moe.TACTICS)
    assert plan.layout("result/0/experts/w1") == {"result/0/experts/w1": "f32[data, 16, 32]"}
    holds(plan, *tokens(), all_to_all=2 + 2, all_reduce=1 + 2)


@LAYERS
def test_tokens_travel_to_their_experts_and_back_forward_alone(layer: moe.Layer) -> None:
    params, batch = tokens()
    plan = pt.plan(layer, pt.Mesh(data=8), params, batch["x"])
    plan = plan.apply(pt.ExpertParallel("data", experts="params/experts"), pt.DataParallel("data", inputs="x"))
    holds(plan, params, batch["x"], all_to_all=2)


@LAYERS
def test_a_mixture_of_experts_whose_tokens_alone_are_placed_sums_each_gradient(layer: moe.Layer) -> None:
    holds(moe_plan(layer, pt.Mesh(data=8)).apply(DATA), *tokens(), all_reduce=1 + 5)


@LAYERS
def test_experts_that_are_split_themselves_add_the_sums_of_megatron(layer: moe.Layer) -> None:
    # After w2 forward, and after w1 backward: on the experts' devices, before the tokens travel back.
    megatron = pt.Megatron("model", column={"params/experts/w1": 2}, row={"params/experts/w2": 1})
    plan = moe_plan(layer, pt.Mesh(data=4, model=2)).apply(*moe.TACTICS, megatron)
    assert plan.layout("params/experts/b1") == {"params/experts/b1": "f32[data*2, model*16]"}
    # Each sum is the longer side of its exchange: it is scattered, and travels back in halves.
    holds(plan, *tokens(), all_to_all=2 + 2, reduce_scatter=2, all_gather=2, all_reduce=1 + 2)


def test_the_trace_of_expert_parallelism_replays() -> None:
    plan = pt.plan(moe.train_step, pt.Mesh(data=8), *tokens()).apply(*moe.TACTICS)
    assert pt.replay(moe.train_step, pt.Mesh(data=8), plan.trace, *tokens()).counts() == plan.counts()


def test_a_plan_says_who_sent_the_tokens() -> None:
    plan = pt.plan(moe.train_step, pt.Mesh(data=8), *tokens()).apply(*moe.TACTICS)
    sent = [each for each in plan.collectives() if each.kind == "all_to_all"]
    assert all("moe.py" in str(each.source) for each in sent)
    assert "ExpertParallel" in plan.explain("params/experts/w1")


# A graph network of S steps, each with a perceptron for the edges and one for the nodes, of three parameters each.

S = 2
GRAPH = graphs.Config(nodes=8, edges=32, features=4, width=8, steps=S)


@cache
def network() -> Any:
    return graphs.parameters(GRAPH), graphs.random_graph(GRAPH)


def test_edges_over_devices_sum_once_a_step_what_arrives_at_the_nodes() -> None:
    plan = pt.plan(graphs.forward, pt.Mesh(data=8), *network()).apply(graphs.EDGES)
    holds(plan, *network(), all_reduce=S)


def test_a_graph_network_trains_with_its_edges_over_devices() -> None:
    # Backward: the nodes' gradients from both ends of the edges, added to their own before the sum, and the gradients of
    # the edges' perceptron.
    plan = pt.plan(graphs.train_step, pt.Mesh(data=8), *network()).apply(graphs.EDGES)
    holds(plan, *network(), all_reduce=S * (1 + 1 + 3))


def test_perceptrons_split_over_a_second_axis_add_the_sums_of_megatron() -> None:
    # After each perceptron forward, before it backward, on every edge or node of the device. What edges send to nodes is summed
    # over them, and over both axes at once.
    megatron = pt.Megatron("model", column="params/**/w1", row="params/**/w2")
    plan = pt.plan(graphs.train_step, pt.Mesh(data=4, model=2), *network()).apply(graphs.EDGES, megatron)
    holds(plan, *network(), all_reduce=S * (1 + 1 + 3) + S * (1 + 2))


def test_graphs_over_devices_sum_the_loss_and_each_gradient() -> None:
    params, _ = network()
    many = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(graphs.random_graph(GRAPH, seed) for seed in range(8)))
    plan = pt.plan(graphs.train_step_on_many, pt.Mesh(data=8), params, many)
    holds(plan.apply(pt.DataParallel("data", inputs="graphs")), params, many, all_reduce=1 + len(jax.tree.leaves(params)))


# An LSTM of T steps; the gradients of its three weights inside the loop, of the one after it, and the loss are summed once.

T = 5
ONCE = 3 + 1 + 1


@cache
def series() -> Any:
    return lstm.arguments(lstm.Config(batch=8, length=T, features=4, hidden=8))


def test_an_lstm_over_a_batch_sums_the_gradients_of_all_trips_at_once() -> None:
    plan = pt.plan(lstm.train_step, pt.Mesh(data=8), *series()).apply(lstm.DATA)
    assert {each.times for each in plan.collectives()} == {1}
    holds(plan, *series(), all_reduce=ONCE)


def test_an_lstm_over_its_units_gathers_those_of_the_step_before() -> None:
    # Forward, the units are gathered in each trip, and summed after the loop by `out`. Backward, they are gathered again for
    # the gradient of `wh`, and their gradient from the gates is summed where each unit is.
    plan = pt.plan(lstm.train_step, lstm.MESH, *series()).apply(lstm.UNITS)
    assert plan.layout("params/w[xh]") == {"params/wh": "f32[8, 4, model*4]", "params/wx": "f32[4, 4, model*4]"}
    holds(plan, *series(), all_gather=T + T, reduce_scatter=T, all_reduce=1)


def test_an_lstm_over_batch_and_units_does_both() -> None:
    plan = pt.plan(lstm.train_step, lstm.MESH, *series()).apply(lstm.DATA, lstm.UNITS)
    holds(plan, *series(), all_gather=T + T, reduce_scatter=T, all_reduce=ONCE + 1)


# A decoder of L layers that makes N tokens; the cache has room for them.

L, N = 2, 4
SIZES = {"heads": 4, "layers": L, "batch": 4, "length": N, "width": 8, "head": 2, "vocabulary": 8}


@cache
def heads() -> Any:
    return decode.arguments(decode.Config(kv=4, **SIZES))


@cache
def one_head() -> Any:
    return decode.arguments(decode.Config(kv=1, **SIZES))


def test_decoding_over_a_batch_communicates_nothing() -> None:
    batch = pt.DataParallel("data", inputs=["cache", "first"])
    holds(pt.plan(decode.decode, decode.MESH, *one_head()).apply(batch), *one_head())


def test_decoding_with_heads_over_devices_sums_twice_a_layer_and_step() -> None:
    plan = pt.plan(decode.decode, decode.MESH, *heads()).apply(decode.MULTI_HEAD)
    assert plan.layout("cache/0/k") == {"cache/0/k": "f32[4, 4, model, 2]"}
    holds(plan, *heads(), all_reduce=2 * L * N)


def test_decoding_with_one_head_of_keys_on_every_device_sums_as_often() -> None:
    plan = pt.plan(decode.decode, decode.MESH, *one_head()).apply(decode.MULTI_QUERY)
    assert plan.layout("cache/0/k") == {"cache/0/k": "f32[4, 4, 1, 2]"}
    holds(plan, *one_head(), all_reduce=2 * L * N)


def test_a_cache_by_its_batch_sends_the_queries_there_and_what_they_find_back() -> None:
    # The queries are made by heads, attention runs by rows of the batch, and `wo` reads heads again.
    plan = pt.plan(decode.decode, decode.MESH, *one_head()).apply(decode.BATCHED, decode.MULTI_QUERY)
    kept = "f32[model, 4, 1, 2]"
    assert plan.layout(["cache/0/k", "result/1/0/k"]) == {"cache/0/k": kept, "result/1/0/k": kept}
    holds(plan, *one_head(), all_reduce=2 * L * N, all_to_all=2 * L * N)


def test_a_cache_by_its_positions_puts_together_what_is_found_in_each() -> None:
    # The largest score, the sum of the weights, the weighted sum; a device writes a new key only if it holds the position.
    plan = pt.plan(decode.decode, decode.MESH, *one_head()).apply(decode.POSITIONS)
    assert plan.layout("result/1/0/v") == {"result/1/0/v": "f32[4, model, 1, 2]"}
    holds(plan, *one_head(), all_reduce=3 * L * N)


def ending(kv: int) -> Any:
    """A decoder that usually ends early, and a cache of which it never needs all positions."""
    params, cache, first = decode.arguments(decode.Config(kv=kv, **{**SIZES, "length": 2 * N}))
    return {**params, "out": params["out"].at[:, decode.END].mul(3)}, cache, first


@pytest.mark.parametrize(
    ("kv", "tactics", "counts"),
    [
        (1, [pt.DataParallel("data", inputs=["cache", "first"])], {"all_reduce": 1}),
        (4, [decode.MULTI_HEAD], {"all_reduce": 2 * L}),
        (1, [decode.MULTI_QUERY], {"all_reduce": 2 * L}),
        (1, [decode.BATCHED, decode.MULTI_QUERY], {"all_reduce": 2 * L, "all_to_all": 2 * L}),
    ],
    ids=["batch", "multi-head", "multi-query", "multi-query, the cache by its batch"],
)
def test_a_loop_until_the_end_counts_one_step_and_says_of_which_loop(kv: int, tactics: Any, counts: dict[str, int]) -> None:
    # The number of steps is unknown. Over a batch, all devices decide together whether every row is at its end.
    args = ending(kv)
    plan = pt.plan(decode.decode_until_end, decode.MESH, *args).apply(*tactics)
    assert {each.times for each in plan.collectives()} == {1}
    assert all("while#0" in str(each) for each in plan.collectives())
    holds(plan, *args, **counts)


def test_a_partitioned_loop_ends_when_every_row_has() -> None:
    args = ending(1)
    plan = pt.plan(decode.decode_until_end, decode.MESH, *args).apply(decode.BATCHED, decode.MULTI_QUERY)
    tokens, steps = plan.compile()(*args)
    assert (int(steps), tokens.shape[0]) == (5, 8)
    assert (tokens[int(steps) - 1] == decode.END).all()


def taught(args: Any) -> Any:
    """The first layer's parameters and cache, and a text for the decoder to produce."""
    params, cache, _ = args
    return {**params, "layers": params["layers"][:1]}, cache[:1], jax.random.randint(jax.random.key(1), (N + 1, 4), 0, 8)


@pytest.mark.parametrize("args", [heads, one_head], ids=["multi-head", "multi-query"])
def test_the_gradient_through_a_cache_by_its_batch_is_summed_behind_the_loop(args: Callable[[], Any]) -> None:
    given = taught(args())
    batch = pt.Tile({"cache": 0, "tokens": 1}, "data")
    plan = pt.plan(jax.value_and_grad(decode.surprise), decode.MESH, *given).apply(batch)
    holds(plan, *given, all_reduce=1 + len(jax.tree.leaves(given[0])))


def test_the_gradient_through_a_cache_by_its_positions_sums_what_each_device_knows() -> None:
    # Backward through the softmax, to the query, and to the new key and value, which are on the device of their position.
    given = taught(one_head())
    plan = pt.plan(jax.value_and_grad(decode.surprise), decode.MESH, *given).apply(decode.POSITIONS)
    holds(plan, *given, all_reduce=(3 + 4) * N)


@pytest.mark.parametrize(
    ("args", "tactic", "behind"),
    [(heads, decode.MULTI_HEAD, 0), (one_head, decode.MULTI_QUERY, 2)],
    ids=["multi-head", "multi-query"],
)
def test_the_gradient_through_a_cache_sums_before_each_part_of_the_layer(
    args: Callable[[], Any], tactic: Any, behind: int
) -> None:
    # Before attention and before the perceptron. The one head of keys and values gets gradients from all queries. They stay
    # pending sums: the loop accumulates them, and those of `wk` and `wv` are summed after it.
    given = taught(args())
    plan = pt.plan(jax.value_and_grad(decode.surprise), decode.MESH, *given).apply(tactic)
    holds(plan, *given, all_reduce=(2 + 2) * N + behind)


# Blocks whose attention and perceptron are parallel, as in GPT-J: both are added to the stream before it is summed.


def test_a_block_of_parallel_parts_sums_once_forward() -> None:
    def block(x: jax.Array, w: Any) -> jax.Array:
        h = decode.normal(x)
        return x + jnp.tanh(h @ w["a1"]) @ w["a2"] + jnp.tanh(h @ w["b1"]) @ w["b2"]

    keys = jax.random.split(jax.random.key(0), 5)
    names = [("a1", (8, 16)), ("a2", (16, 8)), ("b1", (8, 16)), ("b2", (16, 8))]
    given = jax.random.normal(keys[4], (4, 8)), {n: jax.random.normal(k, s) for k, (n, s) in zip(keys, names, strict=False)}
    tactic = pt.Megatron("model", column="w/?1")
    holds(pt.plan(block, pt.Mesh(model=8), *given).apply(tactic), *given, all_reduce=1)


# A vocabulary over devices.

# The rows that are looked up, the largest logit of a token, the sum of their exponentials, the logit of the right one.
FORWARD = 4


@cache
def words() -> Any:
    return vocabulary.arguments(vocabulary.Config(vocabulary=16, width=8, batch=4, length=5))


def test_a_loss_over_the_vocabulary_sums_rows_and_never_logits() -> None:
    plan = pt.plan(vocabulary.loss, pt.Mesh(model=8), *words()).apply(vocabulary.VOCABULARY)
    assert max(each.bytes for each in plan.collectives()) == 2 * (4 * 4 * 8 * 4) * 7 // 8
    holds(plan, *words(), all_reduce=FORWARD)


def test_the_gradient_of_a_lookup_is_added_where_the_row_lies() -> None:
    # Backward: only the sum over the vocabulary in the gradient of the mixed rows; scattering sends nothing.
    plan = pt.plan(vocabulary.train_step, pt.Mesh(model=8), *words()).apply(vocabulary.VOCABULARY)
    assert plan.layout("result/0/in") == {"result/0/in": "f32[model*2, 8]"}
    holds(plan, *words(), all_reduce=FORWARD + 1)


def test_a_vocabulary_and_a_batch_over_devices_add_the_gradients_of_the_batch() -> None:
    plan = pt.plan(vocabulary.train_step, pt.Mesh(data=2, model=4), *words()).apply(vocabulary.DATA, vocabulary.VOCABULARY)
    holds(plan, *words(), all_reduce=FORWARD + 1 + 1 + 3)


def test_a_vocabulary_shared_by_both_ends_sums_as_often() -> None:
    # The two gradients of the one table have the same layout, so adding them sends nothing.
    def tied(params: Any, tokens: jax.Array) -> Any:
        def loss(params: Any) -> jax.Array:
            return vocabulary.loss({**params, "out": params["in"]}, tokens)

        return jax.value_and_grad(loss)(params)

    params, tokens = words()
    given = {"in": params["in"], "mix": params["mix"]}, tokens
    holds(pt.plan(tied, pt.Mesh(model=8), *given).tile("params/in", 0, "model"), *given, all_reduce=FORWARD + 1)
