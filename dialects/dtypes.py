"""Element types: NumPy's names inside, the short ones of MLIR and HLO in text."""

from __future__ import annotations

from functools import cache

_SHORT = (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "i"))


@cache
def short(dtype: str) -> str:
    """The name that text uses: `float32 --> f32`, `float8_e4m3fn --> f8_e4m3fn`; `bool` and others stay as they are."""
    for name, brief in _SHORT:
        if dtype.startswith(name) and dtype[len(name) :][:1].isdecimal():
            return brief + dtype[len(name) :]
    return dtype


@cache
def long(text: str) -> str:
    """The NumPy name that text stands for: `bf16 --> bfloat16`."""
    for name, brief in _SHORT:
        if text.startswith(brief) and text[len(brief) :][:1].isdecimal():
            return name + text[len(brief) :]
    return text
