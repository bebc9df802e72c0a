"""Laws that are given by rules: where a rule applies in a program, and what it makes there.

reassociate: dot(dot(x, y), z) => dot(x, dot(y, z))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from ...dialects.definitions.flops import flops
from ...dialects.ground.errors import Error
from ..emit import Emitter
from ..program.program import Node, NodeId, Program, ValueId
from ..rules.compile import FIRED
from ..rules.rule import Rule, RuleApply, Symbol, Term, subterms
from .build_ops import TermOps
from .interpret_rule import Costs, IndexMaker, make_term
from .isomorphic_sites import Key, levels, site_key
from .law import Site
from .match import Match, dtype_at, is_root, matches
from .module_copy import Before, Draft
from .rule_check import INSTANCES, kinds_of, problem
from .rule_ops import ALIASES, arity, form


@dataclass(frozen=True, repr=False)
class ByRule:
    """The law of a rule, for those kinds of numbers for which its two sides are equal."""

    rule: Rule
    proved: frozenset[str] = field(default=frozenset(), compare=False)
    """The kinds of numbers for which this has been tested already, as the tests do for laws of the library."""
    evidence: str = field(default="", compare=False)
    """How it is known that a user's rule is a law."""

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def text(self) -> str:
        return str(self.rule)

    def __repr__(self) -> str:
        return f"<law {self.text}{f' ({self.evidence})' if self.evidence else ''}>"

    def sites(self, program: Program) -> Iterator[Site]:
        """Yields the places where the law applies. Of places that are alike, only the first is matched."""
        depth, known = levels(self.rule.left), dict[Key, _Found | None]()
        for node in program.nodes:
            if not is_root(self.rule.left, node):
                continue
            key, values = site_key(program, node.results[0], depth)
            if key not in known:
                known[key] = self.found(program, node, values)
            if (found := known[key]) is not None:
                yield Site(node.results[0], tuple(values[at] for at in found.inside), found.flops, found.elements)

    def found(self, program: Program, node: Node, values: Sequence[ValueId]) -> _Found | None:
        """How the law applies to an op, in terms of positions among the values around it; None if it does not."""
        if (match := self.match(program, node)) is None:
            return None
        inside = tuple(values.index(program.nodes[number].results[0]) for number in match.nodes)
        return _Found(inside, *self.saved(program, match))

    def saved(self, program: Program, found: Match) -> tuple[int, int]:
        """The flops and elements that the right side saves. A value that is also read elsewhere saves nothing."""
        gone: set[NodeId] = {found.root.number}
        for number in found.nodes[1:]:
            if all(user in gone for user, _ in program.uses[program.nodes[number].results[0]]):
                gone.add(number)
        nodes = [program.nodes[number] for number in gone]
        maker = Costs(found.extents)
        found.indices(self.rule.right, maker)
        flops, elements = sum(map(_flops, nodes)), sum(prod(program.shape(node.results[0])) for node in nodes)
        return flops - maker.flops, elements - maker.elements

    def match(self, program: Program, node: Node) -> Match | None:
        """The match of the law at an op that saves most; None if there is none."""
        ways = [each for each in matches(program, self.rule.left, node) if each.has(self.rule.right, IndexMaker())]
        if not ways or not self.holds(_kind(dtype_at(program, node))):
            return None
        return max(ways, key=lambda each: self.saved(program, each))

    def holds(self, kind: str) -> bool:
        """Whether the rule is a law for this kind of numbers."""
        return kind in self.proved or problem(self.rule, kind) is None

    def apply(self, program: Program, draft: Draft, sites: Sequence[Site]) -> None:
        for site in sites:
            self.write(program, draft, site.value)

    def write(self, program: Program, draft: Draft, value: ValueId) -> None:
        """Replaces one value by the right side."""
        root = program.made_by(value)
        found = self.match(program, root)
        assert found is not None, "a site is where the law applies"
        ops = TermOps(Emitter(Before(draft, draft.ops[root.op])), found.extents, dtype_at(program, root))
        bound = {name: ops.plain(draft[seen.value], seen.ids) for name, seen in found.bound.items()}
        draft.replace(value, ops.whole(make_term(self.rule.right, bound, found.keep, ops), found.ids))
        FIRED[self.name] += 1


class _Found(NamedTuple):
    """How a law applies to ops that are alike: the positions of the values that are not needed any more, and the savings."""

    inside: tuple[int, ...]
    flops: int
    elements: int


def _flops(node: Node) -> int:
    return flops(node.op_name, node.params, *node.signature.shapes) or 0


def _kind(dtype: str) -> str:
    return "f" if "float" in dtype else dtype[0]


def checked_law(rule: Rule, proof: Callable[[Rule], str] = lambda _: "") -> ByRule:
    """Makes the law of a rule, which is tested on random arrays if it has no proof.

    Raises Error if it names an unsuitable op, or, with a counter-example, if it is false.
    """
    for term in (*subterms(rule.left), *subterms(rule.right)):
        _check(rule, term)
    if found := proof(rule):
        return ByRule(rule, evidence=found)
    kinds_of(rule)
    return ByRule(rule, evidence=f"tested on {INSTANCES} random instances of each dtype")


def _check(rule: Rule, term: Term) -> None:
    if isinstance(term, Symbol):
        helps = ["a variable is one letter, and perhaps a number: x, y2; an op has arguments: exp(x)"]
        raise Error(f"`{term.name}` in `{rule.name}` is neither a variable nor an op", label=str(rule), helps=helps)
    if isinstance(term, RuleApply) and form(ALIASES.get(term.head, term.head)) is None:
        helps = ["it may name elementwise ops without parameters, `dot`, and folds: exp(x), x + y, dot(x, y), reduce_max(x)"]
        raise Error(f"a rule about programs cannot name `{term.head}`", label=str(rule), helps=helps)
    if isinstance(term, RuleApply) and len(term.args) != (takes := arity(ALIASES.get(term.head, term.head))) and takes:
        raise Error(f"`{term.head}` takes {takes} of the {len(term.args)} arrays that `{rule.name}` gives it", label=str(rule))
    if rule.where is not None:
        raise Error(f"a rule about programs has no condition: `{rule.name}`", label=str(rule), helps=["leave out `where ...`"])
