"""Decisions cost what the optimum costs, which exhaustive search finds for small programs, with the threshold at 0.

In `make fuzz`, as for hypothesis, there are more draws, and other ones each time.
"""

from random import Random

import pytest
from figures import Figures
from generated import is_quick
from oracle_report import ENOUGH, compared, missed, shares
from small_programs import KINDS, Kind

from partita.rewrites.decide import price

DRAWS = 100 if is_quick() else 400
FIRST = 0 if is_quick() else 2 * Random().randrange(1 << 30)

# Of 100 draws of each kind, those at the optimum, and those that cost at most `ENOUGH` times it: wanted are 95, and all.
AT_OPTIMUM = dict(zip(KINDS, (0, 0, 0), strict=True))
NEAR = dict(zip(KINDS, (0, 0, 0), strict=True))
# What more draws of others may differ by.
SPREAD = 0 if is_quick() else 10


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_decisions_of_small_programs_cost_what_the_optimum_costs(
    kind: Kind, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price, "START", 0)
    found = compared(kind, DRAWS, FIRST)
    print(f"{kind}, from seed {FIRST}: {shares(found)}", *missed(found, 1), sep="\n")
    best, near = (sum(each.ratio <= most for each in found) for most in (1, ENOUGH))
    figures.add(f"decisions at the optimum, {kind}", best, of=len(found))
    figures.add(f"decisions at most {ENOUGH} times the optimum, {kind}", near, of=len(found))
    assert best * 100 >= (AT_OPTIMUM[kind] - SPREAD) * len(found)
    assert near * 100 >= (NEAR[kind] - SPREAD) * len(found)
