"""A text that is nested too deeply for its parser is an error that says so, in every language that Partita reads."""

# JAX annotates its functions only in part.
# pyright: reportUnknownMemberType=false

import tempfile
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import pytest

import partita as pt
from partita.compiler.graph.graph import Graph
from partita.compiler.inputs.tactic_calls import Call
from partita.dialects.definitions.parse import parse_definitions
from partita.dialects.ranges.text import parse_array_text, parse_range
from partita.rewrites.rules.parse import parse

X = jnp.ones((8, 4))
MESH = pt.Mesh(a=2)
DEEP = 3000


def same(x: object) -> object:
    return x


def config(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "strategy.toml").write_text(text)
        return pt.tactics_from(Path(folder) / "strategy.toml")


LANGUAGES: dict[str, Callable[[str], object]] = {
    "range": parse_range,
    "array type": lambda text: parse_array_text(f"f32[{text}]"),
    "definition": lambda text: parse_definitions(f"foo(x)  out[i..] = {text}"),
    "definition of a user": lambda text: pt.define(f"foo(x)  out[i..] = {text}")(same),
    "rule": lambda text: parse(f"foo: {text} => x"),
    "rule of a user": lambda text: pt.rule(f"foo: {text} => x"),
    "equation": lambda text: pt.parse(f"fn f(x: f32[4]) -> f32[4] {{ y[i] = {text} return y }}"),
    "extent": lambda text: pt.parse(f"let N={text}"),
    "statement": lambda text: pt.parse(f"mesh a=2\nplan p {{ tile {text} @a }}"),
    "tactic in a plan file": lambda text: pt.parse(f"mesh a=2\nplan p {{ Tile(values={text}, axis='a') }}"),
    "trace": lambda text: pt.replay(same, MESH, f"Tile(values={text}, axis='a')", X),
    "call": Call.read,
    "config file": lambda text: config(f"tactics = {text}"),
    "plan in a config file": lambda text: config(f"plan = '''\n{text}\n'''"),
    "argument in a config file": lambda text: config(f"[[tactics]]\nname = 'Tile'\naxis = 'a'\nvalues = {text}"),
    "graph": Graph.parse,
    "attribute of a graph": lambda text: Graph.parse(f"builtin.module attributes {{a = {text}}} {{}}"),
    "type in a graph": lambda text: Graph.parse(f"func.func @f(%x: !array.array<f32[{text}]>) {{}}"),
    "parameters in a graph": lambda text: Graph.parse(
        f"func.func @f(%0: !array.array<f32[8]>) {{ %1 = lax.neg %0 {{x = {text}}} : f32[8] -> f32[8] }}"
    ),
    "mesh": pt.Mesh.parse,
    "constraint": lambda text: pt.constrain(X, text),
    "pattern": lambda text: pt.plan(same, MESH, X).tile(text, 0, "a"),
    "budget": lambda text: pt.plan(same, MESH, X).expect(memory=text),
}
FORMS = {
    "signs": "-" * DEEP + "1",
    "parentheses": "(" * DEEP + "1" + ")" * DEEP,
    "what never closes": "(" * DEEP,
    "brackets": "[" * DEEP + "]" * DEEP,
    "braces": "{" * DEEP + "}" * DEEP,
    "words": "not " * DEEP + "x",
    "calls": "at(" * DEEP + ")" * DEEP,
    "quotes": (DEEP + 1) * '"',
    "powers": "2**" * DEEP + "1",
    "attributes": "a." * DEEP + "a",
}
# Parentheses around one thing are no phrase of these languages, so any number of them is read.
FLAT = {"definition", "rule", "equation", "extent"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_that_is_nested_very_deeply_is_read_or_refused(language: str, form: str):
    try:
        LANGUAGES[language](FORMS[form])
    except pt.Error as error:
        assert len(str(error)) < 5000
    else:
        assert language in FLAT


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("range", "(" * 100 + "1" + ")" * 100),
        ("array type", "pad(" * 100 + "1" + ", 1, 1)" * 100),
        ("definition", "exp(" * 100 + "x[i..]" + ")" * 100),
        ("rule", "f(" * 100 + "x" + ")" * 100),
        ("equation", "-" * 300 + "x[i]"),
        ("tactic in a plan file", "-" * 100 + "1"),
        ("trace", "[" * 90 + "]" * 90),
        ("call", "at('x', " * 60 + "1" + ")" * 60),
        ("graph", "builtin.module {" * 1000),
    ],
)
def test_the_error_says_that_it_is_nested_too_deeply(language: str, text: str):
    with pytest.raises(pt.Error, match="nested too deeply") as caught:
        LANGUAGES[language](text)
    assert caught.value.location is not None or language == "call"
