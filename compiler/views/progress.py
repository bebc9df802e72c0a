"""A bar on the terminal for work that takes long.

compiling main   ━━━━━━━━━━━╸━━━━━━━━━━━━━━ 7/16 0:00:09
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

SECONDS = 2.0
"""What takes less shows no bar."""


@contextmanager
def progress(what: str, total: int, console: Console | None = None) -> Generator[Callable[[], None]]:
    """A context with a function to call after each of `total` steps. The bar is shown on a terminal, and goes when it ends."""
    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console or Console(stderr=True), transient=True)
    task, timer = bar.add_task(what, total=total), Timer(SECONDS, bar.start)
    timer.daemon = True
    if bar.console.is_terminal:
        timer.start()
    try:
        yield lambda: bar.advance(task)
    finally:
        timer.cancel()
        if timer.is_alive():
            # It may be about to show the bar.
            timer.join()
        if bar.live.is_started:
            # Or it would end a line that nobody has begun.
            bar.stop()
