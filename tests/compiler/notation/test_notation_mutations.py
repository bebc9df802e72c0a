"""A program with typing slips is read, or an error says where it is wrong and what to do."""

import random

from generated import examples
from hypothesis import example, given, strategies as st
from mutated import mutated
from root import ROOT
from twins import TWINS

import partita as pt

SOURCES = [
    *(path.read_text() for path in sorted((ROOT / "examples").glob("*.partita"))),
    *(path.read_text() for path in sorted((ROOT / "tests" / "errors" / "notation").glob("*.partita"))),
    *(twin.text for twin in TWINS),
]


@given(source=st.sampled_from(SOURCES), seed=st.integers(0, 2**32))
@example(source="fn f(x: f32[4]) -> f32[4] { y[i] = x[i] * add(1, 2.5) return y }", seed=-1)
@example(source="fn f(x: f32[4]) -> f32[4] { y[i] = x[i] * round(2.5) return y }", seed=-1)
@example(source="fn f(n: i32[4]) -> i32[4] { y[i] = n[i] * xor(3, 5) return y }", seed=-1)
@example(source="fn f(x: f32[4]) -> f32[4] { y[i] = x[i] * integer_pow(2) return y }", seed=-1)
@example(source="fn f(x: f32[4]) -> f32[4] {\r\n y[i] = x[i]\r\n return z }", seed=-1)
@example(source="fn f(x: f32[4]) -> f32[4] {\n\f y[i] = x[j]\n return y }", seed=-1)
@examples(200)
def test_a_text_with_slips_is_read_or_refused(source: str, seed: int):
    text = source if seed < 0 else mutated(source, random.Random(seed))
    try:
        program = pt.parse(text, "slip.partita")
        for name in program.functions:
            pt.trace(program.functions[name], *program.arguments(name).values())
        for name in program.plans:
            program.plan(name)
    except pt.Error as error:
        assert error.helps
        assert error.location is not None
        assert 1 <= error.location.line <= text.count("\n") + text.count("\r") + 1
        assert "^" in str(error) or not text.strip("\n\r")
