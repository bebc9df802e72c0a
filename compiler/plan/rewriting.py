"""Applies a law to a plan's program. The rewritten program is planned by the same tactics.

dot(dot(x, w1), w2), `w1` tiled   -->   dot(x, dot(w1, w2)), `w1` tiled by the same tactic, propagated anew
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import cast

from ...dialects.ground.errors import Error, did_you_mean
from ...rewrites.laws.law import Law, Site
from ...rewrites.laws.module_copy import Draft
from ...rewrites.laws.recompute import Recompute
from ...rewrites.program.program import ValueId
from ..gc_pause import without_collector
from ..inputs.checks import patterns_of
from ..inputs.lines import SourceLines
from ..inputs.message_language import Question, question
from ..inputs.names import Patterns, accepting
from .claims import Some, acted, of_program
from .derived_plans import Kin, placed_as
from .named_laws import check_names, law_line, law_of, made_by, scope_of, untagged, value_name
from .state import Action, State


def rewrite(plan: Some, rule: object, at: Patterns) -> Some:
    """Rewrites the program by a law, wherever the patterns match, and plans the result by the same tactics."""
    if len(patterns_of(at)) > 1:
        # Only what the others name would be rewritten.
        check_names(plan, at)
    law = law_of(plan, rule, at)
    with without_collector():
        sites = chosen(plan, law, at)
        draft = Draft(plan.source.program)
        law.apply(plan.source.program, draft, sites)
        made = carried(plan, draft)
    action = Action(law_line(law, at), "rewrite", redo=partial(rewrite, rule=rule, at=at))
    return acted(made, action)


def chosen(plan: State, law: Law, at: Patterns) -> list[Site]:
    """The sites where a law is applied: they match, and share no value with an earlier one. Raises Error if there are none."""
    sites = list(law.sites(plan.source.program))
    if not sites:
        if at != "**":
            check_names(plan, at)
        where = f"at {at!r}" if isinstance(law, Recompute) and at != "**" else "in this program"
        in_loops = "values that a `scan` carries out are not computed again: put jax.checkpoint around its body"
        helps = [*([in_loops] if isinstance(law, Recompute) else []), f"{question(Question.REWRITES)} lists what applies"]
        raise Error(f"`{law.name}` applies nowhere {where}", label=law.text, helps=helps)
    found, taken, accepts = list[Site](), set[ValueId](), _accepts(plan, at)
    for site in sites:
        values = {site.value, *site.inside}
        if (isinstance(law, Recompute) or accepts(site)) and taken.isdisjoint(values):
            found.append(site)
            taken |= values
    if not found:
        known = dict.fromkeys(value_name(plan, site.value) for site in sites)
        helps = did_you_mean(str(at), known, f"it applies at {', '.join(list(known)[:5])}", most=3)
        raise Error(f"`{law.name}` does not apply at {at!r}", label=law.text, helps=helps)
    return found


def _accepts(plan: State, at: Patterns) -> Callable[[Site], bool]:
    """A function that decides whether the patterns match a site: its value, or the scope that its op is in."""
    in_scope = accepting(patterns_of(at))
    try:
        found = plan.source.addresses.find(at).values()
        values = {*found, *(untagged(plan.source.program, value) for value in found)}
    except Error:
        # It may be the scope of values that have no name.
        values = set[ValueId]()

    def accepts(site: Site) -> bool:
        return site.value in values or in_scope(scope_of(plan, made_by(plan, site.value)))

    return accepts


def carried(plan: Some, draft: Draft) -> Some:
    """Plans a rewritten program: each tactic makes its claims on the values that are left, and they are propagated anew."""
    program, traced = plan.source.program, plan.source.traced
    module = draft.finish()
    known = traced.sources.origins
    origins = {op: known[old] for op, old in draft.origins.items() if old in known}
    annotations = tuple((draft.values[value], said) for value, said in traced.annotations if value in draft.values)
    written = traced.rewritten(module, SourceLines(origins), annotations)
    made = of_program(plan, written, plan.mesh, program.bound())
    numbers = made.source.program.numbers
    to = {number: numbers[new] for old, number in program.numbers.items() if (new := draft.values.get(old)) is not None}
    made.table.each_trip |= {to[value] for value in plan.table.each_trip if value in to}
    made.table.widened |= {to[value] for value in plan.table.widened if value in to}
    own = len(made.actions)
    for number, action in enumerate(plan.actions[own:], own):
        if action.kind == "on" and action.redo is not None:
            # The scopes that it names have other ops now.
            made = cast(Some, action.redo(made))
            continue
        if lost := [value for value in action.values if value not in to]:
            raise _lost(plan, number, min(lost))
        kin = {to[value]: _itself(plan, value) for value in action.values}
        moved = replace(action, values=dict.fromkeys(to[value] for value in action.values))
        made = acted(made, moved, placed_as(made, kin, number, action))
    return replace(made, labels=_labels(plan, made, to))


def _itself(plan: State, value: ValueId) -> Kin:
    return Kin(plan.table, value, tuple(range(len(plan.source.program.shape(value)))))


def _labels(plan: State, made: State, to: Mapping[ValueId, ValueId]) -> dict[str, int]:
    """The named ranges, each found by a dim that is left of it."""
    if not plan.labels:
        return {}
    old, new, found = plan.source.classes, made.source.classes, dict[str, int]()
    names = {old.root(root): name for name, root in plan.labels.items()}
    for value, there in to.items():
        for root, made_root in zip(old.dims(value), new.dims(there), strict=False):
            if (name := names.get(root)) is not None:
                found.setdefault(name, made_root)
    return found


def _lost(plan: State, number: int, value: ValueId) -> Error:
    name = plan.source.addresses.names[value]
    helps = ["rewrite the program before this tactic places the value", "or leave this place out, by `at=`"]
    return Error(f"the rewriting would remove `{name}`, which {plan.cited(number)} places", helps=helps)
