"""Runs each measurement in a separate process, so that no cache of an earlier one is warm."""

import json
import subprocess
import sys
from statistics import median
from typing import Any


def measure(module: str, *arguments: object) -> dict[str, float]:
    """Runs `python -m benchmarks.MODULE ARGUMENTS` and reads the JSON object of figures on its last line."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure over several runs."""
    return {name: median(run[name] for run in runs) for name in runs[0]}


def answer(**figures: Any) -> None:
    """Prints the figures of the measured process for `measure` to read."""
    print(json.dumps(figures))
