"""Cuts a device-local program at changes of layout, into the runs of ops between them.

What crosses a cut is a value of the graph, so it has a type there: how it is placed. A stack of what trips have, which a later
loop reads, has none, so nothing is cut between the two loops.

    a; change; b; change; c   -->   run {a}, change, run {b}, change, run {c}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, cast

from xdsl import irdl
from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import spmd
from ...dialects.lax import ConstantOp
from ...dialects.mesh import Mesh
from ...dialects.op_text import ArrayOp
from ...dialects.types import ArrayType
from ..emit import again
from ..redistribute.steps import Path
from ..rewire import rewire
from .constructors import Types, returned
from .local_redistribution import redistributed

Typed: TypeAlias = tuple[SSAValue, ArrayType]
"""A device's part of a value, and the type of the value."""


@irdl.irdl_op_definition
class ChangeOp(ArrayOp):
    """A redistribution in a device-local program."""

    name = "flow.change"
    ins = irdl.var_operand_def(ArrayType)
    outs = irdl.var_result_def(ArrayType)
    number = irdl.prop_def(IntAttr)


CUTS = ChangeOp, spmd.BarrierOp
"""What may cut a program."""


class Change(NamedTuple):
    """The types of values before and after a redistribution, and the path of one that takes another than the cheapest.

    A transfer goes to another device set.
    """

    before: Types
    after: Types
    way: Path | None = None
    is_transfer: bool = False


@dataclass(eq=False, slots=True)
class Run:
    """What a device computes in one kernel: its operands by first use, and its results.

    Each kernel has its own constants, at its beginning, in the order in which they are read. So equal layers have equal
    kernels, and no node waits for a constant.
    """

    ops: list[Operation] = field(default_factory=list[Operation])
    ins: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    constants: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])
    """The constants that it reads or returns -> whether each is its own."""
    readers: list[Operation] = field(default_factory=list[Operation])
    """The ops that read operands or constants."""
    outs: dict[Typed, None] = field(default_factory=dict[Typed, None])
    on: Mesh | None = None
    """The device set on which it runs."""

    @property
    def is_needed(self) -> bool:
        return bool(self.outs) or not all(type(op) is ConstantOp for op in self.ops)

    def body(self, outs: Sequence[Typed]) -> Block:
        """The body of the kernel's function. It takes the ops from where they are."""
        block, own = Block(arg_types=[value.type for value in self.ins]), dict[tuple[Attribute, Attribute], Operation]()
        values = dict[SSAValue, SSAValue](zip(self.ins, block.args, strict=True))
        for op in self.ops:
            op.detach()
        for value, is_own in self.constants.items():
            op = cast(ConstantOp, value.owner)
            if (key := (op.params, value.type)) not in own:
                own[key] = op if is_own else again(op, (), op.result_types)
            values[value] = own[key].results[0]
        block.add_ops(own.values())
        block.add_ops(op for op in self.ops if type(op) is not ConstantOp)
        for op in self.readers:
            rewire(op, values)
        block.add_op(returned([values.get(value, value) for value, _ in outs]))
        return block


class Runs:
    """A block, cut. Its `nodes` are runs and what cuts: changes, and perhaps barriers. There is a run before each.

    Ops of several device sets are collected to a run on each. It ends where another set needs what it makes.
    """

    def __init__(
        self,
        block: Block,
        types: dict[SSAValue, ArrayType],
        changes: Sequence[Change],
        ends: Sequence[Typed],
        cutting: tuple[type[Operation], ...],
        sets: Mapping[Operation, Mesh],
        where: Mapping[SSAValue, Mesh],
        *,
        has_loops: bool,
    ) -> None:
        self.types, self.changes, self.cutting, self.sets, self.where = types, changes, cutting, sets, where
        self.written = dict[SSAValue, SSAValue]()
        """What changes that do not cut make -> the same, written as what a device does."""
        cuts = self.cuts(block) if has_loops else None
        if cuts is not None:
            for op in [op for op in block.walk() if isinstance(op, ChangeOp) and op not in cuts]:
                self.expand(op)
        self.nodes = list[Run | Operation]()
        self.maker = dict[SSAValue, Run | Operation]()
        """Values -> the node that makes each; block arguments are left out."""
        self.open = dict[Mesh | None, Run]()
        self.place = dict[Run | Operation, int]()
        """Where each node is among all."""
        for op in block.ops:
            if type(op) in cutting and (cuts is None or op in cuts):
                self.close(self.source(op))
                node = op
                self.add(op)
            else:
                node = self.run_on(sets.get(op))
                node.ops.append(op)
            for value in op.results:
                self.maker[value] = node
        self.ends = [(self.written.get(value, value), type) for value, type in ends]
        for on in dict.fromkeys([*self.open, *(where.get(value) for value, _ in self.ends)]) or [None]:
            self.close(on)
        self.link()

    def run_on(self, on: Mesh | None) -> Run:
        """The run on a device set that has not ended yet."""
        if on not in self.open:
            self.open[on] = Run(on=on)
        return self.open[on]

    def close(self, on: Mesh | None) -> None:
        """Ends a run. Nothing that it reads comes later, and what reads it does."""
        self.add(self.run_on(on))
        del self.open[on]

    def add(self, node: Run | Operation) -> None:
        self.place[node] = len(self.nodes)
        self.nodes.append(node)

    def source(self, op: Operation) -> Mesh | None:
        """The device set of what a change or a barrier reads."""
        if isinstance(op, ChangeOp) and self.changes[op.number.data].is_transfer:
            return self.where[op.operands[0]]
        return self.sets.get(op)

    # --- where to cut ------------------------------------------------------------------------------------------------

    def cuts(self, block: Block) -> set[Operation]:
        """The changes and barriers outside of trips that no value without a type crosses."""
        numbers, reach, cuts = {op: number for number, op in enumerate(block.ops)}, -1, set[Operation]()
        for op, number in numbers.items():
            if type(op) in self.cutting and reach <= number and self.types.keys() >= {*op.operands, *op.results}:
                cuts.add(op)
            for value in op.results if type(op) is not ConstantOp else ():
                if value not in self.types:
                    reach = max((reach, *(numbers[use.operation] for use in value.uses)))
        return cuts

    def expand(self, op: ChangeOp) -> None:
        """Writes a change as what a device does."""
        change, into = self.changes[op.number.data], Block()
        made = redistributed(op.operands, change.before, change.after, into, change.way)
        for each in list(into.ops):
            each.detach()
            cast(Block, op.parent).insert_op_before(each, op)
        self.types.update(zip(made, change.after, strict=True))
        self.written.update(zip(op.results, made, strict=True))
        for old, new in zip(op.results, made, strict=True):
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()

    # --- what crosses the cuts ---------------------------------------------------------------------------------------

    def link(self) -> None:
        """Gives runs their operands and results."""
        for node in self.nodes:
            if isinstance(node, Run):
                for op in node.ops:
                    if True in [self.read(value, node) for value in op.operands]:
                        node.readers.append(op)
            else:
                for each in self.reads(node):
                    self.want(each, self.place[node])
        for each in self.ends:
            self.want(each, len(self.nodes))

    def read(self, value: SSAValue, run: Run) -> bool:
        """Records that a run reads a value. Returns whether another value stands for it in the kernel."""
        is_own = self.maker.get(value) is run
        if type(value.owner) is ConstantOp and (is_own or self.types.get(value, value.type) is value.type):
            run.constants[value] = is_own
            return True
        if not is_own and value not in run.ins:
            run.ins[value] = None
            self.want((value, self.types[value]), self.place[run])
        return not is_own

    def want(self, each: Typed, at: int) -> None:
        """A value is to be there before a node. One of another type than it was made with is a result of the run before it."""
        value, type = each
        run = self.maker.get(value)
        if not isinstance(run, Run):
            if self.types[value] is type:
                return
            run = self.last_run(self.where.get(value), at)
        run.outs[each] = None
        self.read(value, run)

    def last_run(self, on: Mesh | None, at: int) -> Run:
        """The last run on a device set before a node."""
        runs = (node for node in reversed(self.nodes[:at]) if isinstance(node, Run))
        return next(node for node in runs if node.on is on)

    def outs(self, run: Run) -> list[Typed]:
        """The results of a run: its own operands, then the others in the order in which they are computed."""
        if len(run.outs) < 2:
            return [*run.outs]
        places = {value: place - len(run.ins) for place, value in enumerate(run.ins)}
        for op in run.ops:
            places |= dict.fromkeys(op.results, len(places))
        return sorted(run.outs, key=lambda each: places[each[0]])

    def reads(self, node: Run | Operation) -> list[Typed]:
        """What a node reads. A barrier reads values with the types that it makes them with."""
        if isinstance(node, Run):
            return [(value, self.types[value]) for value in node.ins]
        types = self.changes[node.number.data].before if isinstance(node, ChangeOp) else [type for _, type in self.makes(node)]
        return list(zip(node.operands, types, strict=True))

    def makes(self, op: Operation) -> list[Typed]:
        """What a change or a barrier makes."""
        return [(value, self.types[value]) for value in op.results]
