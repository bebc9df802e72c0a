"""The programs of `docs/devices.md`: in two processes with four devices each, and for a TPU pod that is only described."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import programs, users_environment
from root import ROOT

HOST, TRAIN, STAGES, LOST, POD = programs(ROOT / "docs" / "devices.md")
WAIT = 120
"""Seconds, on a machine that is busy."""
PARTITA = [sys.executable, "-c", "from partita.compiler.cli.main import main; main()"]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=users_environment(), capture_output=True, text=True, timeout=WAIT)


def in_two_processes(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(code)
    return run([*PARTITA, "run", "--processes", "2", "program.py:main"], folder)


def test_one_host(tmp_path: Path) -> None:
    code, expected = HOST
    assert run([sys.executable, "-c", code], tmp_path).stdout == expected


@pytest.mark.parametrize("program", [TRAIN, STAGES], ids=["train", "stages"])
def test_two_processes_print_what_the_page_says(program: tuple[str, str], tmp_path: Path) -> None:
    code, expected = program
    done = in_two_processes(code, tmp_path)
    assert done.returncode == 0, done.stderr
    # Processes print at the same time.
    assert sorted(line for line in done.stdout.splitlines() if line in expected.splitlines()) == sorted(
        expected.splitlines()
    ), done


def test_a_lost_process_looks_as_the_page_says(tmp_path: Path) -> None:
    code, expected = LOST
    done = in_two_processes(code, tmp_path)
    assert done.returncode == 1
    told, said = (re.sub(r"\d+\.\d+ s", "? s", text) for text in (done.stderr, expected))
    assert told[told.index("error: process") :] == said


@pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="needs XLA's compiler for TPUs: pip install 'partita[tpu]'"
)
def test_a_plan_compiles_for_a_pod_that_is_not_there(tmp_path: Path) -> None:
    code, expected = POD
    (tmp_path / "pod.py").write_text(code)
    done = run([sys.executable, "pod.py"], tmp_path)
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
