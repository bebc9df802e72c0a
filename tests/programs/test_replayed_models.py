"""The plan of every example, saved, and replayed after the model has gained a layer, lost an argument, renamed a parameter.

The replay makes the same decisions for all that remained, or the report says what changed and what to write.
"""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from deeper_examples import EXAMPLES, Made
from example_plans import annotated_mesh

import partita as pt
from partita.compiler.inputs.arguments import passed
from partita.compiler.inputs.names import name_parts
from partita.compiler.trace.trace import Traced
from partita.compiler.views.listing import starred
from partita.examples import mlp

Tree = Any
Leaves = Mapping[str, Any]

REPORTS = """
a layer more in demo:
...: 3 of its 3 tactics do something else
`params/blocks/*/b2` x 2: there are 3 now
`params/blocks/*/ln1/bias` x 2: there are 3 now
help: save

a layer more in flax_transformer:
...: 3 of its 3 tactics do something else
`state/params/block2` is new: 12 values
`state/opt_state/*/mu/block2` is new: 12 values
help: save

a layer more in llama:
...: 2 of its 3 tactics do something else
`params/layers/down` was f32[2, 96, 32], is f32[3, 96, 32]
`params/layers/gate` was f32[2, 32, 96], is f32[3, 32, 96]
help: save

a layer more in moe:
...: 1 of its 2 tactics does something else
`params/behind` is new: 4 values
`result/0/behind` is new: 4 values
help: save

a layer more in graph_network:
...: its tactic does something else
`params/steps/*/edge/b1` x 2: there are 3 now
`params/steps/*/edge/w1` x 2: there are 3 now
help: save

a layer more in unet:
...: 1 of its 3 tactics does something else
`state/params/before` is new: 2 values
`state/opt_state/0/mu/before` is new: 2 values
help: save

a layer more in equinox_mixer:
...: 2 of its 2 tactics do something else
`params/blocks/*/patches/layers/*/weight` x 4: there are 6 now
`params/blocks/*/patches/layers/*/bias` x 4: there are 6 now
help: save

a layer more in resnet:
...: 2 of its 2 tactics do something else
`state/params/block2` is new: 9 values
`state/opt_state/0/trace/block2` is new: 9 values
help: save

a layer more in vocabulary:
..., and its tactics do the same
`params/before` is new
`result/0/before` is new
help: save

a layer more in lstm:
...: 2 of its 2 tactics do something else
`params/before` is new: 4 values
`result/0/before` is new: 4 values
help: save

a layer more in scan_layers:
...: 2 of its 2 tactics do something else
`params/w1` was f32[2, 64, 128], is f32[3, 64, 128]
`params/w2` was f32[2, 128, 64], is f32[3, 128, 64]
help: save

a layer more in heat:
`plan.partita` was saved from another program: 1 of its 2 tactics does something else
help: save

a layer more in decode:
...: its tactic does something else
`params/layers/*/w1` x 2: there are 3 now
`params/layers/*/w2` x 2: there are 3 now
help: save

a layer more in sampler:
..., and its tactics do the same
`params/before` is new: 2 values
help: save

a layer more in mlp:
..., and its tactics do the same
`w3` is new
help: save

a layer more in annotated_gpt:
...: 2 of its 2 tactics do something else
`params/blocks/*/b2` x 2: there are 3 now
`params/blocks/*/ln1/bias` x 2: there are 3 now
help: save

a layer more in mlp.partita:
..., and its tactics do the same
`w0` is new
help: save

a layer more in attention.partita:
..., and its tactics do the same
`more` is new
`out` is new
help: save

a layer more in block.partita:
...: 1 of its 8 tactics does something else
`w3` is new
help: save

a layer more in embedding.partita:
..., and its tactics do the same
`w` is new
help: save

renamed in demo:
no argument is named `params/position`
`params/position` is gone
`params/position_renamed` is new: was it `params/position`?
help: did you mean `params/position_renamed`?
help: if the program has none any more: take `params/position` out of this line

renamed in flax_transformer:
..., and its tactics do the same
`state/params/position` is gone
`state/params/position_renamed` is new: was it `state/params/position`?
help: save

renamed in llama:
..., and its tactics do the same
`params/norm` is gone
`params/norm_renamed` is new: was it `params/norm`?
help: save

renamed in moe:
...: 1 of its 2 tactics does something else
`params/experts/w2` is gone
`params/experts/w2_renamed` is new: was it `params/experts/w2`?
help: save

renamed in graph_network:
no argument is named `graph/senders`
`graph/senders` is gone
`graph/senders_renamed` is new: was it `graph/senders`?
help: did you mean `graph/senders_renamed`?
help: if the program has none any more: take `graph/senders` out of this line

renamed in unet:
...: 1 of its 3 tactics does something else
`state/params/up/conv1/kernel` is gone
`state/params/up/conv1/kernel_renamed` is new: was it `state/params/up/conv1/kernel`?
help: save

renamed in equinox_mixer:
...: 1 of its 2 tactics does something else
`params/blocks/1/channels/layers/1/weight_renamed` is new
`opt_state/0/mu/blocks/1/channels/layers/1/weight_renamed` is new
help: save

renamed in resnet:
..., and its tactics do the same
`state/params/stem/kernel` is gone
`state/params/stem/kernel_renamed` is new: was it `state/params/stem/kernel`?
help: save

renamed in vocabulary:
no value is named `params/out`
`params/out` is gone
`params/out_renamed` is new: was it `params/out`?
help: did you mean `params/out_renamed`?
help: if the program has none any more: take `params/out` out of this line

renamed in lstm:
no value is named `params/b`
`params/b` is gone
`params/b_renamed` is new: was it `params/b`?
help: did you mean `params/b_renamed`?
help: if the program has none any more: take `params/b` out of this line

renamed in scan_layers:
...: 1 of its 2 tactics does something else
`params/w2` is gone
`params/w2_renamed` is new: was it `params/w2`?
help: save

renamed in heat:
no value is named `u`
`u` is gone
`u_renamed` is new: was it `u`?
help: did you mean `u_renamed`?
help: if the program has none any more: take `u` out of this line

renamed in decode:
...: its tactic does something else
`params/layers/1/w2_renamed` is new
`params/layers/*/w2` x 2: there is 1 now
help: save

renamed in sampler:
...: 1 of its 2 tactics does something else
`params/up/conv1/kernel` is gone
`params/up/conv1/kernel_renamed` is new: was it `params/up/conv1/kernel`?
help: save

renamed in mlp:
no value is named `w1`
`w1` is gone
`w1_renamed` is new: was it `w1`?
help: did you mean `w1_renamed`?
help: if the program has none any more: take `w1` out of this line

renamed in annotated_gpt:
..., and its tactics do the same
`params/position` is gone
`params/position_renamed` is new: was it `params/position`?
help: save

renamed in mlp.partita:
no value is named `w2`
`w2` is gone
`w2_renamed` is new: was it `w2`?
help: did you mean `w2_renamed`?
help: if the program has none any more: take `w2` out of this line

renamed in attention.partita:
no value is named `wo`
`wo` is gone
`wo_renamed` is new: was it `wo`?
help: did you mean `wo_renamed`?
help: if the program has none any more: take `wo` out of this line

renamed in block.partita:
...: 1 of its 8 tactics does something else
`scale2` is gone
`scale2_renamed` is new: was it `scale2`?
help: save

renamed in embedding.partita:
no value is named `table`
`table` is gone
`table_renamed` is new: was it `table`?
help: did you mean `table_renamed`?
help: if the program has none any more: take `table` out of this line

lost by demo:
no argument is named `params/position`
`params/position` is gone
`opt/0/mu/position` is gone
help: if the program has none any more: take `params/position` out of this line

lost by flax_transformer:
...: 2 of its 3 tactics do something else
`state/params/position` is gone
`state/opt_state/0/mu/position` is gone
help: save

lost by llama:
...: 2 of its 3 tactics do something else
`params/norm` is gone
`opt/1/0/mu/norm` is gone
help: save

lost by moe:
...: 1 of its 2 tactics does something else
`params/experts/w2` is gone
`result/0/experts/w2` is gone
help: save

lost by graph_network:
no argument is named `graph/senders`
`graph/senders` is gone
help: if the program has none any more: take `graph/senders` out of this line

lost by unet:
...: 2 of its 3 tactics do something else
`state/params/up/conv1/kernel` is gone
`state/opt_state/0/mu/up/conv1/kernel` is gone
help: save

lost by equinox_mixer:
`Megatron` does not pair up: `dot_general` sums over the dim that a column puts on `model`
`params/blocks/*/channels/layers/*/weight` x 4: there are 3 now
`opt_state/*/mu/blocks/*/channels/layers/*/weight` x 4: there are 3 now
help: name a dim of the weights that no op between them sums over, as that of the heads: column={"wq": -2}

lost by resnet:
...: 2 of its 2 tactics do something else
`state/params/stem/kernel` is gone
`state/opt_state/0/trace/stem/kernel` is gone
help: save

lost by vocabulary:
no value is named `params/out`
`params/out` is gone
`result/0/out` is gone
help: if the program has none any more: take `params/out` out of this line

lost by lstm:
no value is named `params/b`
`params/b` is gone
`result/0/b` is gone
help: if the program has none any more: take `params/b` out of this line

lost by scan_layers:
...: 2 of its 2 tactics do something else
`params/w2` is gone
`result/0/w2` is gone
help: save

lost by decode:
`Megatron` does not pair up: `dot_general` sums over the dim that a column puts on `model`
`params/layers/*/w2` x 2: there is 1 now
help: name a dim of the weights that no op between them sums over, as that of the heads: column={"wq": -2}

lost by sampler:
...: 1 of its 2 tactics does something else
`params/up/conv1/kernel` is gone
`params/up/GroupNorm_1/bias` was f32[model*4], is f32[8]
help: save

lost by mlp:
no value is named `w1`
`w1` is gone
help: if the program has none any more: take `w1` out of this line

lost by annotated_gpt:
...: 2 of its 2 tactics do something else
`params/position` is gone
`opt/0/mu/position` is gone
help: save

lost by mlp.partita:
no value is named `w2`
`w2` is gone
help: if the program has none any more: take `w2` out of this line

lost by attention.partita:
no value is named `wo`
`wo` is gone
help: if the program has none any more: take `wo` out of this line

lost by block.partita:
...: 1 of its 8 tactics does something else
`scale2` is gone
help: save

lost by embedding.partita:
no value is named `table`
`table` is gone
help: if the program has none any more: take `table` out of this line
"""
"""What each report says, without what each tactic did before and does now: its title, the first changes, the helps."""
CHANGED = "the program has changed since `plan.partita` was saved"
SAVE = 'help: to keep what it does now: plan.save("plan.partita")'


@pytest.fixture(autouse=True)
def devices() -> Iterator[None]:
    """The mesh that the annotations of one example need."""
    with jax.set_mesh(annotated_mesh()):
        yield


@cache
def made(name: str, more: int = 0) -> Made:
    return EXAMPLES[name](more)


def nested(leaves: Leaves) -> Tree:
    """A tree of dicts with leaves of these names."""
    tree: Tree = {}
    for name, leaf in leaves.items():
        *outer, last = name_parts(name)
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
    """The function of a plan, on trees of dicts: some names are other ones, and what is lost is zeros in the function."""

    def __init__(self, plan: pt.Plan, leaves: Leaves, names: Mapping[str, str], lost: Sequence[str]) -> None:
        self.traced, self.leaves, self.names, self.lost = plan.source.traced, leaves, names, lost
        self.__name__ = self.traced.name

    def __call__(self, **given: Tree) -> Tree:
        traced = self.traced
        zeros = {name: jax.numpy.zeros_like(self.leaves[name]) for name in inputs(traced) if name in self.lost}
        leaves = {**dict(flat(given)), **zeros}
        values = jax.tree.unflatten(traced.in_tree, [leaves[self.names.get(name, name)] for name in inputs(traced)])
        bound = passed(traced.function.signature, {**dict(zip(traced.arguments, values, strict=True)), **traced.static})
        made = traced.function.fn(*bound.args, **bound.kwargs)
        results = dict(zip(traced.result_names, jax.tree.leaves(made), strict=True))
        found = nested(
            {
                self.names.get(name, name).removeprefix("result").removeprefix("/") or "result": leaf
                for name, leaf in results.items()
                if name not in self.lost
            }
        )
        if list(found) == ["result"]:
            return found["result"]
        return tuple(found.values()) if isinstance(made, tuple) else found

    def replayed(self, file: Path) -> tuple[pt.Plan | None, str]:
        trees = nested({self.names.get(name, name): leaf for name, leaf in self.leaves.items() if name not in self.lost})
        self.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in trees])
        return replayed(file, self, **trees)


def replayed(file: Path, step: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[pt.Plan | None, str]:
    """The plan, if it is not refused, and what is reported."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            plan = pt.replay(step, file, *args, **kwargs)
        except pt.Error as error:
            return None, str(error)
    return plan, "\n".join(str(each.message) for each in caught if issubclass(each.category, pt.ReplayWarning))


def inputs(traced: Traced) -> Sequence[str]:
    """The names of what the function is called with, without what it closes over."""
    return traced.arg_names[: traced.in_tree.num_leaves]


def named_leaves(name: str) -> Leaves:
    plan, _, args = made(name)
    return dict(zip(inputs(plan.source.traced), jax.tree.leaves(tuple(args)), strict=True))


def claimed(plan: pt.Plan) -> str:
    """The argument that a tactic names last: a parameter, if there are any."""
    names = {value: name for name, value in plan.source.addresses.arguments.items()}
    found = [names[value] for action in plan.actions for value in action.values if value in names]
    return next((name for name in reversed(found) if name.startswith(("params", "state/params", "model"))), found[-1])


def family(plan: pt.Plan, name: str) -> list[str]:
    """A parameter, what the optimizer keeps for it, and what becomes of it."""
    split = name_parts(name)
    path = split[split.index("params") + 1 :] if "params" in split else split[1:]
    found = [each for each in types(plan) if path and name_parts(each)[-len(path) :] == path]
    return [name, *(each for each in found if each != name)]


def types(plan: pt.Plan) -> dict[str, tuple[int, ...]]:
    traced = plan.source.traced
    avals = [*traced.in_avals, *traced.out_avals]
    names = [*inputs(traced), *traced.result_names]
    return {name: tuple(aval.shape) for name, aval in zip(names, avals, strict=True)}


def arrays(args: Sequence[Any]) -> Sequence[Any]:
    """Small random numbers, positive ones in the second argument, which may be the state of an optimizer."""
    random = np.random.default_rng(0)

    def array(path: Any, leaf: Any) -> jax.Array:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.key(0)
        if leaf.dtype.kind == "i":
            return jax.numpy.asarray(random.integers(0, 4, leaf.shape), leaf.dtype)
        drawn = 0.1 * random.normal(size=leaf.shape)
        return jax.numpy.asarray(abs(drawn) if path[0].idx == 1 or "opt" in str(path[1:2]) else drawn, leaf.dtype)

    return jax.tree_util.tree_map_with_path(array, tuple(args))


def gist(report: str) -> str:
    """Its title, the first changes of arguments and results, and the helps."""
    lines = report.splitlines()
    changes = [line.strip() for line in lines if re.match(" {6}`.*` .*(is gone|is new|there (is|are)|was)", line)]
    return "\n".join([lines[0], *changes[:2], *(line for line in lines if line.startswith("help: "))])


def reported(name: str, change: str) -> str:
    """What the table says of a change of a model."""
    sections = (section.partition("\n") for section in REPORTS.strip().split("\n\n"))
    said = {head: text for head, _, text in sections}
    return said[f"{change} {name}:"].replace("...", CHANGED).replace("help: save", SAVE)


def test_every_example_is_here() -> None:
    files = list(Path(mlp.__file__).parent.iterdir())
    programs = {file.stem for file in files if file.suffix == ".py" and "def main()" in file.read_text()}
    assert set(EXAMPLES) == programs | {file.name for file in files if file.suffix == ".partita"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_plan_of_the_same_model_is_the_same(name: str, tmp_path: Path) -> None:
    plan, step, args = made(name)
    plan.save(tmp_path / "plan.partita")
    again, report = replayed(tmp_path / "plan.partita", step, *args)
    assert not report and again is not None
    assert (again.trace, again.layout(), again.counts()) == (plan.trace, plan.layout(), plan.counts())


def test_a_plan_by_annotations_says_if_the_arguments_have_other_shardings(tmp_path: Path) -> None:
    plan, step, args = made("annotated_gpt")
    plan.save(tmp_path / "plan.partita")
    bare: Any = jax.eval_shape(lambda: tuple(args))
    with pytest.warns(pt.ReplayWarning, match="Annotated"):
        pt.replay(step, tmp_path / "plan.partita", *bare)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_layer_more_is_partitioned_as_the_others_and_all_that_remained_as_before(name: str, tmp_path: Path) -> None:
    (plan, *_), (deeper, step, args) = made(name), made(name, 1)
    plan.save(tmp_path / "plan.partita")
    again, report = replayed(tmp_path / "plan.partita", step, *args)
    assert gist(report) == reported(name, "a layer more in")
    assert again is not None
    assert (again.trace, again.layout(), again.counts()) == (plan.trace, deeper.layout(), deeper.counts())
    remained = types(plan).items() & types(again).items()
    assert remained
    assert all(again.layout(each) == plan.layout(each) for each, _ in remained)
    assert again.check(*arrays(args)) < 1e-3


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_renamed_parameter_is_partitioned_as_before_or_reported(name: str, tmp_path: Path) -> None:
    plan, file, old = made(name)[0], tmp_path / "plan.partita", claimed(made(name)[0])
    plan.save(file)
    names = {each: f"{each}_renamed" for each in family(plan, old)}
    model = Model(plan, named_leaves(name), names, ())
    again, report = model.replayed(file)
    assert gist(report) == reported(name, "renamed in")
    if again is None:  # The help says what to write.
        file.write_text(re.sub(rf"\b{name_parts(old)[-1]}\b", name_parts(names[old])[-1], file.read_text()))
        again, _ = model.replayed(file)
    assert again is not None
    was = {names.get(each, each): layout for each, layout in plan.layout().items()}
    assert again.layout().keys() == was.keys()
    if "something else" not in report:
        assert (again.layout(), again.counts()) == (was, plan.counts())


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "heat"])  # It has one argument.
def test_a_lost_argument_is_reported_and_the_others_are_partitioned_as_before_or_reported(name: str, tmp_path: Path) -> None:
    plan, file, lost = made(name)[0], tmp_path / "plan.partita", family(made(name)[0], claimed(made(name)[0]))
    plan.save(file)
    again, report = Model(plan, named_leaves(name), {}, lost).replayed(file)
    assert gist(report) == reported(name, "lost by")
    assert f"`{lost[0]}`" in report or f"`{starred(lost[0])}`" in report
    if again is not None:
        changed = [each for each, layout in again.layout().items() if layout != plan.layout()[each]]
        assert not changed or "layouts have changed" in report
