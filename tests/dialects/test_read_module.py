"""Every text is read, or refused with a location, in time linear in its length."""

import pytest
from xdsl.utils.exceptions import ParseError

import partita as pt
from partita.compiler.graph.graph import Graph
from partita.dialects import context
from partita.dialects.program_text import read_module


@pytest.mark.parametrize("text", ["a" * 10_000, "a" * 10_000 + '\\q"', "a" * 10_000 + '\n"'])
@pytest.mark.parametrize("before", ["builtin.module attributes {a = ", "func.func @", ""])
def test_a_string_that_does_not_end_is_found_at_once(before: str, text: str):
    with pytest.raises(ParseError, match="does not end on its line") as caught:
        read_module(context(), f'{before}"{text}')
    assert caught.value.span.start == len(before)


@pytest.mark.parametrize("said", ["", "a", r"\n\t\\\"", r"\7F", "é" * 1000])
def test_strings_are_those_of_mlir(said: str):
    assert read_module(context(), f'builtin.module attributes {{a = "{said}"}} {{}}').attributes["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("builtin.module {" * 1000, "nested too deeply"),
        (f"builtin.module attributes {{a = {'-' * 9}\u00b2}} {{}}", "graph:1:"),
        (f'builtin.module attributes {{array.mesh = "a={"9" * 5000}"}} {{ flow.graph @f() {{ flow.return }} }}', "not a graph"),
        (f"func.func @f(%x: !array.array<f32[{'9' * 5000}]>) {{ func.return }}", "extent"),
        (f"func.func @f(%x: !array.array<f32[{2**63}]>) {{ func.return }}", "extent"),
        (f"func.func @f(%x: !array.array<f32[{'9' * 4000}*{'9' * 4000}]>) {{ func.return }}", "extent"),
    ],
    ids=["nested", "digit", "mesh", "digits", "2**63", "product"],
)
def test_a_text_that_python_cannot_read_is_an_error_of_ours(text: str, message: str):
    with pytest.raises(pt.Error, match="the text is not a graph") as caught:
        Graph.parse(text)
    assert message in str(caught.value)
