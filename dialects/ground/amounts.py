"""Writes counts and amounts in English."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
UNITS: Mapping[str, int] = {
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T"), 1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
}
"""The units of bytes that are read, each with its bytes."""
DECIMAL = ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP")
TIMES = ("ns", "us", "ms", "s")


def counted(count: int, one: str, many: str = "") -> str:
    """Writes a count with its noun: `1 dim`, `2 dims`, `2 indices`. `many` is the plural, where it takes more than an `s`.

    counted(1_000, "value")   -->   "1,000 values"
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def there_are(count: int) -> str:
    """Writes `there is 1` or `there are 2`."""
    return f"there {'is' if count == 1 else 'are'} {count:,}"


def at_most(most: int, rows: Sequence[object], what: str = "") -> list[str]:
    """The first `most` of these rows as texts and, if there are more, a last one that says how many: `and 3 more`."""
    return [*map(str, rows[:most]), *([f"and {len(rows) - most} more{what}"] if len(rows) > most else [])]


def of_bytes(count: int) -> str:
    """Writes a number of bytes in the unit that leaves about three digits: `840 bytes`, `1.50 GiB`.

    of_bytes(59_398)   -->   "58.0 KiB"
    """
    return _scaled(count, 1024, BINARY)


def exact_bytes(count: int) -> str:
    """Writes a number of bytes exactly, in the largest unit that divides it: `12GiB`, `1500MB`."""
    unit, size = max(((unit, size) for unit, size in UNITS.items() if count % size == 0), key=lambda each: each[1])
    return f"{count // size}{unit}"


def read_bytes(text: str) -> int | None:
    """The number of bytes that a text says, in one of `UNITS`: `12GiB`, `1.5 GB`. None if it says none."""
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?) ?([a-zA-Z]+)", text)
    return None if found is None or found[2] not in UNITS else int(Fraction(found[1]) * UNITS[found[2]])


def of_flops(count: int) -> str:
    """Writes a number of operations in the unit that leaves about three digits: `512 FLOP`, `5.17 MFLOP`."""
    return _scaled(count, 1000, DECIMAL)


def of_seconds(seconds: float) -> str:
    """Writes a time in the unit that leaves about three digits: `18.8 us`, `1.25 ms`."""
    return _scaled(round(seconds * 10**9), 1000, TIMES)


def _scaled(count: int, base: int, units: Sequence[str]) -> str:
    amount, at = float(count), 0
    # What would be rounded up to the next unit is in that unit.
    while amount >= base * 0.9995 and at < len(units) - 1:
        amount, at = amount / base, at + 1
    return f"{amount:,.{0 if not at or amount >= 99.95 else 1 if amount >= 9.995 else 2}f} {units[at]}"
