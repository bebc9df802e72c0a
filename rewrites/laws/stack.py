"""`stack`: computes several products with the same left side as one product, whose right sides are stacked.

    %q = dot_general %x, %wq; %k = dot_general %x, %wk
        -->   %s = concatenate %wq, %wk; %qk = dot_general %x, %s; two slices of it

The right sides are stacked along a new dim, so a tiling of their own dims also tiles the stack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import SSAValue

from ...dialects.params import Literal
from ..emit import Emitter, type_at
from ..program.program import Node, Program
from .law import Site
from .module_copy import Before, Draft
from .rule_ops import PRODUCT


@dataclass(frozen=True, slots=True)
class Stack:
    """The law for products of one value with several values of one type, all computed before the first product."""

    name: str = "stack"
    text: str = "stack: dot(x, y), dot(x, z) => the parts of dot(x, y and z stacked)"

    def sites(self, program: Program) -> Iterator[Site]:
        for nodes in self.alike(program):
            first, *others = (node.results[0] for node in nodes)
            yield Site(first, tuple(others))

    def alike(self, program: Program) -> list[list[Node]]:
        """The groups of products that can be stacked, in program order."""
        found: defaultdict[object, list[Node]] = defaultdict(list)
        for node in program.nodes:
            if node.op_name == PRODUCT:
                lhs, rhs = node.operands
                key = (lhs, program.types[rhs], program.types[node.results[0]], node.op.properties["params"], node.region)
                some = found[key]
                if not some or (program.producer[rhs] < some[0].number and rhs not in (each.operands[1] for each in some)):
                    some.append(node)
        return [nodes for nodes in found.values() if len(nodes) > 1]

    def apply(self, program: Program, draft: Draft, sites: Sequence[Site]) -> None:
        chosen = {site.value for site in sites}
        for nodes in self.alike(program):
            if nodes[0].results[0] in chosen:
                self.write(program, draft, nodes)

    def write(self, program: Program, draft: Draft, nodes: Sequence[Node]) -> None:
        first = nodes[0]
        emit = Emitter(Before(draft, draft.ops[first.op]))
        stacked = _stacked(emit, [draft[node.operands[1]] for node in nodes])
        (lhs, rhs), (batch, other) = cast("tuple[tuple[tuple[int, ...], ...], ...]", first.params["dimension_numbers"])
        # Behind the dim of the stack.
        numbers: Literal = ((lhs, tuple(dim + 1 for dim in rhs)), (batch, tuple(dim + 1 for dim in other)))
        shape, at = program.shape(first.results[0]), len(program.shape(first.operands[0])) - len(lhs)
        made = emit.make(
            PRODUCT,
            (draft[first.operands[0]], stacked),
            program.types[first.results[0]].dtype,
            (*shape[:at], len(nodes), *shape[at:]),
            **{**dict(first.params.items()), "dimension_numbers": numbers},
        )
        for number, node in enumerate(nodes):
            draft.replace(node.results[0], emit.reshape(emit.part(made, at, number), shape))


def _stacked(emit: Emitter, arrays: Sequence[SSAValue]) -> SSAValue:
    type = type_at(arrays[0])
    rows = [emit.spread(array, (1, *type.shape), tuple(range(1, len(type.shape) + 1))) for array in arrays]
    return emit.concatenate(rows, 0)
