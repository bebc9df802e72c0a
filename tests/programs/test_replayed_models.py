"""The plan of every example, saved, and replayed after the model has changed: it is the same, or the report says what changed.

The model is changed from outside: its arguments are trees of the same names, of which one is renamed, left out, or added.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import pytest
from example_plans import BOTH, DATA8, annotated_mesh, examples

import partita as pt
from partita.compiler.inputs.arguments import passed
from partita.compiler.inputs.names import parts
from partita.compiler.trace.trace import Traced
from partita.compiler.views.listing import starred
from partita.examples import annotated_gpt, decode, demo, gpt, graph_network, mlp, scan_layers

Tree = Any
Leaves = Mapping[str, Any]

WAYS = [name for name in examples() if not name.endswith(", plain") and not name.startswith("larger demo")]
# One way of each model: the one with the most tactics.
MODELS = {name.partition(",")[0]: name for name in WAYS if name != "annotated demo"}


LARGE = "flax transformer", "U-Net", "mixer", "ResNet"
"""Models whose traces take seconds: to these nothing is added."""


@cache
def made(model: str) -> pt.Plan:
    if model == "mlp":
        shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((512, 256), (256, 1024), (1024, 256))]
        return pt.plan(mlp.mlp, BOTH, *shapes).tile("x", 0, "data").tile("w1", 1, "model")
    return examples()[MODELS[model]]()[0]


def nested(leaves: Leaves) -> Tree:
    """A tree of dicts with leaves of these names."""
    tree: Tree = {}
    for name, leaf in leaves.items():
        *outer, last = parts(name)
        node = tree
        for part in outer:
            node = node.setdefault(part, {})
        node[last] = leaf
    return tree


def flat(tree: Tree, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for key, each in tree.items():
            yield from flat(each, f"{name}/{key}" if name else key)
    else:
        yield name, tree


class Model:
    """The function of a plan, on trees of dicts. `leaves` makes the leaves of the original of those that it is called with."""

    def __init__(self, plan: pt.Plan, change: Callable[[Leaves], Leaves] = lambda leaves: leaves) -> None:
        self.traced, self.change, self.__name__ = plan.source.traced, change, plan.source.traced.name

    def __call__(self, **given: Tree) -> Tree:
        traced, leaves = self.traced, self.change(dict(flat(given)))
        values = jax.tree.unflatten(traced.in_tree, [leaves[name] for name in inputs(traced)])
        bound = passed(traced.function.signature, {**dict(zip(traced.arguments, values, strict=True)), **traced.static})
        made = traced.function.fn(*bound.args, **bound.kwargs)
        results = dict(zip(traced.result_names, jax.tree.leaves(made), strict=True))
        found = nested({name.removeprefix("result").removeprefix("/") or "result": leaf for name, leaf in results.items()})
        if list(found) == ["result"]:
            return found["result"]
        return tuple(found.values()) if isinstance(made, tuple) else found

    def replayed(self, file: Path, leaves: Leaves) -> tuple[pt.Plan | None, str]:
        """The plan, if it is not refused, and what is reported."""
        trees = nested(leaves)
        self.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in trees])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                plan = pt.replay(self, file, **trees)
            except pt.Error as error:
                return None, str(error)
        return plan, "\n".join(str(each.message) for each in caught if issubclass(each.category, pt.ReplayWarning))


def inputs(traced: Traced) -> Sequence[str]:
    """The names of what the function is called with, without what it closes over."""
    return traced.arg_names[: traced.in_tree.num_leaves]


def avals(plan: pt.Plan) -> dict[str, Any]:
    traced = plan.source.traced
    pairs = zip(inputs(traced), traced.in_avals, strict=False)
    return {name: jax.ShapeDtypeStruct(aval.shape, aval.dtype) for name, aval in pairs}


def claimed(plan: pt.Plan) -> str:
    """The argument that a tactic names last: a parameter, if there are any."""
    names = {value: name for name, value in plan.source.addresses.arguments.items()}
    found = [names[value] for action in plan.actions for value in action.values if value in names]
    return next((name for name in reversed(found) if name.startswith(("params", "state/params", "model"))), found[-1])


def clear(report: str, *names: str) -> None:
    """A report says what is different about the program, or at which line of the file which tactic."""
    assert "plan.partita" in report
    assert "help: " in report
    for name in names:
        assert f"`{name}`" in report or f"`{starred(name)}`" in report, report


@pytest.mark.parametrize("model", [*MODELS, "mlp"])
def test_the_plan_of_an_example_is_replayed_or_the_report_is_clear(model: str, tmp_path: Path) -> None:
    plan, file = made(model), tmp_path / "plan.partita"
    plan.save(file)
    leaves, name = avals(plan), claimed(plan)
    aval = leaves[name]

    again, report = Model(plan).replayed(file, leaves)
    assert not report and again is not None
    assert (again.trace, again.layout(), again.counts()) == (plan.trace, plan.layout(), plan.counts())

    new = f"{name}_renamed"
    renamed = {new if each == name else each: leaf for each, leaf in leaves.items()}
    _, report = Model(plan, lambda given: {**given, name: given[new]}).replayed(file, renamed)
    clear(report, name, new)

    left = {each: leaf for each, leaf in leaves.items() if each != name}
    if left:
        constant = jax.numpy.zeros(aval.shape, aval.dtype)
        _, report = Model(plan, lambda given: {**given, name: constant}).replayed(file, left)
        clear(report, name)

    if model in LARGE:
        return
    more = f"{name}_more"
    _, report = Model(plan, lambda given: {**given, name: given[name] + given[more]}).replayed(file, {**leaves, more: aval})
    clear(report, more)


def test_a_plan_by_annotations_is_replayed_on_arguments_with_these_shardings(tmp_path: Path) -> None:
    plan, file = examples()["annotated demo"]()[0], tmp_path / "plan.partita"
    plan.save(file)
    mesh = annotated_mesh()
    with jax.set_mesh(mesh):
        args = annotated_gpt.arguments(mesh)
        again = pt.replay(annotated_gpt.train_step, file, *args)
        assert (again.trace, again.layout(), again.counts()) == (plan.trace, plan.layout(), plan.counts())
        bare: Any = jax.eval_shape(lambda: args)
        with pytest.warns(pt.ReplayWarning, match="Annotated"):
            pt.replay(annotated_gpt.train_step, file, *bare)


def character_model(layers: int) -> Sequence[Any]:
    config = gpt.Config(vocabulary=32, length=16, layers=layers, width=32)
    tokens = jax.ShapeDtypeStruct((16, 16), "int32")
    params = jax.eval_shape(lambda: gpt.init(config))
    return params, jax.eval_shape(gpt.OPTIMIZER.init, params), {"x": tokens, "y": tokens}


Deeper = tuple[Callable[..., Any], pt.Mesh, Sequence[Any], Callable[[int], Sequence[Any]], str]


def graph(steps: int) -> Sequence[Any]:
    config = graph_network.Config(steps=steps)
    return graph_network.parameters(config), graph_network.random_graph(config)


def stacked(layers: int) -> Sequence[Any]:
    """Weights of layers in a scan."""
    shapes = (layers, 64, 128), (layers, 128, 64), (64, 64)
    w1, w2, x = (jax.ShapeDtypeStruct(shape, "float32") for shape in shapes)
    return {"w1": w1, "w2": w2}, x


DEEPER: dict[str, Deeper] = {
    "demo": (gpt.train_step, BOTH, [*demo.TACTICS.values()], character_model, "`params/blocks/*/w1` x 2: there are 3 now"),
    "graph network": (
        graph_network.train_step,
        DATA8,
        [graph_network.EDGES],
        graph,
        "`params/steps/*/edge/w1` x 2: there are 3",
    ),
    "decode": (
        decode.decode,
        decode.MESH,
        [decode.MULTI_HEAD],
        lambda layers: decode.arguments(decode.Config(layers=layers)),
        "`params/layers/*/wq` x 2: there are 3 now",
    ),
    "scanned layers": (
        scan_layers.train_step,
        DATA8,
        [pt.DataParallel("data", inputs="x"), pt.ZeRO(3, "data", params="params")],
        stacked,
        "`params/w1` was f32[2, 64, 128], is f32[3, 64, 128]",
    ),
}
"""Step, mesh and tactics of models, their arguments by the number of layers, and what is reported of a layer more."""


@pytest.mark.parametrize("model", DEEPER)
def test_a_model_with_a_layer_more_is_partitioned_and_the_report_says_so(model: str, tmp_path: Path) -> None:
    step, mesh, tactics, arguments, said = DEEPER[model]
    pt.plan(step, mesh, *arguments(2)).apply(*tactics).save(tmp_path / "plan.partita")
    deeper = pt.plan(step, mesh, *arguments(3)).apply(*tactics)
    with pytest.warns(pt.ReplayWarning) as caught:
        plan = pt.replay(step, tmp_path / "plan.partita", *arguments(3))
    report = "\n".join(str(each.message) for each in caught)
    assert report.startswith("the program has changed since `plan.partita` was saved: ")
    assert said in report
    assert (plan.trace, plan.layout(), plan.counts()) == (deeper.trace, deeper.layout(), deeper.counts())
