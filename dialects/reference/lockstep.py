"""The values of a device set, in NumPy: one array for each device, in their order, all devices in lockstep.

`denote` says which elements of a layout a device holds, one by one. This file does not use blocks or divisibility, so it can
test the code that does.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..ground.dtypes import Array
from ..ground.errors import Error
from ..ground.monoids import MONOIDS
from ..layouts import Layout
from ..ranges.algebra import Place, coordinate, local_block
from ..ranges.windows import windows_of
from .scans import across

DeviceArrays = list[Array]
"""The local array of each device. Devices with equal arrays may share one object."""

Positions = tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]


@lru_cache(maxsize=1 << 14)
def _positions(layout: Layout, device: int) -> Positions:
    """For each dim the positions of the elements that a device holds; -1 for padding."""
    at: dict[Place, int] = {axis: coordinate(axis, device) for axis in layout.axes}
    held = [local_block(dim, at) for dim in layout.dims]
    return tuple(np.array([-1 if position is None else position for position in dim], np.int64) for dim in held)


def _zeroed(array: Array, layout: Layout, held: Positions) -> Array:
    """The local array with zeros where a halo is outside of its range; padding may hold anything."""
    for dim, (r, at) in enumerate(zip(layout.dims, held, strict=True)):
        if windows_of(r) is not None and (at < 0).any():
            array = array.copy()
            array[(slice(None),) * dim + (at < 0,)] = 0
    return array


def rank(axes: Sequence[Place], device: int) -> int:
    """The coordinate of a device along several axes, counted major to minor."""
    number = 0
    for axis in axes:
        number = number * axis.size + coordinate(axis, device)
    return number


@lru_cache(maxsize=1 << 12)
def groups(axes: tuple[Place, ...], devices: int) -> tuple[tuple[int, ...], ...]:
    """The groups of devices that differ only along `axes`, each group in their order."""
    ranks: dict[int, list[int]] = {}
    for device in range(devices):
        ranks.setdefault(rank(axes, device), []).append(device)
    # The devices of one rank are in the order of their other coordinates, which is the same for every rank.
    return tuple(zip(*(ranks[number] for number in sorted(ranks)), strict=True))


def distribute(array: Array, layout: Layout, devices: int, among: Sequence[int] | None = None) -> DeviceArrays:
    """Returns the local array of each device (of `among`; the others hold nothing).

    Over pending axes the first device holds the value, and the others hold the monoid's unit, or copies if it is idempotent.
    """
    empty = np.zeros((0,))
    value = [empty] * devices
    memory: dict[tuple[bytes, ...], Array] = {}
    for device in range(devices) if among is None else among:
        held = _positions(layout, device)
        key = tuple(each.tobytes() for each in held)
        if key not in memory:
            memory[key] = _zeroed(array[np.ix_(*(np.maximum(each, 0) for each in held))], layout, held) if held else array
        behind = [MONOIDS[pending.monoid] for pending in layout.pending if coordinate(pending.axis, device)]
        absent = next((monoid for monoid in behind if not monoid.idempotent), None)
        part = memory[key]
        value[device] = part if absent is None else np.full_like(part, absent.unit(part.dtype))
    return value


def collect(value: DeviceArrays, layout: Layout, devices: int, among: Sequence[int] | None = None) -> Array:
    """Returns the whole array from the parts of the devices (of `among`), with pending folds done."""
    value, layout = _scanned(value, layout, devices, among)
    parts: dict[tuple[int, ...], Array] = {}
    for device in range(devices) if among is None else among:
        at = tuple(coordinate(pending.axis, device) for pending in layout.pending)
        if at not in parts:
            parts[at] = np.zeros(layout.global_shape, value[device].dtype)
        held = _positions(layout, device)
        valid = [each >= 0 for each in held]
        inside = value[device][np.ix_(*valid)] if held else value[device]
        parts[at][np.ix_(*(each[keep] for each, keep in zip(held, valid, strict=True))) if held else ()] = inside
    for pending in reversed(layout.pending):
        folded: dict[tuple[int, ...], Array] = {}
        for at, part in parts.items():
            rest = at[:-1]
            folded[rest] = MONOIDS[pending.monoid].function(folded[rest], part) if rest in folded else part
        parts = folded
    return parts[()]


def _scanned(value: DeviceArrays, layout: Layout, devices: int, among: Sequence[int] | None) -> tuple[DeviceArrays, Layout]:
    """Resolves the pending scans of a value, which are all along one dim."""
    scans = tuple(pending for pending in layout.pending if pending.scans)
    if not scans:
        return value, layout
    dim, result = scans[0].dim, list(value)
    for group in groups(tuple(pending.axis for pending in scans), devices):
        order = sorted(group, key=lambda device: int(_positions(layout, device)[dim][0]))
        if among is None or set(order) <= set(among):
            blocks = across(MONOIDS[scans[0].monoid], [value[device] for device in order], dim, scans[0].backwards)
            for device, block in zip(order, blocks, strict=True):
                result[device] = block
    return result, Layout(layout.dims, tuple(pending for pending in layout.pending if not pending.scans))


def redistribute(value: DeviceArrays, source: Layout, target: Layout, devices: int) -> DeviceArrays:
    """Moves a value to another layout, by way of the whole array; reductions that stay pending are not done."""
    kept = tuple(pending.axis for pending in target.pending)
    resolved = Layout(source.dims, tuple(pending for pending in source.pending if pending not in target.pending))
    plain = Layout(target.dims)
    result = list(value)
    others: dict[tuple[int, ...], list[int]] = {}
    for device in range(devices):
        others.setdefault(tuple(coordinate(axis, device) for axis in kept), []).append(device)
    for among in others.values():
        moved = distribute(collect(value, resolved, devices, among), plain, devices, among)
        for device in among:
            result[device] = moved[device]
    return result


def cut(value: DeviceArrays, source: Layout, target: Layout, devices: int) -> DeviceArrays:
    """Cuts each device's part in `target` out of its local array in `source`.

    Raises Error if the device does not hold all of it.
    """
    result: DeviceArrays = []
    memory: dict[tuple[int, tuple[bytes, ...]], Array] = {}
    for device in range(devices):
        held, wanted = _positions(source, device), _positions(target, device)
        key = (id(value[device]), tuple(each.tobytes() for each in (*held, *wanted)))
        if key not in memory:
            memory[key] = _cut_part(value[device], held, target, wanted)
        result.append(memory[key])
    return result


def _cut_part(array: Array, held: Positions, target: Layout, wanted: Positions) -> Array:
    if not array.size or not held:
        # Windows of an array without elements have zeros alone.
        return np.zeros([len(each) for each in wanted], array.dtype) if held else array
    inner = [_within(mine, part) for mine, part in zip(held, wanted, strict=True)]
    return _zeroed(array[np.ix_(*inner)], target, wanted)


def _within(held: np.ndarray[tuple[int], np.dtype[np.int64]], wanted: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    index = {int(each): number for number, each in enumerate(held)} | ({-1: 0} if len(held) else {})
    if missing := [int(each) for each in wanted if int(each) not in index]:
        raise Error(f"a slice needs element {missing[0]}, which this device does not hold")
    return [index[int(each)] for each in wanted]
