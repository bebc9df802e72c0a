"""What a screen shows: the program at the start, and long lines that go on below."""

import pytest

from partita.compiler.shell.screen import folded

FOLDED = {
    "a short line": "a short line",
    "  a line that is longer than the screen is wide": "  a line that is longer than\n      the screen is wide",
    "layouts:\n  params/layers/w1/and/a/name/without/blanks/in/it: f32[8]": (
        "layouts:\n  params/layers/w1/and/a/name/without/blanks/in/it:\n      f32[8]"
    ),
}


@pytest.mark.parametrize("text", FOLDED)
def test_a_long_line_goes_on_below_at_a_blank(text: str) -> None:
    assert folded(text, 30) == FOLDED[text]


def test_of_a_long_line_that_was_typed_the_part_with_the_carets_is_shown() -> None:
    typed = " 1 | tile params/layers/wq.2, params/layers/wo.1, params/lyers/up.2 @model"
    carets = f"   | {' ' * (typed.index('params/ly') - 5)}{'^' * 15}"
    assert folded(f"error: no\n   |\n{typed}\n{carets}\nhelp: yes", 40).splitlines() == [
        "error: no",
        "   |",
        " 1 | …/layers/wo.1, params/lyers/up.2 @…",
        "   |                ^^^^^^^^^^^^^^^",
        "help: yes",
    ]


def test_what_carets_say_goes_below_them_if_it_is_long() -> None:
    assert folded("   |\n 1 | tile x @data\n   |      ^ expected one of these: `.`, `,`", 30).splitlines() == [
        "   |",
        " 1 | tile x @data",
        "   |      ^",
        "   | expected one of these:",
        "   | `.`, `,`",
    ]
