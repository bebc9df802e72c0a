"""How often each rule has fired since the counters were last reset.

A law that no end-to-end test fires is either dead or untested, and the test suite rejects it. `make fuzz` deletes each law
in turn and expects a failure. Counting is one dictionary update, so it is always on.
"""

from __future__ import annotations

from collections import Counter

_COUNTS: Counter[str] = Counter()


def count(rule: str) -> None:
    """Notes that `rule` has rewritten something."""
    _COUNTS[rule] += 1


def fired(rule: str) -> int:
    """How often `rule` has fired."""
    return _COUNTS[rule]


def counts() -> dict[str, int]:
    """Every rule that has fired, with how often, the most frequent first."""
    return dict(_COUNTS.most_common())


def reset() -> None:
    """Starts counting anew."""
    _COUNTS.clear()
