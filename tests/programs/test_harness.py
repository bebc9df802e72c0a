"""Every definition under all of its tilings, with random shapes, dtypes and parameters, equals JAX and NumPy.

`make test` tries the same calls everywhere; `make fuzz` (`--hypothesis-profile=fuzz`) draws new ones.
"""

from collections import Counter

import hypothesis
import pytest
from call import Call
from calls import NO_CALL
from drawn_by_hand import BY_HAND, calls_of
from figures import Figures
from generated import examples
from harness import check
from hypothesis import given, strategies as st

from partita.dialects.definitions.operators import ARITHMETIC
from partita.dialects.definitions.registry import definitions
from partita.dialects.definitions.syntax_tree import Apply

# Definitions for which no calls are drawn, and why.
NOT_DRAWN = NO_CALL
# Elementwise ops differ only in their function, for which a few samples are enough.
ELEMENTWISE, OTHER = 2, 4


def samples(name: str) -> int:
    definition = definitions[name]
    elementwise = (
        isinstance(definition.body, Apply)
        and definition.body.function not in ARITHMETIC
        and not definition.at
        and name not in BY_HAND
    )
    return ELEMENTWISE if elementwise else OTHER


@pytest.mark.parametrize("name", [name for name in definitions if name not in NOT_DRAWN])
def test_a_definition_means_the_same_under_all_of_its_tilings(name: str, figures: Figures) -> None:
    seen: Counter[str] = Counter()

    @examples(samples(name))
    @given(calls_of(name), st.integers(0, 1 << 10))
    def run(call: Call, seed: int) -> None:
        hypothesis.note(f"{call} on {', '.join(f'{each.dtype}{list(each.shape)}' for each in call.args)}")
        checked = check(call, seed)
        seen.update(indices=checked.indices, executed=checked.executed, calls=1, whole=not checked.executed)

    run()
    figures.add("random calls of definitions that can be tiled", seen["calls"] - seen["whole"], of=seen["calls"])
    figures.add("derived tilings of random calls executed", seen["executed"], of=seen["indices"])


def test_every_definition_that_can_be_drawn_is_drawn() -> None:
    assert set(NOT_DRAWN) <= set(definitions)
    assert not set(NOT_DRAWN) & set(BY_HAND)
    assert set(BY_HAND) <= set(definitions)
