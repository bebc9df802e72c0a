"""Addresses: from names and patterns to the numbers of values.

Arguments and results are named by path, intermediates by tag or scope, and any other value by its op: `transpose#3`. A
value has one name, the first of these that applies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ...rewrites.program.program import Program
from ..inputs.checks import no_list, patterns_of
from ..inputs.names import Patterns, match, pattern, unknown
from ..trace.trace import Traced


@dataclass(frozen=True)
class Addresses:
    """The names of one traced program."""

    traced: Traced
    program: Program
    _own: dict[int, str] = field(default_factory=dict[int, str])

    def __repr__(self) -> str:
        return f"Addresses({self.traced})"

    @cached_property
    def arguments(self) -> dict[str, int]:
        return dict(zip(self.program.argument_names, self.program.arguments, strict=True))

    @cached_property
    def results(self) -> dict[str, int]:
        return dict(zip(self.program.result_names, self.program.returned, strict=True))

    @cached_property
    def inside(self) -> dict[str, list[int]]:
        """Tags and scopes; one name can stand for several values."""
        paths = {*self.arguments, *self.results}
        named = self.traced.addresses.items()
        return {name: [self.program.numbers[ssa] for ssa in values] for name, values in named if name not in paths}

    @cached_property
    def by_op(self) -> dict[str, int]:
        """`kind#n`: the n-th op of its kind, with `.k` for results beyond the first."""
        counts: Counter[str] = Counter()
        found: dict[str, int] = {}
        for node in self.program.nodes:
            for position, value in enumerate(node.results):
                found[f"{node.kind}#{counts[node.kind]}" + (f".{position}" if position else "")] = value
            counts[node.kind] += 1
        return found

    @cached_property
    def names(self) -> dict[int, str]:
        """The name of each value."""
        found: dict[int, str] = {}
        inside = ((name, value) for name, values in self.inside.items() for value in values)
        for source in (self.arguments.items(), inside, self.results.items(), self.by_op.items()):
            for name, value in source:
                found.setdefault(value, name)
        return found

    def by_name(self, name: str) -> int | None:
        """The value of this name, as `names` has it; None if there is none."""
        return self._numbers.get(name)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: value for value, name in self.names.items()}

    def find(self, given: Patterns) -> dict[str, int]:
        """Name -> value for all that the patterns match: arguments first, then results, tags and scopes, ops by number."""
        found: dict[str, int] = {}
        for glob in patterns_of(given):
            found.update(self.one(glob))
        return found

    def one(self, glob: str) -> dict[str, int]:
        paths = self.arguments | self.results
        accepts = pattern(glob).fullmatch
        taken = {name: value for name, value in paths.items() if accepts(name)}
        if taken:
            return taken
        inner = pattern(glob, under=False).fullmatch
        for name, values in self.inside.items():
            if inner(name):
                marks = [name] if len(values) == 1 else [f"{name}#{i}" for i in range(len(values))]
                taken.update(zip(marks, values, strict=True))
        if not taken and "#" in glob and glob in self.by_op:
            taken[glob] = self.by_op[glob]
        # `**` matches nothing in a program without values.
        if not taken and (paths or glob != "**"):
            no_list(glob)
            raise unknown(glob, [*paths, *self.inside])
        return taken

    def inputs(self, given: Patterns) -> dict[str, int]:
        """Like `find`, but only among the arguments."""
        for glob in (globs := patterns_of(given)):
            if not any(map(pattern(glob).fullmatch, self.arguments)):
                no_list(glob)
        names = match(globs, self.arguments, what="argument")
        return {name: self.arguments[name] for name in names}

    def has(self, value: int) -> bool:
        """Whether a tactic may make claims for the value: for all, here."""
        del value
        return True

    def within(self, given: Patterns, successors: Mapping[str, str]) -> Within:
        """Only the values that the patterns match, and those that take their places in the next call."""
        found = self.find(given)
        after = (self.results[successors[name]] for name in found if name in successors)
        return Within(self.traced, self.program, wanted=frozenset((*found.values(), *after)))


@dataclass(frozen=True)
class Within(Addresses):
    """The names of some values of a program: patterns match no others. Every value keeps its name."""

    wanted: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"Within({len(self.wanted):,} values of {self.traced})"

    @cached_property
    def arguments(self) -> dict[str, int]:
        return self.only(Addresses(self.traced, self.program).arguments)

    @cached_property
    def results(self) -> dict[str, int]:
        return self.only(Addresses(self.traced, self.program).results)

    def only(self, names: Mapping[str, int]) -> dict[str, int]:
        return {name: value for name, value in names.items() if value in self.wanted}

    def has(self, value: int) -> bool:
        return value in self.wanted
