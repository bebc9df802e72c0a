"""Pauses the cyclic garbage collector, which takes up to half of the time of a pipeline that only allocates.

The objects that a large pipeline makes, a program or a module, stay alive. As soon as the collector runs again it would walk
all of them, which takes a tenth of the pipeline's time. So they are moved to the old generation without a walk.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager

LARGE = 50_000
"""From this number of new objects on, the collector's walk is noticeable. Fewer are left to the collector."""

MOST_UNWALKED = 4_000_000
"""After this many objects moved without a walk, some hundred megabytes, one full walk runs, to free old programs.

If more objects than this are alive, the walk waits for as many: so walks take the same share of the time in programs of any
size.
"""

IMMORTAL = 1_000
"""Python 3.12 counts its immortal objects, some 375, as frozen. A program that freezes objects has many times more."""

_unwalked = 0
_alive = 0
"""The number of objects that were alive after the last full walk."""
_has_frozen = False
"""Whether the program had frozen objects itself when they were last counted. To count many takes as long as to walk them."""


@contextmanager
def without_collector() -> Generator[None, None, None]:
    """Pauses the cyclic collector inside of a `with` block.

    Does nothing if the collector is off already, as in a nested use.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    young = gc.get_count()[0]
    try:
        yield
    finally:
        _grow_old(gc.get_count()[0] - young)
        gc.enable()


def _grow_old(made: int) -> None:
    """Moves young objects to the old generation.

    Freezing and unfreezing relinks them, at a cost independent of their number.
    """
    global _unwalked, _alive, _has_frozen
    if made < LARGE:
        return
    _unwalked += made
    if _unwalked > max(MOST_UNWALKED, _alive):
        gc.collect()
        _unwalked, _alive, _has_frozen = 0, len(gc.get_objects()), False
        return
    # What the program has frozen would be unfrozen too. Once there is any, it is counted again only after the next full walk.
    _has_frozen = _has_frozen or gc.get_freeze_count() >= IMMORTAL
    if not _has_frozen:
        gc.freeze()
        gc.unfreeze()
