"""Proves a law from its text, or refutes it by a counter-example.

The law is asked of the solver for all sizes; where it holds only by induction, over the size of each axis in turn. If neither
proves it, a counter-example is looked for at small sizes, and replayed in the interpreter.

    lookup, as it is              proved
    lookup, without its mask      refuted: size(a) = 2, m = 1, rows(k) = 1; k = [1], x = [0]; [1]: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ...rules.rule import All, Condition, Rule
from ..solver import EFFORT, answer, need, z3
from ..terms import Terms
from ..values import Array, Axis, Here
from ..verdict import Verdict
from ..world import KINDS, NoMeaning
from .leaves import SymbolicLeaves
from .refute import refuted
from .statement import (
    Case,
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
    world.windows = [each for each in bound.values() if isinstance(each, Axis)]
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
    for rounds in (1, 2):
        if (found := _directly(rule, kinds, case, rounds)) is not None:
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
    known += [equal for equal, *wrong in world.renumberings if all(_cannot_hold(world, each, known) for each in wrong)]
    if not _cannot_hold(world, differ, known) and answer([*known, differ])[0] != "unsat":
        return None
    if answer(known, EFFORT // 10)[0] == "unsat":
        return Verdict("not proved", "what its heads ask for cannot hold")
    return Verdict("proved", "directly")


def _cannot_hold(world: Terms, fact: Any, known: list[Any]) -> bool:
    """Whether what is known at the points of a fact refutes it."""
    return z3.is_expr(fact) and answer([*world.at_points_of(fact, known), fact])[0] == "unsat"


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


def without(rule: Rule, condition: Condition) -> Rule:
    """The rule without one of its conditions."""
    rest = tuple(each for each in conditions(rule) if each != condition)
    return replace(rule, where=All(rest) if rest else None)
