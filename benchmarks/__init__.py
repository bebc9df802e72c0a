"""Figures, side by side with peers in the same run: `python -m benchmarks` measures all and writes `benchmarks/results`."""
