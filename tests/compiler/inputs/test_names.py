"""Names and patterns: what an address stands for."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from partita.compiler.inputs.names import ArgumentTree, escape, match, name_parts, path_parts, pattern, successors
from partita.dialects.ground.errors import Error

NAMES = ["params/embed", "params/blocks/0/w1", "params/blocks/0/w2", "params/blocks/1/w1", "batch/x", "batch/y", "rate"]


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("rate", ["rate"]),
        ("batch/*", ["batch/x", "batch/y"]),
        ("batch/[!x]", ["batch/y"]),
        ("batch/?", ["batch/x", "batch/y"]),
        ("params/**/w1", ["params/blocks/0/w1", "params/blocks/1/w1"]),
        ("params/blocks/*/w2", ["params/blocks/0/w2"]),
        ("**/w[12]", ["params/blocks/0/w1", "params/blocks/0/w2", "params/blocks/1/w1"]),
        ("params/**", NAMES[:4]),
        ("params", NAMES[:4]),
        ("params/blocks/0", ["params/blocks/0/w1", "params/blocks/0/w2"]),
        ("**", NAMES),
        ("*", NAMES),
        (["rate", "batch/x"], ["batch/x", "rate"]),
    ],
)
def test_a_pattern_stands_for_these_names(pattern: str | list[str], expected: list[str]):
    assert match(pattern, NAMES) == expected


@pytest.mark.parametrize(
    "pattern, near", [("params/blocks/0/w3", "params/blocks/0/w1"), ("parms", "params"), ("batch/z", "batch/x")]
)
def test_a_pattern_that_names_nothing_is_an_error_with_the_nearest_names(pattern: str, near: str):
    with pytest.raises(Error, match=f"did you mean .*`{near}`"):
        match(pattern, NAMES, what="argument")


def test_without_inner_nodes_a_scope_stands_for_the_values_that_leave_it():
    names = ["mlp#0", "mlp#1", "mlp/dot_general#0", "mlp2"]
    assert [name for name in names if pattern("mlp", under=False).fullmatch(name)] == ["mlp#0", "mlp#1"]
    assert [name for name in names if pattern("mlp/*", under=False).fullmatch(name)] == ["mlp/dot_general#0"]


def test_keys_with_slashes_and_glob_characters_are_escaped():
    assert escape("a/b*") == r"a\/b\*"
    names = [rf"params/{escape('a/b*')}", "params/a/bc"]
    assert match(names[0], names) == [names[0]]
    assert match("params/*", names[:1]) == names[:1]
    assert name_parts(names[0]) == ["params", r"a\/b\*"]


def test_a_path_has_a_part_for_every_kind_of_key():
    leaves, _ = jax.tree_util.tree_flatten_with_path({"blocks": [(1, 2)], "none": None, "a/b": 4})
    assert sorted("/".join(path_parts(keys)) for keys, _ in leaves) == [r"a\/b", "blocks/0/0", "blocks/0/1"]


def tree(name: str, value: object) -> ArgumentTree:
    leaves, structure = jax.tree_util.tree_flatten_with_path(value)
    return ArgumentTree(
        structure, tuple("/".join([name, *path_parts(keys)]) for keys, _ in leaves), tuple(leaf for _, leaf in leaves)
    )


def test_a_successor_is_a_result_that_matches_only_one_argument():
    w, step = {"w": np.ones((4, 4))}, np.int32(0)
    pairs = successors(
        [tree("params", w), tree("opt", (w, w)), tree("step", step), tree("x", np.ones(3)), tree("y", np.ones(3))],
        [tree("result/0", w), tree("result/1", (w, w)), tree("result/2", jnp.int32(1)), tree("result/3", np.ones(3))],
    )
    assert pairs == {
        "params/w": "result/0/w",
        "opt/0/w": "result/1/0/w",
        "opt/1/w": "result/1/1/w",
        "step": "result/2",
    }


def test_an_array_of_the_shape_of_a_parameter_does_not_take_its_result() -> None:
    params, batch = {"a": np.ones((2, 3)), "b": np.ones((3, 2))}, np.ones((3, 2))
    parts = [tree("result/a", params["a"]), tree("result/b", params["b"])]
    for arguments in ([tree("p", params), tree("x", batch)], [tree("x", batch), tree("p", params)]):
        assert successors(arguments, [tree("result", params), *parts]) == {"p/a": "result/a", "p/b": "result/b"}


def test_among_equal_results_the_one_of_the_same_name_is_the_successor_then_the_rest_in_order() -> None:
    w = {"w": np.ones(3)}
    named = successors([tree("p", w), tree("m", w)], [tree("result/m", w), tree("result/p", w)])
    assert named == {"p/w": "result/p/w", "m/w": "result/m/w"}
    ordered = successors([tree("p", w), tree("m", w)], [tree("result/0", w), tree("result/1", w)])
    assert ordered == {"p/w": "result/0/w", "m/w": "result/1/w"}
    assert successors([tree("p", w), tree("m", w)], [tree("result", w)]) == {}
