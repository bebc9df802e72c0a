"""The cyclic garbage collector costs up to half of a pipeline that only allocates: it rests meanwhile.

What a large pipeline makes, a program or a module, stays. The collector would walk all of it to find that out, as soon as it
may run again, in whatever comes next: a tenth of the time that making it took. So it is handed over as old, unwalked.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

LARGE = 50_000
"""New objects from which on the walk can be felt; fewer are left to the collector."""

MOST = 2_000_000
"""Objects handed over unwalked, some hundred megabytes: then all is walked once, for old programs are garbage by and by."""

_unwalked = 0


@contextmanager
def without_collector() -> Generator[None, None, None]:
    """Pause the cyclic collector; nested uses, and a collector that was off before, are left as they were."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        _grow_old(gc.get_count()[0])
        gc.enable()


def _grow_old(made: int) -> None:
    """Make the young objects old ones: freezing and unfreezing relinks them, at no cost that depends on their number."""
    global _unwalked
    if made < LARGE:
        return
    _unwalked += made
    if _unwalked > MOST:
        _unwalked = 0
        gc.collect()
    elif gc.get_freeze_count() == 0:
        # Else the program has frozen objects itself, and they would be unfrozen with ours.
        gc.freeze()
        gc.unfreeze()
