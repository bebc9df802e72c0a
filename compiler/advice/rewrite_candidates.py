"""The candidates of `plan.rewrites`: laws at kinds of places. Places that are alike are one candidate.

reassociate   block*/dot_general#3        12 places, found by matching
tile          logits, dim 1, t:8           one of the largest values at the peak of memory, in parts
recompute     block*                       the outermost scopes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from ...rewrites.decide.price import Price
from ...rewrites.laws.law import Law, Site
from ...rewrites.laws.library import library_laws
from ..inputs.names import Patterns
from ..plan.claims import Some
from ..plan.named_laws import made_by, scope_of, unnumbered, value_name
from ..plan.rewriting import rewrite
from ..plan.source_lines import line_of
from ..plan.state import State
from ..views.grouping import grouped
from .large_values import InParts, in_parts

MOST_KINDS = 8
"""The most kinds of places that are tried for laws of the library: those that by themselves save most flops and elements."""


@dataclass(frozen=True, slots=True)
class LawCandidate:
    """A law at some places that are alike, or a large value in parts. It has not been tried yet."""

    law: str
    at: tuple[str, ...]
    places: int
    line: str = ""
    loop: InParts | None = None

    def __call__(self, plan: Some) -> Some:
        return rewrite(plan, self.law, place_names(self.at)) if self.loop is None else self.loop(plan)

    @property
    def tactic(self) -> str:
        """The tactic as a line of a trace."""
        return f"rewrite({self.law!r}, at={place_names(self.at)!r})" if self.loop is None else self.loop.text


def place_names(at: tuple[str, ...]) -> Patterns:
    """The names of places, as a user passes them to `plan.rewrite`."""
    return at[0] if len(at) == 1 else list(at)


def matched(plan: State) -> list[LawCandidate]:
    """The library's laws at the places where they save most by themselves. They are matched, not tried."""
    groups = [group for law in library_laws().values() for group in _groups(plan, law)]
    best = sorted(groups, key=itemgetter(0), reverse=True)[:MOST_KINDS]
    return [_candidate(plan, law, at, len(at)) for _, law, at in best]


def searched(plan: State) -> list[LawCandidate]:
    """Places where laws that depend on the plan could apply."""
    loops = [_candidate(plan, "tile", (each.name,), 1, each) for each in in_parts(plan)]
    return [*loops, *_again(plan)]


def _candidate(plan: State, law: str, at: tuple[str, ...], places: int, loop: InParts | None = None) -> LawCandidate:
    return LawCandidate(law, at, places, _line(plan, at), loop)


def _groups(plan: State, law: Law) -> Iterator[tuple[Price, str, tuple[str, ...]]]:
    """Yields places that differ only in the numbers of layers, together, with what a law saves: flops, and elements held."""
    program = plan.source.program

    def kind(site: Site) -> tuple[object, ...]:
        ends = (value for each in (site.value, *site.inside) for value in (*program.made_of(each), each))
        return unnumbered(value_name(plan, site.value)), *(program.types[value] for value in ends)

    for sites in grouped(law.sites(program), kind).values():
        at = tuple(value_name(plan, site.value) for site in sites)
        saved = Price.of(program.mesh, (), ((site.flops, 1) for site in sites), sum(site.elements for site in sites))
        yield saved, law.name, at


def _again(plan: State) -> Iterator[LawCandidate]:
    """Yields the outermost scopes of the program. Those of layers that are alike are one candidate."""
    for some in grouped(dict.fromkeys(scope.split("/")[0] for scope in _scopes(plan)), unnumbered).values():
        yield _candidate(plan, "recompute", tuple(some), len(some))


def _scopes(plan: State) -> list[str]:
    """The scopes in which ops compute something."""
    scopes = dict.fromkeys(scope_of(plan, node) for node in plan.source.program.nodes if not node.is_border)
    return [scope for scope in scopes if scope]


def places(plan: State, law: str) -> dict[str, str]:
    """The names of the places where a law applies, with source lines: values, or the scopes to recompute.

    Empty for what is no law of the library.
    """
    if law == "recompute":
        return dict.fromkeys(_scopes(plan), "a scope")
    sites = library_laws()[law].sites(plan.source.program) if law in library_laws() else ()
    return {name: _line(plan, [name]) for name in dict.fromkeys(value_name(plan, site.value) for site in sites)}


def _line(plan: State, at: Sequence[str]) -> str:
    """The source line of the first of these places; empty if it has none."""
    value = plan.source.addresses.by_name(at[0])
    source = None if value is None else line_of(plan, value, made_by(plan, value))
    return "" if source is None else source.place
