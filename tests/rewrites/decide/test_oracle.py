"""Decisions cost what the optimum costs, which exhaustive search finds for small programs, with the threshold at 0.

In `make fuzz`, as for hypothesis, there are more draws, and other ones each time.
"""

from itertools import product
from random import Random

import numpy as np
import pytest
from figures import Figures
from generated import is_quick
from oracle import Oracle
from oracle_moves import lacks, moved
from oracle_report import ENOUGH, compared, missed, shares
from shortest_ways import all_layouts
from small_programs import KINDS, Kind, drawn

import partita as pt
from partita.dialects.layouts import Pending
from partita.rewrites.decide import price, relocate
from partita.rewrites.decide.decide import nearly_elsewhere
from partita.rewrites.redistribute.search import path

DRAWS = 100 if is_quick() else 400
FIRST = 0 if is_quick() else 2 * Random().randrange(1 << 30)

# Of 100 draws, those at the optimum, and those that cost at most `ENOUGH` times it. Wanted are 95 and 100 of each kind.
AT_OPTIMUM = dict(zip(KINDS, (92, 92, 95), strict=True))
NEAR = dict(zip(KINDS, (97, 98, 98), strict=True))
# By how much other draws may differ.
SPREAD = 0 if is_quick() else 15


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


def test_what_ops_could_do_elsewhere_is_found_beside_the_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that take less than a start are tried when that is asked for. With starts of no time, ops are then placed."""
    found = [drawn(KINDS[0], seed).plan.decisions for seed in range(0, 20, 2)]
    untried = [each for each in found if each.nearly is None]
    before = [(*each.placements.nodes, *each.placements.homes, each.price) for each in untried]
    assert len(untried) > 2 and any(map(nearly_elsewhere, untried))
    for each in untried:
        each.nearly = None
    monkeypatch.setattr(price, "START", 0)
    for each in untried:
        nearly_elsewhere(each)
    assert before == [(*each.placements.nodes, *each.placements.homes, each.price) for each in untried]


def test_a_region_that_grows_step_by_step_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "START", 0)

    def prices(growth: tuple[int, ...]) -> list[float]:
        monkeypatch.setattr(relocate, "GROWTH", growth)
        return [drawn(kind, seed).plan.decisions.price.seconds for kind in KINDS for seed in range(20)]

    step_by_step, at_once = prices(relocate.GROWTH), prices((sum(relocate.GROWTH),))
    assert all(one <= other for one, other in zip(step_by_step, at_once, strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_the_oracle_finds_the_least_of_all_choices(seed: int) -> None:
    plan = drawn(Kind(2, (("a", 2),)), seed).plan
    every, oracle = Oracle(plan), Oracle(plan)
    numbers = [range(len(ways)) for ways in every.ways.values()]
    least = min(every.exact(dict(zip(every.ways, chosen, strict=True))) for chosen in product(*numbers))
    assert oracle.best[0] == pytest.approx(least)


def test_a_move_costs_what_the_search_says_and_no_less_than_a_device_lacks() -> None:
    mesh, shape = pt.Mesh(a=4, b=2), (16, 16)
    layouts = [each for each in all_layouts(shape, mesh) if all(factor.stride % 2 == 0 for _, factor in each.factors)]
    (a, b), random = mesh.places, Random(0)
    sums = [each.with_pending((Pending("add", axis),)) for axis in (a, b) for each in layouts if axis not in each.axes]
    sources, targets = random.sample(layouts, 12) + random.sample(sums, 12), random.sample(layouts, 12)
    found = np.array([[moved(source, target, 4, mesh.size) for target in targets] for source in sources])
    ways = np.array([[float(path(source, target, 4).bytes) for target in targets] for source in sources])
    assert np.allclose(np.floor(found), np.floor(ways))
    alone = np.einsum("stt->st", lacks(sources, targets, mesh)) * 4
    assert (alone <= ways + 0.5).all()
