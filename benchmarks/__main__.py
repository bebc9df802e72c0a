"""Runs every benchmark in a process of its own; each writes its tables to `benchmarks/results`, as JSON and Markdown."""

import subprocess
import sys

for benchmark in ("step_time", "step_times", "ranges", "windows", "heat", "spatial_unet", "memory", "speed", "long"):
    subprocess.run([sys.executable, "-m", f"benchmarks.{benchmark}"], check=True)
