"""A program in several processes: `initialize_distributed` joins this one to the others.

The runtime is JAX's own. If one process is lost, it ends the others: from C++, by SIGABRT, without a Python exception. So each
process keeps a trail of what it has issued, and a watcher prints its end.

    process 0: pt.initialize_distributed("host:1234", 2, 0)
    process 1: pt.initialize_distributed("host:1234", 2, 1)   -->   jax.devices() are those of both
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from ...dialects.ground.errors import Error, first_line
from ...dialects.ground.validation import checked, integer, refused
from ..jax_private import distributed_state, jax
from .controller import CONTROLLER
from .trail import Trail, __file__ as trail_file

_FAILED = list[tuple[int, int]]()
"""Codes with which this process was to end because of an error, and how much it had issued before."""
INTERRUPTED = 130
"""The code of a process that Ctrl-C has ended."""
GRACE = 2.0
"""Seconds that process 0 waits when it has failed."""
HEARTBEAT = 20
"""After so many seconds without a sign of life of a process, JAX ends the others."""


@checked
def initialize_distributed(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    heartbeat_timeout_seconds: int = HEARTBEAT,
) -> None:
    """Join this process to the others of a program: `jax.devices()` are those of all processes from then on.

    It is `jax.distributed.initialize` with another heartbeat, and says how the process ends. Call it before anything that needs
    devices. Under a launcher that JAX knows (Slurm, Open MPI, Kubernetes, Cloud TPU) it needs no arguments. Under
    `partita run --processes` it has been called, and does nothing.

    If a process is lost, JAX ends all others within `heartbeat_timeout_seconds` and some 10 s. Each prints, to stderr, where it
    was and what it had issued last. A process that ends by an exception, or by `sys.exit` with a code, is lost,
    too: it waits for nobody.

    Raises Error if there is no launcher and an argument is missing, if JAX has devices already, and if the coordinator, which
    is process 0, cannot be reached.

        initialize_distributed("host:1234", num_processes=2, process_id=0)
    """
    if not jax.distributed.is_initialized():
        join(coordinator_address, num_processes, process_id, heartbeat_timeout_seconds)


def join(
    address: str | None, processes: int | None, number: int | None, heartbeat: int = HEARTBEAT, trail: Path | None = None
) -> tuple[int, int]:
    """Joins this process to the others. Returns its number, and that of all processes.

    It keeps its trail in the given file, which somebody else reads, or in one of its own, with a watcher that prints its end.
    """
    _check(address, processes, number, heartbeat)
    try:
        jax.distributed.initialize(address, processes, number, heartbeat_timeout_seconds=heartbeat)
    except (ValueError, TypeError, RuntimeError) as error:
        helps = [
            "call it before anything that needs devices",
            "partita run --processes 2 train.py:main starts two processes on this host",
            'or say it all: pt.initialize_distributed("host:1234", num_processes=2, process_id=0)',
        ]
        is_late = "before any JAX" in str(error)
        notes = [f"JAX says: {first_line(error)}"]
        raise Error("this process cannot join the others", notes=notes, helps=helps[:1] if is_late else helps[1:]) from error
    place: tuple[int, int] = distributed_state.process_id, distributed_state.num_processes
    with suppress(UnsupportedOperation, AttributeError, RuntimeError, ValueError):
        # Where stderr is no file, as in a notebook, nobody reads it there.
        faulthandler.enable()
    CONTROLLER.trail = kept = Trail(trail or _watched("process {} of {}".format(*place)))
    _note_failures()
    atexit.register(_end, kept, os.getpid(), place[0])
    return place


def fail(code: int = 1) -> None:
    """Says that this process ends because of an error, so that it does not wait until all others have ended in order."""
    _FAILED.append((code, CONTROLLER.trail.count if CONTROLLER.trail is not None else 0))


def _note_failures() -> None:
    """Notes when the process ends by an exception, or by `sys.exit` with another code than 0."""
    hook, leave = sys.excepthook, sys.exit

    def failing(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        hook(kind, error, trace)
        fail(INTERRUPTED if issubclass(kind, KeyboardInterrupt) else 1)

    def leaving(code: str | int | None = None, /) -> NoReturn:
        if code:
            fail(code if isinstance(code, int) else 1)
        leave(code)

    sys.excepthook, sys.exit = failing, leaving


def _end(kept: Trail, process: int, number: int) -> None:
    """Waits for the other processes, and closes the trail. If this one has failed, it ends at once: they wait for it.

    It has not failed if it has issued something after that: somebody has caught it.
    """
    if os.getpid() != process:
        # A child, which was forked.
        return
    if _FAILED and _FAILED[-1][1] == kept.count:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()
        if number == 0:
            # With this one JAX ends all. They may have failed for the same reason, and say so.
            time.sleep(GRACE)
        os._exit(_FAILED[-1][0])
    jax.distributed.shutdown()
    kept.close()


def _check(address: str | None, processes: int | None, number: int | None, heartbeat: int) -> None:
    """Raises Error for arguments that mean nothing."""
    if address is not None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise refused("coordinator_address", "a host and a port", address, "write it like `localhost:1234`")
    for name, value, least in (("num_processes", processes, 1), ("process_id", number, 0)):
        if value is not None and ((size := integer(value)) is None or not least <= size < 1 << 31):
            raise refused(name, f"a number, {least} or more", value)
    if processes is not None and number is not None and number >= processes:
        raise refused("process_id", f"a number below num_processes, which is {processes}", number)
    if (size := integer(heartbeat)) is None or not 1 <= size < 1 << 31:
        raise refused("heartbeat_timeout_seconds", "a number of seconds, 1 or more", heartbeat)


def _watched(name: str) -> Path:
    """A file for the trail of this process. A watcher prints what is in it if the process does not end in order."""
    number, file = tempfile.mkstemp(prefix="partita-")
    os.close(number)
    command = [sys.executable, "-I", "-S", trail_file, file, name]
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    atexit.register(watcher.communicate)
    return Path(file)
