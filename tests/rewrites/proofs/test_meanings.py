"""Over ints, the meanings of heads are what other code of Partita says: the ranges, the steps of redistribution, NumPy."""

# Meanings run on numbers of any kind.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from typing import Any, cast

import array_terms
import collective_terms
import numpy as np
import pytest
from collective_terms import Placed
from lockstep import distribute

from partita.dialects.mesh import Mesh
from partita.dialects.ranges.algebra import Place
from partita.dialects.ranges.denotation import denote, size
from partita.dialects.ranges.terms import placed
from partita.dialects.ranges.text import parse_range
from partita.rewrites.proofs.of_rules.collective_heads import HEADS
from partita.rewrites.proofs.of_rules.laws import NOT_PROVED
from partita.rewrites.proofs.of_rules.statement import value, variables
from partita.rewrites.proofs.values import Array, Axis, Held, Here, Spread
from partita.rewrites.proofs.world import Ints
from partita.rewrites.rules.compile import CompiledRule
from partita.rewrites.rules.rule import Rule, RuleApply, RuleNumber, Term, Variable
from partita.rewrites.rules.rule_files import rules

TRIPS, BLOCK = array_terms.TRIPS, array_terms.BLOCK
AXIS = Axis("a", TRIPS, stride=BLOCK, before=1, width=BLOCK + 2)
MASKS = [pytest.param(each, id=each.name) for each in rules("masks") if each.name not in NOT_PROVED]


def of_numpy(found: Any, kind: str) -> Any:
    """A value of the NumPy meanings, which is one row for each iteration, as a value of the proofs."""
    match kind:
        case "axis":
            return AXIS
        case "array" | "positions":
            rows = cast("np.ndarray[Any, Any]", found).tolist()
            return Array(len(rows[0]), lambda here, i: rows[here["a"]][i] if 0 <= i < len(rows[0]) else 0)
        case "element":
            return Array(None, lambda here, i: found)
        case "row":
            return int(found if np.ndim(found) == 0 else found[0, 0])
        case _:
            return found


def elements(term: Term, rule: Rule, bound: Mapping[str, Any], count: int) -> list[list[int]]:
    """What each iteration has of a side of a rule."""
    kinds = variables(rule)
    world = Ints(guess=lambda name, arguments: arguments[0])
    made = value(term, world, {name: of_numpy(found, kinds[name].kind) for name, found in bound.items() if name in kinds}, None)
    return [[made.at({"a": trip}, i) for i in range(count)] for trip in range(TRIPS)]


@pytest.mark.parametrize("each", MASKS)
def test_both_sides_of_a_law_of_masks_are_what_numpy_says(each: CompiledRule) -> None:
    rule = each.rule
    for seed in range(10):
        found = array_terms.mask_instance(rule, Random(seed))
        assert found is not None
        for side in (rule.left, rule.right):
            # `read` may be any op: there its prefix sums, here what is read.
            inner = side.args[0] if isinstance(side, RuleApply) and side.head == "read" else side
            wanted = cast("np.ndarray[Any, Any]", array_terms.masked(of_term(inner, found[0])))
            assert (
                elements(inner, rule, found[0], wanted.shape[1]) == np.broadcast_to(wanted, (TRIPS, wanted.shape[1])).tolist()
            )


def of_term(term: Term, bound: Mapping[str, Any]) -> object:
    match term:
        case Variable(name):
            return bound[name]
        case RuleApply(head, args):
            return (head, *(of_term(arg, bound) for arg in args))
        case RuleNumber(number):
            return number
        case _:
            raise AssertionError(term)


RANGES = ["a*3", "3*a", "a*b*2", "b*2*a", "2*a*3*b", "b", "4"]
MESH = Mesh(a=2, b=3)


def iterations(axes: tuple[Place, ...]) -> Iterator[dict[Place, int]]:
    for values in product(*(range(axis.size) for axis in axes)):
        yield dict(zip(axes, values, strict=True))


@pytest.mark.parametrize("text", RANGES)
def test_a_range_is_a_layout_as_the_laws_of_builders_ask(text: str) -> None:
    found = parse_range(text, MESH)
    every = [position for at in iterations(placed(found)) for position in denote(found, at)]
    assert sorted(cast("list[int]", every)) == list(range(size(found)))


@pytest.mark.parametrize(("count", "block"), [*product(range(1, 4), range(1, 4))])
def test_a_block_is_what_the_range_of_an_axis_holds(count: int, block: int) -> None:
    mesh = Mesh(a=count)
    held = parse_range(f"a*{block}", mesh)
    axis, whole = Axis("a", count, 1, 0, 1), Array(count * block, lambda here, i: 10 + i)
    part = HEADS["slice", 3].meaning(Ints(), axis, block, whole)
    built = HEADS["build", 3].meaning(Ints(), axis, block, part)
    for number in range(count):
        wanted = [10 + cast(int, position) for position in denote(held, {mesh.place("a"): number})]
        assert [part.at({"a": number}, i) for i in range(part.size)] == wanted
    assert [built.at({}, i) for i in range(built.size)] == [10 + i for i in range(count * block)]


@pytest.mark.parametrize("text", RANGES)
def test_a_builder_of_a_layout_takes_each_element_from_where_the_range_has_it(text: str) -> None:
    found = parse_range(text, MESH)
    held = [denote(found, at) for at in iterations(placed(found))]
    where = {position: (c, i) for c, row in enumerate(held) for i, position in enumerate(row)}
    block = len(held[0])
    layout = Spread("L", size(found), len(held), block, lambda c, i: held[c][i], lambda g: where[g][0], lambda g: where[g][1])
    whole = Array(size(found), lambda here, g: 10 + g)
    part = HEADS["slice", 2].meaning(Ints(), layout, whole)
    assert [[part.at({"L": c}, i) for i in range(block)] for c in range(len(held))] == [
        [10 + cast(int, position) for position in row] for row in held
    ]
    built = HEADS["build", 2].meaning(Ints(), layout, part)
    assert [built.at({}, g) for g in range(built.size)] == [10 + g for g in range(built.size)]


def held_by(now: Placed) -> tuple[Held, list[Here]]:
    """A value on devices as the proofs have it: which elements of the whole array each device has, by their indices."""
    names = list(now.mesh)
    numbers = distribute(np.arange(int(np.prod(now.shape))).reshape(now.shape), now.tiles, now.mesh)
    has = {
        device: dict(zip(numbers[device].ravel().tolist(), local.ravel().tolist(), strict=True))
        for device, local in now.value.items()
    }

    def key(here: Here) -> tuple[int, ...]:
        return tuple(here[name] for name in names)

    def number(g: tuple[int, ...]) -> int:
        return int(np.ravel_multi_index(g, now.shape))

    made = Held(lambda here, g: number(g) in has[key(here)], lambda here, g: has[key(here)][number(g)])
    return made, [dict(zip(names, device, strict=True)) for device in now.value]


def argument(each: Any, now: Placed) -> Any:
    """An argument of a step, as the proofs have it."""
    return Axis(str(each[0]), now.mesh[str(each[0])], 1, 0, 1) if isinstance(each, tuple) else each


def steps() -> Iterator[tuple[str, tuple[Any, ...], Placed]]:
    """Random steps over one axis each."""
    for seed in range(60):
        random = Random(seed)
        now = collective_terms.random_placed(random)
        for head in ("slice", "all_gather", "all_reduce"):
            options = [args for args in collective_terms.choices(head, now) if len(cast(Any, args[head == "all_reduce"])) == 1]
            if options:
                yield head, random.choice(options), now
        gathers = [args for args in collective_terms.choices("all_gather", now) if len(cast(Any, args[0])) == 1]
        if gathers:
            axes, dim, stride = cast("tuple[Any, int, int]", random.choice(gathers))
            to = collective_terms.applied("all_gather", (axes, dim, stride), now)
            for place in to.beside(tuple(map(str, axes))):
                if place[0] != dim:
                    yield "all_to_all", (axes, dim, stride, *place), now
            free = [name for name in now.mesh if name not in now.used() and now.mesh[name] == axes[0].size]
            if free:
                yield "permute", (axes, now.places((free[0],))), now
        folds = [args for args in collective_terms.choices("all_reduce", now) if len(cast(Any, args[1])) == 1]
        if folds and folds[0][0] in ("add", "pick"):
            monoid, axes = cast("tuple[str, Any]", folds[0])
            for place in now.beside(tuple(map(str, axes)))[:2]:
                yield "reduce_scatter", (monoid, axes, *place), now


def test_each_step_of_redistribution_does_on_devices_what_its_head_means() -> None:
    seen: dict[str, int] = {}
    for head, args, now in steps():
        if head == "all_reduce" and args[0] not in ("add", "pick"):
            continue
        wanted, places = held_by(collective_terms.applied(head, args, now))
        value_before, _ = held_by(now)
        made = HEADS[head, len(args) + 1].meaning(Ints(), *(argument(each, now) for each in args), value_before)
        seen[head] = seen.get(head, 0) + 1
        for here, g in product(places, product(*map(range, now.shape))):
            assert made.has(here, g) == wanted.has(here, g), (head, args, now.tiles, here, g)
            if made.has(here, g):
                assert made.at(here, g) == wanted.at(here, g), (head, args, now.tiles, here, g)
    assert set(seen) == {"slice", "all_gather", "all_reduce", "all_to_all", "permute", "reduce_scatter"}, seen
