"""A law applied to the program of a plan: the rewritten program is planned by the same tactics.

dot(dot(x, w1), w2), `w1` tiled   -->   dot(x, dot(w1, w2)), `w1` tiled by the same tactic, propagated anew
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import cast

from ...dialects.errors import Error, did_you_mean
from ...rewrites.laws.by_rule import ByRule, checked
from ...rewrites.laws.chunk import Chunk
from ...rewrites.laws.draft import Draft
from ...rewrites.laws.law import Law, Site
from ...rewrites.laws.library import library
from ...rewrites.laws.recompute import Recompute
from ...rewrites.program.program import Node
from ...rewrites.rules.parse import parse
from ..gc_pause import without_collector
from ..inputs.checks import patterns_of, shown
from ..inputs.lines import Sources
from ..inputs.names import Patterns, pattern
from .claims import Some, place_own
from .kin import Kin, placed_as
from .state import Action, State


def rule(text: str) -> Law:
    """A law of your own, for `plan.rewrite`: `name: left => right`, in the language of `rewrites/rules/programs.rules`.

    A one-letter name stands for any array, and indices are not written: elementwise ops have those of all their arrays, `dot`
    and folds sum over those that nothing around them needs. Both sides are computed on random arrays before it is accepted.

    Raises Error for a text that is not a rule, and with a counter-example for a rule that is not a law.

    pt.rule("halves: dot(x + x, y) => dot(x, y) + dot(x, y)")   -->   a law
    """
    return _rule(text)


@cache
def _rule(text: str) -> Law:
    found = parse(text, "rule")
    if len(found) != 1:
        raise Error(f"expected one rule, got {len(found)}", helps=["a rule reads `name: left => right`"])
    return checked(found[0])


def law_of(plan: State, rule: object, at: Patterns, given: Mapping[str, object]) -> Law:
    """The law that `plan.rewrite` is asked for: itself, by its name and what this needs, or by the text of a rule."""
    if not isinstance(rule, str):
        if not hasattr(rule, "sites"):
            helps = ['name a law of the library, "reassociate"', 'or write one: pt.rule("name: left => right")']
            raise Error(f"expected a law, got {shown(rule)}", helps=helps)
        return cast(Law, rule)
    if "=>" in rule:
        return _rule(rule)
    if rule == "chunk":
        return chunk(plan, at, **given)
    if given:
        raise Error(f"`{rule}` takes no {', '.join(map(repr, given))}", helps=[f"write plan.rewrite({rule!r}, at=...)"])
    if rule == "recompute":
        return recompute(plan, at)
    if rule not in library():
        raise Error(f"no law is called `{rule}`", helps=did_you_mean(rule, (*library(), "chunk", "recompute"), most=3))
    return library()[rule]


def chunk(plan: State, at: Patterns, dim: object = None, trips: object = None) -> Chunk:
    """The law that computes a large value in parts. Raises Error unless it is one value, with a dim and a number of trips."""
    found = plan.source.addresses.find(at) if at != "**" else {}
    if len(found) != 1 or not isinstance(trips, int) or not isinstance(dim, int | str):
        what = f"{len(found) or 'no'} values, dim {shown(dim)} and {shown(trips)} trips"
        helps = ["write it as " + 'plan.rewrite("chunk", at="logits", dim="length", trips=8)']
        raise Error(f"`chunk` takes one value, one of its dims and a number of trips, got {what}", helps=helps)
    (name, value), *_ = found.items()
    return Chunk(value, plan.dim_of(value, dim, name), trips, plan.source.classes, name)


def recompute(plan: State, at: Patterns) -> Recompute:
    """The law that computes values again in the backward pass: those of the scopes that match, or the values that match."""
    program, sources = plan.source.program, plan.source.traced.sources
    backward = frozenset(n.number for n in program.nodes if n.op in sources and "transpose(" in sources.scope(n.op))
    if not backward:
        helps = ["plan a function that differentiates, such as a training step"]
        raise Error("`recompute` needs a backward pass, and this program has none", helps=helps)
    scopes = {node.number: scope for node in program.nodes if (scope := _matched(scope_of(plan, node), at))}
    if scopes:
        return Recompute(backward, scopes, closed=True)
    named = plan.source.addresses.find(at).items()
    return Recompute(backward, {program.producer[v]: name for name, v in named if program.producer[v] >= 0}, closed=False)


def _matched(scope: str, at: Patterns) -> str | None:
    """The scope, or one around it, that a pattern matches."""
    parts = scope.split("/") if scope else []
    around = ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    return next((each for each in around if any(pattern(glob, under=False).fullmatch(each) for glob in patterns_of(at))), None)


def text_of(law: Law, at: Patterns, given: Mapping[str, object]) -> str:
    """The line of a trace that applies a law there."""
    named = not isinstance(law, ByRule) or library().get(law.name) is law
    said = {**({} if at == "**" else {"at": at}), **given}
    return f"rewrite({', '.join([repr(law.name if named else law.text), *(f'{k}={v!r}' for k, v in said.items())])})"


def rewrite(plan: Some, rule: object, at: Patterns, given: Mapping[str, object]) -> Some:
    """The plan of the program in which the law was applied wherever the patterns match."""
    law = law_of(plan, rule, at, given)
    with without_collector():
        draft = Draft(plan.source.program)
        law.apply(plan.source.program, draft, chosen(plan, law, at))
        made = carried(plan, draft)
    return replace(made, actions=(*made.actions, Action(text_of(law, at, given), "rewrite")))


def chosen(plan: State, law: Law, at: Patterns) -> list[Site]:
    """The places where a law is applied: those that match, and share nothing with one before. Raises Error if none does."""
    sites = list(law.sites(plan.source.program))
    if not sites:
        helps = ["plan.rewrites() lists what applies"]
        raise Error(f"`{law.name}` applies nowhere in this program", label=law.text, helps=helps)
    found, taken, accepts = list[Site](), set[int](), _accepts(plan, at)
    for site in sites:
        values = {site.value, *site.inside}
        if (isinstance(law, Recompute) or accepts(site)) and taken.isdisjoint(values):
            found.append(site)
            taken |= values
    if not found:
        known = dict.fromkeys(plan.source.addresses.names[site.value] for site in sites)
        helps = did_you_mean(str(at), known, f"it applies at {', '.join(list(known)[:5])}", most=3)
        raise Error(f"`{law.name}` does not apply at {at!r}", label=law.text, helps=helps)
    return found


def _accepts(plan: State, at: Patterns) -> Callable[[Site], bool]:
    """Whether the patterns match a place: the value, or the scope that its op is in."""
    globs = [pattern(glob).fullmatch for glob in patterns_of(at)]
    try:
        values = set(plan.source.addresses.find(at).values())
    except Error:
        # It may be the scope of values that have no name.
        values = set[int]()

    def accepts(site: Site) -> bool:
        return site.value in values or any(accept(scope_of(plan, made_by(plan, site.value))) for accept in globs)

    return accepts


def made_by(plan: State, value: int) -> Node:
    return plan.source.program.nodes[plan.source.program.producer[value]]


def scope_of(plan: State, node: Node) -> str:
    """The path of `jax.named_scope`s around the op that makes a value, as the user wrote it: without transformations."""
    op, sources = node.op, plan.source.traced.sources
    return "/".join(part for part in re.sub(r"\w+\(|\)", "", sources.scope(op)).split("/") if part) if op in sources else ""


def carried(plan: Some, draft: Draft) -> Some:
    """The plan of a rewritten program: each tactic makes the claims on the values that are left, and they propagate anew."""
    program, traced = plan.source.program, plan.source.traced
    module = draft.finish()
    known = traced.sources.origins
    origins = {op: known[old] for op, old in draft.origins.items() if old in known}
    annotations = tuple((draft.values[value], said) for value, said in traced.annotations if value in draft.values)
    written = replace(traced, module=module, sources=Sources(origins), annotations=annotations)
    made = place_own(type(plan).start(written, plan.mesh))
    made = replace(made, source=replace(made.source, root=plan.source.root))
    numbers = made.source.program.numbers
    to = {number: numbers[new] for old, number in program.numbers.items() if (new := draft.values.get(old)) is not None}
    made.table.each_trip |= {to[value] for value in plan.table.each_trip if value in to}
    made.table.widened |= {to[value] for value in plan.table.widened if value in to}
    own = len(made.actions)
    for number, action in enumerate(plan.actions[own:], own):
        lost = [value for value in action.values if value not in to]
        if lost and len(lost) == len(action.values):
            raise _lost(plan, number, lost[0])
        kin = {to[value]: _itself(plan, value) for value in action.values if value in to}
        moved = replace(action, values=tuple(to[value] for value in action.values if value in to))
        made = replace(made, table=placed_as(made, kin, number, action), actions=(*made.actions, moved))
    return replace(made, labels=_labels(plan, made, to))


def _itself(plan: State, value: int) -> Kin:
    return Kin(plan.table, value, tuple(range(len(plan.source.program.shape(value)))))


def _labels(plan: State, made: State, to: Mapping[int, int]) -> dict[str, int]:
    """The named ranges, each found by a dim that is left of it."""
    old, new, found = plan.source.classes, made.source.classes, dict[str, int]()
    names = {old.root(root): name for name, root in plan.labels.items()}
    for value, there in to.items():
        for dim in range(len(plan.source.program.shape(value))):
            if (name := names.get(old.of(value, dim))) is not None:
                found.setdefault(name, new.of(there, dim))
    return found


def _lost(plan: State, number: int, value: int) -> Error:
    name = plan.source.addresses.names[value]
    helps = ["rewrite the program before this tactic places the value", "or leave this place out, by `at=`"]
    return Error(f"the rewriting would remove `{name}`, which {plan.cited(number)} places", helps=helps)
