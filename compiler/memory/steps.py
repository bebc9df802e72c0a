"""Decisions as steps on the arrays of one device, in the order in which lowering writes them.

Redistributions come before their first use, and each of their steps makes an array. A product copies an operand whose dims are
in another order than XLA:CPU multiplies.

    %h = dot %x %w, %h {+model}; %y = tanh %h
        -->   CALL dot: x, w -> h;  CALL all_reduce: h -> h';  MAP tanh: h' -> y
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.layouts import Layout
from ...rewrites.decide.decide import Decisions, Move
from ...rewrites.decide.op_layouts import boundary
from ...rewrites.lower.swapped import product_of
from ...rewrites.program.program import Control, Node, Signature
from .kinds import Kind, Traits, traits
from .live_ranges import STACK
from .local_arrays import Body, LocalArray, Step
from .order import TRANSPOSED
from .products import copied

CALL, MAP, UPDATE, REGIONS = (Traits(kind) for kind in (Kind.CALL, Kind.MAP, Kind.UPDATE, Kind.REGIONS))
COPY = Traits(Kind.MAP, elementwise=False)


def steps(decisions: Decisions) -> Body:
    """The program as steps, with its arguments and its results."""
    return _Walk(decisions).main()


class _Walk:
    """One walk in program order. `values` has the array of each value, `moved` that of each move."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.placements = decisions.placements
        self.program = decisions.placements.program
        self.values: dict[int, LocalArray] = {}
        self.moved: dict[Move, LocalArray] = {}
        self.copies: dict[tuple[LocalArray, tuple[int, ...]], LocalArray] = {}
        self.steps: list[Step] = []
        self.makers: dict[LocalArray, Step] = {}
        self.traits: dict[Signature, Traits] = {}
        self.entries = self.program.entries()
        self.moving = {number for number, _ in decisions.at_use}
        """The ops that read a value elsewhere than where it is made: few of them do."""

    def main(self) -> Body:
        program = self.program
        given = [self.array(value, boundary(self.placements, value), given=True) for value in program.arguments]
        for array in given:
            self.define(array.value, array)
        self.region(0)
        end = len(program.nodes)
        results = [self.read(value, end, at) for at, value in enumerate(program.returned)]
        return Body(self.steps, given, results, self.makers)

    def array(self, value: int, layout: Layout, form: str = "", given: bool = False) -> LocalArray:
        return LocalArray(self.placements.local_bytes(value, layout), value, form, given)

    def add(self, traits: Traits, name: str, reads: Sequence[LocalArray], makes: Sequence[LocalArray], node: int = -1) -> Step:
        step = Step(traits, name, reads, makes, node)
        for array in makes:
            self.makers[array] = step
        self.steps.append(step)
        return step

    def region(self, region: int) -> None:
        for entry in self.entries[region]:
            if isinstance(entry, Node):
                self.node(entry)
            else:
                self.control(entry)

    # --- values and moves ------------------------------------------------------------------------------------------

    def define(self, value: int, array: LocalArray) -> None:
        home = self.decisions.homes.get(value)
        self.values[value] = array if home is None else self.move(home, array)

    def read(self, value: int, number: int, position: int) -> LocalArray:
        move = self.decisions.at_use.get((number, position))
        return self.values[value] if move is None else self.moved_value(move)

    def reads(self, node: Node) -> list[LocalArray]:
        if node.number not in self.moving:
            return [self.values[value] for value in node.operands]
        return [self.read(value, node.number, at) for at, value in enumerate(node.operands)]

    def moved_value(self, move: Move) -> LocalArray:
        if move not in self.moved:
            for each in move.together or (move,):
                start = self.values[each.value] if each.before is None else self.moved_value(each.before)
                self.moved[each] = self.move(each, start)
        return self.moved[move]

    def move(self, move: Move, array: LocalArray) -> LocalArray:
        for step in move.path.steps:
            made = self.array(move.value, step.after, step.kind)
            self.add(CALL if step.communicates else COPY, step.kind, [array], [made])
            array = made
        return array

    # --- ops -------------------------------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        together = self.program.together(node)
        if node is not together[0]:
            return
        if len(together) > 1:
            for each in together:
                self.same(each, self.read(each.operands[0], each.number, 0))
            return
        found = self.traits.get(node.signature)
        if found is None:
            found = self.traits[node.signature] = traits(node.signature.instance.definition)
        reads = self.reads(node)
        if self.is_absorbed(node):
            self.same(node, reads[0])
            return
        placed = self.placements.nodes[node.number]
        makes = [self.array(value, layout) for value, layout in zip(node.results, placed.produced, strict=True)]
        if found.kind is Kind.SAME and len(reads) == 1:
            if reads[0].bytes == makes[0].bytes:
                self.same(node, reads[0])
                return
            found = COPY
        if found.kind is Kind.CALL:
            reads = [self.sliced(each, layout) for each, layout in zip(reads, placed.wanted, strict=True)]
        orders = copied(node, placed, self.is_swapped(node)) if found.kind is Kind.CALL else None
        if orders is None:
            self.add(found, node.kind, reads, makes, node.number)
        else:
            self.product(
                node, found, [self.copy(*each) for each in zip(reads, orders.operands, strict=True)], makes, orders.result
            )
        for value, made in zip(node.results, makes, strict=True):
            self.define(value, made)

    def is_absorbed(self, node: Node) -> bool:
        """Whether a transpose is lowered as the product that it reads, with the operands of that exchanged."""
        if node.kind != "transpose" or product_of(node.op) is None:
            return False
        return (node.number, 0) not in self.decisions.at_use and node.operands[0] not in self.decisions.homes

    def is_swapped(self, node: Node) -> bool:
        """Whether a product is lowered with its operands exchanged, so that it is the transpose which reads it."""
        readers = (number for value in node.results for number, _ in self.program.uses[value])
        return any(self.is_absorbed(self.program.nodes[number]) for number in readers)

    def same(self, node: Node, array: LocalArray) -> None:
        """A result that has the bytes of an operand."""
        (value,) = node.results
        self.define(value, LocalArray(array.bytes, value, same_as=array))

    def sliced(self, array: LocalArray, wanted: Layout) -> LocalArray:
        """An operand of a call, which is sliced before the call if it has more than the call reads."""
        if self.placements.local_bytes(array.value, wanted) >= array.bytes:
            return array
        made = self.array(array.value, wanted, "sliced")
        self.add(COPY, "slice", [array], [made])
        return made

    def product(self, node: Node, found: Traits, reads: list[LocalArray], makes: list[LocalArray], copies: bool) -> None:
        """A product, and the copy of its result if its dims are in another order."""
        raw = [LocalArray(each.bytes, each.value, TRANSPOSED) for each in makes] if copies else makes
        self.add(found, node.kind, reads, raw, node.number)
        if copies:
            self.add(COPY, TRANSPOSED, raw, makes)

    def copy(self, array: LocalArray, order: tuple[int, ...]) -> LocalArray:
        """The array with its dims in an order, as it is for none; products that need the same copy share it."""
        if not order:
            return self.untransposed(array)
        key = array.origin, order
        found = self.copies.get(key)
        if found is None:
            found = self.copies[key] = LocalArray(array.bytes, array.value, TRANSPOSED)
            self.add(COPY, TRANSPOSED, [array], [found])
        return found

    def untransposed(self, array: LocalArray) -> LocalArray:
        """The matrix of which a matrix is the transpose, since a product reads it as well; another array itself."""
        maker, is_matrix = self.makers.get(array.origin), len(self.program.shape(array.value)) == 2
        return maker.reads[0] if is_matrix and maker is not None and maker.name == "transpose" else array

    # --- loops and branches ----------------------------------------------------------------------------------------

    def control(self, control: Control) -> None:
        reads = [self.read(node.operands[0], node.number, 0) for node in control.enters]
        entered = {value: (node, array) for node, array in zip(control.enters, reads, strict=True) for value in node.results}
        bodies = [self.body(control, position, entered) for position in range(len(control.regions))]
        makes = [self.leaving(made) for made, _ in control.leaves]
        self.add(REGIONS, control.op.name, reads, makes).bodies = bodies
        for (_, node), array in zip(control.leaves, makes, strict=True):
            move = self.decisions.at_use.get((node.number, 0)) if self.program.from_outside(node.number, 0) else None
            self.define(node.results[0], array if move is None else self.move(move, array))

    def leaving(self, node: Node) -> LocalArray:
        """A result of a loop or a `cond`."""
        layout = self.placements.nodes[node.number].produced[0]
        return self.array(node.results[0], layout, STACK if node.kind == "collect" else "")

    def body(self, control: Control, position: int, entered: dict[int, tuple[Node, LocalArray]]) -> Body:
        """One region: what enters it, its steps, and what it yields."""
        outer, self.steps = self.steps, []
        copies, self.copies = self.copies, {}
        is_loop = control.op.name != "lax.cond"
        body = Body(self.steps, [], [], self.makers, is_loop=is_loop, region=control.regions[position])
        for argument in control.op.regions[position].block.args:
            value = self.program.numbers[argument]
            self.enter(value, *entered[value], body)
        self.region(control.regions[position])
        for node, at in control.yields[position]:
            read = self.read(node.operands[at], node.number, at)
            body.results.append(self.stacked(read) if node.kind == "collect" else read)
        self.steps, self.copies = outer, copies
        return body

    def enter(self, value: int, node: Node, outside: LocalArray, body: Body) -> None:
        """What enters a region: the array outside itself, a row of it, or a carry."""
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

    def stacked(self, array: LocalArray) -> LocalArray:
        """What a trip adds to the results of all trips, which are stored outside of the loop."""
        made = LocalArray(0, array.value)
        self.add(UPDATE, "collect", [array], [made])
        return made
