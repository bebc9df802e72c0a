"""`partita run --processes`: one command in several processes on this host, and what is left of them if one is lost.

partita run --processes 2 train.py:main   -->   process 0 and process 1, each with half of the devices
                                          -->   error: process 1 of 2 was lost: it was ended by SIGKILL
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Self, cast

from ...dialects.ground.amounts import counted
from ...dialects.ground.errors import Error
from ..run.trail import Left

GRACE = 5.0
"""Seconds in which the other processes may end, once one is lost: several may have failed for one reason, and say so."""
GLOO = re.compile(r"\[Gloo\] Rank ?| ?is connected to ?| ?peer ranks\. ?|Expected number of connected peer ranks is : ?")
"""The pieces of what gloo prints when processes find each other."""
COMMAND = f"from {__name__.removesuffix('processes')}main import main; main()"


@dataclass
class Worker:
    """A process, its trail, and the threads that print what it says."""

    number: int
    process: subprocess.Popen[bytes]
    trail: Path
    readers: Sequence[Thread]
    has_spoken: bool = field(default=False, init=False)
    ended: float | None = field(default=None, init=False)
    """When it ended; None while it runs."""
    was_stopped: bool = field(default=False, init=False)
    """Whether it was ended because another one was lost."""

    @classmethod
    def start(cls, number: int, arguments: Sequence[str], trail: Path) -> Self:
        """Starts `partita` with these arguments. What Python prints, and what libraries in C++ do, have a pipe each."""
        environment = {"JAX_PLATFORMS": "cpu", **os.environ}
        read, write = os.pipe()
        command = [sys.executable, "-P", "-c", COMMAND, *arguments, "--process", str(number), "--parent", f"{write}:{trail}"]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        process = subprocess.Popen(command, env=environment, stdin=nothing, stdout=pipe, stderr=pipe, pass_fds=(write,))
        os.close(write)
        native, errors = cast("tuple[IO[bytes], IO[bytes]]", (process.stdout, process.stderr))
        sources = (os.fdopen(read, "rb"), sys.stdout), (native, sys.stdout), (errors, sys.stderr)
        made = cls(number, process, trail, [])
        made.readers = [Thread(target=made.pass_on, args=each, daemon=True) for each in sources]
        for each in made.readers:
            each.start()
        return made

    def pass_on(self, source: IO[bytes], sink: IO[str]) -> None:
        """Prints the lines of the process, each with its number."""
        lines = (line.decode(errors="replace").rstrip() for line in source)
        for line in without_gloo(lines) if source is self.process.stdout else lines:
            self.has_spoken = True
            sink.write(f"{self.number} | {line}\n")
            sink.flush()

    def poll(self) -> int | None:
        """How it has ended, as a return code; None while it runs."""
        code = self.process.poll()
        if code is not None and self.ended is None:
            self.ended = time.time()
        return code

    def stop(self) -> None:
        """Ends it at once. JAX makes processes ignore SIGTERM."""
        if self.poll() is None:
            self.was_stopped = True
            self.process.kill()
            self.process.wait()
            self.poll()

    @property
    def end(self) -> str:
        """How it has ended."""
        code = cast(int, self.process.returncode)
        if self.was_stopped:
            return "was ended by this command"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    def note(self) -> str:
        """How it has ended, and what it had issued."""
        return f"process {self.number} {self.end}; it {Left.by(self.trail).said(self.ended or time.time())}"


def without_gloo(lines: Iterable[str]) -> Iterator[str]:
    """Leaves out what gloo prints, from several threads at once: pieces of lines, and three numbers for each rank.

    "[Gloo] Rank [Gloo] Rank 0", "1 is connected to 7 ..."   -->   nothing
    """
    numbers = 0
    for line in lines:
        numbers += 3 * line.count("[Gloo] Rank")
        text, pieces = GLOO.subn(" ", line)
        if (pieces or numbers > 0) and re.fullmatch(r"[\d\s]*", text):
            numbers -= len(re.findall(r"\d+", text))
        else:
            yield text.strip() if pieces else line


@contextmanager
def joined(
    processes: int | None, process: int | None, coordinator: str | None, parent: str | None, devices: int
) -> Generator[int]:
    """A context in which this process has joined the others, with its part of the devices. It gives the number of the process.

    `processes` is None for one process, and 0 for those of a launcher. `parent` is what `run_all` says: where to print, and the
    file for the trail.
    """
    if processes is None:
        if process is not None or coordinator is not None:
            raise Error("--process and --coordinator need the number of processes", helps=["give it: --processes 2"])
    elif coordinator is not None and process is None:
        raise Error("--coordinator needs the number of this process", helps=["give it: --process 0"])
    from ..run.processes import INTERRUPTED, fail, join
    from ..run.trial_run import host_devices

    if processes is None:
        host_devices(devices)
        yield 0
        return
    trail = None if parent is None else _by_parent(*parent.split(":", 1))
    number, count = join(coordinator, processes or None, process, trail=trail)
    code: str | int | None = 1
    try:
        host_devices(_share(devices, count))
        yield number
        code = 0
    except SystemExit as error:
        code = error.code
        raise
    except KeyboardInterrupt:
        code = INTERRUPTED
        raise
    finally:
        if code:
            fail(code if isinstance(code, int) else 1)


def _by_parent(stdout: str, trail: str) -> Path:
    """Prints to the parent, and ends with it. Returns the file for the trail."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    sys.stdout = os.fdopen(int(stdout), "w", buffering=1)
    Thread(target=watch, daemon=True).start()
    return Path(trail)


def _share(devices: int, processes: int) -> int:
    """The devices of each process. Raises Error if they cannot have equally many."""
    if devices % processes:
        title = f"{counted(devices, 'device')} cannot be shared by {counted(processes, 'process', 'processes')}"
        raise Error(title, helps=[f"give a multiple: --devices {processes * max(1, devices // processes)}"])
    return devices // processes


def run_all(processes: int, devices: int, arguments: Sequence[str]) -> None:
    """Runs `partita` with these arguments in so many processes, and prints what they print.

    Raises Error, once all have ended, if one of them was lost: which and how, and what each had issued last.
    """
    _share(devices, processes)
    # The port is held until the end, so that nobody else takes it before process 0 does, which shares it.
    with tempfile.TemporaryDirectory(prefix="partita-") as folder, socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("localhost", 0))
        arguments = [*arguments, "--coordinator", f"localhost:{held.getsockname()[1]}"]
        workers = [Worker.start(number, arguments, Path(folder) / str(number)) for number in range(processes)]
        # Who ends this command ends them, too.
        signal.signal(signal.SIGTERM, _stopped)
        try:
            _await(workers)
        finally:
            for each in workers:
                each.stop()
                for reader in each.readers:
                    reader.join(GRACE)
        if lost := [each for each in workers if each.process.returncode]:
            raise _report(workers, min(lost, key=lambda each: each.ended or 0.0))


def _await(workers: Sequence[Worker]) -> None:
    """Waits until all processes have ended or, after one is lost, the grace of the others is over."""
    over = float("inf")
    while time.monotonic() < over:
        codes = [each.poll() for each in workers]
        if None not in codes:
            break
        if any(codes):
            over = min(over, time.monotonic() + GRACE)
        time.sleep(0.02)


def _stopped(number: int, _: object) -> None:
    sys.exit(128 + number)


def _report(workers: Sequence[Worker], first: Worker) -> Error:
    code, helps = first.process.returncode, list[str]()
    if code > 0 and len(workers) > 1 and all(each.process.returncode == code for each in workers):
        title = f"all {len(workers)} processes have ended with code {code}"
        return Error(title, helps=["see above what they say"])
    if code == -signal.SIGKILL:
        helps.append("SIGKILL is how Linux ends a process that takes too much memory: see `dmesg`, and `plan.memory()`")
    elif first.has_spoken:
        helps.append(f"see above what it says, in the lines that begin with `{first.number} |`")
    title = f"process {first.number} of {len(workers)} was lost: it {first.end}"
    return Error(title, notes=[each.note() for each in workers], helps=helps)
