"""Decisions as steps on the arrays of one device, in the order in which lowering writes them.

Redistributions come before their first use, and each of their steps makes an array. A product copies an operand whose dims are
in another order than XLA:CPU multiplies: a product takes `lhs[batch.., m.., k..]` and `rhs[batch.., k.., n..]`; a convolution
takes images `[n, p.., c]` and kernels `[q.., c, o]`, and makes `[n, p.., o]`. A matrix that is transposed as a whole is not
copied.

    %h = dot %x %w, %h {+model}; %y = tanh %h
        -->   CALL dot: x, w -> h;  CALL all_reduce: h -> h';  MAP tanh: h' -> y
    dot lhs[b, t, d] rhs[b, t, f] over b, t   -->   lhs is copied to [d, b, t]; rhs is [b, t, f] as it is
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from ...dialects.layouts import Layout
from ...dialects.params import ParamsAttr, Record
from ...rewrites.decide.decide import Decisions, Move
from ...rewrites.decide.placements import OpPlacement, boundary
from ...rewrites.lower.transposed_products import product_of
from ...rewrites.lower.walk import Walk
from ...rewrites.program.program import Control, Node, Signature, SubIndices, ValueId
from .kinds import Kind, Traits, traits
from .live_ranges import STACK, TRANSPOSED
from .local_arrays import LocalArray, MemoryStep, RegionSteps

CALL, MAP, UPDATE, REGIONS = (Traits(kind) for kind in (Kind.CALL, Kind.MAP, Kind.UPDATE, Kind.REGIONS))
COPY = Traits(Kind.MAP, elementwise=False)


def steps(decisions: Decisions) -> RegionSteps:
    """The program as steps, with its arguments and its results."""
    return _Steps(decisions).main()


class _Steps(Walk[LocalArray]):
    """What stands for a value is its array on one device."""

    def __init__(self, decisions: Decisions) -> None:
        super().__init__(decisions)
        self.copies: dict[tuple[LocalArray, tuple[int, ...]], LocalArray] = {}
        self.steps: list[MemoryStep] = []
        self.makers: dict[LocalArray, MemoryStep] = {}
        self.traits: dict[Signature, Traits] = {}
        self.sizes: dict[int, Sequence[int]] = {}
        """The bytes of an op's results, by its placement. Ops of one signature that are placed alike share that."""

    def main(self) -> RegionSteps:
        given = [self.array(value, boundary(self.placements, value), given=True) for value in self.program.arguments]
        for array in given:
            self.define(array.value, array)
        self.body(0)
        return RegionSteps(self.steps, given, self.returned(), self.makers)

    def array(self, value: ValueId, layout: Layout, form: str = "", given: bool = False) -> LocalArray:
        return LocalArray(self.placements.local_bytes(value, layout), value, form, given)

    def add(
        self, traits: Traits, name: str, reads: Sequence[LocalArray], makes: Sequence[LocalArray], node: int = -1
    ) -> MemoryStep:
        step = MemoryStep(traits, name, reads, makes, node)
        for array in makes:
            self.makers[array] = step
        self.steps.append(step)
        return step

    def moves(self, moves: Sequence[Move], starts: Sequence[LocalArray]) -> Iterable[LocalArray]:
        return map(self.settled, moves, starts)

    def settled(self, move: Move, made: LocalArray) -> LocalArray:
        for step in move.path.steps:
            start, made = made, self.array(move.value, step.after, step.kind)
            self.add(CALL if step.communicates else COPY, step.kind, [start], [made])
        return made

    # --- ops -------------------------------------------------------------------------------------------------------

    def op(self, nodes: Sequence[Node]) -> None:
        if len(nodes) > 1:
            for each in nodes:
                self.same(each, self.reads(each)[0])
            return
        (node,) = nodes
        found = self.traits.get(node.signature)
        if found is None:
            found = self.traits[node.signature] = traits(node.signature.definition)
        reads = self.reads(node)
        if node.kind == "transpose" and self.is_absorbed(node):
            self.same(node, reads[0])
            return
        placed = self.placements.nodes[node.number]
        sizes = self.sizes.get(id(placed))
        if sizes is None:
            of_each = zip(node.results, placed.produced, strict=True)
            sizes = self.sizes[id(placed)] = [self.placements.local_bytes(value, layout) for value, layout in of_each]
        makes = [LocalArray(size, value) for size, value in zip(sizes, node.results, strict=True)]
        if found.kind is Kind.SAME and len(reads) == 1:
            if reads[0].bytes == makes[0].bytes:
                self.same(node, reads[0])
                return
            found = COPY
        if found.kind is Kind.CALL:
            self.call(node, placed, found, reads, makes)
        else:
            self.add(found, node.kind, reads, makes, node.number)
        for array in makes:
            self.define(array.value, array)

    def call(
        self, node: Node, placed: OpPlacement, traits: Traits, reads: Sequence[LocalArray], makes: Sequence[LocalArray]
    ) -> None:
        """A call, between the copies that it needs."""
        reads = [self.sliced(each, layout) for each, layout in zip(reads, placed.wanted, strict=True)]
        orders, made = copied(node, placed, self.is_swapped(node)), makes
        if orders is not None:
            reads = [self.copy(*each) for each in zip(reads, orders.operands, strict=True)]
            made = [LocalArray(each.bytes, each.value, TRANSPOSED) for each in makes] if orders.result else makes
        self.add(traits, node.kind, reads, made, node.number)
        if made is not makes:
            self.add(COPY, TRANSPOSED, made, makes)

    def is_absorbed(self, node: Node) -> bool:
        """Whether a transpose is lowered as the product that it reads, with exchanged operands."""
        if node.kind != "transpose" or product_of(node.op) is None:
            return False
        return (node.number, 0) not in self.decisions.at_use and node.operands[0] not in self.decisions.homes

    def is_swapped(self, node: Node) -> bool:
        """Whether a product is lowered with exchanged operands, because only an absorbed transpose reads it."""
        readers = (number for value in node.results for number, _ in self.program.uses[value])
        return any(self.is_absorbed(self.program.nodes[number]) for number in readers)

    def same(self, node: Node, array: LocalArray) -> None:
        """Defines a result that has the bytes of an operand."""
        (value,) = node.results
        self.define(value, LocalArray(array.bytes, value, same_as=array))

    def sliced(self, array: LocalArray, wanted: Layout) -> LocalArray:
        """An operand of a call, sliced before the call if it is larger than the part that the call reads."""
        if self.placements.local_bytes(array.value, wanted) >= array.bytes:
            return array
        made = self.array(array.value, wanted, "sliced")
        self.add(COPY, "slice", [array], [made])
        return made

    def copy(self, array: LocalArray, order: tuple[int, ...]) -> LocalArray:
        """The array with its dims in this order, or as it is for an empty order; products that need the same copy share it."""
        if not order:
            # A product can also read the untransposed matrix instead of its transpose.
            maker, is_matrix = self.makers.get(array.origin), len(self.program.shape(array.value)) == 2
            return maker.reads[0] if is_matrix and maker is not None and maker.name == "transpose" else array
        key = array.origin, order
        found = self.copies.get(key)
        if found is None:
            found = self.copies[key] = LocalArray(array.bytes, array.value, TRANSPOSED)
            self.add(COPY, TRANSPOSED, [array], [found])
        return found

    # --- loops and branches ----------------------------------------------------------------------------------------

    def control(self, control: Control) -> None:
        reads = [self.read(node.operands[0], node.number, 0) for node in control.enters]
        entered = {value: (node, array) for node, array in zip(control.enters, reads, strict=True) for value in node.results}
        bodies = [self.inner(control, position, entered) for position in range(len(control.regions))]
        makes = [
            self.array(made.results[0], self.placements.nodes[made.number].produced[0], STACK if made.kind == "collect" else "")
            for made, _ in control.leaves
        ]
        self.add(REGIONS, control.op.name, reads, makes).bodies = bodies
        for (_, node), array in zip(control.leaves, makes, strict=True):
            self.leave(node, array)

    def inner(self, control: Control, position: int, entered: dict[ValueId, tuple[Node, LocalArray]]) -> RegionSteps:
        """One region: what enters it, its steps, and what it yields."""
        outer, self.steps = self.steps, []
        copies, self.copies = self.copies, {}
        is_loop = control.op.name != "lax.cond"
        body = RegionSteps(self.steps, [], [], self.makers, is_loop=is_loop, region=control.regions[position])
        for argument in control.op.regions[position].block.args:
            value = self.program.numbers[argument]
            self.enter(value, *entered[value], body)
        self.body(control.regions[position])
        for node, at in control.yields[position]:
            read = self.read(node.operands[at], node.number, at)
            if node.kind == "collect":
                # The array to which each trip adds a row is stored outside of the loop.
                made = LocalArray(0, read.value)
                self.add(UPDATE, "collect", [read], [made])
                read = made
            body.results.append(read)
        self.steps, self.copies = outer, copies
        return body

    def enter(self, value: ValueId, node: Node, outside: LocalArray, body: RegionSteps) -> None:
        """Defines a value that enters a region: the array outside itself, a row of it, or a carry."""
        array = self.array(value, self.placements.nodes[node.number].produced[node.results.index(value)])
        if node.kind == "carry" or (node.kind == "enter" and array.bytes == outside.bytes):
            array.given = True
            body.given.append(array)
            body.carries += [array] if node.kind == "carry" else []
        else:
            whole = LocalArray(0, node.operands[0], given=True)
            body.given.append(whole)
            self.add(COPY, node.kind, [whole], [array])
        self.define(value, array)


Order = tuple[int, ...]
"""The dims in the order of a copy; empty if there is no copy."""


class Copies(NamedTuple):
    """The copies of a product's operands, and whether its result is copied."""

    operands: tuple[Order, ...]
    result: bool


def copied(node: Node, placed: OpPlacement, swapped: bool) -> Copies | None:
    """The copies that an op needs; None if it is not a product. `swapped` if it is lowered with its operands exchanged."""
    params = cast(ParamsAttr, node.op.properties["params"]) if "params" in node.op.properties else None
    if node.kind == "conv_general_dilated" and params is not None:
        numbers = cast(Record, params["dimension_numbers"])
        (n, c, *p), (o, i, *q), (m, f, *r) = (
            cast("tuple[int, ...]", numbers[name]) for name in ("lhs_spec", "rhs_spec", "out_spec")
        )
        kept = zip([(n, *p, c), (*q, i, o), (m, *r, f)], (*placed.wanted, placed.produced[0]), strict=True)
        image, kernel, result = (_sorted(*each) for each in kept)
        return Copies((image, kernel), bool(result))
    if node.kind != "dot_general":
        return None
    lhs, rhs = (_indices(*each) for each in zip(node.signature.operand_dims, placed.wanted, strict=True))
    out = _indices(node.signature.result_dims[0], placed.produced[0])
    batch = [index for index in out if index in lhs and index in rhs]
    folded = [index for index in lhs if index not in out]
    left, right = (rhs, lhs) if swapped else (lhs, rhs)
    rows = [index for index in out if index in left and index not in right]
    columns = [index for index in out if index in right and index not in left]
    orders = _order(left, [*batch, *rows, *folded], batch), _order(right, [*batch, *folded, *columns], batch)
    return Copies(orders[::-1] if swapped else orders, False)


def _indices(dims: SubIndices, layout: Layout) -> list[int]:
    """The major index of each dim that has more than one element on a device."""
    return [digits[0].at for digits, extent in zip(dims, layout.local_shape, strict=True) if digits and extent != 1]


def _order(has: list[int], wanted: list[int], batch: list[int]) -> Order:
    if has == wanted or (len(has) == 2 and not batch):
        return ()
    return tuple(has.index(index) for index in wanted if index in has)


def _sorted(order: Order, layout: Layout) -> Order:
    """The order; empty if no dim of more than one element changes its place."""
    shape = layout.local_shape
    moved = [dim for dim in order if shape[dim] != 1]
    return () if moved == sorted(moved) else order
