"""The tactics that cause a collective: all whose sums it resolves, and all whose layouts it leaves or reaches."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import partita as pt
from partita.compiler.report.data import data
from partita.examples import llama

SMALL = llama.Config(vocabulary=32, layers=3, length=8, width=16, head=4, hidden=32)


def array(*shape: int, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def embedded(ids: Any, emb: Any, x: Any, w1: Any, w2: Any) -> Any:
    rows = emb[ids]
    rows = rows + jnp.tanh(x @ w1) @ w2
    return jnp.tanh(rows)


@pytest.fixture
def two_sums() -> pt.Plan:
    """The sum of a lookup and that of a product are added before they are resolved."""
    args = array(16, dtype="int32"), array(64, 32), array(16, 32), array(32, 128), array(128, 32)
    return pt.plan(embedded, pt.Mesh(model=2), *args).tile("w1", 1, "model").tile("emb", 0, "model")


def numbers(plan: pt.Plan, kind: str) -> list[str]:
    return [each.numbers for each in plan.collectives() if each.kind == kind]


def test_a_sum_of_sums_names_the_tactic_of_each_term(two_sums: pt.Plan) -> None:
    (found,) = two_sums.collectives()
    assert found.causes == ((1, "tile('w1', 1, 'model')"), (2, "tile('emb', 0, 'model')"))
    assert ", because of 1: tile('w1', 1, 'model') and 2: tile('emb', 0, 'model')" in str(found)
    assert str(two_sums.collectives()).endswith("1, 2\n1: tile('w1', 1, 'model')\n2: tile('emb', 0, 'model')")


def test_its_explanation_has_the_op_of_each_term_and_says_that_they_are_added(two_sums: pt.Plan) -> None:
    first, *steps = two_sums.explain(two_sums.collectives()[0]).steps
    assert first.tactics == (1, 2)
    assert [step.tactics for step in steps if step.tactics] == [(2,), (1,)]
    assert [step.text.split()[0] for step in steps if " in embedded sums " in step.text] == ["`gather`", "`dot_general`"]
    assert any(step.text == "these 2 sums are added and wait through linear ops, up to `add#1`" for step in steps)


def test_an_expectation_and_the_report_name_them_too(two_sums: pt.Plan) -> None:
    with pytest.raises(pt.Error) as error:
        two_sums.expect(all_reduce=0)
    assert "because of 1: tile('w1', 1, 'model') and 2: tile('emb', 0, 'model')" in str(error.value)
    steps: Any = data(two_sums)["steps"]
    assert steps[-1]["sent"][0]["tactics"] == [1, 2]


def test_what_several_tactics_cause_is_in_the_record_of_each(two_sums: pt.Plan, tmp_path: Any) -> None:
    two_sums.save(tmp_path / "plan.partita")
    assert (tmp_path / "plan.partita").read_text().count(": 1 all_reduce") == 2


def test_a_layer_of_a_llama_whose_vocabulary_is_in_parts_sums_what_both_tactics_leave() -> None:
    params, _, batch = llama.arguments(SMALL)
    plan = pt.plan(llama.loss, llama.MESH, params, batch)
    plan = plan.apply(pt.DataParallel("data", inputs="tokens"), pt.Megatron("model"), pt.VocabularyParallel("model"))
    layers = [each.numbers for each in plan.collectives() if each.times == SMALL.layers]
    assert layers == ["2, 3", "2, 3"]
    assert "3" in numbers(plan, "all_reduce") and "1" in numbers(plan, "all_reduce")


def test_terms_that_are_alike_are_explained_once() -> None:
    def experts(x: Any, ws: Any) -> Any:
        y = x
        for w1, w2 in ws:
            y = y + jnp.tanh(x @ w1) @ w2
        return jnp.tanh(y)

    ws = [(array(16, 32), array(32, 16))] * 5
    plan = pt.plan(experts, pt.Mesh(model=2), array(8, 16), ws).apply(pt.Tile({"ws/*/0": 1}, "model"))
    last = plan.explain(plan.collectives()[-1])
    assert last.steps[1].text.endswith(" (5 alike)") and str(last).count("`dot_general`") == 1


def test_a_scattered_sum_names_the_tactic_that_leaves_it_and_the_one_that_stores_it_in_parts() -> None:
    def step(w: Any, x: Any) -> Any:
        return w - jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w)))(w)

    plan = pt.plan(step, pt.Mesh(data=4), array(16, 8), array(32, 16))
    plan = plan.apply(pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="w"))
    assert numbers(plan, "reduce_scatter") == ["1, 2"] and set(numbers(plan, "all_gather")) == {"2"}


def test_a_value_that_moves_between_dims_names_the_tactics_of_both() -> None:
    def product(x: Any, w: Any) -> Any:
        return jnp.tanh(x) @ w

    plan = pt.plan(product, pt.Mesh(a=2), array(8, 64), array(64, 4)).tile("w", 0, "a", propagate=False).tile("x", 0, "a")
    plan = plan.propagate("a").tile("tanh#0", 1, "a")
    assert {each.numbers for each in plan.collectives() if each.value == "tanh#0"} == {"2, 4"}


def test_a_value_that_is_replicated_names_the_tactic_that_says_so_and_the_one_that_tiled_it() -> None:
    plan = pt.plan(lambda x: jnp.sin(jnp.tanh(x)), pt.Mesh(a=2), array(8, 4)).replicate("tanh#0", "a").tile("x", 0, "a")
    assert numbers(plan, "all_gather") == ["1, 2"]


def test_collectives_that_values_share_name_the_tactics_of_all() -> None:
    def joined(x: Any, y: Any) -> Any:
        return jnp.concatenate([x, y], 0)

    plan = pt.plan(joined, pt.Mesh(a=4), array(8, 4), array(8, 4)).tile("x", 0, "a", propagate=False)
    plan = plan.tile("y", 0, "a", propagate=False).propagate("a")
    shared = [move.together for move in plan.decisions.moves if move.together]
    assert shared and set(numbers(plan, "permute")) == {"1, 2, 3"}


def test_a_step_over_an_axis_that_no_tactic_placed_has_the_causes_of_its_move() -> None:
    def loss(a: Any, b: Any) -> Any:
        pairs = lax.associative_scan(lambda left, right: (left[0] * right[0], left[1] * right[0] + right[1]), (a, b), axis=1)
        return pairs[1].sum()

    args = array(16, 64, 8), array(16, 64, 8)
    plan = pt.plan(jax.grad(loss, (0, 1)), pt.Mesh(data=4, model=2), *args).apply(pt.Tile({"a": 1, "b": 1}, "data"))
    found = [each for each in plan.collectives() if "model" in each.axes]
    assert found and all(each.numbers == "1" for each in plan.collectives())


def test_a_step_over_a_sub_axis_that_no_tactic_placed_has_the_cause_of_its_move(tmp_path: Any) -> None:
    def by_segment(y: Any) -> Any:
        return jax.ops.segment_sum(pt.tag(y * 2, "t"), jnp.arange(14) % 5, 6)

    plan = pt.plan(by_segment, pt.Mesh(a=8), array(14, 2)).apply(pt.Tile({"t": 1}, "a.0:4", held=True, padded=True))
    found = [each for each in plan.collectives() if "a.1:2" in each.axes]
    assert found and all(each.numbers == "1" and str(plan.explain(each)) for each in found)
    plan.save(tmp_path / "plan.partita")
    plan.html(tmp_path / "plan.html")
    assert str(plan)


# --- lines and bytes ---------------------------------------------------------------------------------------------------------


def test_a_sum_has_the_line_that_makes_it_and_what_is_moved_the_line_that_uses_it(two_sums: pt.Plan) -> None:
    line = embedded.__code__.co_firstlineno
    (found,) = two_sums.collectives()
    assert found.made is not None and found.used is not None
    assert (found.made.line, found.used.line, found.source) == (line + 2, line + 3, found.made)
    assert str(found).startswith(
        f"all_reduce of `add#1`, made at test_causes.py:{line + 2} in embedded, over model: 2,048 bytes"
    )
    plan = pt.plan(lambda x, w: x @ w, pt.Mesh(data=4), array(8, 16), array(16, 8)).tile("x", 0, "data").tile("w", 0, "data")
    (gathered,) = plan.collectives()
    assert gathered.made is None and gathered.source == gathered.used and ", made at" not in str(gathered)


def test_bytes_are_of_one_run_and_total_bytes_of_a_call() -> None:
    def layers(x: Any, ws: Any) -> Any:
        return lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, ws)[0]

    plan = pt.plan(layers, pt.Mesh(data=4), array(32, 16), array(6, 16, 16)).tile("x", 0, "data").tile("ws", 1, "data")
    (found,) = plan.collectives()
    assert (found.bytes, found.times, found.total_bytes) == (768, 6, 6 * 768)
    assert found.total_bytes == plan.bytes_per_device()
    assert str(found).startswith("all_gather of `ws` over data: 768 bytes x 6 trips, needed by `dot_general` at ")
    assert "total bytes" in str(plan.collectives()) and "4,608" in str(plan.collectives())
    assert ", 768 bytes x 6 trips" in plan.lower("whole").to_dot()


def test_a_loop_of_unknown_trips_has_bytes_of_a_trip() -> None:
    def powers(x: Any, w: Any) -> Any:
        return lax.while_loop(lambda x: x[0, 0] < 9, lambda x: jnp.tanh(x @ w), x)

    plan = pt.plan(powers, pt.Mesh(data=4), array(32, 16), array(16, 16)).tile("w", 0, "data").apply(pt.EachTrip("w"))
    lines = [str(each) for each in plan.collectives() if each.where]
    assert lines and all(" bytes a trip, needed by " in line and "(in while#0)" in line for line in lines)
