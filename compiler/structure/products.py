"""Products, and the passes of a training step, in which tactics look for ranges.

dot_general of `x` and `w` in jvp(block)                  -->   a product of the forward pass, with a parameter
dot_general of `q` and `k` in transpose(jvp(attention))   -->   a product of the backward pass, of two computed values
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ...rewrites.program.breadth_first import reached
from ...rewrites.program.program import Node, NodeId, ValueId
from ..plan.addresses import argument, arguments
from ..plan.state import State

Spot = tuple[ValueId, int]
"""A parameter, and one of its dims."""


def is_product(node: Node) -> bool:
    """Whether an op sums products of two operands: some index of both operands is in no result."""
    if node.is_border or len(node.operands) != 2 or node.signature.instance.moves:
        return False
    left, right = node.signature.operand_at
    return any(at in right and sums(node, at) for at in left)


def sums(node: Node, index: int) -> bool:
    """Whether an index of an op is in no result."""
    return all(index not in at for at in node.signature.result_at)


def multiplications(node: Node) -> int:
    """The number of multiplications in a product."""
    return prod(index.extent for index in node.signature.indices)


@dataclass(frozen=True)
class Passes:
    """The forward pass of a plan's program, its parameters and its inputs."""

    plan: State

    @cached_property
    def is_differentiated(self) -> bool:
        """Whether the program contains a backward pass. If not, all ops count as forward."""
        sources = self.plan.source.traced.sources
        return any(sources.direction(op).transposed for op in sources)

    def is_forward(self, node: Node) -> bool:
        """Whether an op belongs to the forward pass."""
        return not self.is_differentiated or self.plan.source.traced.sources.direction(node.op).name == "forward"

    def is_later(self, node: Node) -> bool:
        """Whether an op belongs to the backward pass, or computes from what that gives, as an optimizer does."""
        name = self.plan.source.traced.sources.direction(node.op).name
        return name == "backward" or (not name and node.number in self.after_backward)

    @cached_property
    def after_backward(self) -> Set[NodeId]:
        """The ops downstream of the backward pass, and its own."""
        program, direction = self.plan.source.program, self.plan.source.traced.sources.direction
        backward = (node for node in program.nodes if direction(node.op).name == "backward")
        results = (value for node in backward for value in node.results)
        return {program.producer[value] for value in program.downstream(results, lambda node: True)}

    def products(self) -> Iterator[Node]:
        """The products of the forward pass, in program order."""
        return (node for node in self.plan.source.program.nodes if is_product(node) and self.is_forward(node))

    def parameter(self, value: ValueId) -> ValueId | None:
        """The first of `parameters`; None if the value is computed."""
        return argument(self.plan.source.program, value)

    def parameters(self, value: ValueId) -> Sequence[ValueId]:
        """The arguments that a value is, perhaps moved, cast, stacked, or one layer of these; none if any of it is computed."""
        return arguments(self.plan.source.program, value)

    @cached_property
    def inputs(self) -> frozenset[ValueId]:
        """The arguments that have a batch dim. What a result replaces is none, as the weights of an ensemble, or a cache."""
        source = self.plan.source
        stays = (value for value in source.program.arguments if value not in source.replaced)
        return frozenset(value for value in stays if not source.batches.isdisjoint(source.classes.dims(value)))

    def on_parameter(self, value: ValueId, dim: int) -> Spot | None:
        """The parameter that a value is, and the dim of it that this dim is; None if no single dim has the range."""
        argument, classes = self.parameter(value), self.plan.source.classes
        if argument is None:
            return None
        dims, own = classes.dims(argument), classes.of(value, dim)
        return (argument, dims.index(own)) if dims.count(own) == 1 else None

    def shared(self) -> list[Spot]:
        """Parameters with a range that products share with the other operand and keep in the result, as experts do with tokens.

        A range over which a product with a parameter sums is a width, as that of a depthwise convolution between dense layers.
        """
        found, of = dict[Spot, None](), self.plan.source.classes.of
        for node in self.products():
            for position, value in enumerate(node.operands):
                other, made = node.signature.operand_at[1 - position], node.signature.result_at[0]
                for dim, digits in enumerate(node.signature.operand_dims[position]):
                    is_shared = len(digits) == 1 and digits[0].at in other and digits[0].at in made
                    spot = self.on_parameter(value, dim) if is_shared else None
                    if spot is not None and spot[0] not in self.inputs and of(*spot) not in self.widths:
                        found[spot] = None
        return list(found)

    @cached_property
    def widths(self) -> frozenset[int]:
        """The classes of dims that a product with a parameter sums over."""
        of = self.plan.source.classes.of
        return frozenset(
            of(value, position.dim)
            for node in self.products()
            if any(self.parameter(value) is not None for value in node.operands)
            for value, at in zip(node.operands, node.signature.operand_at, strict=True)
            for index, position in at.items()
            if sums(node, index)
        )

    def first_fold(self, value: ValueId, dim: int) -> Node | None:
        """The first op of the forward pass that folds a dim of a value, or that dim in values computed from it."""
        spots = reached([(value, dim)], lambda spot: [made for _, _, spots in self.read(spot) for made in spots])
        folds = (node for spot in spots for node, folds, _ in self.read(spot) if folds)
        return min(folds, key=lambda node: node.number, default=None)

    def read(self, spot: Spot) -> Iterator[tuple[Node, bool, list[Spot]]]:
        """Yields the forward ops that read a dim of a value, whether they fold it, and where it is in their results."""
        for node, position in self.plan.source.program.reads(spot[0]):
            digits = node.signature.operand_dims[position][spot[1]]
            if len(digits) == 1 and self.is_forward(node):
                index, made = digits[0].at, zip(node.results, node.signature.result_at, strict=True)
                folds = node.signature.indices[index].folds is not None
                yield node, folds, [(result, its[index].dim) for result, its in made if index in its]
