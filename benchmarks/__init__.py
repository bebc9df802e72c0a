"""Figures, side by side with peers in the same run: `python -m benchmarks` writes `benchmarks/results`."""
