"""Real text that every machine has: the source of Python's standard library."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np


def corpus(limit: int = 2_000_000) -> np.ndarray:
    """The first `limit` characters of the standard library's top-level modules, as ASCII codes."""
    modules = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    text = b"".join(module.read_bytes() for module in modules)[:limit]
    codes = np.frombuffer(text, np.uint8).astype(np.int32)
    return codes[codes < 128]


def batches(text: np.ndarray, batch: int, length: int, seed: int = 0) -> Iterator[dict[str, np.ndarray]]:
    """Random windows of the text: `x` and the characters that follow, `y`, each `[batch, length]`."""
    random = np.random.default_rng(seed)
    while True:
        starts = random.integers(0, len(text) - length, batch)
        windows = text[starts[:, None] + np.arange(length + 1)]
        yield {"x": windows[:, :-1], "y": windows[:, 1:]}
