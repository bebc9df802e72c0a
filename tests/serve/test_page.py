"""The page about serving: its server starts, and the blocks that ask it print what the page says."""

# Ray and what it brings is in no virtual environment that pyright reads.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingModuleSource=false

import os
import shlex
import signal
import subprocess
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import yaml
from documents import Page, users_environment
from root import ROOT

with warnings.catch_warnings(action="ignore"):
    # Ray declares its settings in a way that Pydantic deprecates.
    from ray.serve.schema import ServeDeploySchema

PAGE = Page(ROOT / "docs" / "serving.md")
BLOCKS = PAGE.blocks()


INTERRUPTED = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])"
"""Runs a command that SIGINT ends. One in the background ignores it, as all that it starts: so may continuous integration."""


@contextmanager
def serving(command: str) -> Generator[None]:
    """A context in which a command serves, from the line that says so until it is interrupted."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = users_environment() | {"PATH": path, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT / ".src")}
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "env", *shlex.split(command)],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    said = list[str]()
    try:
        for line in process.stdout:
            said.append(line)
            if "is ready at" in line:
                break
        assert said and "is ready at" in said[-1], "".join(said)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_the_page_serves_and_asks_as_it_says() -> None:
    for block in BLOCKS:
        if block.kind == "python":
            PAGE.python(block)
    served = [(block, after) for block, after in pairwise(BLOCKS) if block.kind.endswith("served")]
    (start, _), *rest = served
    with serving(start.text.removeprefix("$ ").strip()):
        for block, after in rest:
            assert (after.kind, PAGE.python(block)) == ("text", after.text)


def test_the_file_for_production_is_one_that_ray_serve_takes() -> None:
    from partita.examples.serve import Arguments

    (text,) = (block.text for block in BLOCKS if block.kind == "yaml")
    (application,) = ServeDeploySchema.model_validate(yaml.safe_load(text)).applications
    assert Arguments.model_validate(application.args).path == "/tmp/quadrants.partita-program"
    assert application.import_path == "examples.serve:build"
