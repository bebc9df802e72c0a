"""Addresses: maps names and patterns to the numbers of values.

Arguments and results are named by path, the gradients of arguments by these, `grad(params/w)`, intermediates by tag or by the
scope that they alone leave, and any other value by its op, counted in its scope and its direction: `mlp/transpose#3`,
`mlp/backward/transpose#0`. A value has one name, the first of these that applies: no change elsewhere in the program gives it
another one. What a loop reads of an argument has the name of the argument too.

Earlier versions counted ops outside of scopes through the whole program, those in a scope among the values that stay in it, and
had JAX's transformations in the paths of scopes:
`transpose(jvp(mlp))/transpose#0`, `transpose#17`. Where no name of today matches, these are read too.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from math import prod
from typing import Self

from xdsl.ir import SSAValue

from ...dialects.ground.errors import Error
from ...rewrites.program.breadth_first import reached
from ...rewrites.program.program import Node, Program, ValueId
from ..inputs.checks import no_list, patterns_of
from ..inputs.names import Names, Patterns, join, match, unknown
from ..ops.tag import cotangent_name
from ..trace.trace import Traced
from ..trace.value_names import counted_in, current_name

TODAY = "./"
"""What a name of today begins with where it could be one of an earlier version."""

BORDERS = "enter", "trip", "optimization_barrier"
"""The ops, besides moves, through which a loop, a branch or a rematerialised function gets its parameters."""


def is_seen_through(node: Node) -> bool:
    """Whether an op only moves or casts its one operand, or takes a part of it, such as a layer of a stack."""
    if node.passes_on or node.op_name in BORDERS:
        return True
    return not node.is_border and node.signature.instance.definition.moves and len(node.operands) == len(node.results) == 1


def only_moves(node: Node) -> bool:
    """Whether an op only moves or casts what it reads: as ops that are seen through do, or by stacking or choosing parts."""
    return is_seen_through(node) or (not node.is_border and node.signature.instance.definition.moves)


def arguments(program: Program, value: ValueId) -> list[ValueId]:
    """The arguments that a value is put together from, seen through moves, casts and parts; none if any of it is computed.

    stack([w0, w1])[i]   -->   w0, w1: the number `i` chooses, and is no part
    """
    ends = list[ValueId]()

    def parts(each: ValueId) -> Sequence[ValueId]:
        node = program.maker(each)
        if node is not None and only_moves(node):
            return [operand for operand in node.operands if program.shape(operand)] or node.operands
        ends.append(each)
        return ()

    deque(reached([value], parts), maxlen=0)
    return ends if all(program.maker(end) is None for end in ends) else []


def argument(program: Program, value: ValueId) -> ValueId | None:
    """The first of the arguments that a value is put together from; None if it is computed."""
    return next(iter(arguments(program, value)), None)


FARTHEST = 200
"""The most values that a walk from an argument's successor back to its gradient visits."""


@dataclass(frozen=True, slots=True)
class _Gradients:
    """Finds the gradients of arguments: values of the backward pass from which the new argument is computed.

    new = w - 0.1 * transpose(dot_general(x, g))   -->   the results of the transpose and of the product
    """

    traced: Traced
    program: Program

    def of(self, argument: ValueId, successor: ValueId) -> list[ValueId]:
        """The values of an argument's gradient: the first that is made, then what it becomes when it is moved or added up."""
        program, found = self.program, list[ValueId]()

        def before(value: ValueId) -> Iterator[ValueId]:
            node, shape = program.nodes[program.producer[value]], program.shape(value)
            if is_gradient := self.is_backward(node):
                found.append(value)
            for each in self.terms(node) if is_gradient else node.operands:
                if program.producer[each] < 0:
                    continue
                if (
                    is_gradient
                    or (other := program.shape(each)) == shape
                    or other == shape[node.is_border :]
                    or is_seen_through(node)
                ):
                    yield each

        if program.maker(successor) is None or not self.is_differentiated(argument):
            return []
        # A value is looked at when the walk goes on from it.
        deque(islice(reached([successor], before), FARTHEST + 1), maxlen=0)
        return found[::-1]

    def is_differentiated(self, argument: ValueId) -> bool:
        """Whether an op that is differentiated reads the argument."""
        moved = self.program.downstream([argument], is_seen_through)
        read = (self.traced.sources.direction(node.op) for value in moved for node in self.program.readers(value))
        return any(each.differentiated and each.name != "recomputed" for each in read)

    def is_backward(self, node: Node) -> bool:
        """Whether an op belongs to the backward pass, and is not a recomputation for it."""
        return self.traced.sources.direction(node.op).name == "backward"

    def terms(self, node: Node) -> Sequence[ValueId]:
        """The operands that an op of the backward pass only moves or adds up."""
        size = prod(self.program.shape(node.results[0]))
        is_moved = len(node.operands) == 1 and prod(self.program.shape(node.operands[0])) == size
        is_moved &= not node.is_border and not node.signature.instance.definition.maps
        return node.operands if node.is_border or node.op_name == "add_any" or is_moved or is_seen_through(node) else ()


class NamedValues(dict[str, list[ValueId]]):
    """Values by their names, of which a pattern may match some. Several values may have one name."""

    @cached_property
    def every(self) -> Names:
        return Names([*self], under=False)

    @classmethod
    def single(cls, named: Mapping[str, ValueId]) -> Self:
        """Of one value for each name."""
        return cls((name, [value]) for name, value in named.items())


@dataclass(frozen=True)
class Addresses:
    """The names of the values of one traced program."""

    traced: Traced
    program: Program

    @property
    def everywhere(self) -> Addresses:
        """The addresses of all values."""
        return self

    def __repr__(self) -> str:
        return f"Addresses({self.traced})"

    @cached_property
    def arguments(self) -> dict[str, ValueId]:
        return dict(zip(self.program.argument_names, self.program.arguments, strict=True))

    @cached_property
    def results(self) -> dict[str, ValueId]:
        return dict(zip(self.program.result_names, self.program.returned, strict=True))

    @cached_property
    def inside(self) -> dict[str, list[ValueId]]:
        """Tags, scopes, and what is counted in these; the name of a tag or a scope can stand for several values."""
        paths, found = {*self.arguments, *self.results}, dict[str, list[ValueId]]()
        for name, values in chain(self._tags.items(), self._scopes.items()):
            found[name] = list(dict.fromkeys([*found.get(name, ()), *values]))
        found.update({name: [value] for name, value in self.by_op.items() if "/" in name and name not in found})
        return {name: values for name, values in found.items() if name not in paths}

    @cached_property
    def _tags(self) -> dict[str, list[ValueId]]:
        return self._numbers_of(self.traced.tags)

    @cached_property
    def _scopes(self) -> dict[str, list[ValueId]]:
        return self._numbers_of(self.traced.scopes)

    def _numbers_of(self, named: Mapping[str, Sequence[SSAValue]]) -> dict[str, list[ValueId]]:
        return {name: [self.program.numbers[ssa] for ssa in values] for name, values in named.items()}

    @cached_property
    def gradients(self) -> dict[str, list[ValueId]]:
        """The gradients of arguments that a result replaces in the next call, each under the names that its values have.

        `grad(w)` is the product that makes it, and `grad(w)#1` the transpose of that, from which the new `w` is computed.
        """
        gradients, results, returned = _Gradients(self.traced, self.program), self.results, {*self.program.returned}
        found: dict[str, list[ValueId]] = {}
        for name, after in self.traced.successors.items():
            values = (each for each in gradients.of(self.arguments[name], results[after]) if each not in returned)
            for number, value in enumerate(values):
                found[cotangent_name(name) + (f"#{number}" if number else "")] = [value]
        return found

    @cached_property
    def _named_inside(self) -> NamedValues:
        """The gradients, tags and scopes, and what is counted in scopes."""
        gradients = self.gradients
        return NamedValues(gradients | {name: [*gradients.get(name, ()), *values] for name, values in self.inside.items()})

    def gradients_of(self, name: str) -> Sequence[ValueId]:
        """The gradients of the values with this name, if they have one."""
        return self._named_inside.get(cotangent_name(name), ())

    @cached_property
    def by_op(self) -> dict[str, ValueId]:
        """`scope/kind#n`: the n-th op of its kind in a scope and a direction, with `.k` for results beyond the first."""
        sources = self.traced.sources
        return self._counted(lambda node: join(counted_in(node.op, sources).name(), node.op_name))

    def _counted(self, stem: Callable[[Node], str]) -> dict[str, ValueId]:
        """The values of ops, named by a stem and by the number of their op among those with the same stem."""
        counts: Counter[str] = Counter()
        found: dict[str, ValueId] = {}
        for node in self.program.nodes:
            name = stem(node)
            for position, value in enumerate(node.results):
                found[f"{name}#{counts[name]}" + (f".{position}" if position else "")] = value
            counts[name] += 1
        return found

    @cached_property
    def _former(self) -> NamedValues:
        """The names that earlier versions gave to values that are neither arguments, results nor tagged."""
        counted = self._counted(lambda node: node.op_name)
        return NamedValues(NamedValues.single(counted) | self._numbers_of(self.traced.former))

    def name(self, value: ValueId) -> str:
        """The name of one value. Arguments are named without a look at all other values."""
        return self._argument_names.get(value) or self.names[value]

    @cached_property
    def _argument_names(self) -> dict[ValueId, str]:
        return {value: name for name, value in self.arguments.items()}

    @cached_property
    def names(self) -> dict[ValueId, str]:
        """The name of each value."""
        alone = {name: values for name, values in self._scopes.items() if len(values) == 1}
        return self._by_first_name(alone, self.by_op)

    @cached_property
    def former_names(self) -> dict[ValueId, str]:
        """The name that earlier versions gave to each value."""
        return self._by_first_name(self._numbers_of(self.traced.former), self._counted(lambda node: node.op_name))

    def _by_first_name(self, scoped: Mapping[str, Sequence[ValueId]], by_op: Mapping[str, ValueId]) -> dict[ValueId, str]:
        inside = chain(self.gradients.items(), self._tags.items(), scoped.items())
        named = ((name, value) for name, values in inside for value in values)
        found: dict[ValueId, str] = {}
        for source in (self.arguments.items(), named, self.results.items(), by_op.items()):
            for name, value in source:
                found.setdefault(value, name)
        return found

    def today(self, name: str) -> str:
        """The name of the value that this one named in earlier versions; the same name, if it named none or several."""
        if name.startswith(TODAY):
            return name.removeprefix(TODAY)
        # Other texts of a line, such as axes, may be called as a scope.
        values = self._former.get(name, ()) if "#" in name else ()
        if values == [self.by_op.get(name)]:
            return name
        now = self.names[values[0]] if len(values) == 1 else name
        return now if self.by_name(now) in values else name

    def saved(self, name: str) -> str:
        """The name as a plan file has it: `./mul#7` if `mul#7` was another value in earlier versions."""
        is_other = name in self.by_op and [self.by_op[name]] != self._former.get(name, [self.by_op[name]])
        return f"{TODAY}{name}" if is_other else name

    def by_name(self, name: str) -> ValueId | None:
        """The value with this name in `names`; None if there is none."""
        return self._numbers.get(name)

    @cached_property
    def _numbers(self) -> dict[str, ValueId]:
        return {name: value for value, name in self.names.items()}

    def find(self, given: Patterns) -> dict[str, ValueId]:
        """Finds the values that the patterns match, by name: arguments, then results, tags and scopes, then ops by number."""
        found: dict[str, ValueId] = {}
        for glob in patterns_of(given):
            found.update(self.one(glob))
        return found

    def one(self, glob: str) -> dict[str, ValueId]:
        glob, paths = glob.removeprefix(TODAY), self._paths
        taken = {name: paths[name] for name in self._outer.matched(glob)}
        taken = taken or self._matched(glob, self._named_inside)
        # An op outside of scopes is named only with a number, and a former name has one, or a transformation.
        if not taken and "#" in glob:
            taken = self._matched(glob, self._counted_values)
        if not taken and "#" in glob:
            taken = self._matched(glob, self._alike)
        if not taken and ("#" in glob or "(" in glob):
            taken = self._matched(glob, self._former)
        # `**` matches nothing in a program without values.
        if not taken and (paths or glob != "**"):
            no_list(glob)
            raise self._unknown(glob)
        return taken

    def _matched(self, glob: str, named: NamedValues) -> dict[str, ValueId]:
        """The values of the names that match, each once. Several values of one name go by their own, or by a number."""
        taken: dict[ValueId, str] = {}
        for name in named.every.matched(glob):
            values = named[name]
            own = [name] if len(values) == 1 else [self.names[value] for value in values]
            marks = own if len({*own}) == len(own) else [f"{name}#{i}" for i in range(len(values))]
            for value, mark in zip(values, marks, strict=True):
                taken.setdefault(value, mark)
        return {mark: value for value, mark in taken.items()}

    def _unknown(self, glob: str) -> Error:
        """The error for a pattern that matches nothing. It reads the name of an earlier version as one of today."""
        now = current_name(glob)
        stem, _, number = now.rpartition("#")
        alike = [name for name in self.by_op if name.rpartition("#")[0] == stem] if number.isdecimal() else []
        error = unknown(now, [*self._paths, *self.inside])
        helps = [f"did you mean `{alike[min(int(number), len(alike) - 1)]}`?"] if alike else error.helps
        return Error(f"no value is named `{glob}`", helps=helps)

    @cached_property
    def _paths(self) -> dict[str, ValueId]:
        return self.arguments | self.results

    @cached_property
    def _outer(self) -> Names:
        return Names([*self._paths])

    @cached_property
    def _counted_values(self) -> NamedValues:
        return NamedValues.single(self.by_op)

    @cached_property
    def _alike(self) -> NamedValues:
        """The values that share a name, each by its number: `h#0`, `h#1`."""
        several = ((name, values) for name, values in self._named_inside.items() if len(values) > 1)
        return NamedValues((f"{name}#{number}", [value]) for name, values in several for number, value in enumerate(values))

    @cached_property
    def _inputs(self) -> Names:
        return Names([*self.arguments])

    def inputs(self, given: Patterns) -> dict[str, ValueId]:
        """As `find`, but only among the arguments."""
        for glob in (globs := patterns_of(given)):
            if not self._inputs.matched(glob):
                no_list(glob)
        names = match(globs, self._inputs, what="argument")
        return {name: self.arguments[name] for name in names}

    @cached_property
    def chosen(self) -> dict[str, ValueId]:
        """The values to which a tactic is restricted, by name; empty if it is not restricted."""
        return {}

    def has(self, *values: ValueId) -> bool:
        """Whether a tactic may claim one of these values, or claim others for their sake. Here it always may."""
        del values
        return True

    def within(self, given: Patterns, successors: Mapping[str, str]) -> Within:
        """Restricts the addresses to the values that the patterns match, and the results that replace them in the next call."""
        found = Within(self.traced, self.program, self, given, successors)
        # A pattern that matches nothing is said here, before a tactic looks for anything.
        vars(found)["chosen"] = self.find(given)
        return found


@dataclass(frozen=True)
class Within(Addresses):
    """The addresses of some values of a program: patterns match only these. Every value keeps its name."""

    every: Addresses
    given: Patterns
    successors: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Within({self.given!r} of {self.traced})"

    @property
    def everywhere(self) -> Addresses:
        return self.every

    @cached_property
    def wanted(self) -> frozenset[ValueId]:
        results = Addresses(self.traced, self.program).results
        after = (results[self.successors[name]] for name in self.chosen if name in self.successors)
        return frozenset((*self.chosen.values(), *after))

    @cached_property
    def arguments(self) -> dict[str, ValueId]:
        return self.only(self.every.arguments)

    @cached_property
    def results(self) -> dict[str, ValueId]:
        return self.only(self.every.results)

    @cached_property
    def inside(self) -> dict[str, list[ValueId]]:
        return self.every.inside

    @cached_property
    def gradients(self) -> dict[str, list[ValueId]]:
        return self.every.gradients

    @cached_property
    def names(self) -> dict[ValueId, str]:
        return self.every.names

    def one(self, glob: str) -> dict[str, ValueId]:
        # A tactic may also name other values: it claims nothing for these.
        found = self.every.one(glob)
        return self.only(found) or found

    def inputs(self, given: Patterns) -> dict[str, ValueId]:
        found = self.every.inputs(given)
        return self.only(found) or found

    def only(self, names: Mapping[str, ValueId]) -> dict[str, ValueId]:
        return {name: value for name, value in names.items() if self.has(value)}

    def has(self, *values: ValueId) -> bool:
        return self.every.has(*values) and not self.wanted.isdisjoint((*values, *self.named_by(values)))

    def named_by(self, values: Iterable[ValueId]) -> Iterable[ValueId]:
        """The arguments of which these values are parts or moved copies, as inside of a loop."""
        return (found for value in values for found in arguments(self.program, value))
