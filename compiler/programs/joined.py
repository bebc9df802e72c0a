"""Joins the calls of a program to one dataflow graph: kernels on their device sets, and what moves between them.

A value is where its kernel has made it. A kernel that wants it in another layout redistributes it; one on another set has it
transferred. Copies are kept: a second reader that wants the same takes the same.

    y = a(x);  b(y)   -->   %0 = flow.kernel @a(%x) : f32[data*64, 8] on left -> f32[data*64, 8] on left
                            %1 = flow.transfer %0 : f32[data*64, 8] on left -> f32[data*32, 8] on right
                            %2 = flow.kernel @b(%1) : f32[data*32, 8] on right -> f32[data*32, 8] on right
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import cast

from jax import Array
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import flow
from ...dialects.array import MESH, set_mesh
from ...dialects.ground.argument_names import set_names
from ...dialects.ground.dtypes import itemsize
from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh, with_parts
from ...dialects.module_op import Module
from ...dialects.op_text import array_types
from ...dialects.types import ArrayType
from ...rewrites.decide.placements import boundary
from ...rewrites.lower.to_flow import kernel_function, structure
from ...rewrites.program.program import ValueId
from ...rewrites.redistribute.between_sets import blocks_between
from ..api.plan import plan as start
from ..api.tactics import Tile
from ..graph.graph import Graph
from ..inputs.lines import Origin, source_line_of
from ..jax_private import jax
from ..ops.prng_keys import physical, unwrap
from ..plan.lowering import spmd
from ..plan.state import State
from ..trace.trace import Traced
from .calls import Between, Call, Calls, Value


def join(traced: Traced, calls: Calls, out_on: Mesh | None = None) -> Graph:
    """The graph of a program that was read. Raises Error if `out_on` has the name of another set of the program."""
    for each in calls.sets:
        if out_on is not None and each.devices == out_on.devices and each is not out_on:
            title = f"`out_on` is the set {out_on}, and `{traced.name}` uses another one of that name: {each}"
            raise traced.function.error(title, 'give it a name of its own: pt.Mesh(data=2).on("results")')
    return _Joined(traced, calls, out_on).graph()


class _Joined:
    """Writes a graph: its kernels, and the values on each set."""

    def __init__(self, traced: Traced, calls: Calls, out_on: Mesh | None) -> None:
        self.traced, self.calls, self.out_on = traced, calls, out_on
        self.sets = [*dict.fromkeys([*calls.sets, *filter(None, [out_on])])]
        self.name = traced.name if traced.name.isidentifier() else "program"
        self.block = Block()
        self.values = dict[Value, SSAValue]()
        """Where each value is made."""
        self.copies = dict[tuple[Value, ArrayType], SSAValue]()
        self.kernels = dict[str, FuncOp]()
        self.foreign = dict[str, tuple[object, ...]]()
        self.named = dict[int, str]()
        """The kernel of each plan."""
        self.plans = list[State]()
        """All plans, so that each has an id of its own."""
        self.constants = [*calls.constants]
        self.alike = dict[Hashable, str]()
        """The kernels of code between kernels, by what they do."""
        self.read = {value for each in calls.every for value in each.ins} | set(calls.results)
        """The values that something reads, beside what makes them."""
        self.origins = list[Origin]()
        """For which call each op of the block is."""

    def graph(self) -> Graph:
        for call in self.calls.every:
            plan = call.plan if isinstance(call, Call) else self.planned(call)
            self.run(call, plan)
            self.origins += [call.where] * (len(self.block.ops) - len(self.origins))
        arguments = [*self.calls.arguments, *self.constants]
        for value in (*arguments, *self.calls.results):
            if value not in self.values:
                self.argument(value, self.whole(value))
        self.in_order(arguments)
        results = [self.returned(self.values[value]) for value in self.calls.results]
        self.block.add_op(flow.ReturnOp(results))
        types = [cast(ArrayType, value.type) for value in results]
        op = flow.GraphOp(self.name, Region(self.block), types)
        names = self.traced.arg_names[: len(self.calls.arguments)]
        constants = tuple(unwrap(cast(Array, value.array)) for value in self.constants)
        own = (*names, *(f"const/{number}" for number in range(len(constants))))
        set_names(op, own, self.traced.result_names)
        if self.out_on is not None:
            # Perhaps no kernel runs there.
            op.attributes[f"{MESH}.{self.out_on.devices}"] = StringAttr(str(self.out_on))
        module = Module([op, *self.kernels.values()])
        module.verify()
        lines = dict(enumerate(map(source_line_of, self.origins), len(own)))
        return Graph(module, replace(self.traced, arg_names=own, consts=constants), self.foreign, lines)

    # --- kernels -----------------------------------------------------------------------------------------------------

    def run(self, call: Call | Between, plan: State) -> None:
        """Adds the call of a kernel, and what its operands need."""
        program = plan.source.program
        outs = call.outs if isinstance(call, Call) else self.read_later(call)
        closed_over = plan.source.traced.consts[len(call.ins) - len(plan.source.traced.in_avals) :]
        more = list(map(Value.of, closed_over)) if isinstance(call, Between) else []
        self.constants += more
        reads = zip((*call.ins, *more), program.arguments, strict=True)
        ins = [self.given(value, _type_of(plan, at)) for value, at in reads]
        types = [_type_of(plan, at) for at in program.returned]
        op = flow.KernelOp(self.kernel(plan, isinstance(call, Between)), ins, types)
        self.block.add_op(op)
        self.values.update(zip(outs, op.results, strict=True))

    def kernel(self, plan: State, is_between: bool) -> str:
        """The name of a plan's kernel, which is made once."""
        if id(plan) in self.named:
            return self.named[id(plan)]
        self.plans.append(plan)
        traced = plan.source.traced
        stem = "between" if is_between else re.sub(r"\W+", "_", traced.name).strip("_") or "kernel"
        stem = "kernel" if stem == "lambda" else stem
        name = next(each for each in _numbered(stem) if each not in self.kernels and each != self.name)
        main = cast(FuncOp, spmd(plan).body.block.first_op)
        made = kernel_function(name, main.body.detach_block(main.body.block))
        set_mesh(made, plan.decided.mesh.in_space)
        if is_between and not traced.foreign:
            name = self.alike.setdefault((made.attributes[MESH], structure(made.body.block)), name)
        self.kernels.setdefault(name, made)
        self.named[id(plan)] = name
        if traced.foreign:
            self.foreign[name] = traced.foreign
        return name

    def planned(self, call: Between) -> State:
        """The plan of code between kernels: its operands lie as they do, and what they claim is propagated."""
        outs = self.read_later(call)
        structs = [jax.ShapeDtypeStruct(value.aval.shape, value.aval.dtype) for value in call.ins]
        types = {at: cast(ArrayType, self.values[value].type) for at, value in enumerate(call.ins) if value in self.values}
        here = {at: type for at, type in types.items() if type.on == call.on.devices}
        mesh = with_parts(call.on, [axis for type in here.values() for axis in type.layout.axes])
        tiles = dict[str, dict[str, int]]()
        for at, type in here.items():
            for dim, factor in type.layout.split(mesh.places).factors:
                if factor.axis in mesh.places:
                    tiles.setdefault(factor.axis.on_devices, {})[f"arrays/{at}"] = dim

        def between(*arrays: Array) -> list[Array]:
            return call.run(arrays, outs)

        return start(between, mesh, *structs).apply(*(Tile(values, axis) for axis, values in tiles.items()))

    def read_later(self, call: Between) -> list[Value]:
        """The values of code between kernels that something else reads."""
        own = [value for _, _, outs in call.eqns for value in outs]
        return [value for value in own if value in self.read]

    # --- values ------------------------------------------------------------------------------------------------------

    def given(self, value: Value, wanted: ArrayType) -> SSAValue:
        """The value in the layout, and on the set, that a kernel wants."""
        if value not in self.values:
            return self.argument(value, wanted)
        if self.values[value].type is wanted:
            return self.values[value]
        if (value, wanted) not in self.copies:
            self.copies[value, wanted] = self.moved(self.values[value], wanted)
        return self.copies[value, wanted]

    def argument(self, value: Value, type: ArrayType) -> SSAValue:
        """An argument of the graph: it is where its first reader wants it."""
        self.values[value] = made = self.block.insert_arg(type, len(self.block.args))
        return made

    def whole(self, value: Value) -> ArrayType:
        on = value.on or self.calls.sets[0]
        struct = physical(value.aval)
        return ArrayType.of(str(struct.dtype), Layout.of(struct.shape), on.devices)

    def returned(self, made: SSAValue) -> SSAValue:
        """A result: where it is made, or whole on each device of the set on which results are wanted."""
        have = cast(ArrayType, made.type)
        if self.out_on is None or have.on == self.out_on.devices:
            return made
        wanted = ArrayType.of(have.dtype, Layout.of(have.layout.global_shape), self.out_on.devices)
        return self.moved(made, wanted)

    def moved(self, source: SSAValue, wanted: ArrayType) -> SSAValue:
        """Redistributes a value on its set, and transfers it if the wanted one is on another set."""
        have = cast(ArrayType, source.type)
        if have.on == wanted.on:
            return self.changed(source, wanted)
        ends = blocks_between(have.layout, wanted.layout, (self.on(have.on), self.on(wanted.on)), itemsize(have.dtype))
        sent, arrives = (ArrayType.of(have.dtype, each, on) for each, on in zip(ends, (have.on, wanted.on), strict=True))
        return self.changed(self.added(flow.TransferOp(self.changed(source, sent), arrives)), wanted)

    def changed(self, source: SSAValue, wanted: ArrayType) -> SSAValue:
        """Redistributes a value on its set, if it lies otherwise."""
        return source if source.type is wanted else self.added(flow.RedistributeOp([source], [wanted]))

    def added(self, op: Operation) -> SSAValue:
        """Adds an op. Where its values lie on sub-axes, it names the meshes that have these."""
        for type in array_types((*op.operands, *op.results)):
            mesh = with_parts(self.on(type.on), type.layout.axes)
            if mesh is not self.on(type.on):
                op.attributes[MESH] = StringAttr(str(mesh))
        self.block.add_op(op)
        return op.results[0]

    def on(self, name: str) -> Mesh:
        return next(each for each in self.sets if each.devices == name)

    def in_order(self, arguments: Sequence[Value]) -> None:
        """Puts the graph's arguments in the order of the program's."""
        block = Block(arg_types=[self.values[value].type for value in arguments])
        for value, arg in zip(arguments, block.args, strict=True):
            self.values[value].replace_all_uses_with(arg)
            self.values[value] = arg
        for op in [*self.block.ops]:
            op.detach()
            block.add_op(op)
        self.block = block


def _type_of(plan: State, value: ValueId) -> ArrayType:
    """The type of an argument or a result of a kernel, on the whole axes of its set if they can say how it lies."""
    placements = plan.decisions.placements
    layout = boundary(placements, value).joined(plan.mesh.whole().places)
    return ArrayType.of(plan.source.program.types[value].dtype, layout, plan.mesh.devices)


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}_{number}" for number in count(1))
