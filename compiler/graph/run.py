"""Runs a graph node by node: every kernel and every redistribution is a separate `jax.jit(jax.shard_map(...))`.

A transfer moves blocks one by one, from a device that has the block to one that wants it: that never waits for who makes them.
Of several processes each issues what runs on its own devices, all in the one order of the graph.

    %1 = flow.kernel @a_0(%0);  %2 = flow.transfer %1   -->   program(a_0); blocks to the devices of the other set
"""

from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from jax import Array, ShapeDtypeStruct
from jax.sharding import Mesh as DeviceMesh, PartitionSpec
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import flow
from ...dialects.array import mesh_of
from ...dialects.ground.errors import Error, first_line
from ...dialects.ground.validation import checked
from ...dialects.mesh import Mesh
from ...dialects.op_text import array_types
from ...dialects.types import ArrayType
from ..inputs.names import Patterns, as_patterns
from ..jax_private import ArrayImpl, Device, Tracer, jax, jnp, tree
from ..run.addressable import assembled, devices_of, is_here
from ..run.callbacks import check_outside
from ..run.collectives import BYTES
from ..run.compiled import device_mesh
from ..run.controller import CONTROLLER, Tokened
from ..run.device_code import run_local
from ..run.device_sets import bound
from ..run.extended_shard_map import described, on_no_mesh, on_own_devices, over_devices
from ..run.transfers import Ends, Transfer, put
from ..views.progress import progress
from .module import GraphModule, foreign_of, mesh_at, mesh_of_types, name_of, program_key, program_of, set_at
from .saved.save import save
from .travel import TravelForm

Placed: TypeAlias = Sequence[Device] | Mapping[str, Sequence[Device]] | None
"""The devices of a graph: those of its one set, or of some of its sets by name, or the first ones that are free."""


@dataclass(frozen=True)
class Elsewhere:
    """A node on devices of other processes. Here it makes arrays without parts."""

    gives: Sequence[TravelForm]
    gives_up: Sequence[int]
    """The operands that are donated: they are deleted here, too."""

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        for at in self.gives_up:
            arrays[at].delete()
        return [assembled(form.shape, form.travels, form.sharding, ()) for form in self.gives]


Program: TypeAlias = Tokened[Sequence[Array]] | Transfer | Elsewhere


@dataclass(frozen=True, slots=True)
class Launch:
    """One program: the slots that it reads and fills, and those that no later step reads, so that they are freed."""

    program: Program
    call: Callable[..., Sequence[Array]]
    """Issues the program."""
    reads: tuple[int, ...]
    fills: tuple[int, ...]
    frees: tuple[int, ...]
    on: str
    """The device set on which it makes what it makes."""


class CompiledGraph:
    """A graph on devices, with all programs compiled. Call it like the original function."""

    def __init__(self, graph: GraphModule, devices: Placed, donate: Patterns = ()) -> None:
        self.graph, self.caller, self.donate = graph, graph.caller, donate
        self.devices = _devices(graph, devices)
        self.meshes: dict[Mesh, DeviceMesh] = {}
        block = graph.op.body.block
        self.slots = _slots(block)
        self.inputs = [self._form(type, mesh_of_types(graph, type)) for type in array_types(block.args)]
        end = cast(Operation, block.last_op)
        self.outputs = tuple(self.slots[value] for value in end.operands)
        self.types = cast("Sequence[ArrayType]", end.operand_types)
        self.is_narrow = any(type.dtype in BYTES for type in self.types)
        self.last: object = None
        """The tree of the last call's arguments; None if each call has to be checked."""
        with on_own_devices():
            self.steps = self.compile(block, self._donated(donate))

    def __repr__(self) -> str:
        sets = " and ".join(f"{mesh.whole()}" for mesh in self.graph.sets.values())
        return f"<{self.graph.name}, compiled for {sets}>"

    def layout(self) -> dict[str, str]:
        """The types of all arguments and results, by their names, as a plan's `layout` gives them.

        step(x, w)   -->   {"x": "f32[data*64, 8]", "w": "f32[8, model*8]", "result": "f32[data*64, model*8]"}
        """
        block = self.graph.op.body.block
        ends = *block.args, *cast(Operation, block.last_op).operands
        names = *self.graph.arguments, *self.graph.results
        return {name: type.text for name, type in zip(names, array_types(ends), strict=True)}

    def shapes(self) -> dict[str, ShapeDtypeStruct]:
        """What a call takes: the shape and the dtype of each array, by its name.

        step(x, w)   -->   {"x": ShapeDtypeStruct((256, 8), float32), "w": ShapeDtypeStruct((8, 16), float32)}
        """
        if self.caller is not None:
            return {name: ShapeDtypeStruct(aval.shape, aval.dtype) for name, aval in self.caller.takes}
        types = array_types(self.graph.op.body.block.args)
        named = zip(self.graph.arguments, types, strict=True)
        return {name: ShapeDtypeStruct(type.layout.global_shape, type.dtype) for name, type in named}

    def _donated(self, donate: Patterns) -> set[int]:
        """The slots of the arguments that may be overwritten."""
        if self.caller is None:
            if as_patterns(donate):
                raise Error("a graph that was read from text donates nothing", helps=["lower the plan again, and compile that"])
            return set()
        names = self.caller.donates(donate)
        return {slot for slot, name in enumerate(self.graph.arguments) if name.split("/")[0] in names}

    def compile(self, block: Block, given_up: Set[int]) -> list[Launch]:
        """Compiles the programs, in parallel, and returns them in order of issue.

        A barrier is no program: its results are its operands.
        """
        nodes = [op for op in block.ops if isinstance(op, flow.KernelOp | flow.RedistributeOp | flow.TransferOp)]
        frees, gives = self._last_reads(block, nodes, given_up)
        # Nodes of one key share one program.
        alike = {(program_key(op), gives[op]): op for op in nodes}
        with progress(f"compiling {self.graph.name}", len(alike)) as step, ThreadPoolExecutor() as pool:
            # JAX traces in Python, and XLA compiles without Python's lock.
            made = [pool.submit(self._lowered(op, gives[op])) for op in alike.values()]
            for each in made:
                each.add_done_callback(lambda _: step())
            programs = {key: each.result() for key, each in zip(alike, made, strict=True)}
        steps: list[Launch] = []
        for op in nodes:
            program = programs[program_key(op), gives[op]]
            call = partial(CONTROLLER.run, program) if isinstance(program, Tokened) else program
            on = set_at(self.graph, op)
            steps.append(Launch(program, call, self.numbers(op.operands), self.numbers(op.results), frees[op], on))
        return steps

    def _last_reads(
        self, block: Block, nodes: Sequence[Operation], given_up: Set[int]
    ) -> tuple[Mapping[Operation, tuple[int, ...]], Mapping[Operation, tuple[int, ...]]]:
        """For each node the slots that no later one reads, and which of its operands are donated to it.

        What goes to another device set is not donated: the sets may share devices, and so buffers.
        """
        frees, gives = dict[Operation, tuple[int, ...]](), dict[Operation, tuple[int, ...]]()
        kept = {*self.outputs, *(slot for slot in range(len(block.args)) if slot not in given_up)}
        moved = {slot for op in nodes if isinstance(op, flow.TransferOp) for slot in self.numbers((*op.operands, *op.results))}
        for op in reversed(nodes):
            reads, fills = self.numbers(op.operands), self.numbers(op.results)
            frees[op] = tuple({*reads, *fills} - kept)
            kept.update(frees[op])
            free = list(array_types(op.results))
            taken = list[int]()
            for at, (slot, type) in enumerate(zip(reads, array_types(op.operands), strict=True)):
                is_last = slot in frees[op] and slot not in moved and reads.count(slot) == 1
                if slot in given_up and is_last and type in free:
                    free.remove(type)
                    taken.append(at)
            gives[op] = tuple(taken)
        return frees, gives

    def numbers(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        return tuple(self.slots[value] for value in values)

    def _form(self, type: ArrayType, mesh: Mesh) -> TravelForm:
        return TravelForm.of(type, mesh, self._there(mesh))

    def _there(self, mesh: Mesh) -> DeviceMesh:
        """A mesh on the devices of its set."""
        if mesh not in self.meshes:
            self.meshes[mesh] = device_mesh(mesh, self.devices[mesh.devices])
        return self.meshes[mesh]

    def _lowered(self, op: Operation, gives_up: tuple[int, ...]) -> Callable[[], Program]:
        """Lowers the program of a node, and returns a function that compiles it.

        The operands that it gives up are donated.
        """
        if isinstance(op, flow.TransferOp):
            source, target = (self._form(type, mesh_of_types(self.graph, type)) for type in op.ends)
            name = f"transfer` from `{op.ends[0].on}` to `{op.ends[1].on}` in `{self.graph.name}"
            return Transfer.of(name, Ends(source.shape, source.travels, source.sharding, target.sharding)).compiled
        graph, name, mesh = self.graph, name_of(op), mesh_at(self.graph, op)
        takes, gives = ([self._form(type, mesh) for type in array_types(side)] for side in (op.operands, op.results))
        if not any(map(is_here, self.devices[mesh.devices])):
            return lambda: Elsewhere(gives, gives_up)
        program = Tokened(f"{name}` in `{graph.name}", program_of(graph, op, takes, gives, self._there(mesh)), bool(gives_up))
        with on_no_mesh():
            made = jax.jit(program.function, donate_argnums=gives_up).lower(*(form.struct for form in takes))

        def compiled() -> Tokened[Sequence[Array]]:
            try:
                program.compiled = made.compile()
            except jax.errors.JaxRuntimeError as error:
                title = f"XLA cannot compile `{name}` of `{graph.name}`"
                raise Error(title, notes=[f"it says: {first_line(error)}"]) from error
            return program

        return compiled

    # Any: the results have the tree structure that the traced function returns, which a graph does not know.
    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Issues the programs one after another, and returns the results at once. Raises Error within a host callback."""
        check_outside(self.graph.name)
        found, structure = tree.tree_flatten(args)
        with on_own_devices():
            if self.last is not None and not kwargs and structure == self.last:
                if self.alone is not None:
                    try:
                        made = CONTROLLER.run(self.alone, *found, *self.consts)
                    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
                        # What JAX refuses is placed, or gets an error of ours.
                        if isinstance(error, RuntimeError) and all(map(_is_array, found)):
                            raise
                    else:
                        return self.returned(made)
                elif all(map(_is_there, found, self.inputs)):
                    return self.results(found)
            caller = self.caller
            leaves = caller.flatten(args, kwargs) if caller is not None else self.given(cast("Sequence[Array]", args), kwargs)
            self.check(leaves)
            is_as_given = not kwargs and not self.is_packed and (caller is None or caller.takes_as_given(args))
            self.last = structure if is_as_given else None
            with jax.ensure_compile_time_eval():
                placed = [*map(_placed, leaves, self.inputs)]
            return self.results(placed)

    def results(self, leaves: Sequence[Array]) -> object:
        """Issues the programs, for arguments on their devices."""
        env = dict(enumerate((*leaves, *self.consts)))
        self.issue(env)
        return self.returned([env[slot] for slot in self.outputs])

    def returned(self, made: Sequence[Array]) -> object:
        """The result of a call, of the results of the programs."""
        if self.is_narrow:
            made = [each.astype(type.dtype) for each, type in zip(made, self.types, strict=True)]
        return tuple(made) if self.caller is None else self.caller.unflatten(made)

    @cached_property
    def alone(self) -> Tokened[Sequence[Array]] | None:
        """The program, if one takes all arguments and makes all results: JAX checks these, and places those of the host."""
        (first, *more) = self.steps or [None]
        if first is None or more or not isinstance(first.program, Tokened):
            return None
        return first.program if first.reads == tuple(range(len(self.inputs))) and first.fills == self.outputs else None

    @cached_property
    def is_packed(self) -> bool:
        """Whether some arguments have numbers of less than a byte, which travel otherwise."""
        return any(form.travels != form.dtype for form in self.inputs)

    @cached_property
    def consts(self) -> list[Array]:
        """The arrays that the function closes over, on the devices."""
        own = () if self.caller is None else self.caller.consts
        with jax.ensure_compile_time_eval():
            return [_placed(*each) for each in zip(own, self.inputs[len(self.inputs) - len(own) :], strict=True)]

    def issue(self, env: dict[int, Array]) -> None:
        """Issues the steps, and frees each value after its last reader."""
        for step in self.steps:
            env.update(zip(step.fills, step.call(*(env[slot] for slot in step.reads)), strict=True))
            for slot in step.frees:
                del env[slot]

    @checked
    def save(self, path: str | Path, platforms: Sequence[str] | None = None) -> None:
        """Write the graph to a file, as `graph.save` does; calls of the saved one donate what this one donates."""
        save(self.graph, path, platforms, self.donate)

    def memory(self) -> dict[str, int]:
        """The most bytes that a device holds of each set in a call: values of the graph, and what XLA takes for a program.

        Sets that share devices are counted apart. Arguments that are not donated are held to the end. Of several processes,
        each knows what XLA takes for the programs on its own devices.

        x: 4 KiB on left, y = a(x) on left   -->   {"left": 8192 and the temporaries of `a`}
        """
        sizes = {slot: (type.on, type.local.nbytes) for value, slot in self.slots.items() for type in array_types([value])}
        held = dict.fromkeys(self.graph.sets, 0)
        for on, size in (sizes[slot] for slot in range(len(self.inputs))):
            held[on] += size
        most = held.copy()
        for step in self.steps:
            for on, size in map(sizes.__getitem__, step.fills):
                held[on] += size
            most[step.on] = max(most[step.on], held[step.on] + temporaries(step.program))
            for on, size in map(sizes.__getitem__, step.frees):
                held[on] -= size
        return most

    def given(self, args: Sequence[Array], kwargs: dict[str, object]) -> list[Array]:
        """Checks the arguments of a graph that was read from text, by the names in the text."""
        names = self.graph.arguments
        if kwargs or len(args) != len(names):
            raise Error(
                f"a graph that was read from text takes its {len(names)} arrays by position, got {len(args) + len(kwargs)}",
                notes=[f"they are {', '.join(names)}"],
            )
        for name, arg, form in zip(names, args, self.inputs, strict=True):
            if getattr(arg, "shape", None) != form.shape or str(arg.dtype) != form.dtype:
                found = f"{arg.dtype}{list(arg.shape)}" if hasattr(arg, "dtype") else type(arg).__name__
                raise Error(f"argument `{name}` must be {form.dtype}{list(form.shape)}, got {found}")
        return list(args)

    def check(self, leaves: Sequence[object]) -> None:
        """Raises Error for arrays that must not be moved to the devices implicitly: a program of several kernels moves all."""
        here = {device for those in self.devices.values() for device in those}
        for name, leaf in zip(self.graph.arguments, leaves, strict=False):
            if _is_deleted(leaf):
                helps = ["pass the array that the other call returned", "or do not donate it there"]
                raise Error(f"argument `{name}` was donated to another call, or deleted", helps=helps)
            if isinstance(leaf, jax.ShapeDtypeStruct):
                raise Error(f"argument `{name}` must be an array at a call, got a shape", helps=["a shape is enough to plan"])
            if isinstance(leaf, Tracer):
                raise Error(
                    f"argument `{name}` must be an array, got a traced value",
                    helps=["a graph runs on arrays: in `jax.jit` use plan.compile()"],
                )
            devices = devices_of(leaf.sharding) if isinstance(leaf, Array) and leaf.committed else here
            if devices != here and not self.graph.is_joined:
                there = ", ".join(sorted(map(str, devices)))
                helps = ["leave it uncommitted", "or compile for its devices: graph.compile(devices=...)"]
                raise Error(f"argument `{name}` is committed to {there}, but the graph runs on other devices", helps=helps)


def _devices(graph: GraphModule, given: Placed) -> dict[str, list[Device]]:
    """The devices of each set. Raises Error if they do not fit."""
    sets = graph.sets
    if len(sets) > 1 or isinstance(given, Mapping):
        if given is not None and not isinstance(given, Mapping):
            names = ", ".join(f'"{name}": [...]' for name in sets)
            raise Error("the graph is on several device sets", helps=[f"say which devices each has: devices={{{names}}}"])
        return bound([*sets.values()], given)
    (mesh,) = sets.values()
    return {mesh.devices: list(device_mesh(mesh, given).devices.flat)}


def temporaries(program: Program) -> int:
    """The bytes that XLA takes on a device for a program, without those of operands that results overwrite."""
    sent = program.permuted.program if isinstance(program, Transfer) and program.permuted is not None else program
    if not isinstance(sent, Tokened):
        return 0
    # Any: JAX's programs have no types.
    taken: Any = cast(Any, sent.compiled).memory_analysis()
    # In a transfer, a device that only receives gives a block of zeros.
    given = 0 if sent is program else taken.argument_size_in_bytes
    return given + taken.temp_size_in_bytes - taken.alias_size_in_bytes


def _placed(leaf: Array | np.ndarray, form: TravelForm) -> Array:
    if _is_there(leaf, form):
        return cast(Array, leaf)
    # Of an array of NumPy each device takes its part.
    is_as_it_travels = isinstance(leaf, np.ndarray) and leaf.dtype == form.travels
    return put(leaf if is_as_it_travels else jnp.asarray(leaf, form.travels), form.sharding)


def _is_there(leaf: object, form: TravelForm) -> bool:
    """Whether a leaf is an array in the form in which it travels."""
    if type(leaf) is not ArrayImpl:
        return False
    array = cast(Array, leaf)
    is_as_it_travels = array.shape == form.shape and array.dtype == form.travels and _lies_as(array, form)
    return is_as_it_travels and array.committed and not array.is_deleted()


def _lies_as(array: Array, form: TravelForm) -> bool:
    # Programs of JAX may name one sharding in another way.
    return array.sharding == form.sharding or array.sharding.is_equivalent_to(form.sharding, array.ndim)


def _is_deleted(leaf: object) -> bool:
    return isinstance(leaf, Array) and not isinstance(leaf, Tracer) and leaf.is_deleted()


def _is_array(leaf: object) -> bool:
    """Whether a leaf is an array of JAX that is still there."""
    return type(leaf) is ArrayImpl and not _is_deleted(leaf)


def _slots(block: Block) -> dict[SSAValue, int]:
    """Numbers the values. A barrier's results have the numbers of its operands."""
    numbers = count()
    slots: dict[SSAValue, int] = dict(zip(block.args, numbers, strict=False))
    for op in block.ops:
        given = [slots[value] for value in op.operands] if isinstance(op, flow.BarrierOp) else numbers
        slots.update(zip(op.results, given, strict=False))
    return slots


def stablehlo(graph: GraphModule, kernel: FuncOp) -> str:
    """The StableHLO text of one kernel on local types. Every device gets its own blocks, all of the same shape."""
    mesh = described(mesh_of(kernel))
    types = [cast(ArrayType, type) for type in kernel.function_type.inputs]

    def local(*blocks: Array) -> tuple[Array, ...]:
        return tuple(run_local(kernel.body.block, blocks, foreign_of(graph, kernel.sym_name.data)))

    local.__name__ = kernel.sym_name.data
    ends = len(kernel.function_type.outputs)
    mapped = over_devices(local, mesh, [PartitionSpec()] * len(types), [PartitionSpec()] * ends)
    structs = [jax.ShapeDtypeStruct(type.shape, type.dtype) for type in types]
    traced = jax.jit(mapped).trace(*structs)
    return str(traced.lower(lowering_platforms=(jax.default_backend(),)).as_text())
