"""The rounds of pieces together are as long as the busiest device needs, and move every unit once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, strategies as st

from partita.rewrites.redistribute.permute_rounds import Pair, Round, busiest, rounds

DEVICES = st.integers(0, 5)
PAIRS = st.tuples(DEVICES, DEVICES).filter(lambda pair: pair[0] != pair[1])


@given(st.dictionaries(PAIRS, st.integers(1, 6)))
def test_rounds_are_as_long_as_the_busiest_device_needs(weights: dict[Pair, int]) -> None:
    moved = Counter[Pair]()
    made = rounds(weights)
    for units, pairs in made:
        assert all(0 < count <= units for _, count in pairs)
        for ends in zip(*(pair for pair, _ in pairs), strict=True):
            assert len(set(ends)) == len(pairs)
        moved.update(dict(pairs))
    assert moved == weights
    assert sum(units for units, _ in made) == busiest(weights)


def test_a_piece_is_cut_if_that_is_shorter() -> None:
    """Device 0 sends 3 units in all, so three rounds of a unit are best."""
    assert rounds({(0, 1): 2, (0, 2): 1, (1, 2): 1}) == [
        Round(1, (((0, 1), 1), ((1, 2), 1))),
        Round(1, (((0, 1), 1),)),
        Round(1, (((0, 2), 1),)),
    ]
