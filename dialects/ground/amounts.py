"""Writes counts and amounts in English."""

from collections.abc import Sequence

BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
DECIMAL = ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP")


def counted(count: int, one: str, many: str = "") -> str:
    """Writes a count with its noun: `1 dim`, `2 dims`, `2 indices`. `many` is the plural, where it takes more than an `s`.

    counted(1_000, "value")   -->   "1,000 values"
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def there_are(count: int) -> str:
    """Writes `there is 1` or `there are 2`."""
    return f"there {'is' if count == 1 else 'are'} {count:,}"


def of_bytes(count: int) -> str:
    """Writes a number of bytes in the unit that leaves about three digits: `840 bytes`, `1.50 GiB`.

    of_bytes(59_398)   -->   "58.0 KiB"
    """
    return _scaled(count, 1024, BINARY)


def of_flops(count: int) -> str:
    """Writes a number of operations in the unit that leaves about three digits: `512 FLOP`, `5.17 MFLOP`."""
    return _scaled(count, 1000, DECIMAL)


def _scaled(count: int, base: int, units: Sequence[str]) -> str:
    amount, at = float(count), 0
    # What would be rounded up to the next unit is in that unit.
    while amount >= base * 0.9995 and at < len(units) - 1:
        amount, at = amount / base, at + 1
    return f"{amount:,.{0 if not at or amount >= 99.95 else 1 if amount >= 9.995 else 2}f} {units[at]}"
