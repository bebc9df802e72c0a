"""Counts how often each rule has fired.

A law that no end-to-end test fires is either dead or untested, and the test suite rejects it. `make fuzz` deletes each law
in turn and expects a failure. Counting is one dictionary update, so it is always on.
"""

from __future__ import annotations

from collections import Counter

_COUNTS: Counter[str] = Counter()


def count_firing(rule: str) -> None:
    """Counts one more firing of `rule`."""
    _COUNTS[rule] += 1


def fired(rule: str) -> int:
    """How often `rule` has fired."""
    return _COUNTS[rule]


def firings() -> dict[str, int]:
    """Maps each rule that has fired to how often it has, the most frequent first."""
    return dict(_COUNTS.most_common())


def reset() -> None:
    """Resets all counters."""
    _COUNTS.clear()
