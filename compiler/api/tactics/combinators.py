"""Tactics made of tactics. A part may be a tactic of the library, one of your own, or a plain function from plan to plan.

    then(a, b)        a, and then b
    or_else(a, b)     a; if that is refused, b
    repeat(a)         a, until it changes nothing
    at("layer", a)    a, with only its claims on these values

The trace has the lines of the parts that took effect, so a replayed plan does not choose again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from ....dialects.ground.errors import Error
from ....dialects.ground.validation import checked
from ....rewrites.decide.table import same
from ...inputs.checks import patterns_of, run_tactic, tactic_given
from ...inputs.message_language import step
from ...inputs.names import Patterns
from ..plan import Plan

PlanStep = Callable[[Plan], Plan]

MOST_REPEATS = 1000
"""The most times that `repeat` applies a tactic."""


class Composable:
    """Base of tactics that can be combined. The combinators are its methods."""

    def __init_subclass__(cls) -> None:
        if "__call__" in vars(cls):
            cls.__call__ = checked(cls.__call__)

    def __call__(self, plan: Plan) -> Plan:
        raise NotImplementedError

    def then(self, *tactics: PlanStep) -> Composable:
        """This tactic, and then these: `pt.then`."""
        return then(self, *tactics)

    def or_else(self, *tactics: PlanStep) -> Composable:
        """This tactic; if it is refused, the first of these that is not: `pt.or_else`."""
        return or_else(self, *tactics)

    def repeat(self) -> Composable:
        """This tactic until it changes nothing: `pt.repeat`."""
        return repeat(self)

    def at(self, values: Patterns) -> Composable:
        """This tactic with only its claims on these values: `pt.at`."""
        return at(values, self)


@checked
def then(*tactics: PlanStep) -> Composable:
    """The tactics one after another, as one. If one of them is refused, so are all.

    then(pt.DataParallel("data"), pt.FSDP("data"))   -->   DataParallel(axis='data'), FSDP(axis='data')
    """
    return Then(tuple(map(tactic_given, tactics)))


@checked
def or_else(*tactics: PlanStep) -> Composable:
    """The first of the tactics that is not refused: that raises no `pt.Error`. Raises Error, with all reasons, if all are.

    A tactic may refuse by a budget: `lambda plan: plan.expect(memory="<16GiB")` at the end of a `then`.

    or_else(pt.Megatron("model"), pt.FSDP("model"))   -->   FSDP(axis='model'), if there is no pair of products
    """
    return OrElse(tuple(map(tactic_given, tactics)))


@checked
def repeat(tactic: PlanStep) -> Composable:
    """The tactic again and again, until it changes nothing or is refused. Raises Error if it is refused the first time.

    repeat(lambda plan: plan.resolve(plan.conflicts[0]) if plan.conflicts else plan)   -->   all conflicts resolved
    """
    return Repeat(tactic_given(tactic))


@checked
def at(values: Patterns, tactic: PlanStep) -> Composable:
    """The tactic with only its claims on these values: those that the patterns match, and their successors.

    Names that the tactic gives are looked for among these values alone. Raises Error if it claims nothing there, and if
    it rewrites the program: `plan.rewrite` has its own `at`.

    at("params/decoder", pt.Megatron("model"))   -->   the pairs of the decoder; the encoder is left to other tactics
    """
    return At(values if isinstance(values, str) else patterns_of(values), tactic_given(tactic))


@dataclass(frozen=True, repr=False)
class Then(Composable):
    """The tactic that `then` returns."""

    tactics: tuple[PlanStep, ...]

    def __call__(self, plan: Plan) -> Plan:
        return plan.apply(*self.tactics)

    def __repr__(self) -> str:
        return f"then({', '.join(map(called, self.tactics))})"


@dataclass(frozen=True, repr=False)
class OrElse(Composable):
    """The tactic that `or_else` returns."""

    tactics: tuple[PlanStep, ...]

    def __call__(self, plan: Plan) -> Plan:
        refused: list[str] = []
        for tactic in self.tactics:
            try:
                return run_tactic(tactic, plan)
            except Error as error:
                refused.append(f"{called(tactic)}: {error.title}")
        helps = ["end with a tactic that always applies, such as `lambda plan: plan`"]
        title = f"none of {len(self.tactics)} tactics applies" if len(self.tactics) > 1 else "the tactic does not apply"
        raise Error(title, notes=refused, helps=helps)

    def __repr__(self) -> str:
        return f"or_else({', '.join(map(called, self.tactics))})"


@dataclass(frozen=True, repr=False)
class Repeat(Composable):
    """The tactic that `repeat` returns."""

    tactic: PlanStep

    def __call__(self, plan: Plan) -> Plan:
        before = run_tactic(self.tactic, plan)
        if is_same(plan, before):
            return plan
        for _ in range(MOST_REPEATS):
            try:
                after = run_tactic(self.tactic, before)
            except Error:
                return before
            if is_same(before, after):
                return before
            before = after
        title = f"{called(self.tactic)} still changes the plan after {MOST_REPEATS} times"
        raise Error(title, helps=["let it return the plan as it is when it is done"])

    def __repr__(self) -> str:
        return f"repeat({called(self.tactic)})"


@dataclass(frozen=True, repr=False)
class At(Composable):
    """The tactic that `at` returns."""

    values: Patterns
    tactic: PlanStep

    def __call__(self, plan: Plan) -> Plan:
        made = run_tactic(self.tactic, replace(plan, source=plan.source.within(self.values)))
        if made.source.traced is not plan.source.traced:
            title = f"`at` keeps the program, and {called(self.tactic)} rewrites it"
            raise Error(title, helps=["say where to rewrite: " + step(f"rewrite(rule, at={self.shown})")])
        new = [
            replace(
                action,
                text=f"at({self.shown}, {action.text})",
                redo=action.redo and At(self.values, cast(PlanStep, action.redo)),
            )
            for action in made.actions[len(plan.actions) :]
        ]
        if not any(action.values or action.kind != "place" for action in new):
            raise Error(f"{called(self.tactic)} claims nothing at {self.shown}", helps=["name more values, or another tactic"])
        # The program may have been placed anew on device sets.
        source = replace(made.source, addresses=plan.source.addresses)
        return replace(made, source=source, actions=(*made.actions[: len(plan.actions)], *new))

    @property
    def shown(self) -> str:
        return repr(self.values if isinstance(self.values, str) else [*self.values])

    def __repr__(self) -> str:
        return f"at({self.shown}, {called(self.tactic)})"


def called(tactic: PlanStep) -> str:
    """The text of a tactic, or the name of a function."""
    return str(getattr(tactic, "__name__", tactic))


def is_same(before: Plan, after: Plan) -> bool:
    """Whether two plans of one program have the same placements."""
    old, new = before.table, after.table
    rest = [(plan.mesh, plan.labels, plan.table.widened, plan.table.each_trip) for plan in (before, after)]
    claims = [sets and sets.claims for sets in (old.sets, new.sets)]
    return rest[0] == rest[1] and claims[0] == claims[1] and same(old.axes, new.axes)
