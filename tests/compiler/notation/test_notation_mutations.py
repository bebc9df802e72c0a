"""A program with typing slips is read, or an error says where it is wrong and what to do."""

import random
import re

from generated import examples
from hypothesis import example, given, strategies as st
from root import ROOT
from twins import TWINS

import partita as pt

SOURCES = [
    *(path.read_text() for path in sorted((ROOT / "examples").glob("*.partita"))),
    *(path.read_text() for path in sorted((ROOT / "tests" / "errors" / "notation").glob("*.partita"))),
    *(twin.text for twin in TWINS),
]
WORD = re.compile(r"\s+|\w+|\S")
KINDS = (re.compile(r"\d+"), re.compile(r"[a-z]\w*"), re.compile(r"[A-Z]\w*"), re.compile(r"[-+*/]"), re.compile(r"\S"))
SIGNS = [*"ab01_@#*+-/.,;:=<>()[]{}\n \"'", "é", "²", "\t", "\x00", "\f", "\u2028", "1e400", "99999999999999999999", "-1", "0"]


def mutated(source: str, chance: random.Random) -> str:
    """The text with a few words removed, repeated, swapped or replaced by others, often of the same kind."""
    words = WORD.findall(source)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(words)) if words else 0
        match chance.randrange(7) if words else 0:
            case 0:
                words.insert(at, chance.choice(SIGNS))
            case 1:
                del words[at]
            case 2:
                other = chance.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 3:
                words[at] = chance.choice(SIGNS)
            case 4:
                words = words[:at] if chance.random() < 0.2 else [*words[:at], words[at], *words[at:]]
            case _:
                kind = next((each for each in KINDS if each.fullmatch(words[at])), None)
                words[at] = chance.choice([each for each in words if kind is None or kind.fullmatch(each)] or words)
    return "".join(words)


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
