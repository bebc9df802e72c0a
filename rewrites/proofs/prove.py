"""Proves a law from its text, or refutes it by a counter-example.

The law is asked of the solver for all sizes; where it holds only by induction, over the size of each axis in turn. If neither
proves it, a counter-example is looked for at small sizes, and replayed in the interpreter.

    lookup, as it is              proved
    lookup, without its mask      refuted: size(a) = 2, m = 1, rows(k) = 1; k = [0], x = [[0], [1]]: 0 and 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ..rules.rule import All, Condition, Rule
from .bounded import Bounded
from .leaves import SymbolicLeaves
from .replay import Replay
from .solver import EFFORT, answer, need, z3
from .statement import (
    NoStatement,
    Sides,
    VariableKind,
    compared,
    conditions,
    holds,
    identified,
    names_here,
    sides,
    variables,
)
from .terms import Terms
from .values import Array, Here
from .verdict import Verdict
from .world import KINDS, NoMeaning

TRIED = 12
"""How many combinations of small sizes are tried for a counter-example."""
WINDOW = {"stride": 1, "before": 1, "width": 3}
DIM = 4
"""The extent of each dim of an array on devices, at small sizes."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of numbers, and one way in which axes are one."""

    kind: str
    cast: str
    same: Mapping[str, str]


def prove(rule: Rule) -> Verdict:
    """Proves a law for every kind of numbers for which its condition holds. Raises Error if Z3 is not installed."""
    need()
    try:
        kinds = variables(rule)
        found: list[Verdict] = []
        for case in cases(rule, kinds):
            found.append(_proved(rule, kinds, case))
            if found[-1].state == "refuted":
                return found[-1]
    except NoStatement as error:
        return Verdict("not proved", str(error))
    if not found:
        return Verdict("not proved", "its condition never holds")
    if unproved := [verdict for verdict in found if verdict.state == "not proved"]:
        return unproved[0]
    return Verdict("proved", ", ".join(dict.fromkeys(verdict.how for verdict in found)))


def cases(rule: Rule, kinds: Mapping[str, VariableKind]) -> Iterator[Case]:
    """The kinds of numbers, casts, and equal axes for which a law must hold: those that its condition and its heads allow."""
    casts = ("keeps", "cuts") if "cast(" in str(rule) else ("keeps",)
    elements = KINDS if not {kind.kind for kind in kinds.values()} & {"held", "layout"} else KINDS[:1]
    for kind, cast, same in product(elements, casts, identified(kinds)):
        if cast == "cuts" and kind != "reals":
            continue
        world = Terms(kind=kind, cast=cast)
        leaves = SymbolicLeaves(world, same=same)
        bound = leaves.bound(kinds)
        if any(holds(each, world, bound) is False for each in conditions(rule)):
            continue
        try:
            _statement(world, rule, kinds, Case(kind, cast, same)).differ()
        except NoMeaning:
            continue
        yield Case(kind, cast, same)


@dataclass(frozen=True, slots=True)
class Statement:
    """A law for one case, at one iteration and one index that stand for any."""

    asked: list[Any]
    """What is known of the variables and of the place."""
    differ: Callable[[], Any]
    """Makes the fact that the sides differ there."""
    made: Sides


def _statement(world: Terms, rule: Rule, kinds: Mapping[str, VariableKind], case: Case, without: str = "") -> Statement:
    """A law as facts for the solver; `without` the coordinate of one axis."""
    first = SymbolicLeaves(world, same=case.same)
    named = first.named_sizes(sides(rule, world, first.bound(kinds)).asked)
    leaves = SymbolicLeaves(world, named, case.same)
    bound = leaves.bound(kinds)
    made = sides(rule, world, bound)
    here: Here = {name: world.point(f"here({name})") for name in names_here(kinds, leaves.same) if name != without}
    index = world.point("index")
    world.axes = [size for name, size in leaves.sizes.items() if name.startswith("size(")]
    asked = [_inside(name, number, kinds, leaves) for name, number in here.items()]
    ends = [side.size for side in (made.left, made.right) if isinstance(side, Array) and side.size is not None]
    if ends:
        asked.append(z3.And(index >= 0, index < ends[0]))
    asked += [fact for each in made.asked for fact in leaves.ask(each, [(here, index)])]
    asked += [holds(each, world, bound) for each in conditions(rule)]

    def differ() -> Any:
        return z3.Not(z3.And(*compared(world, made.left, made.right, lambda _: iter([(here, index)]))))

    return Statement(asked, differ, made)


def _inside(name: str, number: Any, kinds: Mapping[str, VariableKind], leaves: SymbolicLeaves) -> Any:
    size = leaves.sizes[f"size({name})" if kinds[name].kind == "axis" else f"count({name})"]
    return z3.And(number >= 0, number < size)


def _proved(rule: Rule, kinds: Mapping[str, VariableKind], case: Case) -> Verdict:
    if (found := _directly(rule, kinds, case, 2)) is not None:
        return found
    axes = [name for name, kind in kinds.items() if kind.kind == "axis" and case.same[name] == name]
    if not any(kind.kind == "held" for kind in kinds.values()):
        for axis in axes:
            if _by_induction(rule, kinds, case, axis):
                return Verdict("proved", f"by induction over {axis}")
    found = refuted(rule, kinds, case) or _directly(rule, kinds, case, 3)
    return found or Verdict("not proved", "the solver neither proves it nor finds a counter-example")


def _directly(rule: Rule, kinds: Mapping[str, VariableKind], case: Case, rounds: int) -> Verdict | None:
    """The proof of a law at any place, by lemmas that are used so often; None if there is none."""
    world = Terms(kind=case.kind, cast=case.cast, rounds=rounds)
    statement = _statement(world, rule, kinds, case)
    differ = statement.differ()
    known = [*statement.asked, *world.known()]
    if answer([*known, differ])[0] != "unsat":
        return None
    if answer(known, EFFORT // 10)[0] == "unsat":
        return Verdict("not proved", "what its heads ask for cannot hold")
    return Verdict("proved", "directly")


def _by_induction(rule: Rule, kinds: Mapping[str, VariableKind], case: Case, axis: str) -> bool:
    """Whether a law holds for an axis of size 1, and for size n + 1 if it does for n, at every place."""
    world = Terms(kind=case.kind, cast=case.cast, grown=z3.Int(f"size({axis})"))
    statement = _statement(world, rule, kinds, case, axis)
    if _depends(statement.made, statement.asked, world, axis):
        return False
    made: list[Any] = []
    try:
        for world.stage in ("one", "", "next"):
            made.append(statement.differ())
    except KeyError:
        # The sides depend on the coordinate, so they are no folds over the axis.
        return False
    world.stage = ""
    one, before, after = made
    facts = [*statement.asked, *world.known()]
    steps = [[*facts, one], [*facts, z3.Not(before), after]]
    return all(answer(each)[0] == "unsat" for each in steps) and answer(facts, EFFORT // 10)[0] != "unsat"


def _depends(made: Sides, asked: list[Any], world: Terms, axis: str) -> bool:
    """Whether what is asked says more of an axis's size than that it is positive, so that induction would lose it."""
    size = world.grown
    known = {(size > 0).sexpr()}
    of_size = (fact for fact in asked if z3.is_expr(fact) and size.sexpr() in fact.sexpr().replace("|", " ").split())
    return any(fact.sexpr() not in known for fact in of_size) or f"size({axis})" in _sizes(made)


def _sizes(made: Sides) -> str:
    every = (side.size for side in (made.left, made.right) if isinstance(side, Array) and side.size is not None)
    return " ".join(str(size) for size in every)


def refuted(rule: Rule, kinds: Mapping[str, VariableKind], case: Case) -> Verdict | None:
    """A counter-example at small sizes that the interpreter confirms; None if there is none."""
    for given in small_sizes(rule, kinds, case):
        world = Bounded(kind=case.kind, cast=case.cast)
        leaves = SymbolicLeaves(world, given, case.same)
        facts = _bounded(world, rule, leaves, kinds)
        found, model = answer([*facts, *world.facts])
        if found != "sat":
            continue
        if shown := Replay(rule, kinds, leaves, model, case.kind, case.cast).differs():
            return Verdict("refuted", shown)
    return None


def _bounded(world: Bounded, rule: Rule, leaves: SymbolicLeaves, kinds: Mapping[str, VariableKind]) -> list[Any]:
    bound = leaves.bound(kinds)
    made = sides(rule, world, bound)
    places = list(all_here(kinds, leaves))

    def read(array: Any) -> Iterator[tuple[Here, Any]]:
        yield from product(places, indices(array))

    asked = [fact for each in made.asked for fact in leaves.ask(each, list(product(places, range(2))))]
    asked += [holds(each, world, bound) for each in conditions(rule)]
    goals = list(compared(world, made.left, made.right, read))
    return [*asked, z3.Not(z3.And(*goals))]


def all_here(kinds: Mapping[str, VariableKind], leaves: SymbolicLeaves) -> Iterator[Here]:
    """Every iteration, at given sizes."""
    names = names_here(kinds, leaves.same)
    counts = [leaves.given[f"size({name})" if kinds[name].kind == "axis" else f"count({name})"] for name in names]
    for at in product(*map(range, counts)):
        yield dict(zip(names, at, strict=True))


def indices(array: Any) -> Iterator[Any]:
    """Every index of an array, or a few if it has no end; and the elements of an array on devices."""
    if isinstance(array, Array):
        yield from range(3 if array.size is None else array.size)
    else:
        yield from product(range(DIM), repeat=2)


def small_sizes(rule: Rule, kinds: Mapping[str, VariableKind], case: Case, block: int = 1) -> Iterator[Mapping[str, int]]:
    """Small sizes for which a law's left side can be asked for, the smallest first: two or three iterations along each axis.

    Sizes that are variables, and blocks, are at least `block`. Windows have three rows, and begin one before their block.
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
    asked += [size == WINDOW[part] for name, size in sizes.items() if (part := name.partition("(")[0]) in WINDOW]
    for name in sizes:
        if name.startswith(("size(", "count(")):
            asked += [sizes[name] >= 2, sizes[name] <= 3]
        if name.startswith("extent("):
            asked.append(sizes[name] == sizes[name.replace("extent", "count")] * sizes[name.replace("extent", "block")])
    tried = 0
    for most in (2, 3, 4, 6, 9):
        while tried < TRIED:
            found, model = answer([*asked, *(size <= most for size in sizes.values()), *_some(sizes, kinds)])
            if found != "sat":
                break
            given = {name: model.eval(size, model_completion=True).as_long() for name, size in sizes.items()}
            yield given
            tried += 1
            asked.append(z3.Or(*(sizes[name] != number for name, number in given.items())))


def _some(sizes: Mapping[str, Any], kinds: Mapping[str, VariableKind]) -> list[Any]:
    """That arrays have rows."""
    return [sizes[name] >= 1 for name in sizes if name.startswith(("rows(", "block("))]


def without(rule: Rule, condition: Condition) -> Rule:
    """The rule without one of its conditions."""
    rest = tuple(each for each in conditions(rule) if each != condition)
    return replace(rule, where=All(rest) if rest else None)


def satisfiable(rule: Rule) -> bool:
    """Whether what a law asks for can hold, with two iterations along each axis and blocks of two."""
    kinds = variables(rule)
    for case in cases(rule, kinds):
        for given in small_sizes(rule, kinds, case, 2):
            world = Bounded(kind=case.kind, cast=case.cast)
            leaves = SymbolicLeaves(world, given, case.same)
            *facts, _ = _bounded(world, rule, leaves, kinds)
            if answer([*facts, *world.facts])[0] == "sat":
                return True
    return False
