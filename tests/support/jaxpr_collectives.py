"""Counts the collectives in a jaxpr: those that JAX runs, independent of the reports of a plan.

Executions are counted: the body of a `scan` times its length, the body and the condition of a `while` once. Branches of a
`cond` are counted separately, and bytes include the most expensive branch. Bytes are those that one device receives, with
V the larger side's local size and n the size of the group: all_gather, reduce_scatter and all_to_all V(n-1)/n, all_reduce
twice that, permute V.
"""

# JAX annotates its tracing functions only in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from math import prod
from typing import Any, cast

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

KINDS = {
    "psum": "all_reduce",
    "psum_invariant": "all_reduce",
    "pmax": "all_reduce",
    "pmin": "all_reduce",
    "all_gather": "all_gather",
    "all_gather_invariant": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_to_all": "all_to_all",
    "ppermute": "permute",
}


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective of a jaxpr, with the bytes that a device receives in all its executions."""

    kind: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    times: int
    bytes: Fraction
    where: tuple[tuple[int, int], ...] = ()
    """The branches that contain it, outermost first: (number of the cond, number of the branch)."""


def collectives(function: Any, *args: Any) -> list[Collective]:
    """The collectives that one call of `function` executes."""
    return list(_walk(jax.make_jaxpr(function)(*args).jaxpr, {}, 1, (), count()))


def counts(found: list[Collective]) -> dict[str, int]:
    """How often each kind is executed, every kind named: the form of `plan.counts()`."""
    total = dict.fromkeys(KINDS.values(), 0)
    for each in found:
        total[each.kind] += 0 if each.where else each.times
    return total


def in_branches(found: list[Collective]) -> dict[str, int]:
    """Like `counts`, for the collectives in branches, whichever branch runs."""
    return counts([replace(each, where=()) for each in found if each.where])


def received(found: list[Collective]) -> int:
    """Bytes that one device receives, rounded: the form of `plan.bytes_per_device()`."""
    return round(_received(found))


def _received(found: list[Collective]) -> Fraction:
    always = sum((each.bytes for each in found if not each.where), Fraction(0))
    branches: dict[int, dict[int, list[Collective]]] = {}
    for each in found:
        if each.where:
            (choice, branch), *rest = each.where
            branches.setdefault(choice, {}).setdefault(branch, []).append(replace(each, where=tuple(rest)))
    return always + sum(max(map(_received, inside.values())) for inside in branches.values())


Where = tuple[tuple[int, int], ...]


def _walk(jaxpr: Jaxpr, sizes: Mapping[str, int], times: int, where: Where, numbers: Iterator[int]) -> Iterator[Collective]:
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in KINDS:
            yield from (replace(each, where=where) for each in _collectives(eqn, sizes, times))
        inner = dict(eqn.params["mesh"].shape) if eqn.primitive.name == "shard_map" else sizes
        trips = eqn.params["length"] if eqn.primitive.name == "scan" else 1
        choice = next(numbers) if eqn.primitive.name == "cond" else None
        for branch, body in enumerate(_bodies(eqn)):
            here = where if choice is None else (*where, (choice, branch))
            yield from _walk(body, inner, times * trips, here, numbers)


def _bodies(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    for param in eqn.params.values():
        for each in cast(Sequence[object], param if isinstance(param, tuple | list) else (param,)):
            if isinstance(each, ClosedJaxpr):
                yield each.jaxpr
            elif isinstance(each, Jaxpr):
                yield each


def _collectives(eqn: JaxprEqn, sizes: Mapping[str, int], times: int) -> Iterator[Collective]:
    kind = KINDS[eqn.primitive.name]
    named: object = eqn.params["axes"] if "axes" in eqn.params else eqn.params["axis_name"]
    several = cast(tuple[object, ...], named if isinstance(named, tuple) else (named,))
    axes = tuple(axis for axis in several if isinstance(axis, str))
    groups = eqn.params.get("axis_index_groups")
    n = len(groups[0]) if groups else prod(sizes[axis] for axis in axes)
    for operand, result in zip(eqn.invars, eqn.outvars, strict=True):
        larger: Any = max(cast(tuple[Any, Any], (operand.aval, result.aval)), key=lambda aval: prod(aval.shape))
        share = {"permute": n, "all_reduce": 2 * (n - 1)}.get(kind, n - 1)
        moved = Fraction(larger.size * larger.dtype.itemsize * share, n)
        yield Collective(kind, axes, larger.shape, times, moved * times)
