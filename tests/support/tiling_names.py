"""The tilings that follow from a definition, by the names of its indices, for the coverage table.

dot_general     -->     b, m, n place; k leaves a sum pending
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from partita.dialects.definitions.dim_terms import DimSite, Sites
from partita.dialects.definitions.requirement_terms import Along, Rows, Scan
from partita.dialects.definitions.syntax_tree import Definition, names
from partita.dialects.definitions.tilings import Index, Instance, Value, bind
from partita.dialects.ground.monoids import MONOIDS
from partita.dialects.params import ParamsAttr


@dataclass(frozen=True, slots=True)
class Tilings:
    """The variables of a definition whose indices can be placed: plainly, leaving `monoid` pending, looked up, or scanned."""

    plain: frozenset[str] = frozenset()
    pending: frozenset[tuple[str, str]] = frozenset()
    looked_up: frozenset[str] = frozenset()
    scanned: frozenset[str] = frozenset()

    def __or__(self, other: Tilings) -> Tilings:
        """The union of both, because one call may lack some of the indices."""
        return Tilings(
            self.plain | other.plain,
            self.pending | other.pending,
            self.looked_up | other.looked_up,
            self.scanned | other.scanned,
        )

    def __str__(self) -> str:
        pending = [f"{name}: {_sign(monoid)}" for name, monoid in sorted(self.pending)]
        looked_up = [f"{name}: looked up" for name in sorted(self.looked_up)]
        scanned = [f"{', '.join(sorted(self.scanned))}: scanned"] if self.scanned else []
        return "; ".join(part for part in [", ".join(sorted(self.plain)), *pending, *looked_up, *scanned] if part)


def tilings(definition: Definition, params: ParamsAttr, ins: Sequence[Value], outs: Sequence[Value]) -> Tilings:
    """The tilings of one op on operands and results of these types."""
    bound = definition.with_arity(len(ins), len(outs))
    instance = bind(bound, params, ins, outs)
    sites = Sites(bound, params, [shape for _, shape in ins], [shape for _, shape in outs])
    found = Tilings()
    for site in sites.all:
        for name, index in _named(site, instance):
            found |= _role(name, instance.indices[index])
    return found


def _named(site: DimSite, instance: Instance) -> Iterator[tuple[str, int]]:
    """Each index of an access with the variable that it belongs to; a product's indices are those of extent above 1."""
    dims = instance.operands[site.array] if site.array >= 0 else instance.results[-1 - site.array]
    for number, _, dim in site.placed:
        known = names(site.terms[number])
        indices = [digit.at for digit in dims[dim]]
        apart = len(known) == len(indices) + any(digit.minor > 1 for digit in dims[dim][-1:])
        yield from zip(known if apart else known[:1] * len(indices), indices, strict=False)


def _role(name: str, index: Index) -> Tilings:
    if index.parts(Scan):
        return Tilings(scanned=frozenset({name}))
    if index.parts(Along):
        return Tilings(pending=frozenset({(name, str(index.folds))}))
    if index.parts(Rows):
        return Tilings(looked_up=frozenset({name}))
    return Tilings(frozenset({name})) if index.monoid is None else Tilings(pending=frozenset({(name, index.monoid)}))


def _sign(fold: str) -> str:
    return (MONOIDS[fold].sign if fold in MONOIDS else "") or fold
