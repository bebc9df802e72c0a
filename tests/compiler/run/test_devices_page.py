"""The programs of `docs/devices.md`: two processes with four devices each, and a TPU pod that is only described."""

import importlib.util
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from documents import programs, users_environment
from root import ROOT

PROCESSES, POD = programs(ROOT / "docs" / "devices.md")
WAIT = 120
"""Seconds. A process that waits for the other one, in vain, ignores SIGTERM, so it is killed."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


def start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=users_environment(), stdout=pipe, stderr=pipe, text=True)


def test_two_processes_train_as_one_that_is_unpartitioned(tmp_path: Path) -> None:
    code, expected = PROCESSES
    (tmp_path / "train.py").write_text(code)
    command = [sys.executable, "train.py", f"localhost:{free_port()}"]
    started = [start([*command, str(process)], tmp_path) for process in range(2)]
    try:
        printed = [each.communicate(timeout=WAIT) for each in started]
    finally:
        for each in started:
            each.kill()
    assert [each.returncode for each in started] == [0, 0], printed
    assert [out.splitlines()[-1] for out, _ in printed] == expected.splitlines()


@pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="needs XLA's compiler for TPUs: pip install 'partita[tpu]'"
)
def test_a_plan_compiles_for_a_pod_that_is_not_there(tmp_path: Path) -> None:
    code, expected = POD
    (tmp_path / "pod.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "pod.py"], cwd=tmp_path, env=users_environment(), capture_output=True, text=True, timeout=WAIT
    )
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
