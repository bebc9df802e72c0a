"""Names of computed values: scope, op, number. No change elsewhere in the program gives them others; former ones are read."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import partita as pt
from partita.compiler.shell.name_tree import NameTree

MESH = pt.Mesh(data=2)
W = np.ones((8, 8), np.float32)


def plan_of(fn: Callable[..., Any], *args: Any) -> pt.Plan:
    return pt.plan(fn, MESH, *args)


def names_of(plan: pt.Plan) -> dict[str, str]:
    """The name of each computed value, with its op and its type."""
    addresses, program = plan.source.addresses, plan.source.program
    ops = {value: node.op_name for node in program.nodes for value in node.results}
    return {addresses.names[value]: f"{op} {program.types[value]}" for value, op in ops.items()}


def model(layers: Sequence[str], wrapped: Callable[[Any], Any] = lambda layer: layer) -> Callable[..., Any]:
    """The gradient of a loss through the named layers, each with a scope of its own; one inside of it is for the activation."""

    def layer(x: Any, w: Any) -> Any:
        with jax.named_scope("act"):
            h = jnp.tanh(x @ w["up"]) * jnp.exp(-x)
        return x + h @ w["down"]

    def loss(params: Any, x: Any) -> Any:
        for name in layers:
            if name in params:
                with jax.named_scope(name):
                    x = wrapped(layer)(x, params[name])
            else:
                x = {"cosine": jnp.cos, "doubled": lambda x: x * 2.0, "summed": lambda x: x + jnp.tanh(x) @ x.T}[name](x)
        return jnp.mean(x * x)

    def step(params: Any, x: Any) -> Any:
        return jax.tree.map(lambda w, d: w - 0.1 * d, params, jax.grad(loss)(params, x))

    return step


def named(layers: Sequence[str], wrapped: Callable[[Any], Any] = lambda layer: layer) -> dict[str, str]:
    params = {name: {"up": W, "down": W} for name in layers if name.startswith("enc")}
    return names_of(plan_of(model(layers, wrapped), params, W))


@cache
def two_layers() -> pt.Plan:
    return plan_of(model(["enc0", "enc1"]), {name: {"up": W, "down": W} for name in ("enc0", "enc1")}, W)


WAYS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda layer: layer,
    "checkpoint": jax.checkpoint,
    "jit": jax.jit,
    "vmap": lambda layer: jax.vmap(layer, in_axes=(0, None)),
}


@cache
def named_before(way: str) -> dict[str, str]:
    return named(["enc0", "enc1"], WAYS[way])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "after", ["cosine enc0 enc1", "enc0 enc2 summed enc1", "enc0 enc1 doubled enc2 enc3", "enc2 enc0 enc1"]
)
def test_a_layer_or_an_op_elsewhere_leaves_the_names_in_a_scope(way: str, after: str) -> None:
    was, now = named_before(way), named(after.split(), WAYS[way])
    # The first layer makes no gradient of its input.
    for layer in ["enc1"] if after.startswith("enc2") else ["enc0", "enc1"]:
        of_layer = re.compile(rf"{layer}(/.*)?").fullmatch
        assert {name: op for name, op in was.items() if of_layer(name)} == {
            name: op for name, op in now.items() if of_layer(name)
        }
        assert {layer, f"{layer}/act", f"{layer}/act/dot_general#0", f"{layer}/act/backward/mul#0"} <= now.keys()


def test_a_name_is_scope_op_and_number_and_says_what_does_not_run_forward() -> None:
    names = named_before("checkpoint")
    # What the scope alone hands on has its name; constants and ops outside of scopes have no path.
    assert {"enc0", "enc0/dot_general#0", "enc0/act", "enc0/act/exp#0", "enc0/act/recomputed/exp#0"} <= names.keys()
    assert {"backward/div#0", "mul#0", "constant#0"} <= names.keys()
    assert names["enc0"].startswith("add ") and names["enc0/act/backward/mul#0"].startswith("mul ")
    assert not [name for name in names if any(mark in name for mark in ("jvp", "transpose(", "remat", "enc0/enc0"))]


def test_every_name_means_its_value() -> None:
    addresses = two_layers().source.addresses
    assert len({*addresses.names.values()}) == len(addresses.names)
    for value, name in addresses.names.items():
        assert addresses.find(name)[name] == value == addresses.by_name(name)
    assert {*addresses.find("enc0/act/backward/*").values()} < {*addresses.find("**/backward/**").values()}
    assert {*addresses.find("sub#*").values()} == {*addresses.find("result/**").values()}


def test_a_scope_with_parentheses_is_no_transformation() -> None:
    def f(x: Any) -> Any:
        with jax.named_scope("f(x)"), jax.named_scope("vmap(y)"):
            return jnp.sum(jnp.sin(x) * x)

    assert "f(x)/vmap(y)/sin#0" in names_of(plan_of(jax.grad(f), W))


def test_a_scope_may_be_called_as_a_transformation() -> None:
    def f(x: Any) -> Any:
        x = jax.vmap(jnp.sin)(x)
        with jax.named_scope("vmap"):
            return jnp.sin(x) + jnp.cos(x)

    assert {"sin#0", "vmap/sin#0", "vmap/cos#0"} <= names_of(plan_of(f, W)).keys()


def test_names_of_earlier_versions_mean_the_values_that_they_meant() -> None:
    plan = two_layers()
    addresses = plan.source.addresses
    former = {
        "enc0": r"jvp\(enc0\)#\d+",
        "enc0/act/exp#0": r"jvp\(enc0\)/act#\d+",
        "enc0/act/dot_general#0": r"jvp\(enc0\)/act/dot_general#0",
        "enc1/act/backward/mul#1": r"transpose\(jvp\(enc1\)\)/act/mul#1",
        "enc0/backward/dot_general#1": r"transpose\(jvp\(enc0\)\)/dot_general#1",
        "mul#1": r"mul#\d\d",
    }
    for name, expression in former.items():
        value = addresses.find(name)[name]
        was = addresses.former_names[value]
        assert re.fullmatch(expression, was) and [*addresses.find(was).values()] == [value]
        assert addresses.today(was) == name
    # All of them, and by patterns too.
    assert {*addresses.find("transpose(jvp(enc*))/act/mul#*").values()} == {*addresses.find("enc*/act/backward/mul#*").values()}
    for value, name in addresses.former_names.items():
        assert addresses.by_name(name) is not None or [*addresses.find(name).values()] == [value]
    assert plan.tile("transpose(jvp(enc1))/act/mul#1", 0, "data").layout("enc1/act/backward/mul#1")


@pytest.mark.parametrize(
    ("former", "near"),
    [
        ("transpose(jvp(enc0))/dot_general#77", "did you mean `enc0/backward/dot_general#1`?"),
        ("jvp(enc1)/act/tanh#2", "did you mean `enc1/act/tanh#0`?"),
        ("mul#99", "did you mean `mul#3`?"),
        ("transpose(jvp(encoder0))/act/mul#1", "did you mean `enc0/act/backward/mul#1`"),
    ],
)
def test_a_former_name_that_means_no_value_is_an_error_with_the_nearest_name(former: str, near: str) -> None:
    plan = two_layers()
    with pytest.raises(pt.Error, match="is named") as caught:
        plan.tile(former, 0, "data")
    assert caught.value.title == f"no value is named `{former}`"
    assert near in "\n".join(caught.value.helps)


def test_an_op_without_a_scope_is_named_only_with_its_number() -> None:
    with pytest.raises(pt.Error, match="no value is named `tanh`"):
        plan_of(products, W, W).tile("tanh", 0, "data")


def products(x: Any, w: Any) -> Any:
    with jax.named_scope("in"):
        h = jnp.tanh(x @ w)
    for _ in range(3):
        h = jnp.tanh(h @ w)
    return h


def placed(plan: pt.Plan) -> list[list[int]]:
    return [[*action.values] for action in plan.actions]


def test_a_plan_file_of_an_earlier_version_is_read_with_its_names(tmp_path: Path) -> None:
    start = plan_of(products, W, W)
    # Earlier versions counted the product in the scope too.
    tiled = start.tile("dot_general#0", 0, "data")
    file = tmp_path / "plan.partita"
    tiled.save(file)
    text = file.read_text()
    assert 'tile "./dot_general#0".0 @data\n    => dot_general#0: ' in text
    same = pt.replay(products, file, W, W)
    file.write_text(text.replace('"./dot_general#0"', "dot_general#1").replace("=> dot_general#0", "=> dot_general#1"))
    former = pt.replay(products, file, W, W)
    assert placed(same) == placed(former) == placed(tiled) != placed(start.tile("dot_general#1", 0, "data"))
    assert same.trace == former.trace == tiled.trace == "tile('dot_general#0', 0, 'data')"
    # A line without a record is one of the saved block too.
    text = file.read_text().replace("  layout", "  name dot_general#1.0 as rows\n  layout", 1)
    file.write_text(text)
    assert pt.replay(products, file, W, W).trace == f"{tiled.trace}\nname('dot_general#0', 0, 'rows')"
    # Of lines that nobody saved, names are those of today.
    file.write_text(re.sub(r" *(=>|layout|name).*\n", "", file.read_text()))
    assert placed(pt.replay(products, file, W, W)) == placed(start.tile("dot_general#1", 0, "data"))


def test_the_shell_completes_names_in_scopes_part_by_part() -> None:
    names = NameTree.of(two_layers())
    assert [name for name, _, _ in names.under("enc0/ac")] == ["enc0/act/", "enc0/act"]
    assert "enc0/act/backward/" in [name for name, _, _ in names.under("enc0/act/")]
    numbered = [name for name, _, _ in names.under("enc0/act/backward/mul")]
    assert numbered == [f"enc0/act/backward/mul#{number}" for number in range(len(numbered))] != []


def test_a_line_that_counts_a_result_is_read_as_it_was_saved(tmp_path: Path) -> None:
    def step(x: jax.Array) -> jax.Array:
        return jnp.sin(x) * 2

    x = jax.ShapeDtypeStruct((8, 4), "float32")
    plan = pt.plan(step, pt.Mesh(a=4), x).tile("mul#0", 0, "a")
    plan.save(tmp_path / "plan.partita")
    assert pt.replay(step, tmp_path / "plan.partita", x).trace == plan.trace


def test_an_axis_that_is_called_as_a_scope_is_read_as_an_axis(tmp_path: Path) -> None:
    def step(x: jax.Array) -> jax.Array:
        with jax.named_scope("a"):
            h = pt.tag(jnp.tanh(x), "h")
        return jnp.sin(h * 2) * 3

    x = jax.ShapeDtypeStruct((8, 4), "float32")
    plan = pt.plan(step, pt.Mesh(a=4), x).tile("mul#0", 0, "a")
    plan.save(tmp_path / "plan.partita")
    assert pt.replay(step, tmp_path / "plan.partita", x).trace == plan.trace


def test_values_that_share_a_tag_have_numbers_that_name_them() -> None:
    def tagged(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = pt.tag(jnp.tanh(x @ w), "h")
        return x

    plan = plan_of(tagged, W, W)
    assert [*plan.layout("h")] == ["h#0", "h#1", "h#2"] == [*plan.layout("h#*")]
    assert plan.tile("h#1", 0, "data").layout("h#1") == {"h#1": "f32[data*4, 8]"}
    with pytest.raises(pt.Error, match="no value is named `h#3`"):
        plan.layout("h#3")
