"""The benchmarks load with each version of JAX; what they measure is in `benchmarks/results`."""

import subprocess
import sys

from root import ROOT

LOAD = """
import pkgutil
from importlib import import_module
import benchmarks
for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks."):
    if not module.name.endswith("__main__"):
        print(import_module(module.name).__name__)
"""


def test_every_benchmark_loads() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", LOAD], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 25
