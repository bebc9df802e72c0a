"""What a process has issued, in lines that outlive it: the last ones say what ran when it was lost.

The lines are in a mapped file, so that they are there even if the process is killed. Run as a program, this file is a watcher:
it waits until the process that has started it ends, and prints its last lines unless it has ended in order.

    trail.note("`main_0` in `step`")   -->   the file has one line more

Imports nothing but the standard library, so that a watcher is there at once.
"""

import mmap
import os
import select
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HEAD, TIMES = struct.Struct("<QQ?"), struct.Struct("<dQ")
"""How much was issued, in how many lines, and whether the process ended in order; when a line was last issued, how often."""
LINE, LINES = 160, 6
"""The bytes of a line with its times, and the number of lines that are kept."""


class Trail:
    """The lines of this process."""

    def __init__(self, file: Path) -> None:
        with file.open("wb+") as made:
            made.truncate(HEAD.size + LINES * LINE)
            self.map = mmap.mmap(made.fileno(), 0)
        self.count = self.lines = self.times = 0
        self.last: str | None = None

    def note(self, line: str) -> None:
        """Adds a line, or says of the last one that it was issued once more."""
        self.count += 1
        self.times += 1
        if line != self.last:
            self.last, self.times, self.lines = line, 1, self.lines + 1
        at = HEAD.size + self.lines % LINES * LINE
        written = TIMES.pack(time.time(), self.times) + line.encode(errors="replace")
        self.map[at : at + LINE] = written[:LINE].ljust(LINE, b"\0")
        HEAD.pack_into(self.map, 0, self.count, self.lines, False)

    def close(self) -> None:
        """Says that the process has ended in order."""
        HEAD.pack_into(self.map, 0, self.count, self.lines, True)


@dataclass(frozen=True)
class Left:
    """What a process has left: how much it issued, whether it ended in order, and its last lines."""

    count: int
    in_order: bool
    lines: tuple[tuple[float, int, str], ...]
    """When each was last issued, and how often one after another."""

    @classmethod
    def by(cls, file: Path) -> "Left":
        """Reads the file of a process; one that never wrote any has left nothing."""
        data = file.read_bytes() if file.exists() else b""
        if len(data) < HEAD.size:
            return cls(0, False, ())
        count, last, in_order = HEAD.unpack_from(data)
        starts = [HEAD.size + number % LINES * LINE for number in range(max(0, last - LINES) + 1, last + 1)]
        texts = (data[at + TIMES.size : at + LINE].rstrip(b"\0").decode(errors="replace") for at in starts)
        return cls(count, in_order, tuple((*TIMES.unpack_from(data, at), text) for at, text in zip(starts, texts, strict=True)))

    def said(self, end: float) -> str:
        """The last lines in words, for a process that ended at this time.

        "had issued 12 programs; the last, 0.4 s before: `a` in `f` (3 times), `b` in `f`"
        """
        if not self.lines:
            return "had issued no program"
        last = ", ".join(text if times == 1 else f"{text} ({times:,} times)" for _, times, text in self.lines)
        programs = "1 program" if self.count == 1 else f"{self.count:,} programs"
        return f"had issued {programs}; the last, {max(0.0, end - self.lines[-1][0]):.1f} s before: {last}"


def watch(file: Path, name: str) -> None:
    """Waits until the process that started this one has ended, and prints its last lines unless it ended in order."""
    parent = os.getppid()
    # The pipe closes when the process ends, but its own children may hold it open.
    while not select.select([sys.stdin], [], [], 1)[0] and os.getppid() == parent:
        pass
    left = Left.by(file)
    if not left.in_order:
        print(f"{name} did not end in order; it {left.said(time.time())}", file=sys.stderr, flush=True)
    file.unlink(missing_ok=True)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), sys.argv[2])
