"""A key of a tree may be any text: it is escaped once, in the name that it gives its leaf, and everything that prints that name
is read back."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from generated import examples
from hypothesis import example, given, strategies as st
from jax.ad_checkpoint import checkpoint_name

import partita as pt
from partita.compiler.inputs.names import escape, match, name_parts, pattern

X = jnp.ones((4, 2))
MESH = pt.Mesh(a=2)
CHARACTERS = st.one_of(
    st.characters(codec="utf-8"),
    st.integers(0xD800, 0xDFFF).map(chr),
    st.sampled_from([*"\n\r\t\"'\\/*?[]{}#()=>:,. \x00\x7f\x85\xa0", "\u2028", "\ufeff"]),
)
KEYS = st.lists(CHARACTERS | st.just("u000a"), min_size=1, max_size=8).map("".join)


def doubled(tree: dict[str, Any]) -> dict[str, Any]:
    return {key: pt.tag(each * 2, key if key.strip("/") else "empty") for key, each in tree.items()}


@given(keys=st.lists(KEYS, min_size=1, max_size=3, unique=True))
@example(keys=["p\nq"])
@example(keys=["\ud800"])
@example(keys=["a/b", "a\\/b", "a"])
@example(keys=["\n", "\\n", "\\u000a"])
@example(keys=['"', "'", "\"'"])
@example(keys=["x: f32[8]", "=> x", "layout x"])
@examples(60)
def test_a_plan_of_a_tree_with_any_keys_is_saved_replayed_and_shown(keys: list[str]):
    tree = dict.fromkeys(keys, X)
    plan = pt.plan(doubled, MESH, tree)
    names = [f"tree/{escape(key)}" for key in sorted(keys)]
    assert plan.arguments() == names
    for name in names:
        plan = plan.tile(name, 0, "a")
    assert all(plan.layout()[name] == "f32[a*2, 2]" for name in names)
    assert pt.replay(doubled, MESH, plan.trace, tree).layout() == plan.layout()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.partita"
        plan.save(file)
        again = pt.replay(doubled, file, tree)
        plan.html(Path(folder) / "plan.html")
        again.save(Path(folder) / "again.partita")
        assert (Path(folder) / "again.partita").read_bytes() == file.read_bytes()
    assert again.trace == plan.trace
    for shown in (str(plan), plan.explain(names[0]), plan.lower("collective").to_json(), plan.lower("collective").to_dot()):
        str(shown).encode()


@given(key=KEYS)
@examples(100)
def test_a_key_is_one_part_of_a_name_which_it_alone_matches(key: str):
    name = escape(key)
    assert name_parts(name) == [name]
    others = [escape(key + "x"), escape("x" + key), "x"]
    assert match(name, [name, *others]) == [name]
    assert pattern("?" * len(key)).fullmatch(name)
    assert name.encode().decode().splitlines() == [name]


@pytest.mark.parametrize("name", ["x[0]", "a*b", "\\", "p\nq", "\ud800"])
def test_what_a_program_names_itself_is_escaped_too(name: str):
    def fn(x: jax.Array) -> jax.Array:
        h = pt.tag(x * 2, name)
        with jax.named_scope("scope" + name):
            h = h + 1
        return checkpoint_name(h * 3, "name" + name)

    plan = pt.plan(fn, MESH, X)
    for prefix in ("", "scope", "name"):
        assert plan.tile(escape(prefix + name), 0, "a").trace == f"tile({escape(prefix + name)!r}, 0, 'a')"


def test_a_pattern_of_many_stars_is_matched_at_once():
    with pytest.raises(pt.Error, match="no value is named"):
        match("*a" * 30 + "b", ["a" * 60])
    assert match("*a" * 30 + "*", ["a" * 60, "a" * 29]) == ["a" * 60]
    assert match("**/" * 300 + "x", ["a/b/x", "x", "a"]) == ["a/b/x", "x"]


@pytest.mark.parametrize("glob", ["[z-a]", "a[\\", "[[", "[a&&b]"])
def test_brackets_that_are_no_pattern_are_an_error_of_ours(glob: str):
    with pytest.raises(pt.Error):
        match(glob, ["x"])
