"""Transfers: the blocks of an array, moved from the devices of one set to those of another one.

Within a process a block is copied from device to device, which waits for nobody. Blocks for another process are permuted by one
program on the devices of both ends. All processes of these devices issue it, in the one order in which they issue all programs.

    f32[data*4, 8] on left   -->   f32[data*4, 8] on right: block 0 from device 0 to device 4, block 1 from device 1 to device 5
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, Self, cast

import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh as DeviceMesh, NamedSharding, PartitionSpec
from jax.stages import Lowered

from ..jax_private import Device, jax, jnp, lax
from ..run.addressable import is_here, process_of
from ..run.controller import CONTROLLER, Tokened
from ..run.extended_shard_map import on_no_mesh, over_devices
from .travel import TravelForm

UNION = "union"
"""The one axis of the devices between which blocks are permuted."""


class Move(NamedTuple):
    """One device's block: the device that sends it, the one that receives it, and where it starts in the block that is sent."""

    source: Device
    target: Device
    start: tuple[int, ...]

    @property
    def is_within(self) -> bool:
        """Whether it stays in one process."""
        return process_of(self.source) == process_of(self.target)


@dataclass(frozen=True)
class Moves:
    """A transfer: where the devices of the target receive from, and what this process does of it."""

    name: str
    source: TravelForm
    target: TravelForm
    within: Sequence[Move]
    """The moves within this process."""
    permuted: Permuted | None
    """What sends blocks to other processes; None if this one neither sends nor receives any."""

    @classmethod
    def between(cls, name: str, source: TravelForm, target: TravelForm) -> Self:
        """The transfer between two layouts, of which the first one has all of each block of the second one."""
        moves = [*moves_between(source, target)]
        within = [move for move in moves if move.is_within and is_here(move.target)]
        across = [move for move in moves if not move.is_within]
        takes_part = any(is_here(device) for move in across for device in (move.source, move.target))
        return cls(name, source, target, within, Permuted.of(name, across, source, target) if takes_part else None)

    def compiled(self) -> Self:
        """The transfer, once XLA has compiled its program, if it has one."""
        if self.permuted is not None:
            # Any: JAX's programs have no types.
            self.permuted.program.compiled = cast(Any, self.permuted.lowered).compile()
        return self

    def __call__(self, array: Array) -> Sequence[Array]:
        """Moves the blocks of an array. Returns at once."""
        own = {shard.device: shard.data for shard in array.addressable_shards}
        parts = [self._part(own[move.source], move.start) for move in self.within]
        with CONTROLLER.lock:
            sent: Sequence[Array] = ()
            if self.permuted is not None:
                sent = self.permuted(own)
            elif self.within:
                CONTROLLER.note(self.name)
            return [self.target.assembled([*jax.device_put(parts, [move.target for move in self.within]), *sent])]

    def _part(self, block: Array, start: Sequence[int]) -> Array:
        if self.source.local == self.target.local:
            return block
        return block[tuple(slice(at, at + size) for at, size in zip(start, self.target.local, strict=True))]


def moves_between(source: TravelForm, target: TravelForm) -> Iterator[Move]:
    """Yields a move for each device of the target.

    Each device receives from itself, if it is in both sets and has the block. Else the copies of a block take turns, those of
    its own process if there are any.
    """
    have, holders = source.starts, dict[tuple[int, ...], list[Device]]()
    for device, start in have.items():
        holders.setdefault(start, []).append(device)
    turn = count()
    for device, start in target.starts.items():
        block = tuple(at - at % size if size else 0 for at, size in zip(start, source.local, strict=True))
        near = [each for each in holders[block] if process_of(each) == process_of(device)] or holders[block]
        holder = device if have.get(device) == block else near[next(turn) % len(near)]
        yield Move(holder, device, tuple(at - own for at, own in zip(start, block, strict=True)))


def rounds(moves: Iterable[Move]) -> Sequence[Mapping[Device, Move]]:
    """Groups moves so that each device sends at most one block in a round, as a permute does. Each receives one in all.

    a -> c, a -> d, b -> e   -->   {a -> c, b -> e}, {a -> d}
    """
    found = list[dict[Device, Move]]()
    for move in moves:
        free = next((each for each in found if move.source not in each), None)
        if free is None:
            found.append(free := {})
        free[move.source] = move
    return found


@dataclass(frozen=True)
class Permuted:
    """The program that sends blocks to other processes, on the devices of both ends."""

    program: Tokened[Sequence[Array]]
    lowered: Lowered
    sharding: NamedSharding
    zeros: Mapping[Device, Array]
    """A block for each device of this process: what one gives that sends nothing."""
    receives: Sequence[Device]
    """The devices of this process that receive a block."""
    part: tuple[int, ...]
    """The shape of what a device receives."""

    @classmethod
    def of(cls, name: str, moves: Sequence[Move], source: TravelForm, target: TravelForm) -> Self:
        """Compiles the program."""
        ends = sorted({device for move in moves for device in (move.source, move.target)}, key=lambda device: device.id)
        spec, mesh = PartitionSpec(UNION), DeviceMesh(np.array(ends), (UNION,), axis_types=(AxisType.Auto,))
        block, part = (form.sharding.shard_shape(form.shape) for form in (source, target))
        turns = [Turn.of(each.values(), ends) for each in rounds(moves)]

        def transfer(given: Array) -> Sequence[Array]:
            here, received = lax.axis_index(UNION), jnp.zeros(part, given.dtype)
            for turn in turns:
                sent = lax.dynamic_slice(given.reshape(block), [*jnp.asarray(turn.starts)[here]], part)
                received = jnp.where(jnp.asarray(turn.receives)[here], lax.ppermute(sent, UNION, turn.pairs), received)
            return (received.reshape(part or (1,)),)

        program, sharding = Tokened(name, over_devices(transfer, mesh, [spec], [spec])), NamedSharding(mesh, spec)
        first, *more = block or (1,)
        taken = jax.ShapeDtypeStruct((len(ends) * first, *more), source.travels, sharding=sharding)
        with on_no_mesh():
            lowered = jax.jit(program.function).lower(taken)
        zero = np.zeros((first, *more), source.travels)
        zeros = {device: jax.device_put(zero, device) for device in ends if is_here(device)}
        return cls(program, lowered, sharding, zeros, [move.target for move in moves if move.target in zeros], part)

    def __call__(self, blocks: Mapping[Device, Array]) -> Sequence[Array]:
        """Issues the program for the blocks of these devices. Returns those that devices of this process receive."""
        given = [blocks[device].reshape(zero.shape) if device in blocks else zero for device, zero in self.zeros.items()]
        first, *more = given[0].shape
        shape = self.sharding.mesh.size * first, *more
        (sent,) = CONTROLLER.run(self.program, jax.make_array_from_single_device_arrays(shape, self.sharding, given))
        received = {shard.device: shard.data for shard in sent.addressable_shards}
        return [received[device].reshape(self.part) for device in self.receives]


class Turn(NamedTuple):
    """A round of moves by the numbers of the devices: who sends to whom, where in its block each begins, and who receives."""

    pairs: Sequence[tuple[int, int]]
    starts: np.ndarray
    receives: np.ndarray

    @classmethod
    def of(cls, moves: Collection[Move], devices: Sequence[Device]) -> Self:
        """The round in which these devices send and receive."""
        pairs = [(devices.index(move.source), devices.index(move.target)) for move in moves]
        starts = {number: move.start for (number, _), move in zip(pairs, moves, strict=True)}
        nowhere = (0,) * len(next(iter(moves)).start)
        receives = {number for _, number in pairs}
        every = range(len(devices))
        return cls(pairs, np.array([starts.get(at, nowhere) for at in every]), np.array([at in receives for at in every]))
