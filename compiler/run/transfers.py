"""Transfers: the blocks of an array, moved from the devices of one set to those of another one.

Within a process a block is copied from device to device, which waits for nobody. Blocks for another process are permuted by one
program on the devices of both ends. All processes of these devices issue it, in the one order in which they issue all programs.

    f32[data*4, 8] on left   -->   f32[data*4, 8] on right: block 0 from device 0 to device 4, block 1 from device 1 to device 5

All processes must decide alike, so what is done depends on the devices of both ends, and never on which of them are here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple, Self, cast

import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh as DeviceMesh, NamedSharding, PartitionSpec, Sharding
from jax.stages import Lowered

from ..jax_private import Device, eager_constant_folding, jax, jnp, lax
from .addressable import assembled, devices_of, is_here, process_of, replicated
from .controller import CONTROLLER, Tokened
from .extended_shard_map import on_no_mesh, over_devices

UNION = "union"
"""The one axis of the devices between which blocks are permuted."""


class Ends(NamedTuple):
    """An array that is moved: its shape and dtype, and how it is sharded before and after.

    Before it has all of each block that it has after.
    """

    shape: tuple[int, ...]
    dtype: str
    source: Sharding
    target: NamedSharding

    @property
    def block(self) -> tuple[int, ...]:
        """The shape of the block that a device has before."""
        return self.source.shard_shape(self.shape)

    @property
    def part(self) -> tuple[int, ...]:
        """The shape of the block that a device has after."""
        return self.target.shard_shape(self.shape)

    def moves(self) -> Iterator[Move]:
        """Yields a move for each device of the target.

        Each receives from itself, if it is in both sets and has the block. Else the copies of a block take turns, those of its
        own process if there are any.
        """
        have, holders = self.starts(self.source), dict[tuple[int, ...], list[Device]]()
        for device, start in have.items():
            holders.setdefault(start, []).append(device)
        turn = count()
        for device, start in self.starts(self.target).items():
            block = tuple(at - at % size if size else 0 for at, size in zip(start, self.block, strict=True))
            near = [each for each in holders[block] if process_of(each) == process_of(device)] or holders[block]
            holder = device if have.get(device) == block else near[next(turn) % len(near)]
            yield Move(holder, device, tuple(at - own for at, own in zip(start, block, strict=True)))

    def starts(self, sharding: Sharding) -> Mapping[Device, tuple[int, ...]]:
        """Where the block of each device begins."""
        # Any: JAX's shardings have no types.
        found: Mapping[Device, tuple[slice, ...]] = cast(Any, sharding).devices_indices_map(self.shape)
        return {device: tuple(each.start or 0 for each in index) for device, index in found.items()}


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
class Transfer:
    """What this process does of a transfer. Call it with the array, after it is compiled."""

    name: str
    ends: Ends
    permuted: Permuted | None
    """What sends blocks to other processes; None if this one neither sends nor receives any."""
    within: Sequence[tuple[Device, tuple[slice, ...] | None]]
    """The devices that give a block to one of this process, and which part of it; None: all of it."""
    copied: Sequence[Device]
    """Those that give what they have received from another process."""
    targets: Sequence[Device]
    """Who receives from these."""

    @classmethod
    def of(cls, name: str, ends: Ends) -> Self:
        """What this process does of a transfer between these ends."""
        within, across, copied = list[Move](), dict[object, Move](), list[tuple[Device, Device]]()
        starts, part = ends.starts(ends.target), ends.part
        for move in ends.moves():
            if move.is_within:
                within += [move] if is_here(move.target) else []
            # A block goes to each process once.
            elif (first := across.setdefault((process_of(move.target), starts[move.target]), move)) is not move:
                copied += [(first.target, move.target)] if is_here(move.target) else []
        takes_part = any(is_here(device) for move in across.values() for device in (move.source, move.target))
        permuted = Permuted.of(name, [*across.values()], ends) if takes_part else None
        given = [(move.source, None if ends.block == part else tuple(map(_range, move.start, part))) for move in within]
        targets = [*(move.target for move in within), *(target for _, target in copied)]
        return cls(name, ends, permuted, given, [source for source, _ in copied], targets)

    def compiled(self) -> Self:
        """The transfer, once XLA has compiled its program, if it has one."""
        if self.permuted is not None:
            # Any: JAX's programs have no types.
            self.permuted.program.compiled = cast(Any, self.permuted.lowered).compile()
        return self

    def __call__(self, array: Array) -> Sequence[Array]:
        """Moves the blocks of an array. Returns at once."""
        own = {shard.device: shard.data for shard in array.addressable_shards}
        parts = [own[source] if part is None else own[source][part] for source, part in self.within]
        with CONTROLLER.lock:
            sent = dict[Device, Array]()
            if self.permuted is not None:
                sent = self.permuted(own)
            elif self.within:
                CONTROLLER.note(self.name)
            parts += [sent[source] for source in self.copied]
            blocks = [*jax.device_put(parts, self.targets), *sent.values()]
            return [assembled(self.ends.shape, self.ends.dtype, self.ends.target, blocks)]


def _range(start: int, size: int) -> slice:
    return slice(start, start + size)


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
    dtype: str
    given: tuple[int, ...]
    """The shape of what a device gives. One that sends nothing gives zeros."""
    own: Sequence[Device]
    """The devices of this process."""
    receives: Sequence[Device]
    """The devices of this process that receive a block."""
    part: tuple[int, ...]
    """The shape of what a device receives."""

    @classmethod
    def of(cls, name: str, moves: Sequence[Move], ends: Ends) -> Self:
        """Lowers the program."""
        devices = sorted({device for move in moves for device in (move.source, move.target)}, key=lambda device: device.id)
        spec, mesh = PartitionSpec(UNION), DeviceMesh(np.array(devices), (UNION,), axis_types=(AxisType.Auto,))
        block, part = ends.block, ends.part
        turns = [Turn.of(each.values(), devices) for each in rounds(moves)]

        def transfer(given: Array) -> Sequence[Array]:
            here, received = lax.axis_index(UNION), jnp.zeros(part, given.dtype)
            for turn in turns:
                sent = lax.dynamic_slice(given.reshape(block), [*jnp.asarray(turn.starts)[here]], part)
                received = jnp.where(jnp.asarray(turn.receives)[here], lax.ppermute(sent, UNION, turn.pairs), received)
            return (received.reshape(part or (1,)),)

        program, sharding = Tokened(name, over_devices(transfer, mesh, [spec], [spec])), NamedSharding(mesh, spec)
        first, *more = block or (1,)
        taken = jax.ShapeDtypeStruct((len(devices) * first, *more), ends.dtype, sharding=sharding)
        with on_no_mesh():
            lowered = jax.jit(program.function).lower(taken)
        own = [*filter(is_here, devices)]
        return cls(
            program,
            lowered,
            sharding,
            ends.dtype,
            (first, *more),
            own,
            [move.target for move in moves if move.target in own],
            part,
        )

    def __call__(self, blocks: Mapping[Device, Array]) -> dict[Device, Array]:
        """Issues the program for the blocks of these devices. Returns those that devices of this process receive."""
        first, *more = self.given
        shape = self.sharding.mesh.size * first, *more
        given = [
            blocks[device].reshape(self.given) if device in blocks else jnp.zeros(self.given, self.dtype, device=device)
            for device in self.own
        ]
        (sent,) = CONTROLLER.run(self.program, jax.make_array_from_single_device_arrays(shape, self.sharding, given))
        received = {shard.device: shard.data for shard in sent.addressable_shards}
        return {device: received[device].reshape(self.part) for device in self.receives}


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


def put(array: Array | np.ndarray, sharding: NamedSharding) -> Array:
    """Puts an array on devices. One that is not committed, as those of NumPy, is the same in each process.

    To other processes it goes whole.
    """
    if jax.process_count() == 1:
        return jax.device_put(array, sharding)
    if not isinstance(array, Array) or not array.committed:
        return jax.make_array_from_callback(array.shape, sharding, np.asarray(array).__getitem__, dtype=array.dtype)
    have, want = devices_of(array.sharding), devices_of(sharding)
    processes = {*map(process_of, have | want)}
    if have == want or processes == {jax.process_index()}:
        return jax.device_put(array, sharding)
    if len(processes) == 1:
        return assembled(array.shape, array.dtype.name, sharding, ())
    whole = replicated(array)
    (moved,) = _transfer(Ends(array.shape, array.dtype.name, whole.sharding, sharding))(whole)
    return moved


@lru_cache(64)
def _transfer(ends: Ends) -> Transfer:
    # A program is traced in the same way, wherever an array is put.
    with eager_constant_folding(False):
        return Transfer.of("transfer` of `an argument", ends).compiled()
