"""Patterns that spell out a name are looked up, and match what their regular expressions match."""

from hypothesis import given, strategies as st

from partita.compiler.inputs.names import Names, accepting, escape, pattern

PARTS = st.sampled_from(["a", "b", "a#1", "#1", "a*", "a?", "[ab]", "a/b", "\\", "0", "**", "*", "ü\n"])
NAMES = st.lists(st.lists(PARTS.map(escape), min_size=1, max_size=3).map("/".join), max_size=6, unique=True)
GLOBS = NAMES | st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), max_size=3)


@given(NAMES, GLOBS, st.booleans())
def test_a_pattern_finds_the_names_that_its_expression_matches(names: list[str], globs: list[str], under: bool) -> None:
    known = Names(names, under)
    for glob in globs:
        accepts = pattern(glob, under).fullmatch
        assert [*known.matched(glob)] == [name for name in names if accepts(name)]


@given(NAMES, GLOBS)
def test_a_name_is_accepted_if_the_expression_of_a_pattern_matches_it(names: list[str], globs: list[str]) -> None:
    accepts, others = accepting(globs), [pattern(glob).fullmatch for glob in globs]
    assert [accepts(name) for name in names] == [any(other(name) for other in others) for name in names]
