"""Pictures of laws: small arrays, and for them both sides and what the right one is made of, by the meanings of the proofs.

x                           1 2 | 3 4             two iterations, whose blocks have two rows
k                           3 0
take(k, build(a, m, x))     4 1
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise, product
from random import Random
from typing import Any

import numpy as np

from partita.rewrites.laws.rule_check import RuleInstance
from partita.rewrites.proofs.bounded import Bounded
from partita.rewrites.proofs.of_rules.laws import NOT_PROVED, PROGRAMS, every_law
from partita.rewrites.proofs.of_rules.leaves import SymbolicLeaves
from partita.rewrites.proofs.of_rules.programs import is_computed
from partita.rewrites.proofs.of_rules.prove import cases
from partita.rewrites.proofs.of_rules.refute import small_facts, small_sizes
from partita.rewrites.proofs.of_rules.replay import Replay, all_here, indices as places_in
from partita.rewrites.proofs.of_rules.statement import Case, value, variables
from partita.rewrites.proofs.solver import answer, z3
from partita.rewrites.proofs.values import Array, Complex, Held, Pair, Spread
from partita.rewrites.proofs.world import Ints
from partita.rewrites.rules.rule import Rule, RuleApply, Variable, subterms

PARTS = {"real", "imag", "conj"}
"""Heads that say something of complex numbers alone."""
INDICES = (0, 1), (1, 2), (0, 2)
"""The indices that a variable of a law of programs may have."""


def pictures() -> dict[str, str]:
    """The pictures of all laws that have meanings, by name."""
    every = [(file, rule) for file, rule in every_law() if rule.name not in NOT_PROVED]
    return {rule.name: of_program(rule) if file == PROGRAMS else picture(rule) for file, rule in every}


def case_of(rule: Rule) -> Case:
    """Integers, if there is no better kind of numbers, and axes that differ."""
    heads = {each.head for each in subterms(rule.left) if isinstance(each, RuleApply)}
    wanted = "complex" if heads & PARTS else "integers"
    return max(cases(rule, variables(rule)), key=lambda case: (case.kind == wanted, len({*case.same.values()})))


def picture(rule: Rule) -> str:
    """The variables, both sides, and what the right side is made of: a row each, iterations apart by `|`."""
    kinds, case = variables(rule), case_of(rule)
    for given in small_sizes(rule, kinds, case, 2):
        if (replay := instance(rule, case, given)) is not None:
            return drawn(rule, replay)
    raise AssertionError(rule)


def instance(rule: Rule, case: Case, given: Mapping[str, int]) -> Replay | None:
    """Values of the variables that are as different as what the law asks for allows."""
    kinds = variables(rule)
    world = Bounded(kind=case.kind, cast=case.cast)
    leaves = SymbolicLeaves(world, given, case.same)
    *facts, _ = small_facts(world, rule, leaves, kinds)
    if answer([*facts, *world.facts])[0] != "sat":
        return None
    for choices in wishes(rule.name, leaves, list(all_here(kinds, leaves)), kinds):
        facts += [*islice((wish for wish in choices if answer([*facts, *world.facts, wish])[0] == "sat"), 1)]
    return Replay(rule, kinds, leaves, answer([*facts, *world.facts])[1], case.kind, case.cast)


def wishes(law: str, leaves: SymbolicLeaves, places: list[Any], kinds: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Facts, of each list the first one that can hold: elements are small, and differ; devices have all of an array."""
    for name, made in leaves.made.items():
        if isinstance(made, Held):
            for some in (z3.And, z3.Or):
                yield [z3.And(*(some(*(made.has(here, g) for here in places)) for g in places_in(made)))]
            yield from ([made.has(here, g)] for here, g in product(places, places_in(made)))
            yield [z3.And(*(made.at(here, (i, j)) == 4 * i + j for here, (i, j) in product(places, places_in(made))))]
        elif isinstance(made, Spread):
            numbers = [made.whole(c, i) for c, i in product(range(made.count), range(made.block))]
            yield from of_elements(numbers, "positions", Random(f"{law} {name}"))
        elif isinstance(made, Array):
            every = [made.at(here, i) for here, i in product(places, places_in(made))]
            parts = [part for each in every for part in ((each.real, each.imag) if isinstance(each, Complex) else (each,))]
            yield from of_elements(
                [*{part.get_id(): part for part in parts}.values()], kinds[name].kind, Random(f"{law} {name}")
            )
    for name, function in sorted(leaves.world.functions.items()):
        if name in ("array/1", "either/1"):
            yield from ([function(at) == (at if name == "array/1" else at % 2 == 0)] for at in range(8))


def of_elements(terms: list[Any], kind: str, random: Random) -> Iterator[list[Any]]:
    yield [z3.Distinct(*terms)]
    yield from ([x != y] for x, y in pairwise(terms))
    for term in terms:
        if kind == "truths":
            yield [term, z3.Not(term)]
        else:
            numbers = range(2 * len(terms)) if kind == "positions" else range(1, len(terms) + 1)
            others = [number for number in range(10) if number not in numbers]
            yield [term == (9 if kind == "element" else number) for number in (*random.sample(numbers, len(numbers)), *others)]


def drawn(rule: Rule, replay: Replay) -> str:
    bound = {name: replay.value(made) for name, made in replay.leaves.made.items()}
    world, places = Ints(replay.kind, replay.cast, replay.guessed), list(replay.places())
    terms = [rule.left, *(each for each in _args(rule.right) if isinstance(each, RuleApply)), rule.right]
    made = {str(term): value(term, world, bound, None) for term in terms}
    sides = [each for each in (made[str(rule.left)], made[str(rule.right)]) if isinstance(each, Array)]
    size = next((each.size for each in sides if each.size is not None), 1)
    rows = [*((name, each, 1) for name, each in bound.items()), *((name, each, size) for name, each in made.items())]
    texts = {name: text for name, each, count in rows if (text := row(each, replay, places, count))}
    numbers = {name: number for name, number in replay.leaves.given.items() if name.startswith("size(") or name in bound}
    width = max(map(len, texts))
    head = ", ".join(f"{name} = {number}" for name, number in numbers.items())
    return "\n".join([*([head] if head else []), *(f"{name:<{width}}    {text}" for name, text in texts.items())])


def _args(term: Any) -> tuple[Any, ...]:
    return term.args if isinstance(term, RuleApply) else ()


def row(made: Any, replay: Replay, places: list[Any], size: int) -> str:
    match made:
        case Array():
            count = size if made.size is None else made.size
            found = [" ".join(_shown(made.at(here, i)) for i in range(count)) for here in places]
        case Held():
            found = [" ".join(_shown(made.at(here, g)) for g in places_in(made) if made.has(here, g)) for here in places]
        case Pair():
            return "; ".join(row(each, replay, places, size) for each in (made.first, made.second))
        case Spread():
            found = [" ".join(str(replay.number(made.whole(c, i))) for i in range(made.block)) for c in range(made.count)]
        case _:
            return ""
    return " | ".join(found if len({*found}) > 1 else found[:1])


def _shown(number: Any) -> str:
    if isinstance(number, bool):
        return "yes" if number else "no"
    if isinstance(number, Complex):
        return f"{number.real}{'-' if number.imag < 0 else '+'}{abs(number.imag)}i"
    return str(number)


def of_program(rule: Rule) -> str:
    """A law of programs for matrices of two rows and columns: the variables and both sides."""
    names = list(dict.fromkeys(each.name for each in subterms(rule.left) if isinstance(each, Variable)))
    for summed, ids, keep in product((True, False), product(INDICES, repeat=len(names)), ((0, 2), (0, 1), (1, 2), (0,))):
        indices = dict(zip(names, ids, strict=True))
        if summed == ({*keep} < {index for each in ids for index in each}) and is_computed(rule, indices, keep):
            bound = {name: (np.arange(4.0).reshape(2, 2) + 4 * at + 1, indices[name]) for at, name in enumerate(names)}
            left, right = RuleInstance(bound, keep).sides(rule, "float64")
            texts = {**{name: array for name, (array, _) in bound.items()}, str(rule.left): left, str(rule.right): right}
            width = max(map(len, texts))
            return "\n".join(f"{name:<{width}}    {_matrix(array)}" for name, array in texts.items())
    raise AssertionError(rule)


def _matrix(array: Any) -> str:
    return (
        np.array2string(array, precision=3, separator=" ")
        .replace("\n", "")
        .replace("  ", " ")
        .replace(".]", "]")
        .replace(". ", " ")
        .replace("[ ", "[")
    )


if __name__ == "__main__":
    print(json.dumps(pictures()))
