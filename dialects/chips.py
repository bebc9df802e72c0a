"""The chips that a mesh may name: how fast each computes, and receives from other chips.

v5e   -->   197 TFLOP/s in bf16; 16 GB; 45 GB/s over a link; 25/4 GB/s over the network between pods
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .ground.amounts import UNITS, exact_bytes, read_bytes
from .ground.errors import Error, did_you_mean
from .ground.validation import shown

HOST_BYTES_PER_SECOND = 25e9
"""What a host receives over the network between pods. The chips of the host share it."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A kind of chip, by what one of them does. Bytes are decimal: 1 GB is 10^9 bytes."""

    name: str
    flops_per_second: float
    """In bf16."""
    memory: int
    """The bytes that it stores, or that a plan may use of them."""
    memory_bytes_per_second: float
    """What it reads of its own memory."""
    bytes_per_second: float
    """What it receives over one link, one way."""
    per_host: int
    """How many chips a host has."""

    @property
    def slow_bytes_per_second(self) -> float:
        """What it receives over slow links: its share of what its host receives."""
        return HOST_BYTES_PER_SECOND / self.per_host


_TABLE = """
v3       140     32    0.9    100    4
v4       275     32    1.2     45    4
v5e      197     16    0.81    45    4
v5p      459     96    2.8     90    4
v6e      920     32    1.6     90    4
A100     312     80    2.0    300    8
H100     989     80    3.35   450    8
"""
"""TFLOP/s, GB, TB/s of the memory, GB/s over a link, chips of a host."""


def _chip(name: str, tera: str, giga: str, memory: str, link: str, host: str) -> Chip:
    return Chip(name, float(tera) * 1e12, int(giga) * 10**9, float(memory) * 1e12, float(link) * 1e9, int(host))


CHIPS: Mapping[str, Chip] = {line.split()[0]: _chip(*line.split()) for line in _TABLE.strip().splitlines()}
"""Each chip, by its name."""

DEFAULT = "v5e"
"""The chip of a mesh that names none."""


def with_memory(chip: Chip, given: object) -> Chip:
    """The chip of which a plan may use so many bytes of memory: `12GiB`. Raises `Error` for what is no number of bytes."""
    most = read_bytes(str.__str__(given)) if isinstance(given, str) else None
    if most is None or most < 1:
        helps = [f'write memory="12GiB"; the units are {", ".join(UNITS)}']
        raise Error(f"`memory` takes how much of a device's memory a plan may use, got {shown(given)}", helps=helps)
    return replace(chip, memory=most)


def said(chip: Chip) -> Sequence[tuple[str, str]]:
    """What a mesh says of its chip: its name, and how much of its memory a plan may use. Empty for the usual chip."""
    known = CHIPS[chip.name].memory
    words = [("chip", chip.name)] if chip.name != DEFAULT else []
    return words if chip.memory == known else [*words, ("memory", exact_bytes(chip.memory))]


def chip_of(given: object) -> Chip:
    """The chip of this name. Raises `Error` if there is none."""
    found = CHIPS.get(given) if isinstance(given, str) else None
    if found is None:
        text = str.__str__(given) if isinstance(given, str) else ""
        near = [name for name in CHIPS if name.casefold() == text.casefold()] or CHIPS
        helps = [*did_you_mean(text, near), f"the chips are {', '.join(CHIPS)}; an axis of this name takes its size: chip=4"]
        raise Error(f"`chip` takes the name of a chip, got {shown(given)}", helps=helps)
    return found
