"""The text of an error: title, source line with carets, notes, helps."""

import copy
import pickle

from partita.dialects.ground.errors import Error, Location, nearest

PROGRAM = "mesh data=4, model=2\n\nfn mlp(x: f32[B=512, D=6], w1: f32[D @model, H]) {\n"


def test_an_error_shows_the_line_and_points_at_the_span():
    error = Error(
        "`w1` cannot be tiled: 6 rows do not divide over `model` (4 devices)",
        location=Location.of("mlp.partita", PROGRAM, 3, 36, 44),
        label="6 is not a multiple of 4",
        notes=["tactic 2 of 3"],
        helps=["pad it: `tile w1.0 @model padded`, or use `data` (2 devices)"],
    )
    assert (
        str(error)
        == """\
`w1` cannot be tiled: 6 rows do not divide over `model` (4 devices)
  --> mlp.partita:3:36
   |
 3 | fn mlp(x: f32[B=512, D=6], w1: f32[D @model, H]) {
   |                                    ^^^^^^^^ 6 is not a multiple of 4
note: tactic 2 of 3
help: pad it: `tile w1.0 @model padded`, or use `data` (2 devices)"""
    )


def test_an_error_without_a_location_shows_no_source():
    error = Error("no axis `x`", label="named here", notes=["first\nsecond"], helps=["use `data`"])
    assert str(error) == "no axis `x`\nnote: named here\nnote: first\n      second\nhelp: use `data`"


def test_a_location_without_a_column_underlines_the_statement():
    location = Location("train.py", 120, text="    return loss(x)  ")
    assert str(Error("bad", location=location, label="here")) == (
        "bad\n    --> train.py:120\n     |\n 120 |     return loss(x)\n     |     ^^^^^^^^^^^^^^ here"
    )


def test_a_location_without_text_still_names_the_line():
    assert str(Error("bad", location=Location("<stdin>", 7))) == "bad\n  --> <stdin>:7"
    assert str(Error("bad", location=Location.of("a.py", "x", 7))) == "bad\n  --> a.py:7"


def test_carets_are_under_their_text_after_a_tab_and_at_the_end_of_a_line():
    assert str(Error("bad", location=Location("f", 1, 2, 3, "\tx"))).splitlines()[-1] == "   | \t^"
    assert str(Error("bad", location=Location("f", 1, 3, 3, "ab"), label="more")).splitlines()[-1] == "   |   ^ more"


def test_an_error_survives_copying_and_pickling():
    error = Error("bad", location=Location("f", 1, 1, 2, "ab"), helps=["good"])
    assert str(pickle.loads(pickle.dumps(error))) == str(copy.copy(error)) == str(error)


def test_nearest_names_come_first_and_distant_ones_are_left_out():
    names = ["params/wq", "params/wk", "params/w1", "opt/mu", "params/wq"]
    assert nearest("params/wg", names)[0] in {"params/wq", "params/wk", "params/w1"}
    assert nearest("modle", ["data", "model"]) == ["model"]
    assert nearest("zzz", names) == []
    assert len(nearest("params/w", names, n=2)) == 2
