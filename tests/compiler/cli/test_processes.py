"""`partita run --processes`, and programs that a launcher starts: they run as one process does, and a lost one is reported."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pytest
from root import ROOT
from wrong_values import KINDS

import partita as pt
from partita.compiler.cli.processes import without_gloo
from partita.compiler.run.trail import Left, Trail

PROGRAMS = ROOT / "tests" / "support" / "in_two_processes.py"
START = 100
"""Seconds until all processes run, on a machine that is busy."""
SOON = 30
"""The most seconds until all processes have ended, once one is lost."""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command in a group of processes that does not outlive the test. Its errors are printed among its output."""
    started = list[subprocess.Popen[str]]()

    def begun(*command: str, **more: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "FOLDER": str(tmp_path), "PYTHONUNBUFFERED": "1", **more}
        pipe, both = subprocess.PIPE, subprocess.STDOUT
        made = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=pipe, stderr=both, text=True, start_new_session=True
        )
        started.append(made)
        return made

    yield begun
    for each in started:
        if each.poll() is None:
            os.killpg(each.pid, signal.SIGKILL)
        # It closes the pipe, and waits.
        with each:
            pass


def partita(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from partita.compiler.cli.main import main; main()", *arguments]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


def wait_for(text: str, output: IO[str] | None, times: int = 1) -> None:
    """Reads lines until some have had this text."""
    for line in cast("IO[str]", output):
        times -= text in line
        if not times:
            return
    raise AssertionError(f"the output ends before {text}")


def in_one_process(folder: Path, number: int, line: str) -> None:
    """Writes a program of which one process runs a line, and the others wait for it in a sum over all devices."""
    (folder / "program.py").write_text(
        "import sys; import jax; import partita as pt\n"
        "def main():\n"
        f"    if jax.process_index() == {number}:\n"
        f"        {line}\n"
        "    total = pt.jit(lambda x: x.sum(), mesh=pt.Mesh(d=8), tactics=[pt.Tile({'x': 0}, 'd')])\n"
        "    total(jax.numpy.ones(8)).block_until_ready()\n"
    )


def children(parent: int) -> dict[str, int]:
    """The processes that `partita run` has started, by their numbers."""
    found = dict[str, int]()
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (each / "cmdline").read_bytes().decode().split("\0")
            if "--process" in words and f"PPid:\t{parent}\n" in (each / "status").read_text():
                found[words[words.index("--process") + 1]] = int(each.name)
    return found


def test_two_processes_run_as_one(start: Start) -> None:
    """SPMD steps, graphs, gradients, saved graphs, transfers of all kinds, and an overlap of two stages."""
    run = start(*partita("run", "--processes", "2", f"{PROGRAMS}:main"))
    output, _ = run.communicate(timeout=2 * START)
    assert run.returncode == 0, output
    expected = [
        "a step over both processes equal",
        "a graph across both equal",
        "results on one set equal",
        "the saved graph equal",
        "a plan on sets differs by less than 1e-3: True",
        "kernels one by one equal",
        "a program of its own result equal",
        "a batch equal",
        "eight inputs equal",
    ]
    said = [[line[4:] for line in output.splitlines() if line[:4] == f"{number} | "] for number in range(2)]
    # Libraries may print, too.
    assert [[text for text in each if text in expected] for each in said] == [expected, expected], output
    assert len({text for each in said for text in each if text.startswith("checksum")}) == 1, output
    first, second = (json.loads(text.removeprefix("ran")) for each in said for text in each if text.startswith("ran "))
    # The second stage begins when the first one has ended, and the first one does not wait for it with the next input.
    assert all(made[1] <= taken[0] for made, taken in zip(first, second, strict=True)), output
    together = [later[0] < taken[1] for later, taken in zip(first[1:], second, strict=False)]
    assert together.count(True) >= 5, output


@pytest.mark.parametrize("victim", ["0", "1"])
def test_a_process_that_is_killed_is_reported(start: Start, victim: str) -> None:
    run = start(*partita("run", "--processes", "2", f"{PROGRAMS}:endless"))
    wait_for("running", run.stdout, 2)
    killed = time.monotonic()
    os.kill(children(run.pid)[victim], signal.SIGKILL)
    output, _ = run.communicate(timeout=SOON)
    assert time.monotonic() - killed < SOON
    assert run.returncode == 1
    error, *notes = output[output.index("error: process") :].splitlines()
    assert error == f"error: process {victim} of 2 was lost: it was ended by SIGKILL"
    end = r"(?:was ended by [\w ]+|ended with code 1)"
    told = rf"note: process (\d) {end}; it had issued \d+ programs; the last, [\d.]+ s before: `<lambda>` .*"
    found = [re.fullmatch(told, note) for note in notes[:2]]
    assert [each and each[1] for each in found] == ["0", "1"], notes
    assert "SIGKILL" in notes[int(victim)]
    assert "takes too much memory" in notes[2]


def test_a_process_that_raises_is_lost(start: Start, tmp_path: Path) -> None:
    """It does not wait for the others, which wait for it; its own error is printed."""
    in_one_process(tmp_path, 1, "raise ValueError('no such file of data')")
    run = start(*partita("run", "--processes", "2", "program.py:main"))
    output, _ = run.communicate(timeout=START)
    assert run.returncode == 1
    assert "1 | error: your program raised ValueError: no such file of data" in output
    assert "program.py:4:9" in output
    assert "error: process 1 of 2 was lost: it ended with code 1" in output
    assert "note: process 0 was ended by this command" in output


def test_under_a_launcher_each_process_reports_itself(start: Start, tmp_path: Path) -> None:
    """JAX ends the process that is left; a watcher of each prints what it had issued last."""
    (tmp_path / "program.py").write_text(
        "import sys; import jax; import partita as pt\n"
        "jax.config.update('jax_platforms', 'cpu'); jax.config.update('jax_num_cpu_devices', 4)\n"
        "pt.initialize_distributed(sys.argv[1], 2, int(sys.argv[2]), heartbeat_timeout_seconds=5)\n"
        "pt.initialize_distributed()\n"
        f"sys.path.insert(0, {str(PROGRAMS.parent)!r})\n"
        "import in_two_processes\n"
        "in_two_processes.endless()\n"
    )
    address = f"localhost:{free_port()}"
    first, second = (start(sys.executable, "program.py", address, number) for number in "01")
    for each in (first, second):
        wait_for("running", each.stdout)
    second.kill()
    left, _ = first.communicate(timeout=SOON)
    assert first.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in left
    told = (
        r"process {} of 2 did not end in order; it had issued \d+ programs; the last, [\d.]+ s before: `<lambda>` \(\d+ times\)"
    )
    assert re.search(told.format(0), left), left
    output, _ = second.communicate(timeout=SOON)
    assert re.search(told.format(1), output), output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--processes", "3"], "8 devices cannot be shared by 3 processes\nhelp: give a multiple: --devices 6"),
        (["--processes", "0"], "it takes a number of processes, or `auto`"),
        (["--processes", "two"], "it takes a number of processes, or `auto`"),
        (["--process", "1"], "--process and --coordinator need the number of processes"),
        (["--coordinator", "localhost:1"], "--process and --coordinator need the number of processes"),
        (["--processes", "2", "--coordinator", "localhost:1"], "--coordinator needs the number of this process"),
        (
            ["--processes", "2", "--process", "2", "--coordinator", "localhost:1"],
            "`process_id` takes a number below num_processes",
        ),
        (["--processes", "2", "--process", "0", "--coordinator", "here"], "`coordinator_address` takes a host and a port"),
        (["--processes", "2", "--process", "0"], "this process cannot join the others\nnote: JAX says: coordinator_address"),
        (["--processes", "auto"], "this process cannot join the others\nnote: JAX says: coordinator_address"),
    ],
)
def test_wrong_options(start: Start, arguments: list[str], expected: str) -> None:
    run = start(*partita("run", *arguments, f"{PROGRAMS}:main"))
    output, _ = run.communicate(timeout=START)
    assert run.returncode
    assert expected in output


def test_a_program_runs_in_one_process_too(start: Start, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import jax\ndef main():\n    print(jax.process_count(), len(jax.devices()))\n")
    output, _ = start(*partita("run", "--devices", "2", "program.py:main")).communicate(timeout=START)
    assert output == "1 2\n`program.py:main` has run; it returned no plan to compare\n"
    output, _ = start(*partita("run", "program.py:main", "-t", "resolve()")).communicate(timeout=START)
    assert "error: `program.py:main` returned NoneType, expected a plan" in output


def test_a_process_alone_has_nobody_to_join() -> None:
    """Or it is too late, where an earlier test has run something."""
    with pytest.raises(pt.Error, match="this process cannot join the others") as found:
        pt.initialize_distributed()
    help = "call it before anything that needs devices" if "before any JAX" in str(found.value) else "partita run --processes 2"
    assert found.value.helps[0].startswith(help)


@pytest.mark.parametrize("value", [*map(KINDS.__getitem__, KINDS)], ids=[*KINDS])
@pytest.mark.parametrize("name", ["coordinator_address", "num_processes", "process_id", "heartbeat_timeout_seconds"])
def test_a_wrong_value_is_an_error_of_ours(name: str, value: Callable[[], Any]) -> None:
    """It names the parameter; or the value is right, and there is nobody to join."""
    with pytest.raises(pt.Error) as found:
        pt.initialize_distributed(**{name: value()})
    assert f"`{name}` takes " in found.value.title or found.value.title == "this process cannot join the others"
    assert f"`{name}` takes " in found.value.title or isinstance(value(), int | np.integer) or value() is None


def test_a_trail_has_the_last_lines(tmp_path: Path) -> None:
    file = tmp_path / "trail"
    assert Left.by(file).said(0.0) == "had issued no program"
    trail = Trail(file)
    assert Left.by(file).said(0.0) == "had issued no program"
    for number in range(20):
        trail.note(f"`f{number // 2}`")
    left = Left.by(file)
    assert not left.in_order
    expected = ", ".join(f"`f{number}` (2 times)" for number in range(4, 10))
    assert left.said(left.lines[-1][0] + 1.25) == f"had issued 20 programs; the last, 1.2 s before: {expected}"
    trail.note("`" + "é" * 500)
    assert Left.by(file).lines[-1][2].startswith("`éé")
    trail.close()
    assert Left.by(file).in_order


def test_what_gloo_prints_is_left_out() -> None:
    """Also in pieces, as of several threads. What others print stays."""
    end = "peer ranks. Expected number of connected peer ranks is : 7"
    whole = f"[Gloo] Rank 0 is connected to 7 {end}"
    assert [*without_gloo([whole, "8", "", whole, "loss 7"])] == ["8", "", "loss 7"]
    torn = [
        "[Gloo] Rank [Gloo] Rank 31 is connected to  is connected to 77",
        end,
        end[:12],
        end[12:],
        "7",
        "[Gloo] Rank 1epoch 2",
    ]
    assert [*without_gloo(torn)] == ["1epoch 2"]


@pytest.mark.parametrize(("leave", "number"), [("sys.exit(5)", 0), ("sys.exit('no data')", 1), ("raise SystemExit(5)", 1)])
def test_a_process_that_leaves_is_lost(start: Start, tmp_path: Path, leave: str, number: int) -> None:
    in_one_process(tmp_path, number, leave)
    output, _ = start(*partita("run", "--processes", "2", "program.py:main")).communicate(timeout=START)
    assert f"error: process {number} of 2 was lost: it ended with code {5 if '5' in leave else 1}" in output
    assert ("no data" in output) == ("no data" in leave)


def test_an_error_of_all_is_told_once_more(start: Start, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("def main():\n    raise ValueError('no data')\n")
    output, _ = start(*partita("run", "--processes", "2", "program.py:main")).communicate(timeout=START)
    assert output.count("your program raised ValueError: no data") == 2
    assert output.endswith("error: all 2 processes have ended with code 1\nhelp: see above what they say\n")


def test_processes_end_with_the_command(start: Start) -> None:
    run = start(*partita("run", "--processes", "2", f"{PROGRAMS}:endless"))
    wait_for("running", run.stdout, 2)
    left = children(run.pid).values()
    run.kill()
    ends = time.monotonic() + SOON
    while any(Path(f"/proc/{each}").exists() for each in left) and time.monotonic() < ends:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{each}").exists() for each in left)
