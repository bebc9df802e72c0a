"""Runs a scan that gathers for the next trip while a trip runs: a skew of one in time.

    scan over w: x = f(x, gather(w))
        -->   g = gather(w[0]);  loop: x = f(x, g), and g = gather(w[i + 1]) meanwhile;  x = f(x, g)

The last trip is written once more, after the loop, so that nothing is gathered that no trip uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from jax import Array
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects import spmd
from ...dialects.array import Barrier
from ...dialects.ground.errors import Error
from ...dialects.params import ParamsAttr
from ...dialects.regions import Entry
from ...dialects.types import ArrayType
from ..jax_private import jnp, lax
from .barrier import barrier_p

Run = Callable[[Operation, Sequence[Array]], list[Array]]
"""Runs an op of a block on its operands."""
Arguments = Sequence[Array]
"""The arguments of a trip."""


class Skewed:
    """The body of a scan: one trip of it, with what the trip before has made for it, and what it makes for the next."""

    def __init__(self, block: Block, run: Run) -> None:
        self.block, self.run = block, run
        starts = [op for op in block.ops if isinstance(op, spmd.PrefetchOp)]
        self.starts: Mapping[Operation, Cone] = {op: Cone(op.operands[0], block) for op in starts}
        self.here = self._here()

    def _here(self) -> list[Operation]:
        """The ops of a trip, without those that only make what is made in the trip before."""
        made = {cone.value for cone in self.starts.values()}
        apart = {op for cone in self.starts.values() for op in cone.ops}
        for op in reversed(list(self.block.ops)):
            if op in apart and not all(each in made or _is_read_by(each, apart) for each in op.results):
                apart.remove(op)
        return [op for op in self.block.ops if op not in apart]

    def first(self, arguments: Arguments) -> list[Array]:
        """What the first trip needs: nothing is done meanwhile."""
        return [cone.made(self.run, arguments) for cone in self.starts.values()]

    def trip(
        self, arguments: Arguments, fetched: Sequence[Array], following: Arguments | None
    ) -> tuple[list[Array], list[Array]]:
        """What a trip yields, and what it makes for the next one, with the arguments `following`; nothing if it is the last."""
        env: dict[SSAValue, Array] = dict(zip(self.block.args, arguments, strict=True))
        env.update(zip((cone.value for cone in self.starts.values()), fetched, strict=True))
        made = list[Array]()
        for op in self.here:
            operands = [env[value] for value in op.operands]
            if op.next_op is None:
                return operands, made
            if op not in self.starts:
                env.update(zip(op.results, self.run(op, operands), strict=True))
            elif following is not None:
                made.append(self.starts[op].made(self.run, following, operands[1:]))
        raise AssertionError("a block ends in a terminator")


class Cone:
    """The ops of a trip that make a value from its rows and from constants of the loop. A barrier returns its operands."""

    def __init__(self, value: SSAValue, block: Block) -> None:
        self.value, self.ops, needed = value, list[Operation](), {value}
        for op in reversed(list(block.ops)):
            if made := needed.intersection(op.results):
                self.ops.insert(0, op)
                needed.update([op.operands[cast(OpResult, each).index] for each in made] if _keeps(op) else op.operands)
        self.leaves = [each for each in block.args if each in needed]

    def made(self, run: Run, arguments: Arguments, start: Sequence[Array] = ()) -> Array:
        """The value of these arguments; made no sooner than `start`, if there is one."""
        given = [arguments[each.index] for each in self.leaves]
        if start:
            given = barrier_p.bind(*given, *start)[: len(given)]
        env: dict[SSAValue, Array] = dict(zip(self.leaves, given, strict=True))
        for op in self.ops:
            if _keeps(op):
                env.update((made, env[value]) for made, value in zip(op.results, op.operands, strict=True) if value in env)
            else:
                env.update(zip(op.results, run(op, [env[each] for each in op.operands]), strict=True))
        return env[self.value]


def _keeps(op: Operation) -> bool:
    """Whether an op returns its operands as they are."""
    return isinstance(op, Barrier) or op.name == "lax.optimization_barrier"


def _is_read_by(value: SSAValue, ops: set[Operation]) -> bool:
    return all(use.operation in ops for use in value.uses)


def is_skewed(block: Block) -> bool:
    """Whether a body starts anything for its next trip."""
    return any(isinstance(op, spmd.PrefetchOp) for op in block.ops)


def scan(body: Skewed, entry: Entry, inputs: Sequence[Array], params: ParamsAttr) -> list[Array]:
    """Runs a loop of two trips or more. Raises Error if what is to be made a trip ahead needs a carry."""
    carries = range(len(inputs))[entry.carries]
    length, reverse, unroll = cast("int", params["length"]), bool(params["reverse"]), cast("int | bool", params["unroll"])
    if any(leaf.index in carries for cone in body.starts.values() for leaf in cone.leaves):
        helps = ["prefetch what is made of the rows and constants of the loop"]
        raise Error("`spmd.prefetch` of a value that depends on the trip before, which is not there yet", helps=helps)

    def arguments(trip: Array | int, carry: Sequence[Array]) -> list[Array]:
        rows = [lax.dynamic_index_in_dim(each, trip, keepdims=False) for each in inputs[entry.rows]]
        return entry.arguments(0, inputs, carry, rows)

    def stacked(stacks: Sequence[Array], rows: Sequence[Array], trip: Array | int) -> list[Array]:
        return [lax.dynamic_update_index_in_dim(*each, trip, 0) for each in zip(stacks, rows, strict=True)]

    def trip(state: tuple[list[Array], list[Array], list[Array]], at: Array) -> tuple[tuple[list[Array], ...], None]:
        carry, fetched, stacks = state
        following = arguments(at - 1 if reverse else at + 1, carry)
        results, fetched = body.trip(arguments(at, carry), fetched, following)
        return (results[: len(carries)], fetched, stacked(stacks, results[len(carries) :], at)), None

    first, last = (length - 1, 0) if reverse else (0, length - 1)
    begin = list(inputs[entry.carries])
    ends = cast("Sequence[ArrayType]", [value.type for value in cast(Operation, body.block.last_op).operands])
    stacks = [jnp.zeros((length, *each.shape), each.dtype) for each in ends[len(carries) :]]
    trips = jnp.arange(1, length) if reverse else jnp.arange(length - 1)
    state = begin, body.first(arguments(first, begin)), stacks
    (carry, fetched, stacks), _ = lax.scan(trip, state, trips, reverse=reverse, unroll=unroll)
    results, _ = body.trip(arguments(last, carry), fetched, None)
    return [*results[: len(carries)], *stacked(stacks, results[len(carries) :], last)]
