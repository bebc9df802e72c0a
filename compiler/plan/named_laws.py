"""Finds the law that `plan.rewrite` names: one of the library, the user's own rule, or one that depends on the plan.

"reassociate"                                   a rule of the library
pt.rule("halves: dot(x, y + y) => ...")         a user's rule, proved by Z3, or tried on random arrays
"recompute", at="layers/*"                      scopes of this plan
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import cast

from ...dialects.ground.errors import Error, did_you_mean
from ...rewrites.laws.law import Law
from ...rewrites.laws.library import library_laws
from ...rewrites.laws.recompute import Recompute
from ...rewrites.laws.rule_laws import ByRule, checked_law
from ...rewrites.program.program import Node, Program, ValueId
from ...rewrites.rules.parse import parse
from ...rewrites.rules.rule import Rule
from ..inputs.checks import patterns_of, refused, shown
from ..inputs.message_language import step
from ..inputs.names import Names, Patterns, beginnings, listed, near, pattern
from .state import State


def law_descriptions() -> dict[str, str]:
    """Describes each law that has a name: by its rule, or by a sentence."""
    again = "recompute: the values of a layer are not stored, and computed again where the backward pass reads them"
    return {**{name: law.text for name, law in library_laws().items()}, "recompute": again}


def rule(text: str) -> Law:
    """A law of your own, for `plan.rewrite`: `name: left => right`, in the language of `rewrites/rules/programs.rules`.

    A one-letter name stands for any array, and indices are not written: elementwise ops have those of all their arrays, `dot`
    and folds sum over those that nothing around them needs. Z3 proves it, if it is installed and can. Otherwise both sides are
    computed on random arrays before it is accepted. The law says which.

    Raises Error for a text that is not a rule, and with a counter-example for a rule that is not a law.

    pt.rule("halves: dot(x + x, y) => dot(x, y) + dot(x, y)")   -->   <law halves: ... (proved: by sums of products)>
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused("text", "a rule, a string", text, 'write it as pt.rule("name: left => right")')
    return _rule(text)


@cache
def _rule(text: str) -> Law:
    found = parse(text, "rule")
    if len(found) != 1:
        raise Error(f"`text` takes one rule, got {len(found)}", helps=["a rule reads `name: left => right`"])
    return checked_law(found[0], _proof)


def _proof(rule: Rule) -> str:
    """How Z3 proves a rule; nothing if it does not, or is not installed."""
    if find_spec("z3") is None:
        return ""
    # Z3 takes a while to import, and most programs have no rule of their own.
    from ...rewrites.proofs.of_rules.programs import prove_program

    found = prove_program(rule)
    return str(found) if found.state == "proved" else ""


def takes_no_more(plan: State, rule: object, at: Patterns, given: Mapping[str, object]) -> Error:
    """The error for further arguments of `plan.rewrite`: a law of former versions took some."""
    if isinstance(rule, str) and rule == "chunk":
        return _former(at, given)
    title = f"`{law_of(plan, rule, at).name}` takes no {', '.join(f'`{name}`' for name in sorted(given))}"
    return Error(title, helps=["write " + step("rewrite(rule, at=...)")])


def _former(at: Patterns, given: Mapping[str, object]) -> Error:
    dim, trips = shown(given["dim"]) if "dim" in given else "...", given.get("trips", 8)
    said = f"tile({'...' if at == '**' else shown(at)}, {dim}, 't:{trips}')"
    return Error("`chunk` is no law any more: a value in parts is a tile on a loop", helps=["write " + step(said)])


def law_of(plan: State, rule: object, at: Patterns) -> Law:
    """Finds the law for an argument of `plan.rewrite`: a law itself, the name of one, or the text of a rule."""
    if not isinstance(rule, str):
        if not hasattr(rule, "sites"):
            helps = ['name a law of the library, "reassociate"', 'or write one: pt.rule("name: left => right")']
            raise refused("rule", "a law", rule, *helps)
        return cast(Law, rule)
    rule = str.__str__(rule)
    if "=>" in rule:
        return _rule(rule)
    if rule == "recompute":
        return recompute(plan, at)
    if rule == "chunk":
        raise _former(at, {})
    if rule not in library_laws():
        raise Error(f"no law is called `{rule}`", helps=did_you_mean(rule, (*library_laws(), "recompute"), most=3))
    return library_laws()[rule]


def recompute(plan: State, at: Patterns) -> Recompute:
    """The law that recomputes values in the backward pass: those in matching scopes, or else those that match themselves."""
    program, sources = plan.source.program, plan.source.traced.sources
    backward = frozenset(node.number for node in program.nodes if sources.direction(node.op).transposed)
    if not backward:
        helps = ["plan a function that differentiates, such as a training step"]
        raise Error("`recompute` needs a backward pass, and this program has none", helps=helps)
    scopes = {node.number: scope for node in program.nodes if (scope := matched_scope(scope_of(plan, node), at))}
    if scopes:
        return Recompute(backward, scopes, closed=True)
    check_names(plan, at)
    named = ((each, name) for name, value in plan.source.addresses.find(at).items() for each in _unnamed(program, value))
    return Recompute(backward, {program.producer[value]: name for value, name in named}, closed=False)


def _unnamed(program: Program, value: ValueId) -> Iterator[ValueId]:
    """Yields the value, and the values from which ops that only move or name it have made it."""
    while (number := program.producer[value]) >= 0:
        yield value
        if not program.nodes[number].passes_on:
            break
        (value,) = program.nodes[number].operands


def value_name(plan: State, value: ValueId) -> str:
    """The name of a value. If it is named only by its op, and has a tag, it is the tag."""
    program, names = plan.source.program, plan.source.addresses.names
    tags = [user.results[0] for user in program.readers(value) if user.op_name == "tag"]
    return names[tags[0]] if tags and "#" in names[value] else names[value]


def untagged(program: Program, value: ValueId) -> ValueId:
    """The value before it got a tag."""
    return program.source(value, lambda node: node.op_name == "tag")


def check_names(plan: State, at: Patterns) -> None:
    """Raises Error if a pattern matches no value and no scope. The helps list the nearest scopes, or all."""
    addresses = plan.source.addresses
    unknown = [glob for glob in patterns_of(at) if addresses.by_name(glob) is None]
    known = Names(scopes := _scopes(plan) if unknown else [])
    for glob in unknown:
        if known.matched(glob):
            continue
        try:
            addresses.one(glob)
        except Error as error:
            every = [f"the scopes are {listed(scopes, most=8)}"] if scopes else []
            helps = near(glob, scopes) or [*every, *error.helps]
            raise Error(f"no value and no scope is named `{glob}`", helps=helps) from None


def check_scopes(plan: State, at: Patterns) -> None:
    """Raises Error if a pattern matches no scope. The helps list the nearest ones, or all."""
    known = Names(scopes := _scopes(plan))
    for glob in patterns_of(at):
        if not known.matched(glob):
            every = [f"the scopes are {listed(scopes, most=8)}"] if scopes else ["put `with jax.named_scope(...)` around it"]
            raise Error(f"no scope is named `{glob}`", helps=near(glob, scopes) or every)


def _scopes(plan: State) -> list[str]:
    """The scopes of a program, and the scopes that enclose them."""
    return list(dict.fromkeys(each for scope in plan.source.by_scope if scope for each in beginnings(scope.split("/"))))


def matched_scope(scope: str, at: Patterns) -> str | None:
    """The outermost scope that a pattern matches, among a scope and those around it; None if there is none."""
    around = beginnings(scope.split("/")) if scope else []
    return next((each for each in around if any(pattern(glob, under=False).fullmatch(each) for glob in patterns_of(at))), None)


def law_line(law: Law, at: Patterns) -> str:
    """The line of a trace that applies a law at these places."""
    named = not isinstance(law, ByRule) or library_laws().get(law.name) is law
    where = "" if at == "**" else f", at={at!r}"
    return f"rewrite({(law.name if named else law.text)!r}{where})"


def unnumbered(name: str) -> str:
    """Replaces all numbers in a name, which tell layers apart, by stars: `block*/dot_general#*`."""
    return re.sub(r"\d+", "*", name)


def made_by(plan: State, value: ValueId) -> Node:
    return plan.source.program.made_by(value)


def scope_of(plan: State, node: Node) -> str:
    """The path of `jax.named_scope`s around an op as the user wrote it, without JAX's transformations."""
    return plan.source.scope(node)
