"""Tables on narrow screens: no word is broken, and no line is longer than the screen."""

import re

import pytest
from hypothesis import given, strategies as st

from partita.compiler.views.columns import shortened, wrapped
from partita.compiler.views.view import Cell, Grid, rendered

COLUMNS = ("no.", "value", "collective", "when", "times", "total bytes", "at", "tactic")
SPARE = ("when", "times", "at")
ROWS: list[list[Cell]] = [
    ["1-12", "params/layers/wq x 12", "all_gather", "", 12, 92_160, "made at llama.py:90", "2, 3"],
    ["13", "transpose(jvp(rematted_computation))/btkgd,kgdm->btm", "reduce_scatter", "", 1, 6, "llama.py:113", "2"],
]


def test_a_table_that_fits_is_as_wide_as_its_cells() -> None:
    assert rendered(Grid(("name", "size"), [["x", 4]], ("name",)), 20) == "name   size\n───────────\nx         4"


def test_on_a_narrow_screen_cells_wrap_names_are_shortened_and_columns_left_out() -> None:
    assert rendered(Grid(COLUMNS, ROWS, SPARE), 80).splitlines() == [
        "                                                    total",
        "no.   value                collective      times    bytes  at             tactic",
        "────────────────────────────────────────────────────────────────────────────────",
        "1-12  param…ayers/wq x 12  all_gather         12   92,160  made at        2, 3",
        "                                                           llama.py:90",
        "13    transp…gd,kgdm->btm  reduce_scatter      1        6  llama.py:113   2",
    ]
    assert rendered(Grid(COLUMNS, ROWS, SPARE), 60).splitlines() == [
        "                                               total",
        "no.   value                 collective         bytes  tactic",
        "────────────────────────────────────────────────────────────",
        "1-12  param…layers/wq x 12  all_gather        92,160  2, 3",
        "13    transpo…gd,kgdm->btm  reduce_scatter         6  2",
    ]


WORDS = st.text("ab/", min_size=1, max_size=40)
TEXTS = st.lists(WORDS, max_size=4).map(" ".join)


@given(
    st.lists(st.tuples(WORDS, TEXTS, TEXTS, st.integers(0, 10**9)), min_size=1, max_size=4),
    st.integers(50, 160),
    st.sets(st.sampled_from(["second", "third"])),
)
def test_no_word_is_broken_and_no_line_is_too_long(rows: list[tuple[str, str, str, int]], width: int, spare: set[str]) -> None:
    lines = rendered(Grid(("name", "second", "third", "count"), rows, sorted(spare)), width).splitlines()
    assert max(map(len, lines)) <= width
    words = {word for row in rows for cell in row[:3] for word in cell.split()} | {f"{row[3]:,}" for row in rows}
    for word in (word for line in lines[2:] for word in line.split()):
        first, *rest = word.split("…")
        assert any(each.startswith(first) and all(each.endswith(end) for end in rest) for each in words), word


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("params/w1", 9, "params/w1"),
        ("params/layers/w1", 10, "par…ers/w1"),
        ("params/layers/w1 x 12", 16, "para…ers/w1 x 12"),
        ("params/layers/w1 x 12", 8, "par…x 12"),
    ],
)
def test_a_name_is_shortened_in_its_middle(name: str, width: int, shown: str) -> None:
    assert shortened(name, width) == shown


def test_a_cell_of_many_words_ends_after_two_lines() -> None:
    assert wrapped("a, b, c, d, e, and 12 more", 9) == "a, b, c,\nd, e, …"
    assert re.fullmatch(r"\S+ …", wrapped("params/layers/w1, params/layers/w2, more", 12).splitlines()[-1])
