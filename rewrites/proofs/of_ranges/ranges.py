"""The laws of ranges, factors, windows and refinements, each with what is known of it.

Each is proved for every structure that it names (a range that is an extent, an axis, blocks on an axis, ...) and for all sizes,
coordinates, strides and offsets in it. Extents are below 2**62.
"""

from __future__ import annotations

from ..record import recorded
from ..symbolic.explore import explore
from ..verdict import Verdict, timed
from . import factor_laws, joint_laws, range_laws, read_laws, window_laws
from .cases import RangeLaw

NOT_PROVED: dict[str, str] = {}
"""The laws that are not proved, and why."""


def every_range_law() -> list[RangeLaw]:
    """All laws, in the order in which they are written."""
    return [each for room in (range_laws, window_laws, factor_laws, joint_laws, read_laws) for each in room.LAWS.values()]


@recorded
def range_verdict(name: str) -> Verdict:
    """What is known of a law: proved if it is for each of its structures."""
    return timed(lambda: _of_all(next(each for each in every_range_law() if each.name == name)))


def _of_all(law: RangeLaw) -> Verdict:
    found = {case: explore(predicate) for case, predicate in law.cases.items()}
    for state in ("refuted", "not proved"):
        for case, each in found.items():
            if each.state == state:
                return Verdict(state, NOT_PROVED.get(law.name) or ": ".join(filter(None, (case, each.how))))
    paths = sum(each.paths for each in found.values())
    structures = f", for {len(found)} structures" if len(found) > 1 else ""
    return Verdict("proved", f"on {paths} path{'s' * (paths != 1)}{structures}")
