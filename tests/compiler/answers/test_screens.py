"""Whatever a plan answers fits a screen, also for a model of many layers, and says how to see more."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false

import dataclasses
import pickle
from collections.abc import Callable
from io import StringIO
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import partita as pt

LAYERS = 32
ROWS, COLUMNS = 50, 200


def train_step(params: Any, batch: Any) -> Any:
    def loss(params: Any) -> Any:
        x = batch["x"]
        for p in params["layers"]:
            x = x + jax.nn.relu(x @ p["w1"]) @ p["w2"]
        return jnp.mean((x @ params["head"]) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


@pytest.fixture(scope="module")
def bare() -> pt.Plan:
    layer = {"w1": np.ones((64, 256), np.float32), "w2": np.ones((256, 64), np.float32)}
    params = {"layers": [layer] * LAYERS, "head": np.ones((64, 50), np.float32)}
    return pt.plan(train_step, pt.Mesh(data=4, model=2), params, {"x": jax.ShapeDtypeStruct((256, 64), np.float32)})


@pytest.fixture(scope="module")
def plan(bare: pt.Plan) -> pt.Plan:
    return bare.apply(
        pt.DataParallel("data", inputs="batch/x"),
        pt.Megatron("model", column="**/w1", row="**/w2"),
        pt.ZeRO(3, "data", params="params/layers"),
    )


ANSWERS: dict[str, Callable[[pt.Plan], object]] = {
    "the plan": lambda plan: plan,
    "its state": str,
    "collectives": lambda plan: plan.collectives(),
    "layouts": lambda plan: plan.layout(),
    "reasons of all": lambda plan: plan.explain("**"),
    "reasons of one": lambda plan: plan.explain(plan.collectives()[0]),
    "what is silent": lambda plan: plan.silent(),
    "conflicts": lambda plan: plan.conflicts,
    "stops": lambda plan: plan.blocked,
    "whole": lambda plan: plan.whole,
    "memory": lambda plan: plan.memory(),
    "counts": lambda plan: plan.counts(),
    "decisions": lambda plan: plan.decisions,
    "table": lambda plan: plan.table,
    "actions": lambda plan: plan.actions,
    "source": lambda plan: (plan.source, plan.source.program, plan.source.classes, plan.source.addresses),
    "modules": lambda plan: (plan.ir(), plan.spmd(), plan.source.traced.module),
    "graph": lambda plan: plan.lower("collective"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_fits_a_screen(plan: pt.Plan, name: str) -> None:
    answer = ANSWERS[name](plan)
    lines = (answer if isinstance(answer, str) else repr(answer)).splitlines()
    assert len(lines) <= ROWS
    assert all(len(line) <= COLUMNS * 2 for line in lines)


def test_a_difference_fits_a_screen(bare: pt.Plan, plan: pt.Plan) -> None:
    lines = repr(plan.diff(bare)).splitlines()
    assert len(lines) <= ROWS
    assert any(f"x {LAYERS}:" in line for line in lines)


def test_the_state_of_a_plan_is_at_most_twenty_lines(plan: pt.Plan) -> None:
    lines = str(plan).splitlines()
    assert len(lines) <= 20
    for said in (
        "3: ZeRO(",
        "collectives: ",
        " in a call: ",
        "over data",
        "of it redundantly",
        "at the peak",
        "replicated",
    ):
        assert any(said in line for line in lines), said


def test_layers_that_are_alike_are_one_row_and_all_are_in_the_list(plan: pt.Plan) -> None:
    found = plan.collectives()
    gathers = [each for each in found if each.kind == "all_gather" and each.value.endswith("w1")]
    assert len(gathers) == 2 * LAYERS - 1
    assert str(found).count(f"params/layers/*/w1 x {LAYERS} ") == 1
    assert sum(each.times * each.received for each in found) == plan.bytes_per_device()
    assert len(str(found.all()).splitlines()) >= len(str(found).splitlines())


def test_answers_are_tables_in_a_terminal_and_html_in_a_notebook(plan: pt.Plan) -> None:
    console = Console(width=120, record=True, file=StringIO())
    for answer in (plan.collectives(), plan.layout(), plan.silent(), plan.explain("params/head"), plan.memory()):
        console.print(answer)
        assert "<" in answer._repr_html_()
    assert "params/layers/*/w1" in console.export_text()
    assert '<td style="text-align: left">params/layers/*/w1 x 32</td>' in plan.layout()._repr_html_()


def test_an_explanation_names_the_tactic_and_the_line_of_every_collective(plan: pt.Plan) -> None:
    for each in plan.collectives():
        first, *steps = plan.explain(each).steps
        assert (first.tactics, first.source) == (tuple(cause.number for cause in each.causes), each.source)
        for cause in each.causes:
            assert plan.actions[cause.number - 1].text == cause.tactic
            assert any(step.tactics == (cause.number,) and cause.tactic in step.text for step in steps)
        assert any(step.source is not None and step.source.file == __file__ for step in (first, *steps))


def test_a_collective_of_another_plan_is_not_explained(bare: pt.Plan, plan: pt.Plan) -> None:
    with pytest.raises(pt.Error, match="not one of this plan's"):
        bare.explain(plan.collectives()[0])


def test_what_is_silent_has_its_cost(bare: pt.Plan, plan: pt.Plan) -> None:
    head = next(each for each in plan.silent() if each.value == "params/head")
    assert (head.what, head.axes, head.bytes) == ("replicated", ("data", "model"), 64 * 50 * 4 * 7 // 8)
    product = next(each for each in plan.silent() if each.op == "dot_general" and "head" not in each.value)
    assert (product.what, product.axes, product.flops) == ("computed by all", ("model",), 256 // 4 * 64 * 50)
    everything = {each.axes for each in bare.silent() if each.op == "dot_general"}
    assert everything == {("data", "model")}


def test_programs_of_every_kind_have_a_text() -> None:
    def printing(x: Any) -> Any:
        jax.debug.print("{}", x[0, 0])
        return 2 * x

    def branching(x: Any) -> Any:
        return jax.lax.cond(x[0, 0] > 0, lambda: x.sum(0), lambda: x.sum(1))

    def counting(x: Any) -> Any:
        return jax.lax.while_loop(lambda x: x.sum() < 1e6, lambda x: x @ x, x)

    def drawing(x: Any) -> Any:
        return x + jax.random.normal(jax.random.key(0), x.shape)

    for function in (printing, branching, counting, drawing, lambda x: (), lambda x: jnp.sort(x, 0)):
        for made in (pt.plan(function, pt.Mesh(data=4), np.ones((8, 8), np.float32)).tile("x", dim, "data") for dim in (0, 1)):
            assert "bytes in a call" in str(made)
            assert all(str(made.explain(each)) for each in made.collectives())


def test_lists_can_be_kept_like_any_others(plan: pt.Plan) -> None:
    for answer in (plan.silent(), plan.ranges(), plan.blocked):
        assert pickle.loads(pickle.dumps(answer)) == list(answer)
    record = dataclasses.make_dataclass("Record", ["collectives", "layout"])(plan.collectives(), plan.layout())
    assert dataclasses.asdict(record)["layout"] == dict(plan.layout())
