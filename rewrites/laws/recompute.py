"""`recompute`: the backward pass computes values again, so that they are not stored from the forward pass until then.

    %h = tanh %x; ...; %g = mul %dy, %h
        -->   ...; %x', %dy' = optimization_barrier %x, %dy; %h' = tanh %x'; %g = mul %dy', %h'

The barrier ties the second computation to a value that the backward pass has by then; otherwise XLA would merge both
computations. Values are computed again from values that are stored in any case: arguments, and other values that the backward
pass reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ...dialects.lax import OPS
from ..emit import again
from ..program.breadth_first import reached
from ..program.program import NO_NODE, Node, NodeId, Program, ValueId
from .law import Site
from .module_copy import Before, Draft


@dataclass(frozen=True, slots=True)
class Recompute:
    """The law for a program some of whose ops are its backward pass.

    With `closed` parts, values that other forward ops read stay stored, and nothing before a part is computed again: a layer is
    computed again from its inputs.
    """

    backward: frozenset[NodeId]
    """The numbers of the ops of the backward pass."""
    part: Mapping[NodeId, str]
    """For the op of each value to recompute, the name of the part that it belongs to. A part is recomputed together."""
    closed: bool
    name: str = "recompute"
    text: str = "recompute: x => x, computed again where the backward pass reads it"

    def sites(self, program: Program) -> Iterator[Site]:
        for number in self.part:
            node = program.nodes[number]
            for value in node.results if self.is_forward(program, node) else ():
                if self.late(program, value) and not (self.closed and self.leaves(program, value)):
                    yield Site(value)

    def is_forward(self, program: Program, node: Node) -> bool:
        """Whether an op runs forward, and can be run again."""
        return node.number not in self.backward and self.runs_again(program, node)

    def runs_again(self, program: Program, node: Node) -> bool:
        """Whether an op is no border, and is the only node of its op."""
        return not node.is_border and program.together(node) == [node]

    def leaves(self, program: Program, value: ValueId) -> bool:
        """Whether a forward op outside of the part reads a value, or the program returns it."""
        part = self.part.get(program.producer[value])
        uses = [number for number, _ in program.uses[value] if number not in self.backward]
        return value in program.returned or any(self.part.get(number) != part for number in uses)

    def late(self, program: Program, value: ValueId) -> list[tuple[NodeId, int]]:
        """The uses of a value by the backward pass, in the value's region."""
        return [(number, at) for number, at in uses_inside(program, value) if number in self.backward]

    def apply(self, program: Program, draft: Draft, sites: Sequence[Site]) -> None:
        values = {site.value for site in sites}
        parts: dict[tuple[int, str], list[ValueId]] = {}
        for value in sorted(values):
            parts.setdefault((program.region[value], self.part[program.producer[value]]), []).append(value)
        for part in parts.values():
            for some in self.passes(program, part):
                Again(self, program, draft, values, some).write()

    def passes(self, program: Program, values: Sequence[ValueId]) -> list[list[ValueId]]:
        """Groups the values by forward pass.

        A value made after the backward pass of others has begun belongs to a later pass.
        """
        found, begun = list[list[ValueId]](), NO_NODE
        for value in values:
            first = min(number for number, _ in self.late(program, value))
            if program.producer[value] > begun:
                found.append([])
                begun = first
            found[-1].append(value)
            begun = min(begun, first)
        return found


@dataclass(slots=True)
class Again:
    """The recomputation of one part."""

    law: Recompute
    program: Program
    draft: Draft
    values: set[ValueId]
    """All values that are no longer stored, including those of other parts."""
    some: Sequence[ValueId]
    made: dict[ValueId, SSAValue] = field(default_factory=dict[ValueId, SSAValue])

    def write(self) -> None:
        late = {value: self.law.late(self.program, value) for value in self.some}
        first = self.program.nodes[min(number for uses in late.values() for number, _ in uses)]
        order = self.order()
        before = Before(self.draft, self.draft.ops[first.op])
        self.bar(first, before, order)
        for value in order:
            self.compute(value, before)
        for value, uses in late.items():
            for number, at in uses:
                self.draft.ops[self.program.nodes[number].op].operands[at] = self.made[value]

    def order(self) -> list[ValueId]:
        """The values to compute, each after those that it is computed from."""
        return sorted(reached(self.some, lambda value: filter(self.is_computed, self.program.made_of(value))))

    def node(self, value: ValueId) -> Node:
        return self.program.made_by(value)

    def is_computed(self, value: ValueId) -> bool:
        """Whether a value must be computed again because it is not stored."""
        if self.program.producer[value] < 0 or not self.law.is_forward(self.program, self.node(value)):
            return False
        if self.node(value).op_name == "constant":
            return True
        if self.program.region[value] != self.program.region[self.some[0]]:
            return False
        if self.law.closed:
            part = self.law.part.get(self.program.producer[value])
            own = part == self.law.part[self.program.producer[self.some[0]]]
            return own and not self.law.leaves(self.program, value)
        return value in self.values or not self.law.late(self.program, value)

    def bar(self, first: Node, before: Before, order: Sequence[ValueId]) -> None:
        """Reads stored values behind a barrier, together with the backward pass's last result, so that nothing is computed
        earlier."""
        read = dict.fromkeys(each for value in order for each in self.node(value).operands if each not in order)
        just = self.just_made(first)
        ins = [self.draft[value] for value in (*read, *just)]
        op = OPS["optimization_barrier"].of(ins, [self.program.types[value] for value in (*read, *just)])
        before.append(op)
        self.made.update(zip(read, op.results, strict=False))
        for value, out in zip(just, op.results[len(read) :], strict=True):
            for number, at in uses_inside(self.program, value):
                if first.number <= number:
                    self.draft.ops[self.program.nodes[number].op].operands[at] = out

    def just_made(self, first: Node) -> list[ValueId]:
        """The last value that the backward pass makes before an op and reads from there on; empty if there is none."""
        program = self.program
        for node in reversed(program.nodes[: first.number]):
            if node.number in self.law.backward and node.region == first.region and self.law.runs_again(program, node):
                for value in node.results:
                    if any(number in self.law.backward and number >= first.number for number, _ in uses_inside(program, value)):
                        return [value]
        return []

    def compute(self, value: ValueId, before: Before) -> None:
        """Computes a value again.

        An op that only names a value is skipped, because the name belongs to the first computation.
        """
        node = self.node(value)
        if node.signature.instance.moves and node.params.get("name") is not None:
            self.made[value] = self.made[node.operands[0]]
        if value not in self.made:
            op = again(node.op, [self.made[each] for each in node.operands], node.op.result_types)
            before.append(op)
            self.made.update(zip(node.results, op.results, strict=True))


def uses_inside(program: Program, value: ValueId) -> Iterator[tuple[NodeId, int]]:
    """Yields the uses of a value by ops of its own region, without loops and branches."""
    for number, at in program.uses[value]:
        node = program.nodes[number]
        if not node.is_border and node.region == program.region[value] and program.together(node) == [node]:
            yield number, at
