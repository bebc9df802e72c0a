"""Runs every benchmark in a process of its own; each writes its tables to `benchmarks/results`, as JSON and Markdown.

`memory`, `tpu` and `recompute` run only where XLA's compiler for TPUs is installed.
"""

import subprocess
import sys
from importlib.util import find_spec

OPTIONAL = ("memory", "tpu", "recompute") if find_spec("libtpu") else ()

for benchmark in (
    "step_time",
    "step_times",
    "time",
    "ranges",
    "windows",
    "heat",
    "spatial_unet",
    "effort",
    "speed",
    "composites",
    "shell",
    "long",
    "growth",
    "pages",
    *OPTIONAL,
):
    subprocess.run([sys.executable, "-m", f"benchmarks.{benchmark}"], check=True)
