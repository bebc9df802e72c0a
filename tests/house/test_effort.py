"""The programs of `benchmarks/effort`: all train alike, and the page has their lines and places."""

import os
import re
import subprocess
import sys

from root import ROOT

from partita.benchmarks.effort.measure import WAYS, effort


def test_all_ways_to_partition_a_step_train_as_the_plain_program() -> None:
    command = [sys.executable, "-m", "benchmarks.effort", "check"]
    environment = os.environ | {"JAX_NUMPY_RANK_PROMOTION": "allow"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == [f"{name}: trains as the plain program" for name in WAYS], done.stderr


def test_the_page_has_the_lines_and_places_of_each() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| .*_.* \|$", page, re.MULTILINE)
    assert {name: [int(each) for each in cells] for name, *cells in rows} == {
        name: effort(module) for name, module in WAYS.items()
    }
