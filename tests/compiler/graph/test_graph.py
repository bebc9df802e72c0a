"""The dataflow graph computes what the plan computes, holds its collectives, and can be printed, read and drawn."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

import json
import re
from functools import cache
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mlir_files import opt
from models import Transformer, chain, gram, train_step
from strategies import strategy

import partita as pt
from partita.compiler.api.plan import Plan
from partita.compiler.graph.graph import Graph
from partita.examples import scan_layers

MESH = pt.Mesh(data=4, model=2)
MODEL = Transformer(layers=1)
BOUND = 2e-4


def array(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


CHAIN = array(256, 8), array(8, 16), array(16, 8)


@cache
def chain_plan() -> Plan:
    """PartIR's chain, its weights stored over `data` and used over `model`."""
    plan = pt.plan(chain, MESH, *CHAIN).tile("x", 0, "data").tile("w1", 1, "model")
    return plan.tile("w1", 0, "data").tile("w2", 1, "data")


@cache
def scan_plan() -> tuple[Plan, tuple[Any, ...]]:
    args = {"w1": array(3, 16, 32) * 0.1, "w2": array(3, 32, 16) * 0.1}, array(16, 16)
    plan = pt.plan(scan_layers.train_step, pt.Mesh(data=8), *args).apply(pt.DataParallel("data", inputs="x"))
    return plan.apply(pt.ZeRO(3, "data", params="params")), args


@cache
def training_plan(name: str = "BP+MP+Z3") -> Plan:
    return pt.plan(train_step, MESH, *MODEL.arrays()).apply(*strategy(name))


def cyclic(x: jax.Array) -> jax.Array:
    """Rows dealt out in turn: `f32[data*4, 6]` becomes `f32[4*data, 6]`, whose blocks are not contiguous."""
    return jnp.tanh(x.reshape(2, 4, 6).transpose(1, 0, 2)).reshape(8, 6)


def same_twice(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x, x


def through(passes: str, text: str) -> str:
    """What `partita-opt` prints, which ends in an empty line."""
    return opt(["-p", passes] if passes else [], text).removesuffix("\n")


def kinds(graph: Graph) -> list[str]:
    return [node.kind for node in graph.nodes if node.kind not in ("argument", "result")]


def assert_equal(found: Any, expected: Any) -> None:
    """Equal trees, shardings and, within float32 noise, values."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert a.sharding.is_equivalent_to(b.sharding, a.ndim)
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        assert np.max(np.abs(x - y) / (1e-3 + np.abs(y))) <= BOUND


# What it computes.


@pytest.mark.parametrize("granularity", ["whole", "collective"])
def test_a_graph_of_the_chain_computes_what_the_plan_does(granularity: str) -> None:
    graph = chain_plan().lower(granularity)
    assert_equal(graph.run(*CHAIN), chain_plan().compile()(*CHAIN))


def test_a_graph_takes_keywords_as_the_function_does() -> None:
    x, w1, w2 = CHAIN
    assert_equal(chain_plan().lower("collective").run(x, w2=w2, w1=w1), chain_plan().compile()(*CHAIN))


def test_a_training_step_run_node_by_node_equals_the_plan() -> None:
    args = MODEL.arrays()
    assert_equal(training_plan().lower("collective").run(*args), training_plan().compile()(*args))


@pytest.mark.parametrize("granularity", ["whole", "collective"])
def test_a_loop_with_collectives_stays_in_one_kernel(granularity: str) -> None:
    plan, args = scan_plan()
    graph = plan.lower(granularity)
    (loop,) = [node for node in graph.nodes if any(each.times == 3 for each in node.collectives)][:1]
    assert loop.kind == "kernel"
    assert_equal(graph.run(*args), plan.compile()(*args))


def test_values_without_a_named_sharding_pass_from_node_to_node() -> None:
    x = array(8, 6)
    plan = pt.plan(cyclic, pt.Mesh(data=2), x).tile("x", 0, "data")
    graph = plan.lower("collective")
    assert "f32[4*data, 6]" in [edge.value.type for edge in graph.edges]
    assert_equal(graph.run(x), plan.compile()(x))


def test_a_result_that_is_an_argument_needs_no_kernel() -> None:
    x = array(8)
    graph = pt.plan(same_twice, pt.Mesh(data=8), x).tile("x", 0, "data").lower("collective")
    assert graph.kernels == {}
    first, second = graph.run(x)
    assert np.array_equal(first, x) and np.array_equal(second, x)


def test_a_graph_runs_on_given_devices() -> None:
    x = array(8, 8)
    devices: list[Any] = list(jax.devices()[4:6])
    plan = pt.plan(jnp.tanh, pt.Mesh(data=2), x).tile("x", 0, "data")
    result = plan.lower("collective").compile(devices)(x)
    assert result.sharding.device_set == set(devices)


def test_a_run_waits_when_too_many_programs_are_in_flight() -> None:
    def deep(x: jax.Array) -> jax.Array:
        for _ in range(40):
            x = x - x.sum(axis=0, keepdims=True) / 64
        return x

    x = array(64, 4)
    plan = pt.plan(deep, pt.Mesh(data=8), x).tile("x", 0, "data")
    graph = plan.lower("collective")
    assert kinds(graph).count("redistribute") == 40
    # One body for all layers except the first and the last.
    assert len(graph.kernels) == 3
    assert_equal(graph.run(x), plan.compile()(x))


# What it holds.


@pytest.mark.parametrize("granularity", ["whole", "collective"])
@pytest.mark.parametrize("name", ["BP", "BP+MP", "BP+MP+Z2", "BP+MP+Z3", "MP"])
def test_a_graph_holds_the_collectives_of_its_plan(name: str, granularity: str) -> None:
    plan = training_plan(name)
    graph = plan.lower(granularity)
    assert graph.counts() == plan.counts()
    assert graph.bytes_per_device() == plan.bytes_per_device()


def test_collectives_in_a_loop_count_once_a_trip() -> None:
    plan, _ = scan_plan()
    assert plan.lower("collective").counts() == plan.counts()


def test_whole_is_the_device_local_module_in_one_kernel() -> None:
    (kernel,) = training_plan().lower("whole").kernels.values()
    spmd = training_plan().spmd().body.block.first_op
    assert spmd is not None
    assert spmd.regions[0].is_structurally_equivalent(kernel.body)


def test_equal_layers_share_their_kernels() -> None:
    fewer, graph = (
        pt.plan(train_step, MESH, *Transformer(layers).shapes()).apply(*strategy("BP+MP+Z3")).lower("collective")
        for layers in (5, 6)
    )
    graph.module.verify()
    # The update of all parameters is one kernel with another body; the sixth layer adds no kernel.
    assert len(graph.kernels) == len(fewer.kernels)
    assert kinds(graph).count("kernel") > kinds(fewer).count("kernel")


def test_a_kernel_never_communicates_where_the_graph_is_cut_at_collectives() -> None:
    graph = training_plan().lower("collective")
    assert {node.kind for node in graph.nodes if node.collectives} == {"redistribute"}
    assert {node.kind for node in graph.nodes} == {"argument", "kernel", "redistribute", "barrier", "result"}


def test_edges_go_from_makers_to_readers() -> None:
    graph = chain_plan().lower("collective")
    found = [(graph.nodes[e.source].name, graph.nodes[e.target].name, e.value.type) for e in graph.edges]
    assert found == [
        ("w1", "redistribute", "f32[data*2, model*8]"),
        ("w2", "redistribute", "f32[model*8, data*2]"),
        ("x", "main_0", "f32[data*64, 8]"),
        ("redistribute", "main_0", "f32[8, model*8]"),
        ("redistribute", "main_0", "f32[model*8, 8]"),
        ("main_0", "redistribute", "f32[data*64, 8]{+model}"),
        ("redistribute", "result", "f32[data*64, 8]"),
    ]


# How it is printed, read and drawn.

TEXT = """\
builtin.module attributes {array.mesh = "data=4, model=2"} {
  flow.graph @main(%0: !array.array<f32[data*64, 8]>, %1: !array.array<f32[8, model*8]>, %2: !array.array<f32[model*8, 8]>) -> \
!array.array<f32[data*64, 8]> attributes {arg_names = ["x", "w1", "w2"], result_names = ["result"]} {
    %3 = flow.kernel @main_0(%0, %1, %2) : f32[data*64, 8], f32[8, model*8], f32[model*8, 8] -> f32[data*64, 8]{+model}
    %4 = flow.redistribute %3 : f32[data*64, 8]{+model} -> f32[data*64, 8]
    flow.return %4 : f32[data*64, 8]
  }
  func.func @main_0(%0: !array.array<f32[64, 8]>, %1: !array.array<f32[8, 8]>, %2: !array.array<f32[8, 8]>) -> \
!array.array<f32[64, 8]> {
    %3 = lax.dot_general %0, %1 {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[64, 8], f32[8, 8] -> f32[64, 8]
    %4 = lax.dot_general %3, %2 {dimension_numbers = (((1,), (0,)), ((), ()))} : f32[64, 8], f32[8, 8] -> f32[64, 8]
    func.return %4 : !array.array<f32[64, 8]>
  }
}
"""


def test_the_text_of_a_graph() -> None:
    plan = pt.plan(chain, MESH, *CHAIN).tile("x", 0, "data").tile("w1", 1, "model")
    assert plan.lower("collective").text() == TEXT


@pytest.mark.parametrize("granularity", ["whole", "collective"])
def test_a_text_is_read_back_exactly(granularity: str) -> None:
    for plan in (chain_plan(), scan_plan()[0], training_plan()):
        text = plan.lower(granularity).text()
        assert Graph.parse(text).text() == text
        assert through("", text) == text


def test_a_name_in_any_language_is_read_back() -> None:
    graph = pt.plan(lambda params: params["größe"] * 2, MESH, {"größe": array(8)}).lower()
    assert Graph.parse(graph.text()).arguments == graph.arguments == ("params/größe",)


def test_a_graph_that_was_read_runs_on_its_own_arguments() -> None:
    graph = Graph.parse(TEXT)
    (result,) = graph.run(*CHAIN)
    assert_equal(result, chain_plan().compile()(*CHAIN))
    with pytest.raises(pt.Error, match="takes its 3 arrays by position, got 1"):
        graph.run(CHAIN[0])
    with pytest.raises(pt.Error, match=r"argument `w1` must be float32\[8, 16\], got float32\[16, 8\]"):
        graph.run(CHAIN[0], CHAIN[2], CHAIN[1])


@pytest.mark.parametrize(
    ("text", "message"),
    [("flow.graph @main(", "the text is not a graph"), ("builtin.module {}", "does not begin with `flow.graph`")],
)
def test_a_text_that_is_not_a_graph_is_an_error(text: str, message: str) -> None:
    with pytest.raises(pt.Error, match=message):
        Graph.parse(text)


def test_the_passes_lower_unfused_text_to_what_the_plan_gives() -> None:
    for plan in (chain_plan(), scan_plan()[0], training_plan()):
        unfused = str(plan.ir(fused=False))
        assert through("fuse,to-spmd", unfused) == f"{plan.spmd()!s}\n"
        assert through("fuse,to-flow", unfused) == plan.lower("collective").text()
        assert through('fuse,to-flow{granularity="whole"}', unfused) == plan.lower("whole").text()


def test_json_holds_nodes_and_edges() -> None:
    graph = chain_plan().lower("collective")
    found = json.loads(graph.to_json())
    assert found["name"] == "main" and found["mesh"] == {"data": 4, "model": 2}
    assert [node["id"] for node in found["nodes"]] == list(range(len(found["nodes"])))
    assert found["nodes"][6] == {
        "id": 6,
        "kind": "redistribute",
        "name": "redistribute",
        "operands": ["%5"],
        "results": [{"value": "%6", "type": "f32[data*64, 8]", "bytes": 2048}],
        "bytes": 2048,
        "collectives": [{"kind": "all_reduce", "axes": ["model"], "bytes": 2048, "times": 1, "total_bytes": 2048}],
    }
    assert found["edges"][5] == {"from": 5, "to": 6, "value": "%5", "type": "f32[data*64, 8]{+model}", "bytes": 2048}
    assert len(found["edges"]) == len(graph.edges)


def test_dot_has_a_line_for_every_node_and_edge() -> None:
    graph = training_plan().lower("collective")
    first, _, *lines, last = graph.to_dot().splitlines()
    assert (first, last) == ('digraph "main" {', "}")
    node, edge = re.compile(r'  n\d+ \[shape=\w+, label=".*"\];'), re.compile(r'  n\d+ -> n\d+ \[label=".*"\];')
    assert sum(bool(node.fullmatch(line)) for line in lines) == len(graph.nodes)
    assert sum(bool(edge.fullmatch(line)) for line in lines) == len(graph.edges)
    assert 'label="all_gather over data, 192 bytes"' in chain_plan().lower("collective").to_dot()


def test_stablehlo_of_a_kernel_is_on_local_types() -> None:
    text = chain_plan().lower("whole").stablehlo("main_0")
    assert "tensor<64x8xf32>" in text and "tensor<256x8xf32>" not in text
    assert text.count("stablehlo.all_gather") == 2 and text.count("stablehlo.all_reduce") == 1
    cut = chain_plan().lower("collective").stablehlo("main_0")
    assert cut.count("stablehlo.dot_general") == 2 and "all_" not in cut


def test_stablehlo_needs_no_devices() -> None:
    plan = pt.plan(gram, pt.Mesh(data=64), jax.ShapeDtypeStruct((128, 8), jnp.float32)).replicate("x", "data")
    assert "dot_general" in plan.lower("whole").stablehlo("main_0")


# What a user can get wrong.


@pytest.mark.parametrize(
    ("granularity", "message"),
    [
        ("colective", "`colective` is not a granularity(.|\n)*`whole` or `collective`"),
        ("hlo", r"`hlo` is not a granularity(.|\n)*`plan.spmd\(\)`(.|\n)*`plan.compile\(\).lower\(\*args\)`"),
        ("kernel", "`kernel` is not a granularity(.|\n)*`whole` or `collective`"),
        ("stage", "`stage` cuts at the stages of a pipeline, which is not there yet(.|\n)*`whole` or `collective`"),
    ],
)
def test_an_unknown_granularity_is_an_error(granularity: str, message: str) -> None:
    with pytest.raises(pt.Error, match=message):
        chain_plan().lower(granularity)


def test_an_unknown_kernel_is_an_error_with_the_nearest_names() -> None:
    with pytest.raises(pt.Error, match=r"no kernel `main0`(.|\n)*did you mean `main_0`"):
        chain_plan().lower("collective").stablehlo("main0")


def test_arguments_on_other_devices_and_traced_ones_are_errors() -> None:
    x = array(8, 8)
    graph = pt.plan(jnp.tanh, pt.Mesh(data=2), x).tile("x", 0, "data").lower("collective")
    with pytest.raises(pt.Error, match="argument `x` is committed to"):
        graph.run(jax.device_put(x, cast(Any, jax.devices()[7])))
    with pytest.raises(pt.Error, match="argument `x` must be an array, got a traced value"):
        jax.jit(graph.run)(x)
