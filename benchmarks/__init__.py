"""Figures, side by side with peers in the same run: `python -m benchmarks` writes `benchmarks/results`."""

import sys
from pathlib import Path

# Some programs that are measured are those of the tests, whose modules find each other there.
sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))
