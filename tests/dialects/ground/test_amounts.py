"""Counts and amounts as texts say them."""

import pytest
from hypothesis import given, strategies as st

from partita.dialects.ground.amounts import of_bytes, of_flops


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1024, "1.00 KiB"),
        (13_002_342, "12.4 MiB"),
        (59_398, "58.0 KiB"),
        (10_239, "10.0 KiB"),
        ((1 << 20) - 1, "1.00 MiB"),
        (1 << 60, "1.00 EiB"),
        (1 << 72, "4,096 EiB"),
    ],
)
def test_bytes_have_three_digits(count: int, text: str) -> None:
    assert of_bytes(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 FLOP"), (999, "999 FLOP"), (5_166_088, "5.17 MFLOP"), (999_999, "1.00 MFLOP"), (10**12, "1.00 TFLOP")],
)
def test_flops_have_three_digits(count: int, text: str) -> None:
    assert of_flops(count) == text


@given(st.integers(1, 1 << 60))
def test_an_amount_is_within_half_of_its_last_digit(count: int) -> None:
    amount, unit = of_bytes(count).split()
    step = 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB").index(unit)
    assert abs(float(amount.replace(",", "")) * step - count) <= 0.0051 * count
