"""Looks for a counter-example of a law at small sizes, where folds are written out and the solver's answer is exact.

size(a) = 2, m = 1, rows(k) = 1; k = [1], x = [0]; [0]: at a = 0, index = 0, 0 and 1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from ...rules.rule import Rule
from ..bounded import Bounded
from ..solver import answer, z3
from ..terms import Terms
from ..values import Here
from ..verdict import Verdict
from .leaves import SymbolicLeaves
from .replay import Replay, all_here, indices
from .statement import Case, VariableKind, compared, conditions, holds, sides

TRIED = 12
"""How many combinations of small sizes are tried for a counter-example."""
WINDOW = {"stride": 1, "before": 1, "width": 3}
"""The windows that are tried."""


def refuted(rule: Rule, kinds: Mapping[str, VariableKind], case: Case) -> Verdict | None:
    """A counter-example at small sizes that the interpreter confirms; None if there is none."""
    for given in small_sizes(rule, kinds, case):
        world = Bounded(kind=case.kind, cast=case.cast)
        leaves = SymbolicLeaves(world, given, case.same)
        facts = small_facts(world, rule, leaves, kinds)
        found, model = answer([*facts, *world.facts])
        if found != "sat":
            continue
        if shown := Replay(rule, kinds, leaves, model, case.kind, case.cast).differs():
            return Verdict("refuted", shown)
    return None


def small_facts(world: Bounded, rule: Rule, leaves: SymbolicLeaves, kinds: Mapping[str, VariableKind]) -> list[Any]:
    bound = leaves.bound(kinds)
    made = sides(rule, world, bound)
    places = list(all_here(kinds, leaves))

    def read(array: Any) -> Iterator[tuple[Here, Any]]:
        yield from product(places, indices(array))

    asked = [fact for each in made.asked for fact in leaves.ask(each, list(product(places, range(2))))]
    asked += [holds(each, world, bound) for each in conditions(rule)]
    goals = list(compared(world, made.left, made.right, read))
    return [*asked, z3.Not(z3.And(*goals))]


def small_sizes(rule: Rule, kinds: Mapping[str, VariableKind], case: Case, block: int = 1) -> Iterator[Mapping[str, int]]:
    """Small sizes for which a law's left side can be asked for, the smallest first: two or three iterations along each axis.

    Sizes that are variables, and extents of arrays, are at least `block`; row numbers are at least one less. Windows have three
    rows, and begin one before their block.
    """
    world = Terms(kind=case.kind, cast=case.cast)
    leaves = SymbolicLeaves(world, same=case.same)
    bound = leaves.bound(kinds)
    asked = [each for each in sides(rule, world, bound).asked if z3.is_expr(each)]
    asked += [each for each in (holds(each, world, bound) for each in conditions(rule)) if z3.is_expr(each)]
    sizes = leaves.sizes
    dims = {name for name, kind in kinds.items() if kind.kind == "dim"}
    asked += [size >= 0 for size in sizes.values()]
    asked += [sizes[name] <= 1 for name in dims]
    asked += [sizes[name] >= block for name, kind in kinds.items() if kind.kind == "size"]
    asked += [sizes[name] >= block - 1 for name, kind in kinds.items() if kind.kind == "row"]
    asked += [size == WINDOW[part] for name, size in sizes.items() if (part := name.partition("(")[0]) in WINDOW]
    for name in sizes:
        if name.startswith(("size(", "count(")):
            asked += [sizes[name] >= 2, sizes[name] <= 3]
        if name.startswith("extent("):
            asked.append(sizes[name] == sizes[name.replace("extent", "count")] * sizes[name.replace("extent", "block")])
    tried = 0
    for most in (2, 3, 4, 6, 9):
        known = [*(size <= most for size in sizes.values()), *_some(sizes, block)]
        while tried < TRIED and (given := _least([*asked, *known], sizes, most)):
            yield given
            tried += 1
            asked.append(z3.Or(*(sizes[name] != number for name, number in given.items())))


def _least(facts: list[Any], sizes: Mapping[str, Any], most: int) -> dict[str, int]:
    """The least size that each name can have, one after another; nothing if the facts cannot hold."""
    given: dict[str, int] = {}
    for name, size in sizes.items():
        found = next((least for least in range(most + 1) if answer([*facts, size == least])[0] == "sat"), None)
        if found is None:
            return {}
        given[name] = found
        facts = [*facts, size == found]
    return given


def _some(sizes: Mapping[str, Any], block: int) -> list[Any]:
    """That arrays have rows."""
    return [sizes[name] >= block for name in sizes if name.startswith(("rows(", "block("))]


def satisfiable(rule: Rule, kinds: Mapping[str, VariableKind], case: Case) -> bool:
    """Whether what a law asks for can hold, with two iterations along each axis and blocks of two."""
    for given in small_sizes(rule, kinds, case, 2):
        world = Bounded(kind=case.kind, cast=case.cast)
        leaves = SymbolicLeaves(world, given, case.same)
        *facts, _ = small_facts(world, rule, leaves, kinds)
        if answer([*facts, *world.facts])[0] == "sat":
            return True
    return False
