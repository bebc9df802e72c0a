"""A text inside a Python program: its errors and collectives point into that program; its arguments are arrays."""

import inspect
import textwrap
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import partita as pt


def line_of(word: str) -> int:
    """The first line of this file below this function that contains a word."""
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, start=1) if word in line and n > inspect.getsourcelines(line_of)[1] + 4)


def test_a_mistake_is_shown_where_it_stands():
    with pytest.raises(pt.Error) as caught:
        pt.parse("""
fn several(x: f32[B=8, D=4]) -> f32[B, D] {

  y[b, d] = x[b, k]
  return y
}
""")
    location = caught.value.location
    assert location is not None
    assert (location.file, location.line, location.column) == (__file__, line_of("x[b, k]"), 18)


def test_a_mistake_in_one_line_has_its_column():
    with pytest.raises(pt.Error) as caught:
        pt.parse("fn one(x: f32[8]) -> f32[8] { return nothing }")
    location = caught.value.location
    assert location is not None
    assert location.text[location.column - 1 :].startswith("nothing }")
    assert location.text.lstrip().startswith('pt.parse("fn one')


def test_a_text_built_at_run_time_has_only_a_name():
    name = "nothing"
    with pytest.raises(pt.Error) as caught:
        pt.parse(f"fn put(x: f32[8]) -> f32[8] {{ return {name} }}")
    assert "--> <notation " in str(caught.value)


def test_collectives_name_the_line_of_the_program():
    program = pt.parse(
        textwrap.dedent("""
        mesh data=4

        fn mlp(x: f32[B=8, D=4], w: f32[D @data, H=8]) -> f32[B, H] {
          y[b, h] = sum(d) x[b, d] * w[d, h]
          return y
        }
        """)
    )
    (each,) = program.plan().collectives()
    assert each.source is not None
    assert each.source.line == line_of("sum(d) x[b, d]")
    assert program.text.startswith("\nmesh data=4\n\nfn mlp(")


@pytest.mark.parametrize(
    "given", [np.ones((8, 4)), np.ones((8, 4), np.float32), jax.ShapeDtypeStruct((8, 4), "float32")], ids=str
)
def test_an_argument_is_converted_to_an_array_or_refused(given: Any):
    function = pt.parse("fn itself(x: f32[8, 4]) -> f32[8, 4], f32[8, 4] { y[i, j] = 2 * x[i, j] return x, y }").functions[
        "itself"
    ]
    if isinstance(given, np.ndarray):
        assert all(isinstance(each, jax.Array) and each.dtype == "float32" for each in function(given))
        return
    with pytest.raises(pt.Error, match="`x` of `itself` must be an array, got a ShapeDtypeStruct"):
        function(given)
